package routing

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/stavedb/stave/catalog"
)

// Layout is one table as a router sees it at one revision: its keys, its layout epoch, its partitions with their
// effective bucket counts, and who leads their buckets. It is immutable and safe for concurrent use.
type Layout struct {
	incarnation catalog.Incarnation
	revision    catalog.Revision
	table       *catalog.Table
	keys        *TableKeys
	columns     []Column
	servers     map[catalog.ServerID]*catalog.Server
	byName      map[string]*LayoutPartition
	byID        map[catalog.PartitionID]*LayoutPartition
	whole       *LayoutPartition // a table without partitions; nil otherwise
}

// LayoutPartition is one partition of a layout, or a table without partitions.
type LayoutPartition struct {
	// ID is NoPartition for a table without partitions.
	ID   catalog.PartitionID
	Name string
	// Count is the effective bucket count; 0 if Err is set.
	Count int32
	// Epoch is the layout epoch at which the partition was created.
	Epoch catalog.Epoch
	// Err is ErrStaleMetadata for a partition whose count is not known: it is never guessed.
	Err       error
	placement *catalog.Placement
}

// Leader is who leads a bucket.
type Leader struct {
	Server      catalog.ServerID
	Listeners   []string
	LeaderEpoch catalog.LeaderEpoch
}

// NewLayout makes a layout from rows of one state. partitions may be a part of the table's; servers those that are
// needed for leaders. Errors: catalog.ErrTableImporting for a table that is being imported, and those of NewTableKeys.
// The rows are kept and must not change.
func NewLayout(inc catalog.Incarnation, rev catalog.Revision, t *catalog.Table, partitions []*catalog.Partition, servers []*catalog.Server) (*Layout, error) {
	if t.Importing() {
		return nil, &catalog.Error{Code: catalog.ErrTableImporting, Message: "table " + t.Path + " is being imported and has no routes yet"}
	}
	l := &Layout{incarnation: inc, revision: rev, table: t, servers: map[catalog.ServerID]*catalog.Server{}}
	shape, err := shapeOf(t)
	if err != nil {
		return nil, err
	}
	l.columns = shape.Columns
	if l.keys, err = NewTableKeys(shape); err != nil {
		return nil, fmt.Errorf("table %s: %w", t.Path, err)
	}
	for _, s := range servers {
		l.servers[s.ID] = s
	}
	if !t.Partitioned() {
		l.whole = &LayoutPartition{ID: NoPartition, Count: t.Buckets, Epoch: t.Epoch, placement: t.Placement}
		return l, nil
	}
	l.byName = make(map[string]*LayoutPartition, len(partitions))
	l.byID = make(map[catalog.PartitionID]*LayoutPartition, len(partitions))
	for _, p := range partitions {
		l.put(layoutPartition(t, p))
	}
	return l, nil
}

// LayoutOf makes a layout of a whole table from a state.
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
	return NewLayout(st.Incarnation(), st.Revision(), t, partitions, servers)
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

func layoutPartition(t *catalog.Table, p *catalog.Partition) *LayoutPartition {
	count, err := catalog.EffectiveCount(t, p)
	return &LayoutPartition{ID: p.ID, Name: p.Name, Count: count, Epoch: p.Epoch, Err: err, placement: p.Placement}
}

func (l *Layout) put(p *LayoutPartition) {
	if old, ok := l.byName[p.Name]; ok {
		delete(l.byID, old.ID)
	}
	l.byName[p.Name], l.byID[p.ID] = p, p
}

// Incarnation returns the history the layout belongs to.
func (l *Layout) Incarnation() catalog.Incarnation { return l.incarnation }

// Revision returns the revision the layout was read at.
func (l *Layout) Revision() catalog.Revision { return l.revision }

// Table returns the table's row.
func (l *Layout) Table() *catalog.Table { return l.table }

// Columns returns the table's columns, in the order of a row's values. The slice must not be changed.
func (l *Layout) Columns() []Column { return l.columns }

// Keys returns the encoders of the table's keys.
func (l *Layout) Keys() *TableKeys { return l.keys }

// Partition returns a partition by name; of a table without partitions the whole table for the empty name.
func (l *Layout) Partition(name string) (*LayoutPartition, bool) {
	if l.whole != nil {
		return l.whole, name == ""
	}
	p, ok := l.byName[name]
	return p, ok
}

// PartitionByID returns a partition by id.
func (l *Layout) PartitionByID(id catalog.PartitionID) (*LayoutPartition, bool) {
	if l.whole != nil {
		return l.whole, id == NoPartition
	}
	p, ok := l.byID[id]
	return p, ok
}

// Partitions returns all partitions in order of their ids. The slice is the caller's.
func (l *Layout) Partitions() []*LayoutPartition {
	if l.whole != nil {
		return []*LayoutPartition{l.whole}
	}
	out := make([]*LayoutPartition, 0, len(l.byID))
	for _, p := range l.byID {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *LayoutPartition) int { return int(int64(a.ID) - int64(b.ID)) })
	return out
}

// Leader returns who leads a bucket, or false while nobody does, or it is not known.
func (l *Layout) Leader(p *LayoutPartition, bucket int32) (Leader, bool) {
	if p.placement == nil || bucket < 0 || int(bucket) >= len(p.placement.Buckets) {
		return Leader{}, false
	}
	s := &p.placement.Buckets[bucket]
	if s.Leader == catalog.NoServer {
		return Leader{}, false
	}
	out := Leader{Server: s.Leader, LeaderEpoch: s.LeaderEpoch}
	if v, ok := l.servers[s.Leader]; ok {
		out.Listeners = v.Listeners
	}
	return out, true
}

// Newer reports whether l was read later than o: answers may arrive in any order, and the later one counts. Layouts of
// different tables are not ordered; of two ids at one path the later incarnation and revision counts.
func (l *Layout) Newer(o *Layout) bool {
	if o == nil {
		return true
	}
	if c := l.incarnation.Compare(o.incarnation); c != 0 {
		return c > 0
	}
	return l.revision > o.revision
}

// With returns a layout that also has rows read at a later revision: its table row, revision and servers replace the
// old ones, its partitions are added. Rows of another table id make a layout that holds nothing else.
func (l *Layout) With(newer *Layout) *Layout {
	if newer.incarnation != l.incarnation || newer.table.ID != l.table.ID || l.whole != nil {
		return newer
	}
	out := *newer
	out.byName = make(map[string]*LayoutPartition, len(l.byName)+len(newer.byName))
	out.byID = make(map[catalog.PartitionID]*LayoutPartition, len(l.byID)+len(newer.byID))
	for _, p := range l.byName {
		// A legacy partition's count does not change by a rescale: only its row says what it is.
		out.put(p)
	}
	for _, p := range newer.byName {
		out.put(p)
	}
	return &out
}

// Without returns a layout that does not know a partition.
func (l *Layout) Without(id catalog.PartitionID) *Layout {
	gone, ok := l.byID[id]
	if !ok {
		return l
	}
	out := *l
	out.byName = make(map[string]*LayoutPartition, len(l.byName))
	out.byID = make(map[catalog.PartitionID]*LayoutPartition, len(l.byID))
	for _, p := range l.byName {
		if p != gone {
			out.put(p)
		}
	}
	return &out
}
