package watch

import (
	"slices"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// segmentSize is how many records one segment holds.
const segmentSize = 256

// segment is a part of the array of records. A slot is written when its record
// is published and emptied when it is trimmed.
type segment [segmentSize]atomic.Pointer[record]

// spine is the list of segments; first is the number of segs[0]. It is
// immutable, but successors share and extend the array behind segs.
type spine struct {
	first uint64
	segs  []*segment
}

// era is the history of one incarnation: records numbered without gaps by
// place. The publisher writes, any goroutine reads without locks.
//
// Invariant: tail <= head; slots in [tail, head) are filled, others empty.
// Invariant: every event of the incarnation in (floor, current] is in a slot.
//
// The order of the publisher's stores is what readers rely on: slot, head,
// current when it appends; floor, tail, slot when it trims. So a reader that
// loads current before head and is at head has seen every event up to current,
// and one that finds a slot below head empty sees the floor that emptied it.
type era struct {
	spine      atomic.Pointer[spine]
	tail, head atomic.Uint64
	current    atomic.Uint64
	floor      atomic.Uint64
	// installed is the floor set by the last snapshot that left a gap.
	installed atomic.Uint64
	// total counts bytes ever published, extra those made since for subscribers.
	total, extra atomic.Int64
	// incarnation is zero until the first one is known.
	incarnation atomic.Pointer[catalog.Incarnation]
	// successor is set when another incarnation replaced the era.
	successor atomic.Pointer[catalog.Incarnation]
}

func newEra(inc catalog.Incarnation, floor catalog.Revision) *era {
	e := &era{}
	e.spine.Store(&spine{})
	e.incarnation.Store(&inc)
	e.floor.Store(uint64(floor))
	e.current.Store(uint64(floor))
	return e
}

func (e *era) floorRevision() catalog.Revision   { return catalog.Revision(e.floor.Load()) }
func (e *era) currentRevision() catalog.Revision { return catalog.Revision(e.current.Load()) }

// span returns the first revision that can be delivered and the current one.
// While a snapshot is being installed the floor is ahead of current.
func (e *era) span() (oldest, current catalog.Revision) {
	floor := e.floorRevision()
	return floor + 1, max(e.currentRevision(), floor)
}

// at returns the record at a place, or nil if it is trimmed or not published.
func (e *era) at(place uint64) *record {
	sp := e.spine.Load()
	i := place/segmentSize - sp.first // wraps around below the first segment
	if i >= uint64(len(sp.segs)) {
		return nil
	}
	return sp.segs[i][place%segmentSize].Load()
}

// append publishes a record at head.
func (e *era) append(r *record) {
	place := e.head.Load()
	sp := e.spine.Load()
	number := place / segmentSize
	if len(sp.segs) == 0 {
		sp = &spine{first: number}
	}
	if number-sp.first == uint64(len(sp.segs)) {
		sp = &spine{first: sp.first, segs: append(sp.segs, new(segment))}
		e.spine.Store(sp)
	}
	r.start = e.total.Load()
	sp.segs[number-sp.first][place%segmentSize].Store(r)
	e.total.Add(r.size)
	e.head.Store(place + 1)
}

// bytes is what the history keeps alive.
func (e *era) bytes() int64 {
	r := e.at(e.tail.Load())
	if r == nil {
		return 0
	}
	return e.total.Load() - r.start + e.extra.Load()
}

// trim drops the oldest records until the bounds are kept.
func (e *era) trim(maxRevisions catalog.Revision, maxBytes int64) {
	floor := e.floorRevision()
	if c := e.currentRevision(); c > maxRevisions {
		floor = max(floor, c-maxRevisions)
	}
	tail, head := e.tail.Load(), e.head.Load()
	bytes := e.bytes()
	for ; tail < head; tail++ {
		r := e.at(tail)
		if r.rev > floor && (bytes <= maxBytes || tail == head-1) {
			break
		}
		bytes -= r.size + max(r.extra.Load(), 0)
		floor = max(floor, r.rev)
	}
	e.cut(tail, floor)
}

// cut drops everything before a place.
func (e *era) cut(tail uint64, floor catalog.Revision) {
	old := e.tail.Load()
	e.floor.Store(uint64(floor))
	if tail == old {
		return
	}
	e.tail.Store(tail)
	sp := e.spine.Load()
	for p := old; p < tail; p++ {
		if i := p/segmentSize - sp.first; i < uint64(len(sp.segs)) {
			if r := sp.segs[i][p%segmentSize].Swap(nil); r != nil {
				r.release()
			}
		}
	}
	if gone := tail/segmentSize - sp.first; gone > 0 && len(sp.segs) > 0 {
		gone = min(gone, uint64(len(sp.segs)))
		e.spine.Store(&spine{first: sp.first + gone, segs: sp.segs[gone:]})
	}
}

// gap drops everything and goes on above floor. The place at head stays empty,
// so that a reader that waits there notices.
func (e *era) gap(floor catalog.Revision) {
	e.installed.Store(uint64(floor))
	head := e.head.Load()
	e.cut(head, floor)
	e.head.Store(head + 1)
	e.cut(head+1, floor)
}

// end marks the era as replaced and frees what it holds.
func (e *era) end(inc catalog.Incarnation) {
	e.successor.Store(&inc)
	e.cut(e.head.Load(), e.currentRevision())
}

// find returns the place of the first event above a revision; ok is false if
// events between the two are gone.
func (e *era) find(from catalog.Revision) (place uint64, ok bool) {
	lo, hi := e.tail.Load(), e.head.Load()
	for lo < hi {
		mid := lo + (hi-lo)/2
		if r := e.at(mid); r == nil || r.rev <= from {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, from >= e.floorRevision()
}

// last returns events in rising order, from the newest back.
func (e *era) last(revisions catalog.Revision, bytes int64) []*catalog.Event {
	var above catalog.Revision
	if c := e.currentRevision(); c > revisions {
		above = c - revisions
	}
	var out []*catalog.Event
	for p := e.head.Load(); p > 0; p-- {
		r := e.at(p - 1)
		if r == nil {
			break
		}
		bytes -= r.size
		if len(out) > 0 && (r.rev <= above || bytes < 0) {
			break
		}
		out = append(out, r.full.event)
	}
	slices.Reverse(out)
	return out
}
