package report

import "fmt"

// place names one figure of a run.
type place struct{ work, point, metric string }

// Goal is a figure Stave should reach: beside a peer's, or, without a peer, by
// itself.
type Goal struct {
	Text string
	ours place
	// peer and theirs name what it is compared with; without a peer the figure
	// itself is compared with the bound.
	peer   string
	theirs place
	bound  float64
	// less says that the ratio or figure must not be above the bound.
	less bool
}

func at(callers int) string {
	if callers == 1 {
		return "1 caller"
	}
	return Number(callers) + " callers"
}

func same(text, peer string, p place, bound float64) Goal {
	return Goal{Text: text, ours: p, peer: peer, theirs: p, bound: bound}
}

// Goals are the figures to reach, medians of one run.
var Goals = []Goal{
	same("durable write, 1 caller: >= 1.2 x etcd", "etcd", place{Write, at(1), Rate}, 1.2),
	same("durable write, 1 caller: >= 1.8 x ZooKeeper", "zookeeper", place{Write, at(1), Rate}, 1.8),
	same("durable write, 256 callers: >= 2.2 x etcd", "etcd", place{Write, at(256), Rate}, 2.2),
	same("durable write, 256 callers: >= 2.2 x ZooKeeper", "zookeeper", place{Write, at(256), Rate}, 2.2),
	{
		Text: "create a partition, 256 callers: >= 1.8 x etcd's put",
		ours: place{Create, at(256), Rate}, peer: "etcd", theirs: place{Write, at(256), Rate}, bound: 1.8,
	},
	{
		Text: "durable write, 1,024 callers, batching client: >= 6 x etcd's put",
		ours: place{WriteBatched, at(1024), Rate}, peer: "etcd", theirs: place{Write, at(1024), Rate}, bound: 6,
	},
	same("linearizable get, 256 callers: >= 2.2 x etcd", "etcd", place{Get, at(256), Rate}, 2.2),
	same("linearizable get, 256 callers: >= 1.8 x ZooKeeper", "zookeeper", place{Get, at(256), Rate}, 1.8),
	same("create a partition under rescale: >= 4 x etcd", "etcd", place{CreateUnderRescale, at(256), Rate}, 4),
	{Text: "create a partition under rescale: no conflict retries at the client", ours: place{CreateUnderRescale, at(256), Retries}, less: true},
	{Text: "rescale with 1,000,000 uncounted partitions: < 5 ms", ours: place{Rescale, "1,000,000 partitions", Millis}, bound: 5, less: true},
	{
		Text: "consistent list of 100,000: >= 3 x etcd",
		ours: place{List, "100,000 partitions", Millis}, peer: "etcd", theirs: place{List, "100,000 partitions", Millis}, bound: 1.0 / 3, less: true,
	},
	{
		Text: "time without a write after kill -9 of the leader: <= 0.8 x etcd's",
		ours: place{Failover, "kill -9", Millis}, peer: "etcd", theirs: place{Failover, "kill -9", Millis}, bound: 0.8, less: true,
	},
	{Text: "start-up at 1,000,000 partitions: <= 6 s", ours: place{StartUp, "1,000,000 objects", Millis}, bound: 6000, less: true},
	{Text: "durable write of a partition, 256 callers: >= 20,000/s", ours: place{Create, at(256), Rate}, bound: 20_000},
	{Text: "durable write, 1 caller: p50 <= 700 us", ours: place{Write, at(1), P50}, bound: 700, less: true},
	{Text: "linearizable get, 256 callers: >= 40,000/s", ours: place{Get, at(256), Rate}, bound: 40_000},
	{Text: "linearizable get, 1 caller: p50 <= 250 us", ours: place{Get, at(1), P50}, bound: 250, less: true},
}

// Verdict is what a run says about a goal.
type Verdict struct {
	Goal     Goal
	Measured bool
	Value    float64
	Reached  bool
}

// Judge compares a goal with the medians of a run.
func (g Goal) Judge(rows []Row) Verdict {
	v := Verdict{Goal: g}
	c, ok := Find(rows, g.ours.work, g.ours.point, g.ours.metric, ours)
	if !ok || c.Refused != "" {
		return v
	}
	v.Value = c.Median
	if g.peer != "" {
		p, ok := Find(rows, g.theirs.work, g.theirs.point, g.theirs.metric, g.peer)
		if !ok || p.Refused != "" || p.Median == 0 {
			return v
		}
		v.Value /= p.Median
	}
	v.Measured = true
	v.Reached = v.Value >= g.bound
	if g.less {
		v.Reached = v.Value <= g.bound
	}
	return v
}

func (v Verdict) cells() []string {
	if !v.Measured {
		return []string{v.Goal.Text, "not measured", ""}
	}
	value := figure(v.Value)
	if v.Goal.peer != "" {
		value += " x"
	}
	if v.Reached {
		return []string{v.Goal.Text, value, "reached"}
	}
	if v.Goal.bound == 0 {
		return []string{v.Goal.Text, value, "**not reached**"}
	}
	return []string{v.Goal.Text, value, fmt.Sprintf("**not reached**, %.0f %% of the bound", v.Value/v.Goal.bound*100)}
}
