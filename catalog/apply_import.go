package catalog

import (
	"bytes"
	"slices"
)

// MaxImportRows bounds the rows of one ImportBatch.
const MaxImportRows = 65_536

// importBatch takes the rows of one batch, all or none. The rows are checked in
// a trial on a copy of the batch: a refusal throws the copy away.
func (b *Batch) importBatch(c ImportBatch) (Result, *Error) {
	rows := len(c.Databases) + len(c.Tables) + len(c.Partitions) + len(c.KeyValues) + len(c.IDCounters)
	if rows > MaxImportRows {
		return Result{}, refuseLimit(ErrTooLarge, MaxImportRows, uint64(rows), "%d rows in one import batch are above %d", rows, MaxImportRows)
	}
	if c.Import == (ImportID{}) {
		return Result{}, refuse(ErrInvalidArgument, "import id is empty")
	}
	trial := &Batch{s: b.s, rev: b.rev}
	trial.s.gen++
	im := importer{b: trial, c: c}
	if err := im.run(); err != nil {
		return Result{}, err
	}
	b.s = trial.s
	b.orderKnown = false
	b.changes = append(b.changes, trial.changes...)
	return Result{Changed: len(trial.changes) > 0}, nil
}

type importer struct {
	b   *Batch
	c   ImportBatch
	row *Import // the record of this import
	old *Import
}

func (im *importer) run() *Error {
	im.old, _ = im.b.s.imports.get(im.c.Import.String())
	im.row = &Import{ID: im.c.Import, BaseTable: im.b.s.cluster.NextTable, BasePartition: im.b.s.cluster.NextPartition}
	if im.old != nil {
		*im.row = *im.old
		im.row.Tables = slices.Clone(im.old.Tables)
	}
	steps := []func() *Error{im.databases, im.tables, im.partitions, im.keyValues, im.idCounters, im.counters}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return im.finish()
}

func (im *importer) databases() *Error {
	for i := range im.c.Databases {
		d := im.c.Databases[i]
		if err := checkDatabaseName(d.Name); err != nil {
			return err
		}
		props, err := sortedProperties("properties", d.Properties)
		if err != nil {
			return err
		}
		d.Properties = props
		if have, ok := im.b.s.databases.get(d.Name); ok {
			if have.Comment != d.Comment || !slices.Equal(have.Properties, d.Properties) {
				return refuse(ErrDatabaseAlreadyExist, "database %s already exists and differs from the import", d.Name)
			}
			continue
		}
		if err := checkText("comment", d.Comment, maxComment); err != nil {
			return err
		}
		d.CreatedAt, d.Revision, d.hash = im.b.rev, im.b.rev, 0
		im.b.putDatabase(nil, &d)
	}
	return nil
}

func (im *importer) tables() *Error {
	for i := range im.c.Tables {
		if err := im.table(im.c.Tables[i]); err != nil {
			return err
		}
	}
	return nil
}

// table creates an imported table, or skips one that is there already.
func (im *importer) table(row ImportTable) *Error {
	t := row.Table
	database, _, err := splitPath(t.Path)
	if err != nil {
		return err
	}
	if !im.b.s.databases.has(database) {
		return refuse(ErrDatabaseNotExist, "database %s of imported table %s does not exist", database, t.Path)
	}
	if have, ok := im.b.s.tables.get(t.Path); ok {
		return im.sameTable(have, &t, row.Finished)
	}
	if other, ok := im.b.s.tableIDs.get(t.ID); ok {
		return refuse(ErrTableAlreadyExist, "id %d of imported table %s belongs to table %s", t.ID, t.Path, other.Path)
	}
	if t.ID < im.row.BaseTable {
		return refuse(ErrTableAlreadyExist, "id %d of imported table %s was used here before the import", t.ID, t.Path)
	}
	n, err := im.checkTable(&t)
	if err != nil {
		return err
	}
	im.b.putTable(nil, n)
	im.b.s.cluster.NextTable = max(im.b.s.cluster.NextTable, n.ID+1)
	im.row.Tables = append(im.row.Tables, n.ID)
	if row.Finished {
		return im.finishTable(n)
	}
	return nil
}

// checkTable rebuilds an imported row through the rules of a creation.
func (im *importer) checkTable(t *Table) (*Table, *Error) {
	n, err := newImportedTable(t, im.b.s.Limits(t.Database()))
	if err != nil {
		return nil, err
	}
	n.ID, n.Created, n.Wall = t.ID, t.Created, t.Wall
	n.CreatedAt, n.Revision, n.Import = im.b.rev, im.b.rev, im.c.Import
	n.History = slices.Clone(t.History)
	for i := range n.History {
		n.History[i].Revision = im.b.rev
	}
	return n, nil
}

// sameTable accepts a table that an earlier run of this import made.
func (im *importer) sameTable(have, t *Table, finished bool) *Error {
	if have.ID != t.ID || have.Buckets != t.Buckets || have.Epoch != t.Epoch || have.LegacyCount != t.LegacyCount ||
		!slices.Equal(have.PrimaryKey, t.PrimaryKey) || !slices.Equal(have.PartitionKeys, t.PartitionKeys) ||
		!slices.Equal(have.BucketKeys, t.BucketKeys) || len(have.Schemas) != len(t.Schemas) {
		return refuse(ErrTableAlreadyExist, "table %s already exists with id %d and differs from the import", t.Path, have.ID)
	}
	if finished && have.Import == im.c.Import {
		return im.finishTable(have)
	}
	return nil
}

// finishTable ends the import of one table: it becomes usable.
func (im *importer) finishTable(t *Table) *Error {
	cur, ok := im.b.s.tableIDs.get(t.ID)
	if !ok || !cur.Importing() {
		return nil
	}
	n := *cur
	n.Import, n.Revision = ImportID{}, im.b.rev
	im.b.putTable(cur, &n)
	im.row.Tables = slices.DeleteFunc(im.row.Tables, func(id TableID) bool { return id == t.ID })
	return nil
}

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
		if have.ID != r.ID || have.Buckets != r.Buckets || have.Legacy != r.Legacy || have.Epoch != r.Epoch {
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
	values := (&Partition{Name: r.Name})
	spec := t.Spec(values)
	if name, err := partitionName(t, spec, false); err != nil || name != r.Name {
		return refuse(ErrPartitionSpecInvalid, "name '%s' of an imported partition is not valid for table %s", r.Name, t.Path)
	}
	if other, ok := im.b.s.partIDs.get(r.ID); ok {
		return refuse(ErrPartitionAlreadyExists, "id %d of imported partition '%s' belongs to partition '%s'", r.ID, r.Name, other.Name)
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
		if r.Version < 1 {
			return refuse(ErrInvalidArgument, "version of imported key %q is 0", r.Key)
		}
		if have, ok := im.b.s.kv.get(r.Key); ok {
			if !bytes.Equal(have.Value, r.Value) {
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
	const highest = 1 << 62
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

// finish writes or ends the import's record.
func (im *importer) finish() *Error {
	n := len(im.c.Databases) + len(im.c.Tables) + len(im.c.Partitions) + len(im.c.KeyValues) + len(im.c.IDCounters)
	if im.c.Last {
		for _, id := range slices.Clone(im.row.Tables) {
			if t, ok := im.b.s.tableIDs.get(id); ok {
				if err := im.finishTable(t); err != nil {
					return err
				}
			}
		}
		if im.old != nil {
			im.b.deleteImport(im.old)
		}
		return nil
	}
	im.row.Rows = max(im.row.Rows, im.c.Skip+uint64(n))
	im.row.Revision = im.b.rev
	im.b.putImport(im.old, im.row)
	return nil
}

// leaveImport takes a table that is dropped out of its import's record.
func (b *Batch) leaveImport(t *Table) {
	old, ok := b.s.imports.get(t.Import.String())
	if !ok {
		return
	}
	n := *old
	n.Tables = slices.DeleteFunc(slices.Clone(old.Tables), func(id TableID) bool { return id == t.ID })
	b.putImport(old, &n)
}
