package raftnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/raftlog"
	"github.com/stavedb/stave/internal/raftnet"
	"github.com/stavedb/stave/watch"
)

// Node is one running node. All methods may be called concurrently.
type Node struct {
	cfg        Config
	log        *slog.Logger
	lock       *os.File
	history    *watch.History
	fsm        *fsm.FSM
	mux        *raftnet.Mux
	peers      *raftnet.Peers
	stores     *raftlog.Stores
	snaps      *snapshotStore
	appends    appends
	rounds     rounds
	session    session
	keepalives keepalives

	// openMu serialises opening and closing of raft instances.
	openMu    sync.Mutex
	gateMu    sync.Mutex // held while gate and candidacy of an instance are set
	restoreMu sync.Mutex
	engine    atomic.Pointer[engine]
	lead      atomic.Pointer[leadership]
	gated     atomic.Bool
	diverged  atomic.Pointer[divergence] // set: this node is fenced
	waiting   atomic.Pointer[string]     // what a new directory waits for
	aside     atomic.Pointer[[]string]   // damaged snapshots that were set aside

	lastChecksum atomic.Uint64 // revision of the last marker applied
	checksumAt   atomic.Int64  // when this node proposed the last one
	markerDue    atomic.Bool
	compared     comparison

	mu       sync.Mutex
	id       identity          // guarded by mu once Open returned
	dutyErrs map[string]string // by duty; guarded by mu
	metrics  *collector        // guarded by mu
	err      error             // why the node ended; guarded by mu

	ctx    context.Context // ends when the node closes; for its own goroutines
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed when Close begins
	done   chan struct{} // closed when the node has ended
	group  group
	once   sync.Once
	failed sync.Once
}

// Open starts a node. With a new directory it returns when the cluster it
// begins or joins let it, see Config.InitialCluster, or ctx ends. It does not
// wait for a leader.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	n := newNode(cfg.withDefaults())
	if err := n.open(ctx); err != nil {
		_ = n.Close() //nolint:errcheck // the first error says more
		return nil, err
	}
	return n, nil
}

func newNode(cfg Config) *Node {
	n := &Node{
		cfg: cfg, log: cfg.Logger, stop: make(chan struct{}), done: make(chan struct{}), dutyErrs: map[string]string{},
		appends: newAppends(cfg.ID),
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.rounds.n = n
	n.session.n = n
	n.keepalives.n = n
	n.history = watch.New(watch.Config{TablePath: func(id catalog.TableID) (string, bool) {
		t, ok := n.fsm.State().TableByID(id)
		if !ok {
			return "", false
		}
		return t.Path, true
	}})
	n.fsm = fsm.New(fsm.Config{
		MaxLevel: cfg.level, Publisher: n.history,
		OnStop: func(e *fsm.StopError) { n.fail(e) },
		OnChecksum: func(rev catalog.Revision, _ uint64) {
			n.lastChecksum.Store(uint64(rev))
		},
	})
	return n
}

func (n *Node) open(ctx context.Context) (err error) {
	if n.lock, err = lockDir(n.cfg.Dir); err != nil {
		return err
	}
	if err := removeSpools(n.cfg.Dir); err != nil {
		return fmt.Errorf("remove unfinished restore: %w", err)
	}
	if n.id, err = loadIdentity(n.cfg); err != nil {
		return err
	}
	n.mux, err = raftnet.Listen(raftnet.MuxConfig{
		Network: n.cfg.Network, Addr: n.cfg.RaftAddr, NodeID: n.cfg.ID, Build: uint32(n.cfg.level), Resolver: n,
		CheckPeer: n.checkPeer, MinBuild: n.minBuild, OnOldBuild: n.tooOld, Identity: n.answer, Logger: n.log,
	})
	if err != nil {
		return fmt.Errorf("listen for nodes on %s: %w", n.cfg.RaftAddr, err)
	}
	if !n.id.bound() {
		if err := n.settle(ctx); err != nil {
			return err
		}
	}
	if n.stores, n.snaps, err = n.openStores(); err != nil {
		return err
	}
	n.mux.SetIdentity(n.id.Cluster, n.id.Directory)
	n.peers = raftnet.OpenPeers(n.mux)
	n.handlePeers()
	e, err := n.openEngine()
	if err != nil {
		return err
	}
	n.run(e)
	n.goFunc(n.keepAnnounced)
	n.goFunc(n.watchDir)
	return n.registerMetrics()
}

// usable refuses calls on a node that ended.
func (n *Node) usable() error {
	select {
	case <-n.stop:
		return ErrClosed
	case <-n.done:
		return n.Err()
	default:
		return nil
	}
}

func (n *Node) closing() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// Done is closed when the node has ended by itself or by Close.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err says why the node ended: nil while it runs, ErrClosed after Close.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// fail ends the node by itself. Its files stay; the owner should Close it.
func (n *Node) fail(err error) {
	n.failed.Do(func() {
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
		n.log.Error("node stops", "error", err)
		n.gate(true)
		n.resign()
		close(n.done)
	})
}

// Close hands leadership over if this node leads, ends everything the node
// started and releases the directory. It returns within about 10 s even when a
// disk hangs. Calls that wait end with ErrClosed or ErrOutcomeUnknown.
func (n *Node) Close() error {
	var err error
	n.once.Do(func() {
		n.handOver()
		close(n.stop)
		n.cancel(ErrClosed)
		err = n.release()
		n.failed.Do(func() {
			n.mu.Lock()
			n.err = ErrClosed
			n.mu.Unlock()
			close(n.done)
		})
	})
	return err
}

// handOver gives leadership to another voter, so that the cluster need not wait
// for an election.
func (n *Node) handOver() {
	e := n.engine.Load()
	if e == nil || n.lead.Load() == nil || n.gated.Load() || len(voters(e.raft.GetConfiguration().Configuration())) < 2 {
		return
	}
	within(n.cfg.ElectionTimeout, func() {
		if err := e.transfer(); err != nil {
			n.log.Debug("leadership not handed over", "error", err)
		}
	})
}

// release closes in the reverse order of opening.
func (n *Node) release() error {
	var errs []error
	n.openMu.Lock()
	if e := n.engine.Load(); e != nil {
		e.close()
	}
	n.openMu.Unlock()
	n.fsm.Close()
	if n.peers != nil {
		errs = append(errs, n.peers.Close())
	}
	if n.mux != nil {
		errs = append(errs, n.mux.Close())
	}
	if n.stores != nil {
		errs = append(errs, n.stores.Close())
	}
	n.history.Close()
	n.group.wait()
	n.unregisterMetrics()
	if n.lock != nil {
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}

// Watch subscribes to everything after a revision; see package watch.
func (n *Node) Watch(_ context.Context, from catalog.Revision) (*watch.Subscription, error) {
	return n.Subscribe(watch.Options{From: from})
}

// Subscribe subscribes with a filter and other options.
func (n *Node) Subscribe(o watch.Options) (*watch.Subscription, error) {
	if err := n.usable(); err != nil {
		return nil, err
	}
	if d := n.diverged.Load(); d != nil {
		return nil, d.err()
	}
	return n.history.Subscribe(o)
}

// group are the goroutines of a node.
type group struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func (g *group) wait() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}

// goFunc starts a goroutine that Close waits for. After Close began to wait it
// starts none and reports false.
func (n *Node) goFunc(f func()) bool {
	g := &n.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(f)
	return true
}

// withTimeout is a context of the node's own work.
func (n *Node) withTimeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.ctx, d)
}

// sleep waits and reports false when the node closes.
func (n *Node) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-n.stop:
		return false
	case <-n.done:
		return false
	}
}

// pause waits a moment before something is tried again.
func (n *Node) pause(ctx context.Context) error {
	t := time.NewTimer(20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.stop:
		return ErrClosed
	case <-n.done:
		return n.Err()
	}
}
