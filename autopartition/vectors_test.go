package autopartition

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/catalog"
)

func vectors[T any](t *testing.T, name string) (rows []T) {
	t.Helper()
	data, err := os.ReadFile("../testdata/vectors/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Count int
		Rows  json.RawMessage
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file.Rows, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 || len(rows) != file.Count {
		t.Fatalf("%s: %d rows, the file says %d", name, len(rows), file.Count)
	}
	return rows
}

func at(t testing.TB, text string) catalog.Millis {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Millis(v.UnixMilli())
}

// strategyOf reads a table that exists on paper only.
func strategyOf(t testing.TB, unit, format, zone string) Strategy {
	t.Helper()
	table := &catalog.Table{Path: "d.t", PartitionKeys: []string{"dt"}}
	table.Properties = properties(map[string]string{catalog.PropAutoEnabled: "true", catalog.PropAutoUnit: unit, catalog.PropAutoFormat: format, catalog.PropAutoZone: zone})
	s, err := NewStrategy(table)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// properties returns those with a value, sorted.
func properties(m map[string]string) (out []catalog.Property) {
	for k, v := range m {
		if v != "" {
			out = append(out, catalog.Property{Key: k, Value: v})
		}
	}
	slices.SortFunc(out, func(a, b catalog.Property) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// silentlyGMT are zones of the vectors that upstream takes for GMT without a
// word. Stave refuses them for new tables; an imported table keeps its names.
var silentlyGMT = map[string]bool{"UTC-8": true, "Not/AZone": true}

// TestVectors_Names: the values at six offsets of every unit, zone, instant and
// format are upstream's.
func TestVectors_Names(t *testing.T) {
	offsets := []int{-7, -1, 0, 1, 2, 3}
	met := map[string]bool{}
	for i, r := range vectors[struct {
		Unit, TZ, Now, Fmt string
		Names              []string
	}](t, "auto_partition_names") {
		err := CheckZone(r.TZ)
		if silentlyGMT[r.TZ] {
			met[r.TZ] = true
			if !errors.Is(err, catalog.ErrInvalidConfig) || !strings.Contains(err.Error(), "'"+r.TZ+"'") {
				t.Errorf("row %d: zone %s: %v, want it refused by name", i, r.TZ, err)
			}
		} else if err != nil {
			t.Errorf("row %d: zone %s: %v", i, r.TZ, err)
		}
		s := strategyOf(t, r.Unit, r.Fmt, r.TZ)
		var got []string
		for _, k := range offsets {
			v, ok := s.Value(at(t, r.Now), k)
			if !ok {
				t.Errorf("row %d: no value at offset %d", i, k)
			}
			if _, err := s.Pattern.Parse(v); err != nil {
				t.Errorf("row %d: own value does not parse: %v", i, err)
			}
			got = append(got, v)
		}
		if d := cmp.Diff(r.Names, got); d != "" {
			t.Errorf("row %d, %s %s %s %s: -want +got\n%s", i, r.Unit, r.TZ, r.Now, r.Fmt, d)
		}
	}
	if d := cmp.Diff(silentlyGMT, met); d != "" {
		t.Errorf("zones met: -want +got\n%s", d)
	}
}

// stricter are values that upstream's lenient date parser takes although they
// name no time, with the reason; the last ones are not in the vectors.
var stricter = map[string]string{
	"MONTH||202400":              "month 0",
	"DAY||20230229":              "2023 is no leap year",
	"DAY||20240431":              "April has 30 days",
	"HOUR||2024010124":           "hour 24",
	"DAY|yyyy-MM-dd|2024-02-30":  "February has 29 days",
	"QUARTER|yyyy-'Q'Q|2024-Q5":  "there are four quarters",
	"MONTH||202413":              "month 13",
	"DAY||20240230":              "February has 29 days",
	"HOUR||2024023023":           "February has 29 days",
	"YEAR|yyyy|0000":             "no year 0",
	"QUARTER|yyyy_'Q'Q|2024_Q0":  "no quarter 0",
	"MONTH|yyyy-MM|2024-00":      "month 0",
	"DAY|'d'yyyyMMdd|d20240100":  "day 0",
	"HOUR|yyyyMMdd'T'HH|x":       "no time at all",
	"QUARTER||20245":             "there are four quarters",
	"QUARTER||20240":             "no quarter 0",
	"DAY||20240132":              "January has 31 days",
	"MONTH||2024１":               "a digit that is not ASCII",
	"YEAR||+024":                 "a sign",
	"HOUR|yyyy-MM-dd-HH|2024-1-": "too short",
}

// fixed are values of quarters in the default format, which upstream's parser
// cannot read at all; and whether they are past.
var fixed = map[string]bool{
	"QUARTER||20244": false,
	"QUARTER||02024": true, // the fourth quarter of the year 202
	"QUARTER||12024": true, // of the year 1202
}

// TestVectors_Values: a value is one of its format exactly when upstream says
// so, except for the rows listed with a reason; and it is past when it should be.
func TestVectors_Values(t *testing.T) {
	now := at(t, "2024-06-15T12:00:00Z")
	met := map[string]bool{}
	for i, r := range vectors[struct {
		Unit, Fmt, Value string
		OK               bool `json:"format_ok"`
		Past             bool `json:"past_at_2024_06_15T12Z"`
	}](t, "auto_partition_values") {
		key := r.Unit + "|" + r.Fmt + "|" + r.Value
		want, past := r.OK, r.Past
		if stricter[key] != "" && r.OK {
			met[key] = true
			want, past = false, false
		}
		if isPast, ok := fixed[key]; ok {
			met[key] = true
			if r.OK {
				t.Errorf("row %d: upstream reads %s too", i, key)
			}
			want, past = true, isPast
		}
		s := strategyOf(t, r.Unit, r.Fmt, "UTC")
		if _, err := s.Pattern.Parse(r.Value); (err == nil) != want {
			t.Errorf("row %d, %s: parsed: %v, want %v", i, key, err, want)
		}
		if got := s.IsPast(r.Value, now); got != past {
			t.Errorf("row %d, %s: past is %v, want %v", i, key, got, past)
		}
	}
	t.Logf("rows where Stave differs on purpose: %d", len(met))
	for _, key := range []string{
		"MONTH||202400", "DAY||20230229", "DAY||20240431", "HOUR||2024010124", "DAY|yyyy-MM-dd|2024-02-30", "QUARTER|yyyy-'Q'Q|2024-Q5",
		"QUARTER||20244", "QUARTER||02024", "QUARTER||12024",
	} {
		if !met[key] {
			t.Errorf("row %s is not in the file or upstream agrees", key)
		}
	}
}

// TestStricter: each refusal beyond upstream's, by itself.
func TestStricter(t *testing.T) {
	for key, why := range stricter {
		part := strings.SplitN(key, "|", 3)
		s := strategyOf(t, part[0], part[1], "")
		if v, err := s.Pattern.Parse(part[2]); err == nil {
			t.Errorf("%s is read as %+v: %s", key, v, why)
		}
	}
}

// TestVectors_Runs: forced runs drop and create upstream's partitions, drops
// first, and leave the same ones. Drops of one run have no order of their own.
func TestVectors_Runs(t *testing.T) {
	for i, r := range vectors[struct {
		Unit, TZ, Fmt string
		Precreate     int      `json:"num_precreate"`
		Retention     int      `json:"num_retention"`
		Keys          []string `json:"partition_keys"`
		AutoKey       string   `json:"auto_key"`
		Max           uint32   `json:"max_partition_num"`
		Initial       []string
		Steps         []struct {
			Now             string
			Ops, Partitions []string
		}
	}](t, "auto_partition_runs") {
		w := newWorld(t, r.Steps[0].Now)
		w.must(catalog.SetLimits{Limits: catalog.Limits{Partitions: r.Max}})
		w.table(r.Keys, map[string]string{
			catalog.PropAutoUnit: r.Unit, catalog.PropAutoZone: r.TZ, catalog.PropAutoFormat: r.Fmt, catalog.PropAutoKey: r.AutoKey,
			catalog.PropAutoPrecreate: itoa(r.Precreate), catalog.PropAutoRetention: itoa(r.Retention),
		})
		w.create(r.Initial...)
		for _, step := range r.Steps {
			w.now(step.Now)
			w.force()
			ops := w.run()
			want := slices.Clone(step.Ops)
			drops := 0
			for _, op := range want {
				if strings.HasPrefix(op, "drop ") {
					drops++
				}
			}
			slices.Sort(want[:drops])
			if d := cmp.Diff(want, ops); d != "" && len(want)+len(ops) > 0 {
				t.Errorf("run %d at %s: -want +got\n%s", i, step.Now, d)
			}
			if d := cmp.Diff(step.Partitions, w.names()); d != "" {
				t.Errorf("run %d at %s: partitions: -want +got\n%s", i, step.Now, d)
			}
		}
	}
}
