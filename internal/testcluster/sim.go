package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/memnet"
	"github.com/stavedb/stave/raftnode"
	"github.com/stavedb/stave/server"
)

// sim runs nodes in this process. It must be made and closed inside one bubble.
type sim struct {
	cfg     Config
	net     *memnet.Network
	initial map[string]string

	mu     sync.Mutex
	nodes  map[string]*simNode
	links  map[[2]string]link
	frozen map[string]bool
	clocks map[string]*Clock
}

type link struct {
	cut   bool
	delay time.Duration
}

type simNode struct {
	cancel context.CancelFunc
	opened chan struct{} // closed when node or err is set
	node   *raftnode.Node
	srv    *server.Server
	served chan error
	err    error
	disk   *Disk
}

func newSim(cfg Config, ids, _ []string) *sim {
	s := &sim{
		cfg: cfg, net: memnet.New(), initial: map[string]string{}, nodes: map[string]*simNode{}, links: map[[2]string]link{},
		frozen: map[string]bool{}, clocks: map[string]*Clock{},
	}
	for _, id := range ids {
		s.initial[id] = s.raftAddr(id)
	}
	return s
}

func (s *sim) kind() string                      { return "sim" }
func (s *sim) raftAddr(id string) string         { return id + ":7001" }
func (s *sim) apiAddr(id string) string          { return id + ":7401" }
func (s *sim) dir(id string) string              { return filepath.Join(s.cfg.Dir, id) }
func (s *sim) complaints() []string              { return nil }
func (s *sim) network(h string) raftnode.Network { return s.net.Host(h) }

func (s *sim) dial(ctx context.Context, addr string) (net.Conn, error) {
	return s.net.Host(ClientHost).Dial(ctx, addr)
}

func (s *sim) get(id string) *simNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[id]
}

func (s *sim) start(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[id] != nil {
		return fmt.Errorf("%s runs already", id)
	}
	if s.clocks[id] == nil {
		s.clocks[id] = NewClock()
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &simNode{cancel: cancel, opened: make(chan struct{}), served: make(chan error, 1), disk: NewDisk()}
	s.nodes[id] = n
	clock := s.clocks[id]
	go func() {
		defer close(n.opened)
		n.err = s.open(ctx, id, n, clock)
	}()
	return nil
}

func (s *sim) open(ctx context.Context, id string, n *simNode, clock *Clock) (err error) {
	n.node, err = raftnode.Open(ctx, raftnode.Config{
		ID: id, Dir: s.dir(id), RaftAddr: s.raftAddr(id), APIAddr: s.apiAddr(id), InitialCluster: s.initial, LogStore: s.cfg.LogStore,
		HeartbeatTimeout: s.cfg.Heartbeat, SnapshotThreshold: s.cfg.SnapshotThreshold, SnapshotInterval: s.cfg.SnapshotInterval,
		Network: s.net.Host(id), Faults: n.disk, Clock: clock, Logger: s.cfg.Logger,
	})
	if err != nil {
		return err
	}
	if n.srv, err = server.New(server.Config{Node: n.node, SpoolDir: s.cfg.Dir}); err != nil {
		return errors.Join(err, n.node.Close())
	}
	l, err := s.net.Host(id).Listen(s.apiAddr(id))
	if err != nil {
		n.served <- nil
		return err
	}
	go func() { n.served <- n.srv.Serve(l, nil) }()
	return nil
}

func (s *sim) take(id string) (*simNode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[id]
	if n == nil {
		return nil, fmt.Errorf("%s does not run", id)
	}
	delete(s.nodes, id)
	return n, nil
}

// end closes a node; ctx bounds the calls in flight.
func (n *simNode) end(ctx context.Context) error {
	n.cancel()
	<-n.opened
	if n.node == nil || n.srv == nil {
		return nil
	}
	err := n.srv.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, <-n.served, n.node.Close())
}

func (s *sim) stop(ctx context.Context, id string) error {
	n, err := s.take(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return errors.Join(n.disk.Set(DiskGood), n.end(ctx))
}

func (s *sim) kill(id string) error {
	n, err := s.take(id)
	if err != nil {
		return err
	}
	// Nobody hears of its end from the node itself, as from a killed process.
	s.freeze(id, true)
	s.net.Crash(id)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = n.disk.Set(DiskGood)
	_ = n.end(ctx) //nolint:errcheck // it was killed
	s.freeze(id, false)
	return err
}

func (s *sim) pause(id string) error  { s.freeze(id, true); return nil }
func (s *sim) resume(id string) error { s.freeze(id, false); return nil }

func (s *sim) powerLoss(string) error {
	return fmt.Errorf("power loss: %w: sim has no file system of its own", ErrUnsupported)
}

func (s *sim) freeze(id string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[id] = on
	for _, other := range s.hosts() {
		if other != id {
			s.settle(id, other)
		}
	}
}

func (s *sim) hosts() []string {
	out := []string{ClientHost, ArchiveHost}
	for i := range s.cfg.Nodes + s.cfg.Spares {
		out = append(out, nodeID(i))
	}
	return out
}

func (s *sim) link(from, to string, cut bool, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links[[2]string{from, to}] = link{cut, delay}
	s.settle(from, to)
}

// settle makes the network what links and frozen say of one pair. The lock is
// held.
func (s *sim) settle(a, b string) {
	ab, ba := s.links[[2]string{a, b}], s.links[[2]string{b, a}]
	s.net.Delay(a, b, ab.delay)
	s.net.Delay(b, a, ba.delay)
	frozen := s.frozen[a] || s.frozen[b]
	if !frozen && !(ab.cut && ba.cut) {
		s.net.Heal(a, b)
	}
	if frozen || ab.cut {
		s.net.Cut(a, b)
	}
	if frozen || ba.cut {
		s.net.Cut(b, a)
	}
}

func (s *sim) reset(a, b string) { s.net.Reset(a, b) }

func (s *sim) disk(id string, mode DiskMode) error {
	n := s.get(id)
	if n == nil {
		return fmt.Errorf("%s does not run", id)
	}
	return n.disk.Set(mode)
}

func (s *sim) clock(id string, by time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clocks[id] == nil {
		return fmt.Errorf("%s never ran", id)
	}
	s.clocks[id].Jump(by)
	return nil
}

func (s *sim) status(ctx context.Context, id string) (Status, error) {
	n := s.get(id)
	if n == nil {
		return Status{}, fmt.Errorf("%s does not run", id)
	}
	s.mu.Lock()
	frozen := s.frozen[id]
	s.mu.Unlock()
	if frozen {
		return Status{}, fmt.Errorf("%s is paused", id)
	}
	select {
	case <-n.opened:
	case <-ctx.Done():
		return Status{}, fmt.Errorf("%s is not open yet", id)
	}
	if n.err != nil {
		return Status{}, fmt.Errorf("%s: %w", id, n.err)
	}
	return statusOf(ctx, n.node, n.disk)
}

// statusOf asks a node of this process.
func statusOf(ctx context.Context, n *raftnode.Node, d *Disk) (Status, error) {
	st := n.Status()
	out := Status{
		ID: st.ID, Role: st.Role, Leader: st.Leader, Term: st.Term, Installed: st.SnapshotsInstalled, Full: d.full.Load(), Stalled: d.stalled.Load(),
	}
	for _, h := range st.Health {
		out.Health = append(out.Health, h.Code+": "+h.Message)
	}
	state, err := n.Read(ctx, raftnode.Stale)
	if err != nil {
		return out, err
	}
	out.Revision, out.Hash, out.Incarnation = state.Revision(), state.Hash(), state.Cluster().Incarnation.Number
	return out, nil
}

func (s *sim) close() error {
	var errs []error
	s.mu.Lock()
	for _, n := range s.nodes {
		errs = append(errs, n.disk.Set(DiskGood))
	}
	s.frozen = map[string]bool{}
	s.mu.Unlock()
	s.net.HealAll()
	for _, id := range s.hosts() {
		if s.get(id) != nil {
			errs = append(errs, s.kill(id))
		}
	}
	return errors.Join(errs...)
}
