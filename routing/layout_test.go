package routing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// world is a catalog that is changed by commands.
type world struct {
	t   testing.TB
	b   *catalog.Batch
	rev catalog.Revision
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, b: catalog.NewState().Begin()}
	w.do(catalog.ActivateIncarnation{ClusterID: "c", Incarnation: catalog.Incarnation{Number: 1, Random: 1}, Level: 1})
	w.do(catalog.CreateDatabase{Name: "d"})
	w.do(catalog.CreateTable{
		Table: "d.t", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: catalog.Some[int32](2),
	})
	return w
}

func (w *world) do(c catalog.Command) catalog.Result {
	w.rev++
	r, _ := w.b.Apply(w.rev, catalog.Envelope{Wall: 1}, c)
	return r
}

func (w *world) must(c catalog.Command) {
	w.t.Helper()
	if r := w.do(c); r.Err() != nil {
		w.t.Fatal(r.Err())
	}
}

func (w *world) create(name string) {
	w.must(catalog.CreatePartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: name}}}})
}

func (w *world) layout() *Layout {
	w.t.Helper()
	l, err := LayoutOf(w.b.Publish(), "d.t")
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func row(a int32, dt string) []Value { return []Value{Int(a), String(dt)} }

// TestS70_Rescale: old partitions keep their counts, each row goes to the bucket of its own partition's count.
func TestS70_Rescale(t *testing.T) {
	w := newWorld(t)
	w.create("p1")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 4})
	w.create("p2")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 3})
	w.create("p3")
	l := w.layout()
	var s Scratch
	for _, tc := range []struct {
		partition string
		count     int32
		want      []int32
	}{
		{"p1", 2, []int32{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1}},
		{"p2", 4, []int32{0, 2, 3, 0, 2, 1, 2, 0, 3, 2, 0, 1}},
		{"p3", 3, []int32{0, 0, 1, 1, 0, 0, 0, 1, 2, 1, 2, 1}},
	} {
		for i, want := range tc.want {
			r, err := l.Route(row(int32(i+1), tc.partition), &s)
			if err != nil || r.Bucket != want || r.Count != tc.count || r.Epoch != 2 {
				t.Errorf("%s key %d: %+v, %v, want bucket %d of %d", tc.partition, i+1, r, err, want, tc.count)
			}
		}
	}
	if _, err := l.Route(row(1, "p4"), &s); !errors.Is(err, catalog.ErrPartitionNotExists) {
		t.Errorf("unknown partition: %v", err)
	}
	e, err := l.Explain(row(3, "p1"))
	if err != nil || e.Route.Bucket != 1 || e.Key != "03" || e.Why == "" {
		t.Errorf("explain: %+v, %v", e, err)
	}
}

// TestS71_Shrink: fewer buckets are for new partitions only. Rows of an old partition stay in buckets that new ones do
// not have, and neither is served with the count of the other.
func TestS71_Shrink(t *testing.T) {
	w := newWorld(t)
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 4})
	w.create("old")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 2})
	w.create("new")
	l := w.layout()
	g, s := guardOf(l), Scratch{}
	for _, tc := range []struct {
		partition    string
		count, other int32
		want         []int32
		refused      map[int32]catalog.Code // by bucket, with the other count
	}{
		{"old", 4, 2, []int32{0, 2, 3, 0, 2, 1, 2, 0, 3, 2, 0, 1}, nil},
		{"new", 2, 4, []int32{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1}, map[int32]catalog.Code{2: catalog.ErrUnknownTableOrBucket, 3: catalog.ErrUnknownTableOrBucket}},
	} {
		for i, want := range tc.want {
			r, err := l.Route(row(int32(i+1), tc.partition), &s)
			if err != nil || r.Bucket != want || r.Count != tc.count || g.Check(r.Request()) != catalog.Done {
				t.Errorf("%s key %d: %+v, %v, want bucket %d of %d", tc.partition, i+1, r, err, want, tc.count)
			}
		}
		p, _ := l.Partition(tc.partition)
		for b := range max(tc.count, tc.other) {
			want := catalog.ErrStaleMetadata
			if code, ok := tc.refused[b]; ok {
				want = code
			}
			req := Request{Bucket: TableBucket{TableID: l.Table().ID, PartitionID: p.ID, Bucket: b}, Count: tc.other}
			if got := g.Check(req); got != want {
				t.Errorf("%s bucket %d with %d: %v, want %v", tc.partition, b, tc.other, got, want)
			}
		}
	}
	if all, err := l.TableBuckets(); err != nil || len(all) != 6 {
		t.Errorf("%d buckets, %v, want 4 and 2", len(all), err)
	}
}

// TestS74_NoGuess: a partition without a count at an epoch above 0 is never routed.
func TestS74_NoGuess(t *testing.T) {
	w := newWorld(t)
	w.create("p1")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 4})
	st := w.b.Publish()
	tab, _ := st.Table("d.t")
	broken := *tab
	broken.LegacyCount = catalog.Opt[int32]{}
	l, err := NewLayout(st.Incarnation(), st.Revision(), &broken, []*catalog.Partition{{ID: 9, Table: tab.ID, Name: "p1", Legacy: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var s Scratch
	if _, err := l.Route(row(1, "p1"), &s); !errors.Is(err, catalog.ErrStaleMetadata) {
		t.Errorf("routed without a count: %v", err)
	}
}

// activations feeds a guard of a server that leads everything.
func activations(l *Layout) []Activation {
	var out []Activation
	for _, p := range l.Known() {
		for b := range p.Count {
			out = append(out, Activation{Bucket: TableBucket{TableID: l.Table().ID, PartitionID: p.ID, Bucket: b}, Count: p.Count, Leading: true})
		}
	}
	return out
}

func guardOf(l *Layout) *Guard {
	g := NewGuard()
	if err := g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{l.Table().ID: l.Table().Epoch}, Activations: activations(l)}); err != nil {
		panic(err)
	}
	return g
}

func request(r Route) Request {
	return Request{Bucket: TableBucket{TableID: r.Table, PartitionID: r.Partition, Bucket: r.Bucket}, Count: r.Count}
}

// Layouts of every age route against a guard of the newest state: whatever is accepted is the one bucket of the row,
// for ever.
func TestRoutes_OneBucketForEver(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(t)
	names := []string{"p0", "p1", "p2"}
	layouts := []*Layout{w.layout()}
	home := map[string]int32{} // by partition id and key
	var s Scratch
	accepted, refused := 0, 0
	for range 400 {
		switch name := names[r.IntN(3)]; r.IntN(6) {
		case 0, 1:
			w.do(catalog.CreatePartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: name}}}})
		case 2:
			w.do(catalog.DropPartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: name}}}})
		case 3:
			w.do(catalog.RescaleTable{Table: "d.t", Buckets: int32(1 + r.IntN(6))})
		}
		layouts = append(layouts, w.layout())
		g := guardOf(layouts[len(layouts)-1])
		for range 30 {
			l := layouts[r.IntN(len(layouts))]
			key := int32(r.IntN(40))
			route, err := l.Route(row(key, names[r.IntN(3)]), &s)
			if err != nil {
				continue
			}
			if g.Check(request(route)) != catalog.Done {
				refused++
				continue
			}
			accepted++
			k := fmt.Sprint(route.Partition, "/", key)
			if b, ok := home[k]; ok && b != route.Bucket {
				t.Fatalf("key %d of partition %d was in bucket %d and is accepted in %d", key, route.Partition, b, route.Bucket)
			}
			home[k] = route.Bucket
		}
	}
	if accepted < 300 || refused < 300 {
		t.Errorf("%d routes accepted and %d refused: the test did not bite", accepted, refused)
	}
}

// TestGuard_Order: not there, not led, stale, done; without a count only at a known epoch 0.
func TestGuard_Order(t *testing.T) {
	b := func(bucket int32) TableBucket { return TableBucket{TableID: 1, PartitionID: 7, Bucket: bucket} }
	g := newTestGuard(t)
	check := func(what string, r Request, want catalog.Code) {
		t.Helper()
		if got := g.Check(r); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("nothing known", Request{b(0), 2}, catalog.ErrUnknownTableOrBucket)
	g.Apply(GuardUpdate{Activations: []Activation{{Bucket: b(0), Count: 2, Leading: true, LeaderEpoch: 3}, {Bucket: b(1), Count: 2}}})
	check("unknown epoch, no count", Request{b(0), 0}, catalog.ErrStaleMetadata)
	check("unknown epoch, count", Request{b(0), 2}, catalog.Done)
	check("a count too large names no bucket", Request{b(2), 4}, catalog.ErrUnknownTableOrBucket)
	check("not leader before stale", Request{b(1), 4}, catalog.ErrNotLeaderOrFollower)
	check("stale", Request{b(0), 4}, catalog.ErrStaleMetadata)
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 0}})
	check("epoch 0, no count", Request{b(0), 0}, catalog.Done)
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 1}})
	check("epoch 1, no count", Request{b(0), 0}, catalog.ErrStaleMetadata)
	g.Apply(GuardUpdate{Epochs: map[catalog.TableID]catalog.Epoch{1: 0}})
	check("an epoch never falls", Request{b(0), 0}, catalog.ErrStaleMetadata)
	g.Apply(GuardUpdate{Activations: []Activation{{Bucket: b(0), Count: 2, LeaderEpoch: 2}}})
	check("an older leader epoch changes nothing", Request{b(0), 2}, catalog.Done)
	r := g.CheckAll([]Request{{b(0), 2}, {b(0), 4}, {b(1), 2}})
	if r == nil || !slices.Equal(r.Codes, []catalog.Code{catalog.Done, catalog.ErrStaleMetadata, catalog.ErrNotLeaderOrFollower}) {
		t.Errorf("each on its own: %+v", r)
	}
	var stale *StaleError
	if err := g.CheckWhole([]Request{{b(0), 2}, {b(0), 4}}); !errors.As(err, &stale) || stale.Count != 2 || stale.Sent != 4 || stale.Epoch != 1 {
		t.Errorf("as a whole: %v", err)
	}
	g.Apply(GuardUpdate{DroppedPartitions: map[catalog.TableID][]catalog.PartitionID{1: {7}}})
	check("dropped", Request{b(0), 2}, catalog.ErrPartitionNotExists)
}

// TestLayout_Order: whatever order answers arrive in, the newest one stays.
func TestLayout_Order(t *testing.T) {
	w := newWorld(t)
	var all []*Layout
	for _, n := range []int32{3, 4, 5, 6} {
		w.must(catalog.RescaleTable{Table: "d.t", Buckets: n})
		all = append(all, w.layout())
	}
	permute(all, 0, func(order []*Layout) {
		held := order[0]
		for _, l := range order[1:] {
			held = held.With(l)
		}
		if held.Table().Epoch != 4 || held.Revision() != w.rev {
			t.Errorf("ended at epoch %d", held.Table().Epoch)
		}
	})
}

func permute(l []*Layout, i int, f func([]*Layout)) {
	if i == len(l) {
		f(l)
		return
	}
	for j := i; j < len(l); j++ {
		l[i], l[j] = l[j], l[i]
		permute(l, i+1, f)
		l[i], l[j] = l[j], l[i]
	}
}

// A re-created partition is a new thing: routes to the old one are refused.
func TestGuard_Recreated(t *testing.T) {
	w := newWorld(t)
	w.create("p")
	old := w.layout()
	w.must(catalog.DropPartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "p"}}}})
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 3})
	w.create("p")
	var s Scratch
	r, err := old.Route(row(1, "p"), &s)
	if err != nil {
		t.Fatal(err)
	}
	if got := guardOf(w.layout()).Check(request(r)); got != catalog.ErrUnknownTableOrBucket {
		t.Errorf("a route to a dropped partition: %v", got)
	}
	if l := old.With(w.layout()); l.parts.byName("p").Count != 3 || l.Len() != 1 {
		t.Errorf("joined layouts keep the old partition: %+v", l.Known())
	}
}

func BenchmarkLayoutRoute(b *testing.B) {
	w := newWorld(b)
	w.create("p1")
	l := w.layout()
	values := row(42, "p1")
	var s Scratch
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Route(values, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGuard100(b *testing.B) {
	w := newWorld(b)
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 100})
	w.create("p1")
	l := w.layout()
	g := guardOf(l)
	var list []Request
	for _, a := range activations(l) {
		list = append(list, Request{a.Bucket, a.Count})
	}
	b.ReportAllocs()
	for b.Loop() {
		if g.CheckAll(list) != nil {
			b.Fatal("refused")
		}
	}
}

// Routing to a known partition allocates nothing, by text or by bytes.
func TestRoute_NoAllocations(t *testing.T) {
	for name, l := range map[string]*Layout{"text": benchLayout(t, "STRING"), "number": benchLayout(t, "INT")} {
		values := benchRow(l)
		var s Scratch
		if n := testing.AllocsPerRun(100, func() {
			if _, err := l.Route(values, &s); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// benchLayout is a table with a three-column key and partitions of a type.
func benchLayout(t testing.TB, partition string) *Layout {
	t.Helper()
	w := newWorld(t)
	w.must(catalog.CreateTable{
		Table: "d.u", Columns: []catalog.NewColumn{
			{Name: "a", Type: "INT"}, {Name: "b", Type: "STRING"}, {Name: "c", Type: "BIGINT"}, {Name: "dt", Type: catalog.DataType(partition)},
		},
		PrimaryKey: []string{"a", "b", "c", "dt"}, PartitionKeys: []string{"dt"}, Buckets: catalog.Some[int32](16),
	})
	w.must(catalog.CreatePartitions{Table: "d.u", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "20261130"}}}})
	l, err := LayoutOf(w.b.Publish(), "d.u")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func benchRow(l *Layout) []Value {
	dt := String("20261130")
	if l.Columns()[3].Type.Kind == KindInt {
		dt = Int(20261130)
	}
	return []Value{Int(123_456), String("customer-0042"), BigInt(1_698_235_273_182), dt}
}

func BenchmarkLayoutRoute_ThreeColumns(b *testing.B) {
	l := benchLayout(b, "STRING")
	values := benchRow(l)
	var s Scratch
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Route(values, &s); err != nil {
			b.Fatal(err)
		}
	}
}
