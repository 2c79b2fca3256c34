package client

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
)

// Whatever the order in which sequences settle, the watermark covers settled
// ones only, all that are without a gap below them, and no sequence is given out
// beyond the window.
func TestRegistration_Watermark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRegistration(1)
		open := map[uint64]bool{}
		highest := uint64(0)
		check := func() {
			lowest := highest + 1
			for s := range open {
				lowest = min(lowest, s)
			}
			if r.watermark() != lowest-1 {
				t.Fatalf("watermark %d, lowest open sequence %d of %d", r.watermark(), lowest, highest)
			}
			if n, _ := r.open(); n > catalog.ClientWindow {
				t.Fatalf("%d sequences above the watermark", n)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 7, 500, 4096}).Draw(t, "n") {
					k, wait, dead := r.take()
					if dead {
						t.Fatal("dead")
					}
					if full := highest-r.watermark() == catalog.ClientWindow; full != (wait != nil) {
						t.Fatalf("full is %v, told to wait is %v", full, wait != nil)
					}
					if wait != nil {
						return
					}
					if k.seq != highest+1 {
						t.Fatalf("sequence %d after %d", k.seq, highest)
					}
					highest, open[k.seq] = k.seq, true
				}
			},
			"settle": func(t *rapid.T) {
				if highest == 0 {
					t.Skip("nothing was given out")
				}
				lo := max(1, int64(highest)-5000)
				s := uint64(rapid.Int64Range(lo, int64(highest)+1).Draw(t, "sequence"))
				r.settle(s)
				delete(open, s)
			},
			"settle many": func(t *rapid.T) {
				odd := rapid.Uint64Range(1, 3).Draw(t, "step")
				for s := range open {
					if s%odd == 0 {
						r.settle(s)
						delete(open, s)
					}
				}
			},
			"": func(*rapid.T) { check() },
		})
	})
}

// A registration that died takes late outcomes without harm.
func TestRegistration_SettleAfterDeath(t *testing.T) {
	r := newRegistration(1)
	k, _, _ := r.take()
	if !r.die() || r.die() {
		t.Error("it does not die once")
	}
	k.settle()
	if _, _, dead := r.take(); !dead || !k.lost() {
		t.Error("it lives")
	}
}

// Beyond the window the client waits by itself, visibly, and goes on as soon as
// the oldest write has its outcome.
func TestWindow_HeldBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1)
		c := f.client()
		first, err := c.session.begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const n = catalog.ClientWindow + 10
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := c.Do(t.Context(), catalog.PutKV{Key: fmt.Sprintf("k%d", i)}); err != nil {
					t.Errorf("put: %v", err)
				}
			})
		}
		synctest.Wait()
		if s := c.State(); s.Open != catalog.ClientWindow || s.Queued != n-catalog.ClientWindow+1 || s.Watermark != 0 {
			t.Errorf("held back wrongly: %s", s)
		}
		first.settle()
		wg.Wait()
		if s := c.State(); s.Open != 0 || s.Watermark != n+1 || s.Queued != 0 {
			t.Errorf("not released: %s", s)
		}
	})
}

// Callers beyond the queue's bound wait, and their deadline ends the wait with
// BUSY: nothing was sent.
func TestDo_BackPressure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1)
		c := f.client()
		hold := make(chan struct{})
		f.hook(func(*fakeNode, any) error {
			<-hold
			return nil
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), defaultWait)
		defer cancel()
		var wg sync.WaitGroup
		for range maxQueued {
			wg.Go(func() {
				if _, err := allocate(context.WithoutCancel(ctx), c); err == nil {
					return
				}
			})
		}
		synctest.Wait()
		if s := c.State(); s.Queued+s.Sent != maxQueued {
			t.Errorf("%d queued, %d sent, want %d in all", s.Queued, s.Sent, maxQueued)
		}
		short, stop := context.WithTimeout(t.Context(), defaultWait)
		defer stop()
		_, err := allocate(short, c)
		if code := errCode(err); code != catalog.ErrBusy {
			t.Errorf("one more caller got %v", err)
		}
		close(hold)
		wg.Wait()
	})
}
