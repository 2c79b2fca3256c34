package raftlog

import (
	"context"
	"runtime"

	"github.com/hashicorp/raft"
)

// maxAhead is how many entries run ahead of the disk together. More share one sync
// already, and commands that come while it lasts make the next batch, which is what
// a busy leader lives on.
const maxAhead = 4

// ahead is an append that its caller has as stored and the disk has not yet.
//
// A leader has to write an entry and to send it. In raft as it comes the second
// waits for the first, so that a command costs two syncs one after the other. A
// small append for which Config.Ahead says so returns as soon as the goroutine of
// the disk has it, and the followers write at the same time. There is one at a
// time.
//
// Reads see its entries. Everything else that is done to the log comes behind it
// on the same goroutine. What must not happen before it is on the disk is its
// owner's to hold back, with Synced and AwaitSynced: that anything is applied or
// told to be committed, and that the log is acknowledged to another leader.
type ahead struct {
	first, last uint64
	logs        []*raft.Log
	done        chan struct{} // closed when the entries are on the disk
}

// Synced returns the highest index up to the given one behind which everything
// that raft has stored is on the disk. It does not block.
func (s *Stores) Synced(index uint64) uint64 {
	if a := s.log.ahead.Load(); a != nil {
		return min(index, a.first-1)
	}
	return index
}

// AwaitSynced returns when everything that raft has stored up to an index, which
// may lie beyond the end of the log, is on the disk. Errors: ErrClosed, or the
// context's.
func (s *Stores) AwaitSynced(ctx context.Context, index uint64) error {
	for {
		a := s.log.ahead.Load()
		if a == nil || index < a.first {
			return nil
		}
		select {
		case <-a.done:
		case <-s.closing:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// HoldUnsynced is AwaitSynced for a goroutine of raft: after Close it ends that
// goroutine, like every call that is held.
func (s *Stores) HoldUnsynced(index uint64) {
	if s.AwaitSynced(context.Background(), index) != nil {
		runtime.Goexit()
	}
}

// runsAhead reports whether an append may return before it is on the disk.
func (s *diskLogStore) runsAhead(logs []*raft.Log) bool {
	if len(logs) > maxAhead || s.ahead.Load() != nil {
		return false
	}
	bytes := 0
	for _, l := range logs {
		if l.Type != raft.LogCommand {
			return false
		}
		bytes += len(l.Data) + len(l.Extensions)
	}
	return bytes <= maxAppendBytes && s.mayRunAhead()
}

// appendAhead hands an append to the disk and does not wait for it.
func (s *diskLogStore) appendAhead(logs []*raft.Log) error {
	a := &ahead{first: logs[0].Index, last: logs[len(logs)-1].Index, logs: logs, done: make(chan struct{})}
	j := s.appendJob(logs)
	j.then = func(err error) {
		if err != nil { // a refusal, which the caller has ruled out
			s.health.fatalError(err)
			return
		}
		s.ahead.Store(nil)
		close(a.done)
	}
	s.ahead.Store(a)
	return s.hand(j)
}

// get returns an entry of the append, if it has it.
func (a *ahead) get(index uint64, l *raft.Log) bool {
	if a == nil || index < a.first || index > a.last {
		return false
	}
	*l = *a.logs[index-a.first]
	return true
}
