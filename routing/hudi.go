package routing

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// Hudi's placeholders for a null and an empty string in a record key.
const (
	hudiNull  = "__null__"
	hudiEmpty = "__empty__"
)

// appendHudi writes the hash code of the list of the key columns' texts, as Java's List.hashCode computes it.
func (e *KeyEncoder) appendHudi(dst []byte, row []Value) ([]byte, error) {
	single := len(e.cols) == 1
	h := uint32(1)
	for i := range e.cols {
		c := &e.cols[i]
		v := &row[c.src]
		var element int32
		switch {
		case v.kind == KindNull && single:
			element = JavaStringHash(hudiNull)
		case v.kind == KindNull: // a null element counts as 0
		case v.kind != c.value || v.fault(&c.Type) != "":
			return dst, e.reject(i, v)
		case v.kind == KindString:
			if bound := hudiReserved(v.s); bound != "" && !single {
				return dst, &ColumnError{
					Format: e.format.String(), Column: c.Name, Position: i, Type: c.Type, Err: ErrReservedValue,
					Bound: bound,
				}
			}
			element = JavaStringHash(v.s)
		default:
			var buf [64]byte
			element = javaHashASCII(appendJavaText(buf[:0], c, v))
		}
		h = 31*h + uint32(element)
	}
	return binary.BigEndian.AppendUint32(dst, h), nil
}

// hudiReserved says what is wrong with a text as one of several key columns; Hudi joins them without escaping.
func hudiReserved(s string) string {
	switch {
	case s == hudiNull || s == hudiEmpty:
		return "the text must not be a placeholder such as " + s
	case strings.IndexByte(s, ',') >= 0:
		return "the text must not contain a comma"
	default:
		return ""
	}
}

// appendJavaText appends what Java's toString gives for a value that is no text itself. All of it is ASCII; 64 bytes
// hold the longest, a decimal of 38 digits.
func appendJavaText(dst []byte, c *keyColumn, v *Value) []byte {
	switch c.kind {
	case KindBoolean:
		return strconv.AppendBool(dst, v.i != 0)
	case KindDecimal:
		return v.int128().appendPlain(dst, c.Type.Scale)
	case KindTimestamp:
		return appendISODateTime(dst, v.i, v.x, false)
	case KindTimestampLTZ:
		return append(appendISODateTime(dst, v.i, v.x, true), 'Z')
	default: // integers, DATE as days, TIME as milliseconds
		return strconv.AppendInt(dst, v.i, 10)
	}
}
