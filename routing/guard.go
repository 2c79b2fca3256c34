package routing

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// Activation is what a server of buckets was told of one of its replicas. It carries the bucket count, so that a leader
// that is ready has its count.
type Activation struct {
	Bucket      TableBucket
	Count       int32
	Leading     bool // this server leads the bucket
	LeaderEpoch catalog.LeaderEpoch
}

// Guard refuses every route that is not the one right bucket. Whoever serves buckets asks it before it executes
// anything. Activations and table epochs come from the replica feed. Checks take no lock; changes are serialised and
// seen by checks that begin later.
type Guard struct {
	mu    sync.Mutex
	state atomic.Pointer[guardState]
}

// guardState is immutable; tables are copied when one of them changes.
type guardState struct {
	tables map[catalog.TableID]*guardTable
}

type guardTable struct {
	epoch      catalog.Epoch
	known      bool // the epoch was told; an unknown one counts as above 0
	partitions map[catalog.PartitionID]*guardPartition
	// own are the partitions copied since clone: only the step that copied them reads or writes this.
	own map[catalog.PartitionID]bool
}

// guardPartition holds what is known of a partition's buckets, by bucket.
type guardPartition struct {
	count   int32
	buckets []guardBucket
}

type guardBucket struct {
	here, leading bool
	leaderEpoch   catalog.LeaderEpoch
}

// NewGuard returns a guard that knows no bucket and refuses everything.
func NewGuard() *Guard {
	g := &Guard{}
	g.state.Store(&guardState{tables: map[catalog.TableID]*guardTable{}})
	return g
}

// GuardUpdate is one step of the replica feed.
type GuardUpdate struct {
	Reset       bool // forget everything first: the step is a snapshot
	Epochs      map[catalog.TableID]catalog.Epoch
	Activations []Activation
	Removed     []TableBucket
	// DroppedTables and DroppedPartitions are gone as a whole.
	DroppedTables     []catalog.TableID
	DroppedPartitions map[catalog.TableID][]catalog.PartitionID
}

// Apply takes a step. An epoch never falls, and an activation of an older leader epoch changes nothing.
func (g *Guard) Apply(u GuardUpdate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.state.Load()
	next := &guardState{tables: make(map[catalog.TableID]*guardTable, len(old.tables))}
	if !u.Reset {
		maps.Copy(next.tables, old.tables)
	}
	own := map[catalog.TableID]bool{}
	table := func(id catalog.TableID) *guardTable {
		t := next.tables[id]
		if !own[id] {
			t = t.clone()
			next.tables[id], own[id] = t, true
		}
		return t
	}
	for id, e := range u.Epochs {
		t := table(id)
		if !t.known || e > t.epoch {
			t.epoch, t.known = e, true
		}
	}
	for _, a := range u.Activations {
		table(a.Bucket.TableID).activate(a)
	}
	for _, b := range u.Removed {
		table(b.TableID).change(b.PartitionID, func(p *guardPartition) {
			if b.Bucket >= 0 && int(b.Bucket) < len(p.buckets) {
				p.buckets[b.Bucket] = guardBucket{}
			}
		})
	}
	for id, list := range u.DroppedPartitions {
		for _, p := range list {
			delete(table(id).partitions, p)
		}
	}
	for _, id := range u.DroppedTables {
		delete(next.tables, id)
	}
	g.state.Store(next)
}

func (t *guardTable) clone() *guardTable {
	out := &guardTable{partitions: map[catalog.PartitionID]*guardPartition{}, own: map[catalog.PartitionID]bool{}}
	if t == nil {
		return out
	}
	out.epoch, out.known = t.epoch, t.known
	maps.Copy(out.partitions, t.partitions)
	return out
}

// change changes a partition's copy, made once in a step.
func (t *guardTable) change(id catalog.PartitionID, f func(*guardPartition)) {
	p := t.partitions[id]
	if p == nil || !t.own[id] {
		p = &guardPartition{}
		if old := t.partitions[id]; old != nil {
			p.count, p.buckets = old.count, slices.Clone(old.buckets)
		}
		t.partitions[id], t.own[id] = p, true
	}
	f(p)
}

func (t *guardTable) activate(a Activation) {
	if a.Bucket.Bucket < 0 || a.Bucket.Bucket >= a.Count {
		return
	}
	t.change(a.Bucket.PartitionID, func(p *guardPartition) {
		if need := int(a.Count); len(p.buckets) < need {
			p.buckets = append(p.buckets, make([]guardBucket, need-len(p.buckets))...)
		}
		p.count = a.Count
		if b := &p.buckets[a.Bucket.Bucket]; !b.here || b.leaderEpoch <= a.LeaderEpoch {
			*b = guardBucket{here: true, leading: a.Leading, leaderEpoch: a.LeaderEpoch}
		}
	})
}

// Request is one bucket of a request. Count is the count its bucket id was computed with, 0 if the caller sent none.
type Request struct {
	Bucket TableBucket
	Count  int32
}

// Check decides on one bucket, in this order: not there (ErrUnknownTableOrBucket), not led here
// (ErrNotLeaderOrFollower), routed with another count (ErrStaleMetadata), and Done. A request without a count passes
// only while the table's layout epoch is 0; an epoch that is not known counts as above 0. It allocates nothing.
func (g *Guard) Check(r Request) catalog.Code {
	var c guardCursor
	return c.check(g.state.Load(), r)
}

// guardCursor remembers the partition of the last request: those of one request are mostly in one.
type guardCursor struct {
	table       catalog.TableID
	partition   catalog.PartitionID
	uncounted   bool // requests without a count pass
	found       *guardPartition
	initialised bool
}

func (c *guardCursor) check(s *guardState, r Request) catalog.Code {
	if !c.initialised || c.table != r.Bucket.TableID || c.partition != r.Bucket.PartitionID {
		c.move(s, r.Bucket)
	}
	p := c.found
	if p == nil || r.Bucket.Bucket < 0 || int(r.Bucket.Bucket) >= len(p.buckets) {
		return catalog.ErrUnknownTableOrBucket
	}
	switch b := &p.buckets[r.Bucket.Bucket]; {
	case !b.here:
		return catalog.ErrUnknownTableOrBucket
	case !b.leading:
		return catalog.ErrNotLeaderOrFollower
	case r.Count == 0 && c.uncounted:
		return catalog.Done
	case r.Count != p.count:
		return catalog.ErrStaleMetadata
	}
	return catalog.Done
}

func (c *guardCursor) move(s *guardState, b TableBucket) {
	*c = guardCursor{table: b.TableID, partition: b.PartitionID, initialised: true}
	if t, ok := s.tables[b.TableID]; ok {
		c.found, c.uncounted = t.partitions[b.PartitionID], t.known && t.epoch == 0
	}
}

// CheckAll decides on every bucket of a request on its own: the good ones may be executed. It returns nil when all are
// good, without allocating; else a code for each.
func (g *Guard) CheckAll(list []Request) []catalog.Code {
	s := g.state.Load()
	var c guardCursor
	for i := range list {
		if c.check(s, list[i]) != catalog.Done {
			out := make([]catalog.Code, len(list))
			for j := range list {
				out[j] = c.check(s, list[j])
			}
			return out
		}
	}
	return nil
}

// CheckWhole is for requests that fail as a whole, such as those of one bucket or with one count for all: the first
// refusal is the error, a *catalog.Error.
func (g *Guard) CheckWhole(list []Request) error {
	s := g.state.Load()
	var c guardCursor
	for _, r := range list {
		if code := c.check(s, r); code != catalog.Done {
			return s.refusal(r, code)
		}
	}
	return nil
}

// StaleError is a refusal for a stale route with what the caller should know now. It unwraps to
// catalog.ErrStaleMetadata.
type StaleError struct {
	Bucket TableBucket
	// Sent is the count of the request, Count the partition's, Epoch the table's layout epoch.
	Sent, Count int32
	Epoch       catalog.Epoch
}

// Error names both counts.
func (e *StaleError) Error() string {
	return fmt.Sprintf("STALE_METADATA: bucket %s was routed with %d buckets, the partition has %d (layout epoch %d)", e.Bucket, e.Sent, e.Count, e.Epoch)
}

// Unwrap returns catalog.ErrStaleMetadata.
func (e *StaleError) Unwrap() error { return catalog.ErrStaleMetadata }

// Refusal is the error for a request that Check refused with a code.
func (g *Guard) Refusal(r Request, c catalog.Code) error { return g.state.Load().refusal(r, c) }

func (s *guardState) refusal(r Request, c catalog.Code) error {
	switch c {
	case catalog.ErrStaleMetadata:
		e := &StaleError{Bucket: r.Bucket, Sent: r.Count}
		if t := s.tables[r.Bucket.TableID]; t != nil {
			e.Epoch = t.epoch
			if p := t.partitions[r.Bucket.PartitionID]; p != nil {
				e.Count = p.count
			}
		}
		return e
	case catalog.ErrNotLeaderOrFollower:
		return &catalog.Error{Code: c, Message: "bucket " + r.Bucket.String() + " is not led by this server"}
	default:
		return &catalog.Error{Code: c, Message: "bucket " + r.Bucket.String() + " is not on this server"}
	}
}

// Count returns the bucket count of a partition that this server has replicas of.
func (g *Guard) Count(table catalog.TableID, partition catalog.PartitionID) (int32, bool) {
	t, ok := g.state.Load().tables[table]
	if !ok {
		return 0, false
	}
	p, ok := t.partitions[partition]
	if !ok {
		return 0, false
	}
	return p.count, true
}
