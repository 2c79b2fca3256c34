package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"

	"github.com/stavedb/stave/internal/failpoint"
)

// walMeta is the list of segments that raft-wal loads. Before the library
// sees it, the tail segment is judged and, where a kill left it between two
// steps, repaired.
type walMeta struct {
	metadb.BoltMetaDB
	faults Faults
	log    *slog.Logger
}

// CommitState implements types.MetaStore.
func (m *walMeta) CommitState(st types.PersistentState) error {
	if err := m.faults.Before(OpMeta); err != nil {
		return err
	}
	failpoint.Hit(failpoint.MetaBegin)
	if err := m.BoltMetaDB.CommitState(st); err != nil {
		return err
	}
	failpoint.Hit(failpoint.MetaDone)
	return m.faults.After(OpMeta)
}

// Load implements types.MetaStore.
func (m *walMeta) Load(dir string) (types.PersistentState, error) {
	file := filepath.Join(dir, metadb.FileName)
	if err := probeLock(file); err != nil {
		return types.PersistentState{}, err
	}
	st, err := m.BoltMetaDB.Load(dir)
	if err != nil || len(st.Segments) == 0 {
		return st, err
	}
	if err := checkSegments(st); err != nil {
		return st, &CorruptError{Kind: KindWAL, File: file, Err: err}
	}
	return m.repairTail(dir, st)
}

// probeLock fails when somebody else has the file open; the library would
// wait for ever.
func probeLock(file string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkBoltSize(file); err != nil {
		return err
	}
	db, err := bbolt.Open(file, 0o600, boltOptions())
	if err != nil {
		return boltError(file, err)
	}
	return db.Close()
}

// checkSegments guards against a damaged list: raft-wal deletes every file
// that is not in it.
func checkSegments(st types.PersistentState) error {
	var next uint64
	for i, s := range st.Segments {
		tail := i == len(st.Segments)-1
		switch {
		case s.BaseIndex == 0 || s.MinIndex < s.BaseIndex || s.ID >= st.NextSegmentID:
			return fmt.Errorf("segment %d: base %d, min %d, id %d of %d", i, s.BaseIndex, s.MinIndex, s.ID, st.NextSegmentID)
		case i > 0 && s.BaseIndex != next:
			return fmt.Errorf("segment %d: base %d, want %d", i, s.BaseIndex, next)
		case s.SealTime.IsZero() != tail:
			return fmt.Errorf("segment %d of %d: sealed is %v", i, len(st.Segments), !tail)
		case !tail && s.MaxIndex < s.MinIndex:
			return fmt.Errorf("segment %d: min %d, max %d", i, s.MinIndex, s.MaxIndex)
		}
		next = s.MaxIndex + 1
	}
	return nil
}

// repairTail judges the tail segment. Three ends of a kill are put right: a
// write that was cut is zeroed, because a stale index frame in it would seal
// the segment for ever; a segment that was sealed without its successor in
// the list gets one; a missing file is left to raft-wal, which creates it.
func (m *walMeta) repairTail(dir string, st types.PersistentState) (types.PersistentState, error) {
	info := &st.Segments[len(st.Segments)-1]
	file := filepath.Join(dir, segment.FileName(*info))
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return st, m.missingTail(dir, *info)
	}
	if err != nil {
		return st, fmt.Errorf("read tail segment: %w", err)
	}
	t := scanTail(b)
	if t.damaged {
		return st, &CorruptError{
			Kind: KindWAL, File: file, Offset: int64(t.end),
			Err: errors.New("damage in front of entries that may be acknowledged"),
		}
	}
	if t.dirty > t.end {
		m.log.Warn("dropping a write that was cut", "file", file, "offset", t.end, "bytes", t.dirty-t.end)
		if err := zero(file, t.end, t.dirty); err != nil {
			return st, fmt.Errorf("zero a cut write: %w", err)
		}
	}
	if t.indexStart == 0 {
		return st, nil
	}
	if t.entries == 0 {
		return st, &CorruptError{Kind: KindWAL, File: file, Err: errors.New("sealed without entries")}
	}
	m.log.Warn("completing a segment rotation", "file", file)
	info.SealTime = time.Now()
	info.IndexStart = t.indexStart
	info.MaxIndex = info.BaseIndex + t.entries - 1
	next := types.SegmentInfo{
		ID: st.NextSegmentID, BaseIndex: info.MaxIndex + 1, MinIndex: info.MaxIndex + 1,
		Codec: info.Codec, SizeLimit: info.SizeLimit, CreateTime: time.Now(),
	}
	st.NextSegmentID++
	st.Segments = append(st.Segments, next)
	return st, m.CommitState(st)
}

// otherFile refuses a list whose tail file is missing while a file of the
// same id exists: the list is damaged and that file holds the tail.
func otherFile(dir string, info types.SegmentInfo) error {
	found, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("*-%016x.wal", info.ID)))
	if err != nil || len(found) == 0 {
		return err
	}
	return &CorruptError{
		Kind: KindWAL, File: found[0],
		Err: fmt.Errorf("the list of segments says %s", segment.FileName(info)),
	}
}

func zero(file string, from, to int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, to-from), int64(from))
	return errors.Join(err, f.Sync(), f.Close())
}
