package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/failpoint"
	"github.com/stavedb/stave/snapshots"
)

// Restore replaces the state of the whole cluster by a snapshot. The leader
// reads and verifies all of it before anything changes; what is restored is a
// new incarnation: see catalog's Restored. Clients and watchers of the old one
// get RESTORED. Errors that are not ErrOutcomeUnknown changed nothing.
func (n *Node) Restore(ctx context.Context, r io.Reader) (catalog.Incarnation, error) {
	e, l, err := n.leading()
	if err != nil {
		return catalog.Incarnation{}, err
	}
	n.restoreMu.Lock()
	defer n.restoreMu.Unlock()
	// A level that one member does not have would stop it.
	snap, err := snapshots.Read(r, n.commonLevel(e))
	if err != nil {
		return catalog.Incarnation{}, fmt.Errorf("snapshot: %w", err)
	}
	st, err := n.restored(e, snap.State)
	if err != nil {
		return catalog.Incarnation{}, err
	}
	file, size, err := n.spool(st)
	if err != nil {
		return catalog.Incarnation{}, err
	}
	defer func() {
		_ = file.Close()           //nolint:errcheck // read only from here on
		_ = os.Remove(file.Name()) //nolint:errcheck // removed at the next start otherwise
	}()
	// Nothing is served until a majority has the restored state: it shows here
	// before that, and is gone if this node is lost meanwhile.
	n.resign()
	defer n.lookAgain()
	meta := &raft.SnapshotMeta{Version: 1, Index: uint64(st.Revision()), Term: l.term, Size: size}
	failpoint.Hit(failpoint.UserRestoreBegin)
	err = e.raft.Restore(meta, file, restoreTimeout)
	failpoint.Hit(failpoint.UserRestoreDone)
	if err != nil {
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return catalog.Incarnation{}, n.notLeader()
		}
		return catalog.Incarnation{}, outcomeUnknown("restore", err)
	}
	return st.Incarnation(), n.serveAgain(ctx, e)
}

const restoreTimeout = 0 // as long as it takes; the disk's limits hold

// restored rewrites a snapshot's state for this cluster.
func (n *Node) restored(e *engine, st *catalog.State) (*catalog.State, error) {
	cur := n.fsm.State()
	c := cur.Cluster()
	prev := st.Incarnation()
	if c.Incarnation.Number > prev.Number {
		prev = c.Incarnation
	}
	var members []catalog.Member
	cur.Members(func(m *catalog.Member) bool {
		members = append(members, *m)
		return true
	})
	return st.Restored(catalog.RestoreOptions{
		ClusterID: c.ID, Incarnation: n.nextIncarnation(prev), Level: max(c.Level, st.Cluster().Level), Members: members,
		Revision: max(st.Revision(), catalog.Revision(e.raft.LastIndex())) + 1,
		Wall:     catalog.Millis(n.cfg.Clock.Wall().UnixMilli()),
	})
}

// spool writes a state to a temporary file and returns it at its beginning.
func (n *Node) spool(st *catalog.State) (f *os.File, size int64, err error) {
	f, err = os.CreateTemp(n.cfg.Dir, "restore-*.tmp")
	if err != nil {
		return nil, 0, fmt.Errorf("restore file: %w", err)
	}
	err = snapshots.Write(f, st, nil)
	if err == nil {
		size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("restore file: %w", err), f.Close(), os.Remove(f.Name()))
	}
	return f, size, nil
}

// removeSpools deletes what a kill during a restore left.
func removeSpools(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, "restore-*.tmp"))
	for _, f := range left {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// serveAgain waits until the leader serves the restored state. Its last term is
// 0, so that the leader's NewTerm is a command like any other, and passes the
// index that the restore burned.
func (n *Node) serveAgain(ctx context.Context, e *engine) error {
	n.lookAgain()
	for n.lead.Load() == nil {
		if e.raft.State() != raft.Leader || n.engine.Load() != e {
			return outcomeUnknown("restore", &NotLeaderError{Leader: n.Leader()})
		}
		if err := n.pause(ctx); err != nil {
			return outcomeUnknown("restore", err)
		}
	}
	return nil
}
