package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleRun has one rate on three systems and a rescale that one refuses.
func sampleRun() *Run {
	r := &Run{Systems: []string{"stave", "etcd", "zookeeper"}, Reps: 3, Failed: []string{"one\ntwo"}}
	for rep, v := range []float64{30_000, 10_000, 20_000} {
		r.Samples = append(r.Samples,
			Sample{Workload: "a", Work: Write, Point: "256 callers", X: 256, Metric: Rate, System: "stave", Rep: rep, Value: v},
			Sample{Workload: "a", Work: Write, Point: "256 callers", X: 256, Metric: Rate, System: "etcd", Rep: rep, Value: v / 2.5},
			Sample{Workload: "d", Work: Rescale, Point: "1,000 partitions", X: 1000, Metric: Millis, System: "stave", Rep: rep, Value: 1},
			Sample{Workload: "d", Work: Rescale, Point: "1,000 partitions", X: 1000, Metric: Millis, System: "etcd", Rep: rep, Refused: "too many"},
			Sample{Workload: "h", Work: Failover, Point: "kill -9", Metric: Millis, System: "etcd", Rep: rep, Value: v / 10},
		)
	}
	return r
}

// A cell is the median of the repetitions with their extremes; a refusal is
// never a figure.
func TestRun_Rows(t *testing.T) {
	rows := sampleRun().Rows()
	got, ok := Find(rows, Write, "256 callers", Rate, "stave")
	if want := (Cell{Median: 20_000, Min: 10_000, Max: 30_000, N: 3}); !ok || !cmp.Equal(got, want) {
		t.Errorf("cell: %s", cmp.Diff(want, got))
	}
	if got, _ := Find(rows, Rescale, "1,000 partitions", Millis, "etcd"); got.Refused != "too many" {
		t.Errorf("cell of a refusal is %+v", got)
	}
	if got := ratio(rows[0], "etcd"); got != "2.50" {
		t.Errorf("ratio is %s, want 2.50", got)
	}
	if got := ratio(rows[1], "etcd"); got != "-" {
		t.Errorf("ratio to a refusal is %s, want -", got)
	}
}

// A goal is reached by the ratio of medians, in its direction, and is not judged
// without figures.
func TestGoal_Judge(t *testing.T) {
	rows := sampleRun().Rows()
	p := place{Write, "256 callers", Rate}
	for _, c := range []struct {
		name              string
		goal              Goal
		measured, reached bool
	}{
		{"above", same("", "etcd", p, 2.4), true, true},
		{"below", same("", "etcd", p, 2.6), true, false},
		{"less is better", Goal{ours: p, peer: "etcd", theirs: p, bound: 2.6, less: true}, true, true},
		{"absolute", Goal{ours: p, bound: 20_001}, true, false},
		{"peer not measured", same("", "zookeeper", p, 1), false, false},
		{"not measured", Goal{ours: place{Get, "1 caller", P50}, bound: 1}, false, false},
	} {
		if v := c.goal.Judge(rows); v.Measured != c.measured || v.Reached != c.reached {
			t.Errorf("%s: measured %t, reached %t; want %t, %t", c.name, v.Measured, v.Reached, c.measured, c.reached)
		}
	}
}

// Every goal names figures that a run measures.
func TestGoals_Names(t *testing.T) {
	works := []string{Write, WriteBatched, Create, Get, CreateUnderRescale, Rescale, List, StartUp, Failover}
	for _, g := range Goals {
		if !slices.Contains(works, g.ours.work) || g.peer != "" && !slices.Contains(peers, g.peer) {
			t.Errorf("goal %q is of %q beside %q", g.Text, g.ours.work, g.peer)
		}
	}
}

// JSON holds all that table, Markdown and charts need.
func TestRun_JSON(t *testing.T) {
	want := sampleRun()
	var b bytes.Buffer
	if err := want.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(&b)
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("error %v, difference %s", err, cmp.Diff(want, got))
	}
}

// Charts are well-formed, also without figures, and mark refusals.
func TestChart_WriteSVG(t *testing.T) {
	for _, r := range []*Run{sampleRun(), {Systems: []string{"stave"}}} {
		for _, c := range r.Charts() {
			var b bytes.Buffer
			if err := c.Chart.WriteSVG(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
				t.Errorf("%s has a place that is no number", c.File)
			}
			if refused := len(r.Samples) > 0 && c.File == "rescale.svg"; refused != strings.Contains(b.String(), "etcd refused") {
				t.Errorf("%s marks a refusal: %t, want %t", c.File, !refused, refused)
			}
			for d := xml.NewDecoder(&b); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", c.File, err)
				}
			}
		}
	}
}

// Only the measured part of a document is replaced.
func TestInsert(t *testing.T) {
	first := Insert("# Results\n\nBy hand.\n", "one")
	second := Insert(first+"\nAfter.\n", "two")
	want := "# Results\n\nBy hand.\n\n" + BeginMark + "\n\ntwo\n\n" + EndMark + "\n\nAfter.\n"
	if second != want {
		t.Error(cmp.Diff(want, second))
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Number(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
