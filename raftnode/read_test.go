package raftnode

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stavedb/stave/catalog"
)

// A leader that is cut off does not answer linearizable reads once another one
// can have committed; stale reads go on and carry their revision.
func TestNode_Read_CutLeader(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		old := c.leader()
		c.propose(old, catalog.PutKV{Key: "x", Value: []byte("1")})
		c.isolate(old.cfg.ID)
		next := c.leaderExcept(old.cfg.ID)
		c.propose(next, catalog.PutKV{Key: "x", Value: []byte("2")})
		if st, err := old.Read(c.timeout(3*time.Second), Linearizable); !errors.Is(err, ErrUnavailable) {
			t.Errorf("the cut-off leader answers a read: %v, %v", st, err)
		}
		if st, err := old.Read(c.timeout(time.Second), Stale); err != nil || st.Revision() >= next.fsm.State().Revision() {
			t.Errorf("stale read: %v", err)
		}
		if _, err := old.Read(c.timeout(time.Second), AtLeast(next.fsm.State().Revision())); !errors.Is(err, ErrUnavailable) {
			t.Errorf("read of at least a revision that is not here: %v", err)
		}
		c.net.HealAll()
		if st, err := old.Read(c.timeout(5*time.Second), Linearizable); err != nil || value(st) != "2" {
			t.Errorf("read after healing: %v", err)
		}
	})
}

// A leader answers no linearizable read on its own word, also while it still leads:
// more than half of the voters must be in its very term.
func TestNode_Read_Confirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		l := c.leader()
		c.propose(l, catalog.PutKV{Key: "x", Value: []byte("1")})
		c.converge()
		term := l.lead.Load().term
		for _, f := range c.followers() {
			for asked, good := range map[uint64]bool{term - 1: false, term: true, term + 1: false} {
				if err := l.confirmTerm(c.timeout(time.Second), f.cfg.ID, asked); (err == nil) != good {
					t.Errorf("%s in term %d confirms term %d: %v", f.cfg.ID, term, asked, err)
				}
			}
		}
		c.isolate(l.cfg.ID)
		if st, err := l.Read(c.timeout(l.cfg.LeaderLease/3), Linearizable); err == nil {
			t.Errorf("a leader that is cut off answers %q", value(st))
		}
		if lead := l.lead.Load(); lead == nil || lead.term != term {
			t.Error("the leader gave up before it was asked: the read proved nothing")
		}
	})
}

func value(st *catalog.State) string {
	kv, ok := st.KeyValue("x")
	if !ok {
		return ""
	}
	return string(kv.Value)
}

// register is one value that is written and read.
type registerOp struct {
	write bool
	value string
}

var registerModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		in, _ := input.(registerOp)
		if in.write {
			return true, in.value
		}
		return output == state, state
	},
}

// Reads at every node, in the midst of cuts, transfers, delays and pauses, fit
// one order of all writes. The seed is in the name of the subtest.
func TestNode_Read_Linearizable(t *testing.T) {
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { linearizable(t, seed) })
		})
	}
}

func linearizable(t *testing.T, seed uint64) {
	c := newCluster(t, 3, LogStoreWAL, nil)
	rnd := rand.New(rand.NewPCG(seed, 1))
	ids := []string{"n1", "n2", "n3"}
	for _, a := range ids {
		for _, b := range ids {
			c.net.Delay(a, b, time.Duration(rnd.IntN(5_000))*time.Microsecond)
		}
	}
	c.leader()
	start := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for client := range 6 {
		n := c.nodes[ids[client%3]]
		own := rand.New(rand.NewPCG(seed, uint64(client+2)))
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				op := registerOp{write: own.IntN(3) == 0, value: strconv.Itoa(client*10_000 + i)}
				one := porcupine.Operation{ClientId: client, Input: op, Call: int64(time.Since(start))}
				opCtx, stop := context.WithTimeout(t.Context(), time.Duration(200+own.IntN(3000))*time.Millisecond)
				var err error
				if op.write {
					_, err = n.Propose(opCtx, catalog.PutKV{Key: "x", Value: []byte(op.value)})
				} else {
					var st *catalog.State
					if st, err = n.Read(opCtx, Linearizable); err == nil {
						one.Output = value(st)
					}
				}
				stop()
				one.Return = int64(time.Since(start))
				if err != nil && (!op.write || !errors.Is(err, ErrOutcomeUnknown)) {
					continue // nothing was read, nothing was written
				}
				if err != nil {
					one.Return = int64(time.Hour) // may take effect at any later time
				}
				mu.Lock()
				history = append(history, one)
				mu.Unlock()
				time.Sleep(time.Duration(own.IntN(40)) * time.Millisecond)
			}
		})
	}
	for range 8 {
		time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
		id := ids[rnd.IntN(3)]
		switch rnd.IntN(3) {
		case 0:
			c.isolate(id)
		case 1: // as a paused process: what it is sent and what it sent comes late
			c.isolate(c.leaderNow())
		case 2:
			_ = c.nodes[c.leaderNow()].TransferLeadership(t.Context(), "")
		}
		time.Sleep(time.Duration(rnd.IntN(2500)) * time.Millisecond)
		c.net.HealAll()
	}
	cancel()
	wg.Wait()
	if res := porcupine.CheckOperationsTimeout(registerModel, history, 20*time.Second); res != porcupine.Ok {
		t.Errorf("seed %d: %d operations are not linearizable: %s", seed, len(history), res)
	}
	if len(history) < 100 {
		t.Errorf("seed %d: only %d operations", seed, len(history))
	}
	c.converge()
}

// leaderNow returns who leads, or any node.
func (c *cluster) leaderNow() string {
	for id, n := range c.nodes {
		if n.lead.Load() != nil {
			return id
		}
	}
	return "n1"
}
