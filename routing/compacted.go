package routing

import "encoding/binary"

// appendCompacted writes the form of Fluss and Lance: the columns one after the other, without header, null bits or
// padding. The bytes of the first columns are a prefix of the whole.
func (e *KeyEncoder) appendCompacted(dst []byte, row []Value) ([]byte, error) {
	start := len(dst)
	for i := range e.cols {
		c := &e.cols[i]
		v := &row[c.src]
		if v.kind != c.value {
			return dst[:start], e.reject(i, v)
		}
		switch c.kind {
		case KindBoolean, KindTinyInt:
			dst = append(dst, byte(v.i))
		case KindSmallInt:
			dst = binary.LittleEndian.AppendUint16(dst, uint16(v.i))
		case KindInt, KindDate:
			dst = binary.AppendUvarint(dst, uint64(uint32(v.i)))
		case KindBigInt:
			dst = binary.AppendUvarint(dst, uint64(v.i))
		case KindFloat:
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v.i))
		case KindDouble:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(v.i))
		case KindBinary, KindBytes:
			dst = binary.AppendUvarint(dst, uint64(len(v.b)))
			dst = append(dst, v.b...)
		default: // the kinds whose values have bounds
			if v.fault(&c.Type) != "" {
				return dst[:start], e.reject(i, v)
			}
			dst = appendCompactedBounded(dst, c, v)
		}
	}
	return dst, nil
}

// appendCompactedBounded writes the values whose bounds the caller has checked.
func appendCompactedBounded(dst []byte, c *keyColumn, v *Value) []byte {
	switch c.kind {
	case KindChar, KindString:
		dst = binary.AppendUvarint(dst, uint64(len(v.s)))
		return append(dst, v.s...)
	case KindDecimal:
		if !c.wide {
			return binary.AppendUvarint(dst, uint64(v.i))
		}
		var buf [16]byte
		raw := v.int128().minimal(&buf)
		dst = binary.AppendUvarint(dst, uint64(len(raw)))
		return append(dst, raw...)
	case KindTimestamp, KindTimestampLTZ:
		dst = binary.AppendUvarint(dst, uint64(v.i))
		if c.wide {
			dst = binary.AppendUvarint(dst, uint64(v.x))
		}
		return dst
	default: // TIME
		return binary.AppendUvarint(dst, uint64(v.i))
	}
}

// compactedBound returns how long keys of some columns may be without their texts and bytes, and where in the row those
// are; 0 if that alone is longer than shortKey.
func compactedBound(cols []keyColumn) (n int, text []int) {
	for i := range cols {
		switch c := &cols[i]; c.kind {
		case KindChar, KindString, KindBinary, KindBytes:
			n += binary.MaxVarintLen32
			text = append(text, c.src)
		case KindDecimal:
			n += 1 + 16 // a length and an int128, or a varint
		case KindTimestamp, KindTimestampLTZ:
			n += 2 * binary.MaxVarintLen64
		default:
			n += binary.MaxVarintLen64
		}
	}
	if n > shortKey {
		return 0, nil
	}
	return n, text
}
