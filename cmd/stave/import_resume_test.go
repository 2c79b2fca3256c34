package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/api"

	pb "github.com/stavedb/stave/api/stave/v1"
)

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
	sendFirst(t, r, sample, 1)
	some := counts(t, r)
	if some.Tables != 30 || some.Partitions == 0 || some.Partitions >= 4968 {
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

	sum := decode[importSum](t, r.must(t, "import", sample, "-o", "json"))
	if sum.Rows != 5008 {
		t.Errorf("resumed import: %+v", sum)
	}
	whole, _ := newDev(t, 1)
	whole.must(t, "import", sample)
	if d := cmp.Diff(withoutCluster(t, whole.must(t, "export")), withoutCluster(t, r.must(t, "export"))); d != "" {
		t.Errorf("export after a resumed import (-whole +resumed):\n%s", d)
	}
	r.must(t, "table", "rescale", "shop.orders", "--buckets", "8")
}

// A batch that is refused by the cluster is named with file and line, and
// nothing of it is taken; once the clash is gone the same command goes on.
func TestImport_FailingBatch(t *testing.T) {
	r, _ := newDev(t, 1)
	r.must(t, "kv", "put", "config/compaction", "mine")
	line := lineOf(t, r, `"key":"config/compaction"`)
	sendFirst(t, r, sample, 1)
	before := r.must(t, "export")
	r.fails(t, exitRefused, []string{
		fmt.Sprintf("%s:%d: ", sample, line), "VERSION_CONFLICT", `key "config/compaction" already exists and differs from the import`,
	}, "import", sample)
	if d := cmp.Diff(withoutCluster(t, before), withoutCluster(t, r.must(t, "export"))); d != "" {
		t.Errorf("the refused batch left something (-before +after):\n%s", d)
	}
	r.must(t, "kv", "delete", "config/compaction")
	r.must(t, "import", sample)
	if n := counts(t, r); n.Partitions != 4968 || n.Keys != 4 {
		t.Errorf("after the import: %+v", n)
	}
}

// lineOf finds the line of the sample that holds a text.
func lineOf(t *testing.T, r runner, text string) int {
	t.Helper()
	f, err := (&app{endpoints: r.endpoints}).openImport(sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range f.lines {
		var b strings.Builder
		if err := api.WriteExportRow(&b, l.row); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), text) {
			return l.number
		}
	}
	t.Fatalf("no line holds %s", text)
	return 0
}
