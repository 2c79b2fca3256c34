package routing

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Enumerate returns every partition of a table with its own count, in order of ids, for Buckets. It never returns a part
// of them: ErrPartialLayout unless the layout is complete, catalog.ErrStaleMetadata if one partition's count is not
// known.
func (l *Layout) Enumerate() ([]PartitionBuckets, error) {
	list, err := l.Partitions()
	if err != nil {
		return nil, err
	}
	out := make([]PartitionBuckets, len(list))
	for i, p := range list {
		if p.Err != nil {
			return nil, p.Err
		}
		out[i] = PartitionBuckets{ID: p.ID, Name: p.Name, Count: p.Count}
	}
	return out, nil
}

// TableBuckets returns every bucket of the table, partition by partition. Errors are those of Enumerate.
func (l *Layout) TableBuckets() ([]TableBucket, error) {
	list, err := l.Enumerate()
	if err != nil {
		return nil, err
	}
	var out []TableBucket
	for _, b := range Buckets(l.table.ID, list) {
		out = append(out, b)
	}
	return out, nil
}

// BucketCount returns the count a writer of a partition must use, by name, or of the whole table for the empty name of a
// table without partitions. It never falls back from a partition to its table: *UnknownPartitionError,
// catalog.ErrStaleMetadata.
func (l *Layout) BucketCount(partition string) (int32, error) {
	p, ok := l.Partition(partition)
	if !ok {
		return 0, &UnknownPartitionError{Table: l.table.Path, Name: partition}
	}
	return p.Count, p.Err
}

// CheckLakeBucket refuses a bucket id from a lake that its partition does not have: such a split was written with
// another count, and its rows would be joined with those of another bucket. Errors: those of BucketCount,
// *BucketRangeError with table and partition named.
func (l *Layout) CheckLakeBucket(partition string, bucket int32) error {
	count, err := l.BucketCount(partition)
	if err != nil {
		return err
	}
	if err := CheckBucket(bucket, count); err != nil {
		return fmt.Errorf("lake bucket of table %s partition '%s': %w", l.table.Path, partition, err)
	}
	return nil
}

// HistoricalPartition is the name of the partition that holds the rows of dropped past partitions.
const HistoricalPartition = "__historical__"

// ErrHistoricalRescaled is returned for a lookup in a dropped past partition of a table that was ever rescaled: the
// historical partition has one count, and the dropped one may have had another.
var ErrHistoricalRescaled = errors.New("routing: a rescaled table has no historical lookups")

// Historical returns the partition that a lookup of a missing partition goes on with: the historical one, by its own
// count. past says whether the missing name lies before the retention. Only lookups fall back, and only once: a missing
// historical partition is an *UnknownPartitionError, as is a name that is not past. Errors: ErrHistoricalRescaled at a
// layout epoch above 0.
func (l *Layout) Historical(missing string, past bool) (*LayoutPartition, error) {
	if !past || missing == HistoricalPartition || l.whole != nil {
		return nil, &UnknownPartitionError{Table: l.table.Path, Name: missing}
	}
	if l.table.Epoch > 0 {
		return nil, fmt.Errorf("%w: table %s, partition '%s', layout epoch %d", ErrHistoricalRescaled, l.table.Path, missing, l.table.Epoch)
	}
	p := l.parts.byName(HistoricalPartition)
	if p == nil {
		return nil, &UnknownPartitionError{Table: l.table.Path, Name: HistoricalPartition}
	}
	return p, p.Err
}

// RouteIn computes the bucket of a row in a partition that is not the row's own, by that partition's count. Errors are
// those of Route.
func (l *Layout) RouteIn(p *LayoutPartition, row []Value, s *Scratch) (Route, error) {
	if p.Err != nil {
		return Route{}, p.Err
	}
	b, err := l.bucketIn(p, row, s)
	if err != nil {
		return Route{}, err
	}
	return l.route(p, b), nil
}

// CheckHistorical decides on a historical lookup at the server, for clients that do not ask Layout.Historical: Check,
// and then ErrStaleMetadata unless the table's layout epoch is known to be 0.
func (g *Guard) CheckHistorical(r Request) catalog.Code {
	s := g.state.Load()
	var c guardCursor
	if code := c.check(s, &r); code != catalog.Done {
		return code
	}
	if !c.uncounted {
		return catalog.ErrStaleMetadata
	}
	return catalog.Done
}
