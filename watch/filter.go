package watch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/catalog"
)

// Filter says which changes a subscription gets. The zero Filter lets
// everything through.
//
// If any of Databases, Tables and TableIDs is given, a change must match at
// least one of them; rows that belong to no database (cluster, servers,
// members, keys, counters, clients, rebalances, imports) then never match. If
// Kinds is given, the row must also be of one of them.
type Filter struct {
	// Databases match the database's own row, its tables, their partitions and
	// the records of dropped ones.
	Databases []string
	// Tables are paths, "database.table". They match every table that was created
	// at the path, with its partitions and dropped records, also an earlier one
	// that is still being purged.
	Tables []string
	// TableIDs match one table exactly, never another one re-created at its path.
	TableIDs []catalog.TableID
	// Kinds of rows.
	Kinds []catalog.ObjectKind
}

// filter is a Filter ready to match, immutable.
type filter struct {
	databases, tables []string // sorted
	ids               []catalog.TableID
	kinds             uint32 // bit per kind; 0: all
	scoped            bool
}

// compile copies f; an unknown kind or an empty name is refused.
func (f Filter) compile() (filter, error) {
	out := filter{databases: slices.Clone(f.Databases), tables: slices.Clone(f.Tables), ids: slices.Clone(f.TableIDs)}
	for _, k := range f.Kinds {
		if k < catalog.ObjectCluster || k > catalog.ObjectClient {
			return filter{}, invalid("filter: unknown object kind %d", k)
		}
		out.kinds |= 1 << k
	}
	for _, d := range f.Databases {
		if d == "" || strings.Contains(d, ".") {
			return filter{}, invalid("filter: %q is not the name of a database", d)
		}
	}
	for _, t := range f.Tables {
		if databaseOf(t) == "" {
			return filter{}, invalid("filter: %q is not the path of a table", t)
		}
	}
	slices.Sort(out.databases)
	slices.Sort(out.tables)
	slices.Sort(out.ids)
	out.scoped = len(out.databases)+len(out.tables)+len(out.ids) > 0
	return out, nil
}

func invalid(format string, args ...any) error {
	return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// all reports whether everything passes.
func (f *filter) all() bool { return !f.scoped && f.kinds == 0 }

// match reports whether a change of r's event passes.
func (f *filter) match(r *record, c catalog.Change) bool {
	o := c.After
	if o == nil {
		o = c.Before
	}
	if f.kinds != 0 && f.kinds&(1<<o.Object()) == 0 {
		return false
	}
	if !f.scoped {
		return true
	}
	switch row := o.(type) {
	case *catalog.Database:
		return contains(f.databases, row.Name)
	case *catalog.Table:
		return f.matchTable(row.ID, row.Path)
	case *catalog.Partition:
		return f.matchTable(row.Table, r.path(row.Table))
	case *catalog.DroppedObject:
		return f.matchTable(row.Table, row.Path)
	default:
		return false
	}
}

func (f *filter) matchTable(id catalog.TableID, path string) bool {
	if _, ok := slices.BinarySearch(f.ids, id); ok {
		return true
	}
	return contains(f.tables, path) || len(f.databases) > 0 && contains(f.databases, databaseOf(path))
}

func contains(sorted []string, s string) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}

// databaseOf returns the first part of a table's path, or "".
func databaseOf(path string) string {
	db, table, ok := strings.Cut(path, ".")
	if !ok || table == "" {
		return ""
	}
	return db
}
