package raftnode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// One command that cannot become an entry is refused alone, at a follower as at
// the leader.
func TestNode_SubmitAll_OneTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		c.propose(c.leader(), catalog.CreateDatabase{Name: "shop"})
		for _, n := range append(c.followers(), c.leader()) {
			key := "k_" + n.cfg.ID
			out := n.SubmitAll(c.timeout(10*time.Second), []Submission{
				{Command: catalog.PutKV{Key: key, Value: []byte("a")}},
				{Command: catalog.PutKV{Key: "big", Value: make([]byte, 2<<20)}},
				{Command: catalog.PutKV{Key: key, Value: []byte("b")}},
			})
			if out[0].Err != nil || !isCode(out[1].Err, catalog.ErrTooLarge) || out[2].Err != nil || out[2].Result.Version != 2 {
				t.Errorf("%s: %+v", n.cfg.ID, out)
			}
		}
	})
}
