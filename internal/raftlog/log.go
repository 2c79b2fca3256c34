package raftlog

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/failpoint"
)

const (
	// maxAppendBytes bounds one append: raft-wal keeps file offsets in 32
	// bits, and one giant bbolt transaction stalls everything behind it.
	maxAppendBytes = 4 << 20
	// maxEntryBytes is half of what raft-wal can read back.
	maxEntryBytes = 32 << 20

	// Entries of one deletion. bbolt rewrites pages for each, raft-wal only
	// unlinks files.
	deleteChunkBolt = 4096
	deleteChunkWAL  = 65536
)

// logFile is what both libraries offer.
type logFile interface {
	raft.LogStore
	Set(key, val []byte) error
	Get(key []byte) ([]byte, error)
	Close() error
}

// diskLogStore is the raft.LogStore on the log disk. Troubles are held here;
// checks sits above it and keeps the contract towards raft.
type diskLogStore struct {
	disk[logFile]
	chunk uint64

	mayRunAhead func() bool
	onAppend    func(entries int, took time.Duration)
	ahead       atomic.Pointer[ahead] // the append that the disk does not have yet

	// acked is the last entry that was acknowledged to raft, index 0 for an
	// empty log. Only the goroutine of the disk touches it.
	acked struct {
		index uint64
		sum   uint32
	}
}

var _ raft.LogStore = (*diskLogStore)(nil)

// IsMonotonic makes raft empty the log after a snapshot install.
func (s *diskLogStore) IsMonotonic() bool { return true }

// start opens the log and notes its last entry.
func (s *diskLogStore) start() error {
	if err := s.disk.start(); err != nil {
		return err
	}
	return s.disk.read(s.note)
}

// note sets acked from the file.
func (s *diskLogStore) note(f logFile) error {
	last, err := f.LastIndex()
	if err != nil {
		return err
	}
	s.acked.index, s.acked.sum = last, 0
	if last == 0 {
		return nil
	}
	var l raft.Log
	s.acked.sum, err = s.readEntry(f, last, &l)
	return err
}

// readEntry reads and checks one entry; a missing one is raft.ErrLogNotFound.
func (s *diskLogStore) readEntry(f logFile, index uint64, l *raft.Log) (uint32, error) {
	err := s.guard(func() error { return f.GetLog(index, l) })
	if errors.Is(err, raft.ErrLogNotFound) {
		return 0, raft.ErrLogNotFound // raft compares, it does not unwrap
	}
	var sum uint32
	if err == nil {
		sum, err = openEntry(index, l)
	}
	if err != nil {
		return 0, &CorruptError{Kind: s.kind, Index: index, Err: err}
	}
	return sum, nil
}

// FirstIndex implements raft.LogStore.
func (s *diskLogStore) FirstIndex() (i uint64, err error) {
	err = s.read(func(f logFile) error {
		a := s.ahead.Load() // before the file, which has it when it is gone
		if i, err = f.FirstIndex(); i == 0 && a != nil {
			i = a.first
		}
		return err
	})
	return i, err
}

// LastIndex implements raft.LogStore.
func (s *diskLogStore) LastIndex() (i uint64, err error) {
	if a := s.ahead.Load(); a != nil {
		return a.last, nil
	}
	err = s.read(func(f logFile) error { i, err = f.LastIndex(); return err })
	return i, err
}

// GetLog implements raft.LogStore. raft-wal goes on returning deleted entries
// as long as its newest segment holds them; a log must be one thing whoever
// asks, and a leader that still finds them sends entries instead of the snapshot
// that replaced them.
func (s *diskLogStore) GetLog(index uint64, l *raft.Log) error {
	if s.ahead.Load().get(index, l) {
		return nil
	}
	return s.read(func(f logFile) error {
		first, err := f.FirstIndex()
		if err != nil {
			return err
		}
		if index < first || first == 0 {
			return raft.ErrLogNotFound
		}
		_, err = s.readEntry(f, index, l)
		return err
	})
}

// StoreLog implements raft.LogStore.
func (s *diskLogStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends in pieces of maxAppendBytes. A crash between two leaves a
// prefix of what raft never saw acknowledged. See ahead for what may return early.
func (s *diskLogStore) StoreLogs(logs []*raft.Log) error {
	for _, l := range logs {
		if len(l.Data)+len(l.Extensions) > maxEntryBytes {
			return fmt.Errorf("entry %d of %d bytes: %w", l.Index, len(l.Data)+len(l.Extensions), ErrTooLarge)
		}
	}
	if s.runsAhead(logs) {
		return s.appendAhead(logs)
	}
	for len(logs) > 0 {
		n, bytes := 0, 0
		for n < len(logs) && (n == 0 || bytes+len(logs[n].Data) <= maxAppendBytes) {
			bytes += len(logs[n].Data) + len(logs[n].Extensions)
			n++
		}
		if err := s.await(s.appendJob(logs[:n])); err != nil {
			return err
		}
		logs = logs[n:]
	}
	return nil
}

func (s *diskLogStore) appendJob(logs []*raft.Log) *job[logFile] {
	sealed := make([]*raft.Log, len(logs))
	var sum uint32
	for i, l := range logs {
		sealed[i], sum = sealEntry(l)
	}
	return &job[logFile]{op: OpAppend, try: func(f logFile, again bool) error {
		if again {
			if err := s.rewind(f); err != nil {
				return err
			}
		}
		if err := follows(s.acked.index, logs); err != nil {
			return err
		}
		failpoint.Hit(failpoint.AppendBegin)
		start := time.Now()
		if err := f.StoreLogs(sealed); err != nil {
			return err
		}
		took := time.Since(start)
		failpoint.Hit(failpoint.AppendDone)
		if err := s.faults.After(OpAppend); err != nil {
			return err
		}
		s.acked.index, s.acked.sum = logs[len(logs)-1].Index, sum
		s.onAppend(len(logs), took)
		return nil
	}}
}

// follows checks that logs continue a log that ends at last; an empty log
// takes any index.
func follows(last uint64, logs []*raft.Log) error {
	for _, l := range logs {
		if last != 0 && l.Index != last+1 || l.Index == 0 {
			return fmt.Errorf("index %d after %d: %w", l.Index, last, ErrGap)
		}
		last = l.Index
	}
	return nil
}

// rewind compares the re-opened log with what was acknowledged and removes
// the rest. After a failed fsync the kernel holds pages as clean that never
// reached the disk, so what looks stored is written again.
func (s *diskLogStore) rewind(f logFile) error {
	last, err := f.LastIndex()
	if err != nil {
		return err
	}
	if last < s.acked.index {
		return s.lost(last)
	}
	if s.acked.index > 0 {
		var l raft.Log
		sum, err := s.readEntry(f, s.acked.index, &l)
		if errors.Is(err, raft.ErrLogNotFound) || err == nil && sum != s.acked.sum {
			return s.lost(last)
		}
		if err != nil {
			return err
		}
	}
	if last == s.acked.index {
		return nil
	}
	first, err := f.FirstIndex()
	if err != nil {
		return err
	}
	return f.DeleteRange(max(first, s.acked.index+1), last)
}

func (s *diskLogStore) lost(last uint64) error {
	return &CorruptError{
		Kind: s.kind, Index: s.acked.index,
		Err: fmt.Errorf("acknowledged, but after re-open the log ends at %d or differs", last),
	}
}

// DeleteRange implements raft.LogStore: a prefix or a suffix, in chunks with
// room for appends between them.
func (s *diskLogStore) DeleteRange(lo, hi uint64) error {
	for more := true; more; {
		err := s.write(OpDelete, func(f logFile, again bool) (err error) {
			more, err = s.deleteChunk(f, lo, hi, again)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteChunk deletes one chunk of [lo, hi] and reports whether more is left.
// It looks at the file each time, so a repeated try continues where the failed
// one ended. At every moment the log on disk is contiguous: a prefix goes
// from its start, a suffix from its end.
func (s *diskLogStore) deleteChunk(f logFile, lo, hi uint64, again bool) (more bool, err error) {
	first, err := f.FirstIndex()
	if err != nil {
		return false, err
	}
	last, err := f.LastIndex()
	if err != nil {
		return false, err
	}
	if floor := s.mustKeep(lo, hi); again && last < floor {
		return false, s.lost(last)
	}
	if first == 0 || hi < first || lo > last || lo > hi {
		return false, nil
	}
	lo, hi = max(lo, first), min(hi, last)
	switch {
	case lo > first && hi < last:
		return false, fmt.Errorf("delete %d to %d of %d to %d: %w", lo, hi, first, last, ErrMiddle)
	case lo == first && hi == last:
		return false, s.empty(f, lo, hi)
	case hi-lo < s.chunk:
	case lo == first:
		hi, more = lo+s.chunk-1, true
	default:
		lo, more = hi-s.chunk+1, true
	}
	failpoint.Hit(failpoint.DeleteBegin)
	if err := f.DeleteRange(lo, hi); err != nil {
		return false, err
	}
	failpoint.Hit(failpoint.DeleteDone)
	if err := s.faults.After(OpDelete); err != nil {
		return false, err
	}
	return more, s.note(f)
}

// mustKeep is the index the log may not end below when [lo, hi] is deleted.
func (s *diskLogStore) mustKeep(lo, hi uint64) uint64 {
	if hi < s.acked.index {
		return s.acked.index
	}
	return max(lo, 1) - 1
}

// empty deletes the whole log without letting an append in between: with half
// of the log gone, the entry that follows the old end would be refused. bbolt
// still works in chunks, from the end, so that a kill leaves a prefix, which
// AlignWithSnapshot can judge; raft-wal commits the whole at once.
func (s *diskLogStore) empty(f logFile, lo, hi uint64) error {
	for s.kind == KindBolt && hi-lo >= s.chunk {
		if err := f.DeleteRange(hi-s.chunk+1, hi); err != nil {
			return err
		}
		hi -= s.chunk
		s.progress()
	}
	failpoint.Hit(failpoint.EmptyBegin)
	if err := f.DeleteRange(lo, hi); err != nil {
		return err
	}
	failpoint.Hit(failpoint.EmptyDone)
	if err := s.faults.After(OpDelete); err != nil {
		return err
	}
	return s.note(f)
}
