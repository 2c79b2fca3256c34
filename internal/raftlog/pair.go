package raftlog

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/stavedb/stave/internal/failpoint"
)

// pairKey is where both stores keep the random bytes that make them a pair.
// Frozen.
var pairKey = []byte("stave.pair")

// pair makes sure that log and stable store belong together. Each alone looks
// like a new one when its file was deleted, and a node that starts with a new
// log, or without its term and vote, has forgotten what it acknowledged.
func (s *Stores) pair() error {
	var own, other []byte
	err := s.log.disk.read(func(f logFile) (err error) {
		own, err = getKey(f)
		return err
	})
	if err == nil {
		err = s.stable.read(func(f stableFile) (err error) {
			other, err = getKey(f)
			return err
		})
	}
	if err != nil {
		return err
	}
	switch {
	case len(own) == 0 && len(other) == 0:
		own = make([]byte, 16)
		rand.Read(own) //nolint:errcheck // crypto/rand never fails
		if err := s.log.disk.read(func(f logFile) error { return f.Set(pairKey, own) }); err != nil {
			return err
		}
		failpoint.Hit(failpoint.PairWritten)
	case len(other) == 0:
		// The log is marked first: a kill in between leaves this, in stores that
		// hold nothing.
		if empty, err := s.empty(); err != nil || !empty {
			return errors.Join(err, fmt.Errorf("%s: %w", stableName, ErrLost))
		}
	case len(own) == 0:
		return fmt.Errorf("the log: %w", ErrLost)
	case !bytes.Equal(own, other):
		return fmt.Errorf("log and %s are not of one node: %w", stableName, ErrLost)
	default:
		return nil
	}
	return s.stable.read(func(f stableFile) error { return f.Set(pairKey, own) })
}

// getKey reads the pair's bytes; none are no error.
func getKey(f interface{ Get([]byte) ([]byte, error) }) ([]byte, error) {
	b, err := f.Get(pairKey)
	if errors.Is(err, raftboltdb.ErrKeyNotFound) {
		return nil, nil
	}
	return b, err
}

// empty reports whether the log has no entries.
func (s *Stores) empty() (bool, error) {
	last, err := s.log.LastIndex()
	return last == 0, err
}

// tailKey is where raft-wal's list of segments keeps the id of the newest
// segment whose file is known to be on the disk. Frozen.
var tailKey = []byte("stave.tail")

// walFiler is the library's, and notes which segment files were there. The
// library takes a newest segment that is missing for one that a kill kept from
// being created, and makes an empty one.
type walFiler struct {
	*segment.Filer
	dir  string
	meta *walMeta
}

// Create implements types.SegmentFiler.
func (f *walFiler) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	w, err := f.Filer.Create(info)
	if err != nil {
		return nil, err
	}
	if err := syncDir(f.dir); err != nil { // the note must not outlive the file
		return nil, errors.Join(err, w.Close())
	}
	failpoint.Hit(failpoint.SegmentWritten)
	if err := f.meta.SetStable(tailKey, segmentNote(info)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func segmentNote(info types.SegmentInfo) []byte { return []byte(segment.FileName(info)) }

// missingTail judges a newest segment without a file: only one that never had
// one may be created.
func (m *walMeta) missingTail(dir string, info types.SegmentInfo) error {
	note, err := m.GetStable(tailKey)
	if err != nil {
		return fmt.Errorf("note of the newest segment: %w", err)
	}
	if bytes.Equal(note, segmentNote(info)) {
		return fmt.Errorf("newest segment %s: %w", filepath.Join(dir, segment.FileName(info)), ErrLost)
	}
	return otherFile(dir, info)
}

var _ types.SegmentFiler = (*walFiler)(nil)
