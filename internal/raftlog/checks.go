package raftlog

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/hashicorp/raft"
)

// checks is the raft.LogStore handed to raft: it keeps the contract of a
// monotonic store whatever lies below, checks every entry that is read, and
// holds the calls whose failure raft answers with a panic.
type checks struct {
	kind    Kind
	verify  func([]byte) error
	next    raft.LogStore // raft.LogCache over the disk
	health  *health
	closing <-chan struct{}
}

var (
	_ raft.LogStore          = (*checks)(nil)
	_ raft.MonotonicLogStore = (*checks)(nil)
)

// IsMonotonic is true for both kinds: raft then empties the log after a
// snapshot install or user restore instead of trusting a gap.
func (c *checks) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (c *checks) FirstIndex() (uint64, error) { return c.next.FirstIndex() }

// LastIndex implements raft.LogStore.
func (c *checks) LastIndex() (uint64, error) { return c.next.LastIndex() }

// GetLog implements raft.LogStore. It returns raft.ErrLogNotFound as it is;
// any other failure is reported and the call held until Close.
func (c *checks) GetLog(index uint64, l *raft.Log) error {
	err := c.get(index, l)
	if err == nil || errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	if !errors.Is(err, ErrClosed) {
		c.health.corrupt(err)
	}
	c.hold()
	return err
}

// hold ends the calling goroutine when the stores are closed.
func (c *checks) hold() {
	<-c.closing
	runtime.Goexit()
}

// get reads and checks one entry.
func (c *checks) get(index uint64, l *raft.Log) error {
	err := c.next.GetLog(index, l)
	if errors.Is(err, raft.ErrLogNotFound) {
		err = c.missing(index, l)
	}
	if err != nil || l.Type != raft.LogCommand || c.verify == nil {
		return err
	}
	if err := c.verify(l.Data); err != nil {
		return &CorruptError{Kind: c.kind, Index: index, Err: err}
	}
	return nil
}

// missing tells an entry outside the log from one that should be there. It
// asks again because an append or a compaction may have come in between.
func (c *checks) missing(index uint64, l *raft.Log) error {
	var first, last uint64
	for range 2 {
		var err error
		if first, err = c.next.FirstIndex(); err != nil {
			return err
		}
		if last, err = c.next.LastIndex(); err != nil {
			return err
		}
		if first == 0 || index < first || index > last {
			return raft.ErrLogNotFound
		}
		if err = c.next.GetLog(index, l); !errors.Is(err, raft.ErrLogNotFound) {
			return err
		}
	}
	return &CorruptError{
		Kind: c.kind, Index: index,
		Err: fmt.Errorf("missing between %d and %d", first, last),
	}
}

// StoreLog implements raft.LogStore.
func (c *checks) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. It returns only refusals.
func (c *checks) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	last, err := c.next.LastIndex()
	if err != nil {
		return c.end(err)
	}
	// Checked here because the cache hides what an error is.
	if err := follows(last, logs); err != nil {
		return err
	}
	return c.end(c.next.StoreLogs(logs))
}

// DeleteRange implements raft.LogStore. It returns only refusals.
func (c *checks) DeleteRange(lo, hi uint64) error {
	return c.end(c.next.DeleteRange(lo, hi))
}

// end turns a call that outlived the stores into the end of its goroutine.
func (c *checks) end(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.closing:
		runtime.Goexit()
	default:
	}
	return err
}
