package catalog

import "strconv"

// The functions of this file are the only ones that write rows: they keep the
// rolling hash, the indexes and the list of changes together.

func utoa(v uint64) string { return strconv.FormatUint(v, 10) }
func itoa(v int64) string  { return strconv.FormatInt(v, 10) }

// eventOf1 is an event with room for one change: most have no more.
type eventOf1 struct {
	Event
	one [1]Change
}

func (b *Batch) change(before, after Object) {
	if b.event == nil {
		b.event = new(eventOf1)
	}
	if b.changes == nil {
		b.changes = b.event.one[:0]
	}
	b.changes = append(b.changes, Change{before, after})
}

// clusterRow returns a copy of the cluster row for a change's before value.
func (b *Batch) clusterRow() *Cluster {
	c := b.s.cluster
	return &c
}

func (b *Batch) putDatabase(old, d *Database) {
	d.hash = b.hashDatabase(d)
	b.s.hash += d.hash
	if old == nil {
		b.change(nil, d)
	} else {
		b.s.hash -= old.hash
		b.change(old, d)
	}
	b.s.databases.set(b.s.gen, d.Name, d)
}

func (b *Batch) deleteDatabase(d *Database) {
	b.s.hash -= d.hash
	b.s.databases.delete(b.s.gen, d.Name)
	b.change(d, nil)
}

// putTable writes a table row. A dropped table loses its name.
func (b *Batch) putTable(old, t *Table) {
	t.sum = b.known(t.sum, t.Placement)
	t.hash = b.hashTable(t)
	b.s.hash += t.hash
	if old == nil {
		b.change(nil, t)
	} else {
		b.s.hash -= old.hash
		b.change(old, t)
	}
	g := b.s.gen
	b.s.tableIDs.set(g, t.ID, t)
	if t.Dropped {
		if cur, ok := b.s.tables.get(t.Path); ok && cur.ID == t.ID {
			b.s.tables.delete(g, t.Path)
		}
	} else {
		b.s.tables.set(g, t.Path, t)
	}
	if t.Dropped {
		b.s.purging.set(g, t.ID, struct{}{})
	}
	if !t.Partitioned() && t.Placement == nil && !t.Dropped {
		b.s.unplacedTables.set(g, t.ID, struct{}{})
	} else {
		b.s.unplacedTables.delete(g, t.ID)
	}
}

// deleteTable removes a table row; its partitions must be gone.
func (b *Batch) deleteTable(t *Table) {
	g := b.s.gen
	b.s.hash -= t.hash
	b.s.tableIDs.delete(g, t.ID)
	if cur, ok := b.s.tables.get(t.Path); ok && cur.ID == t.ID {
		b.s.tables.delete(g, t.Path)
	}
	b.s.parts.delete(g, t.ID)
	b.s.unplacedTables.delete(g, t.ID)
	b.s.purging.delete(g, t.ID)
	b.change(t, nil)
}

// partitions returns the partition set of a table, ready to be written.
func (b *Batch) partitions(id TableID) *partitionSet {
	set, ok := b.s.parts.get(id)
	if ok && set.gen == b.s.gen {
		return set
	}
	own := &partitionSet{}
	if ok {
		*own = *set
	}
	own.gen = b.s.gen
	b.s.parts.set(b.s.gen, id, own)
	return own
}

func (b *Batch) putPartition(old, p *Partition) {
	g := b.s.gen
	p.sum = b.known(p.sum, p.Placement)
	p.hash = b.hashPartition(p)
	b.s.hash += p.hash
	set := b.partitions(p.Table)
	if old == nil {
		b.change(nil, p)
		if p.Legacy {
			set.legacy++
		}
		n, _ := set.perEpoch.get(p.Epoch)
		set.perEpoch.set(g, p.Epoch, n+1)
	} else {
		b.s.hash -= old.hash
		b.change(old, p)
	}
	set.byName.set(g, p.Name, p)
	b.s.partIDs.set(g, p.ID, p)
	switch had := old != nil && old.Placement == nil; {
	case p.Placement == nil && !had:
		set.unplaced.set(g, p.ID, struct{}{})
		b.s.unplacedParts++
		if set.unplaced.len() == 1 {
			b.s.unplacedSets.set(g, p.Table, struct{}{})
		}
	case p.Placement != nil && had:
		b.nowPlaced(set, p)
	}
}

// nowPlaced takes a partition out of the index of those without placement.
func (b *Batch) nowPlaced(set *partitionSet, p *Partition) {
	set.unplaced.delete(b.s.gen, p.ID)
	b.s.unplacedParts--
	if set.unplaced.len() == 0 {
		b.s.unplacedSets.delete(b.s.gen, p.Table)
	}
}

func (b *Batch) deletePartition(p *Partition) {
	g := b.s.gen
	b.s.hash -= p.hash
	set := b.partitions(p.Table)
	set.byName.delete(g, p.Name)
	if p.Legacy {
		set.legacy--
	}
	if n, _ := set.perEpoch.get(p.Epoch); n > 1 {
		set.perEpoch.set(g, p.Epoch, n-1)
	} else {
		set.perEpoch.delete(g, p.Epoch)
	}
	b.s.partIDs.delete(g, p.ID)
	if p.Placement == nil {
		b.nowPlaced(set, p)
	}
	b.change(p, nil)
}

func (b *Batch) putServer(old, v *Server, silent bool) {
	v.hash = b.hashServer(v)
	b.s.hash += v.hash
	if old != nil {
		b.s.hash -= old.hash
	}
	b.s.servers.set(b.s.gen, v.ID, v)
	b.orderKnown = false
	switch {
	case silent:
	case old == nil:
		b.change(nil, v)
	default:
		b.change(old, v)
	}
}

func (b *Batch) deleteServer(v *Server) {
	b.s.hash -= v.hash
	b.s.servers.delete(b.s.gen, v.ID)
	b.orderKnown = false
	b.change(v, nil)
}

func (b *Batch) putMember(old, m *Member) {
	m.hash = b.hashMember(m)
	b.s.hash += m.hash
	if old == nil {
		b.change(nil, m)
	} else {
		b.s.hash -= old.hash
		b.change(old, m)
	}
	b.s.members.set(b.s.gen, m.NodeID, m)
}

func (b *Batch) deleteMember(m *Member) {
	b.s.hash -= m.hash
	b.s.members.delete(b.s.gen, m.NodeID)
	b.change(m, nil)
}

func (b *Batch) putKeyValue(old, v *KeyValue) {
	v.hash = b.hashKeyValue(v)
	b.s.hash += v.hash
	if old == nil {
		b.change(nil, v)
	} else {
		b.s.hash -= old.hash
		b.change(old, v)
	}
	b.s.kv.set(b.s.gen, v.Key, v)
}

func (b *Batch) deleteKeyValue(v *KeyValue) {
	b.s.hash -= v.hash
	b.s.kv.delete(b.s.gen, v.Key)
	b.change(v, nil)
}

func (b *Batch) putCounter(old, c *Counter) {
	c.hash = b.hashCounter(c)
	b.s.hash += c.hash
	if old == nil {
		b.change(nil, c)
	} else {
		b.s.hash -= old.hash
		b.change(old, c)
	}
	b.s.counters.set(b.s.gen, c.Name, c)
}

func (b *Batch) putImport(old, i *Import) {
	i.hash = b.hashImport(i)
	b.s.hash += i.hash
	if old == nil {
		b.change(nil, i)
	} else {
		b.s.hash -= old.hash
		b.change(old, i)
	}
	b.s.imports.set(b.s.gen, i.ID.String(), i)
}

func (b *Batch) deleteImport(i *Import) {
	b.s.hash -= i.hash
	b.s.imports.delete(b.s.gen, i.ID.String())
	b.change(i, nil)
}

func (b *Batch) putRebalance(r *Rebalance) {
	r.hash = b.hashRebalance(r)
	b.s.hash += r.hash
	if old := b.s.rebal; old != nil {
		b.s.hash -= old.hash
		b.change(old, r)
	} else {
		b.change(nil, r)
	}
	b.s.rebal = r
}

// putDropped writes the record of a dropped table or partition.
func (b *Batch) putDropped(old, d *DroppedObject) {
	d.hash = b.hashDropped(d)
	b.s.hash += d.hash
	if old == nil {
		b.change(nil, d)
	} else {
		b.s.hash -= old.hash
		b.change(old, d)
	}
	switch {
	case d.Bucket.Set:
		b.s.droppedBuckets.set(b.s.gen, d.bucket().Key(), d)
	case d.Partition.Set:
		b.s.droppedParts.set(b.s.gen, d.Partition.V, d)
	default:
		b.s.droppedTables.set(b.s.gen, d.Table, d)
	}
}

func (b *Batch) deleteDropped(d *DroppedObject) {
	b.s.hash -= d.hash
	switch {
	case d.Bucket.Set:
		b.s.droppedBuckets.delete(b.s.gen, d.bucket().Key())
	case d.Partition.Set:
		b.s.droppedParts.delete(b.s.gen, d.Partition.V)
	default:
		b.s.droppedTables.delete(b.s.gen, d.Table)
	}
	b.change(d, nil)
}
