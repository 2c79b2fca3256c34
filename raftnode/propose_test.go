package raftnode

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
)

func (c *cluster) shop(n *Node) {
	c.t.Helper()
	c.propose(n, catalog.CreateDatabase{Name: "shop"})
	c.propose(n, catalog.CreateTable{
		Table: "shop.orders", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, Buckets: catalog.Some[int32](4),
	})
}

// A rescale that is sent ten times under one sequence, at every node and across
// a change of the leader, raises the epoch by one, and every answer is the first.
func TestNode_RetriesOfOneRescale(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		c.shop(c.leader())
		res, err := c.leader().Submit(c.timeout(5*time.Second), catalog.Envelope{}, catalog.RegisterClient{Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := res.FirstID()
		env := catalog.Envelope{Client: catalog.ClientID(id), Sequence: 1}
		var first catalog.Result
		for i := range 10 {
			if i == 5 {
				c.stop(c.leader().cfg.ID)
				c.leader()
			}
			for nid, n := range c.nodes {
				got, err := n.Submit(c.timeout(5*time.Second), env, catalog.RescaleTable{Table: "shop.orders", Buckets: 8})
				if errors.Is(err, ErrNotLeader) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
					continue
				}
				if err != nil {
					t.Fatalf("try %d at %s: %v", i, nid, err)
				}
				if first.Revision == 0 {
					first = got
				}
				if got.Revision != first.Revision {
					t.Errorf("try %d at %s: revision %d, first %d", i, nid, got.Revision, first.Revision)
				}
			}
		}
		tab, _ := c.leader().fsm.State().Table("shop.orders")
		if tab.Epoch != 1 || tab.Buckets != 8 {
			t.Errorf("epoch %d, %d buckets", tab.Epoch, tab.Buckets)
		}
	})
}

// Commands of many callers at followers, whose answers are lost again and again
// while the leader changes, take effect exactly once.
func TestNode_LostAnswers(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		c.leader()
		ctx, cancel := context.WithCancel(t.Context())
		var faults, callers sync.WaitGroup
		faults.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				time.Sleep(40 * time.Millisecond)
				for _, pair := range [][2]string{{"n1", "n2"}, {"n2", "n3"}, {"n1", "n3"}} {
					c.net.Reset(pair[0], pair[1])
				}
				if i%10 == 9 {
					_ = c.nodes[c.leaderNow()].TransferLeadership(ctx, "")
				}
			}
		})
		const each = 40
		for id, n := range c.nodes {
			callers.Go(func() {
				for i := range each {
					if _, err := n.Propose(c.timeout(time.Minute), catalog.AllocateIDs{Counter: "c", Count: 1}); err != nil {
						t.Errorf("%s, command %d: %v", id, i, err)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		callers.Wait()
		cancel()
		faults.Wait()
		c.converge()
		res := c.propose(c.leader(), catalog.AllocateIDs{Counter: "c", Count: 1})
		if id, _ := res.FirstID(); id != 3*each && id != 3*each+1 {
			t.Errorf("the next id is %d after %d allocations", id, 3*each)
		}
	})
}

// What is not known is not guessed: a context that ends while the command is in
// the log, and leadership lost with it there.
func TestNode_UnknownFate(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		l := c.leader()
		c.isolate(l.cfg.ID)
		if _, err := l.Submit(c.timeout(10*time.Millisecond), catalog.Envelope{}, catalog.CreateDatabase{Name: "a"}); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("context ends: %v", err)
		}
		if _, err := l.Submit(c.timeout(time.Minute), catalog.Envelope{}, catalog.CreateDatabase{Name: "b"}); !errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrNotLeader) {
			t.Errorf("leadership lost: %v", err)
		}
		if _, err := l.Submit(c.timeout(time.Second), catalog.Envelope{}, catalog.CreateDatabase{Name: "c"}); !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrUnavailable) {
			t.Errorf("never proposed: %v", err)
		}
		c.leaderExcept(l.cfg.ID)
		c.net.HealAll()
		c.converge()
	})
}

// NoForward makes followers refuse with the leader's address; a leader with too
// many bytes on their way is busy and takes more when they are gone.
func TestNode_NoForwardAndBusy(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, func(cfg *Config) { cfg.NoForward, cfg.MaxInFlight = true, 2<<20 })
		l, f := c.leader(), c.followers()[0]
		_, err := f.Submit(c.timeout(time.Second), catalog.Envelope{}, catalog.CreateDatabase{Name: "a"})
		var nl *NotLeaderError
		if !errors.As(err, &nl) || nl.Leader != l.cfg.ID {
			t.Errorf("at a follower: %v", err)
		}
		lead := l.lead.Load()
		c.isolate(l.cfg.ID)
		var busy error
		taken := 0
		for i := range 10 {
			_, err := l.begin(lead, catalog.Envelope{}, catalog.PutKV{Key: fmt.Sprint(i), Value: bytes.Repeat([]byte("x"), 500_000)})
			if err != nil {
				busy = err
				break
			}
			taken++
		}
		if !errors.Is(busy, ErrBusy) || taken != 4 {
			t.Errorf("after %d commands of 500,000 bytes: %v", taken, busy)
		}
		c.net.HealAll()
		if _, err := c.leader().Submit(c.timeout(10*time.Second), catalog.Envelope{}, catalog.CreateDatabase{Name: "b"}); err != nil {
			t.Errorf("after it was replicated: %v", err)
		}
	})
}

// A command of a kind that this build does not know stops a node in front of
// it, and again after a restart; nobody applies it or what is behind it. The
// last node may lack what the stopped ones have in their logs: it then waits
// for a leader instead.
func TestNode_UnknownKindStops(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		l := c.leader()
		c.propose(l, catalog.CreateDatabase{Name: "shop"})
		c.converge()
		index := l.fsm.Index()
		e := l.engine.Load()
		for range 2 {
			endWith(e.raft.Apply(unknownEntry(), time.Second), e.gone)
		}
		c.stopped(index)
		for id := range c.peers {
			c.stop(id)
		}
		var coming []<-chan opened
		for id := range c.peers {
			coming = append(coming, c.opening(id))
		}
		for _, ch := range coming {
			c.take(ch)
		}
		c.stopped(index)
	})
}

// stopped waits until most nodes have stopped; none is beyond an index.
func (c *cluster) stopped(index uint64) {
	c.t.Helper()
	ended := 0
	for id, n := range c.nodes {
		select {
		case <-n.Done():
			ended++
			if !errors.Is(n.Err(), fsm.ErrUnknownKind) {
				c.t.Errorf("%s: %v", id, n.Err())
			}
		case <-time.After(30 * time.Second):
		}
	}
	if ended < 2 {
		c.t.Errorf("%d nodes stopped", ended)
	}
	for id, n := range c.nodes {
		if n.fsm.Index() > index {
			c.t.Errorf("%s applied up to %d, want at most %d", id, n.fsm.Index(), index)
		}
	}
}

var _ raft.FSM = (*machine)(nil)

// unknownEntry is an undamaged entry of a kind that no build has yet.
func unknownEntry() []byte {
	out := []byte{1, 255, 1, 0x90, 0x90}
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli)))
}
