package routing

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// Answers in each of 24 orders leave the same layout in the cache.
func TestLayoutCache_AnyOrder(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	w.create("b")
	all := []*Layout{w.partial("b")}
	w.create("c")
	all = append(all, w.layout())
	w.drop("a")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 5})
	w.create("a")
	all = append(all, w.partial("a"))
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 7})
	all = append(all, w.partial("c"))
	orders := 0
	permute(all, 0, func(order []*Layout) {
		orders++
		c := NewLayoutCache(8, 100)
		for _, l := range order {
			c.Put(l)
		}
		l, ok := c.Get("d.t")
		if !ok || names(l) != "b/2 c/2 a/5 " || l.Table().Buckets != 7 {
			t.Errorf("%q", names(l))
		}
	})
	if orders != 24 {
		t.Errorf("%d orders", orders)
	}
}

// cacheLayout is a layout of another path and id with n partitions.
func cacheLayout(t testing.TB, inc uint64, id, n int) *Layout {
	t.Helper()
	w := newWorld(t)
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	own := *tab
	own.ID, own.Path = catalog.TableID(id), fmt.Sprint("d.t", id)
	var list []*catalog.Partition
	for i := range n {
		list = append(list, &catalog.Partition{ID: catalog.PartitionID(id*1000 + i), Table: own.ID, Name: fmt.Sprint("p", i), Buckets: 2})
	}
	l, err := NewLayout(catalog.Incarnation{Number: inc}, 9, &own, list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The cache holds no more tables and partitions than it may; what is used stays.
func TestLayoutCache_Bounded(t *testing.T) {
	c := NewLayoutCache(4, 25)
	c.Put(cacheLayout(t, 1, 0, 5))
	for i := 1; i < 40; i++ {
		if _, ok := c.Get("d.t0"); !ok && i < 3 {
			t.Errorf("a table in use is gone after %d", i)
		}
		c.Put(cacheLayout(t, 1, i, 5))
		if n := len(*c.tables.Load()); n > 4 || c.mu.partitions > 25 {
			t.Fatalf("%d tables, %d partitions", n, c.mu.partitions)
		}
		if _, ok := c.Get(fmt.Sprint("d.t", i)); !ok {
			t.Fatalf("the new table %d is not kept", i)
		}
	}
	c.Put(cacheLayout(t, 1, 99, 60))
	if l, ok := c.Get("d.t99"); !ok || l.Len() != 60 || len(*c.tables.Load()) != 1 {
		t.Error("a layout that is too large is not kept alone")
	}
}

// A newer incarnation empties the cache, an older one changes nothing, and dropped ids stay away.
func TestLayoutCache_Gone(t *testing.T) {
	c := NewLayoutCache(4, 100)
	one := cacheLayout(t, 1, 3, 2)
	c.Put(one)
	c.WithoutTable("d.t3", 3)
	c.Put(one)
	if _, ok := c.Get("d.t3"); ok {
		t.Error("a dropped table came back")
	}
	c.Put(cacheLayout(t, 2, 3, 2))
	if l, ok := c.Get("d.t3"); !ok || l.Incarnation().Number != 2 {
		t.Error("the new incarnation is not kept")
	}
	c.Put(one)
	if l, _ := c.Get("d.t3"); l.Incarnation().Number != 2 {
		t.Error("an old incarnation replaced the new one")
	}
	c.Put(cacheLayout(t, 1, 4, 2))
	if _, ok := c.Get("d.t4"); ok {
		t.Error("a table of an old incarnation is kept")
	}
	c.WithoutDropped("d.t3", "p0", 3000)
	c.Put(cacheLayout(t, 2, 3, 2))
	if l, _ := c.Get("d.t3"); l.Len() != 1 || c.mu.partitions != 1 {
		t.Errorf("a dropped partition came back: %q of %d", names(l), c.mu.partitions)
	}
	c.Without("d.t3", 3001)
	if l, _ := c.Get("d.t3"); l.Len() != 0 {
		t.Errorf("%q is still known", names(l))
	}
}

// Readers and writers may meet.
func TestLayoutCache_Concurrent(t *testing.T) {
	c := NewLayoutCache(2, 10)
	var list []*Layout
	for i := range 4 {
		list = append(list, cacheLayout(t, 1, i, 3))
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				c.Put(list[(g+i)%4])
				c.Get("d.t1")
			}
		})
	}
	wg.Wait()
}

func TestLayoutCache_NoAllocations(t *testing.T) {
	c := NewLayoutCache(4, 100)
	c.Put(cacheLayout(t, 1, 3, 2))
	if n := testing.AllocsPerRun(100, func() { c.Get("d.t3") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLayoutCache_Hit(b *testing.B) {
	c := NewLayoutCache(4, 100)
	c.Put(cacheLayout(b, 1, 3, 2))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.Get("d.t3"); !ok {
			b.Fatal("gone")
		}
	}
}
