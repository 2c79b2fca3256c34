package routing

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
)

// partial returns a layout of some partitions at the current state.
func (w *world) partial(names ...string) *Layout {
	w.t.Helper()
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	var list []*catalog.Partition
	st.Partitions(tab.ID, "", func(p *catalog.Partition) bool {
		for _, n := range names {
			if p.Name == n {
				list = append(list, p)
			}
		}
		return true
	})
	var servers []*catalog.Server
	st.Servers(func(s *catalog.Server) bool {
		servers = append(servers, s)
		return true
	})
	l, err := NewLayout(st.Incarnation(), st.Revision(), tab, list, servers)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) drop(name string) {
	w.t.Helper()
	w.must(catalog.DropPartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: name}}}})
}

func names(l *Layout) string {
	out := ""
	for _, p := range l.Known() {
		out += fmt.Sprintf("%s/%d ", p.Name, p.Count)
	}
	return out
}

// Answers put together in any order give the same layout: an older one never replaces a newer, yet adds what only it
// names.
func TestLayout_With_AnyOrder(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	w.create("b")
	all := []*Layout{w.partial("b")} // only this one names b
	w.create("c")
	all = append(all, w.partial("a", "c"))
	w.drop("a")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 5})
	w.create("a")
	all = append(all, w.partial("a"))
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 7})
	all = append(all, w.partial("c"))
	permute(all, 0, func(order []*Layout) {
		held := order[0]
		for _, l := range order[1:] {
			held = held.With(l)
		}
		if got := names(held); got != "b/2 c/2 a/5 " || held.Table().Buckets != 7 || held.Revision() != w.rev || held.Complete() {
			t.Errorf("%q at %d, %d by default", got, held.Revision(), held.Table().Buckets)
		}
	})
}

// A complete layout removes what was dropped, and older answers do not bring it back; only then may all be asked for.
func TestLayout_With_Complete(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	w.create("b")
	early, whole := w.partial("a", "b"), w.layout()
	w.drop("a")
	late := w.layout()
	w.create("c")
	newest := w.partial("c")
	permute([]*Layout{early, whole, late, newest}, 0, func(order []*Layout) {
		held := order[0]
		for _, l := range order[1:] {
			held = held.With(l)
		}
		if got := names(held); got != "b/2 c/2 " {
			t.Errorf("known %q", got)
		}
		if _, err := held.Partitions(); !errors.Is(err, ErrPartialLayout) {
			t.Errorf("a layout with a later part enumerates all: %v", err)
		}
	})
	full := newest.With(early).With(w.layout())
	if list, err := full.Partitions(); err != nil || len(list) != 2 {
		t.Errorf("complete: %v, %v", list, err)
	}
	if _, err := early.Partitions(); !errors.Is(err, ErrPartialLayout) {
		t.Errorf("partial: %v", err)
	}
}

// Another incarnation or table replaces all, and the older one nothing.
func TestLayout_With_Incarnations(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	old := w.layout()
	next := *old
	next.incarnation.Number++
	next.revision = 1
	if got := old.With(&next); got != &next {
		t.Error("a new incarnation does not replace")
	}
	if got := next.With(old); got != &next {
		t.Error("an old incarnation replaces")
	}
	again, table := *old, *old.table
	table.ID += 3
	again.table, again.revision = &table, 1
	if old.With(&again) != &again || again.With(old) != &again {
		t.Error("an older table of the path replaces")
	}
}

// A layout that was told in doubt or dropped does not come back with an answer that was under way.
func TestLayout_Without_LateAnswer(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	old := w.partial("a")
	p, _ := old.Partition("a")
	w.create("b")
	held := w.layout()
	doubt := held.Without(p.ID)
	if doubt.Complete() || names(doubt.With(old)) != "b/2 " {
		t.Errorf("a late answer brought back %q", names(doubt.With(old)))
	}
	if got := names(doubt.With(w.partial("a"))); got != "a/2 b/2 " {
		t.Errorf("a fresh answer at the same revision: %q", got)
	}
	dropped := held.WithoutDropped("a", p.ID)
	if got := names(dropped.With(w.layout())); got != "b/2 " {
		t.Errorf("a dropped id came back: %q", got)
	}
	if got := names(doubt.WithoutDropped("a", p.ID).With(w.layout())); got != "b/2 " {
		t.Errorf("a dropped id that was not known came back: %q", got)
	}
	parts := old.With(w.partial("b")).Without(p.ID) // never was complete
	if got := names(parts.With(old)); got != "b/2 " {
		t.Errorf("a late answer brought back %q of a partial layout", got)
	}
	w.drop("a")
	w.create("a")
	if got := names(dropped.With(w.partial("a"))); got != "b/2 a/2 " {
		t.Errorf("a new partition of the name: %q", got)
	}
}

// Floors that are too many become one: what was read before it still does not come back.
func TestLayout_Without_Bounded(t *testing.T) {
	w := newWorld(t)
	w.create("a")
	old := w.partial("a")
	w.create("b")
	held := w.layout()
	p, _ := held.Partition("a")
	held = held.Without(p.ID)
	for i := range floorLimit + 10 {
		held = held.WithoutDropped(fmt.Sprint("x", i), catalog.PartitionID(1000+i))
	}
	if n := held.parts.floors.n; n > floorLimit {
		t.Errorf("%d floors", n)
	}
	if got := names(held.With(old)); got != "b/2 " {
		t.Errorf("a late answer brought back %q", got)
	}
}

// Leaders stay with their partition when a later answer names other servers only.
func TestLayout_Leaders(t *testing.T) {
	w := newWorld(t)
	w.must(catalog.RegisterServer{ID: 1, Listeners: []string{"h:1"}, TTL: 10_000, DirectoryID: "x"})
	w.create("a")
	w.create("b")
	first := w.partial("a")
	p, _ := first.Partition("a")
	if lead, ok := p.Leader(0); !ok || lead.Server != 1 || len(lead.Listeners) != 1 {
		t.Fatalf("leader %+v, %v", lead, ok)
	}
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	later, err := NewLayout(st.Incarnation(), st.Revision()+1, tab, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := first.With(later).Route(row(1, "a"), &Scratch{})
	if err != nil {
		t.Fatal(err)
	}
	if lead, ok := r.Leader(); !ok || lead.Server != 1 || len(lead.Listeners) != 1 || r.Name() != "a" {
		t.Errorf("route %+v led by %+v, %v", r, lead, ok)
	}
	if _, ok := p.Leader(2); ok {
		t.Error("a bucket that does not exist has a leader")
	}
}

// Resolving 10,000 partitions one by one costs about as much each, however many are known.
func TestLayout_With_ManySmall(t *testing.T) {
	w := newWorld(t)
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	held := w.partial()
	const n = 10_000
	start := time.Now()
	for i := range n {
		p := &catalog.Partition{ID: catalog.PartitionID(i), Table: tab.ID, Name: fmt.Sprint("p", i), Buckets: 2}
		l, err := NewLayout(st.Incarnation(), st.Revision()+catalog.Revision(i), tab, []*catalog.Partition{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		held = held.With(l)
	}
	if took := time.Since(start); took > 15*time.Second { // 0.2 s on a quiet machine; copying all took minutes
		t.Errorf("took %v", took)
	}
	if held.Len() != n || len(held.Known()) != n {
		t.Errorf("knows %d", held.Len())
	}
	for _, i := range []int{0, 1, 4999, n - 1} {
		if p, ok := held.Partition(fmt.Sprint("p", i)); !ok || p.ID != catalog.PartitionID(i) {
			t.Errorf("p%d: %+v", i, p)
		}
	}
}
