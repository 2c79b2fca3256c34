package routing

import (
	"fmt"
	"slices"
	"strconv"
)

// TableShape is what routing needs to know of a table.
type TableShape struct {
	Columns       []Column // all columns; a row has one value for each, in this order
	PrimaryKey    []string // empty for a log table
	PartitionKeys []string // empty for a table without partitions
	BucketKeys    []string // empty: the default for a primary key table, none for a log table
	Lake          Format   // the table's lake format
	KVFormat      int      // key-value format version of a primary key table, 0 if unset
}

// TableKeys holds the encoders of one table, all reading full rows in column order. It is immutable and safe for
// concurrent use. Everything in it is fixed at the table's creation, so it may be cached by table id forever.
type TableKeys struct {
	primary   *KeyEncoder
	bucket    *KeyEncoder
	partition *PartitionNamer
}

// NewTableKeys chooses the encoders for a table. Errors: ErrKeyColumns if a key names a column the table does not have
// or names one twice; ErrFormat; a *ColumnError as from NewKeyEncoder and NewPartitionNamer.
func NewTableKeys(t TableShape) (*TableKeys, error) {
	physical := PhysicalPrimaryKey(t.PrimaryKey, t.PartitionKeys)
	bucketKeys := t.BucketKeys
	if len(bucketKeys) == 0 {
		bucketKeys = physical
	}
	k := &TableKeys{}
	var err error
	if k.bucket, err = t.encoder("bucket key", BucketKeyFormat(t.Lake), bucketKeys); err != nil {
		return nil, err
	}
	if len(t.PrimaryKey) > 0 {
		format, err := PrimaryKeyFormat(t.Lake, t.KVFormat, slices.Equal(physical, bucketKeys))
		if err != nil {
			return nil, err
		}
		if len(physical) == 0 {
			return nil, fmt.Errorf("%w: the primary key has only partition keys", ErrKeyColumns)
		}
		if k.primary, err = t.encoder("primary key", format, physical); err != nil {
			return nil, err
		}
	}
	if len(t.PartitionKeys) > 0 {
		cols, src, err := t.pick("partition key", t.PartitionKeys)
		if err != nil {
			return nil, err
		}
		if k.partition, err = newPartitionNamer(cols, src, len(t.Columns)); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (t *TableShape) encoder(what string, f Format, names []string) (*KeyEncoder, error) {
	if len(names) == 0 {
		return nil, nil
	}
	cols, src, err := t.pick(what, names)
	if err != nil {
		return nil, err
	}
	e, err := newKeyEncoder(f, cols, src, len(t.Columns))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return e, nil
}

// pick finds the named columns and their places.
func (t *TableShape) pick(what string, names []string) ([]Column, []int, error) {
	cols := make([]Column, len(names))
	src := make([]int, len(names))
	for i, name := range names {
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if at < 0 {
			return nil, nil, fmt.Errorf("%w: the %s names no column: %s", ErrKeyColumns, what, strconv.Quote(name))
		}
		if slices.Contains(names[:i], name) {
			return nil, nil, fmt.Errorf("%w: the %s names a column twice: %s", ErrKeyColumns, what, strconv.Quote(name))
		}
		cols[i], src[i] = t.Columns[at], at
	}
	return cols, src, nil
}

// BucketKey returns the encoder of the bucket key, nil for a table without one: its rows may go to any bucket.
func (k *TableKeys) BucketKey() *KeyEncoder { return k.bucket }

// PrimaryKey returns the encoder of the physical primary key, nil for a log table.
func (k *TableKeys) PrimaryKey() *KeyEncoder { return k.primary }

// Partition returns the namer of the table's partitions, nil for a table without partitions.
func (k *TableKeys) Partition() *PartitionNamer { return k.partition }
