package catalog

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestS01_DuplicateDatabase: a second creation is refused, or leaves it as it is.
func TestS01_DuplicateDatabase(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d", Comment: "first", Properties: []Property{{"k", "1"}}})
	h.refused(ErrDatabaseAlreadyExist, CreateDatabase{Name: "d", Comment: "second"}, "database d already exists")
	h.unchanged(CreateDatabase{Name: "d", Comment: "second", IfNotExists: true})
	d, _ := h.last.Database("d")
	if d.Comment != "first" || !cmp.Equal(d.Properties, []Property{{"k", "1"}}) {
		t.Errorf("database is %+v", d)
	}
}

// TestS02_DropNonEmpty: a database with tables goes only by cascade.
func TestS02_DropNonEmpty(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.create("shop.orders", "p1")
	h.refused(ErrDatabaseNotEmpty, DropDatabase{Name: "shop"}, "shop", "1 tables")
	h.table("shop.orders")
	h.must(DropDatabase{Name: "shop", Cascade: true})
	if c := h.last.Counts(); c.Databases+c.Tables+c.Partitions != 0 {
		t.Errorf("left over: %+v", c)
	}
}

// TestS03_MissingDatabase: there is no default database, and a missing one is said.
func TestS03_MissingDatabase(t *testing.T) {
	h := newHistory(t)
	h.refused(ErrDatabaseNotExist, DropDatabase{Name: "fluss"}, "fluss")
	h.unchanged(DropDatabase{Name: "fluss", IfExists: true})
	h.must(CreateDatabase{Name: "fluss"})
	h.must(DropDatabase{Name: "fluss"})
	h.refused(ErrDatabaseNotExist, plainTable("fluss.t", 1), "fluss")
	h.refused(ErrDatabaseNotExist, AlterDatabase{Name: "fluss", Set: []Property{{"k", "v"}}})
	h.unchanged(AlterDatabase{Name: "fluss", IfExists: true})
}

// TestS04_Names is covered row by row by TestVectors_Identifiers; here are paths.
func TestS04_Names(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.refused(ErrInvalidDatabase, CreateDatabase{Name: "*invalid_db*"}, "ASCII alphanumerics")
	h.refused(ErrInvalidDatabase, CreateDatabase{Name: "__internal_db"}, "reserved")
	h.refused(ErrInvalidTable, plainTable("nodot", 1), "database.table")
	h.refused(ErrInvalidTable, plainTable("d.__t", 1), "reserved")
	h.refused(ErrInvalidDatabase, plainTable("*.t", 1))
	h.refused(ErrInvalidTable, RescaleTable{Table: "d.a.b", Buckets: 1})
	h.refused(ErrInvalidTable, AlterTable{Table: "d.*", IfExists: true})
	res := h.refused(ErrInvalidDatabase, CreateDatabase{Name: "\xff"})
	if !utf8.ValidString(res.Message) {
		t.Errorf("message %q is not valid text", res.Message)
	}
}

// TestS05_Defaults: one bucket, one replica, and what a primary key brings.
func TestS05_Defaults(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	res := h.must(CreateTable{Table: "d.t", Columns: []NewColumn{{Name: "a", Type: "INT"}}, PrimaryKey: []string{"a"}})
	got := h.table("d.t")
	if got.Buckets != 1 || got.Replication != 1 || res.Count != 1 {
		t.Errorf("buckets %d, replication %d, count %d, want 1", got.Buckets, got.Replication, res.Count)
	}
	want := []Property{{PropKVFormatVersion, "2"}, {PropStandby, "true"}, {PropReplication, "1"}}
	if d := cmp.Diff(want, got.Properties); d != "" {
		t.Errorf("properties: -want +got\n%s", d)
	}
}

// TestS06_BucketLimit: the limit holds for a table, and the sentence names it.
func TestS06_BucketLimit(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.must(plainTable("d.big", 4096))
	h.refused(ErrBucketMaxNum, plainTable("d.t", 4097))
	h.must(SetLimits{Limits: Limits{Buckets: 30}})
	h.must(plainTable("d.t30", 30))
	res := h.refused(ErrBucketMaxNum, plainTable("d.t31", 31),
		"Bucket count 31 exceeds the maximum limit 30 for a non-partitioned table or partition.")
	if res.Limit != 30 || res.Size != 31 {
		t.Errorf("limit %d, size %d", res.Limit, res.Size)
	}
	// A limit lowered since does not freeze the table.
	h.must(AlterTable{Table: "d.big", Comment: Some("x")})
	// A database's own limit wins over the cluster's.
	h.must(SetLimits{Database: "d", Limits: Limits{Buckets: 40}})
	h.must(plainTable("d.t40", 40))
	h.must(CreateDatabase{Name: "e"})
	h.refused(ErrBucketMaxNum, plainTable("e.t31", 31))
	h.unchanged(SetLimits{Database: "d", Limits: Limits{Buckets: 40}})
	h.refused(ErrDatabaseNotExist, SetLimits{Database: "no", Limits: Limits{Buckets: 40}})
	h.refused(ErrTooLarge, SetLimits{Limits: Limits{Partitions: 10_000_001}}, "partitions", "10000001", "10000000")
}

// TestS07_LimitPerPartition: partitions together may have more than the limit.
func TestS07_LimitPerPartition(t *testing.T) {
	h := newHistory(t)
	h.must(SetLimits{Limits: Limits{Buckets: 30}})
	h.orders(10)
	h.create("shop.orders", "1", "2", "3", "4")
	h.refused(ErrBucketMaxNum, ordersTable("shop.t40", 40), "Bucket count 40 exceeds the maximum limit 30")
	h.must(SetLimits{Limits: Limits{Buckets: 9}})
	h.refused(ErrBucketMaxNum, CreatePartitions{Table: "shop.orders", Specs: dt("5")}, "Bucket count 10")
}

// TestS08_ReplicationFactor: too many replicas leave nothing behind.
func TestS08_ReplicationFactor(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.servers(0, 1, 2)
	h.refused(ErrInvalidConfig, plainTable("d.t", 1, replication(0)), "'table.replication.factor' must be greater than 0")
	h.refused(ErrInvalidReplicationFactor, plainTable("d.t", 1, replication(5)), "Replication factor: 5 larger than available tablet servers: 3")
	h.refused(ErrInvalidConfig, plainTable("d.t", 1, Property{PropReplication, "x"}), PropReplication, "x")
	if c := h.last.Cluster(); c.NextTable != 0 || h.last.Counts().Tables != 0 {
		t.Errorf("left over: next table %d, %+v", c.NextTable, h.last.Counts())
	}
	// Partitioned tables check it when a partition is created.
	c := ordersTable("d.p", 2)
	c.Properties = []Property{replication(5)}
	h.must(c)
	h.refused(ErrInvalidReplicationFactor, CreatePartitions{Table: "d.p", Specs: dt("1")}, "5 larger than available tablet servers: 3")
	h.servers(3, 4)
	h.create("d.p", "1")
	h.must(SetLimits{Limits: Limits{Replicas: 100}})
	h.refused(ErrTooLarge, plainTable("d.big", 21, replication(5)), "105 bucket replicas, above 100")
	h.refused(ErrTooLarge, CreatePartitions{Table: "d.p", Specs: dt("2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12")}, "above 100")
}

// TestS09_DuplicateTable: the loser learns the id of the table that is there.
func TestS09_DuplicateTable(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.must(plainTable("d.a", 1))
	first := h.must(plainTable("d.t", 3))
	res := h.refused(ErrTableAlreadyExist, plainTable("d.t", 5), "table d.t already exists")
	if id, _ := first.FirstID(); res.Current != id {
		t.Errorf("refusal carries id %d, want %d", res.Current, id)
	}
	again := plainTable("d.t", 5)
	again.IfNotExists = true
	got := h.unchanged(again)
	if !cmp.Equal(got.IDs, first.IDs) || got.Count != 3 {
		t.Errorf("second creation gave %v with %d buckets, want %v with 3", got.IDs, got.Count, first.IDs)
	}
}

// TestS10_IDsNeverReused: a dropped table's id and name part for ever.
func TestS10_IDsNeverReused(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	for i := range 10 {
		if id := h.firstID(ordersTable("d.t"+itoa(int64(i)), 2)); id != uint64(i) {
			t.Fatalf("table %d got id %d", i, id)
		}
	}
	h.create("d.t9", "p")
	h.must(RescaleTable{Table: "d.t9", Buckets: 7})
	h.must(DropTable{Table: "d.t9"})
	if id := h.firstID(ordersTable("d.t9", 2)); id != 10 {
		t.Errorf("re-created table got id %d, want 10", id)
	}
	got := h.table("d.t9")
	if got.Epoch != 0 || got.Schema().ID != 1 || h.last.PartitionCount(got.ID) != 0 || got.LegacyCount.Set {
		t.Errorf("re-created table is %+v", got)
	}
	if id := h.firstID(CreatePartitions{Table: "d.t9", Specs: dt("p")}); id != 1 {
		t.Errorf("its partition got id %d, want 1", id)
	}
}

// TestS11_Keys is covered row by row by TestVectors_TableValidation; here are
// the sentences.
func TestS11_Keys(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	with := func(edit func(*CreateTable)) CreateTable {
		c := CreateTable{
			Table: "d.t", Columns: []NewColumn{{Name: "a", Type: "INT"}, {Name: "b", Type: "INT"}, {Name: "dt", Type: "STRING"}},
			PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"},
		}
		edit(&c)
		return c
	}
	h.refused(ErrInvalidTable, with(func(c *CreateTable) { c.BucketKeys = []string{"b"} }), "bucket key 'b' is not in the primary key")
	h.refused(ErrInvalidTable, with(func(c *CreateTable) { c.BucketKeys = []string{"dt"} }), "bucket key 'dt' is a partition key")
	h.refused(ErrInvalidTable, with(func(c *CreateTable) { c.PrimaryKey = []string{"dt"} }), "[dt]")
	h.refused(ErrInvalidTable, with(func(c *CreateTable) { c.Columns[2].Type = "DECIMAL(10,2)" }), "dt", "DECIMAL(10,2)")
	h.must(with(func(c *CreateTable) { c.Columns[2].Type = "bigint" }))
	if d := cmp.Diff([]string{"a"}, h.table("d.t").BucketKeys); d != "" {
		t.Error(d)
	}
}

// TestS13_AlterProperties: custom keys come and go, fixed ones stay.
func TestS13_AlterProperties(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	before := h.table("shop.orders")
	h.env.Wall += 10
	h.must(AlterTable{Table: "shop.orders", Set: []Property{{"k", "v"}, {"a", "b"}, {PropAutoRetention, "3"}}})
	got := h.table("shop.orders")
	if v, _ := PropertyValue(got.CustomProperties, "k"); v != "v" || got.Wall != before.Wall+10 || got.Revision <= before.Revision {
		t.Errorf("after set: %+v", got)
	}
	h.must(AlterTable{Table: "shop.orders", Reset: []string{"k"}})
	if _, ok := PropertyValue(h.table("shop.orders").CustomProperties, "k"); ok {
		t.Error("k is still there after reset")
	}
	// Set comes before reset.
	h.unchanged(AlterTable{Table: "shop.orders", Set: []Property{{"n", "1"}}, Reset: []string{"n"}})
	h.refused(ErrTableNotExist, AlterTable{Table: "shop.no", Set: []Property{{"k", "v"}}})
	h.unchanged(AlterTable{Table: "shop.no", Set: []Property{{"k", "v"}}, IfExists: true})
	h.refused(ErrInvalidAlterTable, AlterTable{Table: "shop.orders", AddColumns: []NewColumn{{Name: "x", Type: "INT"}}, Set: []Property{{"k", "v"}}})
	h.refused(ErrInvalidAlterTable, AlterTable{Table: "shop.orders", Set: []Property{replication(3)}}, PropReplication)
	h.refused(ErrInvalidAlterTable, AlterTable{Table: "shop.orders", Set: []Property{{PropAutoFormat, "yyyy"}}}, PropAutoFormat)
	h.refused(ErrInvalidAlterTable, AlterTable{Table: "shop.orders", Reset: []string{PropReplication}}, PropReplication)
	h.refused(ErrInvalidConfig, AlterTable{Table: "shop.orders", Set: []Property{{"table.nonsense", "3"}}}, "table.nonsense")
	h.refused(ErrInvalidConfig, AlterTable{Table: "shop.orders", Set: []Property{{"bucket.num", "3"}}}, "bucket.num")
	h.refused(ErrInvalidConfig, AlterTable{Table: "shop.orders", Set: []Property{{"k", "1"}, {"k", "2"}}}, "given twice")
	many := make([]Property, MaxProperties+1)
	for i := range many {
		many[i] = Property{itoa(int64(i)), ""}
	}
	h.refused(ErrTooLarge, AlterTable{Table: "shop.orders", Set: many}, "257", "256")
	h.refused(ErrTooLarge, AlterTable{Table: "shop.orders", Reset: make([]string, MaxProperties+1)}, "257", "256")
}

// TestS14_NoOpAlter: the current value again is no change at all.
func TestS14_NoOpAlter(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.must(AlterTable{Table: "shop.orders", Set: []Property{{"k", "v"}}, Comment: Some("c")})
	before := h.table("shop.orders")
	h.env.Wall += 10
	h.unchanged(AlterTable{Table: "shop.orders", Set: []Property{{"k", "v"}, {PropReplication, "1"}}, Reset: []string{"absent"}, Comment: Some("c")})
	if h.table("shop.orders") != before {
		t.Error("the row was written")
	}
	h.must(AlterDatabase{Name: "shop", Set: []Property{{"k", "v"}}})
	h.unchanged(AlterDatabase{Name: "shop", Set: []Property{{"k", "v"}}, Reset: []string{"absent"}})
}

// TestS15_LostUpdate: concurrent writers of different keys keep both, and an
// expected revision tells who came second.
func TestS15_LostUpdate(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	for i := range 100 {
		for _, k := range []string{"x", "y"} {
			h.must(AlterTable{Table: "shop.orders", Set: []Property{{k, itoa(int64(i))}}})
		}
	}
	if d := cmp.Diff([]Property{{"x", "99"}, {"y", "99"}}, h.table("shop.orders").CustomProperties); d != "" {
		t.Error(d)
	}
	at := h.table("shop.orders").Revision
	h.must(AlterTable{Table: "shop.orders", Set: []Property{{"x", "mine"}}, ExpectedRevision: Some(at)})
	res := h.refused(ErrVersionConflict, AlterTable{Table: "shop.orders", Set: []Property{{"x", "other"}}, ExpectedRevision: Some(at)})
	if want := uint64(h.table("shop.orders").Revision); res.Current != want {
		t.Errorf("conflict carries %d, want %d", res.Current, want)
	}
	d, _ := h.last.Database("shop")
	h.refused(ErrVersionConflict, AlterDatabase{Name: "shop", ExpectedRevision: Some(d.Revision + 1)})
}

// TestS16_AddColumn: a nullable column at the end makes the next schema version.
func TestS16_AddColumn(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	old := h.table("shop.orders")
	h.must(AlterTable{Table: "shop.orders", AddColumns: []NewColumn{{Name: "x", Type: "decimal(5, 2)"}, {Name: "y", Type: "STRING NULL"}}})
	got := h.table("shop.orders")
	want := Schema{ID: 2, Columns: []Column{
		{ID: 0, Name: "a", Type: "INT NOT NULL"},
		{ID: 1, Name: "dt", Type: "STRING NOT NULL"},
		{ID: 2, Name: "x", Type: "DECIMAL(5,2)"},
		{ID: 3, Name: "y", Type: "STRING"},
	}}
	if d := cmp.Diff(want, *got.Schema()); d != "" {
		t.Errorf("schema: -want +got\n%s", d)
	}
	if d := cmp.Diff(old.Schemas[0], got.Schemas[0]); d != "" || len(old.Schemas) != 1 || got.NextColumn != 4 {
		t.Errorf("schema 1 changed: %s", d)
	}
	h.refused(ErrInvalidAlterTable, AlterTable{Table: "shop.orders", AddColumns: []NewColumn{{Name: "x", Type: "INT"}}}, "column x already exists")
	h.refused(ErrInvalidAlterTable, AlterTable{Table: "shop.orders", AddColumns: []NewColumn{{Name: "z", Type: "INT NOT NULL"}}}, "z", "nullable")
	h.refused(ErrInvalidTable, AlterTable{Table: "shop.orders", AddColumns: []NewColumn{{Name: "z", Type: "NUMBER"}}}, "z", "NUMBER")
	h.refused(ErrInvalidTable, AlterTable{Table: "shop.orders", AddColumns: []NewColumn{{Name: "__offset", Type: "INT"}}}, "__offset")
}
