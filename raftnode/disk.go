package raftnode

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/raftlog"
)

// openStores opens the log and stable stores and the snapshots of a directory.
func (n *Node) openStores() (*raftlog.Stores, *snapshotStore, error) {
	snaps, err := openSnapshots(filepath.Join(n.cfg.Dir, snapshotDir), n.cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	stores, err := raftlog.Open(raftlog.Config{
		Dir: filepath.Join(n.cfg.Dir, stateDir), Kind: raftlog.Kind(n.cfg.LogStore), Verify: fsm.VerifyEntry, Logger: n.cfg.Logger,
		Faults: n.cfg.Faults, Ahead: n.leads, OnAppend: n.appends.observe,
		OnTrouble: func(t raftlog.Trouble) {
			n.log.Warn("disk trouble, standing back", "kind", t.Kind, "op", t.Op, "error", t.Err)
			n.gate(true)
			n.resign()
		},
		OnRecovered: func() {
			n.log.Info("disk recovered")
			n.gate(false)
			n.lookAgain()
		},
		OnCorrupt: func(err error) { n.fail(fmt.Errorf("%w: %w", ErrCorrupt, err)) },
		OnFatal:   func(err error) { n.fail(fmt.Errorf("disk: %w", err)) },
	})
	if err != nil {
		if errors.Is(err, raftlog.ErrCorruptLog) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if errors.Is(err, raftlog.ErrLost) {
			return nil, nil, forgot(n.cfg, err.Error())
		}
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	err = snaps.choose(stores, func(id, action string, err error) {
		n.log.Error("snapshot is damaged", "snapshot", id, "action", action, "error", err)
	})
	if err != nil {
		return nil, nil, errors.Join(err, stores.Close())
	}
	n.aside.Store(new(snaps.aside()))
	snaps.onBroken = n.snapshotBroken
	return stores, snaps, nil
}

// snapshotBroken reports a snapshot that turned out damaged while the node runs,
// as when a follower needs it, and has another one taken in its place.
func (n *Node) snapshotBroken(id string, err error) {
	what := fmt.Sprintf("snapshot %s cannot be read (%s); another one takes its place", id, err)
	if n.snaps == nil || !n.snaps.broken.CompareAndSwap(nil, &what) {
		return // opening, which fails with this error, or known
	}
	n.log.Error("snapshot is damaged", "snapshot", id, "action", "taking another one", "error", err)
	n.goFunc(func() {
		for n.snaps.broken.Load() != nil {
			if e := n.engine.Load(); e != nil {
				if err := e.await(e.raft.Snapshot()); err != nil {
					n.log.Warn("no snapshot in place of the damaged one, trying again", "error", err)
				}
			}
			if !n.sleep(brokenRetry) {
				return
			}
		}
	})
}

const brokenRetry = 5 * time.Second

// leads reports whether raft leads. On raft's main goroutine, which alone stores
// entries and changes the role, that is exact.
func (n *Node) leads() bool {
	e := n.engine.Load()
	return e != nil && e.raft.State() == raft.Leader
}

// gate closes or opens the way out for everything raft sends.
func (n *Node) gate(closed bool) {
	n.gateMu.Lock()
	defer n.gateMu.Unlock()
	n.gated.Store(closed)
	if e := n.engine.Load(); e != nil {
		e.trans.SetGate(closed)
	}
}

// adoptGate makes a new raft instance obey what was decided before it was the
// node's.
func (n *Node) adoptGate(e *engine) {
	n.gateMu.Lock()
	defer n.gateMu.Unlock()
	n.engine.Store(e)
	e.trans.SetGate(n.gated.Load())
	e.trans.SetCandidacy(n.diverged.Load() == nil)
}
