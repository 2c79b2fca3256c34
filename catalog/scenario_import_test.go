package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var importID = ImportID{Incarnation: Incarnation{Number: 7, Random: 9}, Revision: 42}

// exported is a table row as an export holds it.
func exported(id TableID, path string, buckets int32, edit ...func(*Table)) ImportTable {
	t := Table{
		ID: id, Path: path, NextColumn: 2, Buckets: buckets, Created: 5, Wall: 6,
		Schemas:    []Schema{{ID: 1, Columns: []Column{{ID: 0, Name: "a", Type: "INT NOT NULL"}, {ID: 1, Name: "dt", Type: "STRING NOT NULL"}}}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"},
		Properties: []Property{{PropReplication, "1"}},
		History:    []LayoutEntry{{Epoch: 0, Buckets: buckets, Revision: 3, Wall: 5}},
	}
	for _, f := range edit {
		f(&t)
	}
	return ImportTable{Table: t}
}

// rescaled moves an exported row to a later epoch.
func rescaled(buckets int32, legacy Opt[int32]) func(*Table) {
	return func(t *Table) {
		t.Epoch++
		t.Buckets, t.LegacyCount = buckets, legacy
		t.History = append(t.History, LayoutEntry{Epoch: t.Epoch, Buckets: buckets, Wall: 6})
	}
}

func legacyRow(table TableID, id PartitionID, name string) ImportPartition {
	return ImportPartition{Table: table, ID: id, Name: name, Legacy: true}
}

// importLegacy imports shop.orders with id 5 and legacy partitions from id 20.
func importLegacy(h *history, buckets int32, partitions ...string) {
	h.t.Helper()
	b := ImportBatch{Import: importID, Last: true, Databases: []Database{{Name: "shop"}}, Tables: []ImportTable{exported(5, "shop.orders", buckets)}}
	for i, n := range partitions {
		b.Partitions = append(b.Partitions, legacyRow(5, PartitionID(20+i), n))
	}
	h.must(b)
}

// TestImport_Batches: an import of several batches, with commands in between;
// its tables are readable and closed until the last one.
func TestImport_Batches(t *testing.T) {
	h := newHistory(t)
	first := ImportBatch{
		Import: importID, Counters: Some(ImportCounters{NextTable: 10, NextPartition: 100}),
		Databases: []Database{{Name: "shop", Comment: "c", Limits: Limits{Buckets: 64}, Created: 4}},
		Tables:    []ImportTable{exported(5, "shop.orders", 4), exported(6, "shop.clicks", 2)},
	}
	second := ImportBatch{Import: importID, Skip: 3, Partitions: []ImportPartition{
		legacyRow(5, 21, "l1"), {Table: 6, ID: 20, Name: "p", Buckets: 2, Created: 8}, legacyRow(5, 22, "l2"),
	}}
	third := ImportBatch{
		Import: importID, Skip: 6, Last: true, KeyValues: []ImportKeyValue{{Key: "k", Value: []byte("v"), Version: 9}},
		IDCounters: []ImportCounter{{Name: "n", Next: 50}},
	}
	closed := func() {
		t.Helper()
		h.refused(ErrTableImporting, RescaleTable{Table: "shop.orders", Buckets: 8}, "shop.orders")
		h.refused(ErrTableImporting, CreatePartitions{Table: "shop.orders", Specs: dt("x")})
		h.refused(ErrTableImporting, DropPartitions{Table: "shop.orders", Specs: dt("l1")})
		h.refused(ErrTableImporting, AlterTable{Table: "shop.orders", Comment: Some("x")})
	}
	h.must(first)
	closed()
	h.must(second)
	closed()
	if d := cmp.Diff(map[string]int32{"l1": 4, "l2": 4}, h.counts("shop.orders")); d != "" {
		t.Error(d)
	}
	h.must(plainTableIn(h, "own"))
	// A rerun from the start resumes: what is there is skipped.
	for _, again := range []ImportBatch{first, second} {
		if res := h.must(again); len(res.IDs) != 0 {
			t.Errorf("rerun gave ids %v", res.IDs)
		}
	}
	h.must(third)
	c := h.last.Cluster()
	if c.NextTable != 11 || c.NextPartition != 100 {
		t.Errorf("counters %d and %d, want 11 and 100", c.NextTable, c.NextPartition)
	}
	if v, _ := h.last.KeyValue("k"); v.Version != 9 || v.Revision != h.rev {
		t.Errorf("key %+v", v)
	}
	if n, _ := h.last.Counter("n"); n.Next != 50 {
		t.Errorf("counter %+v", n)
	}
	if got := h.table("shop.orders"); got.Importing() || got.History[0].Revision >= h.rev || got.Created != 5 || got.Wall != 6 {
		t.Errorf("table %+v", got)
	}
	h.must(RescaleTable{Table: "shop.orders", Buckets: 6})
	h.create("shop.orders", "n1")
	if d := cmp.Diff(map[string]int32{"l1": 4, "l2": 4, "n1": 6}, h.counts("shop.orders")); d != "" {
		t.Error(d)
	}
	// A rerun of everything clashes with the rescale, and changes nothing.
	h.refused(ErrTableAlreadyExist, first, "shop.orders", "differs")
}

func plainTableIn(h *history, name string) CreateTable {
	if _, ok := h.last.Database("own"); !ok {
		h.must(CreateDatabase{Name: "own"})
	}
	return plainTable("own."+name, 1)
}

// TestImport_IdenticalRowsSkipped: a finished import again changes nothing.
func TestImport_IdenticalRowsSkipped(t *testing.T) {
	h := newHistory(t)
	b := ImportBatch{
		Import: importID, Last: true, Databases: []Database{{Name: "shop"}},
		Tables:     []ImportTable{exported(5, "shop.orders", 4, rescaled(6, Some[int32](4)))},
		Partitions: []ImportPartition{legacyRow(5, 20, "l"), {Table: 5, ID: 21, Name: "p", Buckets: 6, Epoch: 1}},
		KeyValues:  []ImportKeyValue{{Key: "k", Value: []byte("v"), Version: 1}},
		IDCounters: []ImportCounter{{Name: "n", Next: 5}}, Counters: Some(ImportCounters{NextTable: 6, NextPartition: 22}),
	}
	h.must(b)
	h.unchanged(b)
	h.servers(1)
	h.must(AssignPending{}) // placement is this cluster's business
	h.unchanged(b)
}

// TestImport_Clashes: any difference refuses the whole batch.
func TestImport_Clashes(t *testing.T) {
	base := func() ImportBatch {
		return ImportBatch{
			Import: importID, Databases: []Database{{Name: "shop"}}, Tables: []ImportTable{exported(5, "shop.orders", 4)},
			Partitions: []ImportPartition{{Table: 5, ID: 20, Name: "p", Buckets: 4}},
			KeyValues:  []ImportKeyValue{{Key: "k", Value: []byte("v"), Version: 2}},
		}
	}
	for name, c := range map[string]struct {
		edit func(*ImportBatch)
		code Code
		text string
	}{
		"database comment": {func(b *ImportBatch) { b.Databases[0].Comment = "x" }, ErrDatabaseAlreadyExist, "database shop"},
		"database limits":  {func(b *ImportBatch) { b.Databases[0].Limits.Buckets = 9 }, ErrDatabaseAlreadyExist, "database shop"},
		"table id":         {func(b *ImportBatch) { b.Tables[0].Table.ID = 6 }, ErrTableAlreadyExist, "its id"},
		"table comment":    {func(b *ImportBatch) { b.Tables[0].Table.Comment = "x" }, ErrTableAlreadyExist, "its comment"},
		"table property": {func(b *ImportBatch) {
			b.Tables[0].Table.CustomProperties = []Property{{"k", "v"}}
		}, ErrTableAlreadyExist, "its custom properties"},
		"table column type": {func(b *ImportBatch) {
			b.Tables[0].Table.Schemas[0].Columns[0].Type = "BIGINT NOT NULL"
		}, ErrTableAlreadyExist, "its columns"},
		"table history": {func(b *ImportBatch) { rescaled(8, Some[int32](4))(&b.Tables[0].Table) }, ErrTableAlreadyExist, "its bucket count"},
		"other path":    {func(b *ImportBatch) { b.Tables[0].Table.Path = "shop.other" }, ErrTableAlreadyExist, "belongs to table shop.orders"},
		"partition id":  {func(b *ImportBatch) { b.Partitions[0].ID = 21 }, ErrPartitionAlreadyExists, "already exists with id 20"},
		"partition count": {func(b *ImportBatch) {
			b.Partitions[0].Buckets = 3
		}, ErrPartitionAlreadyExists, "differs"},
		"partition name": {func(b *ImportBatch) { b.Partitions[0].Name = "q" }, ErrPartitionAlreadyExists, "belongs to partition 'p'"},
		"key value":      {func(b *ImportBatch) { b.KeyValues[0].Value = []byte("w") }, ErrVersionConflict, `"k"`},
		"key version":    {func(b *ImportBatch) { b.KeyValues[0].Version = 3 }, ErrVersionConflict, `"k"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.must(base())
			b := base()
			c.edit(&b)
			b.Databases = append([]Database{{Name: "extra"}}, b.Databases...)
			h.refused(c.code, b, c.text)
		})
	}
}

// TestImport_BadRows: malformed rows have a code and change nothing.
func TestImport_BadRows(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*ImportBatch)
		code Code
		text string
	}{
		"no import id":     {func(b *ImportBatch) { b.Import = ImportID{} }, ErrInvalidArgument, "import id"},
		"database name":    {func(b *ImportBatch) { b.Databases[0].Name = "__x" }, ErrInvalidDatabase, "__x"},
		"database limits":  {func(b *ImportBatch) { b.Databases[0].Limits.Buckets = 1 << 20 }, ErrTooLarge, "limit buckets"},
		"missing database": {func(b *ImportBatch) { b.Databases = nil }, ErrDatabaseNotExist, "shop"},
		"no schema":        {func(b *ImportBatch) { b.Tables[0].Table.Schemas = nil }, ErrInvalidTable, "schema"},
		"schema without its key": {func(b *ImportBatch) {
			t := &b.Tables[0].Table
			t.Schemas = append(t.Schemas, Schema{ID: 2, Columns: []Column{{ID: 1, Name: "dt", Type: "STRING NOT NULL"}}})
		}, ErrInvalidTable, "schema 2 does not keep column a"},
		"column counter": {func(b *ImportBatch) { b.Tables[0].Table.NextColumn = 1<<32 - 1 }, ErrInvalidTable, "column counter"},
		"column id":      {func(b *ImportBatch) { b.Tables[0].Table.NextColumn = 1 }, ErrInvalidTable, "column dt"},
		"no history":     {func(b *ImportBatch) { b.Tables[0].Table.History = nil }, ErrInvalidTable, "history"},
		"history end":    {func(b *ImportBatch) { b.Tables[0].Table.Buckets = 5 }, ErrInvalidTable, "history ends"},
		"legacy count at epoch 0": {func(b *ImportBatch) {
			b.Tables[0].Table.LegacyCount = Some[int32](3)
		}, ErrInvalidTable, "legacy count 3"},
		"legacy count above limit": {func(b *ImportBatch) {
			rescaled(6, Some[int32](5000))(&b.Tables[0].Table)
		}, ErrBucketMaxNum, "5000"},
		"epoch of a plain table": {func(b *ImportBatch) {
			t := &b.Tables[0].Table
			t.PartitionKeys, b.Partitions = nil, nil
			t.BucketKeys = []string{"a"}
			rescaled(6, Opt[int32]{})(t)
		}, ErrInvalidTable, "not partitioned"},
		"epoch that would overflow": {func(b *ImportBatch) {
			t := &b.Tables[0].Table
			t.Epoch = 1<<64 - 1
			t.History[0].Epoch = t.Epoch
		}, ErrInvalidTable, "layout epoch"},
		"table id that would overflow":     {func(b *ImportBatch) { b.Tables[0].Table.ID = 1<<64 - 1 }, ErrTooLarge, "id 18446744073709551615"},
		"partition id that would overflow": {func(b *ImportBatch) { b.Partitions[0].ID = 1<<64 - 1 }, ErrTooLarge, "id 18446744073709551615"},
		"counters that would overflow": {func(b *ImportBatch) {
			b.Counters = Some(ImportCounters{NextPartition: 1 << 63})
		}, ErrTooLarge, "counters"},
		"partition without count or mark": {func(b *ImportBatch) { b.Partitions[0].Buckets = 0 }, ErrStaleMetadata, "neither"},
		"legacy with a count":             {func(b *ImportBatch) { b.Partitions[0].Legacy = true }, ErrInvalidTable, "legacy"},
		"partition count above limit":     {func(b *ImportBatch) { b.Partitions[0].Buckets = 4097 }, ErrBucketMaxNum, "4097"},
		"partition epoch":                 {func(b *ImportBatch) { b.Partitions[0].Epoch = 1 }, ErrInvalidTable, "epoch 1"},
		"partition name":                  {func(b *ImportBatch) { b.Partitions[0].Name = "a$b" }, ErrPartitionSpecInvalid, "a$b"},
		"partition of no table":           {func(b *ImportBatch) { b.Partitions[0].Table = 77 }, ErrTableNotExist, "77"},
		"key version":                     {func(b *ImportBatch) { b.KeyValues = []ImportKeyValue{{Key: "k"}} }, ErrInvalidArgument, "version 0"},
		"counter":                         {func(b *ImportBatch) { b.IDCounters = []ImportCounter{{Name: "", Next: 1}} }, ErrInvalidArgument, "counter"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			b := ImportBatch{
				Import: importID, Databases: []Database{{Name: "shop"}}, Tables: []ImportTable{exported(5, "shop.orders", 4)},
				Partitions: []ImportPartition{{Table: 5, ID: 20, Name: "p", Buckets: 4}},
			}
			c.edit(&b)
			h.refused(c.code, b, c.text)
			if n := h.last.Counts(); n != (Counts{}) {
				t.Errorf("left over: %+v", n)
			}
		})
	}
}

// TestImport_LegacyRows: only for a table this import created and that is still
// importing, at epoch 0 or with a legacy count.
func TestImport_LegacyRows(t *testing.T) {
	other := ImportID{Incarnation: Incarnation{Number: 8}, Revision: 1}
	row := func(id ImportID) ImportBatch {
		return ImportBatch{Import: id, Partitions: []ImportPartition{legacyRow(5, 20, "l")}}
	}
	begin := func(edit ...func(*Table)) ImportBatch {
		return ImportBatch{Import: importID, Databases: []Database{{Name: "shop"}}, Tables: []ImportTable{exported(5, "shop.orders", 4, edit...)}}
	}
	t.Run("epoch 0", func(t *testing.T) {
		h := newHistory(t)
		h.must(begin())
		h.must(row(importID))
	})
	t.Run("epoch 1 with legacy count", func(t *testing.T) {
		h := newHistory(t)
		h.must(begin(rescaled(8, Some[int32](4))))
		h.must(row(importID))
		if got := h.counts("shop.orders")["l"]; got != 4 {
			t.Errorf("effective count %d, want 4", got)
		}
	})
	t.Run("epoch 1 without legacy count", func(t *testing.T) {
		h := newHistory(t)
		h.must(begin(rescaled(8, Opt[int32]{})))
		h.refused(ErrStaleMetadata, row(importID), "no legacy count")
	})
	t.Run("another import", func(t *testing.T) {
		h := newHistory(t)
		h.must(begin())
		h.refused(ErrInvalidTable, row(other), "did not create")
	})
	t.Run("own table", func(t *testing.T) {
		h := newHistory(t)
		h.orders(4)
		b := row(importID)
		b.Partitions[0].Table = 0
		h.refused(ErrInvalidTable, b, "did not create")
	})
	t.Run("finished", func(t *testing.T) {
		h := newHistory(t)
		b := begin()
		b.Tables[0].Finished = true
		h.must(b)
		h.refused(ErrInvalidTable, row(importID), "did not create")
		h.must(RescaleTable{Table: "shop.orders", Buckets: 8})
	})
}

// TestImport_DropWhileImporting: the drop wins, and the id never comes back,
// neither at once nor after the purge of old records.
func TestImport_DropWhileImporting(t *testing.T) {
	h := newHistory(t)
	b := ImportBatch{Import: importID, Databases: []Database{{Name: "shop"}}, Tables: []ImportTable{exported(5, "shop.orders", 4)}}
	h.must(b)
	h.must(DropTable{Table: "shop.orders"})
	h.refused(ErrTableAlreadyExist, b, "id 5", "was dropped")
	h.env.Wall += 1_000_000
	h.must(PurgeDropped{Max: 100, Before: h.env.Wall})
	h.refused(ErrTableAlreadyExist, b, "id 5", "was dropped")
	h.must(ImportBatch{Import: importID, Last: true})
	h.must(PurgeDropped{Max: 100, Before: h.env.Wall})
	h.refused(ErrTableAlreadyExist, b, "id 5", "used here before")
}

// TestImport_UsedIDs: an id that this cluster gave out before is not taken.
func TestImport_UsedIDs(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.create("shop.orders", "a", "b")
	h.must(DropPartitions{Table: "shop.orders", Specs: dt("a")})
	h.refused(ErrTableAlreadyExist, ImportBatch{Import: importID, Tables: []ImportTable{exported(0, "shop.x", 4)}}, "belongs to table shop.orders")
	h.must(ImportBatch{Import: importID, Tables: []ImportTable{exported(5, "shop.x", 4)}})
	h.refused(ErrPartitionAlreadyExists, ImportBatch{Import: importID, Partitions: []ImportPartition{legacyRow(5, 0, "l")}}, "was dropped")
	h.refused(ErrPartitionAlreadyExists, ImportBatch{Import: importID, Partitions: []ImportPartition{legacyRow(5, 1, "l")}}, "belongs to partition 'b'")
}
