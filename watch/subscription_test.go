package watch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// put publishes an event of its own for each revision in (from, to].
func put(h *watch.History, from, to catalog.Revision) {
	for rev := from + 1; rev <= to; rev++ {
		h.Publish(rev, []*catalog.Event{keyEvent(rev, 10)})
	}
}

func keyEvent(rev catalog.Revision, size int) *catalog.Event {
	row := &catalog.KeyValue{Key: "k", Value: make([]byte, size), Version: uint64(rev), Revision: rev}
	return &catalog.Event{Revision: rev, Kind: catalog.KindPutKV, Changes: []catalog.Change{{After: row}}}
}

func subscribe(t testing.TB, h *watch.History, o watch.Options) *watch.Subscription {
	t.Helper()
	s, err := h.Subscribe(o)
	if err != nil {
		t.Fatalf("subscribe from %d: %v", o.From, err)
	}
	t.Cleanup(s.Close)
	return s
}

// revisions returns what a subscription tells without waiting.
func revisions(t testing.TB, s *watch.Subscription) []catalog.Revision {
	t.Helper()
	var out []catalog.Revision
	for {
		b, ok, err := try(s)
		if err != nil {
			t.Fatalf("after %d: %v", out, err)
		}
		if !ok {
			return out
		}
		out = append(out, b.Revision)
	}
}

// From is exclusive, may be as old as the history and may lie in the future.
func TestSubscribe_From(t *testing.T) {
	h := watch.New(watch.Config{MaxRevisions: 3})
	put(h, 0, 10)
	for _, tc := range []struct {
		name   string
		from   catalog.Revision
		later  catalog.Revision // published after
		want   []catalog.Revision
		oldest catalog.Revision // of a CompactedError
	}{
		{name: "oldest", from: 7, later: 10, want: []catalog.Revision{8, 9, 10}},
		{name: "too old", from: 6, oldest: 8},
		{name: "current", from: 10, later: 10},
		{name: "future", from: 12, later: 13, want: []catalog.Revision{13}},
		{name: "future trimmed over", from: 19, later: 20, want: []catalog.Revision{20}},
	} {
		sub, err := h.Subscribe(watch.Options{From: tc.from})
		if tc.oldest != 0 {
			var compacted *watch.CompactedError
			if !errors.As(err, &compacted) || compacted.Oldest != tc.oldest || !errors.Is(err, catalog.ErrCompacted) {
				t.Errorf("%s: %v, want CompactedError with oldest %d", tc.name, err, tc.oldest)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		put(h, h.Stats().Current, tc.later)
		if diff := cmp.Diff(tc.want, revisions(t, sub)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		sub.Close()
	}
}

// A subscription that names an incarnation on a node that knows none yet waits
// for it, and ends if the node turns out to be of another one.
func TestSubscribe_UnknownIncarnation(t *testing.T) {
	h := watch.New(watch.Config{})
	same := subscribe(t, h, watch.Options{From: 40, Incarnation: catalog.Some(incarnation(1))})
	other := subscribe(t, h, watch.Options{From: 40, Incarnation: catalog.Some(incarnation(2))})
	h.Reset(incarnation(1), 42, []*catalog.Event{keyEvent(40, 1), keyEvent(41, 1), keyEvent(42, 1)})
	if diff := cmp.Diff([]catalog.Revision{41, 42}, revisions(t, same)); diff != "" {
		t.Errorf("the same incarnation (-want +got):\n%s", diff)
	}
	var restored *watch.RestoredError
	if _, _, err := try(other); !errors.As(err, &restored) || restored.Incarnation != incarnation(1) {
		t.Errorf("the other incarnation: %v, want RestoredError", err)
	}
	if _, err := h.Subscribe(watch.Options{Filter: watch.Filter{Kinds: []catalog.ObjectKind{99}}}); !errors.Is(err, catalog.ErrInvalidArgument) {
		t.Errorf("unknown kind: %v, want INVALID_ARGUMENT", err)
	}
}

// Partitions are found by database also when their table is dropped by the same
// command or by a later one of the same batch.
func TestFilter_PartitionOfDroppedTable(t *testing.T) {
	src := newSource()
	h := watch.New(watch.Config{TablePath: src.tablePath})
	h.Publish(2, src.apply(catalog.CreateDatabase{Name: "shop"}, createTable("shop.a")))
	parts := watch.Filter{Databases: []string{"shop"}, Kinds: []catalog.ObjectKind{catalog.ObjectPartition}}
	sub := subscribe(t, h, watch.Options{Filter: parts})
	byID := subscribe(t, h, watch.Options{Filter: watch.Filter{TableIDs: []catalog.TableID{0}, Kinds: parts.Kinds}})
	other := subscribe(t, h, watch.Options{Filter: watch.Filter{Databases: []string{"sho", "shop2"}}})

	h.Publish(6, src.apply(
		catalog.CreatePartitions{Table: "shop.a", Specs: []catalog.PartitionSpec{spec("p1"), spec("p2")}},
		catalog.DropTable{Table: "shop.a"},
		createTable("shop.a"),
		catalog.CreatePartitions{Table: "shop.a", Specs: []catalog.PartitionSpec{spec("p1")}},
	))
	for name, tc := range map[string]struct {
		sub  *watch.Subscription
		want []string
	}{
		"database": {sub, []string{"3 +p1", "3 +p2", "4 -p1", "4 -p2", "6 +p1"}},
		"table id": {byID, []string{"3 +p1", "3 +p2", "4 -p1", "4 -p2"}},
		"other":    {other, nil},
	} {
		if diff := cmp.Diff(tc.want, partitionsTold(t, tc.sub)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Values before a change come on request; a deleted row is always told.
func TestSubscription_Before(t *testing.T) {
	kv := func(v uint64) *catalog.KeyValue { return &catalog.KeyValue{Key: "k", Version: v} }
	table, counter := &catalog.Table{Path: "shop.a"}, &catalog.Counter{Name: "c"}
	updated, added, deleted := catalog.Change{Before: kv(1), After: kv(2)}, catalog.Change{After: counter}, catalog.Change{Before: table}
	ev := &catalog.Event{Revision: 1, Changes: []catalog.Change{updated, added, deleted}}
	plain := catalog.Change{After: updated.After}
	h := watch.New(watch.Config{})
	h.Publish(1, []*catalog.Event{ev})
	most := watch.Filter{Kinds: []catalog.ObjectKind{catalog.ObjectKeyValue, catalog.ObjectTable}}
	for _, tc := range []struct {
		name string
		opts watch.Options
		want []catalog.Change
	}{
		{"all", watch.Options{}, []catalog.Change{plain, added, deleted}},
		{"all with before", watch.Options{Before: true}, []catalog.Change{updated, added, deleted}},
		{"part", watch.Options{Filter: most}, []catalog.Change{plain, deleted}},
		{"part with before", watch.Options{Filter: most, Before: true}, []catalog.Change{updated, deleted}},
	} {
		b, ok, err := try(subscribe(t, h, tc.opts))
		if err != nil || !ok {
			t.Fatal(tc.name, ok, err)
		}
		if diff := cmp.Diff(tc.want, b.Event.Changes, sameRows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if diff := cmp.Diff(updated, ev.Changes[0], sameRows); diff != "" {
		t.Errorf("the published event was changed:\n%s", diff)
	}
}

func partitionsTold(t *testing.T, s *watch.Subscription) []string {
	t.Helper()
	var out []string
	for {
		b, ok, err := try(s)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		for _, c := range b.Event.Changes {
			sign, row := "+", c.After
			if row == nil {
				sign, row = "-", c.Before
			}
			out = append(out, fmt.Sprint(b.Revision, " ", sign, row.(*catalog.Partition).Name))
		}
	}
}

// Next waits, and a publish, the end of its context, Close and the end of the
// history each wake it, and nobody else.
func TestSubscription_Next_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := watch.New(watch.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		subs := make([]*watch.Subscription, 5)
		answers := make([]chan error, len(subs))
		wait := func(i int, ctx context.Context) { //nolint:revive // the index names the subscription
			go func() {
				_, err := subs[i].Next(ctx)
				answers[i] <- err
			}()
		}
		for i := range subs {
			subs[i], answers[i] = subscribe(t, h, watch.Options{}), make(chan error, 1)
		}
		wait(0, ctx)
		for i := 1; i < len(subs); i++ {
			wait(i, t.Context())
		}
		expect := func(when string, want map[int]error) {
			t.Helper()
			synctest.Wait()
			for i := range answers {
				err, waits := want[i]
				select {
				case got := <-answers[i]:
					if !waits || !errors.Is(got, err) {
						t.Errorf("%s: subscription %d answered %v", when, i, got)
					}
				default:
					if waits {
						t.Errorf("%s: subscription %d waits, want %v", when, i, err)
					}
				}
			}
		}
		expect("at first", nil)
		cancel()
		expect("after cancel", map[int]error{0: context.Canceled})
		subs[1].Close()
		subs[1].Close()
		expect("after close", map[int]error{1: watch.ErrClosed})
		put(h, 0, 1)
		expect("after publish", map[int]error{2: nil, 3: nil, 4: nil})
		wait(0, t.Context()) // an ended context left it as it was
		expect("again", map[int]error{0: nil})
		for i := 2; i < len(subs); i++ {
			wait(i, t.Context())
		}
		h.Publish(2, nil)
		expect("after a revision without events", nil)
		h.Close()
		expect("after the end", map[int]error{2: watch.ErrClosed, 3: watch.ErrClosed, 4: watch.ErrClosed})
		if _, err := h.Subscribe(watch.Options{}); !errors.Is(err, watch.ErrClosed) {
			t.Errorf("subscribe after the end: %v", err)
		}
	})
}

// Idle subscriptions get bookmarks at the distance they asked for, and none is
// above what is published.
func TestSubscription_Bookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := watch.New(watch.Config{})
		told := make(chan catalog.Revision, 100)
		sub := subscribe(t, h, watch.Options{Bookmarks: true, BookmarkEvery: 10})
		go func() {
			for {
				b, err := sub.Next(t.Context())
				if err != nil {
					return
				}
				if b.Bookmark() {
					told <- b.Revision
				}
			}
		}()
		synctest.Wait() // it has caught up with revision 0
		for rev := catalog.Revision(1); rev <= 100; rev++ {
			h.Publish(rev, nil)
			synctest.Wait()
		}
		sub.Close()
		synctest.Wait()
		close(told)
		last, n := catalog.Revision(0), 0
		for r := range told {
			if n++; r-last < 10 || r-last > 20 {
				t.Errorf("bookmark %d after %d, want 10 to 20 later", r, last)
			}
			last = r
		}
		if last < 80 {
			t.Errorf("last of %d bookmarks is %d of 100", n, last)
		}
	})
}

// Encodings are made once, shared by everybody who gets the whole event in the
// same form, counted while the event is kept, and not longer.
func TestEntry_Encoded(t *testing.T) {
	h := watch.New(watch.Config{MaxBytes: 1 << 20})
	put(h, 0, 1)
	before := h.Stats().Bytes
	calls := 0
	encode := func() []byte {
		calls++
		return make([]byte, 1000)
	}
	opts := []watch.Options{{}, {Before: true}, {Filter: watch.Filter{Kinds: []catalog.ObjectKind{catalog.ObjectKeyValue}}}}
	for _, o := range opts {
		b, ok, err := try(subscribe(t, h, o))
		if err != nil || !ok || b.Entry == nil {
			t.Fatalf("%+v: %+v, %v, %v", o, b, ok, err)
		}
		b.Entry.Encoded(encode)
	}
	if calls != 1 {
		t.Errorf("%d encodings of an event without before-values, want 1", calls)
	}
	if got := h.Stats().Bytes - before; got != 1000 {
		t.Errorf("an encoding of 1000 bytes counts as %d", got)
	}
	old, _, _ := try(subscribe(t, h, watch.Options{}))
	h.Publish(2, []*catalog.Event{keyEvent(2, 1<<20)})
	if s := h.Stats(); s.Events != 1 || s.Bytes > 1<<20+2000 {
		t.Errorf("after the bound was reached: %+v", s)
	}
	bytes := h.Stats().Bytes
	h.Publish(3, []*catalog.Event{keyEvent(3, 10)})
	old.Entry.Encoded(encode)
	if s := h.Stats(); s.Events != 1 || s.Bytes >= bytes {
		t.Errorf("after the large event went: %+v", s)
	}
}

// The tail of a history seeds another one, which takes over its readers.
func TestHistory_Tail(t *testing.T) {
	h := watch.New(watch.Config{})
	put(h, 0, 50)
	h.Publish(60, nil)
	size := watch.EventSize(keyEvent(1, 10))
	for _, tc := range []struct {
		name                 string
		revisions, bytes     int
		wantFirst, wantCount int
	}{
		{"all", 4096, 8 << 20, 1, 50},
		{"by revisions", 15, 8 << 20, 46, 5},
		{"by bytes", 4096, int(3 * size), 48, 3},
		{"newest", 5, 1, 50, 1},
	} {
		tail := h.Tail(tc.revisions, tc.bytes)
		if len(tail) != tc.wantCount || int(tail[0].Revision) != tc.wantFirst {
			t.Errorf("%s: %d events from %d, want %d from %d", tc.name, len(tail), tail[0].Revision, tc.wantCount, tc.wantFirst)
		}
		next := watch.New(watch.Config{})
		next.Reset(incarnation(1), 60, tail)
		sub := subscribe(t, next, watch.Options{From: catalog.Revision(tc.wantFirst - 1)})
		if got := revisions(t, sub); len(got) != tc.wantCount {
			t.Errorf("%s: the next history told %d events, want %d", tc.name, len(got), tc.wantCount)
		}
	}
	if tail := watch.New(watch.Config{}).Tail(10, 10); len(tail) != 0 {
		t.Errorf("tail of an empty history: %d events", len(tail))
	}
}

// A subscription is small.
func TestSubscription_Size(t *testing.T) {
	const limit = 1024 - 112 - 64 // its channel and its compiled filter
	if n := unsafe.Sizeof(watch.Subscription{}); n > limit {
		t.Errorf("a subscription takes %d bytes", n)
	}
}

// within fails the test if f does not end in time.
func within(t testing.TB, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s takes longer than %v", what, d)
	}
}
