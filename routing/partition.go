package routing

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stavedb/stave/catalog"
)

const partitionSeparator = '$' // between the values of a partition name; no value may contain it

// PartitionNamer turns the partition columns of a row into a partition name. It is immutable and may be used by any
// number of goroutines at once.
type PartitionNamer struct {
	cols  []keyColumn
	width int
}

// NewPartitionNamer returns a namer for rows that hold exactly the partition columns in partition key order. No column
// at all is ErrKeyColumns; DECIMAL and nested columns are a *ColumnError with ErrUnsupportedType.
func NewPartitionNamer(keys []Column) (*PartitionNamer, error) {
	src := make([]int, len(keys))
	for i := range src {
		src[i] = i
	}
	return newPartitionNamer(keys, src, len(keys))
}

func newPartitionNamer(keys []Column, src []int, width int) (*PartitionNamer, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: a partition name needs at least one column", ErrKeyColumns)
	}
	n := &PartitionNamer{cols: make([]keyColumn, len(keys)), width: width}
	for i, c := range keys {
		if !partitionSupports(c.Type.Kind) {
			return nil, &ColumnError{
				Format: "partition", Column: c.Name, Position: i, Type: c.Type, Err: ErrUnsupportedType,
			}
		}
		n.cols[i] = compileColumn(c, src[i])
	}
	return n, nil
}

func partitionSupports(k Kind) bool {
	return k != KindNull && k != KindDecimal && k < KindArray
}

// Columns returns the partition columns in key order. The caller owns the slice.
func (n *PartitionNamer) Columns() []Column {
	cols := make([]Column, len(n.cols))
	for i := range n.cols {
		cols[i] = n.cols[i].Column
	}
	return cols
}

// Append appends the name of row's partition, the values joined by "$", to dst. Every value obeys
// catalog.CheckPartitionValue, so two different specs never give the same name. On an error dst is returned with its old
// length.
//
// Errors: ErrArity; a *ColumnError with ErrNullKey, ErrValueKind, ErrValueRange or ErrPartitionValue.
func (n *PartitionNamer) Append(dst []byte, row []Value) ([]byte, error) {
	if len(row) != n.width {
		return dst, fmt.Errorf("%w: %d values for %d columns", ErrArity, len(row), n.width)
	}
	start := len(dst)
	for i := range n.cols {
		c := &n.cols[i]
		v := &row[c.src]
		if v.kind != c.value || v.fault(&c.Type) != "" {
			return dst[:start], rejectValue("partition", i, &c.Column, v)
		}
		if i > 0 {
			dst = append(dst, partitionSeparator)
		}
		from := len(dst)
		dst = appendPartitionValue(dst, c.kind, v)
		if !catalog.IsIdentifier(dst[from:]) {
			return dst[:start], &ColumnError{
				Format: "partition", Column: c.Name, Position: i, Type: c.Type, Err: ErrPartitionValue,
				Bound: partitionValueFault(string(dst[from:])),
			}
		}
	}
	return dst, nil
}

// partitionValueFault says why v is no partition value.
func partitionValueFault(v string) string {
	err := catalog.CheckPartitionValue(v, false)
	if refusal := (*catalog.Error)(nil); errors.As(err, &refusal) {
		return refusal.Message
	}
	return ""
}

// Name is Append into a new string.
func (n *PartitionNamer) Name(row []Value) (string, error) {
	var buf [64]byte
	name, err := n.Append(buf[:0], row)
	if err != nil {
		return "", err
	}
	return string(name), nil
}

// PartitionValue returns the text of one partition column:
//
//	CHAR, STRING               as it is
//	BOOLEAN                    true, false
//	TINYINT ... BIGINT         decimal
//	BINARY, BYTES              lower-case hexadecimal
//	DATE                       2024-01-05
//	TIME                       03-25-45_678
//	TIMESTAMP, TIMESTAMP_LTZ   2025-05-31-03-42-35_ and the fraction of the second without trailing zeros, in UTC
//	FLOAT, DOUBLE              as Java prints it, with "_" for ".": 5_73, 1_0E10; NaN, Inf, -Inf
//
// The text need not be a legal partition value; catalog.CheckPartitionValue says. TIMESTAMP prints the year of its era, so an
// instant before year 1 shares its text with a later one. Errors: a *ColumnError with ErrUnsupportedType, ErrNullKey,
// ErrValueKind or ErrValueRange.
func PartitionValue(c Column, v Value) (string, error) {
	if !partitionSupports(c.Type.Kind) {
		return "", &ColumnError{Format: "partition", Column: c.Name, Type: c.Type, Err: ErrUnsupportedType}
	}
	if v.kind != c.Type.Kind.valueKind() || v.fault(&c.Type) != "" {
		return "", rejectValue("partition", 0, &c, &v)
	}
	return string(appendPartitionValue(nil, c.Type.Kind, &v)), nil
}

func appendPartitionValue(dst []byte, k Kind, v *Value) []byte {
	switch k {
	case KindChar, KindString:
		return append(dst, v.s...)
	case KindBoolean:
		return strconv.AppendBool(dst, v.i != 0)
	case KindBinary, KindBytes:
		return hex.AppendEncode(dst, v.b)
	case KindDate:
		d := civilFromDays(v.i)
		return appendPartitionDate(dst, d.year, d)
	case KindTime:
		return appendPartitionTime(dst, v.i)
	case KindTimestamp, KindTimestampLTZ:
		return appendPartitionTimestamp(dst, v)
	case KindFloat:
		f := math.Float32frombits(uint32(v.i))
		return appendPartitionFloat(dst, float64(f), func(b []byte) []byte { return appendJavaFloat(b, f) })
	case KindDouble:
		f := math.Float64frombits(uint64(v.i))
		return appendPartitionFloat(dst, f, func(b []byte) []byte { return appendJavaDouble(b, f) })
	default:
		return strconv.AppendInt(dst, v.i, 10)
	}
}

func appendPartitionDate(dst []byte, year int64, d civil) []byte {
	dst = appendPadded(dst, year, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, int64(d.month), 2)
	dst = append(dst, '-')
	return appendPadded(dst, int64(d.day), 2)
}

func appendPartitionTime(dst []byte, millis int64) []byte {
	c := clockFromMillis(millis, 0)
	dst = appendPartitionClock(dst, c)
	dst = append(dst, '_')
	return appendPadded(dst, c.nano/nanosPerMilli, 3)
}

func appendPartitionClock(dst []byte, c clock) []byte {
	dst = appendPadded(dst, int64(c.hour), 2)
	dst = append(dst, '-')
	dst = appendPadded(dst, int64(c.minute), 2)
	dst = append(dst, '-')
	return appendPadded(dst, int64(c.second), 2)
}

func appendPartitionTimestamp(dst []byte, v *Value) []byte {
	d, c := splitMillis(v.i, v.x)
	year := d.year
	if year < 1 {
		year = 1 - year // the year of its era: 1 BC is year 0
	}
	if year > 9999 {
		dst = append(dst, '+')
	}
	dst = appendPartitionDate(dst, year, d)
	dst = append(dst, '-')
	dst = appendPartitionClock(dst, c)
	dst = append(dst, '_')
	if c.nano == 0 {
		return dst
	}
	dst = appendPadded(dst, c.nano, 9)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

func appendPartitionFloat(dst []byte, f float64, appendText func([]byte) []byte) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-Inf"...)
	}
	from := len(dst)
	dst = appendText(dst)
	for i := from; i < len(dst); i++ {
		if dst[i] == '.' {
			dst[i] = '_'
		}
	}
	return dst
}

// PartitionMatches reports whether the partition with the given name has all the given values; it is how a partial spec
// selects partitions. keys are the table's partition keys. A key the table does not have is
// catalog.ErrPartitionSpecInvalid, since it would otherwise silently select nothing.
func PartitionMatches(keys []string, name string, partial catalog.PartitionSpec) (bool, error) {
	for _, want := range partial {
		if !slices.Contains(keys, want.Key) {
			return false, &catalog.Error{
				Code:    catalog.ErrPartitionSpecInvalid,
				Message: fmt.Sprintf("'%s' is none of the partition keys [%s]", want.Key, strings.Join(keys, ", ")),
			}
		}
	}
	values := strings.Split(name, string(partitionSeparator))
	for _, want := range partial {
		if i := slices.Index(keys, want.Key); i >= len(values) || values[i] != want.Value {
			return false, nil
		}
	}
	return true, nil
}
