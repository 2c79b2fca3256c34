package raftnode

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// lease is that of a registered tablet server, as any node knows it.
func (c *cluster) lease(id catalog.ServerID) catalog.Lease {
	c.t.Helper()
	for _, n := range c.nodes {
		if v, ok := n.fsm.State().Server(id); ok {
			return catalog.Lease{ID: id, Incarnation: v.Incarnation}
		}
	}
	c.t.Fatalf("server %d is not registered", id)
	return catalog.Lease{}
}

// A live server is never expired, a dead one is, between its TTL and half as
// much again, however often the leader moves meanwhile.
func TestNode_LeasesSurviveLeaderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		const ttl = 10_000
		for id := range catalog.ServerID(2) {
			c.propose(c.leader(), catalog.RegisterServer{ID: id, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: ttl})
		}
		start := time.Now()
		expired := time.Duration(0)
		nextMove := 3 * time.Second
		for time.Since(start) < 30*time.Second {
			n := c.leader()
			lost, err := n.KeepAlive(c.timeout(3*time.Second), []catalog.Lease{c.lease(0)})
			if err == nil && len(lost) > 0 {
				t.Fatalf("after %s the live server lost its lease: %v", time.Since(start), lost[0].Err)
			}
			if v, ok := n.fsm.State().Server(1); ok && !v.Live && expired == 0 {
				expired = time.Since(start)
			}
			if time.Since(start) >= nextMove {
				nextMove += 3 * time.Second
				if err := n.TransferLeadership(t.Context(), ""); err != nil {
					t.Logf("transfer: %v", err)
				}
			}
			time.Sleep(time.Second)
		}
		if expired < 10*time.Second || expired > 15*time.Second {
			t.Errorf("the dead server ended %s after its last sign, want 10 s to 15 s", expired)
		}
		lost, err := c.followers()[0].KeepAlive(c.timeout(3*time.Second), []catalog.Lease{c.lease(1), c.lease(0), {ID: 9, Incarnation: 1}})
		if err != nil || len(lost) != 2 || !isCode(lost[0].Err, catalog.ErrSessionExpired) {
			t.Errorf("a late keepalive through a follower: %v, %v", lost, err)
		}
		v, _ := c.leader().fsm.State().Server(1)
		if v.Live {
			t.Error("a late keepalive brought an expired server back")
		}
	})
}

// Without a quorum the lease clock stands still: a live server keeps its lease.
func TestNode_LeasesWithoutQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		c.propose(c.leader(), catalog.RegisterServer{ID: 0, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 10_000})
		c.converge()
		for id := range c.peers {
			c.isolate(id)
		}
		time.Sleep(60 * time.Second)
		c.net.HealAll()
		deadline := time.Now().Add(8 * time.Second)
		for time.Now().Before(deadline) {
			for _, n := range c.nodes {
				lost, err := n.KeepAlive(c.timeout(2*time.Second), []catalog.Lease{c.lease(0)})
				if err == nil && len(lost) == 0 {
					return
				}
				if len(lost) > 0 {
					t.Fatalf("lost: %v", lost[0].Err)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal("no keepalive was answered within 8 s after the cut")
	})
}
