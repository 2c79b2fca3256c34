package catalog

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectors reads the rows of a file of executed upstream behaviour.
func vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	var file struct {
		Count int `json:"count"`
		Rows  []T `json:"rows"`
	}
	readVectors(t, name, &file)
	if len(file.Rows) == 0 || len(file.Rows) != file.Count {
		t.Fatalf("%s has %d rows, says %d", name, len(file.Rows), file.Count)
	}
	return file.Rows
}

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("../testdata/vectors/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestVectors_Codes: every upstream code has its number and name here.
func TestVectors_Codes(t *testing.T) {
	for _, r := range vectors[struct {
		Code Code
		Name string
	}](t, "errors") {
		if got := r.Code.String(); got != r.Name {
			t.Errorf("code %d is called %s, want %s", r.Code, got, r.Name)
		}
	}
}

// TestVectors_Identifiers: database and table names follow the upstream rule.
func TestVectors_Identifiers(t *testing.T) {
	for _, r := range vectors[struct {
		Name            *string
		Detect          *string `json:"detect_invalid"`
		Reserved        bool
		Database, Table string
	}](t, "identifiers") {
		if r.Name == nil {
			continue // a Go string is never null; the empty one is a row of its own
		}
		name := *r.Name
		h := newHistory(t)
		h.must(CreateDatabase{Name: "d"})
		if want := r.Database != "ok"; want {
			h.refused(ErrInvalidDatabase, CreateDatabase{Name: name})
		} else {
			h.must(CreateDatabase{Name: name})
		}
		if want := r.Table != "ok"; want {
			h.refused(ErrInvalidTable, plainTable("d."+name, 1))
		} else {
			h.must(plainTable("d."+name, 1))
		}
		want := ""
		if r.Detect != nil {
			want = *r.Detect
		}
		if got := invalidIdentifier(name); got != want {
			t.Errorf("identifier %q: %q, want %q", name, got, want)
		}
		if got := strings.HasPrefix(name, reservedPrefix); got != r.Reserved {
			t.Errorf("identifier %q reserved: %v, want %v", name, got, r.Reserved)
		}
	}
}

// TestVectors_PartitionSpecs: a spec gives the upstream name, or is refused.
func TestVectors_PartitionSpecs(t *testing.T) {
	for _, r := range vectors[struct {
		Keys      []string
		Spec      map[string]string
		Create    bool
		Name      string
		Qualified *string
	}](t, "partition_specs") {
		table := &Table{Path: "db.t", PartitionKeys: r.Keys}
		var spec PartitionSpec
		for k, v := range r.Spec {
			spec = append(spec, Property{k, v})
		}
		got, err := PartitionName(table, spec, r.Create)
		if strings.HasPrefix(r.Name, "ERR") {
			if e, ok := err.(*Error); !ok || e.Code != ErrPartitionSpecInvalid { //nolint:errorlint // the documented type
				t.Errorf("%v create %v: %q, %v, want code 43", r.Spec, r.Create, got, err)
			}
			continue
		}
		if err != nil || got != r.Name {
			t.Errorf("%v create %v: %q, %v, want %q", r.Spec, r.Create, got, err, r.Name)
			continue
		}
		p := &Partition{Name: got}
		if q := table.QualifiedName(p); q != *r.Qualified {
			t.Errorf("%v: display name %q, want %q", r.Spec, q, *r.Qualified)
		}
		if back, err := PartitionName(table, table.Spec(p), false); err != nil || back != got {
			t.Errorf("spec of %q gives %q, %v", got, back, err)
		}
	}
}

type assignmentRow struct {
	Servers     []ServerID
	Racks       []string
	Buckets, RF int32
	Start       int
	Shift       int
	Order       []ServerID
	Result      json.RawMessage
}

func (r assignmentRow) candidates() []Candidate {
	out := make([]Candidate, len(r.Servers))
	for i, id := range r.Servers {
		out[i].ID = id
		if r.Racks != nil {
			out[i].Rack = r.Racks[i]
		}
	}
	return out
}

// TestVectors_Assignments: buckets are spread exactly as upstream spreads them.
func TestVectors_Assignments(t *testing.T) {
	for i, r := range vectors[assignmentRow](t, "assignments") {
		got, err := Assign(r.candidates(), r.Buckets, r.RF, r.Start, r.Shift)
		var want map[string][]ServerID
		if r.Result[0] == '"' {
			var text string
			if jerr := json.Unmarshal(r.Result, &text); jerr != nil {
				t.Fatal(jerr)
			}
			_, sentence, _ := strings.Cut(text, ": ")
			code := ErrInvalidReplicationFactor
			if strings.HasPrefix(text, "InvalidBucketsException") {
				code = ErrInvalidTable
			}
			if e, ok := err.(*Error); !ok || e.Code != code || e.Message != sentence { //nolint:errorlint // the documented type
				t.Errorf("row %d: %v, want %v: %q", i, err, code, sentence)
			}
			continue
		}
		if err != nil {
			t.Errorf("row %d: %v", i, err)
			continue
		}
		if jerr := json.Unmarshal(r.Result, &want); jerr != nil {
			t.Fatal(jerr)
		}
		have := map[string][]ServerID{}
		for b, list := range got {
			have[itoa(int64(b))] = list
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("row %d %+v: -want +got\n%s", i, r.candidates(), d)
		}
	}
}

// TestVectors_RackAlternation: servers are taken from the racks in turn.
func TestVectors_RackAlternation(t *testing.T) {
	var file struct {
		Rows []assignmentRow `json:"rack_alternated"`
	}
	readVectors(t, "assignments", &file)
	if len(file.Rows) != 7 {
		t.Fatalf("%d rows, want 7", len(file.Rows))
	}
	for _, r := range file.Rows {
		order, racks := alternateRacks(r.candidates())
		got := make([]ServerID, len(order))
		for i, c := range order {
			got[i] = c.ID
		}
		names := slices.Clone(r.Racks)
		slices.Sort(names)
		if want := len(slices.Compact(names)); racks != want {
			t.Errorf("%v: %d racks, want %d", r.Racks, racks, want)
		}
		if d := cmp.Diff(r.Order, got); d != "" {
			t.Errorf("%v %v: -want +got\n%s", r.Servers, r.Racks, d)
		}
	}
}

// TestVectors_TimeFormats: a format is accepted exactly when upstream does, for
// the same kind of reason.
func TestVectors_TimeFormats(t *testing.T) {
	for _, r := range vectors[struct{ Unit, Fmt, Result string }](t, "auto_partition_formats") {
		unit, ok := ParseTimeUnit(strings.ToLower(r.Unit))
		if !ok {
			t.Fatalf("unit %s", r.Unit)
		}
		err := ValidateTimeFormat(unit, r.Fmt)
		if (err == nil) != (r.Result == "ok") {
			t.Errorf("%s %q: %v, want %s", r.Unit, r.Fmt, err, r.Result)
			continue
		}
		for _, reason := range []string{"must contain fields", "fixed width"} {
			if err != nil && strings.Contains(r.Result, reason) != strings.Contains(err.Error(), reason) {
				t.Errorf("%s %q: %v, want %s", r.Unit, r.Fmt, err, r.Result)
			}
		}
	}
}
