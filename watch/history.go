package watch

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// History holds the recent events of a catalog and serves them to subscribers.
//
// Publish and Reset belong to one goroutine, the one that applies commands; all
// other methods may be called by any.
type History struct {
	cfg    Config
	cur    atomic.Pointer[era]
	closed atomic.Bool

	// signal wakes one waiting subscriber, which then opens the gate for all
	// others. It holds one token, so that a token sent while nobody waits is
	// taken by the next one that would.
	signal chan struct{}
	gate   atomic.Pointer[gate]
	// signalled is the last revision that woke anybody. The publisher's own.
	signalled catalog.Revision
	// every is the smallest distance of bookmarks that an open subscription
	// wants; 0: none wants any.
	every atomic.Uint64

	subs struct {
		sync.Mutex
		open      int
		bookmarks map[catalog.Revision]int // open subscriptions by distance
	}
}

// gate is closed to wake everybody that waits at it.
type gate struct{ ch chan struct{} }

// Stats are figures of a history at about one moment.
type Stats struct {
	Incarnation catalog.Incarnation
	// Oldest is the first revision that can be delivered, Current the last one
	// published.
	Oldest, Current catalog.Revision
	Events          int
	Bytes           int64
	Subscriptions   int
}

// New returns an empty history at revision 0 of no incarnation. The first
// incarnation it learns, from Reset or a published ActivateIncarnation, names
// it; subscriptions begun before go on.
func New(cfg Config) *History {
	h := &History{cfg: cfg.withDefaults(), signal: make(chan struct{}, 1)}
	h.subs.bookmarks = make(map[catalog.Revision]int)
	h.cur.Store(newEra(catalog.Incarnation{}, 0))
	h.gate.Store(&gate{make(chan struct{})})
	return h
}

// Publish appends what one applied batch changed and moves the current revision
// to rev, after the state at rev is visible to readers. Events rise in revision
// and are at most rev; there may be none. The history keeps them, so they must
// not be changed. Events at or below the current revision are known already and
// are dropped, so that entries may be applied again after a snapshot.
//
// It never waits for a subscriber, and its cost does not depend on their number.
//
// An ActivateIncarnation of another incarnation than the known one begins a new
// history above its revision.
func (h *History) Publish(rev catalog.Revision, events []*catalog.Event) {
	e := h.cur.Load()
	known := e.currentRevision()
	paths := pathFinder{state: h.cfg.TablePath, events: events}
	for _, ev := range events {
		if ev.Revision <= known {
			continue
		}
		if inc, ok := activated(ev); ok && !e.adopt(inc) {
			next := newEra(inc, ev.Revision)
			h.cur.Store(next)
			e.end(inc)
			e = next
			continue
		}
		e.append(newRecord(e, ev, paths.of(ev)))
	}
	h.advance(e, rev, len(events) > 0)
}

// Reset tells that the state was replaced by one at rev of an incarnation,
// through a restore or the install of a snapshot. events are the snapshot's
// tail: the newest events of that incarnation up to rev, without gaps from the
// first to rev; they seed the history.
//
// In the same incarnation subscriptions go on without a gap, duplicate or
// regression where the old history, the tail or their position cover what comes
// next; the others end with a CompactedError. In another one all end with a
// RestoredError.
func (h *History) Reset(inc catalog.Incarnation, rev catalog.Revision, events []*catalog.Event) {
	floor := rev
	if len(events) > 0 {
		floor = events[0].Revision - 1
	}
	paths := pathFinder{state: h.cfg.TablePath, events: events}
	e := h.cur.Load()
	if !e.adopt(inc) {
		next := newEra(inc, floor)
		for _, ev := range events {
			next.append(newRecord(next, ev, paths.of(ev)))
		}
		next.current.Store(uint64(rev))
		h.cur.Store(next)
		e.end(inc)
		h.advance(next, rev, true)
		return
	}
	known := e.currentRevision()
	if floor > known {
		e.gap(floor)
	}
	for _, ev := range events {
		if ev.Revision > known {
			e.append(newRecord(e, ev, paths.of(ev)))
		}
	}
	h.advance(e, rev, true)
}

// advance moves the current revision, keeps the bounds and wakes who waits.
func (h *History) advance(e *era, rev catalog.Revision, changed bool) {
	if rev > e.currentRevision() {
		e.current.Store(uint64(rev))
	}
	e.trim(catalog.Revision(h.cfg.MaxRevisions), h.cfg.MaxBytes)
	every := catalog.Revision(h.every.Load())
	if changed || every > 0 && (rev < h.signalled || rev-h.signalled >= every) {
		h.signalled = rev
		h.wake()
	}
}

// adopt reports whether the era is of an incarnation; one of none becomes it.
func (e *era) adopt(inc catalog.Incarnation) bool {
	have := *e.incarnation.Load()
	if have.IsZero() && !inc.IsZero() {
		e.incarnation.Store(&inc)
		return true
	}
	return have == inc
}

// activated returns the incarnation that an event begins.
func activated(ev *catalog.Event) (catalog.Incarnation, bool) {
	if ev.Kind != catalog.KindActivateIncarnation {
		return catalog.Incarnation{}, false
	}
	for _, c := range ev.Changes {
		if row, ok := c.After.(*catalog.Cluster); ok {
			return row.Incarnation, true
		}
	}
	return catalog.Incarnation{}, false
}

// wake makes sure that everybody who waits looks again, without waiting for
// anybody. If the token is still there, whoever takes it does so after what the
// caller published.
func (h *History) wake() {
	select {
	case h.signal <- struct{}{}:
	default:
	}
}

// openGate wakes all others that wait.
func (h *History) openGate() {
	close(h.gate.Swap(&gate{make(chan struct{})}).ch)
}

// Tail returns the events that a snapshot of the current state carries: those
// of the last maxRevisions revisions, at most maxBytes of them by estimate, in
// rising order, without gaps up to the current revision. The newest event is
// returned however old and large it is, if it is still kept, so that readers
// who saw it can go on. The slice is the caller's, the events are shared.
func (h *History) Tail(maxRevisions, maxBytes int) []*catalog.Event {
	return h.cur.Load().last(catalog.Revision(max(maxRevisions, 0)), int64(maxBytes))
}

// Stats returns the figures that a metric or a status shows.
func (h *History) Stats() Stats {
	e := h.cur.Load()
	tail, head := e.tail.Load(), e.head.Load()
	oldest, current := e.span()
	s := Stats{
		Incarnation: *e.incarnation.Load(), Oldest: oldest, Current: current,
		Events: int(head - min(tail, head)), Bytes: e.bytes(),
	}
	h.subs.Lock()
	s.Subscriptions = h.subs.open
	h.subs.Unlock()
	return s
}

// Close ends all subscriptions with ErrClosed and refuses new ones. Publish and
// Reset stay harmless. It may be called more than once.
func (h *History) Close() {
	h.closed.Store(true)
	h.wake()
}

// enrol counts a subscription in, or with n = -1 out.
func (h *History) enrol(n int, bookmarks catalog.Revision) {
	h.subs.Lock()
	defer h.subs.Unlock()
	h.subs.open += n
	if bookmarks == 0 {
		return
	}
	if h.subs.bookmarks[bookmarks] += n; h.subs.bookmarks[bookmarks] == 0 {
		delete(h.subs.bookmarks, bookmarks)
	}
	least := catalog.Revision(math.MaxUint64)
	for every := range h.subs.bookmarks {
		least = min(least, every)
	}
	if len(h.subs.bookmarks) == 0 {
		least = 0
	}
	h.every.Store(uint64(least))
}

// pathFinder names the tables of partitions. A table's path never changes and
// an id is never reused, so any row of the table will do.
type pathFinder struct {
	state  func(catalog.TableID) (string, bool)
	events []*catalog.Event
	// written are the tables that the events write, once needed.
	written map[catalog.TableID]string
}

// of returns the paths for the partitions of an event, sorted by id.
func (f *pathFinder) of(ev *catalog.Event) []tablePath {
	var out []tablePath
	for _, c := range ev.Changes {
		o := c.After
		if o == nil {
			o = c.Before
		}
		p, ok := o.(*catalog.Partition)
		if !ok || len(out) > 0 && out[len(out)-1].id == p.Table {
			continue
		}
		out = append(out, tablePath{id: p.Table})
	}
	if len(out) > 1 {
		slices.SortFunc(out, func(a, b tablePath) int { return cmp.Compare(a.id, b.id) })
		out = slices.Clip(slices.Compact(out))
	}
	for i := range out {
		out[i].path = f.path(out[i].id)
	}
	return out
}

func (f *pathFinder) path(id catalog.TableID) string {
	if p, ok := f.state(id); ok {
		return p
	}
	if f.written == nil {
		f.written = make(map[catalog.TableID]string)
		for _, ev := range f.events {
			for _, c := range ev.Changes {
				f.note(c.Before)
				f.note(c.After)
			}
		}
	}
	return f.written[id]
}

func (f *pathFinder) note(o catalog.Object) {
	switch row := o.(type) {
	case *catalog.Table:
		f.written[row.ID] = row.Path
	case *catalog.DroppedObject:
		f.written[row.Table] = row.Path
	}
}
