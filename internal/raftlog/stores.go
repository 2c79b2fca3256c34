package raftlog

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Stores are the open log and stable store of one node. All methods may be
// called concurrently, except that AlignWithSnapshot must come before raft.
type Stores struct {
	health  *health
	log     *diskLogStore
	stable  *stableStore
	checks  *checks
	closing chan struct{}
	told    chan struct{} // closed when the callbacks' goroutine has ended

	once     sync.Once
	closeErr error
}

// Open opens or creates the stores in c.Dir, repairing what a kill may leave.
// Errors: ErrLocked when another process has them; a CorruptError or ErrLost,
// with every file left as it is; or what the file system says. Trouble of the disk
// during Open is returned, not held.
func Open(c Config) (*Stores, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("raft log config: %w", err)
	}
	c = c.withDefaults()
	if err := c.makeDirs(); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	s := &Stores{closing: make(chan struct{}), told: make(chan struct{})}
	s.health = newHealth(&c)
	s.stable = &stableStore{disk: newDisk(diskStable, KindBolt, &c, s.health, s.closing, c.openStable)}
	s.log = &diskLogStore{chunk: deleteChunkWAL, mayRunAhead: c.Ahead, onAppend: c.OnAppend, disk: newDisk(diskLog, c.Kind, &c, s.health, s.closing, c.openLog)}
	if c.Kind == KindBolt {
		s.log.chunk = deleteChunkBolt
	}
	cache, err := raft.NewLogCache(c.LogCache, s.log)
	if err != nil {
		return nil, fmt.Errorf("log cache: %w", err)
	}
	s.checks = &checks{kind: c.Kind, verify: c.Verify, next: cache, health: s.health, closing: s.closing}
	go func() {
		defer close(s.told)
		s.health.notify(s.closing)
	}()
	// The stable store first: its lock stands for the whole directory.
	if err := s.stable.start(); err != nil {
		close(s.log.dead) // never started
		return nil, errors.Join(err, s.Close())
	}
	if err := s.log.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.pair(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Log returns the store for raft. Writes return only refusals (ErrGap,
// ErrTooLarge, ErrMiddle); a read returns only raft.ErrLogNotFound. Every
// other failure is held, and a held call, like any call after Close, ends
// its goroutine with runtime.Goexit.
func (s *Stores) Log() raft.LogStore { return s.checks }

// Stable returns the stable store for raft. Its writes return no error; they
// are held like those of Log.
func (s *Stores) Stable() raft.StableStore { return s.stable }

// Health returns the present state.
func (s *Stores) Health() Health { return s.health.state() }

// Get returns one entry, checked. Errors: raft.ErrLogNotFound, a
// CorruptError, ErrClosed. Nothing is held and no callback is called.
func (s *Stores) Get(index uint64) (raft.Log, error) {
	var l raft.Log
	err := s.checks.get(index, &l)
	return l, err
}

// Scan calls fn for each entry from index from, or the first one if that is
// later, to the one that is the last when Scan begins. It stops at the first
// error and returns it: fn's own, or one of Get's. The entry belongs to fn,
// its Data may be shared with the cache and must not be changed.
func (s *Stores) Scan(from uint64, fn func(*raft.Log) error) error {
	first, err := s.checks.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.checks.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	for i := max(first, from); i <= last; i++ {
		l, err := s.Get(i)
		if err != nil {
			return err
		}
		if err := fn(&l); err != nil {
			return err
		}
	}
	return nil
}

// AlignWithSnapshot makes the log fit the newest snapshot, which ends at
// snapIndex in snapTerm (0, 0 for none). It must be called before raft opens.
//
// A log that ends below the snapshot, or whose entry at snapIndex has another
// term, is emptied: everything in it is either in the snapshot or was never
// committed. A kill between the end of a snapshot install and the removal of
// the old log leaves that, and a store without gaps then refuses every append.
// Nothing else is deleted. A log that begins behind the snapshot is
// ErrSnapshotGap.
func (s *Stores) AlignWithSnapshot(snapIndex, snapTerm uint64) error {
	first, err := s.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("first index: %w", err)
	}
	last, err := s.log.LastIndex()
	if err != nil {
		return fmt.Errorf("last index: %w", err)
	}
	if last == 0 {
		return nil
	}
	if first > snapIndex+1 {
		return fmt.Errorf("log begins at %d, snapshot ends at %d: %w", first, snapIndex, ErrSnapshotGap)
	}
	if last >= snapIndex {
		if first == snapIndex+1 {
			return nil
		}
		l, err := s.Get(snapIndex)
		if err != nil {
			return fmt.Errorf("entry at snapshot: %w", err)
		}
		if l.Term == snapTerm {
			return nil
		}
	}
	s.health.cfg.Logger.Warn("emptying a log that does not fit the snapshot",
		"first", first, "last", last, "snapshot", snapIndex, "term", snapTerm)
	return s.checks.next.DeleteRange(first, last)
}

// Close ends every held call and closes the files. It returns within 5 s:
// ErrStillWriting when a write still hangs then. More calls return the same.
func (s *Stores) Close() error {
	s.once.Do(func() {
		close(s.closing)
		limit := time.NewTimer(closeLimit)
		defer limit.Stop()
		for _, ended := range []chan struct{}{s.log.dead, s.stable.dead, s.told} {
			select {
			case <-ended:
			case <-limit.C:
				s.closeErr = fmt.Errorf("close of log stores: %w", ErrStillWriting)
				return
			}
		}
	})
	return s.closeErr
}
