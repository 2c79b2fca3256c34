package autopartition

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
)

func itoa(n int) string { return strconv.Itoa(n) }

// world is a catalog with one table, d.t, and a clock that is set by hand.
type world struct {
	t      testing.TB
	st     *catalog.State
	rev    catalog.Revision
	wall   catalog.Millis
	forced int
	keys   []string
}

func newWorld(t testing.TB, now string) *world {
	w := &world{t: t, st: catalog.NewState()}
	w.now(now)
	w.must(catalog.CreateDatabase{Name: "d"})
	return w
}

func (w *world) try(cmd catalog.Command) error {
	w.t.Helper()
	w.rev++
	b := w.st.Begin()
	res, _ := b.Apply(w.rev, catalog.Envelope{Wall: w.wall}, cmd)
	w.st = b.Publish()
	if err := w.st.Check(); err != nil {
		w.t.Fatalf("check after %s: %v", cmd.Kind(), err)
	}
	return res.Err()
}

func (w *world) must(cmd catalog.Command) {
	w.t.Helper()
	if err := w.try(cmd); err != nil {
		w.t.Fatalf("%s: %v", cmd.Kind(), err)
	}
}

func (w *world) now(text string) { w.wall = at(w.t, text) }
func (w *world) later(hours int) {
	w.wall += catalog.Millis(time.Duration(hours) * time.Hour / time.Millisecond)
}
func (w *world) row() *catalog.Table { t, _ := w.st.Table("d.t"); return t }
func (w *world) value(v string) catalog.PartitionSpec {
	return catalog.PartitionSpec{{Key: w.keys[0], Value: v}}
}

// table creates d.t with automatic partitions on, unless the properties say
// otherwise.
func (w *world) table(keys []string, props map[string]string) {
	w.t.Helper()
	c := catalog.CreateTable{Table: "d.t", Columns: []catalog.NewColumn{{Name: "id", Type: "INT"}}, PartitionKeys: keys}
	for _, k := range keys {
		c.Columns = append(c.Columns, catalog.NewColumn{Name: k, Type: "STRING"})
	}
	if _, ok := props[catalog.PropAutoEnabled]; !ok {
		props[catalog.PropAutoEnabled] = "true"
	}
	c.Properties = properties(props)
	w.keys = keys
	w.must(c)
}

// force alters the table, which makes today's partitions due at once.
func (w *world) force() {
	w.t.Helper()
	w.forced++
	w.must(catalog.AlterTable{Table: "d.t", Set: []catalog.Property{{Key: "touched", Value: itoa(w.forced)}}})
}

func (w *world) spec(name string) (spec catalog.PartitionSpec) {
	for i, v := range strings.Split(name, "$") {
		spec = append(spec, catalog.Property{Key: w.keys[i], Value: v})
	}
	return spec
}

func (w *world) create(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.must(catalog.CreatePartitions{Table: "d.t", Specs: []catalog.PartitionSpec{w.spec(n)}})
	}
}

func (w *world) drop(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.must(catalog.DropPartitions{Table: "d.t", Specs: []catalog.PartitionSpec{w.spec(n)}})
	}
}

func (w *world) strategy() *Strategy {
	w.t.Helper()
	s, err := NewStrategy(w.row())
	if err != nil {
		w.t.Fatal(err)
	}
	return &s
}

// run carries out what is due and says what it was.
func (w *world) run() (ops []string) {
	w.t.Helper()
	steps := w.strategy().Plan(w.st, w.row(), w.wall)
	for _, p := range steps.Drop {
		w.must(catalog.DropPartitions{Table: "d.t", IDs: []catalog.PartitionID{p.ID}})
		ops = append(ops, "drop "+p.Name)
	}
	slices.Sort(ops)
	for _, v := range steps.Create {
		w.must(catalog.CreatePartitions{Table: "d.t", Automatic: true, Specs: []catalog.PartitionSpec{w.value(v)}})
		ops = append(ops, "create "+v)
	}
	if again := w.strategy().Plan(w.st, w.row(), w.wall); !again.Empty() && !steps.More {
		w.t.Errorf("planned again after %v: %+v", ops, again)
	}
	return ops
}

func (w *world) names() []string {
	out := []string{}
	w.st.Partitions(w.row().ID, "", func(p *catalog.Partition) bool {
		out = append(out, p.Name)
		return true
	})
	return out
}
