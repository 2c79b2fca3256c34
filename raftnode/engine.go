package raftnode

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/raftlog"
	"github.com/stavedb/stave/internal/raftnet"
)

const (
	stateDir    = "raft"
	snapshotDir = "snapshots"
	// retainSnapshots older snapshots are of use only while the log reaches back
	// to them, see Config.TrailingLogs.
	retainSnapshots = 2
	enqueueTimeout  = 2 * time.Second
	answerTimeout   = time.Second
	shutdownTimeout = 2 * time.Second
)

// engine is one raft instance with what it stands on. Stores and snapshots
// outlive it: after a snapshot install over an own log tail the node closes the
// instance and opens the next one in place.
type engine struct {
	cfg    Config
	stores *raftlog.Stores
	snaps  *snapshotStore
	raft   *raft.Raft
	trans  *raftnet.Transport
	notify chan bool
	// proposals are the commands handed to raft, in order, for the drainer.
	proposals chan *proposal
	inflight  sync.WaitGroup // proposals without an answer
	bytes     atomic.Int64   // of these
	drained   sync.WaitGroup // the drainer
	// closing is set, under mu, before the instance shuts down: no proposal is
	// taken after it.
	mu      sync.RWMutex
	closing bool
	once    sync.Once
	stopped chan struct{} // closed when the instance begins to close
	gone    chan struct{} // closed when it has
}

func (e *engine) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(e.cfg.ID)
	c.HeartbeatTimeout = e.cfg.HeartbeatTimeout
	c.ElectionTimeout = e.cfg.ElectionTimeout
	c.LeaderLeaseTimeout = e.cfg.LeaderLease
	c.CommitTimeout = e.cfg.CommitTimeout
	c.MaxAppendEntries = 1024
	c.BatchApplyCh = true
	c.SnapshotThreshold = e.cfg.SnapshotThreshold
	c.SnapshotInterval = e.cfg.SnapshotInterval
	c.TrailingLogs = e.cfg.TrailingLogs
	c.NotifyCh = e.notify
	c.ShutdownOnRemove = false
	c.Logger = newHCLog(e.cfg.Logger)
	return c
}

// openStores opens the log and stable stores and the snapshots of a directory.
func (n *Node) openStores() (*raftlog.Stores, *snapshotStore, error) {
	snaps, err := openSnapshots(filepath.Join(n.cfg.Dir, snapshotDir), n.cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	stores, err := raftlog.Open(raftlog.Config{
		Dir: filepath.Join(n.cfg.Dir, stateDir), Kind: raftlog.Kind(n.cfg.LogStore), Verify: fsm.VerifyEntry, Logger: n.cfg.Logger,
		Faults: n.cfg.Faults,
		OnTrouble: func(t raftlog.Trouble) {
			n.log.Warn("disk trouble, standing back", "kind", t.Kind, "op", t.Op, "error", t.Err)
			n.gate(true)
		},
		OnRecovered: func() {
			n.log.Info("disk recovered")
			n.gate(false)
		},
		OnCorrupt: func(err error) { n.fail(fmt.Errorf("%w: %w", ErrCorrupt, err)) },
		OnFatal:   func(err error) { n.fail(fmt.Errorf("disk: %w", err)) },
	})
	if err != nil {
		if errors.Is(err, raftlog.ErrCorruptLog) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	return stores, snaps, nil
}

// openEngine starts a raft instance on the node's stores.
func (n *Node) openEngine() (*engine, error) {
	e := &engine{
		cfg: n.cfg, stores: n.stores, snaps: n.snaps, notify: make(chan bool, 64), proposals: make(chan *proposal, 8192),
		stopped: make(chan struct{}), gone: make(chan struct{}),
	}
	index, term, err := e.snaps.newest()
	if err != nil {
		return nil, err
	}
	if err := e.stores.AlignWithSnapshot(index, term); err != nil {
		return nil, fmt.Errorf("align log with snapshot: %w", err)
	}
	if old := n.engine.Load(); old == nil {
		if err := e.scan(index + 1); err != nil {
			return nil, err
		}
	}
	if err := e.checkStarted(n.id); err != nil {
		return nil, err
	}
	if err := e.bootstrap(n.id); err != nil {
		return nil, err
	}
	e.trans = raftnet.NewTransport(raftnet.TransportConfig{
		Mux: n.mux, Logger: newHCLog(n.cfg.Logger), AfterSnapshot: n.afterInstall,
	})
	e.raft, err = raft.NewRaft(e.raftConfig(), n.fsm, e.stores.Log(), e.stores.Stable(), e.snaps, e.trans)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open raft: %w", err), e.trans.Close())
	}
	e.trans.SetView(func() (bool, uint64, string) {
		state := e.raft.State()
		term := e.raft.CurrentTerm()
		_, id := e.raft.LeaderWithID()
		return state == raft.Follower, term, string(id)
	})
	e.trans.SetGate(n.gated.Load())
	e.drained.Add(1)
	go e.drain()
	return e, nil
}

// scan reads the log once before raft does: raft panics on an entry it cannot
// read.
func (e *engine) scan(from uint64) error {
	err := e.stores.Scan(from, func(*raft.Log) error { return nil })
	if errors.Is(err, raftlog.ErrCorruptLog) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

// checkStarted refuses to begin anew in a directory that took part before and
// lost what it acknowledged.
func (e *engine) checkStarted(id identity) error {
	if !id.Started {
		return nil
	}
	has, err := raft.HasExistingState(e.stores.Log(), e.stores.Stable(), e.snaps)
	if err == nil && !has {
		err = fmt.Errorf("%w: %s has no log and no snapshot although node %s took part with it", ErrCorrupt, e.cfg.Dir, e.cfg.ID)
	}
	return err
}

// close ends the instance: no new proposals, an answer for each one taken, then
// raft, then the transport. It is bounded even if raft hangs in the disk, where
// it reports false and the instance ends when the stores are closed.
func (e *engine) close() bool {
	first := false
	e.once.Do(func() {
		first = true
		close(e.stopped)
	})
	if !first {
		<-e.gone
		return true
	}
	defer close(e.gone)
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	clean := within(answerTimeout, e.inflight.Wait)
	clean = within(shutdownTimeout, func() { _ = e.raft.Shutdown().Error() }) && clean
	e.trans.Close() //nolint:errcheck // the listener stays with the node; nothing else can fail
	close(e.proposals)
	if clean {
		e.drained.Wait()
	}
	return clean
}

// within runs f and reports whether it returned in time. If not, f goes on.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// proposal is one command on its way through raft.
type proposal struct {
	future raft.ApplyFuture
	size   int64
	done   chan struct{} // closed when result or err is set
	result *catalog.Result
	err    error
}

// propose hands an entry to raft. The error says that raft did not take it.
func (e *engine) propose(entry []byte) (*proposal, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closing {
		return nil, raft.ErrRaftShutdown
	}
	p := &proposal{future: e.raft.Apply(entry, enqueueTimeout), size: int64(len(entry)), done: make(chan struct{})}
	e.inflight.Add(1)
	e.bytes.Add(p.size)
	select {
	case e.proposals <- p:
	case <-e.stopped:
		e.inflight.Done()
		e.bytes.Add(-p.size)
		p.err = raft.ErrRaftShutdown
		close(p.done)
	}
	return p, nil
}

// drain waits for the futures in the order they were taken, which is the order
// raft answers them in. A future has one reader: this.
func (e *engine) drain() {
	defer e.drained.Done()
	for p := range e.proposals {
		if p.err = p.future.Error(); p.err == nil {
			p.result, _ = p.future.Response().(*catalog.Result)
		}
		close(p.done)
		e.bytes.Add(-p.size)
		e.inflight.Done()
	}
}
