package raftnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/failpoint"
)

const (
	metaFile    = "meta.json"
	metaSum     = "meta.sum"
	contentFile = "state.bin"
	// raft keeps its snapshots in a folder of this name below its directory.
	raftSnapshots = "snapshots"
	unfinished    = ".tmp"
)

// snapshotStore is raft's file store. It removes what a kill left half written,
// adds a checksum to every meta, and tells the FSM at which index a snapshot
// stands: raft hands over the bytes alone.
type snapshotStore struct {
	*raft.FileSnapshotStore
	dir      string
	mu       sync.Mutex   // one removal at a time
	installs atomic.Int64 // snapshots that came from a leader or a restore
	// onBroken is called when a snapshot that is needed cannot be read.
	onBroken func(id string, err error)
	broken   atomic.Pointer[string] // what is wrong with the newest one; nil: nothing
}

func openSnapshots(dir string, log *slog.Logger) (*snapshotStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create snapshot directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, raftSnapshots, "*"+unfinished))
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, d := range left {
		if err := os.RemoveAll(d); err != nil {
			return nil, fmt.Errorf("remove unfinished snapshot: %w", err)
		}
		log.Info("removed an unfinished snapshot", "name", strings.TrimSuffix(filepath.Base(d), unfinished))
	}
	// Raft's own removal deletes the files of a snapshot one by one: see reap.
	inner, err := raft.NewFileSnapshotStoreWithLogger(dir, math.MaxInt32, newHCLog(log))
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	return &snapshotStore{FileSnapshotStore: inner, dir: dir}, nil
}

// folder is where a snapshot is.
func (s *snapshotStore) folder(id string) string { return filepath.Join(s.dir, raftSnapshots, id) }

// List returns the newest snapshot alone. Raft goes on to the next one when the
// first does not load, whether its log reaches back or not; which one to start
// from was decided when the directory was opened.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	list, err := s.FileSnapshotStore.List()
	return list[:min(len(list), 1)], err
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
		if _, gone := os.Stat(s.folder(id)); !errors.Is(gone, fs.ErrNotExist) && s.onBroken != nil {
			s.onBroken(id, err)
		}
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

// Create begins a snapshot. Raft checks its content against the meta, but not
// the meta: a damaged index would make an old snapshot the newest and empty the
// log behind it. The checksum is there before the snapshot gets its final name,
// so that one without it is damaged.
func (s *snapshotStore) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.FileSnapshotStore.Create(v, index, term, c, ci, t)
	if err != nil {
		return nil, err
	}
	dir := s.folder(sink.ID()) + unfinished
	meta, err := readMeta(dir)
	if err == nil {
		err = writeDurable(filepath.Join(dir, metaSum), meta.sum(), failpoint.SnapshotSum)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("snapshot meta: %w", err), sink.Cancel())
	}
	failpoint.Hit(failpoint.SnapshotCreated)
	return &snapshotSink{SnapshotSink: sink, s: s}, nil
}

type snapshotSink struct {
	raft.SnapshotSink
	s *snapshotStore
}

// Close finishes the snapshot, which takes the place of a broken one, and removes
// those that are too old.
func (s *snapshotSink) Close() error {
	failpoint.Hit(failpoint.SnapshotWritten)
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.SnapshotDone)
	s.s.broken.Store(nil)
	_, err := s.s.reap()
	return err
}

// reap removes all but the newest snapshots and returns those. One that is being
// removed is no snapshot any more, whenever that ends.
func (s *snapshotStore) reap() ([]foundSnapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find()
	if err != nil {
		return nil, err
	}
	for len(found) > retainSnapshots {
		dir := s.folder(found[len(found)-1].id)
		if err := os.Rename(dir, dir+unfinished); err != nil {
			return nil, fmt.Errorf("remove old snapshot: %w", err)
		}
		failpoint.Hit(failpoint.SnapshotReap)
		if err := os.RemoveAll(dir + unfinished); err != nil {
			return nil, fmt.Errorf("remove old snapshot: %w", err)
		}
		found = found[:len(found)-1]
	}
	return found, nil
}

// snapshotMeta is what raft writes of a snapshot.
type snapshotMeta struct {
	raft.SnapshotMeta
	CRC []byte // of the content, CRC-64/ECMA
}

func readMeta(dir string) (snapshotMeta, error) {
	var m snapshotMeta
	data, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}

// sum is what stands in meta.sum: it covers all that is known when a snapshot is
// begun. Size and CRC of the content speak for themselves. Frozen: directory
// format v1.
func (m *snapshotMeta) sum() []byte {
	servers := [][3]string{}
	for _, s := range m.Configuration.Servers {
		servers = append(servers, [3]string{s.Suffrage.String(), string(s.ID), string(s.Address)})
	}
	text, err := json.Marshal([]any{m.Version, m.ID, m.Index, m.Term, m.ConfigurationIndex, servers})
	if err != nil {
		return nil // numbers and texts always encode
	}
	return sumOf(text)
}

// sumOf is a CRC-32C in 8 hex digits.
func sumOf(data []byte) []byte {
	return fmt.Appendf(nil, "%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}
