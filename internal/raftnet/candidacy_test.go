package raftnet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A node that must not stand for election keeps its term whatever it is told
// and however long it hears nothing, but still votes and takes entries.
func TestTransport_NoCandidacy(t *testing.T) {
	tests := []struct {
		name    string
		silence func(*Transport)
	}{
		{"candidacy forbidden", func(tr *Transport) { tr.SetCandidacy(false) }},
		{"gate closed", func(tr *Transport) { tr.SetGate(true) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, clusterOptions{})
				l := c.leader()
				quiet := c.others(l)[0]
				tt.silence(quiet.trans)
				term := quiet.raft.CurrentTerm()
				if err := l.raft.LeadershipTransferToServer(raft.ServerID(quiet.id), raft.ServerAddress(quiet.id)).Error(); err == nil {
					t.Error("leadership was handed to it")
				}
				c.isolate(quiet)
				time.Sleep(30 * time.Second)
				if got := quiet.raft.CurrentTerm(); got != term {
					t.Errorf("term went from %d to %d", term, got)
				}
				c.net.HealAll()
				l = c.leader()
				await(t, "it follows", func() bool { return quiet.raft.AppliedIndex() >= l.raft.AppliedIndex() })
				// With its vote one of the others can be elected.
				c.isolate(l)
				for _, o := range c.others(l) {
					if o != quiet {
						c.leader(o)
					}
				}
				c.net.HealAll()
				c.close()
			})
		})
	}
}
