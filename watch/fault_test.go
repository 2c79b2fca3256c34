package watch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// A watcher on a node that falls behind and installs snapshots, with and
// without a gap, and applies some entries again, never goes back and never gets
// an event twice: it goes on, or ends typed and resumes.
func TestReset_SnapshotInstallNeverGoesBack(t *testing.T) {
	const threshold = 20
	leader, node := watch.New(watch.Config{}), watch.New(watch.Config{})
	leader.Reset(incarnation(1), 1, nil)
	node.Reset(incarnation(1), 1, nil)
	sub := subscribe(t, node, watch.Options{From: 1, Bookmarks: true, BookmarkEvery: 1})
	var told []catalog.Revision
	last, resumed := catalog.Revision(1), 0
	read := func() {
		for {
			b, ok, err := try(sub)
			var compacted *watch.CompactedError
			switch {
			case errors.As(err, &compacted):
				if last+1 >= compacted.Oldest {
					t.Fatalf("compacted at %d: %v", last, err)
				}
				resumed++
				last = compacted.Oldest - 1 // what a state read there would cover
				sub = subscribe(t, node, watch.Options{From: last, Bookmarks: true, BookmarkEvery: 1})
				continue
			case err != nil:
				t.Fatal(err)
			case !ok:
				return
			}
			if b.Revision <= last {
				t.Fatalf("told %d after %d", b.Revision, last)
			}
			last = b.Revision
			if !b.Bookmark() {
				told = append(told, b.Revision)
			}
		}
	}
	rev := catalog.Revision(1)
	for round := range 40 {
		put(leader, rev, rev+10)
		put(node, rev, rev+10)
		rev += 10
		if round%3 > 0 {
			read()
		}
		missed := catalog.Revision(5 + round) // isolated
		put(leader, rev, rev+missed)
		rev += missed
		node.Reset(incarnation(1), rev, leader.Tail(threshold, 1<<20))
		for _, ev := range leader.Tail(3, 1<<20) { // entries above the snapshot, applied before
			node.Publish(ev.Revision, []*catalog.Event{ev})
		}
		read()
	}
	if last != rev || resumed == 0 || len(told) < 300 {
		t.Errorf("told %d events up to %d of %d, resumed %d times", len(told), last, rev, resumed)
	}
}

// With 200 readers, one of them starved, every other one gets the log in full
// and the starved one is cut with a typed error that tells where it was.
func TestSubscription_StarvedReaderIsCut(t *testing.T) {
	const events, readers = 5000, 200
	h := watch.New(watch.Config{MaxRevisions: 100_000, MaxBytes: 1 << 30, MaxPending: 1 << 20})
	starved := subscribe(t, h, watch.Options{})
	if b, ok, err := try(starved); ok || err != nil {
		t.Fatal(b, ok, err)
	}
	var wg sync.WaitGroup
	var behind atomic.Int64
	for range readers - 1 {
		sub := subscribe(t, h, watch.Options{})
		wg.Go(func() {
			for want := catalog.Revision(1); want <= events; want++ {
				b, err := sub.Next(t.Context())
				if err != nil || b.Revision != want {
					t.Errorf("got %d, %v, want %d", b.Revision, err, want)
					return
				}
			}
			behind.Add(1)
		})
	}
	go func() {
		for rev := catalog.Revision(1); rev <= events; rev++ {
			h.Publish(rev, []*catalog.Event{keyEvent(rev, 100)})
			if rev%100 == 0 {
				time.Sleep(time.Millisecond) // the pace of a log, not a synchronisation
			}
		}
	}()
	within(t, time.Minute, "delivery to all readers", wg.Wait)

	var slow *watch.SlowError
	if err := starved.Err(); !errors.As(err, &slow) || slow.Last != 0 || !errors.Is(err, catalog.ErrCompacted) {
		t.Fatalf("the starved reader: %v, want SlowError at 0", err)
	}
	starved.Close() // what a server does
	again := subscribe(t, h, watch.Options{From: slow.Last})
	if got := revisions(t, again); len(got) != events {
		t.Errorf("resumed where it was cut it got %d of %d events", len(got), events)
	}
}

// A reader that falls out of the history gets an error, never a gap, and its
// position is what it was told.
func TestSubscription_FallsOutOfHistory(t *testing.T) {
	h := watch.New(watch.Config{MaxRevisions: 10})
	sub := subscribe(t, h, watch.Options{})
	put(h, 0, 5)
	if b, _, err := try(sub); err != nil || b.Revision != 1 {
		t.Fatal(b, err)
	}
	put(h, 5, 30)
	var slow *watch.SlowError
	for range 2 { // the error stays
		if _, _, err := try(sub); !errors.As(err, &slow) || *slow != (watch.SlowError{Last: 1, Oldest: 21}) {
			t.Fatalf("got %v, want SlowError{1, 21}", err)
		}
	}
	if sub.Last() != 1 {
		t.Errorf("last is %d", sub.Last())
	}
}

// Under concurrent publishing, trimming, installs, subscribing and closing no
// reader sees a gap, a repetition or a revision that goes back.
func TestHistory_Concurrent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := watch.New(watch.Config{MaxRevisions: 700, MaxPending: 1 << 30})
	h.Reset(incarnation(1), 1, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var delivered, cuts atomic.Int64
	for i := range 32 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for ctx.Err() == nil {
				n, cut := follow(ctx, t, h, rnd)
				delivered.Add(n)
				cuts.Add(cut)
			}
		})
	}
	rnd := rand.New(rand.NewPCG(seed, 1<<32))
	for rev := catalog.Revision(1); ctx.Err() == nil; {
		switch rnd.IntN(200) {
		case 0:
			rev = rev/5*5 + 1002 // missed; the tail reaches back a little
			h.Reset(incarnation(1), rev, []*catalog.Event{keyEvent(rev-1, 1), keyEvent(rev, 1)})
		case 1:
			time.Sleep(time.Millisecond) // let readers catch up and wait
		default:
			n := catalog.Revision(rnd.IntN(20))
			var events []*catalog.Event
			for i := range n {
				if !quiet(rev + i + 1) {
					events = append(events, keyEvent(rev+i+1, 10))
				}
			}
			rev += n
			h.Publish(rev, events)
		}
	}
	within(t, 10*time.Second, "the end of the readers", wg.Wait)
	if delivered.Load() == 0 || cuts.Load() == 0 {
		t.Errorf("delivered %d, cut %d: the test did not test", delivered.Load(), cuts.Load())
	}
	if s := h.Stats(); s.Subscriptions != 0 || s.Events > 701 {
		t.Errorf("in the end: %+v", s)
	}
}

// quiet tells the revisions that have no event.
func quiet(rev catalog.Revision) bool { return rev%5 == 0 }

// follow reads from a random position until something ends it. Nobody may read
// on over the gap of an install.
func follow(ctx context.Context, t *testing.T, h *watch.History, rnd *rand.Rand) (delivered, cut int64) {
	s := h.Stats()
	from := s.Oldest - 1 + catalog.Revision(rnd.IntN(int(s.Current-s.Oldest)+20))
	sub, err := h.Subscribe(watch.Options{From: from, Bookmarks: rnd.IntN(2) == 0, BookmarkEvery: 1})
	if err != nil {
		if !errors.Is(err, catalog.ErrCompacted) {
			t.Errorf("subscribe: %v", err)
		}
		return 0, 1
	}
	defer sub.Close()
	last := from
	for range 50 + rnd.IntN(2000) {
		b, err := sub.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return delivered, 0
		case errors.Is(err, catalog.ErrCompacted):
			return delivered, 1
		case err != nil:
			t.Errorf("next: %v", err)
			return delivered, 0
		}
		if b.Bookmark() {
			if b.Revision != last+1 || !quiet(b.Revision) {
				t.Errorf("bookmark %d after %d", b.Revision, last)
				return delivered, 0
			}
			last = b.Revision
			continue
		}
		b.Entry.Encoded(func() []byte { return []byte{1} })
		if quiet(last + 1) {
			last++
		}
		if b.Revision != last+1 {
			t.Errorf("event %d after %d (from %d)", b.Revision, last, from)
			return delivered, 0
		}
		last = b.Revision
		delivered++
		if rnd.IntN(500) == 0 {
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond) // a slow reader
		}
	}
	return delivered, 0
}

// No wake-up is lost: readers that all wait, or are just about to, each get
// what is published next.
func TestSubscription_Next_NoLostWakeUp(t *testing.T) {
	const rounds, readers = 20_000, 4
	h := watch.New(watch.Config{})
	told := make(chan catalog.Revision, readers)
	var wg sync.WaitGroup
	for range readers {
		sub := subscribe(t, h, watch.Options{})
		wg.Go(func() {
			for {
				b, err := sub.Next(t.Context())
				if err != nil {
					return
				}
				told <- b.Revision
			}
		})
	}
	within(t, time.Minute, "delivery to all readers", func() {
		for rev := catalog.Revision(1); rev <= rounds; rev++ {
			h.Publish(rev, []*catalog.Event{keyEvent(rev, 1)})
			for range readers {
				if got := <-told; got != rev {
					t.Errorf("told %d, want %d", got, rev)
				}
			}
		}
	})
	h.Close()
	wg.Wait()
}

// A bookmark is never ahead of the events, also when the reader is at the head
// at the very moment of a publish.
func TestSubscription_BookmarkAtTheHead(t *testing.T) {
	const events = 200_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := watch.New(watch.Config{})
	sub := subscribe(t, h, watch.Options{Bookmarks: true, BookmarkEvery: 1})
	var published atomic.Int64
	go func() {
		rnd := rand.New(rand.NewPCG(seed, 0))
		for rev := catalog.Revision(1); rev <= events; rev++ {
			h.Publish(rev, []*catalog.Event{keyEvent(rev, 1)})
			for range rnd.IntN(300) { // a random moment of the reader's loop
				published.Store(int64(rev))
			}
			published.Store(int64(rev))
		}
	}()
	for last := catalog.Revision(0); last < events; {
		b, ok, err := try(sub)
		var slow *watch.SlowError
		switch {
		case errors.As(err, &slow):
			last = catalog.Revision(published.Load())
			sub = subscribe(t, h, watch.Options{From: last, Bookmarks: true, BookmarkEvery: 1})
		case err != nil:
			t.Fatal(err)
		case ok && (b.Bookmark() || b.Revision != last+1):
			t.Fatalf("told %d, bookmark %v, after %d", b.Revision, b.Bookmark(), last)
		case ok:
			last = b.Revision
		}
	}
}
