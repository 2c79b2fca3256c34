package testsample

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

const sampleFile = "../../testdata/sample/catalog.jsonl"

var update = flag.Bool("update", false, "write the sample file anew")

// The file is what the generator writes.
func TestWrite_File(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(sampleFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s has %d bytes and differs from what the generator writes (%d bytes); run this test with -update", sampleFile, len(have), b.Len())
	}
}

// The sample is as large and as old as it claims to be.
func TestRows_Size(t *testing.T) {
	got := map[string]int{}
	for _, r := range Rows() {
		got[r.Kind()]++
		if r.Partition != nil && r.Partition.Legacy {
			got["legacy"]++
		}
	}
	want := map[string]int{"cluster": 1, "database": 4, "table": 30, "partition": 4968, "legacy": 1656, "kv": 4, "counter": 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// The catalog takes every row and keeps it exactly: an export of what an import
// made has the same lines.
func TestRows_Canonical(t *testing.T) {
	rows := Rows()
	b := catalog.NewState().Begin()
	for i, r := range rows[1:] {
		batch := catalog.ImportBatch{Import: rows[0].Cluster.ID(), Last: i == len(rows)-2}
		r.AddTo(&batch)
		if res, _ := b.Apply(catalog.Revision(i+1), catalog.Envelope{}, batch); res.Err() != nil {
			t.Fatalf("row %d, %s: %v", i+2, r.Kind(), res.Err())
		}
	}
	st := b.Publish()
	if err := st.Check(); err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		var have api.ExportRow
		switch {
		case r.Database != nil:
			have.Database, _ = st.Database(r.Database.Name)
		case r.Table != nil:
			row, _ := st.Table(r.Table.Table.Path)
			have.Table = &catalog.ImportTable{Table: *row, Finished: r.Table.Finished}
		default:
			continue
		}
		if want, got := line(t, r), line(t, have); want != got {
			t.Errorf("line %d: the catalog changed it (-want +got):\n%s", i+1, cmp.Diff(want, got))
		}
	}
}

func line(t *testing.T, r api.ExportRow) string {
	t.Helper()
	var b bytes.Buffer
	if err := api.WriteExportRow(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
