package catalog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill creates n partitions of a table in large commands.
func fill(h *history, path string, n int) {
	h.t.Helper()
	for at := 0; at < n; {
		var specs []PartitionSpec
		for ; at < n && len(specs) < 2_000; at++ {
			specs = append(specs, PartitionSpec{{"dt", utoa(uint64(1_000_000 + at))}})
		}
		h.must(CreatePartitions{Table: path, Specs: specs})
	}
}

// TestDrop_LargeTable: marked at once, its name free at once, purged in steps.
func TestDrop_LargeTable(t *testing.T) {
	h := newHistory(t)
	h.servers(1, 2)
	was := h.orders(2)
	fill(h, "shop.orders", maxInlineDrop+100)
	h.must(DropTable{Table: "shop.orders"})
	if _, ok := h.last.Table("shop.orders"); ok {
		t.Fatal("the dropped table is still found by name")
	}
	if old, ok := h.last.TableByID(was.ID); !ok || !old.Dropped {
		t.Fatalf("by id: %+v, %v", old, ok)
	}
	var record *DroppedObject
	h.last.DroppedTables(func(d *DroppedObject) bool { record = d; return true })
	if d := cmp.Diff([]PendingDeletion{{Server: 1}, {Server: 2}}, record.Pending); d != "" || record.Buckets != 2 || record.Path != "shop.orders" {
		t.Errorf("record %+v", record)
	}
	now := h.orders(3)
	h.create("shop.orders", "1000000")
	h.unchanged(PurgeDropped{})
	left := h.last.PartitionCount(was.ID)
	for left > 0 {
		h.must(PurgeDropped{Max: 1_500})
		n := h.last.PartitionCount(was.ID)
		if n != max(0, left-1_500) {
			t.Fatalf("purge of 1500 went from %d to %d", left, n)
		}
		left = n
	}
	if _, ok := h.last.TableByID(was.ID); ok {
		t.Error("the purged table is still there")
	}
	if got := h.counts("shop.orders"); got["1000000"] != 3 || h.table("shop.orders") != now {
		t.Errorf("the new table was touched: %v", got)
	}
	// The record waits for its servers, then for its age.
	h.env.Wall += 500
	h.unchanged(PurgeDropped{Max: 10, Before: h.env.Wall})
	if h.last.Counts().Tables != 1 {
		t.Errorf("counts %+v", h.last.Counts())
	}
}

// TestDrop_SmallTable: up to the bound a table goes with its partitions in one
// command; its record goes when it is old and nobody waits.
func TestDrop_SmallTable(t *testing.T) {
	h := newHistory(t)
	h.orders(1)
	fill(h, "shop.orders", maxInlineDrop)
	h.must(DropTable{Table: "shop.orders"})
	if c := h.last.Counts(); c.Tables+c.Partitions+c.Unassigned != 0 {
		t.Errorf("left over: %+v", c)
	}
	h.unchanged(PurgeDropped{Max: 10, Before: h.env.Wall})
	h.env.Wall++
	h.must(PurgeDropped{Max: 10, Before: h.env.Wall})
	h.last.DroppedTables(func(d *DroppedObject) bool { t.Errorf("record %+v is left", d); return true })
}

// TestDropDatabase_Large: the bound holds for all tables together.
func TestDropDatabase_Large(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "shop"})
	for _, n := range []string{"a", "b", "c"} {
		h.must(ordersTable("shop."+n, 1))
		fill(h, "shop."+n, 2_000)
	}
	h.must(DropDatabase{Name: "shop", Cascade: true})
	if c := h.last.Counts(); c.Tables != 0 || c.Databases != 0 || c.Partitions != 2_000 {
		t.Errorf("counts %+v", c)
	}
	h.must(CreateDatabase{Name: "shop"})
	h.must(ordersTable("shop.c", 1))
	h.must(PurgeDropped{Max: 5_000})
	if c := h.last.Counts(); c.Partitions != 0 || c.Tables != 1 {
		t.Errorf("counts %+v", c)
	}
}

// TestDrop_MillionPartitions: the mark costs the same, whatever hangs on it.
func TestDrop_MillionPartitions(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a million rows")
	}
	s := millionPartitions(t, true)
	b := s.Begin()
	begin := time.Now()
	res, _ := b.Apply(s.Revision()+1, Envelope{}, DropTable{Table: "shop.orders"})
	if took := time.Since(begin); res.Code != Done || took > 50*time.Millisecond {
		t.Errorf("drop: %v in %v, want at most 50 ms", res.Err(), took)
	}
}

// millionPartitions loads shop.orders with a million partitions, unplaced.
func millionPartitions(tb testing.TB, legacy bool) *State {
	tb.Helper()
	h := NewState().Begin()
	h.Apply(1, Envelope{}, CreateDatabase{Name: "shop"})
	h.Apply(2, Envelope{}, ordersTable("shop.orders", 4))
	base := h.Publish()
	l := NewLoader()
	c := base.Cluster()
	c.NextPartition = 1_000_000
	l.Cluster(c)
	var err error
	add := func(o Object) {
		if err == nil {
			err = l.Add(o)
		}
	}
	d, _ := base.Database("shop")
	t, _ := base.Table("shop.orders")
	add(d)
	add(t)
	for i := range PartitionID(1_000_000) {
		p := &Partition{ID: i, Name: utoa(uint64(1_000_000 + i)), Buckets: 4, CreatedAt: 3, Revision: 3}
		if legacy {
			p.Buckets, p.Legacy, p.Imported = 0, true, true
		}
		add(p)
	}
	if err != nil {
		tb.Fatal(err)
	}
	s, err := l.Finish(3)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
