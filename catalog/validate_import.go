package catalog

import "slices"

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
	if n.Properties, err = sortedProperties("properties", t.Properties); err != nil {
		return nil, err
	}
	if n.CustomProperties, err = sortedProperties("custom properties", t.CustomProperties); err != nil {
		return nil, err
	}
	fillDefaults(n)
	if err := checkLayout(t); err != nil {
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

// checkLayout wants a history of rising epochs that ends at the current layout,
// and a legacy count only after epoch 0.
func checkLayout(t *Table) *Error {
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
