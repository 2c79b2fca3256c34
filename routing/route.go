package routing

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Route is where a row belongs. Count is the bucket count the bucket was computed with: it is pinned here and sent with
// the row, never read again, so that whoever serves the bucket can refuse a stale route.
type Route struct {
	Incarnation catalog.Incarnation
	Table       catalog.TableID
	Partition   catalog.PartitionID // NoPartition for a table without partitions
	Bucket      int32
	Count       int32
	Epoch       catalog.Epoch // the table's layout epoch when the route was made
}

// ErrNoBucketKey is returned for a row of a table without bucket key: an assigner chooses its bucket.
var ErrNoBucketKey = errors.New("routing: the table has no bucket key")

// UnknownPartitionError says that a layout does not know the partition of a row. The router looks it up or creates it.
// It unwraps to catalog.ErrPartitionNotExists.
type UnknownPartitionError struct{ Table, Name string }

// Error names the partition.
func (e *UnknownPartitionError) Error() string {
	return "partition '" + e.Name + "' of table " + e.Table + " is not known"
}

// Unwrap returns catalog.ErrPartitionNotExists.
func (e *UnknownPartitionError) Unwrap() error { return catalog.ErrPartitionNotExists }

// Scratch is memory that a caller lends to Route so that it allocates nothing. It serves one goroutine at a time.
type Scratch struct{ name, key []byte }

// Route computes where a full row belongs: its partition, and the bucket by that partition's own count. Errors: a
// *ColumnError or ErrArity for a row that does not fit, *UnknownPartitionError, ErrNoBucketKey, and
// catalog.ErrStaleMetadata for a partition whose count is not known.
func (l *Layout) Route(row []Value, s *Scratch) (Route, error) {
	p, err := l.find(row, s)
	if err != nil {
		return Route{}, err
	}
	e := l.keys.BucketKey()
	if e == nil {
		return Route{}, ErrNoBucketKey
	}
	bucket, key, err := e.Bucket(s.key[:0], row, p.Count)
	s.key = key
	if err != nil {
		return Route{}, err
	}
	return l.route(p, bucket), nil
}

func (l *Layout) route(p *LayoutPartition, bucket int32) Route {
	return Route{Incarnation: l.incarnation, Table: l.table.ID, Partition: p.ID, Bucket: bucket, Count: p.Count, Epoch: l.table.Epoch}
}

// find resolves the partition of a row.
func (l *Layout) find(row []Value, s *Scratch) (*LayoutPartition, error) {
	p := l.whole
	if p == nil {
		name, err := l.keys.Partition().Append(s.name[:0], row)
		s.name = name
		if err != nil {
			return nil, err
		}
		var ok bool
		if p, ok = l.byName[string(name)]; !ok {
			return nil, &UnknownPartitionError{Table: l.table.Path, Name: string(name)}
		}
	}
	return p, p.Err
}

// Explanation is a route with everything it was computed from.
type Explanation struct {
	Route         Route
	PartitionName string
	Format        string // of the bucket key
	KeyColumns    []string
	Key           string // the encoded bucket key, in hex
	Legacy        bool
	// Why says in words where the count comes from.
	Why string
}

// Explain routes a row and says why.
func (l *Layout) Explain(row []Value) (Explanation, error) {
	var s Scratch
	r, err := l.Route(row, &s)
	if err != nil {
		return Explanation{}, err
	}
	e := l.keys.BucketKey()
	out := Explanation{Route: r, PartitionName: string(s.name), Format: e.Format().String(), Key: hex.EncodeToString(s.key)}
	for _, c := range e.Columns() {
		out.KeyColumns = append(out.KeyColumns, c.Name)
	}
	p, _ := l.PartitionByID(r.Partition)
	switch {
	case l.whole != nil:
		out.Why = fmt.Sprintf("the table is not partitioned and has %d buckets", r.Count)
	case p.Epoch < l.table.Epoch:
		out.Why = fmt.Sprintf("partition '%s' was created at layout epoch %d with %d buckets and keeps them; the table is at epoch %d with %d",
			p.Name, p.Epoch, r.Count, l.table.Epoch, l.table.Buckets)
	default:
		out.Why = fmt.Sprintf("partition '%s' has the table's %d buckets of layout epoch %d", p.Name, r.Count, l.table.Epoch)
	}
	return out, nil
}
