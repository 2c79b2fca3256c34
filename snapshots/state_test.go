package snapshots

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// richRows returns rows of every kind that together keep every invariant.
func richRows() (cl catalog.Cluster, rows []catalog.Object) {
	cl = *filled[catalog.Cluster](1, false)
	cl.Level, cl.Coordinator, cl.Lease, cl.Wall = catalog.CurrentLevel, 4, 10_000, 1_700_000_000_000
	cl.NextTable, cl.NextPartition, cl.NextClient = 100, 1000, 50
	orders, pages, gone := filled[catalog.Table](2, false), filled[catalog.Table](3, false), filled[catalog.Table](4, false)
	for i, t := range []*catalog.Table{orders, pages, gone} {
		t.ID = catalog.TableID(3 * i)
		t.Import = catalog.ImportID{}
		t.Buckets, t.Epoch, t.Dropped, t.Placement = 3, 2, false, nil
		t.History = []catalog.LayoutEntry{{Epoch: 0, Buckets: 5, Revision: 10, Wall: 99}, {Epoch: 2, Buckets: 3, Revision: 20, Wall: 100}}
		t.LegacyCount = catalog.Some[int32](5)
	}
	orders.Path, pages.Path, gone.Path = "shop.orders", "shop.pages", "shop.gone"
	pages.PartitionKeys, pages.Placement = nil, placed(3)
	pages.Epoch, pages.History, pages.LegacyCount = 0, pages.History[1:], catalog.Opt[int32]{}
	pages.History[0].Epoch = 0
	gone.Dropped = true
	coming := filled[catalog.Import](16, false)
	coming.Tables, pages.Import = []catalog.TableID{pages.ID}, coming.ID
	db := filled[catalog.Database](5, false)
	db.Name = "shop"
	rows = append(rows, db, orders, pages, gone)
	for i, name := range []string{"a", "b", "c"} {
		p := filled[catalog.Partition](uint64(6+i), false)
		p.ID, p.Table, p.Name, p.Placement = catalog.PartitionID(9-i), orders.ID, name, nil
		p.Imported, p.Legacy, p.Buckets, p.Epoch = false, false, 3, 2
		rows = append(rows, p)
		switch name {
		case "a":
			p.Placement = placed(3)
		case "b":
			p.Imported, p.Legacy, p.Buckets, p.Epoch = true, true, 0, 0
		}
	}
	rows = append(rows, filled[catalog.Server](11, false), filled[catalog.Server](12, false), filled[catalog.Member](13, false),
		filled[catalog.KeyValue](14, false), filled[catalog.Counter](15, false), coming)
	table, part := filled[catalog.DroppedObject](17, false), filled[catalog.DroppedObject](18, false)
	table.Partition, table.Table, table.Path = catalog.Opt[catalog.PartitionID]{}, gone.ID, gone.Path
	part.Table, part.Partition.V = orders.ID, 500
	table.Bucket, part.Bucket = catalog.Opt[catalog.BucketID]{}, catalog.Opt[catalog.BucketID]{}
	moved := filled[catalog.DroppedObject](21, false)
	moved.Table, moved.Partition.V, moved.Bucket = orders.ID, 9, catalog.Some[catalog.BucketID](2)
	plan := filled[catalog.Rebalance](19, false)
	slices.SortFunc(plan.Moves, func(a, b catalog.Move) int { return a.Bucket.Compare(b.Bucket) })
	return cl, append(rows, table, part, moved, plan)
}

func placed(buckets int) *catalog.Placement {
	p := &catalog.Placement{}
	for i := range buckets {
		list := []catalog.ServerID{catalog.ServerID(i), catalog.ServerID(i + 1), catalog.ServerID(i + 2)}
		p.Replicas = append(p.Replicas, list)
		p.Buckets = append(p.Buckets, catalog.BucketState{Leader: list[0], LeaderEpoch: 1, BucketEpoch: 2, CoordinatorEpoch: 3, Ready: true, ISR: list})
	}
	p.Buckets[1].ISR = p.Replicas[1][:2:2]
	p.Buckets[1].Standby = []catalog.ServerID{3}
	return p
}

// richState has at least one row of every kind.
func richState(t testing.TB) *catalog.State {
	t.Helper()
	l := catalog.NewLoader()
	cl, rows := richRows()
	l.Cluster(cl)
	for _, r := range rows {
		if err := l.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	c := filled[catalog.Client](20, false)
	c.ID, c.Watermark = 7, 3
	if err := l.AddClient(c); err != nil {
		t.Fatal(err)
	}
	for seq := uint64(4); seq < 7; seq++ {
		if err := l.AddResult(7, seq, *filled[catalog.Result](seq, seq == 5)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := l.Finish(5000)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// richHistory has one change of every kind of row that events hold.
func richHistory() []*catalog.Event {
	cl, rows := richRows()
	first := &catalog.Event{Revision: 4998, Kind: catalog.KindNewTerm, Wall: 5, Actor: "ann", Changes: []catalog.Change{{Before: &cl, After: &cl}}}
	second := &catalog.Event{Revision: 5000, Kind: catalog.KindCreateTable}
	for i, r := range rows {
		switch i % 3 {
		case 0:
			second.Changes = append(second.Changes, catalog.Change{Before: r})
		case 1:
			second.Changes = append(second.Changes, catalog.Change{After: r})
		default:
			second.Changes = append(second.Changes, catalog.Change{Before: r, After: r})
		}
	}
	return []*catalog.Event{first, second}
}

func mustWrite(t testing.TB, s *catalog.State, history []*catalog.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, history); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
