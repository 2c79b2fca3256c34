package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// readFake is a fake with keys k0 to k99, each holding its own name.
func readFake(t *testing.T, nodes int, opts ...Option) (*fake, *Client) {
	t.Helper()
	f := newFake(t, nodes)
	f.locked(func() {
		for i := range 100 {
			key := fmt.Sprintf("k%d", i)
			f.apply(api.Ref{}, catalog.PutKV{Key: key, Value: []byte(key)})
		}
	})
	return f, f.client(opts...)
}

// readKey reads one key and says whether it got what is there.
func readKey(ctx context.Context, t *testing.T, c *Client, i int) {
	t.Helper()
	key := fmt.Sprintf("k%d", i%100)
	kv, meta, err := c.KeyValue(ctx, key)
	if err != nil {
		t.Errorf("read of %s: %v", key, err)
	} else if string(kv.Value) != key || kv.Key != key || meta.Revision == 0 {
		t.Errorf("read of %s got %q of %s at %d", key, kv.Value, kv.Key, meta.Revision)
	}
}

// Reads issued while others are on their way leave together, each gets its own
// answer, and no timer holds one back.
func TestReads_LeaveTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, c := readFake(t, 1)
		readKey(t.Context(), t, c, 0)
		hold := make(chan struct{})
		f.hook(func(*fakeNode, any) error {
			<-hold
			return nil
		}, nil)
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { readKey(t.Context(), t, c, i) })
		}
		for { // the fake holds its lock, so the bubble is never still
			if queued, sent := c.reads.counts(); queued+sent == 100 {
				break
			}
			runtime.Gosched()
		}
		close(hold)
		wg.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("took %s of virtual time, want none", d)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		n := 0
		for _, size := range f.readBatches {
			n += size
		}
		if n != 101 || len(f.readBatches) > 2+2*maxBatches {
			t.Errorf("%d reads in messages of %v", n, f.readBatches)
		}
		if s := c.State(); s.ReadsQueued != 0 || s.ReadsSent != 0 {
			t.Errorf("something is left: %s", s)
		}
	})
}

// What is refused for one read is not for the others of its batch.
func TestReads_RefusedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, c := readFake(t, 1)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if i%2 == 0 {
					readKey(t.Context(), t, c, i)
				} else if _, _, err := c.KeyValue(t.Context(), "none"); errCode(err) != catalog.ErrKeyNotExist {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
	})
}

// Reads are answered although streams break, nodes are busy and leaders move.
func TestReads_Survive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, c := readFake(t, 3, WithTimeout(time.Minute))
		n := 0
		f.hook(func(*fakeNode, any) error {
			switch n++; {
			case n%23 == 0:
				return errLost
			case n%11 == 0:
				return &catalog.Error{Code: catalog.ErrUnavailable, Message: "no leader"}
			case n%17 == 0:
				f.leader = fmt.Sprintf("n%d", 1+n%3)
			}
			return nil
		}, nil)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 20 {
					readKey(t.Context(), t, c, i*20+j)
				}
			})
		}
		wg.Wait()
		if n < 170 {
			t.Errorf("only %d attempts", n)
		}
	})
}

// A cluster without the stream is served by calls of their own, and asked for it
// again later.
func TestReads_FallBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, c := readFake(t, 1)
		streams := true
		f.hook(func(_ *fakeNode, req any) error {
			if _, ok := req.(*pb.GetRequest); ok && streams {
				streams = false
				return status.Error(codes.Unimplemented, "no such method")
			}
			return nil
		}, nil)
		for i := range 3 {
			readKey(t.Context(), t, c, i)
		}
		if len(f.readBatches) != 1 {
			t.Errorf("messages of %v", f.readBatches)
		}
		time.Sleep(unaryFor)
		readKey(t.Context(), t, c, 3)
		if len(f.readBatches) != 2 {
			t.Errorf("messages of %v after a while", f.readBatches)
		}
	})
}

// The deadline of a read ends it, on the way or queued, and leaves nothing.
func TestReads_Deadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, c := readFake(t, 1)
		readKey(t.Context(), t, c, 0)
		f.nodes[0].stop()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := c.KeyValue(ctx, "k1")
		if errCode(err) != catalog.ErrUnavailable || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if s := c.State(); s.ReadsQueued != 0 || s.ReadsSent != 0 {
			t.Errorf("something is left: %s", s)
		}
	})
}

// More reads than may be under way wait for their turn, and a deadline that ends
// meanwhile says why.
func TestReads_Backpressure(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, c := readFake(t, 1)
		f.nodes[0].stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range maxReads {
			wg.Go(func() {
				if _, _, err := c.KeyValue(ctx, "k1"); errCode(err) != catalog.ErrUnavailable {
					t.Errorf("got %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		if s := c.State(); s.ReadsQueued+s.ReadsSent != maxReads {
			t.Errorf("queued %d, sent %d, want %d", s.ReadsQueued, s.ReadsSent, maxReads)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.KeyValue(short, "k1"); errCode(err) != catalog.ErrBusy {
			t.Errorf("got %v", err)
		}
		wg.Wait()
	})
}

// Close ends reads that wait.
func TestReads_Close(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, c := readFake(t, 1)
		f.nodes[0].stop()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, _, err := c.KeyValue(t.Context(), "k1"); !errors.Is(err, ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, _, err := c.KeyValue(t.Context(), "k1"); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
