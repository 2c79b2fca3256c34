package raftlog

import (
	"errors"
	"runtime"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/failpoint"
)

// stableFile is what raft-boltdb offers of it.
type stableFile interface {
	raft.StableStore
	Close() error
}

// stableStore is the raft.StableStore handed to raft. A write never returns
// an error, because raft panics on it: it is held, and ends by
// runtime.Goexit on Close.
type stableStore struct {
	disk[stableFile]
}

var _ raft.StableStore = (*stableStore)(nil)

// Set implements raft.StableStore.
func (s *stableStore) Set(key, val []byte) error {
	return s.put(func(f stableFile) error { return f.Set(key, val) })
}

// SetUint64 implements raft.StableStore.
func (s *stableStore) SetUint64(key []byte, val uint64) error {
	return s.put(func(f stableFile) error { return f.SetUint64(key, val) })
}

func (s *stableStore) put(set func(stableFile) error) error {
	err := s.write(OpSet, func(f stableFile, _ bool) error {
		failpoint.Hit(failpoint.StableBegin)
		if err := set(f); err != nil {
			return err
		}
		failpoint.Hit(failpoint.StableDone)
		return s.faults.After(OpSet)
	})
	if errors.Is(err, ErrClosed) {
		runtime.Goexit()
	}
	return err
}

// Get implements raft.StableStore. A missing key is the library's own error,
// which raft knows by its text.
func (s *stableStore) Get(key []byte) (val []byte, err error) {
	err = s.read(func(f stableFile) error { val, err = f.Get(key); return err })
	return val, err
}

// GetUint64 implements raft.StableStore.
func (s *stableStore) GetUint64(key []byte) (val uint64, err error) {
	err = s.read(func(f stableFile) error { val, err = f.GetUint64(key); return err })
	return val, err
}
