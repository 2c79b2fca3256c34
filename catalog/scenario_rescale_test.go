package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRescale_BeforeAndAfter: each partition keeps the count it was made with.
func TestRescale_BeforeAndAfter(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.create("shop.orders", "p1")
	h.must(RescaleTable{Table: "shop.orders", Buckets: 4})
	h.create("shop.orders", "p2")
	h.must(RescaleTable{Table: "shop.orders", Buckets: 3})
	h.create("shop.orders", "p3")
	if d := cmp.Diff(map[string]int32{"p1": 2, "p2": 4, "p3": 3}, h.counts("shop.orders")); d != "" {
		t.Error(d)
	}
	got := h.table("shop.orders")
	var history [][2]int
	for _, e := range got.History {
		history = append(history, [2]int{int(e.Epoch), int(e.Buckets)})
	}
	if d := cmp.Diff([][2]int{{0, 2}, {1, 4}, {2, 3}}, history); d != "" || got.Epoch != 2 {
		t.Errorf("epoch %d, history %s", got.Epoch, d)
	}
}

// TestRescale_BeforeAnyPartition: the legacy count is set all the same, once.
func TestRescale_BeforeAnyPartition(t *testing.T) {
	h := newHistory(t)
	h.orders(4)
	h.must(RescaleTable{Table: "shop.orders", Buckets: 6})
	h.must(RescaleTable{Table: "shop.orders", Buckets: 8})
	if got := h.table("shop.orders"); got.LegacyCount != Some[int32](4) || got.Epoch != 2 || got.Buckets != 8 {
		t.Errorf("legacy count %v, epoch %d, %d buckets", got.LegacyCount, got.Epoch, got.Buckets)
	}
}

// TestRescale_LegacyPartitions: 4 to 6 to 8 over legacy partitions leaves them
// at 4.
func TestRescale_LegacyPartitions(t *testing.T) {
	h := newHistory(t)
	importLegacy(h, 4, "l1", "l2")
	want := map[string]int32{"l1": 4, "l2": 4}
	for i, n := range []int32{6, 8} {
		h.must(RescaleTable{Table: "shop.orders", Buckets: n})
		name := "n" + itoa(int64(i))
		h.create("shop.orders", name)
		want[name] = n
		if d := cmp.Diff(want, h.counts("shop.orders")); d != "" {
			t.Errorf("after rescale to %d: -want +got\n%s", n, d)
		}
	}
	if got := h.table("shop.orders"); got.LegacyCount != Some[int32](4) || h.last.LegacyCount(got.ID) != 2 {
		t.Errorf("legacy count %v of %d partitions", got.LegacyCount, h.last.LegacyCount(got.ID))
	}
}

// TestS78_SameCount: success, and no epoch.
func TestS78_SameCount(t *testing.T) {
	h := newHistory(t)
	h.orders(4)
	res := h.unchanged(RescaleTable{Table: "shop.orders", Buckets: 4})
	if res.Count != 4 || res.Epoch != 0 {
		t.Errorf("result %+v", res)
	}
	if got := h.table("shop.orders"); got.LegacyCount.Set || got.Epoch != 0 {
		t.Errorf("table %+v", got)
	}
}

// TestS72_Refusals: each with its code, and the expected epoch before all.
func TestS72_Refusals(t *testing.T) {
	h := newHistory(t)
	h.orders(4)
	h.must(plainTable("shop.plain", 4))
	id := h.table("shop.orders").ID
	h.refused(ErrTableNotPartitioned, RescaleTable{Table: "shop.plain", Buckets: 8}, "shop.plain")
	for _, n := range []int32{0, -1, -1 << 31} {
		h.refused(ErrInvalidAlterTable, RescaleTable{Table: "shop.orders", Buckets: n}, "bucket count "+itoa(int64(n))+" is below 1")
	}
	h.refused(ErrBucketMaxNum, RescaleTable{Table: "shop.orders", Buckets: 4097}, "4097", "4096")
	h.refused(ErrTableNotExist, RescaleTable{Table: "shop.none", Buckets: 8})
	h.refused(ErrTableNotExist, RescaleTable{Table: "shop.orders", TableID: Some(id + 1), Buckets: 8})
	res := h.refused(ErrVersionConflict, RescaleTable{Table: "shop.orders", Buckets: -5, ExpectedEpoch: Some[Epoch](3)})
	if res.Current != 0 {
		t.Errorf("current epoch %d, want 0", res.Current)
	}
	h.must(RescaleTable{Table: "shop.orders", TableID: Some(id), Buckets: 8, ExpectedEpoch: Some[Epoch](0)})
	res = h.refused(ErrVersionConflict, RescaleTable{Table: "shop.orders", Buckets: 8, ExpectedEpoch: Some[Epoch](0)})
	if res.Current != 1 {
		t.Errorf("current epoch %d, want 1", res.Current)
	}
}

// TestRescale_Lakes: only paimon follows, and only when it was told first.
func TestRescale_Lakes(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	for _, format := range []string{"iceberg", "hudi", "lance", "Iceberg"} {
		c := ordersTable("d."+format, 2)
		c.Properties = []Property{{PropLakeFormat, format}}
		h.must(c)
		h.refused(ErrInvalidAlterTable, RescaleTable{Table: "d." + format, Buckets: 4, Propagated: true}, "lake format")
	}
	c := ordersTable("d.paimon", 2)
	c.Properties = []Property{{PropLakeFormat, "paimon"}}
	h.must(c)
	h.must(RescaleTable{Table: "d.paimon", Buckets: 3}) // not tiered: nobody to tell
	h.must(AlterTable{Table: "d.paimon", Set: []Property{{PropLakeEnabled, "true"}}})
	h.refused(ErrInvalidAlterTable, RescaleTable{Table: "d.paimon", Buckets: 4}, "propagated")
	h.unchanged(RescaleTable{Table: "d.paimon", Buckets: 3})
	h.must(RescaleTable{Table: "d.paimon", Buckets: 4, Propagated: true})
}

// TestS77_DropAndRecreate: between read and commit the table became another.
func TestS77_DropAndRecreate(t *testing.T) {
	h := newHistory(t)
	was := h.orders(2)
	h.must(DropTable{Table: "shop.orders", TableID: Some(was.ID)})
	now := h.orders(5)
	for _, c := range []Command{
		RescaleTable{Table: "shop.orders", TableID: Some(was.ID), Buckets: 8},
		CreatePartitions{Table: "shop.orders", TableID: Some(was.ID), Specs: dt("p")},
		DropPartitions{Table: "shop.orders", TableID: Some(was.ID), Specs: dt("p"), IfExists: true},
		AlterTable{Table: "shop.orders", TableID: Some(was.ID), Comment: Some("x")},
		DropTable{Table: "shop.orders", TableID: Some(was.ID)},
	} {
		h.refused(ErrTableNotExist, c, "id 0", "current id is 1")
	}
	h.unchanged(DropTable{Table: "shop.orders", TableID: Some(was.ID), IfExists: true})
	if got := h.table("shop.orders"); got != now || got.Epoch != 0 || h.last.PartitionCount(now.ID) != 0 {
		t.Errorf("the new table was touched: %+v", got)
	}
}

// TestRescale_Retries: one rescale sent ten times raises the epoch by one, and
// every retry gets the first result.
func TestRescale_Retries(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	client := h.firstID(RegisterClient{})
	h.env.Client, h.env.Sequence = ClientID(client), 1
	first := h.must(RescaleTable{Table: "shop.orders", Buckets: 4})
	for range 9 {
		if d := cmp.Diff(first, h.must(RescaleTable{Table: "shop.orders", Buckets: 4})); d != "" {
			t.Fatalf("retry: %s", d)
		}
	}
	if got := h.table("shop.orders"); got.Epoch != 1 || len(got.History) != 2 {
		t.Errorf("epoch %d, history %v", got.Epoch, got.History)
	}
	if first.Revision == h.rev || !first.Changed {
		t.Errorf("result %+v at revision %d", first, h.rev)
	}
}

// TestRescale_HistoryBound: beyond the bound epochs without partitions go, those
// with partitions stay.
func TestRescale_HistoryBound(t *testing.T) {
	b := NewState().Begin()
	rev := Revision(0)
	do := func(c Command) {
		t.Helper()
		rev++
		if r, _ := b.Apply(rev, Envelope{}, c); r.Code != Done {
			t.Fatalf("%s: %v", c.Kind(), r.Err())
		}
	}
	do(CreateDatabase{Name: "shop"})
	do(ordersTable("shop.orders", 1))
	for i := range MaxHistory + 200 {
		if i%400 == 7 {
			do(CreatePartitions{Table: "shop.orders", Specs: dt(itoa(int64(i)))})
		}
		do(RescaleTable{Table: "shop.orders", Buckets: int32(2 + i%2)})
	}
	s := b.Publish()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	table, _ := s.Table("shop.orders")
	if n := len(table.History); n > MaxHistory || table.Epoch != MaxHistory+200 {
		t.Errorf("%d entries at epoch %d", n, table.Epoch)
	}
	for i, want := range []Epoch{7, 407, 807} {
		if got := table.History[i].Epoch; got != want {
			t.Errorf("history entry %d is of epoch %d, want %d, which has a partition", i, got, want)
		}
	}
}
