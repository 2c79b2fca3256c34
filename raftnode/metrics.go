package raftnode

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the node's figures when it is asked for them.
type collector struct {
	n    *Node
	desc map[string]*prometheus.Desc
}

// appends measures the appends to the log, whichever raft instance makes them.
type appends struct {
	duration, entries prometheus.Histogram
}

func newAppends(node string) appends {
	labels := prometheus.Labels{"node": node}
	return appends{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "stave_raft_append_duration_seconds", Help: "Durations of appends to the log, sync included.",
			ConstLabels: labels, Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 13),
		}),
		entries: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "stave_raft_append_entries", Help: "Entries that shared one append, and with it one sync.",
			ConstLabels: labels, Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}),
	}
}

func (a appends) observe(entries int, took time.Duration) {
	a.duration.Observe(took.Seconds())
	a.entries.Observe(float64(entries))
}

var nodeMetrics = []struct{ name, help string }{
	{"stave_raft_term", "Current raft term."},
	{"stave_raft_commit_index", "Highest raft index known to be committed."},
	{"stave_raft_last_index", "Highest raft index in the log."},
	{"stave_raft_applied_index", "Highest raft index the state contains."},
	{"stave_raft_leading", "1 while this node leads and serves."},
	{"stave_raft_gated", "1 while this node stands back because of its disk."},
	{"stave_raft_diverged", "1 while this node is fenced because its state differs from the majority's."},
	{"stave_raft_clock_offset_seconds", "How far the wall clock of this node is ahead of the median of the voters while it leads."},
	{"stave_raft_proposals_in_flight_bytes", "Bytes of commands taken and not yet answered."},
	{"stave_raft_snapshots_installed_total", "Snapshots taken over from a leader since start."},
	{"stave_catalog_revision", "Revision of the state."},
	{"stave_catalog_tables", "Tables in the state."},
	{"stave_catalog_partitions", "Partitions in the state."},
	{"stave_catalog_databases", "Databases in the state."},
	{"stave_catalog_servers", "Registered tablet servers."},
	{"stave_catalog_keys", "Keys of the generic group."},
	{"stave_catalog_clients", "Registered clients."},
	{"stave_catalog_unassigned", "Tables and partitions without a placement."},
}

// registerMetrics makes the node's figures part of the registerer.
func (n *Node) registerMetrics() error {
	if n.cfg.Registerer == nil {
		return nil
	}
	c := &collector{n: n, desc: map[string]*prometheus.Desc{}}
	for _, m := range nodeMetrics {
		c.desc[m.name] = prometheus.NewDesc(m.name, m.help, nil, prometheus.Labels{"node": n.cfg.ID})
	}
	if err := n.cfg.Registerer.Register(c); err != nil {
		var dup prometheus.AlreadyRegisteredError
		if errors.As(err, &dup) {
			return fmt.Errorf("metrics of node %s are registered already: %w", n.cfg.ID, err)
		}
		return fmt.Errorf("register metrics: %w", err)
	}
	n.mu.Lock()
	n.metrics = c
	n.mu.Unlock()
	return nil
}

func (n *Node) unregisterMetrics() {
	n.mu.Lock()
	c := n.metrics
	n.metrics = nil
	n.mu.Unlock()
	if c != nil {
		n.cfg.Registerer.Unregister(c)
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.desc {
		ch <- d
	}
	c.n.appends.duration.Describe(ch)
	c.n.appends.entries.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.n.Status()
	counts := c.n.fsm.State().Counts()
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	values := map[string]float64{
		"stave_raft_term": float64(s.Term), "stave_raft_commit_index": float64(s.CommitIndex), "stave_raft_last_index": float64(s.LastIndex),
		"stave_raft_applied_index": float64(s.AppliedIndex), "stave_raft_leading": flag(s.Role == "leader"),
		"stave_raft_gated": flag(c.n.gated.Load()), "stave_raft_diverged": flag(c.n.diverged.Load() != nil),
		"stave_raft_snapshots_installed_total": float64(s.SnapshotsInstalled),
		"stave_catalog_revision":               float64(s.Revision), "stave_catalog_tables": float64(counts.Tables),
		"stave_catalog_partitions": float64(counts.Partitions), "stave_catalog_databases": float64(counts.Databases),
		"stave_catalog_servers": float64(counts.Servers), "stave_catalog_keys": float64(counts.Keys),
		"stave_catalog_clients": float64(counts.Clients), "stave_catalog_unassigned": float64(counts.Unassigned),
	}
	if e := c.n.engine.Load(); e != nil {
		values["stave_raft_proposals_in_flight_bytes"] = float64(e.bytes.Load())
	}
	if l := c.n.lead.Load(); l != nil {
		values["stave_raft_clock_offset_seconds"] = l.clock.ahead().Seconds()
	}
	for name, v := range values {
		kind := prometheus.GaugeValue
		if name == "stave_raft_snapshots_installed_total" {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(c.desc[name], kind, v)
	}
	c.n.appends.duration.Collect(ch)
	c.n.appends.entries.Collect(ch)
}
