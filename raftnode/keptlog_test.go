package raftnode

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// The log reaches back to the older snapshot, also when more entries than
// TrailingLogs lie between the two, and no further.
func TestNode_LogReachesBack(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, compacting)
		n := c.leader()
		wide := false
		for i := range 500 {
			c.propose(n, catalog.PutKV{Key: fmt.Sprint("k", i%10)})
			time.Sleep(500 * time.Microsecond) // some hundred entries to a snapshot
			if i%50 != 0 {
				continue
			}
			synctest.Wait() // no snapshot is under way
			found, err := n.snaps.find()
			mustDo(t, err)
			first, err := n.stores.Log().FirstIndex()
			mustDo(t, err)
			if len(found) < 2 {
				continue
			}
			wide = wide || found[0].index-found[1].index > n.cfg.TrailingLogs+1
			if first > found[1].index+1 {
				t.Fatalf("the log begins at %d, the older snapshot ends at %d", first, found[1].index)
			}
			if i > 400 && first == 1 {
				t.Fatal("nothing was compacted")
			}
		}
		if !wide {
			t.Error("no two snapshots were further apart than TrailingLogs")
		}
	})
}
