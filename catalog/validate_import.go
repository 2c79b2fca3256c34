package catalog

import "slices"

// maxImportedColumn bounds the column counter of an imported table.
const maxImportedColumn = 1 << 30

// newImportedTable validates a table row of an export by the rules of a
// creation and returns a copy that shares nothing with the command. Ids, times
// and the import's mark are left to the caller.
func newImportedTable(t *Table, limits Limits) (*Table, *Error) {
	n := &Table{
		Path: t.Path, Comment: t.Comment, NextColumn: t.NextColumn, Buckets: t.Buckets, Epoch: t.Epoch, LegacyCount: t.LegacyCount,
		PrimaryKey: slices.Clone(t.PrimaryKey), PartitionKeys: slices.Clone(t.PartitionKeys), BucketKeys: slices.Clone(t.BucketKeys),
	}
	if err := checkText("comment", t.Comment, maxComment); err != nil {
		return nil, err
	}
	var err *Error
	if n.Schemas, err = importedSchemas(t); err != nil {
		return nil, err
	}
	if err := resolveKeys(n); err != nil {
		return nil, err
	}
	if err := checkVersions(n); err != nil {
		return nil, err
	}
	if n.Properties, err = sortedProperties("properties", t.Properties); err != nil {
		return nil, err
	}
	if n.CustomProperties, err = sortedProperties("custom properties", t.CustomProperties); err != nil {
		return nil, err
	}
	// The row is complete: defaults of a creation would undo what was reset at the
	// source.
	if _, ok := PropertyValue(n.Properties, PropReplication); !ok {
		n.Properties = setProperty(n.Properties, Property{PropReplication, "1"})
	}
	if err := checkLayout(t, limits); err != nil {
		return nil, err
	}
	return n, validateTable(n, limits)
}

func importedSchemas(t *Table) ([]Schema, *Error) {
	if len(t.Schemas) == 0 {
		return nil, refuse(ErrInvalidTable, "imported table %s has no schema", t.Path)
	}
	out := make([]Schema, 0, len(t.Schemas))
	for i, s := range t.Schemas {
		if int(s.ID) != i+1 {
			return nil, refuse(ErrInvalidTable, "imported table %s: schema %d has id %d", t.Path, i+1, s.ID)
		}
		add := make([]NewColumn, len(s.Columns))
		for j, c := range s.Columns {
			if c.ID >= t.NextColumn || j > 0 && c.ID <= s.Columns[j-1].ID {
				return nil, refuse(ErrInvalidTable, "imported table %s: column %s has id %d, want rising ids below %d", t.Path, c.Name, c.ID, t.NextColumn)
			}
			add[j] = NewColumn{Name: c.Name, Type: c.Type, Comment: c.Comment}
		}
		columns, err := newColumns(nil, 0, add)
		if err != nil {
			return nil, err
		}
		for j := range columns {
			columns[j].ID = s.Columns[j].ID
		}
		out = append(out, Schema{ID: s.ID, Columns: columns})
	}
	return out, nil
}

// checkVersions wants each schema version to begin with the columns of the one
// before, so that the keys are in every version, and makes key columns NOT NULL
// in all of them.
func checkVersions(t *Table) *Error {
	for i := 1; i < len(t.Schemas); i++ {
		was, is := t.Schemas[i-1].Columns, t.Schemas[i].Columns
		for j, c := range was {
			if j < len(is) && slices.Contains(t.PrimaryKey, c.Name) {
				is[j].Type = is[j].Type.NotNull()
			}
			if j >= len(is) || is[j].ID != c.ID || is[j].Name != c.Name || is[j].Type != c.Type {
				return refuse(ErrInvalidTable, "imported table %s: schema %d does not keep column %s %s with id %d", t.Path, t.Schemas[i].ID, c.Name, c.Type, c.ID)
			}
		}
	}
	return nil
}

// tableDifference names the first field in which an existing table differs from
// what an import would make of its row; "" if there is none. Revisions, wall
// time, placement and the import's mark are not compared.
func tableDifference(have, row *Table) string {
	same := func(a, b Schema) bool { return a.ID == b.ID && slices.Equal(a.Columns, b.Columns) }
	entry := func(a, b LayoutEntry) bool { return a.Epoch == b.Epoch && a.Buckets == b.Buckets && a.Wall == b.Wall }
	for _, f := range []struct {
		name string
		same bool
	}{
		{"id", have.ID == row.ID},
		{"bucket count", have.Buckets == row.Buckets},
		{"layout epoch", have.Epoch == row.Epoch},
		{"legacy count", have.LegacyCount == row.LegacyCount},
		{"layout history", slices.EqualFunc(have.History, row.History, entry)},
		{"columns", slices.EqualFunc(have.Schemas, row.Schemas, same) && have.NextColumn == row.NextColumn},
		{"primary key", slices.Equal(have.PrimaryKey, row.PrimaryKey)},
		{"partition keys", slices.Equal(have.PartitionKeys, row.PartitionKeys)},
		{"bucket keys", slices.Equal(have.BucketKeys, row.BucketKeys)},
		{"properties", slices.Equal(have.Properties, row.Properties)},
		{"custom properties", slices.Equal(have.CustomProperties, row.CustomProperties)},
		{"comment", have.Comment == row.Comment},
		{"creation time", have.Created == row.Created},
	} {
		if !f.same {
			return f.name
		}
	}
	return ""
}

// checkLayout wants a history of rising epochs that ends at the current layout,
// and a legacy count only after epoch 0.
func checkLayout(t *Table, limits Limits) *Error {
	if t.Epoch > maxImportedID || t.NextColumn > maxImportedColumn {
		return refuse(ErrInvalidTable, "imported table %s: layout epoch %d or column counter %d is above %d and %d",
			t.Path, t.Epoch, t.NextColumn, uint64(maxImportedID), maxImportedColumn)
	}
	if !t.Partitioned() && t.Epoch != 0 {
		return refuse(ErrInvalidTable, "imported table %s is not partitioned and is at layout epoch %d, want 0", t.Path, t.Epoch)
	}
	if t.LegacyCount.Set && t.LegacyCount.V > 0 && uint32(t.LegacyCount.V) > limits.Buckets {
		return tooManyBuckets(t.LegacyCount.V, limits)
	}
	if len(t.History) == 0 {
		return refuse(ErrInvalidTable, "imported table %s has no layout history", t.Path)
	}
	for i, e := range t.History {
		if e.Buckets < 1 || i > 0 && e.Epoch <= t.History[i-1].Epoch {
			return refuse(ErrInvalidTable, "imported table %s: layout history entry %d has epoch %d and %d buckets", t.Path, i, e.Epoch, e.Buckets)
		}
	}
	if last := t.History[len(t.History)-1]; last.Epoch != t.Epoch || last.Buckets != t.Buckets {
		return refuse(ErrInvalidTable, "imported table %s: layout history ends at epoch %d with %d buckets, the table is at %d with %d",
			t.Path, last.Epoch, last.Buckets, t.Epoch, t.Buckets)
	}
	if t.LegacyCount.Set && (t.Epoch == 0 || t.LegacyCount.V < 1) {
		return refuse(ErrInvalidTable, "imported table %s has legacy count %d at layout epoch %d", t.Path, t.LegacyCount.V, t.Epoch)
	}
	return nil
}
