package routing

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// Value is one typed cell of a row. It is a plain struct, so a row is one []Value without boxing. The zero Value is
// null. A Value made from a string or a byte slice refers to the caller's memory and is valid as long as that is
// unchanged; all others are self-contained.
type Value struct {
	kind Kind
	i    int64 // numbers, dates, times, millis; raw IEEE bits; low half of a decimal
	x    int64 // nanos within the millisecond; high half of a decimal
	s    string
	b    []byte
}

// Null returns the null value, which is also the zero Value.
func Null() Value { return Value{} }

// Boolean returns a BOOLEAN.
func Boolean(v bool) Value {
	if v {
		return Value{kind: KindBoolean, i: 1}
	}
	return Value{kind: KindBoolean}
}

// TinyInt returns a TINYINT.
func TinyInt(v int8) Value { return Value{kind: KindTinyInt, i: int64(v)} }

// SmallInt returns a SMALLINT.
func SmallInt(v int16) Value { return Value{kind: KindSmallInt, i: int64(v)} }

// Int returns an INT.
func Int(v int32) Value { return Value{kind: KindInt, i: int64(v)} }

// BigInt returns a BIGINT.
func BigInt(v int64) Value { return Value{kind: KindBigInt, i: v} }

// Float returns a FLOAT; the bits of a NaN are kept.
func Float(v float32) Value { return Value{kind: KindFloat, i: int64(math.Float32bits(v))} }

// Double returns a DOUBLE; the bits of a NaN are kept.
func Double(v float64) Value { return Value{kind: KindDouble, i: int64(math.Float64bits(v))} }

// String returns the value of a CHAR or STRING column. It must be valid UTF-8 to be encoded.
func String(v string) Value { return Value{kind: KindString, s: v} }

// Bytes returns the value of a BINARY or BYTES column. The slice is not copied.
func Bytes(v []byte) Value { return Value{kind: KindBytes, b: v} }

// Date returns a DATE of days since 1970-01-01.
func Date(days int32) Value { return Value{kind: KindDate, i: int64(days)} }

// TimeOfDay returns a TIME of milliseconds since midnight, 0..86399999.
func TimeOfDay(millis int32) Value { return Value{kind: KindTime, i: int64(millis)} }

// Timestamp returns a TIMESTAMP without time zone: milliseconds since 1970-01-01T00:00:00 of the wall clock, rounded
// down, and the nanoseconds above them, 0..999999.
func Timestamp(millis int64, nanos int32) Value {
	return Value{kind: KindTimestamp, i: millis, x: int64(nanos)}
}

// TimestampLTZ returns a TIMESTAMP_LTZ: milliseconds since the epoch in UTC, rounded down, and the nanoseconds above
// them, 0..999999.
func TimestampLTZ(millis int64, nanos int32) Value {
	return Value{kind: KindTimestampLTZ, i: millis, x: int64(nanos)}
}

// Decimal returns a DECIMAL by its unscaled value: Decimal(1420) in a DECIMAL(5, 2) column is 14.20.
func Decimal(unscaled int64) Value {
	return Value{kind: KindDecimal, i: unscaled, x: unscaled >> 63}
}

// BigDecimal returns a DECIMAL by its unscaled value. Beyond 38 digits, which no column holds, it fails with
// ErrValueRange.
func BigDecimal(unscaled *big.Int) (Value, error) {
	if unscaled == nil {
		return Value{}, fmt.Errorf("%w: nil unscaled decimal", ErrNullKey)
	}
	if unscaled.BitLen() > 127 {
		return Value{}, fmt.Errorf("%w: unscaled decimal of %d bits, at most 127 fit", ErrValueRange, unscaled.BitLen())
	}
	var raw [16]byte
	unscaled.FillBytes(raw[:]) // the absolute value
	d := int128{hi: int64(beUint64(raw[:8])), lo: beUint64(raw[8:])}
	if unscaled.Sign() < 0 {
		d = d.neg()
	}
	if !d.fits(maxDecimalPrecision) {
		return Value{}, fmt.Errorf("%w: unscaled decimal beyond %d digits", ErrValueRange, maxDecimalPrecision)
	}
	return Value{kind: KindDecimal, i: int64(d.lo), x: d.hi}, nil
}

// Kind returns KindString for CHAR and STRING, KindBytes for BINARY and BYTES, KindNull for null, and the column kind
// otherwise.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Equal reports whether v and w are the same kind with the same bits. It never treats values of two kinds as equal,
// and NaN equals NaN.
func (v Value) Equal(w Value) bool {
	return v.kind == w.kind && v.i == w.i && v.x == w.x && v.s == w.s && bytes.Equal(v.b, w.b)
}

// GoString prints kind and content, for test output and error messages. Its form is not stable.
func (v Value) GoString() string {
	switch v.kind {
	case KindNull:
		return "NULL"
	case KindString:
		return "STRING " + strconv.Quote(v.s)
	case KindBytes:
		return fmt.Sprintf("BYTES %x", v.b)
	case KindFloat:
		return fmt.Sprintf("FLOAT %v", math.Float32frombits(uint32(v.i)))
	case KindDouble:
		return fmt.Sprintf("DOUBLE %v", math.Float64frombits(uint64(v.i)))
	default:
		return fmt.Sprintf("%s %d:%d", v.kind, v.x, v.i)
	}
}

// int128 returns a decimal's unscaled value.
func (v *Value) int128() int128 { return int128{hi: v.x, lo: uint64(v.i)} }

const (
	millisPerDay   = 86_400_000
	nanosPerMilli  = 1_000_000
	nanosPerSecond = 1_000_000_000
)

// fault returns why v cannot be a value of t, and "" if it can. The caller has compared the kinds. Every encoder and
// namer goes through it: a value that two languages would read differently must not be routed at all.
func (v *Value) fault(t *Type) string {
	switch t.Kind {
	case KindChar, KindString:
		if !utf8.ValidString(v.s) {
			return "valid UTF-8 is required"
		}
	case KindTime:
		if v.i < 0 || v.i >= millisPerDay {
			return "milliseconds of day must be in 0..86399999, not " + strconv.FormatInt(v.i, 10)
		}
	case KindTimestamp, KindTimestampLTZ:
		if v.x < 0 || v.x >= nanosPerMilli {
			return "nanoseconds of millisecond must be in 0..999999, not " + strconv.FormatInt(v.x, 10)
		}
	case KindDecimal:
		if !v.int128().fits(t.Precision) {
			return "the unscaled value has more than " + strconv.Itoa(t.Precision) + " digits"
		}
	default: // every bit pattern is a value
	}
	return ""
}
