package routing

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Format names a way to turn key columns into bytes and bytes into a bucket. A table's format is fixed when it is
// created: it is the lake format the cluster had then (property table.datalake.format), even while the table itself is
// not tiered to the lake.
type Format uint8

// The formats. FormatLance is FormatFluss under another name. Frozen: rows are placed by them.
const (
	FormatFluss Format = iota // no lake format
	FormatPaimon
	FormatIceberg
	FormatHudi
	FormatLance
)

var formatNames = [...]string{
	FormatFluss: "fluss", FormatPaimon: "paimon", FormatIceberg: "iceberg", FormatHudi: "hudi", FormatLance: "lance",
}

// String returns the lower-case name, or "format(n)" for a value that is none.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// ParseFormat parses the value of table.datalake.format in any case. The empty string, an absent property, is
// FormatFluss. Errors: ErrFormat.
func ParseFormat(s string) (Format, error) {
	if s == "" {
		return FormatFluss, nil
	}
	if i := slices.Index(formatNames[:], strings.ToLower(s)); i >= 0 {
		return Format(i), nil
	}
	return 0, fmt.Errorf("%w: lake format %q is none of %s", ErrFormat, s, strings.Join(formatNames[:], ", "))
}

// Bucket returns the bucket of key, 0..count-1, for bucket key bytes an encoder of the same format has made:
//
//	fluss, lance   mix(murmur42(key)) mod count                      key not empty
//	paimon         |murmur42(key) rem count|                         empty keys allowed
//	iceberg        (murmur3_x86_32(key, seed 0) & 0x7fffffff) mod count   key not empty
//	hudi           (big-endian int32(key) & 0x7fffffff) mod count    key exactly 4 bytes
//
// count is the count of the partition the row goes to, never the table's. Errors: ErrEmptyKey, ErrKeyLength,
// *BucketCountError, ErrFormat. It does not allocate unless it fails.
func (f Format) Bucket(key []byte, count int32) (int32, error) {
	switch f {
	case FormatFluss, FormatLance, FormatIceberg:
		if len(key) == 0 {
			return 0, fmt.Errorf("%w: %s needs at least one byte", ErrEmptyKey, f)
		}
	case FormatHudi:
		if len(key) != 4 {
			return 0, fmt.Errorf("%w: hudi needs exactly 4 bytes, not %d", ErrKeyLength, len(key))
		}
	case FormatPaimon:
	default:
		return 0, fmt.Errorf("%w: %s", ErrFormat, f)
	}
	if count < 1 {
		return 0, &BucketCountError{Count: count}
	}
	switch f {
	case FormatPaimon:
		// The remainder is taken before the absolute value, so the smallest int32 is as safe as any other.
		b := murmur42(key) % count
		if b < 0 {
			b = -b
		}
		return b, nil
	case FormatIceberg:
		return (murmurStandard(key) & 0x7fffffff) % count, nil
	case FormatHudi:
		return int32(binary.BigEndian.Uint32(key)&0x7fffffff) % count, nil
	default:
		return mixInt(murmur42(key)) % count, nil
	}
}

// BucketKeyFormat returns the form of a table's bucket key and its bucketing function, given its lake format. They
// always go together: bytes made for one function mean nothing to another.
func BucketKeyFormat(lake Format) Format {
	if lake == FormatLance {
		return FormatFluss
	}
	return lake
}

// The versions of the key-value format (property table.kv.format-version).
const (
	KVFormatV1 = 1 // also when the property is unset
	KVFormatV2 = 2 // new primary key tables
)

// PrimaryKeyFormat returns the form in which a table stores its primary keys, given its lake format, its key-value
// format version (0 is "unset" and means KVFormatV1) and whether its bucket key is the default one.
//
// Hudi's form is a hash and loses information, so it is never a primary key. Version 1 uses the lake's form. Version 2
// uses it only with the default bucket key, and the compacted form otherwise, so that the bytes of a bucket key are a
// prefix of the bytes of the primary key. Other versions: ErrFormat.
func PrimaryKeyFormat(lake Format, kvVersion int, defaultBucketKey bool) (Format, error) {
	if kvVersion != 0 && kvVersion != KVFormatV1 && kvVersion != KVFormatV2 {
		return 0, fmt.Errorf("%w: key-value format version %d, 1 and 2 are known", ErrFormat, kvVersion)
	}
	if lake == FormatHudi || kvVersion == KVFormatV2 && !defaultBucketKey {
		return FormatFluss, nil
	}
	return BucketKeyFormat(lake), nil
}

// PhysicalPrimaryKey returns the primary key without the partition keys, in primary key order: what a primary key
// encoder sees, because all rows of a partition share the rest.
func PhysicalPrimaryKey(primaryKey, partitionKeys []string) []string {
	var physical []string
	for _, name := range primaryKey {
		if !slices.Contains(partitionKeys, name) {
			physical = append(physical, name)
		}
	}
	return physical
}

// IsDefaultBucketKey reports whether bucketKeys is the physical primary key in the same order. (b, a) is not the
// default for the primary key (a, b).
func IsDefaultBucketKey(primaryKey, partitionKeys, bucketKeys []string) bool {
	return slices.Equal(PhysicalPrimaryKey(primaryKey, partitionKeys), bucketKeys)
}
