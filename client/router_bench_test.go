package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// benchRouter routes one row over and over, or one of each of several partitions in turn.
func benchRouter(b *testing.B, columns []catalog.NewColumn, keys []string, row []routing.Value, partitions ...string) {
	f := newFake(b, 1)
	var pk []string
	pk = append(append(pk, keys...), "dt")
	f.must(catalog.CreateDatabase{Name: "shop"}, catalog.CreateTable{
		Table: orders, Columns: append(columns, catalog.NewColumn{Name: "dt", Type: "STRING"}),
		PrimaryKey: pk, PartitionKeys: []string{"dt"}, BucketKeys: keys, Buckets: catalog.Some[int32](16),
	}, createDTs(partitions...))
	r := openRouter(b, f.client(), RouterOptions{})
	rows := make([][]routing.Value, len(partitions))
	ctx := b.Context()
	for i, name := range partitions {
		rows[i] = append(row[:len(row):len(row)], routing.String(name))
		mustRoute(b, r, rows[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := r.Route(ctx, rows[i]); err != nil {
			b.Fatal(err)
		}
		if i++; i == len(rows) {
			i = 0
		}
	}
}

func BenchmarkRouter_Int(b *testing.B) {
	benchRouter(b, []catalog.NewColumn{{Name: "a", Type: "INT"}}, []string{"a"}, []routing.Value{routing.Int(123_456)}, "2026-11-30")
}

func BenchmarkRouter_ThousandPartitions(b *testing.B) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("2026-11-30-%04d", i))
	}
	benchRouter(b, []catalog.NewColumn{{Name: "a", Type: "INT"}}, []string{"a"}, []routing.Value{routing.Int(123_456)}, names...)
}

func BenchmarkRouter_ThreeColumns(b *testing.B) {
	benchRouter(b, []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "b", Type: "STRING"}, {Name: "c", Type: "BIGINT"}}, []string{"a", "b", "c"},
		[]routing.Value{routing.Int(123_456), routing.String("customer-0042"), routing.BigInt(1_698_235_273_182)}, "2026-11-30")
}

// BenchmarkRouter_Cold resolves 10,000 partitions that exist, over gRPC.
func BenchmarkRouter_Cold(b *testing.B) { cold(b, true) }

// BenchmarkRouter_ColdCreate resolves 10,000 partitions that do not.
func BenchmarkRouter_ColdCreate(b *testing.B) { cold(b, false) }

func cold(b *testing.B, exist bool) {
	const partitions = 10_000
	rows := make([][]routing.Value, partitions)
	names := make([]string, partitions)
	for i := range rows {
		names[i] = fmt.Sprintf("p%05d", i)
		rows[i] = rowOf(int32(i), names[i])
	}
	for b.Loop() {
		b.StopTimer()
		f := newFake(b, 1).keyed(4)
		if exist {
			for at := 0; at < partitions; at += 1000 {
				f.must(createDTs(names[at : at+1000]...))
			}
		}
		r := openRouter(b, f.client(WithTimeout(time.Minute)), RouterOptions{Create: !exist})
		b.StartTimer()
		if _, errs := r.RouteAll(b.Context(), rows); errs != nil {
			b.Fatal(errs)
		}
	}
}
