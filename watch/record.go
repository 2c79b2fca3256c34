package watch

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// Entry is one whole event of the history, shared by all subscriptions that
// get all of it in the same form, with or without before-values.
type Entry struct {
	event *catalog.Event
	rec   *record
	once  sync.Once
	bytes []byte
}

// Event returns the event. It is immutable.
func (e *Entry) Event() *catalog.Event { return e.event }

// Encoded returns the result of the first call's encode and keeps it, counted
// in the bytes of the history, while the event is kept. encode runs at most
// once; concurrent callers wait for it. All callers must encode alike, and must
// not change what they get.
func (e *Entry) Encoded(encode func() []byte) []byte {
	e.once.Do(func() {
		e.bytes = encode()
		e.rec.grow(int64(len(e.bytes)))
	})
	return e.bytes
}

// record is one event in the history.
type record struct {
	rev   catalog.Revision
	size  int64 // estimate when published
	start int64 // bytes published before it
	era   *era
	full  Entry
	// plain is full without the before-values of rows that still exist, made by
	// the first subscription that needs it.
	plain     *Entry
	plainOnce sync.Once
	// paths of the tables that partitions of the event belong to, by id.
	paths []tablePath
	// extra are bytes made since for subscribers; negative: trimmed, count no more.
	extra atomic.Int64
}

type tablePath struct {
	id   catalog.TableID
	path string
}

func newRecord(e *era, ev *catalog.Event, paths []tablePath) *record {
	r := &record{rev: ev.Revision, era: e, paths: paths, size: eventSize(ev)}
	for _, p := range paths {
		r.size += int64(textBytes + len(p.path))
	}
	r.full.event, r.full.rec = ev, r
	return r
}

// path returns the path of a table that a partition of the event belongs to.
func (r *record) path(id catalog.TableID) string {
	i, ok := slices.BinarySearchFunc(r.paths, id, func(p tablePath, id catalog.TableID) int { return cmp.Compare(p.id, id) })
	if !ok {
		return ""
	}
	return r.paths[i].path
}

// grow counts bytes made for subscribers, unless the record was trimmed.
func (r *record) grow(n int64) {
	for {
		v := r.extra.Load()
		if v < 0 {
			return
		}
		if r.extra.CompareAndSwap(v, v+n) {
			r.era.extra.Add(n)
			return
		}
	}
}

// release takes the bytes made for subscribers out of the count, for good.
func (r *record) release() {
	if n := r.extra.Swap(-1); n > 0 {
		r.era.extra.Add(-n)
	}
}

// entry returns the shared form with or without before-values.
func (r *record) entry(before bool) *Entry {
	if before {
		return &r.full
	}
	r.plainOnce.Do(func() {
		if !slices.ContainsFunc(r.full.event.Changes, hasBefore) {
			r.plain = &r.full
			return
		}
		ev := *r.full.event
		ev.Changes = make([]catalog.Change, len(r.full.event.Changes))
		for i, c := range r.full.event.Changes {
			ev.Changes[i] = plainChange(c)
		}
		r.plain = &Entry{event: &ev, rec: r}
		r.grow(int64(len(ev.Changes))*changeBytes + rowBytes)
	})
	return r.plain
}

// hasBefore reports whether a change carries a value that only a subscriber who
// asked for before-values gets.
func hasBefore(c catalog.Change) bool { return c.Before != nil && c.After != nil }

func plainChange(c catalog.Change) catalog.Change {
	if hasBefore(c) {
		c.Before = nil
	}
	return c
}

// selected returns the part of the event that passes a filter: the shared entry
// if that is all of it, else an event of its own, or nothing.
func (r *record) selected(f *filter, before bool) (*catalog.Event, *Entry) {
	if f.all() {
		e := r.entry(before)
		return e.event, e
	}
	all := r.full.event.Changes
	n := 0
	for _, c := range all {
		if f.match(r, c) {
			n++
		}
	}
	switch n {
	case 0:
		return nil, nil
	case len(all):
		e := r.entry(before)
		return e.event, e
	}
	ev := *r.full.event
	ev.Changes = make([]catalog.Change, 0, n)
	for _, c := range all {
		if !f.match(r, c) {
			continue
		}
		if !before {
			c = plainChange(c)
		}
		ev.Changes = append(ev.Changes, c)
	}
	return &ev, nil
}
