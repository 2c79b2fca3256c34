package raftnode

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
)

// leadership is one term this node leads in, from the moment its NewTerm is
// applied. Nothing is served and no duty runs before that.
type leadership struct {
	term  uint64
	fence catalog.Fence
	// The lease clock goes on from what the state had, for as long as the term is
	// led: lease + (monotonic now - since).
	lease catalog.Millis
	since time.Duration
	clock *leaderClock
	ended chan struct{} // closed when the term is not led any more
}

// envelope adds the clocks to what the proposer of a command says.
func (n *Node) envelope(l *leadership, env catalog.Envelope) catalog.Envelope {
	env.Lease = l.lease + catalog.Millis((n.cfg.Clock.Monotonic()-l.since)/time.Millisecond)
	env.Wall = l.clock.now(n.cfg.Clock)
	return env
}

// watchLeadership follows one raft instance. It always drains the channel:
// raft blocks when it is full.
func (n *Node) watchLeadership(e *engine) {
	for {
		select {
		case leads := <-e.notify:
			n.resign()
			if leads {
				n.assume(e)
			}
		case <-e.kick:
			if n.lead.Load() == nil && e.raft.State() == raft.Leader {
				n.assume(e)
			}
		case <-e.stopped:
			n.resign()
			return
		}
	}
}

// resign ends the leadership, if there is one.
func (n *Node) resign() {
	if l := n.lead.Swap(nil); l != nil {
		close(l.ended)
		n.log.Info("leads no more", "term", l.term)
	}
}

// lookAgain makes the node serve as leader if raft leads and the node does not,
// as after a trouble of the disk that was over before anybody else was elected.
func (n *Node) lookAgain() {
	if e := n.engine.Load(); e != nil {
		select {
		case e.kick <- struct{}{}:
		default:
		}
	}
}

// transfer hands leadership to another voter.
func (e *engine) transfer() error {
	return e.await(e.raft.LeadershipTransfer())
}

// await waits for a future of raft or the end of the instance.
func (e *engine) await(f raft.Future) error {
	endWith(f, e.gone)
	return f.Error()
}

// assume opens the term: NewTerm, an incarnation if the cluster has none, then
// duties. It gives up when the node does not lead any more or stands back, and
// gives leadership up when NewTerm cannot be committed in time.
func (n *Node) assume(e *engine) {
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	n.goFunc(func() {
		if !n.commits(ctx, e) {
			cancel()
		}
	})
	for e.raft.State() == raft.Leader && !n.standsBack() {
		term := e.raft.CurrentTerm()
		l, err := n.openTerm(e, term, ctx.Done())
		if err == nil {
			n.startTerm(e, l)
			return
		}
		n.log.Debug("term not opened", "term", term, "error", err)
		if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			n.transferStuck(e)
		}
		select {
		case <-e.stopped:
			return
		case <-ctx.Done():
			if !n.closing() {
				n.giveUp(e, term)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// commits reports whether the term that begins commits an entry within three
// election timeouts. How long applying takes after that does not matter: a new
// leader may have much to apply.
func (n *Node) commits(ctx context.Context, e *engine) bool {
	before := e.raft.LastIndex()
	ticker := time.NewTicker(n.cfg.ElectionTimeout / 8)
	defer ticker.Stop()
	late := time.After(3 * n.cfg.ElectionTimeout)
	for e.raft.CommitIndex() <= before {
		select {
		case <-ctx.Done():
			return true // not needed any more
		case <-ticker.C:
		case <-late:
			return false
		}
	}
	return true
}

// giveUp ends a term that could not be opened. When not even a transfer works,
// the raft instance itself is stuck and is opened anew.
func (n *Node) giveUp(e *engine, term uint64) {
	n.log.Warn("term could not be opened in time, giving leadership up", "term", term)
	err := e.transfer()
	if err == nil || n.standsBack() || e.raft.State() != raft.Leader {
		return
	}
	n.log.Warn("leadership could not be given up, opening raft anew", "term", term, "error", err)
	n.goFunc(func() { n.replace(e) })
}

func (n *Node) openTerm(e *engine, term uint64, late <-chan struct{}) (*leadership, error) {
	base := n.fsm.State().Cluster().Lease
	if _, err := n.proposeOwn(e, late, base, catalog.NewTerm{Term: term, Leader: n.cfg.ID}); err != nil {
		return nil, err
	}
	if n.fsm.State().Incarnation().IsZero() {
		n.mu.Lock()
		cluster := n.id.Cluster
		n.mu.Unlock()
		begin := catalog.ActivateIncarnation{ClusterID: cluster, Incarnation: n.nextIncarnation(catalog.Incarnation{}), Level: catalog.FirstLevel}
		if _, err := n.proposeOwn(e, late, base, begin); err != nil {
			return nil, err
		}
	}
	c := n.fsm.State().Cluster()
	if c.Term != term || e.raft.State() != raft.Leader || e.raft.CurrentTerm() != term {
		return nil, &NotLeaderError{}
	}
	return &leadership{
		term: term, fence: catalog.Fence{Incarnation: c.Incarnation.Number, Coordinator: c.Coordinator},
		lease: c.Lease, since: n.cfg.Clock.Monotonic(), clock: newLeaderClock(n.cfg.Clock, c.Wall), ended: make(chan struct{}),
	}, nil
}

// nextIncarnation is above a previous one and, as far as clocks are right,
// above every other the cluster had.
func (n *Node) nextIncarnation(prev catalog.Incarnation) catalog.Incarnation {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand never fails
	return catalog.Incarnation{
		Number: max(prev.Number+1, uint64(n.cfg.Clock.Wall().UnixMilli())),
		Random: binary.BigEndian.Uint64(b[:]),
	}
}

// proposeOwn proposes a command of the leader itself before it serves.
func (n *Node) proposeOwn(e *engine, late <-chan struct{}, lease catalog.Millis, cmd catalog.Command) (*catalog.Result, error) {
	env := catalog.Envelope{Lease: lease, Wall: newLeaderClock(n.cfg.Clock, n.fsm.State().Cluster().Wall).now(n.cfg.Clock)}
	entry, err := fsm.AppendEntry(nil, env, cmd)
	if err != nil {
		return nil, err
	}
	p, err := e.propose(entry, noLimit)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		if p.err != nil {
			return nil, p.err
		}
		return p.result, p.result.Err()
	case <-late:
		return nil, unavailable("%s was not committed in time", cmd.Kind())
	case <-e.gone:
		return nil, ErrClosed
	}
}

// startTerm makes the node serve as leader.
func (n *Node) startTerm(e *engine, l *leadership) {
	n.lead.Store(l)
	if n.standsBack() { // found out while the term was opened
		n.resign()
		return
	}
	n.log.Info("leads", "term", l.term, "coordinator_epoch", l.fence.Coordinator, "incarnation", l.fence.Incarnation)
	n.startDuties(e, l)
}
