package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// twoBatches writes a file that is sent as two batches, each with partitions of
// shop.orders, and returns its path. Line 78 is the key "k/014", in
// the second batch.
func twoBatches(t *testing.T) string {
	t.Helper()
	day := func(i int) string { return fmt.Sprintf("d%03d", i) }
	rows := []api.ExportRow{
		{Cluster: &api.ExportCluster{
			Format: api.ExportFormat, Incarnation: catalog.Incarnation{Number: 1_700_000_000_000, Random: 7}, Revision: 99,
			Counters: catalog.ImportCounters{NextTable: 30, NextPartition: 500},
		}},
		{Database: &catalog.Database{Name: "shop"}},
		{Table: &catalog.ImportTable{Table: catalog.Table{
			ID: 3, Path: "shop.orders", Buckets: 4, PartitionKeys: []string{"dt"}, BucketKeys: []string{"id"}, NextColumn: 2,
			Schemas:    []catalog.Schema{{ID: 1, Columns: []catalog.Column{{ID: 0, Name: "id", Type: "INT"}, {ID: 1, Name: "dt", Type: "STRING"}}}},
			History:    []catalog.LayoutEntry{{Epoch: 0, Buckets: 4}},
			Properties: []catalog.Property{{Key: catalog.PropReplication, Value: "1"}},
		}}},
	}
	partition := func(i int) api.ExportRow {
		p := &catalog.ImportPartition{Table: 3, ID: catalog.PartitionID(i), Name: day(i), Legacy: i%2 == 0}
		if !p.Legacy {
			p.Buckets = 4
		}
		return api.ExportRow{Partition: p}
	}
	for i := range 60 {
		rows = append(rows, partition(i))
	}
	for i := range 15 { // more than fits into one batch
		value := strings.Repeat("v", 10<<10)
		rows = append(rows, api.ExportRow{KeyValue: &catalog.ImportKeyValue{Key: fmt.Sprintf("k/%03d", i), Value: []byte(value), Version: 2}})
	}
	for i := range 60 {
		rows = append(rows, partition(60+i))
	}
	var b strings.Builder
	for _, r := range rows {
		if err := api.WriteExportRow(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "two.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sendFirst sends the first batches of a file and then stops, as an import does
// that is killed.
func sendFirst(t *testing.T, r runner, path string, n int) {
	t.Helper()
	a := &app{endpoints: r.endpoints, timeout: defaultTimeout}
	f, err := a.openImport(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, b := range f.batches()[:n] {
		req, err := api.RequestFromCommand(b.cmd, api.Ref{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.sendBatch(t.Context(), s, req.(*pb.ImportRequest)); err != nil {
			t.Fatal(err)
		}
	}
}

func counts(t *testing.T, r runner) api.Counts {
	t.Helper()
	return decode[api.ClusterStatus](t, r.must(t, "cluster", "status", "--consistency", "linearizable", "-o", "json")).Counts
}

// An import that was cut short leaves tables that can be read and not changed,
// and ids that nobody else gets; the same command ends it.
func TestImport_Resume(t *testing.T) {
	r, _ := newDev(t, 1)
	path := twoBatches(t)
	sendFirst(t, r, path, 1)
	some := counts(t, r)
	if some.Tables != 1 || some.Partitions != 60 || some.Keys >= 15 {
		t.Fatalf("after the first batch: %+v", some)
	}
	table := decode[api.Table](t, r.must(t, "table", "get", "shop.orders", "-o", "json"))
	if !table.Importing {
		t.Errorf("shop.orders is not importing: %+v", table)
	}
	for _, args := range [][]string{
		{"table", "rescale", "shop.orders", "--buckets", "8"},
		{"partition", "create", "shop.orders", "dt=2026-12-01"},
		{"table", "alter", "shop.orders", "--comment", "x"},
	} {
		r.fails(t, exitRefused, []string{"TABLE_IMPORTING"}, args...)
	}
	r.must(t, "database", "create", "own")
	own := decode[api.Table](t, r.must(t, "table", "create", "own.t", "--column", "id INT", "-o", "json"))
	if own.TableID < 30 {
		t.Errorf("a table made meanwhile has id %d, want 30 or more: the first batch carries the counters", own.TableID)
	}
	r.must(t, "database", "drop", "own", "--cascade")

	sum := decode[importSum](t, r.must(t, "import", path, "-o", "json"))
	if sum.Rows != 137 || sum.Batches != 2 {
		t.Errorf("resumed import: %+v", sum)
	}
	whole, _ := newDev(t, 1)
	whole.must(t, "import", path)
	if d := cmp.Diff(withoutCluster(t, whole.must(t, "export")), withoutCluster(t, r.must(t, "export"))); d != "" {
		t.Errorf("export after a resumed import (-whole +resumed):\n%s", d)
	}
	r.must(t, "table", "rescale", "shop.orders", "--buckets", "8")
}

// A batch that is refused by the cluster is named with file and line, and
// nothing of it is taken; once the clash is gone the same command goes on.
func TestImport_FailingBatch(t *testing.T) {
	r, _ := newDev(t, 1)
	path := twoBatches(t)
	r.must(t, "kv", "put", "k/014", "mine")
	sendFirst(t, r, path, 1)
	before := r.must(t, "export")
	r.fails(t, exitRefused, []string{path + ":78: ", "VERSION_CONFLICT", `key "k/014" already exists and differs from the import`}, "import", path)
	if d := cmp.Diff(withoutCluster(t, before), withoutCluster(t, r.must(t, "export"))); d != "" {
		t.Errorf("the refused batch left something (-before +after):\n%s", d)
	}
	r.must(t, "kv", "delete", "k/014")
	r.must(t, "import", path)
	if n := counts(t, r); n.Partitions != 120 || n.Keys != 15 {
		t.Errorf("after the import: %+v", n)
	}
}
