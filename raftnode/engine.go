package raftnode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

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
	gone    chan struct{} // closed when it has closed or was given up; nothing is answered after it
	down    chan struct{} // closed when every goroutine of raft has ended

	tail     atomic.Bool   // the snapshot that is being installed meets an own log
	watchdog atomic.Bool   // transferStuck is at work
	kick     chan struct{} // cap 1: look again who leads
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

// openEngine starts a raft instance on the node's stores.
func (n *Node) openEngine() (*engine, error) {
	e := &engine{
		cfg: n.cfg, stores: n.stores, snaps: n.snaps, notify: make(chan bool, 64), proposals: make(chan *proposal, 8192),
		stopped: make(chan struct{}), gone: make(chan struct{}), down: make(chan struct{}), kick: make(chan struct{}, 1),
	}
	index, term, err := e.snaps.newest()
	if err != nil {
		return nil, err
	}
	err = e.stores.AlignWithSnapshot(index, term)
	if errors.Is(err, raftlog.ErrSnapshotGap) || errors.Is(err, raftlog.ErrCorruptLog) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
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
		Mux: n.mux, Logger: newHCLog(n.cfg.Logger), Covered: e.covers, BeforeSnapshot: e.beforeInstall,
		Synced:        e.stores.Synced,
		AwaitSynced:   func(ctx context.Context) error { return e.stores.AwaitSynced(ctx, math.MaxUint64) },
		AfterSnapshot: func(index, term uint64, installed bool) { n.afterInstall(e, index, term, installed) },
	})
	e.trans.SetGate(n.gated.Load())
	m := &machine{FSM: n.fsm, n: n}
	e.raft, err = raft.NewRaft(e.raftConfig(), m, keptLog{e.stores.Log(), e.snaps}, e.stores.Stable(), e.snaps, e.trans)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open raft: %w", m.cause(err)), e.trans.Close())
	}
	e.trans.SetView(func() (bool, uint64, string) {
		state := e.raft.State()
		term := e.raft.CurrentTerm()
		_, id := e.raft.LeaderWithID()
		return state == raft.Follower, term, string(id)
	})
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
	index, term, err := e.snaps.newest()
	if err != nil {
		return err
	}
	last, err := e.stores.Log().LastIndex()
	if err != nil {
		return fmt.Errorf("last index of the log: %w", err)
	}
	if last == 0 && index == 0 {
		return forgot(e.cfg, "no log and no snapshot is left")
	}
	if last > 0 {
		l, err := e.stores.Get(last)
		if err != nil {
			return fmt.Errorf("last entry of the log: %w", err)
		}
		term = max(term, l.Term)
	}
	// A node that forgot its term and vote could vote twice in one term.
	current, err := e.currentTerm()
	if err != nil {
		return err
	}
	if current < term {
		return forgot(e.cfg, fmt.Sprintf("term %d in the stable store is below term %d of log or snapshot", current, term))
	}
	return nil
}

const termKey = "CurrentTerm" // raft's

// currentTerm is the term raft last wrote, 0 for none.
func (e *engine) currentTerm() (uint64, error) {
	term, err := e.stores.Stable().GetUint64([]byte(termKey))
	if err != nil && err.Error() != "not found" { // as raft itself asks
		return 0, fmt.Errorf("current term: %w", err)
	}
	return term, nil
}

// forgot is the error for a directory that lost what it must not lose.
func forgot(c Config, what string) error {
	return fmt.Errorf("%w: %s: %s, although node %s took part with it; a voter that forgot what it acknowledged loses data. "+
		"Run 'stave cluster remove %s' and then 'stave cluster add %s=%s', and start it with an empty directory",
		ErrCorrupt, c.Dir, what, c.ID, c.ID, c.ID, c.AdvertiseRaft)
}

// close ends the instance: no new proposals, an answer for each one taken, then
// raft, then the transport. It is bounded even if raft hangs in the disk; the
// instance then ends when the stores are closed. Down tells.
func (e *engine) close() {
	e.once.Do(func() {
		close(e.stopped)
		e.mu.Lock()
		e.closing = true
		e.mu.Unlock()
		within(answerTimeout, e.inflight.Wait)
		go func() {
			defer close(e.down)
			_ = e.raft.Shutdown().Error() //nolint:errcheck // never fails
		}()
		timer := time.NewTimer(shutdownTimeout)
		defer timer.Stop()
		select {
		case <-e.down:
		case <-timer.C:
		}
		e.trans.Close() //nolint:errcheck // the listener stays with the node; nothing else can fail
		close(e.gone)
		close(e.proposals)
		e.drained.Wait()
	})
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
