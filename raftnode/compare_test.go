package raftnode

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
)

// diverge makes a quiet node apply another command than all others.
func (c *cluster) diverge(n *Node) {
	c.t.Helper()
	synctest.Wait()
	data, err := fsm.AppendEntry(nil, catalog.Envelope{}, catalog.PutKV{Key: "own", Value: []byte("x")})
	if err != nil {
		c.t.Fatal(err)
	}
	n.fsm.ApplyBatch([]*raft.Log{{Index: n.fsm.Index() + 1, Type: raft.LogCommand, Data: data}})
}

// The minority holder of another state fences itself, whether it leads or not:
// it serves no reads and does not lead, but the cluster goes on with its votes
// and acknowledgements. It says so with both hashes, and is well again when its
// state was built anew.
func TestNode_DivergedIsFenced(t *testing.T) {
	for _, leads := range []bool{true, false} {
		t.Run(map[bool]string{true: "leader", false: "follower"}[leads], func(t *testing.T) {
			eachStore(t, func(t *testing.T, store LogStore) {
				c := newCluster(t, 3, store, nil)
				bad := c.leader()
				if !leads {
					bad = c.followers()[0]
				}
				c.propose(c.leader(), catalog.CreateDatabase{Name: "shop"})
				time.Sleep(5 * time.Second) // announcements and the first marker
				c.converge()
				c.diverge(bad)
				c.writeRaw(c.leader(), 3)
				l := c.leader()
				if err := l.order(c.timeout(5*time.Second), l.lead.Load(), catalog.Checksum{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if !hasHealth(bad, catalog.ErrDiverged.String()) {
					t.Fatalf("health %v", bad.Status().Health)
				}
				for _, level := range []Level{Linearizable, Stale, AtLeast(1)} {
					if _, err := bad.Read(c.timeout(time.Second), level); !errors.Is(err, catalog.ErrDiverged) {
						t.Errorf("read at the fenced node: %v", err)
					}
				}
				l = c.leader()
				if l == bad {
					t.Fatal("the fenced node leads")
				}
				for _, m := range l.Status().Members {
					if (m.Agreed == 0) != (m.ID == bad.cfg.ID) && leads == false {
						t.Errorf("%s agreed at revision %d", m.ID, m.Agreed)
					}
				}
				// With one more node down its acknowledgements are needed, and it cannot
				// lead.
				other := ""
				for id, n := range c.nodes {
					if n != bad && n != l {
						other = id
					}
				}
				c.isolate(other)
				c.propose(l, catalog.CreateDatabase{Name: "after"})
				c.net.HealAll()
				c.stop(bad.cfg.ID)
				bad = c.start(bad.cfg.ID)
				c.leader()
				c.converge()
				if h := bad.Status().Health; len(h) > 0 {
					t.Errorf("health after building the state anew: %v", h)
				}
			})
		})
	}
}

// writeRaw writes past the node's session, which would notice what differs.
func (c *cluster) writeRaw(n *Node, count int) {
	c.t.Helper()
	for range count {
		if _, err := n.Submit(c.timeout(10*time.Second), catalog.Envelope{}, catalog.PutKV{Key: "raw", Value: []byte("y")}); err != nil && !errors.Is(err, ErrOutcomeUnknown) {
			c.t.Fatal(err)
		}
	}
}

func TestMajority(t *testing.T) {
	a := func(hash uint64, voter, known bool) hashAnswer {
		return hashAnswer{hash: hash, voter: voter, known: known}
	}
	tests := []struct {
		name    string
		voters  int
		answers []hashAnswer
		want    uint64
		ok      bool
	}{
		{"all equal", 3, []hashAnswer{a(1, true, true), a(1, true, true), a(1, true, true)}, 1, true},
		{"two of three, one missing", 3, []hashAnswer{a(1, true, true), a(1, true, true), a(0, true, false)}, 1, true},
		{"one against one", 3, []hashAnswer{a(1, true, true), a(2, true, true), a(0, true, false)}, 0, false},
		{"one alone of three", 3, []hashAnswer{a(1, true, true)}, 0, false},
		{"two of four", 4, []hashAnswer{a(1, true, true), a(1, true, true), a(2, true, true), a(2, true, true)}, 0, false},
		{"non-voters do not count", 3, []hashAnswer{a(1, true, true), a(1, false, true), a(1, false, true)}, 0, false},
		{"single voter", 1, []hashAnswer{a(7, true, true)}, 7, true},
	}
	for _, tt := range tests {
		if got, ok := majority(tt.answers, tt.voters); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %d %t, want %d %t", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// leakTransferFlag does what an interrupted transfer may do.
func leakTransferFlag(r *raft.Raft) {
	f := reflect.ValueOf(r).Elem().FieldByName("leaderState").FieldByName("leadershipTransferInProgress")
	reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().SetInt(1)
}

// A leader whose raft believes for ever that leadership is being transferred is
// opened anew, and the cluster takes writes again.
func TestNode_TransferFlagLeaks(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		l := c.leader()
		c.propose(l, catalog.CreateDatabase{Name: "shop"})
		e := l.engine.Load()
		synctest.Wait()
		leakTransferFlag(e.raft)
		start := time.Now()
		c.propose(l, catalog.CreateDatabase{Name: "after"})
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("a write succeeds after %s", d)
		}
		if l.engine.Load() == e {
			t.Error("raft was not opened anew")
		}
		c.converge()
	})
}

// The same flag, left from an earlier term, keeps a new leader from opening its
// term.
func TestNode_TransferFlagLeaks_BeforeTerm(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		l := c.leader()
		c.propose(l, catalog.CreateDatabase{Name: "shop"})
		f := c.followers()[0]
		synctest.Wait()
		leakTransferFlag(f.engine.Load().raft)
		if err := l.TransferLeadership(t.Context(), f.cfg.ID); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		c.propose(l, catalog.CreateDatabase{Name: "after"})
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("a write succeeds after %s", d)
		}
		c.converge()
	})
}
