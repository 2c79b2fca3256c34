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
	// In is the partition as it was known when the route was made, with its name and leaders.
	In *LayoutPartition
}

// Name returns the partition's name, empty for a table without partitions.
func (r *Route) Name() string {
	if r.In == nil {
		return ""
	}
	return r.In.Name
}

// Leader returns who led the bucket when the layout was read, or false while nobody did.
func (r *Route) Leader() (Leader, bool) {
	if r.In == nil {
		return Leader{}, false
	}
	return r.In.Leader(r.Bucket)
}

// TableBucket returns the ids of the bucket.
func (r *Route) TableBucket() TableBucket {
	return TableBucket{TableID: r.Table, PartitionID: r.Partition, Bucket: r.Bucket}
}

// Request returns what is sent with the row: the bucket, and the count it was computed with.
func (r *Route) Request() Request { return Request{Bucket: r.TableBucket(), Count: r.Count} }

// BatchKey names a batch of rows that may be sent together. It is comparable.
type BatchKey struct {
	Incarnation catalog.Incarnation
	Bucket      TableBucket
	Count       int32
}

// BatchKey returns the batch the row may join: rows routed with different counts never share one.
func (r *Route) BatchKey() BatchKey {
	return BatchKey{Incarnation: r.Incarnation, Bucket: r.TableBucket(), Count: r.Count}
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
	b, err := l.bucketIn(p, row, s)
	if err != nil {
		return Route{}, err
	}
	return l.route(p, b), nil
}

// RouteShort is Route into out for what is asked most: a partition that is known, named by one text column or the table
// as a whole, and a bucket key in the form of Fluss of a few dozen bytes. It needs no memory and copies nothing twice. False
// leaves out as it is: RouteAny has the answer or the error.
func (l *Layout) RouteShort(out *Route, row []Value) bool {
	e := l.keys.bucket
	if e == nil || e.bound == 0 || len(row) != e.width {
		return false
	}
	if len(e.text) > 0 {
		n := e.bound
		for _, i := range e.text {
			n += len(row[i].s) + len(row[i].b)
		}
		if n > shortKey {
			return false
		}
	}
	p := l.whole
	if p == nil {
		n := l.keys.partition
		c := &n.cols[0]
		if len(n.cols) != 1 || c.value != KindString || len(row) != n.width || row[c.src].kind != KindString {
			return false
		}
		if p = l.parts.recent(row[c.src].s); p == nil {
			return false
		}
	}
	if p.Count < 1 {
		return false
	}
	var buf [shortKey]byte
	key, err := e.appendCompacted(buf[:0], row)
	if err != nil {
		return false
	}
	out.Incarnation, out.Table, out.Epoch = l.incarnation, l.table.ID, l.table.Epoch
	out.Partition, out.Count, out.In = p.ID, p.Count, p
	out.Bucket = int32(uint32(mixInt(murmur42(key))) % uint32(p.Count))
	return true
}

// bucketIn computes the bucket in a partition whose count is known.
func (l *Layout) bucketIn(p *LayoutPartition, row []Value, s *Scratch) (int32, error) {
	e := l.keys.bucket
	if e == nil {
		return 0, ErrNoBucketKey
	}
	if e.format != FormatFluss || len(row) != e.width || p.Count < 1 {
		bucket, key, err := e.Bucket(s.key[:0], row, p.Count)
		s.key = key
		return bucket, err
	}
	// What Bucket does, without asking again for the format: keys of this one are never empty.
	key, err := e.appendCompacted(s.key[:0], row)
	if s.key = key; err != nil {
		return 0, err
	}
	return mixInt(murmur42(key)) % p.Count, nil
}

func (l *Layout) route(p *LayoutPartition, bucket int32) Route {
	return Route{
		Incarnation: l.incarnation, Table: l.table.ID, Partition: p.ID, Bucket: bucket, Count: p.Count,
		Epoch: l.table.Epoch, In: p,
	}
}

// find resolves the partition of a row.
func (l *Layout) find(row []Value, s *Scratch) (*LayoutPartition, error) {
	if l.whole != nil {
		return l.whole, l.whole.Err
	}
	n := l.keys.partition
	// The text of a single text column is the name. One that is known is valid; others take the long way.
	if c := &n.cols[0]; len(n.cols) == 1 && c.value == KindString && len(row) == n.width && row[c.src].kind == KindString {
		if p := l.parts.byName(row[c.src].s); p != nil {
			return p, p.Err
		}
	}
	name, err := n.Append(s.name[:0], row)
	s.name = name
	if err != nil {
		return nil, err
	}
	if p := l.parts.byNameBytes(name); p != nil {
		return p, p.Err
	}
	return nil, &UnknownPartitionError{Table: l.table.Path, Name: string(name)}
}

// Explanation is a route with everything it was computed from.
type Explanation struct {
	Route         Route
	PartitionName string
	Format        string // of the bucket key
	KeyColumns    []string
	Key           string // the encoded bucket key, in hex
	// Function is the bucketing function with its operands' names, Hash the number it takes the remainder of.
	Function string
	Hash     int32
	Legacy   bool
	// Why says in words where the count comes from.
	Why string
}

// Explain routes a row and says why. Errors are those of Route.
func (l *Layout) Explain(row []Value) (Explanation, error) {
	var s Scratch
	r, err := l.Route(row, &s)
	if err != nil {
		return Explanation{}, err
	}
	e, p := l.keys.bucket, r.In
	out := Explanation{Route: r, PartitionName: p.Name, Format: e.format.String(), Key: hex.EncodeToString(s.key), Legacy: p.Legacy}
	out.Function, out.Hash = e.format.function(s.key)
	for _, c := range e.Columns() {
		out.KeyColumns = append(out.KeyColumns, c.Name)
	}
	switch {
	case l.whole != nil:
		out.Why = fmt.Sprintf("the table is not partitioned and has %d buckets", r.Count)
	case p.Legacy:
		out.Why = fmt.Sprintf("partition '%s' was imported without a count and has the %d buckets that the table had before its first rescale", p.Name, r.Count)
	case p.Epoch < l.table.Epoch:
		out.Why = fmt.Sprintf("partition '%s' was created at layout epoch %d with %d buckets and keeps them; the table is at epoch %d with %d",
			p.Name, p.Epoch, r.Count, l.table.Epoch, l.table.Buckets)
	default:
		out.Why = fmt.Sprintf("partition '%s' has the table's %d buckets of layout epoch %d", p.Name, r.Count, l.table.Epoch)
	}
	return out, nil
}

// function returns the name of the bucketing function and the hash of a key that Bucket accepts.
func (f Format) function(key []byte) (string, int32) {
	switch f {
	case FormatPaimon:
		return "|murmur3_42(key) rem count|", murmur42(key)
	case FormatIceberg:
		return "(murmur3_x86_32(key) & 0x7fffffff) mod count", murmurStandard(key) & 0x7fffffff
	case FormatHudi:
		return "(java_hash(key) & 0x7fffffff) mod count", int32(beUint32(key) & 0x7fffffff)
	default:
		return "mix(murmur3_42(key)) mod count", mixInt(murmur42(key))
	}
}
