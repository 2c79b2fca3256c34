// Package feed is what a tablet server hears of its own buckets: one activation
// per bucket, which carries the bucket count, the layout epoch of every table it
// holds replicas of, and what it has to delete. It is pure: states and events of
// the catalog in, records out.
//
//	f := feed.New(server)
//	step := f.Snapshot(state)          // everything the server must know
//	step, ok := f.Event(event, state)  // what one command changed of it
//
// # Guarantees
//
// A step is everything one command changed for the server. The epoch of a table
// is told before, or in the same step as, the first activation of a bucket of it,
// and at every rescale. After the steps up to a revision the server knows exactly
// what Snapshot of the state at that revision tells.
package feed

import (
	"slices"

	"github.com/stavedb/stave/catalog"
)

// Activation is the state of one bucket that the server holds a replica of.
type Activation struct {
	Bucket    catalog.BucketRef
	Table     string // path
	Partition string // name; empty for a table that is not partitioned
	// Count is the effective bucket count: a ready leader has its count.
	Count    int32
	State    catalog.BucketState
	Replicas []catalog.ServerID
}

// TableEpoch is the layout epoch of a table of which the server holds replicas.
type TableEpoch struct {
	Table catalog.TableID
	Epoch catalog.Epoch
}

// Deletion names an object whose replicas the server must delete and
// acknowledge: a whole table, with Partition one of its partitions, with Bucket
// the one replica that was moved away. An activation of the bucket that comes
// later takes it back.
type Deletion struct {
	Table     catalog.TableID
	Partition catalog.Opt[catalog.PartitionID]
	Bucket    catalog.Opt[catalog.BucketID]
}

// Step is one command's worth of news, or everything if Snapshot is set.
type Step struct {
	Snapshot    bool
	Revision    catalog.Revision
	Epochs      []TableEpoch
	Activations []Activation
	Deletions   []Deletion
	// Removed are buckets the server holds no replica of any more although their
	// object is still there.
	Removed []catalog.BucketRef
}

// Empty reports whether the step tells nothing.
func (s *Step) Empty() bool {
	return !s.Snapshot && len(s.Epochs)+len(s.Activations)+len(s.Deletions)+len(s.Removed) == 0
}

// Feed follows one server. It is used by one goroutine.
type Feed struct {
	server catalog.ServerID
	// held counts the objects of each table of which the server holds replicas.
	held map[catalog.TableID]int
	// resumed: what was held before is not known, so every epoch is told.
	resumed bool
}

// New returns a feed that begins with Snapshot.
func New(server catalog.ServerID) *Feed {
	return &Feed{server: server, held: map[catalog.TableID]int{}}
}

// Snapshot tells everything at a state and forgets what was known.
func (f *Feed) Snapshot(st *catalog.State) Step {
	step := Step{Snapshot: true, Revision: st.Revision()}
	clear(f.held)
	f.resumed = false
	st.TablesByID(func(t *catalog.Table) bool {
		if t.Dropped {
			return true
		}
		f.addObject(&step, t, nil, nil, t.Placement)
		st.Partitions(t.ID, "", func(p *catalog.Partition) bool {
			f.addObject(&step, t, p, nil, p.Placement)
			return true
		})
		return true
	})
	st.DroppedTables(func(d *catalog.DroppedObject) bool {
		f.addDeletion(&step, d)
		return true
	})
	st.DroppedPartitions(0, func(d *catalog.DroppedObject) bool {
		f.addDeletion(&step, d)
		return true
	})
	st.DroppedBuckets(func(d *catalog.DroppedObject) bool {
		f.addDeletion(&step, d)
		return true
	})
	return step
}

// Resume begins behind a revision that the server has been told up to, without a
// snapshot. Epochs are then told for tables the server may not hold, too.
func (f *Feed) Resume() {
	clear(f.held)
	f.resumed = true
}

// Event tells what one event changed for the server. st is a state at or after
// the event in which the paths of tables are looked up. It reports false if
// there is nothing to tell.
func (f *Feed) Event(e *catalog.Event, st *catalog.State) (Step, bool) {
	step := Step{Revision: e.Revision}
	tables := map[catalog.TableID]*catalog.Table{}
	for _, c := range e.Changes {
		if t, ok := c.After.(*catalog.Table); ok {
			tables[t.ID] = t
		}
	}
	table := func(id catalog.TableID) *catalog.Table {
		if t, ok := tables[id]; ok {
			return t
		}
		t, _ := st.TableByID(id)
		return t
	}
	for _, c := range e.Changes {
		f.change(&step, c, table)
	}
	return step, !step.Empty()
}

func (f *Feed) change(step *Step, c catalog.Change, table func(catalog.TableID) *catalog.Table) {
	switch c.Kind() {
	case catalog.ObjectTable:
		before, _ := c.Before.(*catalog.Table)
		after, _ := c.After.(*catalog.Table)
		f.tableChange(step, before, after)
	case catalog.ObjectPartition:
		before, _ := c.Before.(*catalog.Partition)
		after, _ := c.After.(*catalog.Partition)
		f.partitionChange(step, before, after, table)
	case catalog.ObjectDropped:
		after, _ := c.After.(*catalog.DroppedObject)
		before, _ := c.Before.(*catalog.DroppedObject)
		if after != nil && !f.deletes(before) {
			f.addDeletion(step, after)
		}
	default: // of no concern to a tablet server
	}
}

func (f *Feed) tableChange(step *Step, before, after *catalog.Table) {
	if after == nil || after.Dropped {
		if before != nil {
			// The record of the drop names who deletes what; whatever was held of
			// the table is gone.
			delete(f.held, before.ID)
		}
		return
	}
	if before != nil && before.Epoch != after.Epoch && (f.resumed || f.held[after.ID] > 0) {
		step.Epochs = append(step.Epochs, TableEpoch{after.ID, after.Epoch})
	}
	var old *catalog.Placement
	if before != nil {
		old = before.Placement
	}
	f.addObject(step, after, nil, old, after.Placement)
}

func (f *Feed) partitionChange(step *Step, before, after *catalog.Partition, table func(catalog.TableID) *catalog.Table) {
	if after == nil {
		if f.holds(before.Placement) && f.held[before.Table] > 0 {
			f.held[before.Table]--
		}
		return
	}
	t := table(after.Table)
	if t == nil {
		return // dropped since; the record of the drop follows
	}
	var old *catalog.Placement
	if before != nil {
		old = before.Placement
	}
	f.addObject(step, t, after, old, after.Placement)
}

func (f *Feed) holds(p *catalog.Placement) bool {
	return p != nil && slices.ContainsFunc(p.Replicas, func(r []catalog.ServerID) bool { return slices.Contains(r, f.server) })
}

// addObject tells the buckets of a table or partition that differ between two
// placements.
func (f *Feed) addObject(step *Step, t *catalog.Table, p *catalog.Partition, before, after *catalog.Placement) {
	had, has := f.holds(before), f.holds(after)
	switch {
	case !had && !has:
		return
	case has && !had:
		if f.held[t.ID]++; f.held[t.ID] == 1 {
			step.Epochs = append(step.Epochs, TableEpoch{t.ID, t.Epoch})
		}
	case had && !has && f.held[t.ID] > 0:
		f.held[t.ID]--
	}
	count, name, ref := t.Buckets, "", catalog.BucketRef{Table: t.ID}
	if p != nil {
		c, err := catalog.EffectiveCount(t, p)
		if err != nil {
			return // a partition without a count is never activated
		}
		count, name, ref.Partition = c, p.Name, catalog.Some(p.ID)
	}
	for b := range max(buckets(before), buckets(after)) {
		ref.Bucket = catalog.BucketID(b)
		old, now := at(before, b), at(after, b)
		switch {
		case now == nil || !slices.Contains(now.replicas, f.server):
			if old != nil && slices.Contains(old.replicas, f.server) {
				step.Removed = append(step.Removed, ref)
			}
		case old == nil || !slices.Contains(old.replicas, f.server) || changed(old, now):
			step.Activations = append(step.Activations, Activation{
				Bucket: ref, Table: t.Path, Partition: name, Count: count, State: *now.state, Replicas: now.replicas,
			})
		}
	}
}

func (f *Feed) addDeletion(step *Step, d *catalog.DroppedObject) {
	if f.deletes(d) {
		step.Deletions = append(step.Deletions, Deletion{d.Table, d.Partition, d.Bucket})
	}
}

// deletes reports whether the server has replicas of the object to delete.
func (f *Feed) deletes(d *catalog.DroppedObject) bool {
	return d != nil && slices.ContainsFunc(d.Pending, func(p catalog.PendingDeletion) bool { return p.Server == f.server })
}

// bucketView is one bucket of a placement.
type bucketView struct {
	state    *catalog.BucketState
	replicas []catalog.ServerID
}

func buckets(p *catalog.Placement) int {
	if p == nil {
		return 0
	}
	return len(p.Buckets)
}

func at(p *catalog.Placement, b int) *bucketView {
	if b >= buckets(p) {
		return nil
	}
	return &bucketView{&p.Buckets[b], p.Replicas[b]}
}

func changed(a, b *bucketView) bool {
	return a.state.LeaderEpoch != b.state.LeaderEpoch || a.state.BucketEpoch != b.state.BucketEpoch || a.state.Ready != b.state.Ready ||
		!slices.Equal(a.replicas, b.replicas)
}
