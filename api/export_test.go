package api

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
)

// importable clears what an export leaves to the importing cluster, and makes
// lists of properties what rows hold: sorted by key, a key once.
func importable(row ExportRow) ExportRow {
	once := func(in []catalog.Property) []catalog.Property {
		var out []catalog.Property
		for _, p := range in {
			if _, found := findOnce(out, p.Key); !found {
				out = append(out, p)
			}
		}
		return out
	}
	if d := row.Database; d != nil {
		d.CreatedAt, d.Revision = 0, 0
		d.Properties = once(d.Properties)
	}
	if row.Table != nil {
		t := &row.Table.Table
		t.Import, t.Dropped, t.Placement, t.CreatedAt, t.Revision = catalog.ImportID{}, false, nil, 0, 0
		for i := range t.History {
			t.History[i].Revision = 0
		}
		t.Properties, t.CustomProperties = once(t.Properties), once(t.CustomProperties)
	}
	if row.Cluster != nil {
		row.Cluster.Format = ExportFormat
	}
	return row
}

func findOnce(in []catalog.Property, key string) (int, bool) {
	for i, p := range in {
		if p.Key == key {
			return i, true
		}
	}
	return 0, false
}

// anyRow returns a row of one of the six kinds.
func anyRow(t *rapid.T, kind int) ExportRow {
	switch kind {
	case 0:
		v := filled[ExportCluster](t)
		return importable(ExportRow{Cluster: &v})
	case 1:
		v := filled[catalog.Database](t)
		return importable(ExportRow{Database: &v})
	case 2:
		v := filled[catalog.ImportTable](t)
		return importable(ExportRow{Table: &v})
	case 3:
		v := filled[catalog.ImportPartition](t)
		return ExportRow{Partition: &v}
	case 4:
		v := filled[catalog.ImportKeyValue](t)
		return ExportRow{KeyValue: &v}
	default:
		v := filled[catalog.ImportCounter](t)
		return ExportRow{Counter: &v}
	}
}

func checkLine(t rapid.TB, row ExportRow) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteExportRow(&b, row); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1 || !strings.HasSuffix(b.String(), "\n") {
		t.Fatalf("%d line feeds in %q", n, b.String())
	}
	got, err := ParseExportLine(b.Bytes())
	if err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	if diff := cmp.Diff(row, got, same); diff != "" {
		t.Fatalf("row changed in its line %s(-written +read):\n%s", b.String(), diff)
	}
	through, err := ExportRowFromProto(overTheWire(t, ExportRowToProto(row)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(row, through, same); diff != "" {
		t.Fatalf("row changed on the wire (-sent +got):\n%s", diff)
	}
}

// A row is read from its line as it was written, numbers to the last digit.
func TestExportLine_RoundTrip(t *testing.T) {
	for kind := range 6 {
		checkLine(t, anyRow(nil, kind))
	}
	checkLine(t, ExportRow{KeyValue: &catalog.ImportKeyValue{Key: "k", Value: []byte{0xff, 0}, Version: 1<<64 - 1}})
	rapid.Check(t, func(rt *rapid.T) {
		checkLine(rt, anyRow(rt, rapid.IntRange(0, 5).Draw(rt, "kind")))
	})
}

const (
	firstLine = `{"kind":"cluster","format":1,"incarnation":"5-000000000000000a","revision":9,"next_table_id":2,"next_partition_id":3}` + "\n"
	partLine  = `{"kind":"partition","table_id":0,"partition_id":18446744073709551615,"name":"a","bucket_count":4,"legacy":false,"layout_epoch":0,"created_ms":1}`
)

// A whole file is read in order into an import batch; the last line feed may be
// missing.
func TestExportReader_File(t *testing.T) {
	r := NewExportReader("f", strings.NewReader(firstLine+partLine+"\n"+`{"kind":"counter","name":"c","next":7}`))
	var batch catalog.ImportBatch
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		row.AddTo(&batch)
	}
	want := catalog.ImportBatch{
		Import:     catalog.ImportID{Incarnation: catalog.Incarnation{Number: 5, Random: 10}, Revision: 9},
		Counters:   catalog.Some(catalog.ImportCounters{NextTable: 2, NextPartition: 3}),
		Partitions: []catalog.ImportPartition{{ID: 1<<64 - 1, Name: "a", Buckets: 4, Created: 1}},
		IDCounters: []catalog.ImportCounter{{Name: "c", Next: 7}},
	}
	if diff := cmp.Diff(want, batch, same); diff != "" {
		t.Fatal(diff)
	}
}

// A bad line is refused with its file, its number and the field.
func TestExportReader_Refusals(t *testing.T) {
	edit := func(old, by string) string { return strings.Replace(partLine, old, by, 1) }
	tests := []struct {
		name, line string
		code       catalog.Code
		says       string
	}{
		{"unknown field", edit(`"name"`, `"nome":1,"name"`), catalog.ErrInvalidArgument, `unknown field "nome"`},
		{"field of another case", edit(`"name"`, `"Name"`), catalog.ErrInvalidArgument, `field is "Name"`},
		{"field that folds", edit(`"legacy":false,`, `"legacy":false,"creatĀed_ms":1,`), catalog.ErrInvalidArgument, "lower case"},
		{"field twice", edit(`"name":"a"`, `"name":"a","name":"b"`), catalog.ErrInvalidArgument, "name is there twice"},
		{"field missing", edit(`"partition_id":18446744073709551615,`, ``), catalog.ErrInvalidArgument, "partition_id is missing"},
		{"count missing", edit(`"bucket_count":4,`, ``), catalog.ErrInvalidArgument, "bucket_count is missing"},
		{"epoch missing", edit(`"layout_epoch":0,`, ``), catalog.ErrInvalidArgument, "layout_epoch is missing"},
		{"null", edit(`"table_id":0`, `"table_id":null`), catalog.ErrInvalidArgument, "table_id is null"},
		{"not exact", edit(`"table_id":0`, `"table_id":0.5`), catalog.ErrInvalidArgument, "table_id"},
		{"exponent", edit(`"table_id":0`, `"table_id":1e3`), catalog.ErrInvalidArgument, "table_id"},
		{"above 64 bits", edit(`18446744073709551615`, `18446744073709551616`), catalog.ErrInvalidArgument, "partition_id"},
		{"negative id", edit(`"table_id":0`, `"table_id":-1`), catalog.ErrInvalidArgument, "table_id"},
		{"number as text", edit(`"table_id":0`, `"table_id":"0"`), catalog.ErrInvalidArgument, "table_id"},
		{"two objects", partLine + partLine, catalog.ErrInvalidArgument, "one JSON object per line"},
		{"no object", `[]`, catalog.ErrInvalidArgument, "not an object"},
		{"empty", ``, catalog.ErrInvalidArgument, "not an object"},
		{"cut", partLine[:40], catalog.ErrInvalidArgument, ""},
		{"deep", strings.Repeat(`{"a":[`, 1000), catalog.ErrInvalidArgument, "nested too deep"},
		{"unknown kind", `{"kind":"view"}`, catalog.ErrInvalidArgument, `kind is "view"`},
		{"no kind", `{"name":"x"}`, catalog.ErrInvalidArgument, `kind is ""`},
		{"two values", `{"kind":"kv","key":"a","value":"x","value_base64":"eA==","version":1}`, catalog.ErrInvalidArgument, "exactly one of"},
		{"no value", `{"kind":"kv","key":"a","version":1}`, catalog.ErrInvalidArgument, "exactly one of"},
		{"bad base64", `{"kind":"kv","key":"a","value_base64":"?","version":1}`, catalog.ErrInvalidArgument, "value_base64"},
		{"property twice", `{"kind":"database","name":"a","properties":{"k":"1","k":"2"}}`, catalog.ErrInvalidArgument, "twice"},
		{"property not text", `{"kind":"database","name":"a","properties":{"k":1}}`, catalog.ErrInvalidArgument, "not a string"},
		{"not UTF-8", "{\"kind\":\"counter\",\"name\":\"\xff\",\"next\":1}", catalog.ErrInvalidArgument, "UTF-8"},
		{"second cluster", strings.TrimSpace(firstLine), catalog.ErrInvalidArgument, "only there"},
		{"format", strings.Replace(strings.TrimSpace(firstLine), `"format":1`, `"format":2`, 1), catalog.ErrUnsupportedVersion, "format is 2"},
		{"incarnation", strings.Replace(strings.TrimSpace(firstLine), `5-00`, `5-`, 1), catalog.ErrInvalidArgument, "incarnation"},
		{"too long", `{"kind":"` + strings.Repeat("x", MaxLineBytes), catalog.ErrTooLarge, "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewExportReader("catalog.ndjson", strings.NewReader(firstLine+tt.line+"\n"))
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			_, err := r.Next()
			var at *LineError
			if !errors.As(err, &at) || at.Line != 2 || !strings.HasPrefix(err.Error(), "catalog.ndjson:2: ") {
				t.Fatalf("got %v, want an error at catalog.ndjson:2", err)
			}
			if CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %v saying %q", err, tt.code, tt.says)
			}
		})
	}
	t.Run("cluster row not first", func(t *testing.T) {
		if _, err := NewExportReader("f", strings.NewReader(partLine)).Next(); !errors.Is(err, catalog.ErrInvalidArgument) {
			t.Errorf("got %v", err)
		}
	})
}
