package raftnode

import (
	"context"
	"errors"
	"time"

	"github.com/stavedb/stave/catalog"
)

const (
	announceTimeout  = 5 * time.Second
	announceInterval = 500 * time.Millisecond
	dutyInterval     = time.Second
	clientSweep      = 10 * time.Second
	clientStep       = 1000
	checksumEvery    = 1000
	checksumInterval = 10 * time.Minute
	maxBackoff       = 30 * time.Second
	purgeStep        = 4096
	assignStep       = 65_536
	// dropRetention is how long the record of a dropped object is kept.
	dropRetention = 7 * 24 * time.Hour
)

// duty is a task of the leader. It is called at its interval while a term is
// led, with an envelope fenced by that term, and proposes what is due.
type duty struct {
	name  string
	every time.Duration
	run   func(ctx context.Context, n *Node, l *leadership) error
}

func duties() []duty {
	return append(nextDuties(), []duty{
		{"expire", expireInterval, byNode((*Node).dutyExpire)},
		{"assign", dutyInterval, byNode((*Node).dutyAssign)},
		{"purge", dutyInterval, byNode((*Node).dutyPurge)},
		{"rebalance", dutyInterval, dutyRebalance()},
		{"clients", clientSweep, byNode((*Node).dutyClients)},
		{"level", dutyInterval, byNode((*Node).dutyLevel)},
		{"checksum", dutyInterval, byNode((*Node).dutyChecksum)},
		{"compare", dutyInterval, byNode((*Node).dutyCompare)},
		{"auto_partition", dutyInterval, dutyAutoPartition()},
		{"clock", clockInterval, byNode((*Node).dutyClock)},
	}...)
}

// byNode makes a method of the node a duty.
func byNode(f func(*Node, context.Context, *leadership) error) func(context.Context, *Node, *leadership) error {
	return func(ctx context.Context, n *Node, l *leadership) error { return f(n, ctx, l) }
}

// startDuties runs every duty until the term ends. A failing one is repeated
// with back-off.
func (n *Node) startDuties(e *engine, l *leadership) {
	ctx, cancel := context.WithCancelCause(n.ctx)
	n.goFunc(func() {
		defer cancel(ErrNotLeader)
		select {
		case <-l.ended:
		case <-e.stopped:
		case <-n.stop:
		}
	})
	n.goFunc(func() { _ = n.dutyClock(ctx, l) }) //nolint:errcheck // at once; the duty reports
	for _, d := range duties() {
		n.goFunc(func() { n.runDuty(ctx, l, d) })
	}
}

func (n *Node) runDuty(ctx context.Context, l *leadership, d duty) {
	wait := d.every
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := d.run(ctx, n, l)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = min(2*wait, maxBackoff)
			n.log.Warn("leader duty failed, trying again", "duty", d.name, "error", err, "wait_ms", wait.Milliseconds())
		default:
			wait = d.every
		}
		n.setDutyError(d.name, err)
		timer.Reset(wait)
	}
}

// order proposes a command under the leadership it was decided in.
func (n *Node) order(ctx context.Context, l *leadership, cmd catalog.Command) error {
	_, err := n.ordered(ctx, l, cmd)
	return err
}

func (n *Node) ordered(ctx context.Context, l *leadership, cmd catalog.Command) (catalog.Result, error) {
	p, err := n.begin(l, catalog.Envelope{Fence: catalog.Some(l.fence)}, cmd)
	if err != nil {
		return catalog.Result{}, err
	}
	return p.wait(ctx)
}

// dutyAssign places what was created while no tablet server was there.
func (n *Node) dutyAssign(ctx context.Context, l *leadership) error {
	st := n.fsm.State()
	if st.Counts().Unassigned == 0 || !st.Assignable() {
		return nil
	}
	return n.order(ctx, l, catalog.AssignPending{MaxReplicas: assignStep})
}

// dutyRebalance begins further moves of the running plan as others come to their
// end. It looks at a state once.
func dutyRebalance() func(context.Context, *Node, *leadership) error {
	var seen catalog.Revision
	return func(ctx context.Context, n *Node, l *leadership) error {
		st := n.fsm.State()
		if st.Revision() == seen {
			return nil
		}
		if id, due := st.RebalanceDue(); due {
			err := n.order(ctx, l, catalog.StepRebalance{ID: id})
			if errors.Is(err, catalog.ErrNoRebalanceInProgress) { // cancelled since
				return nil
			}
			return err
		}
		seen = st.Revision()
		return nil
	}
}

// dutyPurge removes the partitions of large dropped tables in steps, and
// records of drops that nobody needs any more.
func (n *Node) dutyPurge(ctx context.Context, l *leadership) error {
	before := n.fsm.State().Cluster().Wall - catalog.Millis(dropRetention/time.Millisecond)
	for n.fsm.State().Purgeable(before) {
		res, err := n.ordered(ctx, l, catalog.PurgeDropped{Max: purgeStep, Before: before})
		if err != nil || !res.Changed {
			return err
		}
	}
	return nil
}

// dutyClients expires clients that were silent for their time to live.
func (n *Node) dutyClients(ctx context.Context, l *leadership) error {
	for {
		now := n.envelope(l, catalog.Envelope{}).Lease
		var due []catalog.ClientActivity
		n.fsm.State().Clients(func(c *catalog.Client) bool {
			if now-c.Active >= c.TTL {
				due = append(due, catalog.ClientActivity{ID: c.ID, ActiveAt: c.ActiveAt})
			}
			return len(due) < clientStep
		})
		if len(due) == 0 {
			return nil
		}
		if err := n.order(ctx, l, catalog.ExpireClients{Clients: due}); err != nil {
			return err
		}
	}
}

// dutyLevel raises the feature level once every member announced a higher one.
func (n *Node) dutyLevel(ctx context.Context, l *leadership) error {
	level := n.commonLevel(n.engine.Load())
	if level <= n.fsm.State().Cluster().Level {
		return nil
	}
	return n.order(ctx, l, catalog.SetFeatureLevel{Level: level})
}

// dutyChecksum puts a marker into the log every thousand revisions, every ten
// minutes if anything changed, and when a member came back behind the last one.
func (n *Node) dutyChecksum(ctx context.Context, l *leadership) error {
	last := catalog.Revision(n.lastChecksum.Load())
	now := n.fsm.State().Revision()
	at := n.cfg.Clock.Monotonic()
	due := now >= last+checksumEvery || now > last+1 && at-time.Duration(n.checksumAt.Load()) >= checksumInterval
	if !n.markerDue.Swap(false) && !due {
		return nil
	}
	n.checksumAt.Store(int64(at))
	return n.order(ctx, l, catalog.Checksum{})
}
