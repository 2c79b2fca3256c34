package routing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/stavedb/stave/catalog"
)

// ErrPartialLayout is returned when all partitions of a table are asked of a layout that may not know them all.
var ErrPartialLayout = errors.New("routing: the layout does not know every partition of the table")

// Layout is one table as a router sees it: its keys, its layout epoch, its partitions with their effective bucket
// counts, and who leads their buckets. It is immutable and safe for concurrent use.
type Layout struct {
	incarnation catalog.Incarnation
	revision    catalog.Revision
	table       *catalog.Table
	keys        *TableKeys
	columns     []Column
	parts       *partitionSet
	whole       *LayoutPartition // a table without partitions; nil otherwise
	// complete: parts are all partitions at revision.
	complete bool
	// floor is the revision of the last complete layout in this one: what was read before it and is not here is gone.
	// Invariant: floor <= revision.
	floor catalog.Revision
}

// LayoutPartition is one partition of a layout, or a table without partitions. It is immutable; another pointer for the
// same id means that it was read again.
type LayoutPartition struct {
	// ID is NoPartition for a table without partitions.
	ID   catalog.PartitionID
	Name string
	// Count is the effective bucket count; 0 if Err is set.
	Count int32
	// Epoch is the layout epoch at which the partition was created.
	Epoch catalog.Epoch
	// Legacy is set for a partition without a count of its own.
	Legacy bool
	// Revision is the one the partition was read at.
	Revision catalog.Revision
	// Err is ErrStaleMetadata for a partition whose count is not known: it is never guessed.
	Err error
	// leaders are empty, or one per bucket with NoServer where nobody leads.
	leaders []Leader
}

// Leader is who leads a bucket.
type Leader struct {
	Server catalog.ServerID
	// Listeners are nil for a server that the layout was not told of. The slice must not be changed.
	Listeners   []string
	LeaderEpoch catalog.LeaderEpoch
}

// NewLayout makes a layout from rows of one state. partitions may be a part of the table's: a layout of a partitioned
// table is partial. servers are those that are needed for leaders. Errors: catalog.ErrTableImporting for a table that is
// being imported, and those of NewTableKeys. The rows are kept and must not change.
func NewLayout(inc catalog.Incarnation, rev catalog.Revision, t *catalog.Table, partitions []*catalog.Partition, servers []*catalog.Server) (*Layout, error) {
	if t.Importing() {
		return nil, &catalog.Error{Code: catalog.ErrTableImporting, Message: "table " + t.Path + " is being imported and has no routes yet"}
	}
	l := &Layout{incarnation: inc, revision: rev, table: t, parts: &partitionSet{}}
	shape, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	l.columns = shape.Columns
	if l.keys, err = NewTableKeys(shape); err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Path, err)
	}
	listeners := make(map[catalog.ServerID][]string, len(servers))
	for _, s := range servers {
		listeners[s.ID] = s.Listeners
	}
	if !t.Partitioned() {
		l.whole = &LayoutPartition{ID: NoPartition, Count: t.Buckets, Epoch: t.Epoch, Revision: rev, leaders: leadersOf(t.Placement, listeners)}
		l.complete, l.floor = true, rev
		return l, nil
	}
	e := l.parts.edit()
	for _, p := range partitions {
		count, err := catalog.EffectiveCount(t, p)
		e.put(&LayoutPartition{
			ID: p.ID, Name: p.Name, Count: count, Epoch: p.Epoch, Legacy: p.Legacy, Revision: rev, Err: err,
			leaders: leadersOf(p.Placement, listeners),
		}, 0)
	}
	l.parts = e.done()
	return l, nil
}

// NewCompleteLayout is NewLayout for all partitions that the table has at the revision.
func NewCompleteLayout(inc catalog.Incarnation, rev catalog.Revision, t *catalog.Table, partitions []*catalog.Partition, servers []*catalog.Server) (*Layout, error) {
	l, err := NewLayout(inc, rev, t, partitions, servers)
	if err != nil {
		return nil, err
	}
	l.complete, l.floor = true, rev
	return l, nil
}

// LayoutOf makes a complete layout of a table from a state.
func LayoutOf(st *catalog.State, path string) (*Layout, error) {
	t, ok := st.Table(path)
	if !ok {
		return nil, &catalog.Error{Code: catalog.ErrTableNotExist, Message: "table " + path + " does not exist"}
	}
	var partitions []*catalog.Partition
	st.Partitions(t.ID, "", func(p *catalog.Partition) bool {
		partitions = append(partitions, p)
		return true
	})
	var servers []*catalog.Server
	st.Servers(func(s *catalog.Server) bool {
		servers = append(servers, s)
		return true
	})
	return NewCompleteLayout(st.Incarnation(), st.Revision(), t, partitions, servers)
}

func shapeOf(t *catalog.Table) (TableShape, error) {
	lake, err := ParseFormat(t.LakeFormat())
	if err != nil {
		return TableShape{}, fmt.Errorf("table %s: %w", t.Path, err)
	}
	s := TableShape{PrimaryKey: t.PrimaryKey, PartitionKeys: t.PartitionKeys, BucketKeys: t.BucketKeys, Lake: lake}
	for _, c := range t.Schema().Columns {
		s.Columns = append(s.Columns, Column{Name: c.Name, Type: TypeOf(c.Type)})
	}
	if v, ok := catalog.PropertyValue(t.Properties, catalog.PropKVFormatVersion); ok {
		if s.KVFormat, err = strconv.Atoi(v); err != nil {
			return TableShape{}, fmt.Errorf("table %s: property %s: %w", t.Path, catalog.PropKVFormatVersion, err)
		}
	}
	return s, nil
}

// leadersOf joins leaders and listeners once: a later layout need not know the servers any more.
func leadersOf(p *catalog.Placement, listeners map[catalog.ServerID][]string) []Leader {
	if p == nil {
		return nil
	}
	out := make([]Leader, len(p.Buckets))
	for i := range p.Buckets {
		s := &p.Buckets[i]
		out[i] = Leader{Server: s.Leader, Listeners: listeners[s.Leader], LeaderEpoch: s.LeaderEpoch}
	}
	return out
}

// Incarnation returns the history the layout belongs to.
func (l *Layout) Incarnation() catalog.Incarnation { return l.incarnation }

// Revision returns the latest revision anything in the layout was read at.
func (l *Layout) Revision() catalog.Revision { return l.revision }

// Table returns the table's row as of Revision.
func (l *Layout) Table() *catalog.Table { return l.table }

// Columns returns the table's columns, in the order of a row's values. The slice must not be changed.
func (l *Layout) Columns() []Column { return l.columns }

// Keys returns the encoders of the table's keys.
func (l *Layout) Keys() *TableKeys { return l.keys }

// Complete reports whether the layout has every partition the table had at Revision, and no other.
func (l *Layout) Complete() bool { return l.complete }

// Len returns how many partitions the layout knows; 1 for a table without partitions.
func (l *Layout) Len() int {
	if l.whole != nil {
		return 1
	}
	return l.parts.ids.n
}

// Partition returns a partition by name; of a table without partitions the whole table for the empty name.
func (l *Layout) Partition(name string) (*LayoutPartition, bool) {
	if l.whole != nil {
		return l.whole, name == ""
	}
	p := l.parts.byName(name)
	return p, p != nil
}

// PartitionByID returns a partition by id.
func (l *Layout) PartitionByID(id catalog.PartitionID) (*LayoutPartition, bool) {
	if l.whole != nil {
		return l.whole, id == NoPartition
	}
	p := l.parts.byID(id)
	return p, p != nil
}

// Known returns the partitions the layout knows, in order of their ids; unless it is complete the table may have more.
// The slice is the caller's.
func (l *Layout) Known() []*LayoutPartition {
	if l.whole != nil {
		return []*LayoutPartition{l.whole}
	}
	out := make([]*LayoutPartition, 0, l.parts.ids.n)
	l.parts.ids.each(func(_ catalog.PartitionID, p *LayoutPartition) { out = append(out, p) })
	slices.SortFunc(out, func(a, b *LayoutPartition) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Partitions returns all partitions of the table in order of their ids; ErrPartialLayout unless the layout is complete.
// The slice is the caller's.
func (l *Layout) Partitions() ([]*LayoutPartition, error) {
	if !l.complete {
		return nil, fmt.Errorf("table %s: %w", l.table.Path, ErrPartialLayout)
	}
	return l.Known(), nil
}

// Leader returns who led a bucket when the partition was read, or false while nobody did.
func (p *LayoutPartition) Leader(bucket int32) (Leader, bool) {
	if bucket < 0 || int(bucket) >= len(p.leaders) || p.leaders[bucket].Server == catalog.NoServer {
		return Leader{}, false
	}
	return p.leaders[bucket], true
}
