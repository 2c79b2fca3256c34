package raftnode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/raftnet"
)

// Level says how fresh a read must be.
type Level struct {
	kind     levelKind
	revision catalog.Revision
	inc      catalog.Opt[catalog.Incarnation]
}

type levelKind uint8

const (
	levelLinearizable levelKind = iota
	levelAtLeast
	levelStale
)

// Linearizable reads see every write that was acknowledged before the read
// began, on any node. Stale reads see what this node has.
var (
	Linearizable = Level{kind: levelLinearizable}
	Stale        = Level{kind: levelStale}
)

// AtLeast reads wait until this node has a revision, and then see what it has.
func AtLeast(rev catalog.Revision) Level { return Level{kind: levelAtLeast, revision: rev} }

// In names the incarnation that a revision was seen in; in another one the read
// fails with a *RestoredError.
func (l Level) In(inc catalog.Incarnation) Level {
	l.inc = catalog.Some(inc)
	return l
}

// Read returns an immutable state of the wanted freshness, which the caller may
// keep as long as it likes. Errors: ErrUnavailable when no leader, no majority
// or not the revision is there before ctx ends, *RestoredError, ErrClosed, and
// catalog.ErrDiverged while the node is fenced.
func (n *Node) Read(ctx context.Context, level Level) (*catalog.State, error) {
	if err := n.usable(); err != nil {
		return nil, err
	}
	if d := n.diverged.Load(); d != nil {
		return nil, d.err()
	}
	var st *catalog.State
	var err error
	switch level.kind {
	case levelStale:
		st = n.fsm.State()
	case levelAtLeast:
		st, err = n.await(ctx, uint64(level.revision))
	default:
		st, err = n.linearizable(ctx)
	}
	if err != nil {
		return nil, err
	}
	if level.inc.Set && level.inc.V != st.Incarnation() {
		return nil, &RestoredError{Current: st.Incarnation()}
	}
	return st, nil
}

func (n *Node) linearizable(ctx context.Context) (*catalog.State, error) {
	for {
		index, err := n.rounds.join(ctx)
		if err == nil {
			return n.await(ctx, index)
		}
		if !errors.Is(err, ErrNotLeader) {
			return nil, err
		}
		if err := n.pause(ctx); err != nil {
			return nil, unavailable("read: no leader was found before the deadline")
		}
	}
}

// leaderIndex asks the leader for a read index, for everyone who waits here.
func (n *Node) leaderIndex() (uint64, error) {
	leader := n.Leader()
	if leader == "" || leader == n.cfg.ID {
		return 0, n.notLeader()
	}
	ctx, cancel := n.withTimeout(2 * probeTimeout)
	defer cancel()
	data, err := n.peers.Call(ctx, leader, methodReadIndex, nil)
	if err != nil {
		return 0, n.notLeader() // reads are repeated until their deadline
	}
	if len(data) != 8 {
		return 0, unavailable("read index from %s has %d bytes", leader, len(data))
	}
	return binary.BigEndian.Uint64(data), nil
}

// await waits until the FSM's own index is there.
func (n *Node) await(ctx context.Context, index uint64) (*catalog.State, error) {
	st, err := n.fsm.Wait(ctx, index)
	if err != nil {
		if e := n.Err(); e != nil {
			return nil, e
		}
		return nil, unavailable("read: revision %d is not here yet, this node is at %d: %s", index, n.fsm.Index(), err)
	}
	return st, nil
}

// rounds gives out read indexes: at the leader by asking the voters, elsewhere by
// asking the leader. Readers queued so far share a round; those that come during
// a round wait for the next.
type rounds struct {
	n  *Node
	mu struct {
		sync.Mutex
		next    *round
		running bool
	}
}

type round struct {
	done  chan struct{}
	index uint64
	err   error
}

// join waits for a round that began after the call. Its index is at or above
// every write acknowledged before the call.
func (r *rounds) join(ctx context.Context) (uint64, error) {
	r.mu.Lock()
	if r.mu.next == nil {
		r.mu.next = &round{done: make(chan struct{})}
	}
	own := r.mu.next
	if !r.mu.running {
		r.mu.running = true
		r.n.goFunc(r.run)
	}
	r.mu.Unlock()
	select {
	case <-own.done:
		return own.index, own.err
	case <-ctx.Done():
		return 0, unavailable("read: leadership was not confirmed: %s", context.Cause(ctx))
	}
}

// run holds rounds while readers wait.
func (r *rounds) run() {
	for {
		r.mu.Lock()
		cur := r.mu.next
		r.mu.next = nil
		if cur == nil {
			r.mu.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		cur.index, cur.err = r.n.roundIndex()
		close(cur.done)
	}
}

// roundIndex is the index of one round.
func (n *Node) roundIndex() (uint64, error) {
	if n.lead.Load() != nil {
		return n.confirm()
	}
	return n.leaderIndex()
}

// confirm takes the commit index and asks every voter of the latest
// configuration for its term. More than half of them must answer exactly the
// term that is led; the leader counts only if it is one of them and still leads.
func (n *Node) confirm() (uint64, error) {
	l, e := n.lead.Load(), n.engine.Load()
	if l == nil || e == nil {
		return 0, n.notLeader()
	}
	index := e.raft.CommitIndex()
	voters := voters(e.raft.GetConfiguration().Configuration())
	need := len(voters)/2 + 1
	have := 0
	if slices.Contains(voters, n.cfg.ID) {
		have++
	}
	if have < need {
		got, err := n.probe(l, voters, need-have)
		if have += got; have < need {
			return 0, fmt.Errorf("%w: %d of %d voters confirmed term %d: %w", ErrUnavailable, have, len(voters), l.term, err)
		}
	}
	if n.lead.Load() != l || e.raft.State() != raft.Leader || e.raft.CurrentTerm() != l.term {
		return 0, n.notLeader()
	}
	return index, nil
}

// probeTimeout bounds one round; a voter that does not answer counts for nobody.
const probeTimeout = time.Second

// probe asks the other voters at once and returns when need of them confirmed
// the term, or all have answered.
func (n *Node) probe(l *leadership, voters []string, need int) (int, error) {
	ctx, cancel := context.WithTimeout(n.ctx, probeTimeout)
	defer cancel()
	answers := make(chan error, len(voters))
	asked := 0
	for _, v := range voters {
		if v == n.cfg.ID {
			continue
		}
		asked++
		n.goFunc(func() { answers <- n.confirmTerm(ctx, v, l.term) })
	}
	got := 0
	last := errNoVoters
	for range asked {
		err := <-answers
		if err == nil {
			if got++; got == need {
				return got, nil
			}
			continue
		}
		last = err
	}
	return got, last
}

var errNoVoters = errors.New("no other voter")

func (n *Node) confirmTerm(ctx context.Context, voter string, term uint64) error {
	data, err := n.peers.Call(ctx, voter, methodTerm, nil)
	if err != nil {
		var re *raftnet.RemoteError
		if errors.As(err, &re) {
			return err
		}
		return fmt.Errorf("ask %s: %w", voter, err)
	}
	if len(data) != 8 || binary.BigEndian.Uint64(data) != term {
		return fmt.Errorf("%s is not in term %d", voter, term)
	}
	return nil
}
