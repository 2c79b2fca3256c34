package routing

import (
	"errors"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// twoAndFour has p1 with 2 buckets and p2 with 4.
func twoAndFour(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.create("p1")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 4})
	w.create("p2")
	return w
}

// S88: partitions of 2 and 4 buckets have 6, and a layout that may miss one has no number at all.
func TestS88_Enumeration(t *testing.T) {
	w := twoAndFour(t)
	all, err := w.layout().TableBuckets()
	if err != nil || len(all) != 6 {
		t.Errorf("%v, %v", all, err)
	}
	per := map[catalog.PartitionID]int{}
	for _, b := range all {
		per[b.PartitionID]++
	}
	l := w.layout()
	for name, want := range map[string]int{"p1": 2, "p2": 4} {
		if p, _ := l.Partition(name); per[p.ID] != want {
			t.Errorf("%s has %d buckets", name, per[p.ID])
		}
	}
	if _, err := w.partial("p1", "p2").TableBuckets(); !errors.Is(err, ErrPartialLayout) {
		t.Errorf("a partial layout: %v", err)
	}
}

// S91: a writer's count is its partition's, an unknown one is loud, and so is a lake bucket that cannot be.
func TestS91_LakeBuckets(t *testing.T) {
	w := twoAndFour(t)
	l := w.layout()
	for name, want := range map[string]int32{"p1": 2, "p2": 4} {
		if n, err := l.BucketCount(name); err != nil || n != want {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if err := l.CheckLakeBucket(name, want-1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.CheckLakeBucket(name, want); !errors.Is(err, ErrBucketRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.CheckLakeBucket("p1", 3); !errors.Is(err, ErrBucketRange) {
		t.Errorf("bucket 3 of p1: %v", err)
	}
	if err := l.CheckLakeBucket("p1", -1); !errors.Is(err, ErrBucketRange) {
		t.Errorf("bucket -1 of p1: %v", err)
	}
	for _, name := range []string{"p3", ""} {
		if _, err := l.BucketCount(name); !errors.Is(err, catalog.ErrPartitionNotExists) {
			t.Errorf("%q: %v", name, err)
		}
	}
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	own := *tab
	own.LegacyCount = catalog.Opt[int32]{}
	broken, err := NewCompleteLayout(st.Incarnation(), st.Revision(), &own, []*catalog.Partition{{ID: 9, Table: tab.ID, Name: "p1", Legacy: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.BucketCount("p1"); !errors.Is(err, catalog.ErrStaleMetadata) {
		t.Errorf("unknown count: %v", err)
	}
	if _, err := broken.Enumerate(); !errors.Is(err, catalog.ErrStaleMetadata) {
		t.Errorf("unknown count enumerated: %v", err)
	}
	whole := *tab
	whole.PartitionKeys, whole.Buckets = nil, 7
	flat, err := NewLayout(st.Incarnation(), st.Revision(), &whole, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := flat.BucketCount(""); err != nil || n != 7 {
		t.Errorf("without partitions: %d, %v", n, err)
	}
}

// S89: at epoch 0 a missing past partition falls back once; on a rescaled table client and server refuse.
func TestS89_Historical(t *testing.T) {
	w := newWorld(t)
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	hist := &catalog.Partition{ID: 4, Table: tab.ID, Name: HistoricalPartition, Buckets: 3}
	layout := func(epoch catalog.Epoch, list ...*catalog.Partition) *Layout {
		own := *tab
		own.Epoch = epoch
		l, err := NewLayout(st.Incarnation(), st.Revision(), &own, list, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := layout(0, hist)
	p, err := l.Historical("2020", true)
	if err != nil || p.ID != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	r, err := l.RouteIn(p, row(3, "2020"), &Scratch{})
	if err != nil || r.Partition != 4 || r.Count != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, tt := range []struct {
		name string
		l    *Layout
		past bool
	}{{"2999", l, false}, {HistoricalPartition, l, true}, {"2020", layout(0), true}} {
		if _, err := tt.l.Historical(tt.name, tt.past); !errors.Is(err, catalog.ErrPartitionNotExists) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := layout(1, hist).Historical("2020", true); !errors.Is(err, ErrHistoricalRescaled) {
		t.Errorf("rescaled: %v", err)
	}
	g := newTestGuard(t)
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 0}, Activations: active(bucketOf(4, 0), 3, 0, 0)})
	req := Request{bucketOf(4, 0), 3}
	if got := g.CheckHistorical(req); got != catalog.Done {
		t.Errorf("server at epoch 0: %v", got)
	}
	if got := g.CheckHistorical(Request{bucketOf(9, 0), 3}); got != catalog.ErrUnknownTableOrBucket {
		t.Errorf("server without it: %v", got)
	}
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 1}})
	if got := g.CheckHistorical(req); got != catalog.ErrStaleMetadata {
		t.Errorf("server at epoch 1: %v", got)
	}
}
