package report

import "slices"

// NamedChart is a chart and the file it goes to.
type NamedChart struct {
	File  string
	Chart Chart
}

// Charts draws what the run measured.
func (r *Run) Charts() []NamedChart {
	rows := r.Rows()
	return []NamedChart{
		{"throughput.svg", r.throughput(rows)},
		{"rescale.svg", r.rescale(rows)},
		{"latency.svg", r.latency(rows)},
		{"failover.svg", r.failover()},
	}
}

// series collects a system's points of one figure, ordered by x.
func series(rows []Row, work, metric, system string) []Point {
	var out []Point
	last := 0.0
	for _, row := range rows {
		c, ok := row.Cells[system]
		if !ok || row.Work != work || row.Metric != metric {
			continue
		}
		if c.Refused == "" {
			last = c.Median
		}
		out = append(out, Point{X: row.X, Y: last, Failed: c.Refused != ""})
	}
	slices.SortStableFunc(out, func(a, b Point) int { return int(a.X - b.X) })
	return out
}

func (c *Chart) add(name string, points []Point) {
	if len(points) > 0 {
		c.Lines = append(c.Lines, Line{Name: name, Points: points})
	}
}

func (r *Run) throughput(rows []Row) Chart {
	c := Chart{Title: "Durable writes of 200 bytes", XTitle: "callers", YTitle: "writes/s", LogX: true, LogY: true}
	for _, s := range r.Systems {
		c.add(s, series(rows, Write, Rate, s))
		c.add(s+", batched", series(rows, WriteBatched, Rate, s))
	}
	return c
}

func (r *Run) rescale(rows []Row) Chart {
	c := Chart{Title: "Rescale of partitions without a count (x: refused)", XTitle: "partitions", YTitle: "ms", LogX: true, LogY: true}
	for _, s := range r.Systems {
		c.add(s, series(rows, Rescale, Millis, s))
	}
	return c
}

// latencyCallers is where the distribution of latencies is drawn.
const latencyCallers = 64

// latency spreads the tail: the x axis is logarithmic in the share of calls that
// are slower.
func (r *Run) latency(rows []Row) Chart {
	c := Chart{Title: "Latency of durable writes, 64 callers", XTitle: "percent of calls that are faster", YTitle: "us", LogX: true, LogY: true}
	for _, s := range r.Systems {
		cell, ok := Find(rows, Write, at(latencyCallers), Rate, s)
		if !ok || len(cell.Quantiles) != len(Quantiles) {
			continue
		}
		var points []Point
		for i, q := range Quantiles {
			points = append(points, Point{X: 1 / (1 - q), Y: cell.Quantiles[i]})
		}
		c.add(s, points)
	}
	for _, t := range []struct {
		share float64
		label string
	}{{0, "0"}, {0.5, "50"}, {0.9, "90"}, {0.99, "99"}, {0.999, "99.9"}} {
		c.XTicks = append(c.XTicks, Tick{1 / (1 - t.share), t.label})
	}
	return c
}

// failover shows every round, sorted.
func (r *Run) failover() Chart {
	c := Chart{Title: "Time without a write after kill -9 of the leader", XTitle: "share of rounds, percent", YTitle: "ms"}
	for _, s := range r.Systems {
		var values []float64
		for _, v := range r.Samples {
			if v.Work == Failover && v.System == s && v.Refused == "" {
				values = append(values, v.Value)
			}
		}
		slices.Sort(values)
		var points []Point
		for i, v := range values {
			points = append(points, Point{X: float64(i+1) / float64(len(values)) * 100, Y: v})
		}
		c.add(s, points)
	}
	return c
}
