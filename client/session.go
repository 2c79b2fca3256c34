package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// registration is one client record of the cluster and the sequences given out
// under it. It is replaced as a whole when the cluster does not know it any
// more; what was sent under it is then of unknown outcome.
type registration struct {
	id catalog.ClientID

	mu sync.Mutex
	// next is the next sequence. Every sequence up to ack is settled: its outcome
	// is known, or it was never sent.
	// Invariant: ack < next, next - 1 - ack <= ClientWindow.
	next, ack uint64
	// settled[s % ClientWindow] holds for sequences s in (ack, next).
	settled [catalog.ClientWindow]bool
	dead    bool
	// moved is closed and replaced when ack moves or the registration dies.
	moved chan struct{}
	// gone is closed when the registration dies.
	gone chan struct{}
}

func newRegistration(id catalog.ClientID) *registration {
	return &registration{id: id, next: 1, moved: make(chan struct{}), gone: make(chan struct{})}
}

// ticket is one sequence of one registration. The zero ticket is that of a
// client without session.
type ticket struct {
	reg *registration
	seq uint64
}

func (t ticket) client() catalog.ClientID {
	if t.reg == nil {
		return 0
	}
	return t.reg.id
}

// ref is what a write of the ticket carries now.
func (t ticket) ref() *pb.ClientRef {
	if t.reg == nil {
		return nil
	}
	return &pb.ClientRef{ClientId: uint64(t.reg.id), Sequence: t.seq, Ack: t.reg.watermark()}
}

// settle says that the outcome is known, or that the sequence was never sent.
func (t ticket) settle() {
	if t.reg != nil {
		t.reg.settle(t.seq)
	}
}

// lost reports whether the registration died.
func (t ticket) lost() bool {
	if t.reg == nil {
		return false
	}
	select {
	case <-t.reg.gone:
		return true
	default:
		return false
	}
}

func (r *registration) watermark() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ack
}

// take gives out the next sequence. A full window gives a channel that is closed
// when it is worth asking again.
func (r *registration) take() (t ticket, wait <-chan struct{}, dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.dead:
		return ticket{}, nil, true
	case r.next-r.ack > catalog.ClientWindow:
		return ticket{}, r.moved, false
	}
	t = ticket{r, r.next}
	r.settled[r.next%catalog.ClientWindow] = false
	r.next++
	return t, nil, false
}

func (r *registration) settle(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead || seq <= r.ack || seq >= r.next {
		return
	}
	r.settled[seq%catalog.ClientWindow] = true
	from := r.ack
	for r.ack+1 < r.next && r.settled[(r.ack+1)%catalog.ClientWindow] {
		r.ack++
	}
	if r.ack != from {
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// die ends the registration. It reports whether it was alive.
func (r *registration) die() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return false
	}
	r.dead = true
	close(r.gone)
	close(r.moved)
	return true
}

// open is how many sequences are given out and not covered by the watermark.
func (r *registration) open() (n, ack uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next - 1 - r.ack, r.ack
}

// session registers the client when it first writes, and again when its record
// is gone.
type session struct {
	name   string
	logger *slog.Logger
	// register tells heard every answer that makes it go on.
	register func(ctx context.Context, name string, heard func(error)) (catalog.ClientID, error)
	// stuck says why no node can be asked; nil if one can. It may be missing.
	stuck func() error
	spawn func(func(context.Context)) bool

	mu      sync.Mutex
	current *registration
	pending *registering
	count   uint64 // of registrations
}

// registering is one attempt that all waiting callers share.
type registering struct {
	done chan struct{}
	err  error
	// heard is the last answer that made it go on; guarded by session.mu.
	heard error
}

// begin takes a sequence, registering first if needed, and waits while the
// window is full. Whatever its error, nothing was sent.
func (s *session) begin(ctx context.Context) (ticket, error) {
	for {
		r, err := s.registration(ctx)
		if err != nil {
			return ticket{}, err
		}
		t, wait, dead := r.take()
		if wait == nil && !dead {
			return t, nil
		}
		if dead {
			s.drop(r)
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ticket{}, errWindow
		}
	}
}

// errWindow is the last thing known of a write that the full window held back.
var errWindow = &catalog.Error{
	Code: catalog.ErrBusy, Limit: catalog.ClientWindow,
	Message: "the client's window of writes without an outcome is full",
}

// registration returns the living registration, making one if there is none.
func (s *session) registration(ctx context.Context) (*registration, error) {
	for {
		s.mu.Lock()
		if r := s.current; r != nil {
			s.mu.Unlock()
			return r, nil
		}
		p := s.pending
		if p == nil {
			p = &registering{done: make(chan struct{})}
			if !s.spawn(func(ctx context.Context) { s.run(ctx, p) }) {
				s.mu.Unlock()
				return nil, ErrClosed
			}
			s.pending = p
		}
		s.mu.Unlock()
		select {
		case <-p.done:
			if p.err != nil {
				return nil, p.err
			}
		case <-ctx.Done():
			if err := s.unregistered(); err != nil {
				return nil, err
			}
			return nil, errRegistration
		}
	}
}

// errRegistration is the last thing known of a write whose client is not
// registered and has heard nothing that says why.
var errRegistration = errors.New("the client is not registered yet")

// unregistered says why the client is not registered while it tries to be: what
// its registration last heard, or why no node can be asked. Otherwise nil.
func (s *session) unregistered() error {
	s.mu.Lock()
	p := s.pending
	var heard error
	if p != nil {
		heard = p.heard
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	if heard == nil && s.stuck != nil {
		heard = s.stuck()
	}
	if heard == nil {
		return errRegistration
	}
	return fmt.Errorf("%w: %v", errRegistration, heard) //nolint:errorlint // it is about the registration, not the write
}

// registerBudget bounds one registration; callers that still wait start another.
const registerBudget = 30 * time.Second

func (s *session) run(ctx context.Context, p *registering) {
	ctx, cancel := context.WithTimeout(ctx, registerBudget)
	defer cancel()
	id, err := s.register(ctx, s.name, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.heard = err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending, p.err = nil, err
	if err == nil {
		s.current = newRegistration(id)
		s.count++
		s.logger.Debug("registered", slog.Uint64("client", uint64(id)))
	}
	close(p.done)
}

// drop ends a registration that the cluster does not know.
func (s *session) drop(r *registration) {
	if r == nil {
		return
	}
	if r.die() {
		open, _ := r.open()
		s.logger.Info("the client's record is gone", slog.Uint64("client", uint64(r.id)), slog.Uint64("open", open))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == r {
		s.current = nil
	}
}
