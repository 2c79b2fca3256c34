package routing

import (
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// floorLimit bounds the floors that a layout remembers.
const floorLimit = 4096

// partitionSet holds partitions by name and by id, and what may not come back.
type partitionSet struct {
	names  shardMap[string, *LayoutPartition]
	ids    shardMap[catalog.PartitionID, *LayoutPartition]
	floors shardMap[string, partitionFloor]
	// floor stands for the floors that were too many: a partition that is not known must have been read at it or later.
	floor catalog.Revision
	// first holds for each slot of a name the first partition that was asked for, to spare most routes the hashing.
	// Invariant: a partition of names.
	first [recentSlots]atomic.Pointer[LayoutPartition]
}

const recentSlots = 256

// recent is byName for names that are asked for again and again.
func (s *partitionSet) recent(name string) *LayoutPartition {
	n := len(name)
	h := uint32(n)
	if n >= 8 { // the ends of names differ
		h += uint32(name[n-1]) | uint32(name[n-2])<<8 | uint32(name[n-3])<<16 | uint32(name[n-4])<<24
		h ^= (uint32(name[n-5]) | uint32(name[n-6])<<8 | uint32(name[n-7])<<16 | uint32(name[n-8])<<24) * 31
	} else {
		for i := range n {
			h = h*31 + uint32(name[i])
		}
	}
	slot := &s.first[h*0x9e3779b1>>24]
	p := slot.Load()
	if p != nil && p.Name == name {
		return p
	}
	found := s.byName(name)
	if p == nil && found != nil { // who came first stays: others would take turns in it
		slot.CompareAndSwap(nil, found)
	}
	return found
}

// partitionFloor says what an answer must be at least to bring a name back.
type partitionFloor struct {
	id       catalog.PartitionID
	revision catalog.Revision
}

func (s *partitionSet) byName(name string) *LayoutPartition {
	return s.names.m[nameShard(name)][name]
}

func (s *partitionSet) byNameBytes(name []byte) *LayoutPartition {
	return s.names.m[bytesShard(name)][string(name)]
}

func (s *partitionSet) byID(id catalog.PartitionID) *LayoutPartition {
	return s.ids.m[partitionShard(id)][id]
}

// partitionEdit makes a changed copy of a partitionSet.
type partitionEdit struct {
	names  shardEdit[string, *LayoutPartition]
	ids    shardEdit[catalog.PartitionID, *LayoutPartition]
	floors shardEdit[string, partitionFloor]
	floor  catalog.Revision
}

func (s *partitionSet) edit() *partitionEdit {
	return &partitionEdit{names: s.names.edit(), ids: s.ids.edit(), floors: s.floors.edit(), floor: s.floor}
}

func (e *partitionEdit) done() *partitionSet {
	return &partitionSet{names: *e.names.to, ids: *e.ids.to, floors: *e.floors.to, floor: e.floor}
}

// put adds a partition unless what is known is newer. Ids rise and are never reused: of two partitions of one name the
// higher id is the later one, whatever the revisions they were read at. complete is the revision of the last complete
// layout.
func (e *partitionEdit) put(p *LayoutPartition, complete catalog.Revision) {
	h := nameShard(p.Name)
	switch held := e.names.to.m[h][p.Name]; {
	case held == nil:
		f := e.floors.to.m[h][p.Name]
		if p.Revision < max(complete, e.floor, f.revision) || p.ID < f.id {
			return
		}
	case p.ID < held.ID, p.ID == held.ID && p.Revision <= held.Revision:
		return
	default:
		e.ids.delete(partitionShard(held.ID), held.ID)
	}
	e.names.set(h, p.Name, p)
	e.ids.set(partitionShard(p.ID), p.ID, p)
	e.floors.delete(h, p.Name)
}

func (e *partitionEdit) remove(p *LayoutPartition) {
	e.names.delete(nameShard(p.Name), p.Name)
	e.ids.delete(partitionShard(p.ID), p.ID)
}

// raise sets a floor of a name. Floors that are too many become one floor for all that is not known.
func (e *partitionEdit) raise(name string, f partitionFloor, now catalog.Revision) {
	h := nameShard(name)
	old := e.floors.to.m[h][name]
	e.floors.set(h, name, partitionFloor{max(f.id, old.id), max(f.revision, old.revision)})
	if e.floors.to.n > floorLimit {
		e.floors, e.floor = (&shardMap[string, partitionFloor]{}).edit(), max(e.floor, now)
	}
}

// Newer reports whether l was read later than o: of two incarnations the later one counts, then the higher table id,
// then the revision. Layouts of tables with different paths are not ordered.
func (l *Layout) Newer(o *Layout) bool {
	if o == nil {
		return true
	}
	if c := l.incarnation.Compare(o.incarnation); c != 0 {
		return c > 0
	}
	if l.table.ID != o.table.ID {
		return l.table.ID > o.table.ID
	}
	return l.revision > o.revision
}

// With returns a layout that knows what both know. The order in which answers are put together does not matter:
//
//   - An older incarnation, or an older table of the same path, adds nothing to a newer one.
//   - The table's row and the revision are those of the later one.
//   - Each partition is the one read later; an older answer still adds partitions that the newer one does not name.
//   - A complete layout removes partitions that were read before it and that it does not have.
//
// It costs the size of o, not of l, unless o is complete.
func (l *Layout) With(o *Layout) *Layout {
	if l.incarnation != o.incarnation || l.table.ID != o.table.ID || l.whole != nil || o.whole != nil {
		if o.Newer(l) {
			return o
		}
		return l
	}
	out, e := *l, l.parts.edit()
	out.floor = max(l.floor, o.floor)
	if o.revision > l.revision {
		out.revision, out.table, out.keys, out.columns = o.revision, o.table, o.keys, o.columns
		out.complete = o.complete
	} else if o.revision == l.revision {
		out.complete = l.complete || o.complete
	}
	if o.floor > l.floor {
		l.parts.ids.each(func(id catalog.PartitionID, p *LayoutPartition) {
			if p.Revision < o.floor && o.parts.byID(id) == nil {
				e.remove(p)
			}
		})
	}
	e.floor = max(e.floor, o.parts.floor)
	if o.parts.floors.n > 0 {
		o.parts.floors.each(func(name string, f partitionFloor) { e.raise(name, f, out.revision) })
	}
	o.parts.ids.each(func(_ catalog.PartitionID, p *LayoutPartition) { e.put(p, l.floor) })
	out.parts = e.done()
	return &out
}

// Without returns a layout that does not know a partition, because what is known of it is in doubt. Answers that were
// read before the layout's revision do not bring it back; the layout is partial from then on.
func (l *Layout) Without(id catalog.PartitionID) *Layout {
	gone := l.parts.byID(id)
	if gone == nil {
		return l
	}
	return l.without(gone.Name, id, partitionFloor{revision: l.revision})
}

// WithoutAll returns a layout that knows no partition, and does not take one from an answer that was read before the
// layout's revision: what was forgotten or dropped before stays so. A table without partitions has nothing to forget.
func (l *Layout) WithoutAll() *Layout {
	if l.whole != nil {
		return l
	}
	out := *l
	out.parts = &partitionSet{floors: l.parts.floors, floor: max(l.parts.floor, l.revision)}
	out.complete = false
	return &out
}

// WithoutDropped is Without for a partition that is known to be dropped, whether the layout knows it or not: its id,
// which is never reused, does not come back, while a partition created again under its name may.
func (l *Layout) WithoutDropped(name string, id catalog.PartitionID) *Layout {
	if l.whole != nil {
		return l
	}
	return l.without(name, id, partitionFloor{id: id + 1})
}

func (l *Layout) without(name string, id catalog.PartitionID, f partitionFloor) *Layout {
	out, e := *l, l.parts.edit()
	if gone := l.parts.byID(id); gone != nil {
		e.remove(gone)
		out.complete = false
	}
	e.raise(name, f, l.revision)
	out.parts = e.done()
	return &out
}
