package raftnode

import (
	"context"
	"errors"
	"sync"

	"github.com/stavedb/stave/catalog"
)

// session is the node's own client: Propose goes through it, so that a command
// may be submitted again and again and still takes effect once. It registers
// with the first command, and anew when its record expired or the cluster was
// restored.
type session struct {
	n  *Node
	mu sync.Mutex
	id catalog.ClientID
	// next is the next sequence; open are those without a known outcome.
	next  uint64
	ack   uint64 // every sequence up to here is settled
	open  map[uint64]bool
	moved chan struct{} // closed and replaced when ack moves or the id changes
}

// ticket is one sequence of one registration.
type ticket struct {
	id  catalog.ClientID
	seq uint64
}

// Propose executes a command exactly once and returns its result. It may be
// called on any node. A refusal comes as the error, an *catalog.Error, beside
// the result. ErrUnavailable says that nothing was changed; ErrOutcomeUnknown,
// when ctx ends first, that the command may take effect, in which case the node
// goes on asking so that later commands are not held up.
func (n *Node) Propose(ctx context.Context, cmd catalog.Command) (catalog.Result, error) {
	t, err := n.session.begin(ctx)
	if err != nil {
		return catalog.Result{}, err
	}
	res, sent, err := n.attempts(ctx, t, cmd)
	switch {
	case err == nil || settled(err):
		n.session.settle(t)
		return res, err
	case errors.Is(err, catalog.ErrSessionExpired), errors.Is(err, catalog.ErrAlreadyAcknowledged):
		n.session.drop(t.id)
		if sent {
			return catalog.Result{}, outcomeUnknown("propose "+cmd.Kind().String(), err)
		}
		return n.Propose(ctx, cmd) // never executed under the old registration
	case !sent:
		n.session.settle(t)
		return catalog.Result{}, err
	}
	if !n.goFunc(func() { n.chase(t, cmd) }) {
		return catalog.Result{}, outcomeUnknown("propose "+cmd.Kind().String(), ErrClosed)
	}
	return catalog.Result{}, outcomeUnknown("propose "+cmd.Kind().String(), err)
}

// settled reports whether an error is the final answer to a sequence.
func settled(err error) bool {
	var e *catalog.Error
	if errors.Is(err, ErrOutcomeUnknown) || !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case catalog.ErrNotLeader, catalog.ErrOutcomeUnknown, catalog.ErrUnavailable, catalog.ErrBusy, catalog.ErrSessionExpired,
		catalog.ErrAlreadyAcknowledged:
		return false
	}
	return true
}

// attempts submits a sequence until it is answered or ctx ends. sent says that
// one of them may have entered the log.
func (n *Node) attempts(ctx context.Context, t ticket, cmd catalog.Command) (res catalog.Result, sent bool, err error) {
	for {
		env := catalog.Envelope{Client: t.id, Sequence: t.seq, Ack: n.session.watermark(t.id)}
		res, err = n.Submit(ctx, env, cmd)
		if err == nil || settled(err) || errors.Is(err, ErrClosed) ||
			errors.Is(err, catalog.ErrSessionExpired) || errors.Is(err, catalog.ErrAlreadyAcknowledged) {
			return res, sent, err
		}
		sent = sent || errors.Is(err, ErrOutcomeUnknown)
		if perr := n.pause(ctx); perr != nil {
			if sent {
				return catalog.Result{}, true, outcomeUnknown("propose "+cmd.Kind().String(), perr)
			}
			return catalog.Result{}, false, unavailable("propose %s: %s; last answer: %s", cmd.Kind(), perr, err)
		}
	}
}

// chase asks for the outcome of a sequence whose caller gave up, until it is
// known: only then may the watermark pass it.
func (n *Node) chase(t ticket, cmd catalog.Command) {
	_, _, err := n.attempts(n.ctx, t, cmd)
	if errors.Is(err, catalog.ErrSessionExpired) {
		n.session.drop(t.id)
		return
	}
	if err == nil || settled(err) || errors.Is(err, catalog.ErrAlreadyAcknowledged) {
		n.session.settle(t)
	}
}

// begin takes the next sequence, registering first if need be, and waits while
// the window is full.
func (s *session) begin(ctx context.Context) (ticket, error) {
	for {
		s.mu.Lock()
		if s.moved == nil {
			s.moved = make(chan struct{})
		}
		moved := s.moved
		switch {
		case s.id == 0:
			s.mu.Unlock()
			if err := s.register(ctx); err != nil {
				return ticket{}, err
			}
			continue
		case s.next-s.ack <= catalog.ClientWindow:
			t := ticket{s.id, s.next}
			s.open[t.seq] = true
			s.next++
			s.mu.Unlock()
			return t, nil
		}
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ticket{}, &catalog.Error{Code: catalog.ErrBusy, Message: "the node's own window of commands without an outcome is full"}
		case <-s.n.stop:
			return ticket{}, ErrClosed
		}
	}
}

// register makes a client record. A registration whose outcome is unknown is
// tried again: an unused record expires.
func (s *session) register(ctx context.Context) error {
	for {
		res, err := s.n.Submit(ctx, catalog.Envelope{}, catalog.RegisterClient{Name: "node " + s.n.cfg.ID})
		if err == nil {
			id, _ := res.FirstID()
			s.mu.Lock()
			if s.id == 0 {
				s.id, s.next, s.ack, s.open = catalog.ClientID(id), 1, 0, map[uint64]bool{}
				s.signal()
			}
			s.mu.Unlock()
			return nil
		}
		if settled(err) || errors.Is(err, ErrClosed) {
			return err
		}
		if perr := s.n.pause(ctx); perr != nil {
			return unavailable("register the node's client: %s; last answer: %s", perr, err)
		}
	}
}

// signal wakes those that wait for the window. The lock is held.
func (s *session) signal() {
	if s.moved != nil {
		close(s.moved)
	}
	s.moved = make(chan struct{})
}

// settle closes a sequence and moves the watermark over all closed ones.
func (s *session) settle(t ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.id != s.id {
		return
	}
	delete(s.open, t.seq)
	from := s.ack
	for s.ack+1 < s.next && !s.open[s.ack+1] {
		s.ack++
	}
	if s.ack != from {
		s.signal()
	}
}

// watermark is what a command of a registration acknowledges.
func (s *session) watermark(id catalog.ClientID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.id {
		return 0
	}
	return s.ack
}

// drop forgets a registration that the cluster does not know any more.
func (s *session) drop(id catalog.ClientID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == id {
		s.id = 0
		s.signal()
	}
}
