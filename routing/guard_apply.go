package routing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stavedb/stave/catalog"
)

// goneLimit bounds one generation of dropped ids that are remembered.
const goneLimit = 1 << 16

// guardStep is a state in the making. It is used by one goroutine.
type guardStep struct {
	from       *guardState
	tables     shardEdit[catalog.TableID, guardTable]
	partitions shardEdit[guardKey, *guardPartition]
	own        map[*guardPartition]bool // copied in this step
	next       guardState
}

// Apply takes a step, in this order: activations and epochs, removals, drops.
//
//   - What was dropped does not come back: an id is never reused. The last 65,536 dropped partitions and tables at
//     least are remembered, also across a Reset; another incarnation forgets them.
//   - An activation of an older leader epoch, or of the same with an older bucket epoch, changes nothing; nor does one
//     that is not newer than a removal.
//   - A table's epoch never falls.
//
// Errors: ErrGuardOrder, with nothing changed; *CountError for each activation with an impossible count, joined: those
// are left out and the rest of the step is taken.
func (g *Guard) Apply(u GuardUpdate) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := g.state.Load()
	other := !u.Incarnation.IsZero() && u.Incarnation != from.incarnation
	switch {
	case other && !u.Reset && !from.incarnation.IsZero():
		return fmt.Errorf("%w: incarnation %s after %s without a snapshot", ErrGuardOrder, u.Incarnation, from.incarnation)
	case other && u.Incarnation.Compare(from.incarnation) < 0:
		return fmt.Errorf("%w: incarnation %s after %s", ErrGuardOrder, u.Incarnation, from.incarnation)
	case !other && u.Revision != 0 && u.Revision < from.revision:
		return fmt.Errorf("%w: revision %d after %d", ErrGuardOrder, u.Revision, from.revision)
	case other && !from.incarnation.IsZero():
		from = NewGuard().state.Load() // ids of another history mean nothing here
	}
	s := guardStep{from: from, next: *from, own: map[*guardPartition]bool{}}
	if s.next.revision = max(u.Revision, from.revision); !u.Incarnation.IsZero() {
		s.next.incarnation = u.Incarnation
	}
	if u.Reset {
		s.next.partitions, s.next.tables = &shardMap[guardKey, *guardPartition]{}, &shardMap[catalog.TableID, guardTable]{}
	}
	s.tables, s.partitions = s.next.tables.edit(), s.next.partitions.edit()
	err := s.take(u)
	s.next.tables, s.next.partitions = s.tables.to, s.partitions.to
	g.state.Store(&s.next)
	return err
}

func (s *guardStep) take(u GuardUpdate) error {
	for id, e := range u.Epochs {
		h := tableShard(id)
		// The epoch before a snapshot counts as well: it never falls.
		was, known := s.from.tables.m[h][id]
		if known {
			e = max(e, was.epoch)
		}
		if t, ok := s.tables.to.m[h][id]; (!ok || t.epoch < e) && !s.from.tableGone(id) {
			s.tables.set(h, id, guardTable{e})
		}
	}
	var errs []error
	for i := range u.Activations {
		if err := s.activate(&u.Activations[i], u.Revision); err != nil {
			errs = append(errs, err)
		}
	}
	for _, b := range u.Removed {
		if p := s.change(guardKey{b.TableID, b.PartitionID}); p != nil && b.Bucket >= 0 && b.Bucket < p.count {
			r := &p.buckets[b.Bucket]
			r.here, r.leading, r.isr, r.removed = false, false, nil, max(u.Revision, 1)
		}
	}
	s.dropPartitions(u.DroppedPartitions)
	s.dropTables(u.DroppedTables)
	return errors.Join(errs...)
}

// change returns a partition's copy, made once in a step; nil for one that is not known.
func (s *guardStep) change(k guardKey) *guardPartition {
	p := s.partitions.to.m[k.shard()][k]
	if p == nil || s.own[p] {
		return p
	}
	c := *p
	c.buckets = slices.Clone(p.buckets)
	s.own[&c] = true
	s.partitions.set(k.shard(), k, &c)
	return &c
}

func (s *guardStep) activate(a *Activation, rev catalog.Revision) error {
	k := guardKey{a.Bucket.TableID, a.Bucket.PartitionID}
	if s.from.tableGone(k.table) || k.partition != NoPartition && s.from.partitionGone(k.partition) {
		return nil
	}
	known := s.partitions.to.m[k.shard()][k]
	if known == nil {
		known = s.from.partition(k) // a snapshot does not change a count either
	}
	switch {
	case known != nil && known.count != a.Count:
		return &CountError{Bucket: a.Bucket, Told: a.Count, Known: known.count}
	case a.Count < 1:
		return &CountError{Bucket: a.Bucket, Told: a.Count}
	}
	if err := CheckBucket(a.Bucket.Bucket, a.Count); err != nil {
		return fmt.Errorf("activation of %s: %w", a.Bucket, err)
	}
	p := s.change(k)
	if p == nil {
		p = &guardPartition{count: a.Count, buckets: make([]guardBucket, a.Count)}
		s.own[p] = true
		s.partitions.set(k.shard(), k, p)
	}
	b := &p.buckets[a.Bucket.Bucket]
	c := cmp.Or(cmp.Compare(a.LeaderEpoch, b.leaderEpoch), cmp.Compare(a.BucketEpoch, b.bucketEpoch))
	late := b.told && c < 0
	if b.told && !b.here && c == 0 {
		late = rev <= b.removed // the same state again: only a later step can mean it
	}
	if late {
		return nil
	}
	p.path, p.name = cmp.Or(a.Table, p.path), cmp.Or(a.Partition, p.name)
	*b = guardBucket{here: true, leading: a.Leading, told: true, leaderEpoch: a.LeaderEpoch, bucketEpoch: a.BucketEpoch, isr: a.ISR}
	return nil
}

func (s *guardStep) dropPartitions(dropped map[catalog.TableID][]catalog.PartitionID) {
	if len(dropped) == 0 {
		return
	}
	if s.next.goneParts.n >= goneLimit {
		s.next.olderParts, s.next.goneParts = s.next.goneParts, &shardMap[catalog.PartitionID, struct{}]{}
	}
	gone := s.next.goneParts.edit()
	for table, list := range dropped {
		for _, id := range list {
			k := guardKey{table, id}
			s.partitions.delete(k.shard(), k)
			gone.set(partitionShard(id), id, struct{}{})
		}
	}
	s.next.goneParts = gone.to
}

func (s *guardStep) dropTables(dropped []catalog.TableID) {
	if len(dropped) == 0 {
		return
	}
	if s.next.goneTables.n >= goneLimit {
		s.next.olderTables, s.next.goneTables = s.next.goneTables, &shardMap[catalog.TableID, struct{}]{}
	}
	gone := s.next.goneTables.edit()
	now := make(map[catalog.TableID]bool, len(dropped))
	for _, id := range dropped {
		s.tables.delete(tableShard(id), id)
		gone.set(tableShard(id), id, struct{}{})
		now[id] = true
	}
	s.next.goneTables = gone.to
	var keys []guardKey
	s.partitions.to.each(func(k guardKey, _ *guardPartition) {
		if now[k.table] {
			keys = append(keys, k)
		}
	})
	for _, k := range keys {
		s.partitions.delete(k.shard(), k)
	}
}
