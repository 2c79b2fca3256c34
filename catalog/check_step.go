package catalog

import (
	"errors"
	"fmt"
)

// CheckStep verifies the invariants that speak of two states, before and after
// one command: I1, I3, I6 and I9. Both states must be of one history. It scans
// both.
func CheckStep(before, after *State) error {
	c := stepChecker{before: before, after: after}
	c.counters()
	c.clocks()
	before.tableIDs.all(func(id TableID, t *Table) bool {
		if n, ok := after.tableIDs.get(id); ok && n != t {
			c.table(t, n)
		}
		return true
	})
	before.partIDs.all(func(id PartitionID, p *Partition) bool {
		if q, ok := after.partIDs.get(id); ok && (q != p || p.Legacy) {
			c.partition(p, q)
		}
		return true
	})
	c.reused()
	return errors.Join(c.errs...)
}

type stepChecker struct {
	before, after *State
	errs          []error
}

func (c *stepChecker) failf(format string, args ...any) {
	if len(c.errs) < maxViolations {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *stepChecker) counters() {
	a, b := &c.before.cluster, &c.after.cluster
	if b.NextTable < a.NextTable || b.NextPartition < a.NextPartition || b.NextClient < a.NextClient {
		c.failf("I6: a counter fell: %d %d %d to %d %d %d", a.NextTable, a.NextPartition, a.NextClient, b.NextTable, b.NextPartition, b.NextClient)
	}
	c.before.counters.all(func(name string, v *Counter) bool {
		if n, ok := c.after.counters.get(name); !ok || n.Next < v.Next {
			c.failf("I6: counter %s at %d fell or is gone", name, v.Next)
		}
		return true
	})
}

func (c *stepChecker) clocks() {
	a, b := &c.before.cluster, &c.after.cluster
	if a.Incarnation == b.Incarnation {
		want := CoordinatorEpoch(0)
		if b.Term != a.Term {
			want = 1
		}
		if b.Term < a.Term || b.Coordinator-a.Coordinator != want {
			c.failf("I9: coordinator epoch went from %d to %d between terms %d and %d", a.Coordinator, b.Coordinator, a.Term, b.Term)
		}
	}
	if c.after.revision < c.before.revision || b.Lease < a.Lease || b.Wall < a.Wall {
		c.failf("I9: revision or a clock fell: %d %d %d to %d %d %d", c.before.revision, a.Lease, a.Wall, c.after.revision, b.Lease, b.Wall)
	}
}

// table compares a table with what one command made of it.
func (c *stepChecker) table(t, n *Table) {
	switch {
	case n.Epoch == t.Epoch && n.Buckets == t.Buckets && n.LegacyCount == t.LegacyCount:
	case n.Epoch == t.Epoch+1 && n.Buckets != t.Buckets:
		want := t.LegacyCount
		if t.Epoch == 0 {
			want = Some(t.Buckets)
		}
		if n.LegacyCount != want {
			c.failf("I1: the legacy count of table %s went from %v to %v at layout epoch %d, want %v", t.Path, t.LegacyCount, n.LegacyCount, n.Epoch, want)
		}
	default:
		c.failf("I3: table %s went from epoch %d with %d buckets, legacy count %v, to %d with %d, %v",
			t.Path, t.Epoch, t.Buckets, t.LegacyCount, n.Epoch, n.Buckets, n.LegacyCount)
	}
}

func (c *stepChecker) partition(p, q *Partition) {
	t, _ := c.before.tableIDs.get(p.Table)
	u, ok := c.after.tableIDs.get(q.Table)
	if !ok || t == nil {
		return // I7 is Check's
	}
	was, err1 := EffectiveCount(t, p)
	is, err2 := EffectiveCount(u, q)
	if was != is || (err1 == nil) != (err2 == nil) {
		c.failf("I1: partition %d '%s' went from %d to %d buckets", p.ID, p.Name, was, is)
	}
	if q.Table != p.Table || q.Name != p.Name || q.Epoch != p.Epoch || q.Legacy != p.Legacy || q.CreatedAt != p.CreatedAt {
		c.failf("I6: id %d went from partition '%s' of table %d to '%s' of table %d", p.ID, p.Name, p.Table, q.Name, q.Table)
	}
}

// reused finds new rows under ids that were given out before. An import may
// take ids above the counters at its begin.
func (c *stepChecker) reused() {
	table, part := c.before.cluster.NextTable, c.before.cluster.NextPartition
	c.before.imports.all(func(_ string, i *Import) bool {
		table, part = min(table, i.BaseTable), min(part, i.BasePartition)
		return true
	})
	c.after.tableIDs.all(func(id TableID, t *Table) bool {
		if id < table && !c.before.tableIDs.has(id) {
			c.failf("I6: id %d of table %s was used before", id, t.Path)
		}
		return true
	})
	c.after.partIDs.all(func(id PartitionID, p *Partition) bool {
		if id < part && !c.before.partIDs.has(id) {
			c.failf("I6: id %d of partition '%s' was used before", id, p.Name)
		}
		return true
	})
}
