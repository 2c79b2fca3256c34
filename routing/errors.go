package routing

import (
	"errors"
	"fmt"
)

// Returned when an encoder, a namer or a key set is built.
var (
	// ErrType is returned when a type string does not parse.
	ErrType = errors.New("routing: invalid data type")
	// ErrUnsupportedType is returned when a column's type cannot be part of a key in the chosen format, or of a
	// partition name.
	ErrUnsupportedType = errors.New("routing: unsupported key type")
	// ErrKeyColumns is returned when the number or the names of the key columns do not fit the format or the table.
	ErrKeyColumns = errors.New("routing: invalid key columns")
	// ErrFormat is returned for an unknown lake format or key-value format version.
	ErrFormat = errors.New("routing: unknown format")
)

// Returned when a row is encoded.
var (
	// ErrArity is returned when a row has another number of values than the encoder was built for.
	ErrArity = errors.New("routing: wrong number of values")
	// ErrNullKey is returned for a null in a key column or partition column that must not be null.
	ErrNullKey = errors.New("routing: null in a key column")
	// ErrValueKind is returned when a value is of another kind than its column.
	ErrValueKind = errors.New("routing: value does not fit the column type")
	// ErrValueRange is returned when a value is outside what its column's type can hold.
	ErrValueRange = errors.New("routing: value out of range")
	// ErrPartitionValue is returned when the text of a partition column may not be part of a partition name.
	ErrPartitionValue = errors.New("routing: invalid partition value")
	// ErrReservedValue is returned for text the Hudi key form uses as separator or placeholder.
	ErrReservedValue = errors.New("routing: reserved value in a key column")
)

// Returned when a key is mapped to a bucket or a bucket to a channel.
var (
	// ErrEmptyKey is returned for a key of no bytes where the format cannot place one.
	ErrEmptyKey = errors.New("routing: empty bucket key")
	// ErrKeyLength is returned when a Hudi key is not exactly four bytes.
	ErrKeyLength = errors.New("routing: wrong bucket key length")
	// ErrBucketCount is returned for a bucket count below one.
	ErrBucketCount = errors.New("routing: invalid bucket count")
	// ErrBucketRange is returned for a bucket id outside 0..count-1 of its partition.
	ErrBucketRange = errors.New("routing: bucket outside the partition")
	// ErrParallelism is returned for a number of channels or readers below one, or a subtask outside it.
	ErrParallelism = errors.New("routing: invalid parallelism")
)

// Returned when checkpoint fragments are restored.
var (
	// ErrRestoreState is returned when the fragments cannot belong to one checkpoint of the current table.
	ErrRestoreState = errors.New("routing: invalid restored state")
	// ErrConflictingOffsets is returned when two fragments claim different offsets for one bucket.
	ErrConflictingOffsets = errors.New("routing: conflicting checkpoint offsets")
	// ErrDataInconsistency is returned when a bucket's log ends before the offset its checkpoint recorded.
	ErrDataInconsistency = errors.New("routing: data inconsistency")
	// ErrMissingOffset is returned when the current end offset of an owned bucket is not known.
	ErrMissingOffset = errors.New("routing: missing current offset")
)

// ColumnError says which column stopped an encoder and why. It unwraps to one of ErrUnsupportedType, ErrNullKey,
// ErrValueKind, ErrValueRange and ErrReservedValue.
type ColumnError struct {
	Format   string // the key form that refused it, or "partition"
	Column   string // name of the column
	Position int    // position within the key, from 0
	Type     Type   // type of the column
	Bound    string // what would have been accepted; empty when the sentinel says it all
	Err      error  // the sentinel
}

// Error names the column, its type and the violated bound.
func (e *ColumnError) Error() string {
	s := fmt.Sprintf("%v: %s key column %q in position %d with type %s", e.Err, e.Format, e.Column, e.Position, e.Type)
	if e.Bound != "" {
		s += ": " + e.Bound
	}
	return s
}

// Unwrap returns the sentinel.
func (e *ColumnError) Unwrap() error { return e.Err }

// BucketCountError carries a bucket count that is not in 1..2147483647. It unwraps to ErrBucketCount.
type BucketCountError struct{ Count int32 }

// Error names the count and the bound.
func (e *BucketCountError) Error() string {
	return fmt.Sprintf("%v: %d is not in 1..2147483647", ErrBucketCount, e.Count)
}

// Unwrap returns ErrBucketCount.
func (e *BucketCountError) Unwrap() error { return ErrBucketCount }

// BucketRangeError carries a bucket id its partition does not have. It unwraps to ErrBucketRange.
type BucketRangeError struct{ Bucket, Count int32 }

// Error names the bucket and the bound.
func (e *BucketRangeError) Error() string {
	return fmt.Sprintf("%v: bucket %d is not in 0..%d", ErrBucketRange, e.Bucket, e.Count-1)
}

// Unwrap returns ErrBucketRange.
func (e *BucketRangeError) Unwrap() error { return ErrBucketRange }

// CheckBucket returns nil if bucket is one of a partition's count buckets, a *BucketCountError if count is below one,
// and a *BucketRangeError otherwise. Whoever takes a bucket id from outside (a lake split, a checkpoint) calls it before
// using the id, so that an id made with another count fails loudly.
func CheckBucket(bucket, count int32) error {
	if count < 1 {
		return &BucketCountError{Count: count}
	}
	if bucket < 0 || bucket >= count {
		return &BucketRangeError{Bucket: bucket, Count: count}
	}
	return nil
}
