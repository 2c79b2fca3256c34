package routing

import (
	"math/rand/v2"
	"sync"

	"github.com/stavedb/stave/catalog"
)

// AssignMode says how rows of a table without bucket key are spread.
type AssignMode uint8

// The modes. Sticky fills one bucket until NewBatch; RoundRobin takes the next bucket for each row.
const (
	Sticky AssignMode = iota
	RoundRobin
)

// assignerLimit bounds the partitions one Assigners remembers; forgetting one only begins it at another bucket.
const assignerLimit = 100_000

// Assigners choose the buckets of rows that have no bucket key, for one table. Only buckets that have a leader are
// chosen, unless none has. State is kept by partition id and begins anew when the partition was read again, because
// buckets may have other leaders then. Safe for concurrent use.
type Assigners struct {
	mode AssignMode
	mu   struct {
		sync.Mutex
		random *rand.Rand
		byID   map[catalog.PartitionID]*assigner
	}
}

// assigner is one partition's place.
type assigner struct {
	of        *LayoutPartition
	available []int32 // empty: no bucket has a leader
	next      uint32  // round robin
	current   int32   // sticky; -1 before the first row
}

// NewAssigners returns assigners that choose by the seed; a fixed seed gives the same choices.
func NewAssigners(mode AssignMode, seed uint64) *Assigners {
	a := &Assigners{mode: mode}
	a.mu.random, a.mu.byID = rand.New(rand.NewPCG(seed, seed)), map[catalog.PartitionID]*assigner{}
	return a
}

// Bucket returns the bucket of the next row of a partition, 0..p.Count-1; p.Err, or a *BucketCountError for a partition
// without buckets.
func (a *Assigners) Bucket(p *LayoutPartition) (int32, error) {
	if p.Err != nil {
		return 0, p.Err
	}
	if p.Count < 1 {
		return 0, &BucketCountError{Count: p.Count}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.of(p)
	if a.mode == RoundRobin {
		s.next = (s.next + 1) & 0x7fffffff
		if n := uint32(len(s.available)); n > 0 {
			return s.available[s.next%n], nil
		}
		return int32(s.next % uint32(p.Count)), nil
	}
	if s.current < 0 {
		s.current = s.pick(a.mu.random)
	}
	return s.current, nil
}

// NewBatch tells that a batch for a bucket is full: a sticky partition goes on with another bucket, if there is one and
// no other caller has moved it already.
func (a *Assigners) NewBatch(p *LayoutPartition, full int32) {
	if p.Err != nil || p.Count < 1 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.of(p); a.mode == Sticky && s.current == full {
		s.current = s.pick(a.mu.random)
	}
}

// Forget drops what is kept of a partition.
func (a *Assigners) Forget(id catalog.PartitionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.mu.byID, id)
}

// of returns the assigner of exactly this reading of a partition.
func (a *Assigners) of(p *LayoutPartition) *assigner {
	if s := a.mu.byID[p.ID]; s != nil && s.of == p {
		return s
	}
	if len(a.mu.byID) >= assignerLimit {
		clear(a.mu.byID)
	}
	s := &assigner{of: p, current: -1, next: a.mu.random.Uint32()}
	for b := range p.Count {
		if _, ok := p.Leader(b); ok {
			s.available = append(s.available, b)
		}
	}
	a.mu.byID[p.ID] = s
	return s
}

// pick returns a random bucket, another one than the current one if there is one.
func (s *assigner) pick(r *rand.Rand) int32 {
	n := int32(len(s.available))
	if n == 0 {
		n = s.of.Count
	}
	for {
		b := r.Int32N(n)
		if len(s.available) > 0 {
			b = s.available[b]
		}
		if b != s.current || n == 1 {
			return b
		}
	}
}

// RouteAny is Route for rows of a table that may have no bucket key: assigners choose the bucket then.
func (l *Layout) RouteAny(row []Value, s *Scratch, a *Assigners) (Route, error) {
	if l.keys.bucket != nil {
		return l.Route(row, s)
	}
	p, err := l.find(row, s)
	if err != nil {
		return Route{}, err
	}
	b, err := a.Bucket(p)
	if err != nil {
		return Route{}, err
	}
	return l.route(p, b), nil
}
