package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/api"
)

const sample = "../../testdata/sample/catalog.jsonl"

// withoutCluster drops the first line of an export, which names its cluster and
// revision.
func withoutCluster(t *testing.T, export string) string {
	t.Helper()
	first, rest, ok := strings.Cut(export, "\n")
	if !ok || !strings.Contains(first, `"kind":"cluster"`) {
		t.Fatalf("an export begins with %q", first)
	}
	return rest
}

// What one cluster exports another one takes and exports again, line for line,
// counters included; a second run of the import changes nothing; and ids go on
// where the source's ended.
func TestImport_RoundTrip(t *testing.T) {
	first, _ := newDev(t, 1)
	sum := decode[importSum](t, first.must(t, "import", sample, "-o", "json"))
	if sum.Rows != 5008 || sum.Batches < 2 || sum.ChangedBatches != sum.Batches {
		t.Errorf("import of the sample: %+v", sum)
	}
	if again := decode[importSum](t, first.must(t, "import", sample, "-o", "json")); again.ChangedBatches > 2 || again.Rows != 5008 {
		t.Errorf("import of the sample again: %+v", again)
	}
	first.must(t, "table", "rescale", "shop.orders", "--buckets", "8")
	first.must(t, "partition", "create", "shop.orders", "dt=2026-12-01")
	first.must(t, "partition", "drop", "ads.spend", "dt=2026-11-30")
	first.must(t, "kv", "put", "config/mode", "ready")
	path := filepath.Join(t.TempDir(), "catalog.jsonl")
	first.must(t, "export", "--file", path)
	exported := first.must(t, "export")

	second, _ := newDev(t, 1)
	second.must(t, "import", path)
	if d := cmp.Diff(withoutCluster(t, exported), withoutCluster(t, second.must(t, "export"))); d != "" {
		t.Errorf("export of the second cluster (-first +second):\n%s", d)
	}
	second.must(t, "partition", "create", "shop.orders", "dt=2026-12-02")
	p := decode[api.Partition](t, second.must(t, "partition", "get", "shop.orders", "dt=2026-12-02", "-o", "json"))
	if p.PartitionID != 4969 || *p.BucketCount != 8 || p.Legacy || *p.LayoutEpoch != 1 {
		t.Errorf("the next partition: %+v", p)
	}
	old := decode[api.Partition](t, second.must(t, "partition", "get", "shop.orders", "dt=2026-06-04", "-o", "json"))
	if *old.BucketCount != 4 || !old.Legacy {
		t.Errorf("a legacy partition: %+v", old)
	}
}

// Everything that is wrong with a file is found at its line before anything is
// proposed; what clashes with the cluster is named, and its batch is not taken.
func TestImport_Refusals(t *testing.T) {
	r, _ := newDev(t, 1)
	cluster := `{"kind":"cluster","format":1,"incarnation":"1000000000000-00000000000000aa","revision":9,"next_table_id":5,"next_partition_id":50}` + "\n"
	database := `{"kind":"database","name":"shop"}` + "\n"
	r.must(t, "database", "create", "shop", "--comment", "another one")
	r.must(t, "kv", "put", "taken", "here")
	before := r.must(t, "export")
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"empty", "", []string{":1: ", "INVALID_ARGUMENT"}},
		{"no cluster", database, []string{":1: ", "cluster in the first line"}},
		{"format", strings.Replace(cluster, `"format":1`, `"format":7`, 1), []string{":1: ", "format is 7"}},
		{"unknown field", cluster + `{"kind":"database","name":"x","colour":"red"}`, []string{":2: ", "colour"}},
		{"cut", cluster + database[:20], []string{":2: "}},
		{"bad name", cluster + `{"kind":"database","name":"__x"}`, []string{":2: ", "__x"}},
		{"no such table", cluster + database + `{"kind":"partition","table_id":3,"partition_id":1,"name":"a","legacy":true}`, []string{":3: ", "table id 3"}},
		{"key twice", cluster + `{"kind":"kv","key":"a","value":"1","version":1}` + "\n" + `{"kind":"kv","key":"a","value":"2","version":1}`, []string{":3: ", `"a"`}},
		{"clash of a database", cluster + `{"kind":"kv","key":"new","value":"1","version":1}` + "\n" + database, []string{":3: ", "DATABASE_ALREADY_EXIST"}},
		{"clash of a key", cluster + `{"kind":"kv","key":"taken","value":"1","version":4}`, []string{":2: ", "VERSION_CONFLICT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "in.jsonl")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			r.fails(t, exitRefused, append(c.want, path), "import", path)
			if d := cmp.Diff(withoutCluster(t, before), withoutCluster(t, r.must(t, "export"))); d != "" {
				t.Errorf("a refused import changed the cluster (-before +after):\n%s", d)
			}
		})
	}
}

// An import reads standard input, and its tables are usable when it has ended.
func TestImport_Stdin(t *testing.T) {
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newDev(t, 1)
	r.in = string(text)
	r.must(t, "import", "-")
	tables := decode[[]api.Table](t, r.must(t, "table", "list", "-o", "json"))
	if len(tables) != 30 {
		t.Fatalf("%d tables, want 30", len(tables))
	}
	for _, table := range tables {
		if table.Importing {
			t.Errorf("%s.%s is still importing", table.Database, table.Name)
		}
	}
}

// Batches are as large as they may be, and keep the order of the file.
func TestImportFile_Batches(t *testing.T) {
	in, err := os.Open(sample)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := readImport(sample, in)
	if err != nil {
		t.Fatal(err)
	}
	next, skip := 2, uint64(0)
	all := f.batches()
	for i, b := range all {
		if b.cmd.Skip != skip || b.cmd.Last != (i == len(all)-1) || b.cmd.Counters.Set != (i == 0) {
			t.Errorf("batch %d: skip %d, last %t, counters %t", i, b.cmd.Skip, b.cmd.Last, b.cmd.Counters.Set)
		}
		if _, err := api.RequestFromCommand(b.cmd, api.Ref{}); err != nil {
			t.Errorf("batch %d: %v", i, err)
		}
		for _, l := range b.lines {
			if l.number != next {
				t.Fatalf("batch %d: line %d, want %d", i, l.number, next)
			}
			next++
		}
		skip += uint64(len(b.lines))
	}
	if next != 5010 {
		t.Errorf("the last line is %d, want 5009", next-1)
	}
}
