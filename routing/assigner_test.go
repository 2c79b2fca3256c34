package routing

import (
	"errors"
	"slices"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// ledBy is a partition with leaders for some of its buckets.
func ledBy(id catalog.PartitionID, count int32, led ...int32) *LayoutPartition {
	p := &LayoutPartition{ID: id, Count: count, leaders: make([]Leader, count)}
	for i := range p.leaders {
		p.leaders[i].Server = catalog.NoServer
		if slices.Contains(led, int32(i)) {
			p.leaders[i].Server = 1
		}
	}
	return p
}

func mustAssign(t *testing.T, a *Assigners, p *LayoutPartition) int32 {
	t.Helper()
	b, err := a.Bucket(p)
	if err != nil || b < 0 || b >= p.Count {
		t.Fatalf("bucket %d, %v", b, err)
	}
	return b
}

// S65: round robin goes through the buckets that have leaders, in a circle.
func TestS65_RoundRobin(t *testing.T) {
	a, p := NewAssigners(RoundRobin, 7), ledBy(5, 4, 0, 2, 3)
	var got []int32
	for range 6 {
		got = append(got, mustAssign(t, a, p))
	}
	if !slices.Equal(got[:3], got[3:]) || slices.Contains(got, 1) || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 3 {
		t.Errorf("buckets %v", got)
	}
}

// S65: sticky keeps a bucket for a batch and goes to another one for the next, once however many callers say so.
func TestS65_Sticky(t *testing.T) {
	a, p := NewAssigners(Sticky, 7), ledBy(5, 4, 0, 2, 3)
	for range 20 {
		first := mustAssign(t, a, p)
		for range 5 {
			if b := mustAssign(t, a, p); b != first || b == 1 {
				t.Fatalf("bucket %d within a batch of %d", b, first)
			}
		}
		a.NewBatch(p, first)
		second := mustAssign(t, a, p)
		a.NewBatch(p, first)
		if b := mustAssign(t, a, p); second == first || b != second {
			t.Fatalf("after a batch for %d: %d, then %d", first, second, b)
		}
	}
	one := ledBy(6, 4, 2)
	a.NewBatch(one, mustAssign(t, a, one))
	if b := mustAssign(t, a, one); b != 2 {
		t.Errorf("the only bucket with a leader is 2, not %d", b)
	}
}

// S65: a partition that was read again, or is another one, begins anew with its own buckets.
func TestS65_ReadAgain(t *testing.T) {
	a := NewAssigners(Sticky, 3)
	old := ledBy(5, 4, 3)
	if b := mustAssign(t, a, old); b != 3 {
		t.Errorf("bucket %d", b)
	}
	again := ledBy(5, 4, 1)
	if b := mustAssign(t, a, again); b != 1 {
		t.Errorf("bucket %d of the old reading", b)
	}
	if b := mustAssign(t, a, ledBy(6, 2, 0)); b != 0 {
		t.Errorf("bucket %d of another partition", b)
	}
	if n := len(a.mu.byID); n != 2 {
		t.Errorf("%d assigners", n)
	}
	a.Forget(5)
	if n := len(a.mu.byID); n != 1 {
		t.Errorf("%d assigners", n)
	}
	mustAssign(t, a, ledBy(7, 3)) // none has a leader
	if _, err := a.Bucket(&LayoutPartition{Err: catalog.ErrStaleMetadata}); !errors.Is(err, catalog.ErrStaleMetadata) {
		t.Errorf("no count: %v", err)
	}
}

// S65: rows of a keyed table go by their key, those of a table without key by the assigner.
func TestS65_RouteAny(t *testing.T) {
	w := newWorld(t)
	w.create("p")
	a := NewAssigners(RoundRobin, 1)
	keyed := w.layout()
	want := w.route(3, "p")
	for range 5 {
		if r, err := keyed.RouteAny(row(3, "p"), &Scratch{}, a); err != nil || r.Bucket != want.Bucket {
			t.Errorf("%+v, %v", r, err)
		}
	}
	w.must(catalog.CreateTable{
		Table: "d.log", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}}, Buckets: catalog.Some[int32](3),
	})
	l, err := LayoutOf(w.b.Publish(), "d.log")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int32]bool{}
	for range 3 {
		r, err := l.RouteAny([]Value{Int(1)}, &Scratch{}, a)
		if err != nil || r.Count != 3 || r.Partition != NoPartition {
			t.Fatalf("%+v, %v", r, err)
		}
		seen[r.Bucket] = true
	}
	if len(seen) != 3 {
		t.Errorf("buckets %v", seen)
	}
}
