package routing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// keyedLayout is a layout of a table whose bucket key is its first columns, with partitions of 1 to 7 buckets.
func keyedLayout(t *testing.T, types []string, partitions []string) *Layout {
	t.Helper()
	tab := &catalog.Table{ID: 1, Path: "d.t", PartitionKeys: []string{"dt"}, Buckets: 4, History: []catalog.LayoutEntry{{Buckets: 4}}}
	var columns []catalog.Column
	for i, typ := range types {
		name := fmt.Sprint("k", i)
		columns = append(columns, catalog.Column{ID: catalog.ColumnID(i), Name: name, Type: catalog.DataType(typ)})
		tab.BucketKeys = append(tab.BucketKeys, name)
	}
	columns = append(columns, catalog.Column{ID: catalog.ColumnID(len(types)), Name: "dt", Type: "STRING NOT NULL"})
	tab.Schemas = []catalog.Schema{{ID: 1, Columns: columns}}
	var parts []*catalog.Partition
	for i, name := range partitions {
		parts = append(parts, &catalog.Partition{ID: catalog.PartitionID(i + 1), Table: 1, Name: name, Buckets: int32(i%7 + 1)})
	}
	l, err := NewLayout(catalog.Incarnation{Number: 1}, 9, tab, parts, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The short way gives the route of the long one or none, for every type, for values at the ends of their range, and for
// names that share a slot; keys are never longer than it believes.
func TestRouteShort_AsRoute(t *testing.T) {
	ends := map[string][]Value{
		"BOOLEAN": {Boolean(true), Boolean(false)}, "TINYINT": {TinyInt(-128), TinyInt(127)}, "SMALLINT": {SmallInt(-1 << 15), SmallInt(1)},
		"INT": {Int(-1 << 31), Int(-1), Int(0), Int(1<<31 - 1)}, "BIGINT": {BigInt(-1 << 63), BigInt(-1), BigInt(1<<63 - 1)},
		"FLOAT": {Float(-1.5)}, "DOUBLE": {Double(1e300)}, "DATE": {Date(-1), Date(20_000)}, "TIME(3)": {TimeOfDay(0), TimeOfDay(86_399_999)},
		"TIMESTAMP(9)": {Timestamp(-1, 999_999), Timestamp(1<<62, 0)}, "TIMESTAMP_LTZ(3)": {TimestampLTZ(-1, 0)},
		"DECIMAL(18, 2)": {Decimal(-999_999_999_999_999_999)}, "DECIMAL(38, 0)": {mustDecimal(t, "-99999999999999999999999999999999999999")},
		"STRING": {String(""), String("customer-0042"), String(strings.Repeat("x", 49))}, "BYTES": {Bytes([]byte("\xff\x00"))},
	}
	var partitions []string
	for i := range 2000 {
		partitions = append(partitions, fmt.Sprint(i), fmt.Sprintf("2026-11-30-%04d", i))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for typ, values := range ends {
		l := keyedLayout(t, []string{typ + " NOT NULL", "INT NOT NULL"}, partitions)
		for range 3 {
			for _, name := range partitions {
				row := []Value{values[rnd.IntN(len(values))], Int(rnd.Int32()), String(name)}
				if e := l.keys.bucket; e.bound == 0 {
					t.Fatalf("%s has no short way", typ)
				} else if key, err := e.Append(nil, row); err != nil || len(key) > e.bound+len(row[0].s)+len(row[0].b) {
					t.Fatalf("%s: key of %d bytes, %v, at most %d are expected", typ, len(key), err, e.bound)
				}
				var short Route
				want, err := l.Route(row, &Scratch{})
				if err != nil || !l.RouteShort(&short, row) || short != want {
					t.Fatalf("%s in %s: %+v, want %+v, %v", typ, name, short, want, err)
				}
			}
		}
	}
}

// What the short way does not know, or cannot tell, it leaves to the long one.
func TestRouteShort_LeavesTheRest(t *testing.T) {
	l := keyedLayout(t, []string{"INT NOT NULL"}, []string{"p1"})
	text := keyedLayout(t, []string{"STRING NOT NULL"}, []string{"p1"})
	long := keyedLayout(t, []string{"TIMESTAMP(9) NOT NULL", "TIMESTAMP(9) NOT NULL", "TIMESTAMP(9) NOT NULL", "INT NOT NULL"}, []string{"p1"})
	unknown := *l.parts.byName("p1")
	unknown.ID, unknown.Name, unknown.Count, unknown.Err = 2, "broken", 0, catalog.ErrStaleMetadata
	e := l.parts.edit()
	e.put(&unknown, 0)
	broken := *l
	broken.parts = e.done()
	ts := Timestamp(1, 1)
	for name, tc := range map[string]struct {
		l   *Layout
		row []Value
	}{
		"another partition": {l, []Value{Int(1), String("p2")}},
		"null key":          {l, []Value{Null(), String("p1")}},
		"null partition":    {l, []Value{Int(1), Null()}},
		"another type":      {l, []Value{BigInt(1), String("p1")}},
		"too few values":    {l, []Value{Int(1)}},
		"no count":          {&broken, []Value{Int(1), String("broken")}},
		"long text":         {text, []Value{String(strings.Repeat("x", 60)), String("p1")}},
		"broken text":       {text, []Value{String("\xff"), String("p1")}},
		"long":              {long, []Value{ts, ts, ts, Int(1), String("p1")}},
	} {
		var out Route
		if tc.l.RouteShort(&out, tc.row) || out != (Route{}) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// A partition that was dropped, or read again, is not remembered by the short way either.
func TestRouteShort_Forgets(t *testing.T) {
	w := newWorld(t)
	w.create("p1")
	first, r := w.layout(), row(2, "p1")
	var out Route
	if !first.RouteShort(&out, r) || out.Count != 2 {
		t.Fatalf("%+v", out)
	}
	if gone := first.Without(out.Partition); gone.RouteShort(&Route{}, r) {
		t.Error("a forgotten partition is routed to")
	}
	w.must(catalog.DropPartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "p1"}}}})
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 3})
	w.create("p1")
	var again Route
	if next := first.With(w.layout()); !next.RouteShort(&again, r) || again.Partition == out.Partition || again.Count != 3 {
		t.Errorf("%+v became %+v", out, again)
	}
}

// The short way may be taken by any number of goroutines.
func TestRouteShort_Concurrent(t *testing.T) {
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprint("p", i))
	}
	l := keyedLayout(t, []string{"INT NOT NULL"}, names)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, name := range names {
				var out Route
				if !l.RouteShort(&out, []Value{Int(1), String(name)}) || out.Partition != catalog.PartitionID(i+1) {
					t.Errorf("%s: %+v", name, out)
				}
			}
		})
	}
	wg.Wait()
}
