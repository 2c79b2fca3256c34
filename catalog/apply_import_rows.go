package catalog

import "bytes"

func (im *importer) partitions() *Error {
	for i := range im.c.Partitions {
		if err := im.partition(&im.c.Partitions[i]); err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) partition(r *ImportPartition) *Error {
	t, ok := im.b.s.tableIDs.get(r.Table)
	if !ok || t.Dropped {
		return refuse(ErrTableNotExist, "table id %d of imported partition '%s' does not exist", r.Table, r.Name)
	}
	if have, ok := im.b.s.Partition(t.ID, r.Name); ok {
		if have.ID != r.ID || have.Buckets != r.Buckets || have.Legacy != r.Legacy || have.Epoch != r.Epoch || have.Created != r.Created {
			return refuse(ErrPartitionAlreadyExists, "partition '%s' of table %s already exists with id %d and differs from the import", r.Name, t.Path, have.ID)
		}
		return nil
	}
	if t.Import != im.c.Import {
		return refuse(ErrInvalidTable, "partition '%s' is imported into table %s, which this import did not create", r.Name, t.Path)
	}
	if err := im.checkPartition(t, r); err != nil {
		return err
	}
	p := &Partition{
		ID: r.ID, Table: r.Table, Name: r.Name, Buckets: r.Buckets, Legacy: r.Legacy, Imported: true,
		Epoch: r.Epoch, Created: r.Created,
		CreatedAt: im.b.rev, Revision: im.b.rev,
	}
	im.b.putPartition(nil, p)
	im.b.s.cluster.NextPartition = max(im.b.s.cluster.NextPartition, p.ID+1)
	return nil
}

func (im *importer) checkPartition(t *Table, r *ImportPartition) *Error {
	if !t.Partitioned() {
		return refuse(ErrTableNotPartitioned, "partition '%s' is imported into table %s, which is not partitioned", r.Name, t.Path)
	}
	spec := t.Spec(&Partition{Name: r.Name})
	if name, err := partitionName(t, spec, false); err != nil || name != r.Name {
		return refuse(ErrPartitionSpecInvalid, "name '%s' of an imported partition is not valid for table %s", r.Name, t.Path)
	}
	if other, ok := im.b.s.partIDs.get(r.ID); ok {
		return refuse(ErrPartitionAlreadyExists, "id %d of imported partition '%s' belongs to partition '%s'", r.ID, r.Name, other.Name)
	}
	if r.ID > maxImportedID {
		return refuseLimit(ErrTooLarge, maxImportedID, uint64(r.ID), "id %d of imported partition '%s' is above %d", r.ID, r.Name, uint64(maxImportedID))
	}
	if d, ok := im.b.s.droppedParts.get(r.ID); ok {
		return refuse(ErrPartitionAlreadyExists, "id %d of imported partition '%s' belonged to partition '%s', which was dropped at revision %d", r.ID, r.Name, d.Name, d.Revision)
	}
	if r.ID < im.row.BasePartition {
		return refuse(ErrPartitionAlreadyExists, "id %d of imported partition '%s' was used here before the import", r.ID, r.Name)
	}
	limits := im.b.s.Limits(t.Database())
	if n := im.b.s.PartitionCount(t.ID) + 1; uint64(n) > uint64(limits.Partitions) {
		return refuseLimit(ErrPartitionMaxNum, uint64(limits.Partitions), uint64(n),
			"Exceed the maximum number of partitions for table %s, only allow %d partitions.", t.Path, limits.Partitions)
	}
	switch {
	case r.Legacy && r.Buckets != 0:
		return refuse(ErrInvalidTable, "legacy partition '%s' has bucket count %d, want none", r.Name, r.Buckets)
	case r.Legacy && t.Epoch > 0 && !t.LegacyCount.Set:
		return refuse(ErrStaleMetadata, "legacy partition '%s' of table %s at layout epoch %d, whose row has no legacy count", r.Name, t.Path, t.Epoch)
	case r.Legacy:
		return nil
	case r.Buckets < 1:
		return refuse(ErrStaleMetadata, "partition '%s' has neither a bucket count nor the legacy mark", r.Name)
	case uint32(r.Buckets) > limits.Buckets:
		return tooManyBuckets(r.Buckets, limits)
	case r.Epoch > t.Epoch:
		return refuse(ErrInvalidTable, "partition '%s' has layout epoch %d, table %s is at %d", r.Name, r.Epoch, t.Path, t.Epoch)
	}
	return nil
}

func (im *importer) keyValues() *Error {
	for _, r := range im.c.KeyValues {
		if err := checkKey(r.Key); err != nil {
			return err
		}
		if err := checkValue(r.Value); err != nil {
			return err
		}
		if r.Version < 1 || r.Version > maxImportedID {
			return refuse(ErrInvalidArgument, "version %d of imported key %q is not in 1..%d", r.Version, r.Key, uint64(maxImportedID))
		}
		if have, ok := im.b.s.kv.get(r.Key); ok {
			if have.Version != r.Version || !bytes.Equal(have.Value, r.Value) {
				return conflict(have.Version, "key %q already exists and differs from the import", r.Key)
			}
			continue
		}
		im.b.putKeyValue(nil, &KeyValue{
			Key: r.Key, Value: r.Value, Version: r.Version, CreatedAt: im.b.rev, Revision: im.b.rev, Wall: im.b.s.cluster.Wall,
		})
	}
	return nil
}

func (im *importer) idCounters() *Error {
	for _, r := range im.c.IDCounters {
		if r.Name == "" || r.Next > 1<<63-1 {
			return refuse(ErrInvalidArgument, "imported counter %q with next id %d is invalid", r.Name, r.Next)
		}
		if err := checkText("counter name", r.Name, maxNameBytes); err != nil {
			return err
		}
		old, ok := im.b.s.counters.get(r.Name)
		if ok && old.Next >= r.Next {
			continue
		}
		im.b.putCounter(old, &Counter{Name: r.Name, Next: r.Next, Revision: im.b.rev})
	}
	return nil
}

// counters raises the id counters to the source's.
func (im *importer) counters() *Error {
	if !im.c.Counters.Set {
		return nil
	}
	const highest = maxImportedID
	v, cl := im.c.Counters.V, &im.b.s.cluster
	if v.NextTable > highest || v.NextPartition > highest {
		return refuseLimit(ErrTooLarge, highest, max(uint64(v.NextTable), uint64(v.NextPartition)), "imported id counters are above %d", uint64(highest))
	}
	before := im.b.clusterRow()
	cl.NextTable = max(cl.NextTable, v.NextTable)
	cl.NextPartition = max(cl.NextPartition, v.NextPartition)
	if *before != *cl {
		im.b.change(before, im.b.clusterRow())
	}
	return nil
}
