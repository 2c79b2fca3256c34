package raftnode

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// eachStore runs a test in a bubble, on both log stores.
func eachStore(t *testing.T, f func(t *testing.T, store LogStore)) {
	t.Helper()
	for _, s := range []LogStore{LogStoreWAL, LogStoreBolt} {
		t.Run(string(s), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, s) })
		})
	}
}

// A write at any node is read at every node, and a leader that goes away is
// replaced without loss.
func TestNode_WriteReadFailOver(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		c.propose(c.leader(), catalog.CreateDatabase{Name: "shop"})
		for i, n := range c.followers() {
			c.propose(n, catalog.CreateDatabase{Name: fmt.Sprintf("via_follower_%d", i)})
		}
		for id, n := range c.nodes {
			st, err := n.Read(c.timeout(5*time.Second), Linearizable)
			if err != nil {
				t.Fatalf("read at %s: %v", id, err)
			}
			if got := st.Counts().Databases; got != 3 {
				t.Errorf("%s reads %d databases, want 3", id, got)
			}
		}
		old := c.leader()
		c.stop(old.cfg.ID)
		c.propose(c.leader(), catalog.CreateDatabase{Name: "after"})
		c.start(old.cfg.ID)
		c.converge()
		for id, n := range c.nodes {
			if got := n.fsm.State().Counts().Databases; got != 4 {
				t.Errorf("%s has %d databases, want 4", id, got)
			}
		}
	})
}
