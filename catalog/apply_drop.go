package catalog

import "slices"

// What one command removes itself: a larger table is marked dropped at once and
// purged in steps of the same bounds, so that no event becomes huge.
const (
	maxInlineDrop     = 4096   // partitions
	maxInlineReplicas = 65_536 // replicas of their buckets
)

// dropBudget is what a command may still remove.
type dropBudget struct{ partitions, replicas int }

func (b *Batch) dropTable(c DropTable) (Result, *Error) {
	t, err := b.findTable(c.Table, c.TableID)
	if err != nil {
		if c.IfExists && err.Code == ErrTableNotExist {
			return Result{}, nil
		}
		return Result{}, err
	}
	b.removeTable(t, &dropBudget{maxInlineDrop, maxInlineReplicas})
	return Result{Changed: true, IDs: []IDRange{{uint64(t.ID), 1}}}, nil
}

// removeTable removes a table whose partitions are within the budget, or marks it
// dropped.
func (b *Batch) removeTable(t *Table, budget *dropBudget) {
	count := b.s.PartitionCount(t.ID)
	if t.Importing() {
		b.leaveImport(t)
	}
	b.recordDrop(t)
	left := *budget
	if count > left.partitions || b.take(t.ID, &left) < count {
		n := *t
		n.Dropped, n.Import, n.Revision, n.Wall = true, ImportID{}, b.rev, b.s.cluster.Wall
		b.putTable(t, &n)
		return
	}
	*budget = left
	b.removePartitions(t.ID, count)
	b.deleteTable(t)
}

// take returns how many of a table's partitions, in order, are within the budget
// and takes them off it. A single one is never too large for a budget that
// nothing was taken of.
func (b *Batch) take(id TableID, budget *dropBudget) int {
	n, fresh := 0, budget.replicas == maxInlineReplicas
	b.s.Partitions(id, "", func(p *Partition) bool {
		replicas := 0
		if p.Placement != nil {
			for _, list := range p.Placement.Replicas {
				replicas += len(list)
			}
		}
		if budget.partitions == 0 || replicas > budget.replicas && (n > 0 || !fresh) {
			return false
		}
		n++
		budget.partitions--
		budget.replicas = max(0, budget.replicas-replicas)
		return true
	})
	return n
}

// removePartitions removes the first n partitions of a table by name.
func (b *Batch) removePartitions(id TableID, n int) {
	victims := make([]*Partition, 0, n)
	b.s.Partitions(id, "", func(p *Partition) bool {
		if len(victims) == n {
			return false
		}
		victims = append(victims, p)
		return true
	})
	for _, p := range victims {
		b.deletePartition(p)
	}
}

// recordDrop writes the record of a dropped table, naming every server that
// holds a replica of it. The scan ends when every registered server is named,
// and does not begin when nothing is placed: a large table is dropped in little
// time either way.
func (b *Batch) recordDrop(t *Table) {
	d := &DroppedObject{
		Table: t.ID, Path: t.Path, Buckets: t.Buckets, Epoch: t.Epoch, Dropped: b.s.cluster.Wall, Revision: b.rev,
	}
	holders := map[ServerID]bool{}
	addHolders(holders, t.Placement)
	if set, ok := b.s.parts.get(t.ID); ok && set.unplaced.len() < set.byName.len() {
		registered := b.s.servers.len()
		set.byName.all(func(_ string, p *Partition) bool {
			addHolders(holders, p.Placement)
			return len(holders) < registered
		})
	}
	b.absorb(holders, tablePrefix(t.ID))
	d.Pending = pendingOf(holders)
	b.putDropped(nil, d)
}

func addHolders(holders map[ServerID]bool, p *Placement) {
	if p == nil {
		return
	}
	for _, replicas := range p.Replicas {
		for _, s := range replicas {
			holders[s] = true
		}
	}
}

func pendingOf(holders map[ServerID]bool) []PendingDeletion {
	var out []PendingDeletion
	for s := range holders {
		out = append(out, PendingDeletion{Server: s})
	}
	slices.SortFunc(out, func(a, b PendingDeletion) int { return int(a.Server) - int(b.Server) })
	return out
}

func (b *Batch) dropPartitions(c DropPartitions) (Result, *Error) {
	t, err := b.findTable(c.Table, c.TableID)
	if err != nil {
		return Result{}, err
	}
	if err := b.mutablePartitioned(t); err != nil {
		return Result{}, err
	}
	victims, err := b.findPartitions(t, c)
	if err != nil {
		return Result{}, err
	}
	var r Result
	for _, p := range victims {
		b.dropPartition(t, p)
		r.addID(uint64(p.ID))
		r.Changed = true
	}
	return r, nil
}

// findPartitions resolves the specs and ids of a drop, each partition once.
func (b *Batch) findPartitions(t *Table, c DropPartitions) ([]*Partition, *Error) {
	n := max(len(c.Specs), len(c.IDs))
	if n == 0 || n > maxInlineDrop {
		return nil, refuseLimit(ErrInvalidArgument, maxInlineDrop, uint64(n), "%d partitions to drop are not in 1..%d", n, maxInlineDrop)
	}
	if len(c.Specs) > 0 && len(c.IDs) > 0 && len(c.Specs) != len(c.IDs) {
		return nil, refuse(ErrInvalidArgument, "%d partition ids for %d specs", len(c.IDs), len(c.Specs))
	}
	var out []*Partition
	seen := make(map[PartitionID]bool, n)
	for i := range n {
		p, err := b.findPartition(t, c, i)
		if err != nil {
			return nil, err
		}
		if p != nil && !seen[p.ID] {
			seen[p.ID] = true
			out = append(out, p)
		}
	}
	return out, nil
}

// findPartition returns the i-th partition of a drop, or nil if it is absent
// and that is allowed.
func (b *Batch) findPartition(t *Table, c DropPartitions, i int) (*Partition, *Error) {
	var p *Partition
	var what string
	if len(c.Specs) > 0 {
		name, err := partitionName(t, c.Specs[i], false)
		if err != nil {
			return nil, err
		}
		what = qualifiedName(t.PartitionKeys, name)
		p, _ = b.s.Partition(t.ID, name)
	}
	if len(c.IDs) > 0 {
		byID, _ := b.s.partIDs.get(c.IDs[i])
		if byID != nil && byID.Table != t.ID || len(c.Specs) > 0 && byID != p {
			byID = nil
		}
		p = byID
		if what == "" {
			what = utoa(uint64(c.IDs[i]))
		} else {
			what += " (id " + utoa(uint64(c.IDs[i])) + ")"
		}
	}
	if p == nil && !c.IfExists {
		return nil, refuse(ErrPartitionNotExists, "Partition '%s' does not exist for table %s", what, t.Path)
	}
	return p, nil
}

// dropPartition removes one partition and keeps the record of it.
func (b *Batch) dropPartition(t *Table, p *Partition) {
	count, _ := EffectiveCount(t, p) //nolint:errcheck // a partition without a count is recorded with 0
	holders := map[ServerID]bool{}
	addHolders(holders, p.Placement)
	b.absorb(holders, string(objectKey(t.ID, Some(p.ID))))
	b.deletePartition(p)
	b.putDropped(nil, &DroppedObject{
		Table: t.ID, Partition: Some(p.ID), Path: t.Path, Name: p.Name, Buckets: count, Epoch: p.Epoch,
		Dropped: b.s.cluster.Wall, Revision: b.rev, Pending: pendingOf(holders),
	})
}

// purgeDropped removes partitions of dropped tables, oldest table first, Max and
// maxInlineReplicas replicas of them at most, then
// records that are old enough and wait for nobody.
func (b *Batch) purgeDropped(c PurgeDropped) (Result, *Error) {
	var r Result
	left := dropBudget{int(min(c.Max, 1<<16)), maxInlineReplicas}
	for left.partitions > 0 {
		id, _, ok := b.s.purging.first()
		if !ok {
			break
		}
		n := b.take(id, &left)
		b.removePartitions(id, n)
		r.Changed = r.Changed || n > 0
		if b.s.PartitionCount(id) > 0 {
			return r, nil // the budget is used up
		}
		t, _ := b.s.tableIDs.get(id)
		b.deleteTable(t)
		r.Changed = true
	}
	for _, d := range b.expiredRecords(c.Before, left.partitions) {
		b.deleteDropped(d)
		r.Changed = true
	}
	return r, nil
}

func (b *Batch) expiredRecords(before Millis, limit int) []*DroppedObject {
	var out []*DroppedObject
	take := func(d *DroppedObject) bool {
		if len(out) == limit {
			return false
		}
		if d.Dropped < before && !b.awaited(d) {
			out = append(out, d)
		}
		return true
	}
	b.s.droppedParts.all(func(_ PartitionID, d *DroppedObject) bool { return take(d) })
	b.s.droppedTables.all(func(_ TableID, d *DroppedObject) bool { return take(d) })
	return out
}

// awaited reports whether the record of a dropped object is still needed: a
// registered server has replicas to delete, partitions of the table are left,
// or a running import could bring the id back, which the record prevents.
func (b *Batch) awaited(d *DroppedObject) bool {
	for _, p := range d.Pending {
		if b.s.servers.has(p.Server) {
			return true
		}
	}
	if !d.Partition.Set && b.s.tableIDs.has(d.Table) {
		return true
	}
	needed := false
	b.s.imports.all(func(_ string, i *Import) bool {
		needed = d.Table >= i.BaseTable || d.Partition.Set && d.Partition.V >= i.BasePartition
		return !needed
	})
	return needed
}
