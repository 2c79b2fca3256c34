package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

const defaultWait = time.Second

func errCode(err error) catalog.Code { return api.CodeOf(err) }

// Commands issued while others are on their way leave together, in order, and
// no timer holds one back.
func TestDo_LeaveTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1)
		c := f.client()
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		f.hook(func(*fakeNode, any) error {
			<-hold
			return nil
		}, nil)
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := allocate(t.Context(), c); err != nil {
					t.Errorf("allocate: %v", err)
				}
			})
			synctest.Wait()
		}
		close(hold)
		wg.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("took %s of virtual time, want none", d)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.batches) > 2+maxBatches {
			t.Errorf("%d messages for 101 commands", len(f.batches))
		}
		var seqs []uint64
		for _, b := range f.batches {
			seqs = append(seqs, b...)
		}
		if !slices.IsSorted(seqs) || len(seqs) != 101 {
			t.Errorf("sequences were sent as %v", seqs)
		}
	})
}

// A caller's commands take effect in its order, also while the stream breaks
// and moves all the time.
func TestDo_OrderPerCaller(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 3)
		c := f.client(WithTimeout(time.Minute))
		n := 0
		f.hook(func(*fakeNode, any) error {
			if n++; n%9 == 0 {
				return &api.NotLeaderError{Leader: "n3", Addr: "n3:7401"}
			}
			return nil
		}, func(*fakeNode, any) bool { return n%5 == 0 })
		var wg sync.WaitGroup
		for caller := range 5 {
			wg.Go(func() {
				version := uint64(0)
				for range 20 {
					cmd := catalog.PutKV{Key: fmt.Sprint(caller), ExpectedVersion: catalog.Some(version)}
					res, err := c.Do(t.Context(), cmd)
					if err != nil {
						t.Errorf("put %d: %v", caller, err)
						return
					}
					version = res.Version
				}
			})
		}
		wg.Wait()
		for _, b := range f.batches {
			if !slices.IsSorted(b) {
				t.Errorf("a message carries sequences %v", b)
			}
		}
	})
}

// A cluster without the batch stream is served by calls of their own.
func TestDo_FallsBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1)
		c := f.client()
		streams := true
		f.hook(func(_ *fakeNode, req any) error {
			if _, ok := req.(*pb.AllocateIDsRequest); ok && streams {
				streams = false
				return status.Error(codes.Unimplemented, "no such method")
			}
			return nil
		}, nil)
		for range 3 {
			if _, err := allocate(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.counter("c"); n != 3 || !c.batch.unary.Load() {
			t.Errorf("executed %d times", n)
		}
	})
}

// Command that no answer explains does not hold up the others.
func TestDo_UnexpectedFailure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1)
		c := f.client(WithTimeout(5 * time.Second))
		bad := true
		f.hook(func(_ *fakeNode, req any) error {
			if p, ok := req.(*pb.PutRequest); ok && p.GetKey() == "bad" && bad {
				return &catalog.Error{Code: catalog.ErrUnknownServerError, Message: "a bug"}
			}
			return nil
		}, nil)
		start := time.Now()
		_, err := c.Do(t.Context(), catalog.PutKV{Key: "bad"})
		if errCode(err) != catalog.ErrOutcomeUnknown || time.Since(start) > 2*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if _, err := c.Do(t.Context(), catalog.PutKV{Key: "good"}); err != nil {
			t.Error(err)
		}
		f.locked(func() { bad = false })
		time.Sleep(10 * time.Second)
		if s := c.State(); s.Open != 0 || s.Pending != 0 {
			t.Errorf("something is left: %s", s)
		}
	})
}

// Nodes that refuse at once, as all do without a leader, are asked with pauses in
// between, not in a loop.
func TestDo_RefusedEverywhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 3)
		c := f.client(WithTimeout(5 * time.Second))
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		asked := 0
		f.hook(func(*fakeNode, any) error {
			if asked++; asked > 1000 { // virtual time would stand still for ever
				return nil
			}
			return &api.NotLeaderError{}
		}, nil)
		_, err := allocate(t.Context(), c)
		if err == nil || asked > 100 {
			t.Errorf("asked %d times in 5 s: %v", asked, err)
		}
	})
}

// The deadline of a command that was never sent ends it without harm.
func TestDo_NeverSent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1)
		c := f.client()
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		f.nodes[0].stop()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := allocate(ctx, c)
		if errCode(err) != catalog.ErrUnavailable {
			t.Errorf("got %v", err)
		}
		if s := c.State(); s.Open != 0 || s.Queued != 0 {
			t.Errorf("something is left: %s", s)
		}
	})
}

// Answers that only send a command elsewhere make the client wait longer and
// longer, and not go round without a pause.
func TestDo_PausesWhileRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2)
		c := f.client(WithTimeout(10 * time.Second))
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		n := 0
		f.hook(func(*fakeNode, any) error {
			if n++; n > 1000 {
				return nil
			}
			return &catalog.Error{Code: catalog.ErrUnavailable, Message: "no leader"}
		}, nil)
		if _, err := allocate(t.Context(), c); err == nil || n > 200 {
			t.Errorf("%d attempts in 10 s: %v", n, err)
		}
	})
}
