package raftnode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
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
	if err := checkMetas(filepath.Join(dir, "snapshots")); err != nil {
		return nil, err
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

const (
	metaFile = "meta.json"
	metaSum  = "meta.sum" // Frozen: CRC-32C of meta.json as 8 hex digits
)

// Create begins a snapshot. Raft checks its content against the meta, but not
// the meta: a damaged index would make an old snapshot the newest and empty the
// log behind it.
func (s *snapshotStore) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, ci, t)
	if err != nil {
		return nil, err
	}
	return &summedSink{SnapshotSink: sink, dir: filepath.Join(s.dir, "snapshots", sink.ID())}, nil
}

type summedSink struct {
	raft.SnapshotSink
	dir  string
	done bool
}

// Close finishes the snapshot and then notes the checksum of its meta. A kill in
// between leaves one that is checked by its name alone.
func (s *summedSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil || s.done {
		return err
	}
	s.done = true
	meta, err := os.ReadFile(filepath.Join(s.dir, metaFile))
	if err != nil {
		return fmt.Errorf("snapshot meta: %w", err)
	}
	return writeDurable(filepath.Join(s.dir, metaSum), sumOf(meta))
}

func sumOf(meta []byte) []byte {
	return fmt.Appendf(nil, "%08x", crc32.Checksum(meta, crc32.MakeTable(crc32.Castagnoli)))
}

// checkMetas refuses a directory with a damaged meta.
func checkMetas(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*", metaFile))
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("snapshot meta: %w", err)
		}
		var meta raft.SnapshotMeta
		if err := json.Unmarshal(data, &meta); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
		}
		id := filepath.Base(filepath.Dir(name))
		if meta.ID != id || !strings.HasPrefix(id, fmt.Sprintf("%d-%d-", meta.Term, meta.Index)) {
			return fmt.Errorf("%w: %s says it is %s, term %d, index %d", ErrCorrupt, name, meta.ID, meta.Term, meta.Index)
		}
		sum, err := os.ReadFile(filepath.Join(filepath.Dir(name), metaSum))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("snapshot meta: %w", err)
		case !bytes.Equal(sum, sumOf(data)):
			return fmt.Errorf("%w: checksum of %s is wrong", ErrCorrupt, name)
		}
	}
	return nil
}
