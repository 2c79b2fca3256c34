package raftlog

import (
	"context"
	"errors"
	"math"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// openAhead opens stores whose appends may run ahead, over ten entries.
func openAhead(t *testing.T, kind Kind) (*Stores, *faults, Config) {
	f := &faults{}
	c := Config{Dir: t.TempDir(), Kind: kind, Faults: f, Verify: verifyData, Ahead: func() bool { return true }}
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 10, 1))
	if err := s.AwaitSynced(t.Context(), math.MaxUint64); err != nil {
		t.Fatal(err)
	}
	return s, f, c
}

// hang lets appends hang until thaw is called.
func hang(f *faults) (thaw func()) {
	ch := make(chan struct{})
	f.set(func(op Op) error {
		if op == OpAppend {
			<-ch
		}
		return nil
	}, nil)
	return func() { f.set(nil, nil); close(ch) }
}

// A small append of commands returns before it is on the disk. Reads have it, and
// Synced and AwaitSynced tell that the disk has not. One at a time runs ahead.
func TestAhead_ReturnsBeforeTheDisk(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			s, f, c := openAhead(t, kind)
			thaw := hang(f)
			mustStore(t, s, entries(11, 12, 2))
			mustHold(t, s, slices.Concat(entries(1, 10, 1), entries(11, 12, 2)))
			for index, want := range map[uint64]uint64{9: 9, 10: 10, 11: 10, 12: 10, 500: 10} {
				if got := s.Synced(index); got != want {
					t.Errorf("synced of %d while the append hangs: %d, want %d", index, got, want)
				}
			}
			if err := s.AwaitSynced(t.Context(), 10); err != nil {
				t.Errorf("what lies below is waited for: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.AwaitSynced(ctx, 11); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("await 11 while the append hangs: %v", err)
			}
			next, _ := goWrite(func() error { return s.Log().StoreLogs(entries(13, 13, 2)) })
			synctest.Wait()
			if len(next) != 0 {
				t.Error("a second append ran ahead of the first")
			}
			thaw()
			if err := <-next; err != nil {
				t.Fatal(err)
			}
			if got := s.Synced(math.MaxUint64); got != math.MaxUint64 {
				t.Errorf("synced at the end: %d", got)
			}
			mustClose(t, s)
			s = mustOpen(t, c)
			mustHold(t, s, slices.Concat(entries(1, 10, 1), entries(11, 13, 2)))
			mustClose(t, s)
		})
	})
}

// What a leader does not make itself, what is not a command, and what fills a
// batch is waited for.
func TestAhead_NotFor(t *testing.T) {
	leads := true
	many := entries(11, 11+maxAhead, 1)
	noop := []*raft.Log{{Index: 11, Term: 1, Type: raft.LogNoop}}
	for _, tt := range []struct {
		name  string
		leads bool
		logs  []*raft.Log
	}{{"follower", false, entries(11, 11, 1)}, {"no command", true, noop}, {"many", true, many}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, _ := openAhead(t, KindWAL)
				leads = tt.leads
				s.log.mayRunAhead = func() bool { return leads }
				thaw := hang(f)
				returned, _ := goWrite(func() error { return s.Log().StoreLogs(tt.logs) })
				synctest.Wait()
				if len(returned) != 0 || s.Synced(math.MaxUint64) != math.MaxUint64 {
					t.Error("returned before it was on the disk")
				}
				thaw()
				if err := <-returned; err != nil {
					t.Error(err)
				}
				mustClose(t, s)
			})
		})
	}
}

// Deletions come behind the append: a suffix with it, a prefix beside it.
func TestAhead_ThenDelete(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			s, f, _ := openAhead(t, kind)
			thaw := hang(f)
			mustStore(t, s, entries(11, 13, 1))
			suffix, _ := goWrite(func() error { return s.Log().DeleteRange(12, 13) })
			synctest.Wait()
			if len(suffix) != 0 {
				t.Fatal("deleted what is not written yet")
			}
			thaw()
			if err := <-suffix; err != nil {
				t.Fatal(err)
			}
			mustHold(t, s, entries(1, 11, 1))
			if err := s.Log().DeleteRange(1, 5); err != nil {
				t.Fatal(err)
			}
			mustStore(t, s, entries(12, 12, 3))
			mustHold(t, s, slices.Concat(entries(6, 11, 1), entries(12, 12, 3)))
			mustClose(t, s)
		})
	})
}

// An append that fails behind its caller's back is held and retried like every
// other, and is not synced before it is.
func TestAhead_FailsAndRecovers(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			var r told
			f := &faults{}
			s := mustOpen(t, r.hook(Config{Dir: t.TempDir(), Kind: kind, Faults: f, Ahead: func() bool { return true }}))
			mustStore(t, s, entries(1, 10, 1))
			f.set(nil, times(3, OpAppend, syscall.ENOSPC))
			mustStore(t, s, entries(11, 11, 1))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := s.AwaitSynced(ctx, 11); err == nil {
				t.Error("synced although the append fails")
			}
			if err := s.AwaitSynced(t.Context(), 11); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(r.troubles) != 1 || r.recovered != 1 || f.count(OpAppend) < 4 {
				t.Errorf("trouble %v, recovered %d, appends %d", r.troubles, r.recovered, f.count(OpAppend))
			}
			mustHold(t, s, entries(1, 11, 1))
			mustClose(t, s)
		})
	})
}

// A node that ends while an append hangs has not stored it; who waits for it as
// raft would does not come back.
func TestAhead_CloseUnderHang(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			f := &faults{}
			c := Config{Dir: t.TempDir(), Kind: kind, Faults: f, Ahead: func() bool { return true }}
			s, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			mustStore(t, s, entries(1, 10, 1)) // too many to run ahead
			thaw := hang(f)
			mustStore(t, s, entries(11, 11, 1))
			cut := copyDir(t, c.Dir)
			returned, ended := goWrite(func() error { s.HoldUnsynced(11); return nil })
			synctest.Wait()
			if err := s.Close(); !errors.Is(err, ErrStillWriting) {
				t.Errorf("close: %v", err)
			}
			<-ended
			if len(returned) != 0 {
				t.Error("a held call returned")
			}
			thaw()
			<-s.log.dead
			// A kill at that moment leaves what was synced.
			c.Dir = cut
			s = mustOpen(t, c)
			mustHold(t, s, entries(1, 10, 1))
			mustClose(t, s)
		})
	})
}
