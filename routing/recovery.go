package routing

import (
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// The versions of checkpoint fragments.
const (
	FragmentV1 int32 = 1 // of earlier writers: table id not recorded
	FragmentV2 int32 = 2
)

// BucketOffset is the next offset a writer would have written to a bucket when its checkpoint was taken.
type BucketOffset struct {
	Bucket TableBucket
	Offset int64
}

// Fragment is what one subtask wrote into a checkpoint: the next offsets of the buckets it had written to. Buckets it
// does not list were at 0.
type Fragment struct {
	Version int32
	TableID catalog.TableID // FragmentV2 only
	Offsets []BucketOffset
}

// ConflictError reports a checkpoint in which two subtasks had written to one bucket, which happens when the writers
// disagreed about its partition's bucket count. Such a checkpoint cannot be repaired: neither offset is a place up to
// which the other subtask's rows are known to be complete. It unwraps to ErrConflictingOffsets.
type ConflictError struct {
	Bucket        TableBucket
	First, Second int64
}

// Error names the bucket and both offsets.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("Conflicting checkpoint offsets for %s: %d and %d.", e.Bucket, e.First, e.Second)
}

// Unwrap returns ErrConflictingOffsets.
func (e *ConflictError) Unwrap() error { return ErrConflictingOffsets }

// InconsistencyError reports a bucket that ends before the offset its checkpoint recorded: rows were lost, or the
// checkpoint belongs to another cluster. It unwraps to ErrDataInconsistency.
type InconsistencyError struct {
	Bucket            TableBucket
	Baseline, Current int64
}

// Error names the bucket and both offsets.
func (e *InconsistencyError) Error() string {
	return fmt.Sprintf("Data inconsistency for %s: checkpoint offset %d is beyond current offset %d.",
		e.Bucket, e.Baseline, e.Current)
}

// Unwrap returns ErrDataInconsistency.
func (e *InconsistencyError) Unwrap() error { return ErrDataInconsistency }

// Restored is the merged state of one checkpoint.
type Restored struct {
	// Baselines holds the recorded offset of every bucket of a live partition; a bucket that is absent is at 0.
	Baselines map[TableBucket]int64
	// Legacy is set when all fragments were of version 1; a bucket no fragment lists may then have been written all the
	// same, which deserves a warning.
	Legacy bool
}

// MergeFragments merges the fragments of all subtasks of one checkpoint; every subtask is given all of them. live are
// the partitions the table has now. A job without a checkpoint does not call it.
//
// No fragment at all, a nil one, an unknown version, both versions together, another table, a bucket of another table
// (it was created again), a negative offset and a bucket its live partition does not have are ErrRestoreState. Entries
// of partitions that are gone are ignored, even if they conflict. The same bucket with two offsets is a *ConflictError;
// with the same offset twice it is fine.
func MergeFragments(tableID catalog.TableID, live []PartitionBuckets, fragments []*Fragment) (Restored, error) {
	if err := checkFragments(tableID, fragments); err != nil {
		return Restored{}, err
	}
	counts := make(map[catalog.PartitionID]int32, len(live))
	for _, p := range live {
		counts[p.ID] = p.Count
	}
	r := Restored{Baselines: make(map[TableBucket]int64), Legacy: fragments[0].Version == FragmentV1}
	for _, f := range fragments {
		for _, o := range f.Offsets {
			if o.Bucket.TableID != tableID {
				return Restored{}, fmt.Errorf("%w: %s is not of table %d, which has been re-created", ErrRestoreState,
					o.Bucket, tableID)
			}
			if o.Offset < 0 {
				return Restored{}, fmt.Errorf("%w: negative offset %d of %s", ErrRestoreState, o.Offset, o.Bucket)
			}
			count, ok := counts[o.Bucket.PartitionID]
			if !ok {
				continue // the partition was dropped
			}
			if err := CheckBucket(o.Bucket.Bucket, count); err != nil {
				return Restored{}, fmt.Errorf("%w: %s: %w", ErrRestoreState, o.Bucket, err)
			}
			if first, ok := r.Baselines[o.Bucket]; ok && first != o.Offset {
				return Restored{}, &ConflictError{Bucket: o.Bucket, First: first, Second: o.Offset}
			}
			r.Baselines[o.Bucket] = o.Offset
		}
	}
	return r, nil
}

// checkFragments checks what can be said of the fragments as a whole.
func checkFragments(tableID catalog.TableID, fragments []*Fragment) error {
	if len(fragments) == 0 {
		return fmt.Errorf("%w: the checkpoint has no fragment", ErrRestoreState)
	}
	for i, f := range fragments {
		switch {
		case f == nil:
			return fmt.Errorf("%w: fragment %d is missing", ErrRestoreState, i)
		case f.Version != FragmentV1 && f.Version != FragmentV2:
			return fmt.Errorf("%w: fragment %d has unknown version %d", ErrRestoreState, i, f.Version)
		case f.Version != fragments[0].Version:
			return fmt.Errorf("%w: fragments of versions %d and %d are mixed", ErrRestoreState,
				fragments[0].Version, f.Version)
		case f.Version == FragmentV2 && f.TableID != tableID:
			return fmt.Errorf("%w: fragment %d is of table %d, not %d", ErrRestoreState, i, f.TableID, tableID)
		}
	}
	return nil
}

// UndoRange is what was written to a bucket after the checkpoint and has to be undone: offsets From (inclusive) to To
// (exclusive).
type UndoRange struct {
	Bucket   TableBucket
	From, To int64
}

// RecoveryPlan is what one subtask does on restore. Its slices are in the order of OwnedBuckets.
type RecoveryPlan struct {
	Undo []UndoRange
	// Baselines are the positive baselines of the owned buckets. They belong into the next checkpoint even if nothing
	// is written to these buckets until then.
	Baselines []BucketOffset
}

// OwnedBuckets returns the buckets that subtask recovers, partition by partition and by number. They are the very
// buckets whose rows the Shuffle sends to it, each partition with its own count. Errors as from Shuffle.Owns.
func OwnedBuckets(s Shuffle, subtask int32, tableID catalog.TableID, live []PartitionBuckets) ([]TableBucket, error) {
	var owned []TableBucket
	for _, p := range live {
		if p.Count < 1 {
			return nil, fmt.Errorf("partition %d: %w", p.ID, &BucketCountError{Count: p.Count})
		}
		ref := p.Ref()
		for bucket := range p.Count {
			mine, err := s.Owns(subtask, ref, bucket, p.Count)
			if err != nil {
				return nil, err
			}
			if mine {
				owned = append(owned, TableBucket{TableID: tableID, PartitionID: p.ID, Bucket: bucket})
			}
		}
	}
	return owned, nil
}

// PlanRecovery compares the baselines with the current end offsets of the owned buckets. A bucket without a current
// offset is ErrMissingOffset; one that ends before its baseline an *InconsistencyError.
func PlanRecovery(owned []TableBucket, r Restored, current map[TableBucket]int64) (RecoveryPlan, error) {
	var plan RecoveryPlan
	for _, b := range owned {
		now, ok := current[b]
		if !ok {
			return RecoveryPlan{}, fmt.Errorf("%w: %s", ErrMissingOffset, b)
		}
		baseline := r.Baselines[b]
		if baseline > now {
			return RecoveryPlan{}, &InconsistencyError{Bucket: b, Baseline: baseline, Current: now}
		}
		if baseline < now {
			plan.Undo = append(plan.Undo, UndoRange{Bucket: b, From: baseline, To: now})
		}
		if baseline > 0 {
			plan.Baselines = append(plan.Baselines, BucketOffset{Bucket: b, Offset: baseline})
		}
	}
	return plan, nil
}
