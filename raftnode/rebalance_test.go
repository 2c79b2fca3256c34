package raftnode

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// A plan goes on through any number of leader changes, by transfer, stop and cut:
// it never has more moves in flight than it allows, each bucket ends with the
// replicas the plan gave it, and the plan ends.
func TestNode_RebalanceSurvivesLeaderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		for id := range catalog.ServerID(5) {
			c.propose(c.leader(), catalog.RegisterServer{ID: id, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: catalog.MaxServerTTL})
		}
		c.propose(c.leader(), catalog.CreateDatabase{Name: "d"})
		c.propose(c.leader(), catalog.CreateTable{
			Table: "d.t", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}}, Buckets: catalog.Some[int32](40),
			Properties: []catalog.Property{{Key: catalog.PropReplication, Value: "2"}},
		})
		c.propose(c.leader(), catalog.TagServer{IDs: []catalog.ServerID{0}, Tag: catalog.PermanentOffline})
		c.converge()
		plan, err := c.leader().fsm.State().PlanRebalance(0)
		if err != nil || plan.Copies < 16 {
			t.Fatalf("plan %+v, %v", plan, err)
		}
		const inFlight = 2
		c.propose(c.leader(), catalog.StartRebalance{ID: "r", Moves: plan.Moves, InFlight: inFlight})
		deadline := time.Now().Add(5 * time.Minute)
		for round := 0; ; round++ {
			if time.Now().After(deadline) {
				t.Fatalf("the plan did not end: %+v", c.leader().fsm.State().Rebalance())
			}
			st := c.leader().fsm.State()
			if st.Rebalance().Status != catalog.RebalanceRunning {
				break
			}
			if done := syncOne(t, c, st, inFlight); !done {
				time.Sleep(300 * time.Millisecond)
				continue
			}
			changeLeader(t, c, round)
		}
		c.converge()
		st := c.leader().fsm.State()
		if r := st.Rebalance(); r.Status != catalog.RebalanceCompleted {
			t.Errorf("plan at the end: %+v", r)
		}
		for _, m := range plan.Moves {
			if _, replicas, _ := st.Bucket(m.Bucket); !slices.Equal(replicas, m.To) {
				t.Errorf("%s has replicas %v, want %v", m.Bucket, replicas, m.To)
			}
		}
		c.propose(c.leader(), catalog.UnregisterServer{ID: 0})
	})
}

// syncOne brings the new replicas of one move into sync.
func syncOne(t *testing.T, c *cluster, st *catalog.State, inFlight int) bool {
	t.Helper()
	var copying []catalog.Move
	for _, m := range st.Rebalance().Moves {
		if st.Phase(m) == catalog.MoveCopying {
			copying = append(copying, m)
		}
	}
	if len(copying) > inFlight {
		t.Fatalf("%d moves are in flight, want %d at most", len(copying), inFlight)
	}
	if len(copying) == 0 {
		return false
	}
	s, replicas, _ := st.Bucket(copying[0].Bucket)
	c.propose(c.leader(), catalog.AdjustISR{Server: s.Leader, Incarnation: c.lease(s.Leader).Incarnation, Changes: []catalog.ISRChange{
		{Bucket: copying[0].Bucket, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, ISR: replicas},
	}})
	return true
}

func changeLeader(t *testing.T, c *cluster, round int) {
	t.Helper()
	old := c.leader()
	id := old.cfg.ID
	switch round % 3 {
	case 0:
		if err := old.TransferLeadership(t.Context(), ""); err != nil {
			t.Logf("transfer: %v", err)
		}
	case 1:
		c.stop(id)
		c.leaderExcept(id)
		c.start(id)
	default:
		c.isolate(id)
		c.leaderExcept(id)
		c.net.HealAll()
	}
}
