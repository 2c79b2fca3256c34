package catalog

import "slices"

// findTable resolves a path with an optional id. A table with another id is as
// good as none.
func (b *Batch) findTable(path string, id Opt[TableID]) (*Table, *Error) {
	t, ok := b.s.tables.get(path)
	if !ok {
		if _, _, err := splitPath(path); err != nil {
			return nil, err
		}
		return nil, refuse(ErrTableNotExist, "table %s does not exist", path)
	}
	if id.Set && id.V != t.ID {
		return nil, refuse(ErrTableNotExist, "table %s with id %d does not exist; the current id is %d", path, id.V, t.ID)
	}
	return t, nil
}

func mutable(t *Table) *Error {
	if t.Importing() {
		return refuse(ErrTableImporting, "table %s is being imported", t.Path)
	}
	return nil
}

// mutablePartitioned refuses tables that are not partitioned or are importing.
func (b *Batch) mutablePartitioned(t *Table) *Error {
	if !t.Partitioned() {
		return refuse(ErrTableNotPartitioned, "table %s is not partitioned", t.Path)
	}
	return mutable(t)
}

func (b *Batch) createTable(c CreateTable) (Result, *Error) {
	database, _, err := splitPath(c.Table)
	if err != nil {
		return Result{}, err
	}
	if !b.s.databases.has(database) {
		return Result{}, refuse(ErrDatabaseNotExist, "database %s does not exist", database)
	}
	if t, ok := b.s.tables.get(c.Table); ok {
		if c.IfNotExists {
			return Result{IDs: []IDRange{{uint64(t.ID), 1}}, Count: t.Buckets, Epoch: uint64(t.Epoch)}, nil
		}
		return Result{}, exists(ErrTableAlreadyExist, uint64(t.ID), "table %s already exists with id %d", c.Table, t.ID)
	}
	limits := b.s.Limits(database)
	t, err := newTable(c, limits)
	if err != nil {
		return Result{}, err
	}
	cl := &b.s.cluster
	t.ID = cl.NextTable
	t.Created, t.Wall, t.CreatedAt, t.Revision = cl.Wall, cl.Wall, b.rev, b.rev
	t.History = []LayoutEntry{{Epoch: 0, Buckets: t.Buckets, Revision: b.rev, Wall: cl.Wall}}
	if !t.Partitioned() {
		p := b.placer(limits)
		if t.Placement, err = p.place(new(Placement), uint64(t.ID), t, t.Buckets); err != nil {
			return Result{}, err
		}
	}
	cl.NextTable++
	b.putTable(nil, t)
	return Result{Changed: true, IDs: []IDRange{{uint64(t.ID), 1}}, Count: t.Buckets}, nil
}

func (b *Batch) alterTable(c AlterTable) (Result, *Error) {
	t, err := b.findTable(c.Table, c.TableID)
	if err != nil {
		if c.IfExists && err.Code == ErrTableNotExist {
			return Result{}, nil
		}
		return Result{}, err
	}
	if err := mutable(t); err != nil {
		return Result{}, err
	}
	if c.ExpectedRevision.Set && c.ExpectedRevision.V != t.Revision {
		return Result{}, conflict(uint64(t.Revision), "table %s is at revision %d, expected %d", c.Table, t.Revision, c.ExpectedRevision.V)
	}
	if len(c.AddColumns) > 0 && len(c.Set)+len(c.Reset) > 0 {
		return Result{}, refuse(ErrInvalidAlterTable, "table %s: columns and properties cannot be altered in one request", c.Table)
	}
	n := *t
	if err := n.addColumns(c.AddColumns); err != nil {
		return Result{}, err
	}
	if err := n.alterProperties(c.Set, c.Reset); err != nil {
		return Result{}, err
	}
	n.Comment = c.Comment.Or(t.Comment)
	if err := checkText("comment", n.Comment, maxComment); err != nil {
		return Result{}, err
	}
	if len(c.AddColumns) == 0 && n.Comment == t.Comment && slices.Equal(n.Properties, t.Properties) &&
		slices.Equal(n.CustomProperties, t.CustomProperties) {
		return Result{}, nil
	}
	limits := b.s.Limits(t.Database())
	// The count is not what is altered: a limit lowered since must not freeze
	// the table.
	limits.Buckets = max(limits.Buckets, uint32(t.Buckets))
	if err := validateTable(&n, limits); err != nil {
		return Result{}, err
	}
	n.Revision, n.Wall = b.rev, b.s.cluster.Wall
	b.putTable(t, &n)
	return Result{Changed: true, IDs: []IDRange{{uint64(n.ID), 1}}, Count: n.Buckets, Epoch: uint64(n.Epoch)}, nil
}

// addColumns makes the next schema version.
func (t *Table) addColumns(add []NewColumn) *Error {
	if len(add) == 0 {
		return nil
	}
	for _, c := range add {
		if columnIndex(t.Schema().Columns, c.Name) >= 0 {
			return refuse(ErrInvalidAlterTable, "column %s already exists in table %s", c.Name, t.Path)
		}
		if typ, err := ParseDataType(string(c.Type)); err == nil && !typ.Nullable() {
			return refuse(ErrInvalidAlterTable, "column %s: an added column must be nullable, but is %s", c.Name, typ)
		}
	}
	columns, err := newColumns(t.Schema().Columns, t.NextColumn, add)
	if err != nil {
		return err
	}
	next := t.Schema().ID + 1
	t.Schemas = append(slices.Clip(slices.Clone(t.Schemas)), Schema{ID: next, Columns: columns})
	t.NextColumn += ColumnID(len(add))
	return nil
}

// alterProperties routes each key to the table's or the custom properties.
func (t *Table) alterProperties(set []Property, reset []string) *Error {
	var own, custom []Property
	var ownReset, customReset []string
	for _, p := range set {
		if isTableProperty(p.Key) {
			own = append(own, p)
		} else {
			custom = append(custom, p)
		}
	}
	for _, k := range reset {
		if isTableProperty(k) {
			ownReset = append(ownReset, k)
		} else {
			customReset = append(customReset, k)
		}
	}
	props, err := alterProperties(t.Properties, own, ownReset)
	if err != nil {
		return err
	}
	for _, p := range own {
		if err := t.alterable(p.Key, props); err != nil {
			return err
		}
	}
	for _, k := range ownReset {
		if err := t.alterable(k, props); err != nil {
			return err
		}
	}
	t.Properties = props
	t.CustomProperties, err = alterProperties(t.CustomProperties, custom, customReset)
	return err
}

// alterable refuses to change a property that is fixed at creation.
func (t *Table) alterable(key string, after []Property) *Error {
	was, had := PropertyValue(t.Properties, key)
	is, has := PropertyValue(after, key)
	if had == has && was == is {
		return nil
	}
	rule, known := propertyRules[key]
	if !known {
		return refuse(ErrInvalidConfig, "'%s' is not a table property", key)
	}
	if !rule.alterable {
		return refuse(ErrInvalidAlterTable, "property '%s' of table %s cannot be altered", key, t.Path)
	}
	return nil
}

func isTableProperty(key string) bool {
	return len(key) >= len(tablePropertyPrefix) && key[:len(tablePropertyPrefix)] == tablePropertyPrefix
}

func (b *Batch) rescaleTable(c RescaleTable) (Result, *Error) {
	t, err := b.findTable(c.Table, c.TableID)
	if err != nil {
		return Result{}, err
	}
	if c.ExpectedEpoch.Set && c.ExpectedEpoch.V != t.Epoch {
		return Result{}, conflict(uint64(t.Epoch), "table %s is at layout epoch %d, expected %d", t.Path, t.Epoch, c.ExpectedEpoch.V)
	}
	if err := b.rescalable(t, c); err != nil {
		return Result{}, err
	}
	r := Result{IDs: []IDRange{{uint64(t.ID), 1}}, Count: c.Buckets, Epoch: uint64(t.Epoch)}
	if c.Buckets == t.Buckets {
		return r, nil
	}
	n := *t
	if t.Epoch == 0 && !t.LegacyCount.Set {
		n.LegacyCount = Some(t.Buckets)
	}
	n.Epoch++
	n.Buckets, n.Revision, n.Wall = c.Buckets, b.rev, b.s.cluster.Wall
	n.History = b.appendHistory(t, LayoutEntry{Epoch: n.Epoch, Buckets: n.Buckets, Revision: b.rev, Wall: n.Wall})
	b.putTable(t, &n)
	r.Epoch, r.Changed = uint64(n.Epoch), true
	return r, nil
}

// rescalable refuses what can never be rescaled, or not to this count.
func (b *Batch) rescalable(t *Table, c RescaleTable) *Error {
	if err := b.mutablePartitioned(t); err != nil {
		return err
	}
	if c.Buckets < 1 {
		return refuse(ErrInvalidAlterTable, "bucket count %d is below 1", c.Buckets)
	}
	if limits := b.s.Limits(t.Database()); uint32(c.Buckets) > limits.Buckets {
		return tooManyBuckets(c.Buckets, limits)
	}
	switch format := t.LakeFormat(); format {
	case "iceberg", "hudi", "lance":
		return refuse(ErrInvalidAlterTable, "table %s has lake format %s, which cannot be rescaled", t.Path, format)
	case "paimon":
		if t.LakeEnabled() && !c.Propagated && c.Buckets != t.Buckets {
			return refuse(ErrInvalidAlterTable, "table %s is tiered to paimon: the lake table must be told first (propagated is false)", t.Path)
		}
	}
	return nil
}

// appendHistory returns the history with one more entry. Beyond MaxHistory,
// epochs that no partition was created at are dropped.
func (b *Batch) appendHistory(t *Table, e LayoutEntry) []LayoutEntry {
	h := make([]LayoutEntry, 0, len(t.History)+1)
	if len(t.History) < MaxHistory {
		return append(append(h, t.History...), e)
	}
	set, _ := b.s.parts.get(t.ID)
	for _, old := range t.History {
		if set != nil && set.perEpoch.has(old.Epoch) {
			h = append(h, old)
		}
	}
	return append(h, e)
}
