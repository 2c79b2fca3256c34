package raftlog

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// A log is emptied when it ends below the snapshot or contradicts it, and kept in every other case.
func TestAlign_WithSnapshot(t *testing.T) {
	tests := []struct {
		name        string
		first, last uint64 // of the log, all of term 2; 0 for an empty one
		snap, term  uint64
		kept        bool
		err         error
	}{
		{"no log", 0, 0, 100, 2, true, nil},
		{"no snapshot", 1, 20, 0, 0, true, nil},
		{"tail beyond, same term", 1, 20, 10, 2, true, nil},
		{"tail beyond, other term", 1, 20, 10, 3, false, nil},
		{"tail at, same term", 5, 10, 10, 2, true, nil},
		{"tail at, other term", 5, 10, 10, 3, false, nil},
		{"tail below", 1, 5, 100, 2, false, nil},
		{"tail just below", 1, 99, 100, 2, false, nil},
		{"log follows the snapshot", 11, 20, 10, 1, true, nil},
		{"log begins at the snapshot", 10, 20, 10, 2, true, nil},
		{"gap", 12, 20, 10, 2, true, ErrSnapshotGap},
		{"no snapshot for a compacted log", 2, 20, 0, 0, true, ErrSnapshotGap},
	}
	onBoth(t, func(t *testing.T, kind Kind) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				c := Config{Dir: t.TempDir(), Kind: kind, segmentBytes: 16 << 10}
				s := mustOpen(t, c)
				var want []*raft.Log
				if tt.last > 0 {
					want = entries(tt.first, tt.last, 2)
					mustStore(t, s, want)
				}
				if err := s.AlignWithSnapshot(tt.snap, tt.term); !errors.Is(err, tt.err) {
					t.Fatalf("got %v, want %v", err, tt.err)
				}
				if !tt.kept {
					want = nil
				}
				mustHold(t, s, want)
				if tt.err == nil && (len(want) == 0 || want[len(want)-1].Index == tt.snap) {
					next := entries(tt.snap+1, tt.snap+3, 3)
					mustStore(t, s, next)
					want = append(want, next...)
				}
				mustClose(t, s)
				mustHold(t, mustOpen(t, c), want)
			})
		}
	})
}

// A kill at any moment of emptying leaves a log that the next alignment empties too.
func TestAlign_KillWhileEmptying(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		f := &faults{}
		c := Config{Dir: t.TempDir(), Kind: kind, Faults: f}
		s := mustOpen(t, c)
		s.log.chunk = 5
		mustStore(t, s, entries(1, 30, 1))
		var copies []string
		snap := func(Op) error { copies = append(copies, copyDir(t, c.Dir)); return nil }
		f.set(snap, snap)
		if err := s.AlignWithSnapshot(17, 2); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		for _, dir := range copies {
			re := mustOpen(t, Config{Dir: dir, Kind: kind})
			if err := re.AlignWithSnapshot(17, 2); err != nil {
				t.Errorf("align after a kill: %v", err)
			}
			mustHold(t, re, nil)
			mustStore(t, re, entries(18, 20, 2))
			mustClose(t, re)
		}
	})
}
