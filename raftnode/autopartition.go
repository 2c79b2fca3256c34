package raftnode

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stavedb/stave/autopartition"
	"github.com/stavedb/stave/catalog"
)

const (
	// autoPartitionInterval is how often all tables are looked at; those that
	// changed are looked at with the next run of the duty.
	autoPartitionInterval = 10 * time.Second
	// autoPartitionWindow is how many commands of the duty are on their way
	// together.
	autoPartitionWindow = 256
)

// autoPartitions is the duty that creates and drops partitions by the clock. It
// lives as long as a term and remembers nothing that is needed: what is due
// follows from the state and the time, and ids and IfNotExists make a command of
// an earlier leader, that comes through after all, harmless.
type autoPartitions struct {
	looked     time.Duration // monotonic time of the last look at all tables
	seen       catalog.Revision
	strategies map[catalog.TableID]tableStrategy
	trouble    map[catalog.TableID]catalog.Code // logged, until it is over
}

type tableStrategy struct {
	table *catalog.Table
	autopartition.Strategy
}

// autoOrder is one command of the duty.
type autoOrder struct {
	table *catalog.Table
	cmd   catalog.Command
	p     *pending
}

func dutyAutoPartition() func(context.Context, *Node, *leadership) error {
	a := &autoPartitions{trouble: map[catalog.TableID]catalog.Code{}}
	return a.run
}

func (a *autoPartitions) run(ctx context.Context, n *Node, l *leadership) error {
	st, now := n.fsm.State(), n.cfg.Clock.Monotonic()
	all := a.strategies == nil || now-a.looked >= autoPartitionInterval
	if !all && st.Revision() == a.seen {
		return nil
	}
	orders, more := a.due(n, st, n.autoWall(l, st), all)
	if l.clock.jumped() != "" {
		orders = slices.DeleteFunc(orders, func(o autoOrder) bool { return o.cmd.Kind() == catalog.KindDropPartitions })
	}
	if err := a.carryOut(ctx, n, l, orders); err != nil {
		a.strategies = nil // what was planned for the others is still due
		return err
	}
	a.seen = st.Revision()
	switch {
	case more:
		a.looked = now - autoPartitionInterval
	case all:
		a.looked = now
	}
	return nil
}

// autoWall is the time by which partitions are due: it goes back no more than
// the state's does, and on no faster than a leader's clock may.
func (n *Node) autoWall(l *leadership, st *catalog.State) catalog.Millis {
	return max(st.Cluster().Wall, n.envelope(l, catalog.Envelope{}).Wall)
}

// due returns the commands for all tables, or for those that changed since the
// last look. The drops of a table stand before its creations.
func (a *autoPartitions) due(n *Node, st *catalog.State, wall catalog.Millis, all bool) (orders []autoOrder, more bool) {
	kept := make(map[catalog.TableID]tableStrategy, len(a.strategies))
	st.TablesByID(func(t *catalog.Table) bool {
		if !t.AutoPartitioned() {
			return true
		}
		s, known := a.strategies[t.ID]
		if !known || s.table != t {
			strategy, err := autopartition.NewStrategy(t)
			if err != nil {
				a.troubled(n, t, &catalog.Error{Code: catalog.ErrInvalidTable, Message: err.Error()})
				return true
			}
			s = tableStrategy{t, strategy}
		}
		kept[t.ID] = s
		if !all && t.Revision <= a.seen {
			return true
		}
		steps := s.Plan(st, t, wall)
		more = more || steps.More
		orders = append(orders, ordersOf(t, steps)...)
		switch {
		case steps.Held:
			a.troubled(n, t, &catalog.Error{Code: catalog.ErrPartitionMaxNum, Message: "partitions that are due do not fit into the limit of the table"})
		case steps.Empty():
			delete(a.trouble, t.ID)
		}
		return true
	})
	a.strategies = kept
	return orders, more
}

// ordersOf names the table and the partitions to drop by id, so that nothing
// can hit a table or a partition that took the name meanwhile.
func ordersOf(t *catalog.Table, steps autopartition.Steps) (orders []autoOrder) {
	if len(steps.Drop) > 0 {
		drop := catalog.DropPartitions{Table: t.Path, TableID: catalog.Some(t.ID), IfExists: true}
		for _, p := range steps.Drop {
			drop.IDs = append(drop.IDs, p.ID)
		}
		orders = append(orders, autoOrder{table: t, cmd: drop})
	}
	if len(steps.Create) > 0 {
		create := catalog.CreatePartitions{Table: t.Path, TableID: catalog.Some(t.ID), IfNotExists: true, Automatic: true}
		for _, value := range steps.Create {
			create.Specs = append(create.Specs, catalog.PartitionSpec{{Key: t.PartitionKeys[0], Value: value}})
		}
		orders = append(orders, autoOrder{table: t, cmd: create})
	}
	return orders
}

// carryOut proposes the commands, in order and many at a time. One that is
// refused does not stop the others; an error ends the run.
func (a *autoPartitions) carryOut(ctx context.Context, n *Node, l *leadership, orders []autoOrder) error {
	for len(orders) > 0 {
		window := orders[:min(len(orders), autoPartitionWindow)]
		orders = orders[len(window):]
		refused, err := a.propose(ctx, n, l, window)
		if err != nil {
			return err
		}
		orders = append(refused, orders...)
	}
	return nil
}

// propose waits for all commands of a window. It returns what to try again: the
// partitions, one by one, of a creation that was refused for one of them.
func (a *autoPartitions) propose(ctx context.Context, n *Node, l *leadership, window []autoOrder) (again []autoOrder, err error) {
	env := catalog.Envelope{Fence: catalog.Some(l.fence)}
	begun := 0
	for i := range window {
		if window[i].p, err = n.begin(l, env, window[i].cmd); err != nil {
			break
		}
		begun++
	}
	for _, o := range window[:begun] {
		_, werr := o.p.wait(ctx)
		var refusal *catalog.Error
		switch {
		case werr == nil:
		case !settled(werr), errors.Is(werr, catalog.ErrFenced):
			err = errors.Join(err, werr)
		case errors.Is(werr, catalog.ErrTableNotExist): // dropped since
		default:
			singles := singly(o, werr)
			again = append(again, singles...)
			if errors.As(werr, &refusal) && len(singles) == 0 {
				a.troubled(n, o.table, refusal)
			}
		}
	}
	return again, err
}

// singly splits a creation that one of its partitions may have spoilt. Nothing
// else is worth it: other refusals would meet each of them.
func singly(o autoOrder, err error) (out []autoOrder) {
	c, ok := o.cmd.(catalog.CreatePartitions)
	if !ok || len(c.Specs) < 2 {
		return nil
	}
	if !errors.Is(err, catalog.ErrPartitionMaxNum) && !errors.Is(err, catalog.ErrTooLarge) && !errors.Is(err, catalog.ErrPartitionSpecInvalid) {
		return nil
	}
	for i := range c.Specs {
		one := c
		one.Specs = c.Specs[i : i+1]
		out = append(out, autoOrder{table: o.table, cmd: one})
	}
	return out
}

// troubled logs once what is tried again with every look.
func (a *autoPartitions) troubled(n *Node, t *catalog.Table, e *catalog.Error) {
	if a.trouble[t.ID] == e.Code {
		return
	}
	a.trouble[t.ID] = e.Code
	n.log.Warn("automatic partitions refused, trying again", "table", t.Path, "error", e)
}

// judge refuses what only a leader can: it knows the time and the zones. What
// the duty itself decided, and a sequence whose result is known, is not judged
// again: time went on since.
func (n *Node) judge(l *leadership, env catalog.Envelope, cmd catalog.Command) error {
	st := n.fsm.State()
	if err := st.Allows(cmd.Kind()); err != nil {
		return err
	}
	if c, ok := cmd.(catalog.CreatePartitions); ok && c.Automatic && env.Fence.Set {
		return nil
	}
	err := autopartition.CheckCommand(st, cmd, n.autoWall(l, st))
	if err != nil && answered(st, env) {
		return nil
	}
	return err
}

// answered reports whether the state has the last word on a sequence already.
func answered(st *catalog.State, env catalog.Envelope) bool {
	c, ok := st.Client(env.Client)
	if !ok {
		return false
	}
	found := env.Sequence <= c.Watermark
	c.Results(func(seq uint64, _ catalog.Result) bool {
		found = found || seq == env.Sequence
		return seq < env.Sequence
	})
	return found
}
