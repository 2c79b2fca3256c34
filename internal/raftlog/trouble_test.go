package raftlog

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// told records the callbacks.
type told struct {
	mu        sync.Mutex
	troubles  []Trouble
	recovered int
	corrupt   []error
	fatal     []error
}

func (r *told) hook(c Config) Config {
	lock := func(f func()) { r.mu.Lock(); defer r.mu.Unlock(); f() }
	c.OnTrouble = func(t Trouble) { lock(func() { r.troubles = append(r.troubles, t) }) }
	c.OnRecovered = func() { lock(func() { r.recovered++ }) }
	c.OnCorrupt = func(err error) { lock(func() { r.corrupt = append(r.corrupt, err) }) }
	c.OnFatal = func(err error) { lock(func() { r.fatal = append(r.fatal, err) }) }
	return c
}

// goWrite runs f as a goroutine of raft would and tells whether it returned.
func goWrite(f func() error) (returned chan error, ended chan struct{}) {
	returned, ended = make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		returned <- f()
	}()
	return returned, ended
}

// A failing write is held, reported once, and done when the disk is good again; nothing is lost, nothing twice.
func TestTrouble_HeldThenRecovered(t *testing.T) {
	tests := []struct {
		name  string
		errno syscall.Errno
		times int
		kind  TroubleKind
		after bool // the bytes reached the file
	}{
		{"full", syscall.ENOSPC, 20, TroubleNoSpace, false},
		{"quota", syscall.EDQUOT, 3, TroubleNoSpace, false},
		{"read-only", syscall.EROFS, 20, TroubleReadOnly, false},
		{"one I/O error", syscall.EIO, 1, TroubleIO, false},
		{"one failed fsync", syscall.EIO, 1, TroubleIO, true},
		{"full after the write", syscall.ENOSPC, 4, TroubleNoSpace, true},
	}
	onBoth(t, func(t *testing.T, kind Kind) {
		for _, tt := range tests {
			for _, op := range []Op{OpAppend, OpDelete, OpSet} {
				t.Run(tt.name+" "+string(op), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						heldThenRecovered(t, kind, op, times(tt.times, op, tt.errno), tt.after, tt.kind)
					})
				})
			}
		}
	})
}

func heldThenRecovered(t *testing.T, kind Kind, op Op, fault func(Op) error, after bool, want TroubleKind) {
	var r told
	f := &faults{}
	c := r.hook(Config{Dir: t.TempDir(), Kind: kind, Faults: f, segmentBytes: 4 << 10})
	s := mustOpen(t, c)
	mustStore(t, s, entries(1, 50, 1))
	if after {
		f.set(nil, fault)
	} else {
		f.set(fault, nil)
	}
	model := entries(1, 50, 1)
	var err error
	switch op {
	case OpAppend:
		model = entries(1, 60, 1)
		err = s.Log().StoreLogs(model[50:])
	case OpDelete:
		model = model[:40]
		err = s.Log().DeleteRange(41, 50)
	default:
		err = s.Stable().SetUint64([]byte("CurrentTerm"), 7)
	}
	if err != nil {
		t.Fatalf("returned to raft: %v", err)
	}
	synctest.Wait()
	if len(r.troubles) != 1 || r.troubles[0].Kind != want || r.troubles[0].Op != op || r.recovered != 1 {
		t.Errorf("told %v, recovered %d; want one %s of %s", r.troubles, r.recovered, want, op)
	}
	if !s.Health().OK() || r.fatal != nil || r.corrupt != nil {
		t.Errorf("health %+v, fatal %v, corrupt %v", s.Health(), r.fatal, r.corrupt)
	}
	mustHold(t, s, model)
	mustClose(t, s)
	s = mustOpen(t, Config{Dir: c.Dir, Kind: kind})
	mustHold(t, s, model)
	if n, err := s.Stable().GetUint64([]byte("CurrentTerm")); op == OpSet && (n != 7 || err != nil) {
		t.Errorf("term %d (%v), want 7", n, err)
	}
	mustClose(t, s)
}

// A write that hangs is reported after WriteLimit; when it comes back the call returns and health is good.
func TestTrouble_Stall(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		for _, op := range []Op{OpAppend, OpDelete, OpSet} {
			t.Run(string(op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var r told
					thaw := make(chan struct{})
					f := &faults{}
					s := mustOpen(t, r.hook(Config{Dir: t.TempDir(), Kind: kind, Faults: f}))
					mustStore(t, s, entries(1, 10, 1))
					f.set(func(o Op) error {
						if o == op {
							<-thaw
						}
						return nil
					}, nil)
					returned, _ := goWrite(func() error {
						switch op {
						case OpAppend:
							return s.Log().StoreLogs(entries(11, 12, 1))
						case OpDelete:
							return s.Log().DeleteRange(10, 10)
						default:
							return s.Stable().Set([]byte("k"), []byte("v"))
						}
					})
					time.Sleep(defaultWriteLimit - time.Millisecond)
					synctest.Wait()
					if len(r.troubles) != 0 || !s.Health().OK() {
						t.Fatalf("reported too early: %v", r.troubles)
					}
					time.Sleep(2 * time.Millisecond)
					synctest.Wait()
					h := s.Health()
					if len(r.troubles) != 1 || h.Trouble == nil || *h.Trouble != (Trouble{Kind: TroubleStalled, Op: op}) {
						t.Fatalf("told %v, health %+v", r.troubles, h)
					}
					if l, err := s.Get(5); err != nil || l.Index != 5 {
						t.Errorf("read beside a hanging write: %v", err)
					}
					close(thaw)
					if err := <-returned; err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if r.recovered != 1 || !s.Health().OK() || len(r.troubles) != 1 {
						t.Errorf("recovered %d, health %+v", r.recovered, s.Health())
					}
					mustClose(t, s)
				})
			})
		}
	})
}

// Close comes back within 5 s beside a hanging write; the held call ends without returning, and the files are
// released when the write comes back.
func TestTrouble_CloseUnderHang(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			thaw := make(chan struct{})
			f := &faults{}
			c := Config{Dir: t.TempDir(), Kind: kind, Faults: f}
			s, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			mustStore(t, s, entries(1, 10, 1))
			f.set(func(Op) error { <-thaw; return nil }, nil)
			var held []chan error
			var ends []chan struct{}
			for _, w := range []func() error{
				func() error { return s.Log().StoreLogs(entries(11, 12, 1)) },
				func() error { return s.Log().StoreLogs(entries(11, 12, 1)) }, // queued behind it
				func() error { return s.Stable().SetUint64([]byte("CurrentTerm"), 3) },
			} {
				r, e := goWrite(w)
				held, ends = append(held, r), append(ends, e)
			}
			synctest.Wait()
			start := time.Now()
			if err := s.Close(); !errors.Is(err, ErrStillWriting) || time.Since(start) > 5*time.Second {
				t.Errorf("close: %v after %v", err, time.Since(start))
			}
			for i, e := range ends {
				<-e
				if len(held[i]) != 0 {
					t.Errorf("call %d returned %v to raft", i, <-held[i])
				}
			}
			if _, err := s.Stable().Get([]byte("k")); !errors.Is(err, ErrClosed) {
				t.Errorf("read after close: %v", err)
			}
			f.set(nil, nil)
			close(thaw)
			<-s.log.dead
			<-s.stable.dead
			s = mustOpen(t, c)
			for i, want := range entries(1, 10, 1) {
				if l, err := s.Get(uint64(i + 1)); err != nil || l.Term != want.Term {
					t.Errorf("entry %d: %v", i+1, err)
				}
			}
			mustClose(t, s)
		})
	})
}

// The second I/O error is final: reported once, everything held until Close.
func TestTrouble_SecondIOErrorIsFatal(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			var r told
			f := &faults{}
			s := mustOpen(t, r.hook(Config{Dir: t.TempDir(), Kind: kind, Faults: f}))
			mustStore(t, s, entries(1, 10, 1))
			f.set(times(2, OpAppend, syscall.EIO), nil)
			returned, ended := goWrite(func() error { return s.Log().StoreLogs(entries(11, 12, 1)) })
			time.Sleep(time.Hour)
			synctest.Wait()
			if len(r.fatal) != 1 || !errors.Is(r.fatal[0], syscall.EIO) || len(r.troubles) != 1 || r.recovered != 0 {
				t.Errorf("fatal %v, troubles %v, recovered %d", r.fatal, r.troubles, r.recovered)
			}
			if !errors.Is(s.Health().Err, syscall.EIO) || len(returned) != 0 {
				t.Errorf("health %+v", s.Health())
			}
			mustClose(t, s)
			<-ended
			if len(returned) != 0 {
				t.Error("returned to raft")
			}
		})
	})
}

// Acknowledged entries that are gone after a re-open are damage, never silently missing.
func TestTrouble_LostTail(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		synctest.Test(t, func(t *testing.T) {
			var r told
			f := &faults{}
			s := mustOpen(t, r.hook(Config{Dir: t.TempDir(), Kind: kind, Faults: f}))
			mustStore(t, s, entries(1, 10, 1))
			// What the disk forgets, behind the back of the store.
			if err := s.log.write(OpDelete, func(l logFile, _ bool) error { return l.DeleteRange(10, 10) }); err != nil {
				t.Fatal(err)
			}
			f.set(times(1, OpAppend, syscall.ENOSPC), nil)
			returned, ended := goWrite(func() error { return s.log.StoreLogs(entries(11, 12, 1)) })
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(r.corrupt) != 1 || !errors.Is(r.corrupt[0], ErrCorruptLog) || len(returned) != 0 {
				t.Errorf("corrupt %v", r.corrupt)
			}
			mustClose(t, s)
			<-ended
		})
	})
}
