package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

const orders = "shop.orders"

// withTable makes a partitioned table with partitions p0, p1, ...
func (f *fake) withTable(partitions int) *fake {
	for _, cmd := range []catalog.Command{
		catalog.CreateDatabase{Name: "shop"},
		catalog.CreateTable{
			Table: orders, Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
			PartitionKeys: []string{"dt"}, Buckets: catalog.Some[int32](4),
		},
	} {
		if r := f.apply(api.Ref{}, cmd); r.Err() != nil {
			f.t.Fatal(r.Err())
		}
	}
	for i := range partitions {
		f.partition(fmt.Sprintf("p%d", i))
	}
	return f
}

func (f *fake) partition(name string) {
	r := f.apply(api.Ref{}, catalog.CreatePartitions{Table: orders, Specs: []catalog.PartitionSpec{{{Key: "dt", Value: name}}}})
	if r.Err() != nil {
		f.t.Fatal(r.Err())
	}
}

func newCache(t testing.TB, c *Client, o LayoutCacheOptions) *LayoutCache {
	t.Helper()
	l, err := c.NewLayoutCache(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// In whatever order four answers arrive, the cache ends at the newest, and never
// goes back on the way.
func TestLayoutCache_AllOrders(t *testing.T) {
	type answer struct {
		inc catalog.Incarnation
		rev catalog.Revision
		id  catalog.TableID
		n   int32
	}
	one, two := catalog.Incarnation{Number: 1}, catalog.Incarnation{Number: 2}
	answers := []answer{{one, 10, 1, 4}, {one, 12, 2, 8}, {two, 11, 2, 2}, {two, 13, 3, 6}}
	table := func(a answer) TableLayout {
		return TableLayout{
			Table:      &catalog.Table{ID: a.id, Path: orders, Buckets: a.n, PartitionKeys: []string{"dt"}},
			Partitions: []*catalog.Partition{{ID: catalog.PartitionID(a.rev), Table: a.id, Name: "p", Buckets: a.n}},
		}
	}
	var permute func(done, rest []answer)
	count := 0
	permute = func(done, rest []answer) {
		if len(rest) == 0 {
			count++
			for _, size := range []int{1, 2, 8} {
				l := newCache(t, &Client{}, LayoutCacheOptions{Size: size})
				var last position
				for _, a := range done {
					l.learn(orders, []string{"p"}, table(a), Meta{Incarnation: a.inc, Revision: a.rev})
					hit := l.hit(orders, "p")
					if hit == nil || hit.at().compare(last) < 0 {
						t.Fatalf("order %v: %+v after %+v", done, hit, last)
					}
					last = hit.at()
				}
				if hit := l.hit(orders, "p"); hit.Buckets != 6 || hit.Table.ID != 3 || l.Len() != 1 {
					t.Errorf("order %v ends at %+v", done, hit)
				}
			}
			return
		}
		for i := range rest {
			next := append([]answer{}, rest[:i]...)
			permute(append(append([]answer{}, done...), rest[i]), append(next, rest[i+1:]...))
		}
	}
	permute(nil, answers)
	if count != 24 {
		t.Errorf("%d orders", count)
	}
}

// reads counts reads of layouts.
func (f *fake) reads() *int {
	n := new(int)
	f.hook(func(_ *fakeNode, req any) error {
		if _, ok := req.(*pb.GetLayoutRequest); ok {
			*n++
		}
		return nil
	}, nil)
	return n
}

// A thousand callers that find one layout stale cause one read.
func TestLayoutCache_OneRefresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2).withTable(3)
		c := f.client()
		l := newCache(t, c, LayoutCacheOptions{})
		old, err := l.Get(t.Context(), orders, "p1")
		if err != nil || old.Buckets != 4 {
			t.Fatalf("%+v, %v", old, err)
		}
		f.apply(api.Ref{}, catalog.DropPartitions{Table: orders, Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "p1"}}}})
		f.apply(api.Ref{}, catalog.RescaleTable{Table: orders, Buckets: 8})
		f.partition("p1")
		n := f.reads()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				got, err := l.Refresh(t.Context(), old)
				if err != nil || got.Buckets != 8 || got.Partition.ID == old.Partition.ID {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		if *n != 1 {
			t.Errorf("%d reads", *n)
		}
	})
}

// Names that are missed while a read is under way are read together, after it.
func TestLayoutCache_OneReadPerTable(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).withTable(50)
		c := f.client()
		l := newCache(t, c, LayoutCacheOptions{Size: 20})
		n := 0
		f.hook(func(_ *fakeNode, req any) error {
			if _, ok := req.(*pb.GetLayoutRequest); ok {
				n++
				time.Sleep(time.Millisecond) // until all callers wait
			}
			return nil
		}, nil)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				got, err := l.Get(t.Context(), orders, fmt.Sprintf("p%d", i))
				if err != nil || got.Partition.Name != fmt.Sprintf("p%d", i) {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wg.Wait()
		// One read for the first, one for those that came meanwhile.
		if n != 2 || l.Len() != 20 {
			t.Errorf("%d reads, %d cached", n, l.Len())
		}
	})
}

// Small caches work, and an absent object is asked for once in its time.
func TestLayoutCache_SizesAndAbsence(t *testing.T) {
	for size, wantReads := range map[int]int{-1: 6, 1: 6, 2: 6, 4: 2} {
		inBubble(t, func(t *testing.T) {
			f := newFake(t, 1).withTable(3)
			l := newCache(t, f.client(), LayoutCacheOptions{Size: size})
			n := f.reads()
			for i := range 6 {
				name := []string{"p0", "p1", "p2", "", "p0", "p2"}[i]
				got, err := l.Get(t.Context(), orders, name)
				if err != nil || got.Buckets != 4 || got.name() != name {
					t.Errorf("size %d: %q: %+v, %v", size, name, got, err)
				}
				if l.Len() > max(size, 0) {
					t.Errorf("size %d holds %d", size, l.Len())
				}
			}
			if size == 4 && *n > 4 || size < 1 && *n != wantReads {
				t.Errorf("size %d: %d reads", size, *n)
			}
			*n = 0
			for range 100 {
				if _, err := l.Get(t.Context(), orders, "none"); !errors.Is(err, catalog.ErrPartitionNotExists) {
					t.Errorf("absent partition: %v", err)
				}
				if _, err := l.Get(t.Context(), "shop.none", "p"); !errors.Is(err, catalog.ErrTableNotExist) {
					t.Errorf("absent table: %v", err)
				}
			}
			if *n != 2 {
				t.Errorf("%d reads for 200 questions", *n)
			}
			f.partition("none")
			time.Sleep(DefaultAbsentTime)
			if _, err := l.Get(t.Context(), orders, "none"); err != nil {
				t.Errorf("it is there now: %v", err)
			}
			l.Forget(orders)
			synctest.Wait()
			if l.Len() != 0 {
				t.Errorf("%d left after Forget", l.Len())
			}
		})
	}
}

// A hit allocates nothing.
func TestLayoutCache_HitAllocs(t *testing.T) {
	l := hitCache(t)
	if n := testing.AllocsPerRun(100, func() { _, _ = l.Get(context.Background(), orders, "p500") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func hitCache(t testing.TB) *LayoutCache {
	l := newCache(t, &Client{}, LayoutCacheOptions{})
	got := TableLayout{Table: &catalog.Table{Path: orders}}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("p%d", i))
		got.Partitions = append(got.Partitions, &catalog.Partition{Name: names[i], Buckets: 4})
	}
	l.learn(orders, names, got, Meta{Incarnation: catalog.Incarnation{Number: 1}, Revision: 1})
	return l
}

func BenchmarkLayoutCache_Hit(b *testing.B) {
	l := hitCache(b)
	for b.Loop() {
		_, _ = l.Get(context.Background(), orders, "p500")
	}
}
