package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// collect reads a watch to its end.
func collect(ctx context.Context, w *Watcher) (out []Batch, err error) {
	for {
		b, err := w.Next(ctx)
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
}

// checkLog compares what was delivered with what happened: every event after
// from once, whole and in order.
func checkLog(t interface{ Errorf(string, ...any) }, got []Batch, log []*catalog.Event, from catalog.Revision) {
	var want, have []string
	for _, e := range log {
		if e.Revision > from {
			want = append(want, fmt.Sprintf("%d with %d changes", e.Revision, len(e.Changes)))
		}
	}
	last := from
	for _, b := range got {
		if b.Revision <= last {
			t.Errorf("revision %d after %d", b.Revision, last)
		}
		last = b.Revision
		if b.Event != nil {
			have = append(have, fmt.Sprintf("%d with %d changes", b.Revision, len(b.Event.Changes)))
		}
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("events: %s", d)
	}
}

// fill makes events of one to four changes.
func (f *fake) fill(n int) {
	for i := range n {
		cmd := catalog.TxnKV{}
		for j := range 1 + i%4 {
			cmd.Ops = append(cmd.Ops, catalog.OpKV{Key: fmt.Sprintf("k%d-%d", i%7, j), Value: []byte{byte(i)}})
		}
		f.locked(func() { f.apply(api.Ref{}, cmd) })
	}
}

// However the streams are cut, also inside a batch, every event arrives once,
// whole and in order.
func TestWatch_CutAnywhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cuts := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 30).Draw(r, "cuts")
		from := catalog.Revision(rapid.IntRange(2, 20).Draw(r, "from"))
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t, 3)
			f.fill(20)
			f.locked(func() {
				f.cutAfter = func() int {
					if len(cuts) == 0 {
						return -1
					}
					n := cuts[0]
					cuts = cuts[1:]
					return n
				}
			})
			c := f.client()
			until := f.state.Revision() + 20
			w, err := c.Watch(t.Context(), WatchOptions{From: catalog.Some(from), Until: catalog.Some(until)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var filling sync.WaitGroup
			filling.Go(func() { f.fill(25) })
			got, err := collect(t.Context(), w)
			filling.Wait() // the watch ends before
			if !errors.Is(err, io.EOF) {
				t.Errorf("ended with %v", err)
			}
			var log []*catalog.Event
			for _, e := range f.events {
				if e.Revision <= until {
					log = append(log, e)
				}
			}
			checkLog(t, got, log, from)
		})
	})
}

// A history that one node does not have is asked of the others; without any, a
// snapshot goes on where that was asked for.
func TestWatch_Compacted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, nodes := range []int{1, 3} {
			f := newFake(t, nodes)
			f.fill(10)
			f.locked(func() { f.oldest = 8 })
			c, err := New([]string{"n1:7401"}, WithDialer(f.net.Host("client").Dial)) // the node that has compacted comes first
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			o := WatchOptions{From: catalog.Some[catalog.Revision](3), Until: catalog.Some(f.state.Revision())}
			w, err := c.Watch(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := collect(t.Context(), w)
			_ = w.Close()
			var compacted *api.CompactedError
			if nodes == 1 {
				if !errors.As(err, &compacted) || compacted.Oldest != 8 || len(got) != 0 {
					t.Errorf("one node: %v", err)
				}
				o.Snapshot = true
				if w, err = c.Watch(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				got, err = collect(t.Context(), w)
				_ = w.Close()
				if !errors.Is(err, io.EOF) || len(got) != 1 || !got[0].Snapshot || len(got[0].Rows) == 0 || got[0].Revision != o.Until.V {
					t.Errorf("with a snapshot: %d batches, %v", len(got), err)
				}
				continue
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("three nodes: %v", err)
			}
			checkLog(t, got, f.events, 3)
		}
	})
}

// A restore ends a watch with RESTORED, or replaces all that was known by a
// snapshot of the new history.
func TestWatch_Restored(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			f := newFake(t, 2)
			f.fill(3)
			c := f.client()
			w, err := c.Watch(t.Context(), WatchOptions{Snapshot: snapshot})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			synctest.Wait()
			f.fill(1)
			for b := (Batch{}); b.Event == nil; {
				if b, err = w.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			f.locked(func() { f.restore(9) })
			b, err := w.Next(t.Context())
			var restored *api.RestoredError
			if !snapshot && (!errors.As(err, &restored) || restored.Incarnation.Number != 9) {
				t.Errorf("got %+v, %v", b, err)
			}
			if snapshot && (err != nil || !b.Snapshot || b.Incarnation.Number != 9 || len(b.Rows) != 0) {
				t.Errorf("got %+v, %v", b, err)
			}
		})
	}
}

// Without from, the place where a watch begins is decided once, also if the
// stream breaks before anything happened.
func TestWatch_NowDoesNotMove(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2)
		f.fill(3)
		start := f.state.Revision()
		streams := 0
		f.locked(func() {
			f.cutAfter = func() int {
				if streams++; streams == 1 {
					return 1 // the hello and nothing else
				}
				return -1
			}
		})
		c := f.client()
		w, err := c.Watch(t.Context(), WatchOptions{Before: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.fill(5)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := collect(ctx, w)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		checkLog(t, got, f.events, start)
		_ = w.Close()
		if _, err := w.Next(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}
