package routing

import (
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Request is one bucket of a request. Count is the count its bucket id was computed with, 0 if the caller sent none.
type Request struct {
	Bucket TableBucket
	Count  int32
}

// Check decides on one bucket, in this order:
//
//	ErrTableNotExist          the table was dropped
//	ErrPartitionNotExists     the partition was dropped
//	ErrUnknownTableOrBucket   not on this server, or never heard of
//	ErrNotLeaderOrFollower    not led by this server
//	ErrStaleMetadata          routed with another count
//	Done
//
// A request without a count passes only while the table's layout epoch is 0; an epoch that is not known counts as above
// 0. It allocates nothing.
func (g *Guard) Check(r Request) catalog.Code {
	var c guardCursor
	return c.check(g.state.Load(), &r)
}

// guardCursor remembers the partition of the last request: those of one request are mostly in one.
type guardCursor struct {
	key         guardKey
	found       *guardPartition
	uncounted   bool // requests without a count pass
	initialised bool
}

func (c *guardCursor) check(s *guardState, r *Request) catalog.Code {
	if k := (guardKey{r.Bucket.TableID, r.Bucket.PartitionID}); !c.initialised || c.key != k {
		if !c.initialised || c.key.table != k.table {
			c.uncounted = s.uncounted(k.table)
		}
		c.key, c.found, c.initialised = k, s.partition(k), true
	}
	p := c.found
	if p == nil {
		return s.absent(c.key)
	}
	if uint(r.Bucket.Bucket) >= uint(len(p.buckets)) {
		return catalog.ErrUnknownTableOrBucket
	}
	switch b := &p.buckets[r.Bucket.Bucket]; {
	case !b.here:
		return catalog.ErrUnknownTableOrBucket
	case !b.leading:
		return catalog.ErrNotLeaderOrFollower
	case r.Count == p.count, r.Count == 0 && c.uncounted:
		return catalog.Done
	}
	return catalog.ErrStaleMetadata
}

func (s *guardState) absent(k guardKey) catalog.Code {
	switch {
	case s.tableGone(k.table):
		return catalog.ErrTableNotExist
	case k.partition != NoPartition && s.partitionGone(k.partition):
		return catalog.ErrPartitionNotExists
	default:
		return catalog.ErrUnknownTableOrBucket
	}
}

// Refusals are the decisions on a request with at least one refusal, all from one state of the guard.
type Refusals struct {
	// Codes has one code per bucket of the request, in its order; those that are Done may be executed.
	Codes []catalog.Code
	state *guardState
	list  []Request
}

// Err returns the error of one bucket of the request: nil, a *StaleError or a *catalog.Error.
func (r *Refusals) Err(i int) error { return r.state.refusal(&r.list[i], r.Codes[i]) }

// CheckAll decides on every bucket of a request on its own: the good ones may be executed. It returns nil when all are
// good, without allocating. The list is kept by the result and must not change while that is used.
func (g *Guard) CheckAll(list []Request) *Refusals {
	s := g.state.Load()
	var c guardCursor
	for i := range list {
		if c.check(s, &list[i]) != catalog.Done {
			out := &Refusals{Codes: make([]catalog.Code, len(list)), state: s, list: list}
			for j := range list {
				out.Codes[j] = c.check(s, &list[j])
			}
			return out
		}
	}
	return nil
}

// CheckWhole is for requests that fail as a whole, such as those of one bucket or with one count for all: the first
// refusal is the error, a *StaleError or a *catalog.Error.
func (g *Guard) CheckWhole(list []Request) error {
	s := g.state.Load()
	var c guardCursor
	for i := range list {
		if code := c.check(s, &list[i]); code != catalog.Done {
			return s.refusal(&list[i], code)
		}
	}
	return nil
}

// StaleError is a refusal for a stale route with what the caller should know now. It unwraps to
// catalog.ErrStaleMetadata.
type StaleError struct {
	Incarnation catalog.Incarnation
	Revision    catalog.Revision
	Bucket      TableBucket
	// Table is the path and Partition the name; empty if they are not known.
	Table, Partition string
	// Sent is the count of the request, Count the partition's, Epoch the table's layout epoch.
	Sent, Count int32
	Epoch       catalog.Epoch
}

// Error names both counts.
func (e *StaleError) Error() string {
	return fmt.Sprintf("STALE_METADATA: %s was routed with %d buckets, there are %d (layout epoch %d)", e.Bucket, e.Sent, e.Count, e.Epoch)
}

// Unwrap returns catalog.ErrStaleMetadata.
func (e *StaleError) Unwrap() error { return catalog.ErrStaleMetadata }

func (s *guardState) refusal(r *Request, c catalog.Code) error {
	id := r.Bucket.TableID
	switch c {
	case catalog.Done:
		return nil
	case catalog.ErrStaleMetadata:
		e := &StaleError{Incarnation: s.incarnation, Revision: s.revision, Bucket: r.Bucket, Sent: r.Count, Epoch: s.tables.m[tableShard(id)][id].epoch}
		if p := s.partition(guardKey{id, r.Bucket.PartitionID}); p != nil {
			e.Count, e.Table, e.Partition = p.count, p.path, p.name
		}
		return e
	case catalog.ErrNotLeaderOrFollower:
		return &catalog.Error{Code: c, Message: r.Bucket.String() + " is not led by this server"}
	case catalog.ErrTableNotExist, catalog.ErrPartitionNotExists:
		return &catalog.Error{Code: c, Message: r.Bucket.String() + " was dropped"}
	default:
		return &catalog.Error{Code: c, Message: r.Bucket.String() + " is not on this server"}
	}
}
