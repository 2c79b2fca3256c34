package raftlog

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
)

// A write cut at any byte is dropped at open: everything acknowledged stays and appends go on.
func TestCrash_CutWrite(t *testing.T) {
	c := Config{Dir: t.TempDir(), segmentBytes: 64 << 10}
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 8, 1))
	file := walFiles(t, c.Dir)[0]
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mustStore(t, s, entries(9, 100, 1))
	mustClose(t, s)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	start, end := scanTail(before).end, scanTail(whole).end
	if start == 0 || end <= start {
		t.Fatalf("batch from %d to %d", start, end)
	}
	for cut := start + 1; cut < end-walFrame; cut += 3 {
		b := append(bytes.Clone(whole[:cut]), make([]byte, end-cut)...)
		if got := scanTail(b); got.damaged || got.end != start || got.entries != 8 {
			t.Fatalf("cut at %d: %+v", cut, got)
		}
	}
	for lo := start &^ (sectorSize - 1); lo < end; lo += sectorSize { // a sector that power loss did not write
		b := bytes.Clone(whole[:end])
		clear(b[max(lo, start):min(lo+sectorSize, end)])
		if got := scanTail(b); got.damaged || got.end != start {
			t.Fatalf("sector at %d missing: %+v", lo, got)
		}
	}
	for _, cut := range []int{start + 1, start + walFrame, (start + end) / 2, end - walFrame} {
		dir := copyDir(t, c.Dir)
		b := append(bytes.Clone(whole[:cut]), make([]byte, len(whole)-cut)...)
		if err := os.WriteFile(walFiles(t, dir)[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, Config{Dir: dir})
		mustHold(t, s, entries(1, 8, 1))
		mustStore(t, s, entries(9, 30, 2))
		mustClose(t, s)
		mustHold(t, mustOpen(t, Config{Dir: dir}), append(entries(1, 8, 1), entries(9, 30, 2)...))
	}
}

// A cut write whose index frame survived must not seal the tail for ever.
func TestCrash_StaleIndexFrame(t *testing.T) {
	c := Config{Dir: t.TempDir(), segmentBytes: 8 << 10}
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 8, 1))
	file := walFiles(t, c.Dir)[0]
	before, _ := os.ReadFile(file)
	f := &faults{before: func(op Op) error {
		if op == OpMeta {
			return syscall.ENOSPC
		}
		return nil
	}}
	mustClose(t, s)
	c.Faults = f
	s = mustOpen(t, c)
	mustStore(t, s, entries(9, 200, 1)) // seals; the rotation behind it fails
	dir := copyDir(t, c.Dir)
	mustClose(t, s)
	sealed, _ := os.ReadFile(filepath.Join(dir, walName, filepath.Base(file)))
	t1, t2 := scanTail(before), scanTail(sealed)
	if t2.indexStart == 0 {
		t.Fatalf("not sealed: %+v", t2)
	}
	// Lose one sector of entries and the commit frame, keep the index.
	lo := (t1.end/sectorSize + 1) * sectorSize
	clear(sealed[t2.end-walFrame : t2.end])
	torn := bytes.Clone(sealed)
	clear(torn[lo : lo+sectorSize])
	for name, b := range map[string][]byte{"commit frame lost": sealed, "sector lost": torn} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, dir)
			if err := os.WriteFile(walFiles(t, dir)[0], b, 0o600); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, Config{Dir: dir})
			mustHold(t, s, entries(1, 8, 1))
			mustStore(t, s, entries(9, 12, 2))
			mustHold(t, s, append(entries(1, 8, 1), entries(9, 12, 2)...))
		})
	}
}

// A kill at every disk operation of a busy store, before and after it: all that was acknowledged is there, the log
// is contiguous and goes on.
func TestCrash_EveryOperation(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		f := &faults{}
		c := Config{Dir: t.TempDir(), Kind: kind, segmentBytes: 4 << 10, Faults: f}
		s := mustOpen(t, c)
		s.log.chunk = 8
		type moment struct {
			op       Op
			dir      string
			from, to uint64 // acknowledged and not being deleted
		}
		var moments []moment
		var from, to uint64
		snap := func(op Op) error {
			if op != OpMeta || len(moments) < 60 {
				moments = append(moments, moment{op, copyDir(t, c.Dir), from, to})
			}
			return nil
		}
		// The moments of the background rotation are left to the copies of the appends around it.
		f.set(func(op Op) error {
			if op == OpMeta {
				return nil
			}
			return snap(op)
		}, func(op Op) error {
			if op == OpMeta {
				return nil
			}
			return snap(op)
		})
		from = 1
		for i := uint64(1); i <= 60; i += 6 {
			mustStore(t, s, entries(i, i+5, 1))
			to = i + 5
		}
		from = 21 // a compaction
		if err := s.Log().DeleteRange(1, 20); err != nil {
			t.Fatal(err)
		}
		to = 40 // a conflict
		if err := s.Log().DeleteRange(41, 60); err != nil {
			t.Fatal(err)
		}
		mustStore(t, s, entries(41, 45, 2))
		to = 45
		from, to = 0, 0 // an install
		if err := s.Log().DeleteRange(21, 45); err != nil {
			t.Fatal(err)
		}
		mustStore(t, s, entries(101, 105, 3))
		mustClose(t, s)
		for i, m := range moments {
			re := mustOpen(t, Config{Dir: m.dir, Kind: kind})
			var seen, prev uint64
			err := re.Scan(0, func(l *raft.Log) error {
				if prev != 0 && l.Index != prev+1 {
					t.Errorf("moment %d (%s): %d follows %d", i, m.op, l.Index, prev)
				}
				prev = l.Index
				if m.to != 0 && l.Index >= m.from && l.Index <= m.to {
					seen++
				}
				return nil
			})
			if err != nil {
				t.Errorf("moment %d (%s): %v", i, m.op, err)
			}
			if m.to != 0 && seen != m.to-m.from+1 {
				t.Errorf("moment %d (%s): %d of %d acknowledged entries", i, m.op, seen, m.to-m.from+1)
			}
			mustStore(t, re, entries(prev+1, prev+3, 9))
			mustClose(t, re)
		}
		t.Logf("%d moments", len(moments))
	})
}

// A kill between seal and rotation leaves a sealed tail in the list; open completes the rotation.
func TestCrash_SealedTail(t *testing.T) {
	f := &faults{}
	c := Config{Dir: t.TempDir(), segmentBytes: 4 << 10, Faults: f}
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 10, 1))
	f.set(times(1, OpMeta, syscall.ENOSPC), nil)
	mustStore(t, s, entries(11, 200, 1))
	mustClose(t, s)
	b, err := os.ReadFile(walFiles(t, c.Dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	if scanTail(b).indexStart == 0 || len(walFiles(t, c.Dir)) != 1 {
		t.Fatal("the tail is not a sealed one without successor")
	}
	f.set(nil, nil)
	s = mustOpen(t, c)
	mustHold(t, s, entries(1, 200, 1))
	mustStore(t, s, entries(201, 400, 1))
	mustClose(t, s)
	mustHold(t, mustOpen(t, c), entries(1, 400, 1))
}

// A rotation that fails at run time is repaired by a re-open, unseen by raft.
func TestCrash_SealedAtRunTime(t *testing.T) {
	f := &faults{}
	c := Config{Dir: t.TempDir(), segmentBytes: 4 << 10, Faults: f, OnTrouble: func(tr Trouble) {
		t.Errorf("trouble reported: %v", tr)
	}}
	s := mustOpen(t, c)
	f.set(times(1, OpMeta, syscall.ENOSPC), nil)
	mustStore(t, s, entries(1, 200, 1))
	mustStore(t, s, entries(201, 210, 1))
	mustHold(t, s, entries(1, 210, 1))
	if n := f.count(OpOpen); n != 3 {
		t.Errorf("%d opens, want 2 and a re-open", n)
	}
}

// The scan never panics, never looks outside, and agrees with itself.
func FuzzScanTail(f *testing.F) {
	f.Add([]byte{}, 0)
	dir := f.TempDir()
	s := mustOpen(f, Config{Dir: dir, segmentBytes: 1 << 10})
	mustStore(f, s, entries(1, 3, 1))
	mustStore(f, s, entries(4, 5, 1))
	mustClose(f, s)
	b, err := os.ReadFile(walFiles(f, dir)[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:scanTail(b).end], 100)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		got := scanTail(b)
		if got.end < 0 || got.end > got.dirty || got.dirty > len(b) || got.damaged && got.dirty == got.end {
			t.Fatalf("%d bytes: %+v", len(b), got)
		}
		again := scanTail(b[:got.end])
		if again.end != got.end || again.entries != got.entries || again.damaged {
			t.Fatalf("%+v, its good part alone %+v", got, again)
		}
	})
}
