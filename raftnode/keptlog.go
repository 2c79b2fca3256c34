package raftnode

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// keptLog keeps the log back to the older one of two snapshots, so that a damaged
// newest one costs nothing. raft counts TrailingLogs back from the end of the log,
// and under load more than that many entries can lie between two snapshots.
type keptLog struct {
	raft.LogStore
	snaps *snapshotStore
}

// IsMonotonic implements raft.MonotonicLogStore, as the log below does.
func (l keptLog) IsMonotonic() bool { return true }

// DeleteRange implements raft.LogStore. What begins with the first entry and leaves
// some is a compaction; a log that goes whole, behind a snapshot that was installed,
// and a tail that conflicts are deleted as they are.
func (l keptLog) DeleteRange(lo, hi uint64) error {
	first, err := l.FirstIndex()
	if err != nil {
		return err
	}
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if lo == first && hi < last {
		found, err := l.snaps.find()
		if err != nil {
			return fmt.Errorf("find snapshots: %w", err)
		}
		if len(found) > 1 {
			hi = min(hi, found[1].index)
		}
		if hi < lo {
			return nil
		}
	}
	return l.LogStore.DeleteRange(lo, hi)
}
