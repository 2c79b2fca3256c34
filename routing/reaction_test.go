package routing

import (
	"errors"
	"testing"

	"github.com/stavedb/stave/catalog"
)

func (w *world) route(a int32, dt string) Route {
	w.t.Helper()
	r, err := w.layout().Route(row(a, dt), &Scratch{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Every code that another client would retry is retried here, except a stale route.
func TestReact_Vectors(t *testing.T) {
	type row struct {
		Code      catalog.Code `json:"code"`
		Retriable bool         `json:"retriable"`
		Invalid   bool         `json:"invalid_metadata"`
	}
	for _, r := range readVectors[row](t, "errors.json", 75).Rows {
		got := React(r.Code)
		if got.Retry != r.Retriable || got.Refresh != r.Invalid || got.Fail == (r.Retriable || r.Code == catalog.Done) {
			t.Errorf("%v: %+v, want retriable %v, invalid metadata %v", r.Code, got, r.Retriable, r.Invalid)
		}
	}
}

// S84: a stale lookup fails at once and forgets the partition, a leader change is retried silently.
func TestS84_Reactions(t *testing.T) {
	for code, want := range map[catalog.Code]Reaction{
		catalog.ErrStaleMetadata:       {Fail: true, DropPartition: true},
		catalog.ErrPartitionNotExists:  {Fail: true, DropPartition: true},
		catalog.ErrTableNotExist:       {Fail: true, DropTable: true},
		catalog.ErrNotLeaderOrFollower: {Refresh: true, Retry: true},
		catalog.Done:                   {},
		catalog.Code(31_000):           {Fail: true},
	} {
		if got := React(code); got != want {
			t.Errorf("%v: %+v, want %+v", code, got, want)
		}
	}
}

// S83b: a count that is too large names no bucket; the refresh shows the real one, and the request fails as stale.
func TestS83b_CountTooLarge(t *testing.T) {
	w := newWorld(t)
	w.create("p1")
	pinned := w.route(2, "p1")
	pinned.Count, pinned.Bucket = 4, 2
	g := guardOf(w.layout())
	code := g.Check(pinned.Request())
	if code != catalog.ErrUnknownTableOrBucket || !React(code).Refresh {
		t.Fatalf("%v: %+v", code, React(code))
	}
	var stale *StaleError
	if err := AfterRefresh(pinned, w.layout(), 1, 10); !errors.As(err, &stale) || stale.Sent != 4 || stale.Count != 2 || stale.Partition != "p1" || stale.Table != "d.t" {
		t.Errorf("after the refresh: %v", err)
	}
	if err := CheckReroute(pinned, w.route(2, "p1")); err != nil {
		t.Errorf("the right route: %v", err)
	}
	if err := CheckReroute(pinned, pinned); !errors.Is(err, ErrSameRoute) {
		t.Errorf("the same route: %v", err)
	}
}

// A request with the right count is sent again until its attempts are used up, and not once its partition is another.
func TestAfterRefresh(t *testing.T) {
	w := newWorld(t)
	w.create("p1")
	pinned := w.route(2, "p1")
	if err := AfterRefresh(pinned, w.layout(), 2, 3); err != nil {
		t.Error(err)
	}
	if err := AfterRefresh(pinned, w.layout(), 3, 3); !errors.Is(err, ErrAttempts) {
		t.Errorf("attempts: %v", err)
	}
	w.drop("p1")
	w.create("p1")
	if err := AfterRefresh(pinned, w.layout(), 1, 3); !errors.Is(err, catalog.ErrPartitionNotExists) {
		t.Errorf("created again: %v", err)
	}
	other := pinned
	other.Table++
	if err := AfterRefresh(other, w.layout(), 1, 3); !errors.Is(err, catalog.ErrTableNotExist) {
		t.Errorf("another table: %v", err)
	}
}

// S85: the count is pinned when a row is routed, and rows of different counts never share a batch.
func TestS85_PinnedCount(t *testing.T) {
	w := newWorld(t)
	w.create("p1")
	first := w.route(3, "p1")
	other := first
	other.Count = 4
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 4})
	if r := first.Request(); r.Count != 2 || r.Bucket.Bucket != first.Bucket {
		t.Errorf("request %+v", r)
	}
	if again := w.route(3, "p1"); first.BatchKey() != again.BatchKey() {
		t.Error("routes of one count do not share a batch")
	}
	if first.BatchKey() == other.BatchKey() {
		t.Error("routes of two counts share a batch")
	}
}
