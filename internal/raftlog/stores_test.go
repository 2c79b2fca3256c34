package raftlog

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// TestMain lowers rapid's 100 cases, each of which waits for dozens of
// fsyncs; -rapid.checks on the command line still wins.
func TestMain(m *testing.M) {
	set := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		if err := flag.Set("rapid.checks", "15"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var kinds = []Kind{KindWAL, KindBolt}

// onBoth runs a test on each kind of log store.
func onBoth(t *testing.T, f func(t *testing.T, kind Kind)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) { f(t, k) })
	}
}

// mustOpen opens stores that are closed when the test ends.
func mustOpen(t testing.TB, c Config) *Stores {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func mustClose(t testing.TB, s *Stores) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// entries returns commands lo to hi of one term; verifyData accepts them.
func entries(lo, hi, term uint64) []*raft.Log {
	var out []*raft.Log
	for i := lo; i <= hi; i++ {
		body := fmt.Sprintf("command %d of term %d", i, term)
		data := fmt.Appendf(nil, "%08x%s", crc32.ChecksumIEEE([]byte(body)), body)
		out = append(out, &raft.Log{Index: i, Term: term, Data: data})
	}
	return out
}

func verifyData(b []byte) error {
	if len(b) < 8 || fmt.Sprintf("%08x", crc32.ChecksumIEEE(b[8:])) != string(b[:8]) {
		return fmt.Errorf("command checksum of %q", b)
	}
	return nil
}

func mustStore(t testing.TB, s *Stores, logs []*raft.Log) {
	t.Helper()
	if err := s.Log().StoreLogs(logs); err != nil {
		t.Fatalf("store %d to %d: %v", logs[0].Index, logs[len(logs)-1].Index, err)
	}
}

// mustHold fails unless the log holds exactly the wanted entries.
func mustHold(t testing.TB, s *Stores, want []*raft.Log) {
	t.Helper()
	var got []*raft.Log
	if err := s.Scan(0, func(l *raft.Log) error { got = append(got, l); return nil }); err != nil {
		t.Fatalf("scan: %v", err)
	}
	if d := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); d != "" {
		t.Fatalf("log differs (-want +got):\n%s", d)
	}
	first, last := uint64(0), uint64(0)
	if len(want) > 0 {
		first, last = want[0].Index, want[len(want)-1].Index
	}
	f, err1 := s.Log().FirstIndex()
	l, err2 := s.Log().LastIndex()
	if err1 != nil || err2 != nil || f != first || l != last {
		t.Fatalf("bounds %d..%d (%v, %v), want %d..%d", f, l, err1, err2, first, last)
	}
}

// copyDir clones a directory as a kill -9 at this moment would leave it.
func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatalf("copy: %v", err)
	}
	return to
}

// A log store keeps what it was given, in order, across re-opens.
func TestStores_Contract(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		c := Config{Dir: t.TempDir(), Kind: kind, Verify: verifyData, segmentBytes: 16 << 10}
		s := mustOpen(t, c)
		mustHold(t, s, nil)
		if m, ok := s.Log().(raft.MonotonicLogStore); !ok || !m.IsMonotonic() {
			t.Error("not monotonic towards raft")
		}
		if m, ok := s.checks.next.(raft.MonotonicLogStore); !ok || !m.IsMonotonic() {
			t.Error("cache is not monotonic")
		}
		all := entries(1, 600, 1)
		all[3] = &raft.Log{Index: 4, Term: 1, Type: raft.LogNoop}
		all[4] = &raft.Log{Index: 5, Term: 1, Type: raft.LogConfiguration, Data: []byte("conf"), Extensions: []byte("ext")}
		if err := s.Log().StoreLog(all[0]); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(all); i += 7 {
			mustStore(t, s, all[i:min(i+7, len(all))])
		}
		mustHold(t, s, all)
		var l raft.Log
		for _, i := range []uint64{0, 601, 1 << 40} {
			if err := s.Log().GetLog(i, &l); err != raft.ErrLogNotFound { //nolint:errorlint // raft compares with ==
				t.Errorf("GetLog(%d): %v, want ErrLogNotFound itself", i, err)
			}
		}
		mustClose(t, s)
		s = mustOpen(t, c)
		mustHold(t, s, all)
	})
}

// Entries that do not follow, and deletions in the middle, are refused and change nothing.
func TestStores_Refusals(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		s := mustOpen(t, Config{Dir: t.TempDir(), Kind: kind})
		mustStore(t, s, entries(7, 20, 1)) // an empty log takes any start
		bad := append(entries(21, 22, 1), entries(24, 24, 1)...)
		for name, logs := range map[string][]*raft.Log{
			"gap": entries(22, 23, 1), "overlap": entries(20, 21, 1), "gap inside": bad, "zero": {{Term: 1}},
		} {
			if err := s.Log().StoreLogs(logs); !errors.Is(err, ErrGap) {
				t.Errorf("%s: %v, want ErrGap", name, err)
			}
		}
		if err := s.Log().DeleteRange(9, 12); !errors.Is(err, ErrMiddle) {
			t.Errorf("middle: %v, want ErrMiddle", err)
		}
		mustHold(t, s, entries(7, 20, 1))
		big := &raft.Log{Index: 21, Term: 1, Data: make([]byte, maxEntryBytes+1)}
		if err := s.log.StoreLogs([]*raft.Log{big}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("big: %v, want ErrTooLarge", err)
		}
		if !s.Health().OK() {
			t.Errorf("refusals changed health: %+v", s.Health())
		}
		mustStore(t, s, entries(21, 21, 1))
	})
}

// One StoreLogs above the byte bound is stored whole, in several writes.
func TestStores_BigBatch(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		f := &faults{}
		s := mustOpen(t, Config{Dir: t.TempDir(), Kind: kind, Faults: f})
		var logs []*raft.Log
		for i := uint64(1); i <= 20; i++ {
			logs = append(logs, &raft.Log{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 1<<20)})
		}
		mustStore(t, s, logs)
		if n := f.count(OpAppend); n != 5 {
			t.Errorf("20 MiB in %d writes, want 5", n)
		}
		mustHold(t, s, logs)
	})
}

// Random appends and deletions leave what a list would hold; re-opens change nothing.
func TestStores_Model(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		rapid.Check(t, func(rt *rapid.T) {
			dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // one for each check of this test
			if err != nil {
				rt.Fatal(err)
			}
			c := Config{Dir: dir, Kind: kind, Verify: verifyData, LogCache: 4, segmentBytes: 4 << 10}
			s, err := Open(c)
			if err != nil {
				rt.Fatal(err)
			}
			s.log.chunk = 3
			defer func() { _ = s.Close() }()
			var model []*raft.Log
			term := uint64(1)
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				next := uint64(1)
				if len(model) > 0 {
					next = model[len(model)-1].Index + 1
				}
				switch op := rapid.SampledFrom([]string{"append", "append", "prefix", "suffix", "all", "open"}).Draw(rt, "op"); op {
				case "append":
					if len(model) == 0 {
						next = rapid.Uint64Range(1, 100).Draw(rt, "start")
					}
					logs := entries(next, next+rapid.Uint64Range(0, 40).Draw(rt, "n"), term)
					if err := s.Log().StoreLogs(logs); err != nil {
						rt.Fatal(err)
					}
					model = append(model, logs...)
				case "prefix", "suffix", "all":
					if len(model) == 0 {
						continue
					}
					n := rapid.IntRange(1, len(model)).Draw(rt, "n")
					cut := model[:n]
					switch op {
					case "prefix":
						model = model[n:]
					case "suffix":
						cut = model[len(model)-n:]
						model = model[:len(model)-n]
						term++
					default:
						cut, model = model, nil
					}
					if err := s.Log().DeleteRange(cut[0].Index, cut[len(cut)-1].Index); err != nil {
						rt.Fatal(err)
					}
				case "open":
					if err := s.Close(); err != nil {
						rt.Fatal(err)
					}
					if s, err = Open(c); err != nil {
						rt.Fatal(err)
					}
					s.log.chunk = 3
				}
				var got []*raft.Log
				if err := s.Scan(0, func(l *raft.Log) error { got = append(got, l); return nil }); err != nil {
					rt.Fatal(err)
				}
				if d := cmp.Diff(model, got, cmpopts.EquateEmpty()); d != "" {
					rt.Fatalf("differs:\n%s", d)
				}
			}
		})
	})
}

// Deletions go in chunks, and at every chunk the log on disk is contiguous.
func TestStores_DeleteChunks(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		tests := []struct {
			name     string
			lo, hi   uint64
			writes   int
			from, to uint64 // what is left
		}{
			{"prefix", 1, 70, 7, 71, 100},
			{"prefix from before the log", 0, 25, 3, 26, 100},
			{"suffix", 51, 100, 5, 1, 50},
			{"suffix beyond the log", 95, 500, 1, 1, 94},
			{"all at once", 1, 100, 1, 0, 0},
			{"nothing", 101, 200, 1, 1, 100},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				f := &faults{}
				c := Config{Dir: t.TempDir(), Kind: kind, Faults: f, segmentBytes: 4 << 10}
				s := mustOpen(t, c)
				s.log.chunk = 10
				mustStore(t, s, entries(1, 100, 1))
				f.set(nil, func(op Op) error { // a rotation may still be under way
					if op == OpDelete {
						k := copyDir(t, c.Dir)
						re := mustOpen(t, Config{Dir: k, Kind: kind})
						var want uint64
						if err := re.Scan(0, func(l *raft.Log) error {
							if want != 0 && l.Index != want {
								t.Errorf("after a kill %d follows %d", l.Index, want-1)
							}
							want = l.Index + 1
							return nil
						}); err != nil {
							t.Errorf("after a kill: %v", err)
						}
						mustClose(t, re)
					}
					return nil
				})
				if err := s.Log().DeleteRange(tt.lo, tt.hi); err != nil {
					t.Fatal(err)
				}
				if n := f.count(OpDelete); n != tt.writes {
					t.Errorf("%d writes, want %d", n, tt.writes)
				}
				var want []*raft.Log
				if tt.to > 0 {
					want = entries(tt.from, tt.to, 1)
				}
				mustHold(t, s, want)
			})
		}
	})
}

// The stable store keeps raft's keys, and a missing one is raft's "not found".
func TestStores_Stable(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		c := Config{Dir: t.TempDir(), Kind: kind}
		s := mustOpen(t, c)
		if _, err := s.Stable().GetUint64([]byte("CurrentTerm")); err == nil || err.Error() != "not found" {
			t.Errorf("missing key: %v, want not found", err)
		}
		if err := s.Stable().SetUint64([]byte("CurrentTerm"), 9); err != nil {
			t.Fatal(err)
		}
		if err := s.Stable().Set([]byte("LastVoteCand"), []byte("n1")); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		s = mustOpen(t, c)
		n, err1 := s.Stable().GetUint64([]byte("CurrentTerm"))
		b, err2 := s.Stable().Get([]byte("LastVoteCand"))
		if n != 9 || string(b) != "n1" || err1 != nil || err2 != nil {
			t.Errorf("got %d %q (%v, %v)", n, b, err1, err2)
		}
	})
}

// A second Open of the same directory says so within a second, in this process and in another.
func TestStores_Locked(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		if dir := os.Getenv("RAFTLOG_LOCKED_DIR"); dir != "" {
			_, err := Open(Config{Dir: dir, Kind: kind})
			fmt.Println("locked:", errors.Is(err, ErrLocked))
			return
		}
		c := Config{Dir: t.TempDir(), Kind: kind}
		s := mustOpen(t, c)
		start := time.Now()
		if _, err := Open(c); !errors.Is(err, ErrLocked) || time.Since(start) > time.Second {
			t.Errorf("second open: %v after %v, want ErrLocked within 1s", err, time.Since(start))
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestStores_Locked$/^"+string(kind)+"$", "-test.v")
		cmd.Env = append(os.Environ(), "RAFTLOG_LOCKED_DIR="+c.Dir)
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("locked: true")) {
			t.Errorf("other process: %v\n%s", err, out)
		}
		mustStore(t, s, entries(1, 3, 1)) // the attempt did no harm
		mustClose(t, s)
		mustHold(t, mustOpen(t, c), entries(1, 3, 1))
	})
}

func TestConfig_Validate(t *testing.T) {
	err := Config{Kind: "x", LogCache: -1, WriteLimit: -1}.Validate()
	for _, want := range []string{"dir", "kind", "log cache", "write limit"} {
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if _, err := Open(Config{}); err == nil {
		t.Error("open without a directory")
	}
}

func walFiles(t testing.TB, dir string) []string {
	t.Helper()
	f, err := filepath.Glob(filepath.Join(dir, walName, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}
