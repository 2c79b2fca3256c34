package routing

import (
	"cmp"
	"fmt"
	"iter"
	"math"

	"github.com/stavedb/stave/catalog"
)

// NoPartition is the partition id of a table without partitions. Real ids start at 0 and
// stay below 2^63. As an int64, the form of other systems, it is -1.
const NoPartition catalog.PartitionID = math.MaxUint64

// TableBucket names one bucket of one incarnation of a table: ids, not names, so that a table or partition that was
// dropped and created again is another one.
type TableBucket struct {
	TableID     catalog.TableID
	PartitionID catalog.PartitionID // NoPartition for a table without partitions
	Bucket      int32
}

// String returns "table 3 partition 7 bucket 0", without the partition where there is none.
func (b TableBucket) String() string {
	if b.PartitionID == NoPartition {
		return fmt.Sprintf("table %d bucket %d", b.TableID, b.Bucket)
	}
	return fmt.Sprintf("table %d partition %d bucket %d", b.TableID, b.PartitionID, b.Bucket)
}

// Compare orders buckets by table, partition and number.
func (b TableBucket) Compare(o TableBucket) int {
	return cmp.Or(
		cmp.Compare(b.TableID, o.TableID), cmp.Compare(int64(b.PartitionID), int64(o.PartitionID)), cmp.Compare(b.Bucket, o.Bucket))
}

// PartitionBuckets is a partition with its own bucket count, fixed at its creation.
type PartitionBuckets struct {
	ID    catalog.PartitionID // NoPartition for a table without partitions
	Name  string
	Count int32
}

// Ref returns the reference for a Shuffle.
func (p PartitionBuckets) Ref() PartitionRef {
	if p.ID == NoPartition {
		return PartitionRef{}
	}
	return NamedPartition(p.Name)
}

// Buckets yields every bucket of the given partitions, in their order and by number: partitions with 2 and 4 buckets
// give 6. Every enumeration of a table's buckets goes through here, because the table's default count says nothing
// about the partitions it already has.
func Buckets(tableID catalog.TableID, partitions []PartitionBuckets) iter.Seq2[PartitionBuckets, TableBucket] {
	return func(yield func(PartitionBuckets, TableBucket) bool) {
		for _, p := range partitions {
			for b := range p.Count {
				if !yield(p, TableBucket{TableID: tableID, PartitionID: p.ID, Bucket: b}) {
					return
				}
			}
		}
	}
}

// SplitOwner returns the reader, 0..readers-1, of a bucket: the buckets of a partition go to consecutive readers, from
// one that depends on the partition id, from 0 for NoPartition. A negative bucket is ErrBucketRange, readers < 1 is
// ErrParallelism.
func SplitOwner(partitionID catalog.PartitionID, bucket, readers int32) (int32, error) {
	if readers < 1 {
		return 0, fmt.Errorf("%w: %d readers, at least 1 is needed", ErrParallelism, readers)
	}
	if bucket < 0 {
		return 0, fmt.Errorf("%w: bucket %d is negative", ErrBucketRange, bucket)
	}
	var start int32
	if partitionID != NoPartition {
		folded := uint32(partitionID) ^ uint32(partitionID>>32)
		start = int32((folded*31)&0x7fffffff) % readers
	}
	return int32((int64(start) + int64(bucket)) % int64(readers)), nil
}

// UnawareSplitOwner returns the reader of a lake split that belongs to no bucket, by the split's id. readers < 1 is
// ErrParallelism.
func UnawareSplitOwner(splitID string, readers int32) (int32, error) {
	if readers < 1 {
		return 0, fmt.Errorf("%w: %d readers, at least 1 is needed", ErrParallelism, readers)
	}
	return (JavaStringHash(splitID) & 0x7fffffff) % readers, nil
}
