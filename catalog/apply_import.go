package catalog

import "slices"

// MaxImportRows bounds the rows of one ImportBatch.
const MaxImportRows = 65_536

// maxImportedID bounds ids, epochs and versions of imported rows, so that the
// counters that go on from them never overflow.
const maxImportedID = 1 << 62

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
			if have.Comment != d.Comment || !slices.Equal(have.Properties, d.Properties) || have.Limits != d.Limits || have.Created != d.Created {
				return refuse(ErrDatabaseAlreadyExist, "database %s already exists and differs from the import", d.Name)
			}
			continue
		}
		if err := checkText("comment", d.Comment, maxComment); err != nil {
			return err
		}
		if err := checkLimits(d.Limits); err != nil {
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
	if err := im.freeTableID(&t); err != nil {
		return err
	}
	n, err := im.checkTable(&t, im.b.s.Limits(database))
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

// freeTableID refuses an id that was given out here before: what was routed by
// it must never be taken for the imported table.
func (im *importer) freeTableID(t *Table) *Error {
	if t.ID > maxImportedID {
		return refuseLimit(ErrTooLarge, maxImportedID, uint64(t.ID), "id %d of imported table %s is above %d", t.ID, t.Path, uint64(maxImportedID))
	}
	if other, ok := im.b.s.tableIDs.get(t.ID); ok {
		return refuse(ErrTableAlreadyExist, "id %d of imported table %s belongs to table %s", t.ID, t.Path, other.Path)
	}
	if d, ok := im.b.s.droppedTables.get(t.ID); ok {
		return refuse(ErrTableAlreadyExist, "id %d of imported table %s belonged to table %s, which was dropped at revision %d", t.ID, t.Path, d.Path, d.Revision)
	}
	if t.ID < im.row.BaseTable {
		return refuse(ErrTableAlreadyExist, "id %d of imported table %s was used here before the import", t.ID, t.Path)
	}
	return nil
}

// checkTable rebuilds an imported row through the rules of a creation.
func (im *importer) checkTable(t *Table, limits Limits) (*Table, *Error) {
	n, err := newImportedTable(t, limits)
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

// sameTable accepts a table that an earlier run of this import made and that is
// still as the import would make it, apart from revisions and placement.
func (im *importer) sameTable(have, t *Table, finished bool) *Error {
	n, err := im.checkTable(t, MaxLimits)
	if err != nil {
		return err
	}
	if field := tableDifference(have, n); field != "" {
		return exists(ErrTableAlreadyExist, uint64(have.ID), "table %s already exists with id %d and differs from the import in its %s", t.Path, have.ID, field)
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
	n.Import, n.Revision = ImportID{}, im.b.rev // Wall stays the source's
	im.b.putTable(cur, &n)
	im.row.Tables = slices.DeleteFunc(im.row.Tables, func(id TableID) bool { return id == t.ID })
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
	if im.c.Skip > maxImportedID {
		return refuseLimit(ErrTooLarge, maxImportedID, im.c.Skip, "%d rows to skip are above %d", im.c.Skip, uint64(maxImportedID))
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
