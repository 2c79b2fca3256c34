package raftnode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// Clients end after the time they asked for without a command, many in one sweep,
// and time without a leader does not count.
func TestNode_ClientsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		register := func(ttl catalog.Millis) {
			t.Helper()
			if _, err := c.leader().Submit(c.timeout(5*time.Second), catalog.Envelope{}, catalog.RegisterClient{TTL: ttl}); err != nil {
				t.Fatal(err)
			}
		}
		const short = clientStep + 100
		for range short {
			register(catalog.MinClientTTL)
		}
		register(0)
		c.converge()
		for id := range c.peers {
			c.isolate(id)
		}
		time.Sleep(time.Minute)
		c.net.HealAll()
		if n := c.leader().fsm.State().Counts().Clients; n < short+1 {
			t.Errorf("%d clients after a minute without a leader, want %d", n, short+1)
		}
		time.Sleep(30 * time.Second)
		if n := c.leader().fsm.State().Counts().Clients; n == 0 || n > 5 { // the long one, and those of nodes
			t.Errorf("%d clients are left", n)
		}
	})
}
