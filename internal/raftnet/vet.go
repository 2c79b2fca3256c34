package raftnet

import (
	"fmt"
	"math"

	"github.com/hashicorp/raft"
)

// vetAppend refuses an append that raft would stop the process on, or whose
// entries do not follow each other, and clamps its commit index to what the
// append itself has verified.
//
// Raft commits up to min(leader's commit, own last index). A follower whose tail
// diverges behind a matching prefix would thereby commit entries of its own that
// nobody checked.
func vetAppend(a *raft.AppendEntriesRequest) error {
	for i, e := range a.Entries {
		if e == nil {
			return fmt.Errorf("append without entry %d of %d: %w", i, len(a.Entries), ErrMalformed)
		}
		if want := a.PrevLogEntry + 1 + uint64(i); e.Index != want {
			return fmt.Errorf("append with entry %d at position of %d: %w", e.Index, want, ErrMalformed)
		}
		if e.Type == raft.LogConfiguration {
			if err := vetConfiguration(e.Data); err != nil {
				return fmt.Errorf("append with entry %d: %w", e.Index, err)
			}
		}
	}
	verified := a.PrevLogEntry + uint64(len(a.Entries))
	if verified < a.PrevLogEntry {
		verified = math.MaxUint64
	}
	a.LeaderCommitIndex = min(a.LeaderCommitIndex, verified)
	return nil
}

// vetConfiguration reports whether raft can decode a configuration, which it
// tells by a panic.
func vetConfiguration(b []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("configuration: %w: %v", ErrMalformed, r)
		}
	}()
	raft.DecodeConfiguration(b)
	return nil
}

// isHeartbeat reports whether an append is one that raft's heartbeat loop sends.
func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return a.Term != 0 && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

// entryOverhead is what an entry costs on the wire besides its data, rounded up.
const entryOverhead = 128

// trim shortens an append to about limit bytes of entries, at least one. Raft
// takes its next index from what is left in the request, so the rest follows
// with the next append.
func trim(a *raft.AppendEntriesRequest, limit int) {
	size := 0
	for i, e := range a.Entries {
		size += len(e.Data) + len(e.Extensions) + entryOverhead
		if size > limit && i > 0 {
			a.Entries = a.Entries[:i:i]
			return
		}
	}
}
