package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

// flipBit damages one bit of a file.
func flipBit(t testing.TB, file string, bit int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[bit/8] ^= 1 << (bit % 8)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// One flipped bit anywhere in what raft-wal wrote to its tail segment is found: no
// entry is dropped or changed in silence.
func TestCorrupt_WALTailBits(t *testing.T) {
	c := Config{Dir: t.TempDir(), segmentBytes: 64 << 10}
	s := mustOpen(t, c)
	all := entries(1, 40, 3)
	for i := 0; i < len(all); i += 4 {
		mustStore(t, s, all[i:i+4])
	}
	mustClose(t, s)
	file := walFiles(t, c.Dir)[0]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := scanTail(b)
	if used.entries != 40 || used.dirty != used.end {
		t.Fatalf("undamaged tail: %+v", used)
	}
	// Every bit against the scan, which is cheap, and a sample against Open.
	// Only the reserved bytes of a commit frame, which carry nothing, are
	// outside every checksum.
	reserved := 0
	b = b[:used.end+sectorSize]
	for bit := range used.end * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		if got := scanTail(b); got == used && b[bit/8&^7] == frameCommit && bit/8%8 >= 1 && bit/8%8 <= 3 {
			reserved++
		} else if !got.damaged {
			t.Errorf("bit %d of byte %d: not seen: %+v", bit%8, bit/8, got)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if reserved > 10*24 {
		t.Errorf("%d bits do not matter, want at most those of 10 commit frames", reserved)
	}
	const seed = 17
	rnd := rand.New(rand.NewPCG(seed, seed))
	for range 10 {
		bit := rnd.IntN(walFrame*8) + rnd.IntN(10)*walFrame*8 // within the first batch
		dir := copyDir(t, c.Dir)
		damaged := walFiles(t, dir)[0]
		flipBit(t, damaged, bit)
		before, _ := os.ReadFile(damaged)
		_, err := Open(Config{Dir: dir})
		var ce *CorruptError
		if !errors.Is(err, ErrCorruptLog) || !errors.As(err, &ce) || ce.File != damaged {
			t.Errorf("bit %d (seed %d): %v, want ErrCorruptLog naming %s", bit, seed, err, damaged)
		}
		if after, _ := os.ReadFile(damaged); !bytes.Equal(before, after) {
			t.Errorf("bit %d: Open changed a damaged file", bit)
		}
	}
}

// A flipped bit in the payload of an entry, in its term or in a configuration entry is found when it is read.
func TestCorrupt_FlippedEntry(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		c := Config{Dir: t.TempDir(), Kind: kind, Verify: verifyData, segmentBytes: 4 << 10}
		s := mustOpen(t, c)
		all := entries(1, 200, 3)
		all[9].Type, all[9].Data = raft.LogConfiguration, []byte("a configuration of three voters")
		for i := 0; i < len(all); i += 10 {
			mustStore(t, s, all[i:i+10])
		}
		mustClose(t, s)
		for _, victim := range []uint64{7, 10} {
			t.Run(fmt.Sprint(victim), func(t *testing.T) {
				dir := copyDir(t, c.Dir)
				flipNeedle(t, dir, all[victim-1].Data)
				var called []error
				var wg sync.WaitGroup
				wg.Add(1)
				re := c
				re.Dir = dir
				re.OnCorrupt = func(err error) { called = append(called, err); wg.Done() }
				s := mustOpen(t, re)
				_, err := s.Get(victim)
				var ce *CorruptError
				if !errors.As(err, &ce) || ce.Index != victim || ce.Kind != kind {
					t.Fatalf("Get: %v, want CorruptError of entry %d", err, victim)
				}
				if err := s.Scan(1, func(*raft.Log) error { return nil }); !errors.Is(err, ErrCorruptLog) {
					t.Errorf("Scan: %v", err)
				}
				if s.Health().Err != nil {
					t.Error("Get and Scan must not change health")
				}
				ended := make(chan bool, 2)
				for range 2 { // raft's own calls are held
					go func() {
						returned := false
						defer func() { ended <- returned }()
						var l raft.Log
						_ = s.Log().GetLog(victim, &l)
						returned = true
					}()
				}
				wg.Wait()
				select {
				case <-ended:
					t.Error("GetLog came back before Close")
				default:
				}
				if !errors.Is(s.Health().Err, ErrCorruptLog) {
					t.Errorf("health: %+v", s.Health())
				}
				mustClose(t, s)
				for range 2 {
					if <-ended {
						t.Error("GetLog returned to raft")
					}
				}
				if len(called) != 1 {
					t.Errorf("OnCorrupt called %d times", len(called))
				}
			})
		}
	})
}

// flipNeedle flips one bit in the only place that holds the bytes.
func flipNeedle(t testing.TB, dir string, needle []byte) {
	t.Helper()
	files := append(walFiles(t, dir), filepath.Join(dir, boltName))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for at := 0; ; {
			i := bytes.Index(b[at:], needle)
			if i < 0 {
				break
			}
			at += i
			b[at+len(needle)/2] ^= 4
			at += len(needle)
		}
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The store's checksum covers what the caller's Verify cannot see.
func TestCorrupt_SumCoversEntry(t *testing.T) {
	base := raft.Log{Index: 5, Term: 2, Type: raft.LogConfiguration, Data: []byte("data"), Extensions: []byte("ext")}
	for name, damage := range map[string]func(*raft.Log){
		"index":      func(l *raft.Log) { l.Index = 6 },
		"term":       func(l *raft.Log) { l.Term ^= 1 },
		"type":       func(l *raft.Log) { l.Type = raft.LogCommand },
		"data":       func(l *raft.Log) { l.Data[1] ^= 1 },
		"sum":        func(l *raft.Log) { l.Data[len(l.Data)-1] ^= 1 },
		"cut":        func(l *raft.Log) { l.Data = l.Data[:2] },
		"extensions": func(l *raft.Log) { l.Extensions = []byte("exT") },
	} {
		sealed, _ := sealEntry(&base)
		damage(sealed)
		if _, err := openEntry(5, sealed); err == nil {
			t.Errorf("%s: damage not seen", name)
		}
	}
	sealed, _ := sealEntry(&base)
	if _, err := openEntry(5, sealed); err != nil || string(sealed.Data) != "data" || string(base.Data) != "data" {
		t.Errorf("good entry: %v, %q, %q", err, sealed.Data, base.Data)
	}
}

// An entry that is missing inside the log is damage, not raft's "not found", which would make a leader send a snapshot.
func TestCorrupt_MissingInside(t *testing.T) {
	c := Config{Dir: t.TempDir(), Kind: KindBolt, LogCache: 1}
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 20, 1))
	err := s.log.write(OpDelete, func(f logFile, _ bool) error { return f.DeleteRange(7, 7) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(7); !errors.Is(err, ErrCorruptLog) {
		t.Errorf("got %v, want ErrCorruptLog", err)
	}
}

// A damaged list of segments is refused before raft-wal deletes files that are not in it.
func TestCorrupt_SegmentList(t *testing.T) {
	c := Config{Dir: t.TempDir(), segmentBytes: 4 << 10}
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 100, 1))
	mustStore(t, s, entries(101, 110, 1))
	mustClose(t, s)
	meta := &walMeta{faults: noFaults{}, log: c.withDefaults().Logger}
	st, err := meta.Load(filepath.Join(c.Dir, walName))
	if err != nil {
		t.Fatal(err)
	}
	n := len(st.Segments)
	if n < 2 {
		t.Fatalf("%d segments, want several", n)
	}
	st.Segments[n-1].BaseIndex += 2
	st.Segments[n-1].MinIndex += 2
	st.Segments[n-2].MaxIndex += 2 // contiguous, but the files say otherwise
	if err := errors.Join(meta.CommitState(st), meta.Close()); err != nil {
		t.Fatal(err)
	}
	before := walFiles(t, c.Dir)
	if _, err := Open(c); !errors.Is(err, ErrCorruptLog) {
		t.Errorf("open: %v, want ErrCorruptLog", err)
	}
	if after := walFiles(t, c.Dir); len(after) != len(before) {
		t.Errorf("files went from %v to %v", before, after)
	}
}
