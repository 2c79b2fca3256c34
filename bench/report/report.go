// Package report turns samples into medians, a table, goals, JSON, a Markdown
// section and charts.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Names of what is measured. They are keys of results that are compared over
// time.
const (
	Write              = "durable write"
	WriteBatched       = "durable write, batching client"
	Create             = "create a partition"
	CreateBatched      = "create a partition, batching client"
	Get                = "linearizable get"
	CreateUnderRescale = "create a partition under rescale"
	Rescale            = "rescale, partitions without a count"
	List               = "consistent list"
	FanOut             = "watch fan-out"
	StartUp            = "start-up until every node serves"
	MemoryEmpty        = "memory of a node, empty"
	MemoryFilled       = "memory of a node, filled"
	MemoryStarted      = "memory of a node, after start-up"
	Failover           = "time without a write"
	Mixed              = "mixed day"
)

// Metrics. Of Rate and Deliveries more is better, of the others less.
const (
	Rate       = "calls/s"
	Deliveries = "deliveries/s"
	P50        = "p50 us"
	P99        = "p99 us"
	Millis     = "ms"
	Megabytes  = "MB"
	Retries    = "retries/s"
	Failures   = "errors"
)

// Quantiles are the shares of calls whose latencies a sample keeps.
var Quantiles = []float64{0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999}

// Sample is one figure of one repetition on one system.
type Sample struct {
	Workload string  `json:"workload"`
	Work     string  `json:"work"`
	Point    string  `json:"point"`
	X        float64 `json:"x,omitempty"`
	Metric   string  `json:"metric"`
	System   string  `json:"system"`
	Rep      int     `json:"rep"`
	Value    float64 `json:"value"`
	// Refused says why the system cannot do it.
	Refused string `json:"refused,omitempty"`
	// Quantiles are latencies in microseconds at the shares Quantiles.
	Quantiles []float64 `json:"quantiles_us,omitempty"`
}

// Run is everything one run measured.
type Run struct {
	Begin    time.Time `json:"begin"`
	Took     string    `json:"took"`
	Machine  Machine   `json:"machine"`
	Systems  []string  `json:"systems"`
	Reps     int       `json:"reps"`
	Duration string    `json:"duration"`
	Samples  []Sample  `json:"samples"`
	// Failed are the repetitions that ended with an error.
	Failed []string `json:"failed,omitempty"`
}

// WriteJSON writes the run.
func (r *Run) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(in io.Reader) (*Run, error) {
	var r Run
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return &r, nil
}

// Merge adds the samples of another run, of other workloads, on the same machine.
func (r *Run) Merge(o *Run) {
	r.Samples = append(r.Samples, o.Samples...)
	r.Failed = append(r.Failed, o.Failed...)
	r.Reps = max(r.Reps, o.Reps)
	r.Took += " + " + o.Took
	for _, s := range o.Systems {
		if !slices.Contains(r.Systems, s) {
			r.Systems = append(r.Systems, s)
		}
	}
}

// Cell is one system's figure: the median of its repetitions and their spread.
type Cell struct {
	Median, Min, Max float64
	N                int
	Refused          string
	Quantiles        []float64
}

// Row is one line of the table.
type Row struct {
	Workload, Work, Point, Metric string
	X                             float64
	Cells                         map[string]Cell
}

// Rows groups samples in the order they first occurred.
func (r *Run) Rows() []Row {
	type key struct{ workload, work, point, metric string }
	var rows []Row
	index := map[key]int{}
	values := map[key]map[string][]Sample{}
	for _, s := range r.Samples {
		k := key{s.Workload, s.Work, s.Point, s.Metric}
		if _, ok := index[k]; !ok {
			index[k] = len(rows)
			values[k] = map[string][]Sample{}
			rows = append(rows, Row{Workload: s.Workload, Work: s.Work, Point: s.Point, Metric: s.Metric, X: s.X, Cells: map[string]Cell{}})
		}
		values[k][s.System] = append(values[k][s.System], s)
	}
	for k, bySystem := range values {
		for system, samples := range bySystem {
			rows[index[k]].Cells[system] = summarize(samples)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Workload, b.Workload) })
	return rows
}

// summarize takes the median; the quantiles are those of the repetition in the
// middle, of an even number those of the lower one.
func summarize(samples []Sample) Cell {
	slices.SortFunc(samples, func(a, b Sample) int { return cmp.Compare(a.Value, b.Value) })
	for _, s := range samples {
		if s.Refused != "" {
			return Cell{N: len(samples), Refused: s.Refused}
		}
	}
	mid := samples[(len(samples)-1)/2]
	median := (mid.Value + samples[len(samples)/2].Value) / 2
	return Cell{Median: median, Min: samples[0].Value, Max: samples[len(samples)-1].Value, N: len(samples), Quantiles: mid.Quantiles}
}

// Find returns a system's cell of a row.
func Find(rows []Row, work, point, metric, system string) (Cell, bool) {
	for _, r := range rows {
		if r.Work == work && r.Point == point && r.Metric == metric {
			c, ok := r.Cells[system]
			return c, ok
		}
	}
	return Cell{}, false
}

// Micros returns a duration in microseconds.
func Micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// Number writes a whole number with commas.
func Number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// figure writes a value with three significant digits, large ones in full.
func figure(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return Number(int(v + 0.5))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
