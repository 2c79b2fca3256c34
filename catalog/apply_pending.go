package catalog

// assignPending places unassigned objects, tables first, then partitions by
// table and id, until the replicas of one command are used up. Objects that
// still have too few live servers, and those being dropped or imported, are
// left for a later command and do not hold up the others.
func (b *Batch) assignPending(c AssignPending) (Result, *Error) {
	if b.s.servers.len() == 0 {
		return Result{}, nil
	}
	limits := b.s.Limits("")
	limits.Replicas = min(limits.Replicas, DefaultLimits.Replicas)
	if c.MaxReplicas > 0 {
		limits.Replicas = min(limits.Replicas, c.MaxReplicas)
	}
	a := assigner{b: b, place: b.placer(limits)}
	for _, t := range b.pendingTables(limits.Replicas) {
		p := a.next(uint64(t.ID), t, t.Buckets)
		if p == nil {
			continue
		}
		n := *t
		n.Placement, n.Revision = p, b.rev
		b.putTable(t, &n)
	}
	b.assignPartitions(&a, int(limits.Replicas))
	return Result{Changed: a.place.replicas > 0}, nil
}

func (b *Batch) assignPartitions(a *assigner, limit int) {
	for _, p := range b.pendingPartitions(limit) {
		if a.full {
			return
		}
		t, _ := b.s.tableIDs.get(p.Table)
		count, err := EffectiveCount(t, p)
		if err != nil {
			continue
		}
		placement := a.next(uint64(p.ID), t, count)
		if placement == nil {
			continue
		}
		n := *p
		n.Placement, n.Revision = placement, b.rev
		b.putPartition(p, &n)
	}
}

// assigner spends the replicas of one AssignPending.
type assigner struct {
	b     *Batch
	place placer
	full  bool
}

// next returns the placement of one object, or nil if it is not placed by this
// command. An object that alone is above the command's bound, but within its
// database's limit, is placed by a command of its own; otherwise it would wait
// for ever.
func (a *assigner) next(id uint64, t *Table, buckets int32) *Placement {
	need := uint64(buckets) * uint64(t.Replication)
	if a.full || need > uint64(a.b.s.Limits(t.Database()).Replicas) {
		return nil
	}
	switch bound := uint64(a.place.limits.Replicas); {
	case need > bound && a.place.replicas == 0:
		alone := a.b.placer(Limits{Replicas: uint32(need)})
		p, err := alone.place(new(Placement), id, t, buckets)
		if err != nil {
			return nil
		}
		a.full, a.place.replicas = true, need
		return p
	case a.place.replicas+need > bound:
		a.full = true
		return nil
	}
	p, err := a.place.place(new(Placement), id, t, buckets)
	if err != nil {
		return nil
	}
	return p
}

func (b *Batch) pendingTables(limit uint32) []*Table {
	var out []*Table
	b.s.unplacedTables.all(func(id TableID, _ struct{}) bool {
		if t, ok := b.s.tableIDs.get(id); ok && !t.Importing() {
			out = append(out, t)
		}
		return len(out) < int(limit)
	})
	return out
}

// pendingPartitions collects from the tables that are neither dropped nor
// importing; those are passed over as a whole, whatever their size.
func (b *Batch) pendingPartitions(limit int) []*Partition {
	var out []*Partition
	b.s.unplacedSets.all(func(id TableID, _ struct{}) bool {
		t, _ := b.s.tableIDs.get(id)
		if t.Importing() || t.Dropped {
			return true
		}
		set, _ := b.s.parts.get(id)
		set.unplaced.all(func(id PartitionID, _ struct{}) bool {
			p, _ := b.s.partIDs.get(id)
			out = append(out, p)
			return len(out) < limit
		})
		return len(out) < limit
	})
	return out
}
