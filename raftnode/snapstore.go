package raftnode

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// snapshotStore is raft's file store. It removes what a kill left half written,
// and tells the FSM at which index a snapshot stands: raft hands over the bytes
// alone.
type snapshotStore struct {
	*raft.FileSnapshotStore
	dir      string
	installs atomic.Int64 // snapshots that came from a leader or a restore
}

func openSnapshots(dir string, log *slog.Logger) (*snapshotStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create snapshot directory: %w", err)
	}
	// raft keeps its snapshots in a folder of this name below dir.
	left, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp"))
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, d := range left {
		if err := os.RemoveAll(d); err != nil {
			return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
		}
		log.Info("removed an unfinished snapshot", "name", strings.TrimSuffix(filepath.Base(d), ".tmp"))
	}
	inner, err := raft.NewFileSnapshotStoreWithLogger(dir, retainSnapshots, newHCLog(log))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &snapshotStore{FileSnapshotStore: inner, dir: dir}, nil
}

// newest returns index and term of the newest snapshot, 0 and 0 for none.
func (s *snapshotStore) newest() (index, term uint64, err error) {
	list, err := s.List()
	if err != nil {
		return 0, 0, fmt.Errorf("list snapshots: %w", err)
	}
	if len(list) == 0 {
		return 0, 0, nil
	}
	return list[0].Index, list[0].Term, nil
}

// Open returns a snapshot; its reader knows the index.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, rc, err := s.FileSnapshotStore.Open(id)
	if err != nil {
		return nil, nil, err
	}
	return meta, &indexedSnapshot{ReadCloser: rc, index: meta.Index}, nil
}

// indexedSnapshot is the content of a snapshot that stands at an index.
type indexedSnapshot struct {
	io.ReadCloser
	index uint64
}

// SnapshotIndex returns the raft index of the snapshot.
func (s *indexedSnapshot) SnapshotIndex() uint64 { return s.index }
