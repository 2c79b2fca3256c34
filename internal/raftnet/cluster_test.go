package raftnet

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/memnet"
)

// commands is a state machine that remembers what it was given.
type commands struct {
	mu  sync.Mutex
	got []string
}

func (c *commands) Apply(l *raft.Log) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, string(l.Data))
	return nil
}

func (c *commands) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.got...)
}

func (c *commands) Snapshot() (raft.FSMSnapshot, error) { return blob(1 << 20), nil }

func (c *commands) Restore(r io.ReadCloser) error {
	defer r.Close()
	_, err := io.Copy(io.Discard, r)
	return err
}

// blob is a snapshot of that many bytes.
type blob int

func (b blob) Persist(s raft.SnapshotSink) error {
	if _, err := s.Write(make([]byte, b)); err != nil {
		return err
	}
	return s.Close()
}
func (blob) Release() {}

// slowStore is a log store whose writes can be held up.
type slowStore struct {
	*raft.InmemStore
	mu   sync.Mutex
	hold time.Duration
}

func (s *slowStore) StoreLogs(l []*raft.Log) error {
	s.mu.Lock()
	d := s.hold
	s.mu.Unlock()
	time.Sleep(d)
	return s.InmemStore.StoreLogs(l)
}

func (s *slowStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

func (s *slowStore) setHold(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = d
}

type node struct {
	id    string
	mux   *Mux
	trans *Transport // nil with the unwrapped transport
	raft  *raft.Raft
	log   *slowStore
	fsm   *commands
}

// clusterOf is raft nodes over a memnet.
type clusterOf struct {
	t     testing.TB
	net   *memnet.Network
	nodes []*node
}

type clusterOptions struct {
	unwrapped bool // raft's own network transport directly on the stream layer
	raft      func(*raft.Config)
	transport func(*node, *TransportConfig)
}

func newCluster(t testing.TB, k int, o clusterOptions) *clusterOf {
	t.Helper()
	c := &clusterOf{t: t, net: memnet.New()}
	var servers raft.Configuration
	for _, id := range nodeNames(k) {
		servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	for _, id := range nodeNames(k) {
		n := &node{id: id, mux: newMux(t, c.net, id, nil), log: &slowStore{InmemStore: raft.NewInmemStore()}, fsm: &commands{}}
		c.nodes = append(c.nodes, n)
		for _, other := range nodeNames(k) {
			c.net.Delay(id, other, 100*time.Microsecond)
		}
		var tr raft.Transport
		if o.unwrapped {
			tr = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
				Stream: n.mux.RaftLayer(0), MaxPool: 3, Timeout: 2 * time.Second, Logger: hclog.NewNullLogger(),
			})
		} else {
			tc := TransportConfig{Mux: n.mux}
			if o.transport != nil {
				o.transport(n, &tc)
			}
			n.trans = NewTransport(tc)
			tr = n.trans
		}
		conf := raft.DefaultConfig()
		conf.LocalID, conf.Logger = raft.ServerID(id), hclog.NewNullLogger()
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 250*time.Millisecond
		conf.CommitTimeout = 5 * time.Millisecond
		if o.raft != nil {
			o.raft(conf)
		}
		snaps := raft.NewInmemSnapshotStore()
		if err := raft.BootstrapCluster(conf, n.log, n.log, snaps, tr, servers); err != nil {
			t.Fatal(err)
		}
		r, err := raft.NewRaft(conf, n.fsm, n.log, n.log, snaps, tr)
		if err != nil {
			t.Fatal(err)
		}
		n.raft = r
		if n.trans != nil {
			n.trans.SetView(viewOf(r))
		}
	}
	return c
}

func viewOf(r *raft.Raft) View {
	return func() (bool, uint64, string) {
		follower := r.State() == raft.Follower
		term := r.CurrentTerm()
		_, leader := r.LeaderWithID()
		return follower, term, string(leader)
	}
}

func (c *clusterOf) close() {
	c.t.Helper()
	for _, n := range c.nodes {
		if err := n.raft.Shutdown().Error(); err != nil {
			c.t.Error(err)
		}
	}
	for _, n := range c.nodes {
		_ = n.mux.Close()
	}
	// The inner transport's accept loops end by themselves after a pause.
	time.Sleep(2 * time.Second)
	if k := c.net.Open(); k != 0 {
		c.t.Errorf("%d ends of connections are still open", k)
	}
}

// leader waits until one of the given nodes, or of all, leads and takes a write.
func (c *clusterOf) leader(among ...*node) *node {
	c.t.Helper()
	if len(among) == 0 {
		among = c.nodes
	}
	var l *node
	await(c.t, "a leader", func() bool {
		for _, n := range among {
			if n.raft.State() == raft.Leader && n.raft.Apply([]byte("warm"), time.Second).Error() == nil {
				l = n
				return true
			}
		}
		return false
	})
	return l
}

func (c *clusterOf) others(than *node) []*node {
	var ns []*node
	for _, n := range c.nodes {
		if n != than {
			ns = append(ns, n)
		}
	}
	return ns
}

func (c *clusterOf) isolate(n *node) {
	for _, o := range c.others(n) {
		c.net.CutBoth(n.id, o.id)
	}
}

// sender returns a raft transport of a node that is not part of the cluster.
func (c *clusterOf) sender(id string) *raft.NetworkTransport {
	m := newMux(c.t, c.net, id, nil)
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: m.RaftLayer(0), MaxPool: 3, Timeout: 2 * time.Second, Logger: hclog.NewNullLogger(),
	})
}

// from returns a header as a node would send it.
func from(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}
