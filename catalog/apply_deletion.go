package catalog

import (
	"encoding/binary"
	"slices"
	"strings"
)

// ackDeletion takes a server off the list of those that still hold replicas of
// a dropped object or of a bucket it was moved away from. After maxDeletionTries failures it is taken off too.
func (b *Batch) ackDeletion(c AckDeletion) (Result, *Error) {
	if n := len(c.Objects); n < 1 || n > MaxBucketChanges*16 {
		return Result{}, refuseLimit(ErrInvalidArgument, MaxBucketChanges*16, uint64(n), "%d deletions are not in 1..%d", n, MaxBucketChanges*16)
	}
	if err := b.caller(c.Server, c.Incarnation); err != nil {
		return Result{}, err
	}
	var r Result
	for _, o := range c.Objects {
		d, ok := b.s.droppedRecord(o)
		if !ok || d.Table != o.Table {
			continue
		}
		i := slices.IndexFunc(d.Pending, func(p PendingDeletion) bool { return p.Server == c.Server })
		if i < 0 {
			continue
		}
		n := *d
		n.Pending, n.Revision = slices.Clone(d.Pending), b.rev
		if n.Pending[i].Tries++; !o.Failed || n.Pending[i].Tries >= maxDeletionTries {
			n.Pending = slices.Delete(n.Pending, i, i+1)
		}
		b.putPending(d, &n)
		r.Changed = true
	}
	return r, nil
}

func (s *State) droppedRecord(o DeletionAck) (*DroppedObject, bool) {
	switch {
	case o.Bucket.Set:
		return s.droppedBuckets.get(BucketRef{Table: o.Table, Partition: o.Partition, Bucket: o.Bucket.V}.Key())
	case o.Partition.Set:
		return s.droppedParts.get(o.Partition.V)
	}
	return s.droppedTables.get(o.Table)
}

// putPending writes a record after its list of servers changed. That of a bucket
// has no use once nobody has a replica to delete.
func (b *Batch) putPending(old, d *DroppedObject) {
	if len(d.Pending) > 0 {
		b.putDropped(old, d)
		return
	}
	if d.Pending = nil; d.Bucket.Set {
		b.deleteDropped(old)
		return
	}
	b.putDropped(old, d)
}

// maxDeletionTries is upstream's bound for one replica.
const maxDeletionTries = 5

// bucket names the bucket of a record that has one.
func (d *DroppedObject) bucket() BucketRef {
	return BucketRef{Table: d.Table, Partition: d.Partition, Bucket: d.Bucket.V}
}

// Key returns bytes that order as Compare does. The keys of one table, and those
// of one partition, share a prefix.
func (r BucketRef) Key() string {
	k := objectKey(r.Table, r.Partition)
	return string(binary.BigEndian.AppendUint32(k, uint32(r.Bucket)))
}

func objectKey(t TableID, p Opt[PartitionID]) []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 21), uint64(t))
	if !p.Set {
		return append(k, 0)
	}
	return binary.BigEndian.AppendUint64(append(k, 1), uint64(p.V))
}

// tablePrefix begins the key of every bucket of a table and its partitions.
func tablePrefix(t TableID) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(t)))
}

// movedAway notes that servers have to delete their replica of a bucket.
func (b *Batch) movedAway(ref BucketRef, ids []ServerID) {
	if len(ids) == 0 {
		return
	}
	old, _ := b.s.droppedBuckets.get(ref.Key())
	holders := make(map[ServerID]bool, len(ids))
	for _, id := range ids {
		holders[id] = true
	}
	var d DroppedObject
	if old != nil {
		d = *old
		for _, p := range old.Pending {
			delete(holders, p.Server)
		}
	} else {
		d = b.movedRecord(ref)
	}
	d.Pending = append(pendingOf(holders), d.Pending...)
	slices.SortFunc(d.Pending, func(a, b PendingDeletion) int { return int(a.Server) - int(b.Server) })
	d.Dropped, d.Revision = b.s.cluster.Wall, b.rev
	b.putDropped(old, &d)
}

func (b *Batch) movedRecord(ref BucketRef) DroppedObject {
	t, _ := b.s.tableIDs.get(ref.Table)
	d := DroppedObject{Table: t.ID, Partition: ref.Partition, Bucket: Some(ref.Bucket), Path: t.Path, Buckets: t.Buckets, Epoch: t.Epoch}
	if ref.Partition.Set {
		p, _ := b.s.partIDs.get(ref.Partition.V)
		d.Name, d.Epoch = p.Name, p.Epoch
		d.Buckets, _ = EffectiveCount(t, p) //nolint:errcheck // it is placed, so that it has a count
	}
	return d
}

// regained takes servers off the list of those that delete their replica: they
// get one again.
func (b *Batch) regained(ref BucketRef, ids []ServerID) {
	old, ok := b.s.droppedBuckets.get(ref.Key())
	if !ok {
		return
	}
	b.dropPending(old, func(id ServerID) bool { return slices.Contains(ids, id) })
}

// dropPending takes servers off a record's list.
func (b *Batch) dropPending(old *DroppedObject, gone func(ServerID) bool) {
	n := *old
	n.Pending = slices.DeleteFunc(slices.Clone(old.Pending), func(p PendingDeletion) bool { return gone(p.Server) })
	if len(n.Pending) == len(old.Pending) {
		return
	}
	n.Revision = b.rev
	b.putPending(old, &n)
}

// movedRecords are the records of a table's buckets, or of a partition's.
func (s *State) movedRecords(prefix string) (out []*DroppedObject) {
	s.droppedBuckets.ascend(prefix, func(k string, d *DroppedObject) bool {
		if strings.HasPrefix(k, prefix) {
			out = append(out, d)
			return true
		}
		return false
	})
	return out
}

// absorb takes over what the records of single buckets say when the whole object
// is dropped, and deletes them.
func (b *Batch) absorb(holders map[ServerID]bool, prefix string) {
	for _, d := range b.s.movedRecords(prefix) {
		for _, p := range d.Pending {
			holders[p.Server] = true
		}
		b.deleteDropped(d)
	}
}

// serverForgotten takes a server whose record is deleted off the records of
// buckets: nobody is left to delete anything.
func (b *Batch) serverForgotten(id ServerID) {
	for _, d := range b.s.movedRecords("") {
		b.dropPending(d, func(s ServerID) bool { return s == id })
	}
}
