package raftnode

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stavedb/stave/catalog"
)

// A node counts what it appends: every entry once, and each append with its time.
// Once it is closed the registerer is free for another.
func TestNode_Metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		c := newCluster(t, 1, LogStoreWAL, func(cfg *Config) { cfg.Registerer = reg })
		n := c.leader()
		c.propose(n, catalog.PutKV{Key: "k", Value: []byte("v")})
		synctest.Wait() // nothing is under way while it counts
		last := n.Status().LastIndex
		families, err := reg.Gather()
		mustDo(t, err)
		found := map[string]bool{}
		for _, f := range families {
			found[f.GetName()] = true
			if !strings.HasPrefix(f.GetName(), "stave_") || f.GetHelp() == "" {
				t.Errorf("metric %q, help %q", f.GetName(), f.GetHelp())
			}
			for _, m := range f.GetMetric() {
				switch h := m.GetHistogram(); f.GetName() {
				case "stave_raft_append_entries":
					if h.GetSampleSum() != float64(last) || h.GetSampleCount() == 0 {
						t.Errorf("%v entries in %d appends, the log ends at %d", h.GetSampleSum(), h.GetSampleCount(), last)
					}
				case "stave_raft_append_duration_seconds":
					if h.GetSampleCount() == 0 {
						t.Error("no append was timed")
					}
				}
			}
		}
		for _, name := range []string{"stave_raft_append_entries", "stave_raft_append_duration_seconds", "stave_raft_term", "stave_catalog_keys"} {
			if !found[name] {
				t.Errorf("no metric %s", name)
			}
		}
		c.stop("n1")
		if families, err = reg.Gather(); err != nil || len(families) > 0 {
			t.Errorf("%d metrics of a closed node, %v", len(families), err)
		}
	})
}
