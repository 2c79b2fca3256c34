package routing

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
)

// testGuard fails the test on an error of Apply.
type testGuard struct {
	*Guard
	t testing.TB
}

func newTestGuard(t testing.TB) testGuard { return testGuard{NewGuard(), t} }

func (g testGuard) Apply(u GuardUpdate) {
	g.t.Helper()
	if err := g.Guard.Apply(u); err != nil {
		g.t.Fatal(err)
	}
}

func bucketOf(p catalog.PartitionID, b int32) TableBucket {
	return TableBucket{TableID: 1, PartitionID: p, Bucket: b}
}

func active(b TableBucket, count int32, le catalog.LeaderEpoch, be catalog.BucketEpoch) []Activation {
	return []Activation{{Bucket: b, Count: count, Leading: true, LeaderEpoch: le, BucketEpoch: be}}
}

func (g testGuard) check(what string, b TableBucket, count int32, want catalog.Code) {
	g.t.Helper()
	if got := g.Check(Request{b, count}); got != want {
		g.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// What was removed or dropped does not come back with an activation that was under way, and says what became of it.
func TestGuard_Gone(t *testing.T) {
	g := newTestGuard(t)
	b, c, d := bucketOf(7, 0), bucketOf(8, 0), TableBucket{TableID: 2, PartitionID: NoPartition}
	late := slices.Concat(active(b, 2, 3, 4), active(c, 2, 0, 0), active(d, 2, 0, 0))
	g.Apply(GuardUpdate{Activations: late})
	g.check("there", b, 2, catalog.Done)
	g.Apply(GuardUpdate{
		Removed: []TableBucket{b}, DroppedTables: []catalog.TableID{2},
		DroppedPartitions: map[catalog.TableID][]catalog.PartitionID{1: {8}},
	})
	for _, what := range []string{"gone", "late activation", "after a snapshot"} {
		if what == "late activation" {
			g.Apply(GuardUpdate{Activations: late, Epochs: map[catalog.TableID]catalog.Epoch{2: 0}})
		}
		if what == "after a snapshot" {
			g.Apply(GuardUpdate{Reset: true, Activations: late[1:]})
		}
		g.check(what+", removed", b, 2, catalog.ErrUnknownTableOrBucket)
		g.check(what+", partition dropped", c, 2, catalog.ErrPartitionNotExists)
		g.check(what+", table dropped", d, 2, catalog.ErrTableNotExist)
		g.check(what+", table dropped, no count", d, 0, catalog.ErrTableNotExist)
		g.check(what+", never heard of", bucketOf(99, 0), 2, catalog.ErrUnknownTableOrBucket)
	}
}

// A removed replica comes back with a newer state, or with the same one of a later step.
func TestGuard_Removed_Returns(t *testing.T) {
	g := newTestGuard(t)
	b := bucketOf(7, 0)
	g.Apply(GuardUpdate{Revision: 5, Activations: active(b, 2, 3, 4)})
	g.Apply(GuardUpdate{Revision: 6, Removed: []TableBucket{b}})
	g.Apply(GuardUpdate{Revision: 6, Activations: active(b, 2, 3, 4)})
	g.check("the same step", b, 2, catalog.ErrUnknownTableOrBucket)
	g.Apply(GuardUpdate{Revision: 7, Activations: active(b, 2, 3, 4)})
	g.check("a later step", b, 2, catalog.Done)
	g.Apply(GuardUpdate{Removed: []TableBucket{b}})
	g.Apply(GuardUpdate{Activations: active(b, 2, 3, 5)})
	g.check("a newer state", b, 2, catalog.Done)
}

// Dropped ids are remembered within bounds.
func TestGuard_Gone_Bounded(t *testing.T) {
	g := newTestGuard(t)
	ids := func(from int) map[catalog.TableID][]catalog.PartitionID {
		var list []catalog.PartitionID
		for i := range goneLimit {
			list = append(list, catalog.PartitionID(from+i))
		}
		return map[catalog.TableID][]catalog.PartitionID{1: list}
	}
	for i := range 4 {
		g.Apply(GuardUpdate{DroppedPartitions: ids(i * goneLimit)})
	}
	s := g.state.Load()
	if n := s.goneParts.n + s.olderParts.n; n > 2*goneLimit {
		t.Errorf("%d remembered", n)
	}
	g.check("the last", bucketOf(4*goneLimit-1, 0), 1, catalog.ErrPartitionNotExists)
	g.check("the last but 65,535", bucketOf(3*goneLimit, 0), 1, catalog.ErrPartitionNotExists)
	g.check("the first", bucketOf(0, 0), 1, catalog.ErrUnknownTableOrBucket)
}

// A partition's count never changes: another one is an error, also in a snapshot, and leaves the partition as it was
// while the rest of the step is taken.
func TestGuard_ImpossibleCount(t *testing.T) {
	for _, reset := range []bool{false, true} {
		g := newTestGuard(t)
		g.Apply(GuardUpdate{Activations: active(bucketOf(7, 0), 2, 1, 0)})
		u := GuardUpdate{Reset: reset, Activations: slices.Concat(active(bucketOf(7, 1), 4, 9, 0), active(bucketOf(8, 0), 4, 0, 0))}
		var wrong *CountError
		if err := g.Guard.Apply(u); !errors.As(err, &wrong) || wrong.Told != 4 || wrong.Known != 2 || wrong.Bucket != bucketOf(7, 1) {
			t.Errorf("reset %v: %v", reset, err)
		}
		want := catalog.Done
		if reset {
			want = catalog.ErrUnknownTableOrBucket
		}
		g.check("as before", bucketOf(7, 0), 2, want)
		g.check("the rest", bucketOf(8, 0), 4, catalog.Done)
	}
	g := newTestGuard(t)
	for _, n := range []int32{0, -1} {
		if err := g.Guard.Apply(GuardUpdate{Activations: active(bucketOf(7, 0), n, 0, 0)}); !errors.Is(err, ErrBucketCount) {
			t.Errorf("count %d: %v", n, err)
		}
	}
	if err := g.Guard.Apply(GuardUpdate{Activations: active(bucketOf(7, 2), 2, 0, 0)}); !errors.Is(err, ErrBucketRange) {
		t.Errorf("bucket outside: %v", err)
	}
	g.check("without a count nothing is there", bucketOf(7, 0), 0, catalog.ErrUnknownTableOrBucket)
}

// Of equal leader epochs the higher bucket epoch counts; what was told is kept.
func TestGuard_BucketEpoch(t *testing.T) {
	g := newTestGuard(t)
	b := bucketOf(7, 0)
	a := active(b, 2, 3, 4)
	a[0].ISR = []catalog.ServerID{1, 2}
	g.Apply(GuardUpdate{Activations: a})
	old := active(b, 2, 3, 3)
	old[0].Leading = false
	g.Apply(GuardUpdate{Activations: old})
	g.check("lower bucket epoch", b, 2, catalog.Done)
	if r, ok := g.Replica(b); !ok || r.BucketEpoch != 4 || len(r.ISR) != 2 || r.LeaderEpoch != 3 {
		t.Errorf("replica %+v, %v", r, ok)
	}
	next := active(b, 2, 4, 0)
	next[0].Leading = false
	g.Apply(GuardUpdate{Activations: next})
	g.check("higher leader epoch", b, 2, catalog.ErrNotLeaderOrFollower)
}

// Steps are taken in order; another incarnation needs a snapshot, and forgets what the old one dropped.
func TestGuard_StepOrder(t *testing.T) {
	g := newTestGuard(t)
	one, two := catalog.Incarnation{Number: 1}, catalog.Incarnation{Number: 2}
	b := bucketOf(7, 0)
	g.Apply(GuardUpdate{Incarnation: one, Revision: 9, Reset: true, Activations: active(b, 2, 0, 0)})
	g.Apply(GuardUpdate{Incarnation: one, Revision: 9, DroppedPartitions: map[catalog.TableID][]catalog.PartitionID{1: {7}}})
	for _, u := range []GuardUpdate{
		{Incarnation: one, Revision: 8}, {Incarnation: one, Revision: 8, Reset: true}, {Incarnation: two, Revision: 10},
	} {
		if err := g.Guard.Apply(u); !errors.Is(err, ErrGuardOrder) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	g.Apply(GuardUpdate{Incarnation: two, Revision: 3, Reset: true, Activations: active(b, 5, 0, 0)})
	g.check("another history", b, 5, catalog.Done)
	if err := g.Guard.Apply(GuardUpdate{Incarnation: one, Revision: 99, Reset: true}); !errors.Is(err, ErrGuardOrder) {
		t.Errorf("the old history: %v", err)
	}
}

// Codes and errors of a request come from one state, and a stale error carries all that a layout needs.
func TestGuard_Refusals_OneState(t *testing.T) {
	g := newTestGuard(t)
	a := active(bucketOf(7, 0), 2, 0, 0)
	a[0].Table, a[0].Partition = "d.t", "p"
	inc := catalog.Incarnation{Number: 4}
	g.Apply(GuardUpdate{Incarnation: inc, Revision: 12, Reset: true, Activations: a, Epochs: map[catalog.TableID]catalog.Epoch{1: 3}})
	r := g.CheckAll([]Request{{bucketOf(7, 0), 3}, {bucketOf(7, 0), 2}})
	g.Apply(GuardUpdate{Revision: 13, DroppedTables: []catalog.TableID{1}})
	want := StaleError{Incarnation: inc, Revision: 12, Bucket: bucketOf(7, 0), Table: "d.t", Partition: "p", Sent: 3, Count: 2, Epoch: 3}
	var stale *StaleError
	if r == nil || !errors.As(r.Err(0), &stale) || *stale != want || r.Err(1) != nil {
		t.Errorf("refusals %+v: %+v", r, stale)
	}
}

// S90: a client that sends no counts works until the first rescale, and is refused from then on.
func TestS90_OldClients(t *testing.T) {
	g := newTestGuard(t)
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 0}, Activations: active(bucketOf(7, 0), 2, 0, 0)})
	g.check("before", bucketOf(7, 0), 0, catalog.Done)
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 1}})
	g.check("after", bucketOf(7, 0), 0, catalog.ErrStaleMetadata)
	g.check("with a count", bucketOf(7, 0), 2, catalog.Done)
	g.Apply(GuardUpdate{Reset: true, Epochs: map[catalog.TableID]catalog.Epoch{1: 0}, Activations: active(bucketOf(7, 0), 2, 0, 0)})
	g.check("a snapshot does not lower the epoch", bucketOf(7, 0), 0, catalog.ErrStaleMetadata)
}

// Each table of a request is judged by its own epoch.
func TestS90_TwoTables(t *testing.T) {
	g := newTestGuard(t)
	other := TableBucket{TableID: 2, PartitionID: 8}
	g.Apply(GuardUpdate{
		Epochs:      map[catalog.TableID]catalog.Epoch{1: 0, 2: 1},
		Activations: slices.Concat(active(bucketOf(7, 0), 2, 0, 0), active(other, 2, 0, 0)),
	})
	r := g.CheckAll([]Request{{bucketOf(7, 0), 0}, {other, 0}, {bucketOf(7, 0), 0}})
	if r == nil || !slices.Equal(r.Codes, []catalog.Code{catalog.Done, catalog.ErrStaleMetadata, catalog.Done}) {
		t.Errorf("%+v", r)
	}
}

// 3,000 activations are fast in one step and one by one.
func TestGuard_ManyActivations(t *testing.T) {
	var list []Activation
	for i := range 3000 {
		list = append(list, active(bucketOf(catalog.PartitionID(i), 0), 1, 0, 0)...)
	}
	start := time.Now()
	one := newTestGuard(t)
	one.Apply(GuardUpdate{Activations: list})
	each := newTestGuard(t)
	for _, a := range list {
		each.Apply(GuardUpdate{Activations: []Activation{a}})
	}
	if took := time.Since(start); took > 5*time.Second { // 30 ms on a quiet machine
		t.Errorf("took %v", took)
	}
	for _, g := range []testGuard{one, each} {
		g.check("last", bucketOf(2999, 0), 1, catalog.Done)
		if n := g.state.Load().partitions.n; n != 3000 {
			t.Errorf("%d partitions", n)
		}
	}
}

// A request whose buckets are all good allocates nothing.
func TestGuard_CheckAll_NoAllocations(t *testing.T) {
	g := newTestGuard(t)
	g.Apply(GuardUpdate{Activations: slices.Concat(active(bucketOf(7, 0), 2, 0, 0), active(bucketOf(8, 0), 2, 0, 0))})
	list := []Request{{bucketOf(7, 0), 2}, {bucketOf(8, 0), 2}}
	if n := testing.AllocsPerRun(100, func() { g.CheckAll(list); g.Check(list[0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
