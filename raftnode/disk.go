package raftnode

import (
	"errors"
	"fmt"
	"path/filepath"

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
		Faults: n.cfg.Faults,
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
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	return stores, snaps, nil
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
