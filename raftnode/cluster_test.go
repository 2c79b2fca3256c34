package raftnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/memnet"
)

// cluster is a set of nodes over a network in memory. Inside a synctest bubble
// its elections take no real time.
type cluster struct {
	t     *testing.T
	dir   string
	net   *memnet.Network
	store LogStore
	peers map[string]string
	nodes map[string]*Node
	tune  func(*Config)
}

func newCluster(t *testing.T, size int, store LogStore, tune func(*Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), net: memnet.New(), store: store, peers: map[string]string{}, nodes: map[string]*Node{}, tune: tune}
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		c.peers[id] = id + ":7001"
	}
	var coming []<-chan opened
	for id := range c.peers {
		coming = append(coming, c.opening(id))
	}
	t.Cleanup(c.close)
	for _, ch := range coming {
		c.take(ch)
	}
	return c
}

func (c *cluster) config(id string) Config {
	cfg := Config{
		ID: id, Dir: filepath.Join(c.dir, id), RaftAddr: id + ":7001", InitialCluster: c.peers, LogStore: c.store,
		Network: c.net.Host(id), APIAddr: id + ":7401",
	}
	if os.Getenv("STAVE_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if c.tune != nil {
		c.tune(&cfg)
	}
	return cfg
}

func (c *cluster) close() {
	for id, n := range c.nodes {
		if err := n.Close(); err != nil {
			c.t.Errorf("close %s: %v", id, err)
		}
	}
}

// stop closes a node.
func (c *cluster) stop(id string) {
	c.t.Helper()
	if err := c.nodes[id].Close(); err != nil {
		c.t.Fatalf("close %s: %v", id, err)
	}
	delete(c.nodes, id)
}

// start opens a node that was stopped.
func (c *cluster) start(id string) *Node {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	n, err := Open(ctx, c.config(id))
	if err != nil {
		c.t.Fatalf("open %s: %v", id, err)
	}
	c.nodes[id] = n
	return n
}

// leader waits for a node that leads.
func (c *cluster) leader() *Node {
	c.t.Helper()
	return c.leaderExcept("")
}

func (c *cluster) leaderExcept(id string) *Node {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		for nid, n := range c.nodes {
			if nid != id && n.lead.Load() != nil {
				return n
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	for id, n := range c.nodes {
		c.t.Logf("%s: %+v", id, n.Status())
	}
	c.t.Fatal("no leader within 30 s")
	return nil
}

func (c *cluster) followers() []*Node {
	c.t.Helper()
	l := c.leader()
	var out []*Node
	for _, n := range c.nodes {
		if n != l {
			out = append(out, n)
		}
	}
	return out
}

// isolate cuts a node from all others, both ways.
func (c *cluster) isolate(id string) {
	for other := range c.peers {
		if other != id {
			c.net.CutBoth(id, other)
		}
	}
}

func (c *cluster) timeout(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	c.t.Cleanup(cancel)
	return ctx
}

func (c *cluster) propose(n *Node, cmd catalog.Command) catalog.Result {
	c.t.Helper()
	res, err := n.Propose(c.timeout(30*time.Second), cmd)
	if err != nil {
		c.t.Fatalf("propose %s at %s: %v", cmd.Kind(), n.cfg.ID, err)
	}
	return res
}

// converge waits until all nodes have equal states.
func (c *cluster) converge() {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	var diff string
	for time.Now().Before(deadline) {
		if diff = c.difference(); diff == "" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if diff != "" {
		c.t.Fatalf("states did not become equal: %s", diff)
	}
	for id, n := range c.nodes {
		if err := n.fsm.State().Check(); err != nil {
			c.t.Errorf("check of %s: %v", id, err)
		}
	}
}

func (c *cluster) difference() string {
	var first *catalog.State
	for id, n := range c.nodes {
		st := n.fsm.State()
		if first == nil {
			first = st
		} else if st.Revision() != first.Revision() || st.Hash() != first.Hash() {
			return fmt.Sprintf("%s is at revision %d with hash %x, another at %d with %x", id, st.Revision(), st.Hash(), first.Revision(), first.Hash())
		}
	}
	return ""
}

func isCode(err error, code catalog.Code) bool { return errors.Is(err, code) }

// caughtUp waits until a node has what another has now.
func (c *cluster) caughtUp(n, with *Node) {
	c.t.Helper()
	want := uint64(with.fsm.State().Revision())
	if _, err := n.fsm.Wait(c.timeout(time.Minute), want); err != nil {
		c.t.Fatalf("%s does not get to revision %d: %v; %+v", n.cfg.ID, want, err, n.Status())
	}
}

// until waits until something holds.
func (c *cluster) until(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// join adds a node that is not in the initial cluster, and opens it.
func (c *cluster) join(id string) *Node {
	c.t.Helper()
	ch := c.opening(id)
	time.Sleep(time.Second)
	if err := c.leader().AddMember(c.timeout(30*time.Second), id, id+":7001"); err != nil {
		c.t.Fatalf("add %s: %v", id, err)
	}
	return c.take(ch)
}

// opened is a node that was opened beside the test.
type opened struct {
	id  string
	n   *Node
	err error
}

// opening opens a node beside the test, which must take it.
func (c *cluster) opening(id string) <-chan opened {
	ch := make(chan opened, 1)
	cfg := c.config(id)
	go func() {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		n, err := Open(ctx, cfg)
		ch <- opened{id, n, err}
	}()
	return ch
}

// take waits for a node that is being opened and makes it one of the cluster.
func (c *cluster) take(ch <-chan opened) *Node {
	c.t.Helper()
	o := <-ch
	if o.err != nil {
		c.t.Fatalf("open %s: %v", o.id, o.err)
	}
	c.nodes[o.id] = o.n
	return o.n
}
