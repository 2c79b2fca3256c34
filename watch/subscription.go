package watch

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// Options say what a subscription gets.
type Options struct {
	// From is exclusive: the first event is above it. It may be in the future.
	From catalog.Revision
	// Incarnation is the history that From was seen in. Unset: the current one.
	Incarnation catalog.Opt[catalog.Incarnation]
	Filter      Filter
	// Before asks for the rows before a change. Without it Change.Before is set
	// for deleted rows alone.
	Before bool
	// Bookmarks asks for batches without an event that tell how far the
	// subscription is: one when it first caught up, unless the last event says
	// the same, then one whenever nothing was told for BookmarkEvery revisions
	// and no event is waiting. An idle one may be late by as many again.
	Bookmarks bool
	// BookmarkEvery overrides Config.BookmarkEvery; 0 does not.
	BookmarkEvery catalog.Revision
}

// Hello is what a subscription begins with.
type Hello struct {
	// Incarnation is zero while the node does not know its history yet.
	Incarnation catalog.Incarnation
	// Oldest is the first revision that could be delivered, Current the last one
	// published, when the subscription began.
	Oldest, Current catalog.Revision
}

// Batch is what one command changed, or a bookmark.
type Batch struct {
	// Revision of the command, or up to which everything was told.
	Revision catalog.Revision
	// Event is nil for a bookmark. It is immutable and may be shared.
	Event *catalog.Event
	// Entry is set if Event is all the command changed: it is then shared by all
	// subscriptions that get this form, and so is Entry.Encoded.
	Entry *Entry
}

// Bookmark reports whether the batch tells a position only.
func (b Batch) Bookmark() bool { return b.Event == nil }

// scanLimit is how many records Next looks at before it looks at its context.
const scanLimit = 256

// Subscription is a position in a history. Next is for one goroutine at a time;
// all other methods may be called by any.
type Subscription struct {
	h      *History
	era    *era
	hello  Hello
	filter filter
	want   catalog.Incarnation // not zero: to be compared once the era has one
	before bool
	synced bool // has caught up once
	every  catalog.Revision
	// marked is the last revision told: From, an event's or a bookmark's.
	marked catalog.Revision
	// place is the next record to look at, last the revision up to which
	// everything was told, allow how many bytes the subscription may be behind.
	// The reader alone writes them.
	place, last atomic.Uint64
	allow       atomic.Int64
	failure     error // final, the reader's own
	done        chan struct{}
	close       sync.Once
}

// Subscribe begins a subscription, which the caller must Close. The error is a
// *CompactedError if events after o.From are gone, a *RestoredError if
// o.Incarnation is not the current one, a *catalog.Error for a wrong filter, or
// ErrClosed.
func (h *History) Subscribe(o Options) (*Subscription, error) {
	f, err := o.Filter.compile()
	if err != nil {
		return nil, err
	}
	s := &Subscription{h: h, filter: f, before: o.Before, marked: o.From, done: make(chan struct{})}
	s.last.Store(uint64(o.From))
	if o.Bookmarks {
		s.every = h.cfg.BookmarkEvery
		if o.BookmarkEvery > 0 {
			s.every = o.BookmarkEvery
		}
	}
	if o.Incarnation.Set {
		s.want = o.Incarnation.V
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	h.enrol(1, s.every)
	return s, nil
}

// enter finds the first place to look at. An era that ends meanwhile is left
// for its successor.
func (s *Subscription) enter() error {
	for {
		if s.h.closed.Load() {
			return ErrClosed
		}
		e := s.h.cur.Load()
		s.era = e
		err := s.unwanted()
		place, ok := e.find(catalog.Revision(s.last.Load()))
		switch {
		case e.successor.Load() != nil:
			continue
		case err != nil:
			return err
		case !ok:
			return &CompactedError{Oldest: e.floorRevision() + 1}
		}
		s.place.Store(place)
		s.allow.Store(e.lag(place) + s.h.cfg.MaxPending)
		oldest, current := e.span()
		s.hello = Hello{Incarnation: *e.incarnation.Load(), Oldest: oldest, Current: current}
		return nil
	}
}

// lag is how many bytes of events are published from a place on.
func (e *era) lag(place uint64) int64 {
	if r := e.at(place); r != nil {
		return e.total.Load() - r.start
	}
	return 0
}

// Hello returns what the subscription began with.
func (s *Subscription) Hello() Hello { return s.hello }

// Next returns the next matching batch, waiting for it as long as ctx lasts. An
// error of ctx leaves the subscription as it is; every other error is final and
// is returned again by later calls.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	if s.failure != nil {
		return Batch{}, s.failure
	}
	for {
		if err := ctx.Err(); err != nil {
			return Batch{}, err
		}
		g := s.h.gate.Load()
		b, what, err := s.scan()
		if err != nil {
			s.failure = err
			return Batch{}, err
		}
		switch what {
		case foundBatch:
			return b, nil
		case foundMore:
			continue
		case foundEnd:
		}
		select {
		case <-g.ch:
		case <-s.h.signal:
			s.h.openGate()
		case <-ctx.Done():
		case <-s.done:
		}
	}
}

type found uint8

const (
	foundEnd   found = iota // nothing to tell now
	foundMore               // more records to look at
	foundBatch              // a batch to return
)

// scan looks at a bounded number of records.
func (s *Subscription) scan() (Batch, found, error) {
	for range scanLimit {
		if s.closed() {
			return Batch{}, foundEnd, ErrClosed
		}
		if err := s.replaced(); err != nil {
			return Batch{}, foundEnd, err
		}
		current := s.era.currentRevision() // before head: see era
		place := s.place.Load()
		if place >= s.era.head.Load() {
			b, ok := s.bookmark(current)
			if ok {
				return b, foundBatch, nil
			}
			return Batch{}, foundEnd, nil
		}
		r := s.era.at(place)
		if r == nil {
			if err := s.relocate(); err != nil {
				return Batch{}, foundEnd, err
			}
			continue
		}
		if b, ok := s.take(r); ok {
			return b, foundBatch, nil
		}
	}
	return Batch{}, foundMore, nil
}

// bookmark is called with everything up to current told.
func (s *Subscription) bookmark(current catalog.Revision) (Batch, bool) {
	if current < catalog.Revision(s.last.Load()) {
		return Batch{}, false
	}
	s.last.Store(uint64(current))
	s.allow.Store(s.h.cfg.MaxPending)
	first := !s.synced
	s.synced = true
	if s.every == 0 || current <= s.marked || !first && current-s.marked < s.every {
		return Batch{}, false
	}
	s.marked = current
	return Batch{Revision: current}, true
}

// take moves over a record and returns what of it is to be told.
func (s *Subscription) take(r *record) (Batch, bool) {
	s.place.Add(1)
	if uint64(r.rev) <= s.last.Load() {
		return Batch{}, false
	}
	lag := s.era.total.Load() - r.start
	s.allow.Store(min(s.allow.Load(), lag+s.h.cfg.MaxPending))
	ev, entry := r.selected(&s.filter, s.before)
	s.last.Store(uint64(r.rev))
	if ev == nil {
		return Batch{}, false
	}
	s.marked = r.rev
	return Batch{Revision: r.rev, Event: ev, Entry: entry}, true
}

// relocate is called when the record at the place is gone: that is harmless if
// all that is gone was told before or is not wanted.
func (s *Subscription) relocate() error {
	if err := s.replaced(); err != nil {
		return err
	}
	place, ok := s.era.find(catalog.Revision(s.last.Load()))
	if !ok {
		return s.slow()
	}
	s.place.Store(place)
	return nil
}

// replaced returns an error if another incarnation than the one followed or
// wanted is current.
func (s *Subscription) replaced() error {
	if s.era.successor.Load() != nil {
		return &RestoredError{Incarnation: *s.h.cur.Load().incarnation.Load()}
	}
	return s.unwanted()
}

// unwanted returns an error if the era is known not to be the one asked for.
func (s *Subscription) unwanted() error {
	if s.want.IsZero() {
		return nil
	}
	inc := *s.era.incarnation.Load()
	if !inc.IsZero() && inc != s.want {
		return &RestoredError{Incarnation: inc}
	}
	return nil
}

func (s *Subscription) slow() error {
	last, oldest := catalog.Revision(s.last.Load()), s.era.floorRevision()+1
	if s.era.installed.Load() > uint64(last) {
		return &CompactedError{Oldest: oldest}
	}
	return &SlowError{Last: last, Oldest: oldest}
}

// Err returns the error that Next would end with now, or a *SlowError if the
// subscription is further behind than Config.MaxPending allows, or nil. A
// server whose peer stopped taking what it sends asks it from time to time, to
// cut that peer; nobody else loses by a reader that is behind. Next itself ends
// only when the history is left: a reader that is late because the machine is
// busy catches up.
func (s *Subscription) Err() error {
	if s.closed() {
		return ErrClosed
	}
	if err := s.replaced(); err != nil {
		return err
	}
	last := catalog.Revision(s.last.Load())
	place, ok := s.era.find(last)
	if !ok && s.era.tail.Load() > s.place.Load() {
		return s.slow()
	}
	r := s.era.at(max(place, s.place.Load()))
	if r != nil && s.era.total.Load()-r.start > s.allow.Load() {
		// Everything before the next event was told, quiet revisions included.
		return &SlowError{Last: max(last, r.rev-1), Oldest: s.era.floorRevision() + 1}
	}
	return nil
}

// Last returns the revision up to which everything was told, the batch that Next
// returned last included: a subscription From it goes on exactly here.
func (s *Subscription) Last() catalog.Revision { return catalog.Revision(s.last.Load()) }

func (s *Subscription) closed() bool {
	if s.h.closed.Load() {
		return true
	}
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Close ends the subscription; a waiting Next returns ErrClosed. It may be
// called more than once.
func (s *Subscription) Close() {
	s.close.Do(func() {
		close(s.done)
		s.h.enrol(-1, s.every)
	})
}
