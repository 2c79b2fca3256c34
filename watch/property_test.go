package watch_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

var sameRows = cmp.Options{
	cmp.Comparer(func(a, b catalog.Object) bool { return a == b }), // rows are immutable: the same pointer
	cmpopts.EquateEmpty(),
}

// follower checks one subscription against the full log.
type follower struct {
	sub  *watch.Subscription
	opts watch.Options
	inc  uint64 // the one it follows; 0: none known yet
	told catalog.Revision
}

// model drives a history and knows what it must do.
type model struct {
	src       *source
	h         *watch.History
	cfg       watch.Config
	inc       uint64
	published catalog.Revision
	followers []*follower
}

// A subscription under any filter tells exactly what the full log holds, in
// order, once and whole, through trims, snapshot installs and restores, or ends
// with the error that says why; bookmarks are never ahead.
func TestSubscription_AgainstFullLog(t *testing.T) {
	for _, cfg := range []watch.Config{
		{MaxRevisions: 5, MaxBytes: 1 << 20, MaxPending: 3000},
		{MaxRevisions: 30, MaxBytes: 1 << 20, MaxPending: 1 << 20},
		{MaxRevisions: 1000, MaxBytes: 1 << 20, MaxPending: 3000},
		{MaxRevisions: 1000, MaxBytes: 1, MaxPending: 1 << 20},
		{MaxRevisions: 1000, MaxBytes: 20_000, MaxPending: 3000},
	} {
		t.Run(fmt.Sprintf("revisions=%d bytes=%d", cfg.MaxRevisions, cfg.MaxBytes), func(t *testing.T) { againstFullLog(t, cfg) })
	}
}

func againstFullLog(t *testing.T, cfg watch.Config) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{src: newSource(), cfg: cfg}
		m.cfg.TablePath = func(id catalog.TableID) (string, bool) { return m.src.tablePath(id) }
		m.h = watch.New(m.cfg)
		t.Repeat(map[string]func(*rapid.T){
			"publish":   m.publish,
			"install":   m.install,
			"restore":   m.restore,
			"subscribe": m.subscribe,
			"read":      m.read,
			"close":     m.close,
			"":          m.check,
		})
		for len(m.followers) > 0 {
			f := m.followers[0]
			m.drain(t, f)
			if slices.Contains(m.followers, f) { // it has no more to tell
				f.sub.Close()
				m.followers = m.followers[1:]
			}
		}
		if n := m.h.Stats().Subscriptions; n != 0 {
			t.Errorf("%d subscriptions are open after all were closed", n)
		}
	})
}

// check compares what the history keeps with the end of the full log.
func (m *model) check(t *rapid.T) {
	tail := m.h.Tail(1<<30, 1<<30)
	if n := len(m.src.events) - len(tail); n < 0 || !slices.Equal(tail, m.src.events[n:]) {
		t.Fatalf("the history keeps %d events, which are not the last of the log", len(tail))
	}
	s := m.h.Stats()
	if s.Events != len(tail) || s.Current != m.published || s.Oldest > s.Current+1 || s.Incarnation != m.incarnation() {
		t.Fatalf("stats %+v with %d events and %d published in %s", s, len(tail), m.published, m.incarnation())
	}
}

func (m *model) publish(t *rapid.T) {
	var cmds []catalog.Command
	for range rapid.IntRange(0, 12).Draw(t, "commands") {
		cmds = append(cmds, m.src.command(t))
	}
	if m.inc == 0 && rapid.Bool().Draw(t, "bootstrap") {
		m.inc = 1
		for _, f := range m.followers {
			f.inc = 1
		}
		cmds = append(cmds, catalog.ActivateIncarnation{Incarnation: incarnation(1), ClusterID: "c"})
	}
	events := m.src.apply(cmds...)
	if rapid.Bool().Draw(t, "again") { // entries applied again after a snapshot
		events = m.src.after(m.published - min(m.published, 3))
	}
	m.published = m.src.state.Revision()
	m.h.Publish(m.published, events)
	m.bounded(t)
}

// bounded checks the bounds, which readers may exceed until something is
// published.
func (m *model) bounded(t *rapid.T) {
	if s := m.h.Stats(); s.Events > m.cfg.MaxRevisions || s.Events > 1 && s.Bytes > m.cfg.MaxBytes {
		t.Fatalf("stats %+v are above the bounds %+v", s, m.cfg)
	}
}

// install puts the history at a later state of the same incarnation through a
// snapshot, of which it may have missed some events.
func (m *model) install(t *rapid.T) {
	var cmds []catalog.Command
	for range rapid.IntRange(0, 30).Draw(t, "missed") {
		cmds = append(cmds, m.src.command(t))
	}
	m.src.apply(cmds...)
	tail := m.src.events
	keep := rapid.IntRange(0, 20).Draw(t, "tail")
	tail = tail[len(tail)-min(keep, len(tail)):]
	m.published = m.src.state.Revision()
	m.h.Reset(m.incarnation(), m.published, tail)
	m.bounded(t)
}

func (m *model) incarnation() catalog.Incarnation {
	if m.inc == 0 {
		return catalog.Incarnation{}
	}
	return incarnation(m.inc)
}

// restore begins another history at a later revision, by a restore or by a
// recovery's command.
func (m *model) restore(t *rapid.T) {
	if m.inc == 0 {
		t.Skip("no incarnation to leave")
	}
	m.inc++
	if rapid.Bool().Draw(t, "recovery") {
		events := m.src.apply(catalog.ActivateIncarnation{Incarnation: incarnation(m.inc)})
		m.src.events = nil
		m.published = m.src.state.Revision()
		m.h.Publish(m.published, events)
		return
	}
	m.src.apply(nil, nil, catalog.ActivateIncarnation{Incarnation: incarnation(m.inc)})
	m.src.events = nil
	m.published = m.src.state.Revision()
	m.h.Reset(incarnation(m.inc), m.published, nil)
}

func (m *model) subscribe(t *rapid.T) {
	if len(m.followers) > 8 {
		t.Skip("enough subscriptions")
	}
	o := watch.Options{
		From:   catalog.Revision(rapid.IntRange(0, int(m.published)+10).Draw(t, "from")),
		Before: rapid.Bool().Draw(t, "before"), Bookmarks: rapid.Bool().Draw(t, "bookmarks"),
		BookmarkEvery: catalog.Revision(rapid.SampledFrom([]int{1, 7}).Draw(t, "every")),
	}
	if rapid.Bool().Draw(t, "named") {
		o.Incarnation = catalog.Some(incarnation(max(1, m.inc-uint64(rapid.IntRange(0, 1).Draw(t, "behind")))))
	}
	o.Filter.Databases = rapid.SliceOfN(rapid.SampledFrom(testDatabases), 0, 2).Draw(t, "databases")
	o.Filter.Tables = rapid.SliceOfN(rapid.SampledFrom([]string{"shop.a", "ads.b"}), 0, 1).Draw(t, "tables")
	o.Filter.TableIDs = rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(i int) catalog.TableID { return catalog.TableID(i) }), 0, 1).Draw(t, "ids")
	o.Filter.Kinds = rapid.SliceOfN(rapid.SampledFrom([]catalog.ObjectKind{
		catalog.ObjectDatabase, catalog.ObjectTable, catalog.ObjectPartition, catalog.ObjectDropped, catalog.ObjectKeyValue,
	}), 0, 2).Draw(t, "kinds")
	m.begin(t, o)
}

func (m *model) begin(t *rapid.T, o watch.Options) {
	sub, err := m.h.Subscribe(o)
	oldest := m.h.Stats().Oldest
	var restored *watch.RestoredError
	switch {
	case o.Incarnation.Set && m.inc != 0 && o.Incarnation.V != incarnation(m.inc):
		if !errors.As(err, &restored) || restored.Incarnation != incarnation(m.inc) || !errors.Is(err, catalog.ErrRestored) {
			t.Fatalf("subscribe to %s in %s: %v, want RestoredError", o.Incarnation.V, incarnation(m.inc), err)
		}
	case o.From+1 < oldest:
		var compacted *watch.CompactedError
		if !errors.As(err, &compacted) || compacted.Oldest != oldest || !errors.Is(err, catalog.ErrCompacted) {
			t.Fatalf("subscribe from %d with oldest %d: %v, want CompactedError", o.From, oldest, err)
		}
	case err != nil:
		t.Fatalf("subscribe from %d with oldest %d: %v", o.From, oldest, err)
	default:
		want := watch.Hello{Incarnation: m.incarnation(), Oldest: oldest, Current: m.published}
		if diff := cmp.Diff(want, sub.Hello()); diff != "" {
			t.Fatalf("hello (-want +got):\n%s", diff)
		}
		m.followers = append(m.followers, &follower{sub: sub, opts: o, inc: m.inc, told: o.From})
	}
}

func (m *model) pick(t *rapid.T) *follower {
	if len(m.followers) == 0 {
		t.Skip("no subscription")
	}
	return rapid.SampledFrom(m.followers).Draw(t, "subscription")
}

func (m *model) close(t *rapid.T) {
	f := m.pick(t)
	f.sub.Close()
	if _, _, err := try(f.sub); !errors.Is(err, watch.ErrClosed) {
		t.Fatalf("a closed subscription answered %v", err)
	}
	m.followers = slices.DeleteFunc(m.followers, func(g *follower) bool { return f == g })
}

func (m *model) read(t *rapid.T) {
	f := m.pick(t)
	for range rapid.IntRange(1, 10).Draw(t, "batches") {
		if !m.step(t, f) {
			return
		}
	}
}

func (m *model) drain(t *rapid.T, f *follower) {
	for m.step(t, f) { //nolint:revive // the step is the work
	}
}

// step reads one batch and compares it with the log; it reports whether there
// may be more.
func (m *model) step(t *rapid.T, f *follower) bool {
	expected := f.sub.Err()
	b, ok, err := try(f.sub)
	var behind *watch.SlowError
	if err == nil && errors.As(expected, &behind) && behind.Last+1 >= behind.Oldest {
		m.behind(t, behind) // too far behind, but Next goes on
	} else if fmt.Sprint(expected) != fmt.Sprint(err) {
		t.Fatalf("Err said %v, Next %v", expected, err)
	}
	if err != nil {
		m.failed(t, f, err)
		return false
	}
	upTo := m.published
	if ok {
		upTo = b.Revision
		if b.Revision <= f.told || b.Revision > m.published {
			t.Fatalf("told %d after %d with %d published", b.Revision, f.told, m.published)
		}
	}
	if f.inc != m.inc {
		t.Fatalf("a subscription of incarnation %d goes on in %d", f.inc, m.inc)
	}
	for _, ev := range m.src.after(f.told) {
		if ev.Revision > upTo {
			break
		}
		want := m.src.wanted(ev, f.opts.Filter, f.opts.Before)
		if b.Event != nil && ev.Revision == b.Revision {
			m.compare(t, f, ev, b, want)
		} else if len(want) > 0 {
			t.Fatalf("event %d was left out: told %d, then %d (answered %v)", ev.Revision, f.told, b.Revision, ok)
		}
	}
	if ok {
		f.told = b.Revision
	}
	return ok
}

func (m *model) compare(t *rapid.T, f *follower, ev *catalog.Event, b watch.Batch, want []catalog.Change) {
	full := *ev
	full.Changes = want
	if diff := cmp.Diff(&full, b.Event, sameRows); diff != "" {
		t.Fatalf("event %d under %+v (-want +got):\n%s", ev.Revision, f.opts, diff)
	}
	if (b.Entry != nil) != (len(want) == len(ev.Changes)) || b.Entry != nil && b.Entry.Event() != b.Event {
		t.Fatalf("event %d has %d of %d changes and entry %v", ev.Revision, len(want), len(ev.Changes), b.Entry)
	}
}

// failed checks that an end was justified and begins again as a client would.
func (m *model) failed(t *rapid.T, f *follower, err error) {
	f.sub.Close()
	m.followers = slices.DeleteFunc(m.followers, func(g *follower) bool { return f == g })
	var (
		slow      *watch.SlowError
		compacted *watch.CompactedError
		restored  *watch.RestoredError
	)
	next := f.opts
	next.From = m.published
	switch {
	case errors.As(err, &restored):
		other := f.inc != m.inc
		if !other && (!f.opts.Incarnation.Set || f.opts.Incarnation.V == incarnation(m.inc)) {
			t.Fatalf("restored without a restore: %v", err)
		}
		next.Incarnation = catalog.Opt[catalog.Incarnation]{}
	case errors.As(err, &compacted):
		if f.told+1 >= compacted.Oldest {
			t.Fatalf("compacted at %d: %v", f.told, err)
		}
	case errors.As(err, &slow):
		m.cut(t, f, slow)
	default:
		t.Fatal(err)
	}
	m.begin(t, next)
}

func (m *model) cut(t *rapid.T, f *follower, err *watch.SlowError) {
	for _, ev := range m.src.after(f.told) {
		if ev.Revision <= err.Last && len(m.src.wanted(ev, f.opts.Filter, true)) > 0 {
			t.Fatalf("event %d was left out before %v", ev.Revision, err)
		}
	}
	if err.Last+1 >= err.Oldest {
		t.Fatalf("cut within the history: %v", err)
	}
}

// behind checks that a reader is as far behind as Err says.
func (m *model) behind(t *rapid.T, err *watch.SlowError) {
	var bytes int64
	for _, ev := range m.src.after(err.Last) {
		bytes += watch.EventSize(ev) + 1000
	}
	if bytes <= m.cfg.MaxPending {
		t.Fatalf("at most %d bytes behind, %d are allowed: %v", bytes, m.cfg.MaxPending, err)
	}
}
