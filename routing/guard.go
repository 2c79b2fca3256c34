package routing

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// Activation is what a server of buckets was told of one of its replicas. It carries the bucket count, so that a leader
// that is ready has its count.
type Activation struct {
	Bucket TableBucket
	// Table is the path and Partition the name, for refusals; they may be empty.
	Table, Partition string
	Count            int32
	Leading          bool // this server leads the bucket
	LeaderEpoch      catalog.LeaderEpoch
	BucketEpoch      catalog.BucketEpoch
	// ISR is kept and must not change.
	ISR []catalog.ServerID
}

// GuardUpdate is one step of the replica feed.
type GuardUpdate struct {
	// Incarnation and Revision say which state the step leads to. Zero: not known, and the order of steps is trusted.
	Incarnation catalog.Incarnation
	Revision    catalog.Revision
	Reset       bool // forget all replicas first: the step is a snapshot
	Epochs      map[catalog.TableID]catalog.Epoch
	Activations []Activation
	Removed     []TableBucket
	// DroppedTables and DroppedPartitions are gone as a whole, for ever.
	DroppedTables     []catalog.TableID
	DroppedPartitions map[catalog.TableID][]catalog.PartitionID
}

// ErrGuardOrder is returned for a step that is older than the one before it, or of another incarnation without Reset.
var ErrGuardOrder = errors.New("routing: step out of order")

// CountError reports an activation whose bucket count is impossible: below one, or another one than the partition is
// known to have, which never changes. Something between the catalog and this server is broken. It unwraps to
// ErrBucketCount.
type CountError struct {
	Bucket TableBucket
	// Told is the count of the activation, Known that of the partition; 0 if none is known.
	Told, Known int32
}

// Error names bucket and counts.
func (e *CountError) Error() string {
	return fmt.Sprintf("%v: activation of %s with %d buckets, known are %d", ErrBucketCount, e.Bucket, e.Told, e.Known)
}

// Unwrap returns ErrBucketCount.
func (e *CountError) Unwrap() error { return ErrBucketCount }

// Guard refuses every route that is not the one right bucket. Whoever serves buckets asks it before it executes
// anything. Activations and table epochs come from the replica feed. Checks take no lock; changes are serialised and
// seen by checks that begin later.
type Guard struct {
	mu    sync.Mutex
	state atomic.Pointer[guardState]
}

// guardState is immutable. Its maps share with the state before whatever did not change.
type guardState struct {
	incarnation catalog.Incarnation
	revision    catalog.Revision
	tables      *shardMap[catalog.TableID, guardTable]
	partitions  *shardMap[guardKey, *guardPartition]
	// What is gone for ever, in two generations: when the young one is full it becomes the old one.
	goneTables, olderTables *shardMap[catalog.TableID, struct{}]
	goneParts, olderParts   *shardMap[catalog.PartitionID, struct{}]
}

// guardKey is a partition of a table; NoPartition for a table without partitions.
type guardKey struct {
	table     catalog.TableID
	partition catalog.PartitionID
}

// shard mixes both ids: many tables have few partitions, and few tables many.
func (k guardKey) shard() uint8 { return uint8(uint64(k.table)*0x9e3779b9>>8) + uint8(k.partition) }

// guardTable is the layout epoch of a table that was told one.
type guardTable struct{ epoch catalog.Epoch }

// guardPartition holds what is known of a partition's buckets, by bucket.
// Invariant: len(buckets) == count.
type guardPartition struct {
	path, name string
	count      int32
	buckets    []guardBucket
}

type guardBucket struct {
	here, leading bool
	// told is set once an activation was told; removed is the revision of the removal since.
	told        bool
	leaderEpoch catalog.LeaderEpoch
	bucketEpoch catalog.BucketEpoch
	removed     catalog.Revision
	isr         []catalog.ServerID
}

// NewGuard returns a guard that knows no bucket and refuses everything.
func NewGuard() *Guard {
	g := &Guard{}
	g.state.Store(&guardState{
		tables: &shardMap[catalog.TableID, guardTable]{}, partitions: &shardMap[guardKey, *guardPartition]{},
		goneTables: &shardMap[catalog.TableID, struct{}]{}, olderTables: &shardMap[catalog.TableID, struct{}]{},
		goneParts: &shardMap[catalog.PartitionID, struct{}]{}, olderParts: &shardMap[catalog.PartitionID, struct{}]{},
	})
	return g
}

// tableGone and partitionGone report what was dropped, as far as it is remembered.
func (s *guardState) tableGone(id catalog.TableID) bool {
	h := tableShard(id)
	_, young := s.goneTables.m[h][id]
	_, old := s.olderTables.m[h][id]
	return young || old
}

func (s *guardState) partitionGone(id catalog.PartitionID) bool {
	h := partitionShard(id)
	_, young := s.goneParts.m[h][id]
	_, old := s.olderParts.m[h][id]
	return young || old
}

func (s *guardState) partition(k guardKey) *guardPartition { return s.partitions.m[k.shard()][k] }

func (s *guardState) uncounted(id catalog.TableID) bool {
	t, known := s.tables.m[tableShard(id)][id]
	return known && t.epoch == 0
}

// Count returns the bucket count of a partition that this server has, or had, replicas of.
func (g *Guard) Count(table catalog.TableID, partition catalog.PartitionID) (int32, bool) {
	p := g.state.Load().partition(guardKey{table, partition})
	if p == nil {
		return 0, false
	}
	return p.count, true
}

// Replica returns the last activation of a bucket that is on this server.
func (g *Guard) Replica(b TableBucket) (Activation, bool) {
	p := g.state.Load().partition(guardKey{b.TableID, b.PartitionID})
	if p == nil || b.Bucket < 0 || b.Bucket >= p.count || !p.buckets[b.Bucket].here {
		return Activation{}, false
	}
	s := &p.buckets[b.Bucket]
	return Activation{
		Bucket: b, Table: p.path, Partition: p.name, Count: p.count, Leading: s.leading,
		LeaderEpoch: s.leaderEpoch, BucketEpoch: s.bucketEpoch, ISR: s.isr,
	}, true
}
