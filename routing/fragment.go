package routing

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/stavedb/stave/catalog"
)

const (
	fragmentHeader   = 4 + 8 + 4            // version, table id, number of entries
	fragmentMinEntry = 1 + 4 + 8            // flag, bucket, offset
	fragmentMaxEntry = 8 + fragmentMinEntry // with a partition id
)

// AppendFragment appends the bytes of a version 2 fragment, all numbers big-endian:
//
//	int32 version = 2 | int64 table id | int32 n | n entries
//	entry: byte has partition (0, 1) | [int64 partition id] | int32 bucket | int64 offset
//
// The table ids of the entries are not written; an entry of another table, a partition id above 63 bits and another
// version are ErrRestoreState. Frozen: checkpoints hold these bytes.
func AppendFragment(dst []byte, f *Fragment) ([]byte, error) {
	if f.Version != FragmentV2 {
		return dst, fmt.Errorf("%w: fragments of version %d cannot be written", ErrRestoreState, f.Version)
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.Version))
	dst = binary.BigEndian.AppendUint64(dst, uint64(f.TableID))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Offsets)))
	for _, o := range f.Offsets {
		if o.Bucket.TableID != f.TableID {
			return dst[:start], fmt.Errorf("%w: %s in a fragment of table %d", ErrRestoreState, o.Bucket, f.TableID)
		}
		switch id := o.Bucket.PartitionID; {
		case id == NoPartition:
			dst = append(dst, 0)
		case id > math.MaxInt64:
			return dst[:start], fmt.Errorf("%w: partition id %d is above 63 bits", ErrRestoreState, id)
		default:
			dst = append(dst, 1)
			dst = binary.BigEndian.AppendUint64(dst, uint64(id))
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(o.Bucket.Bucket))
		dst = binary.BigEndian.AppendUint64(dst, uint64(o.Offset))
	}
	return dst, nil
}

// DecodeFragment is the inverse of AppendFragment. The result shares no memory with data. Anything AppendFragment
// would not have written, trailing bytes included, is ErrRestoreState; memory use is bounded by the length of data.
func DecodeFragment(data []byte) (*Fragment, error) {
	if len(data) < fragmentHeader {
		return nil, fmt.Errorf("%w: a fragment of %d bytes", ErrRestoreState, len(data))
	}
	f := &Fragment{
		Version: int32(binary.BigEndian.Uint32(data)),
		TableID: catalog.TableID(binary.BigEndian.Uint64(data[4:])),
	}
	n := int64(int32(binary.BigEndian.Uint32(data[12:])))
	data = data[fragmentHeader:]
	if f.Version != FragmentV2 {
		return nil, fmt.Errorf("%w: unknown fragment version %d", ErrRestoreState, f.Version)
	}
	if n < 0 || n*fragmentMinEntry > int64(len(data)) || n*fragmentMaxEntry < int64(len(data)) {
		return nil, fmt.Errorf("%w: %d entries in %d bytes", ErrRestoreState, n, len(data))
	}
	f.Offsets = make([]BucketOffset, n)
	for i := range f.Offsets {
		var err error
		if data, err = f.decodeEntry(&f.Offsets[i], data); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%w: %d trailing bytes", ErrRestoreState, len(data))
	}
	return f, nil
}

func (f *Fragment) decodeEntry(o *BucketOffset, data []byte) ([]byte, error) {
	o.Bucket = TableBucket{TableID: f.TableID, PartitionID: NoPartition}
	size := fragmentMinEntry
	if len(data) > 0 && data[0] == 1 {
		size = fragmentMaxEntry
	}
	if len(data) < size || data[0] > 1 {
		return nil, fmt.Errorf("%w: malformed", ErrRestoreState)
	}
	rest := data[1:]
	if size == fragmentMaxEntry {
		o.Bucket.PartitionID = catalog.PartitionID(binary.BigEndian.Uint64(rest))
		if o.Bucket.PartitionID > math.MaxInt64 {
			return nil, fmt.Errorf("%w: partition id %d is above 63 bits", ErrRestoreState, o.Bucket.PartitionID)
		}
		rest = rest[8:]
	}
	o.Bucket.Bucket = int32(binary.BigEndian.Uint32(rest))
	o.Offset = int64(binary.BigEndian.Uint64(rest[4:]))
	return data[size:], nil
}
