package autopartition

import (
	"testing"

	"github.com/stavedb/stave/catalog"
)

// BenchmarkCheckCommand is what the leader adds to a creation by hand on a table
// with a zone.
func BenchmarkCheckCommand(b *testing.B) {
	w := newWorld(b, "2024-09-10T00:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoZone: "Europe/Berlin"})
	var cmd catalog.Command = catalog.CreatePartitions{Table: "d.t", Specs: []catalog.PartitionSpec{w.value("20240910")}}
	for b.Loop() {
		if err := CheckCommand(w.st, cmd, w.wall); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlan is one look at a table with 10,000 partitions and nothing due.
func BenchmarkPlan(b *testing.B) {
	w := newWorld(b, "2024-09-10T00:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "HOUR", catalog.PropAutoRetention: "10000", catalog.PropAutoPrecreate: "2"})
	s := w.strategy()
	c := catalog.CreatePartitions{Table: "d.t"}
	for k := range 10_000 {
		v, _ := s.Value(w.wall, 1-k)
		c.Specs = append(c.Specs, w.value(v))
	}
	w.must(c)
	t := w.row()
	for b.Loop() {
		if steps := s.Plan(w.st, t, w.wall); !steps.Empty() {
			b.Fatalf("%+v", steps)
		}
	}
}
