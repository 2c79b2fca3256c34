package routing

import (
	"encoding/binary"
	"slices"
)

const (
	paimonSlot    = 8  // bytes of a column in the fixed part
	paimonInline  = 7  // longest text or bytes held in a slot
	paimonDecimal = 16 // bytes reserved for a wide decimal
)

// paimonNullBytes is the length of the header: one byte for the kind of row, then a bit per column, in whole words.
func paimonNullBytes(columns int) int { return (columns + 63 + 8) / 64 * 8 }

// appendPaimon writes a Paimon BinaryRow without its arity. Bytes that nothing is said about are zero.
func (e *KeyEncoder) appendPaimon(dst []byte, row []Value) ([]byte, error) {
	start := len(dst)
	dst = appendZeros(dst, e.fixed) // row kind 0 is an insert
	slot := start + e.fixed - paimonSlot*len(e.cols)
	for i := range e.cols {
		c := &e.cols[i]
		v := &row[c.src]
		switch {
		case v.kind == c.value:
			if v.fault(&c.Type) != "" {
				return dst[:start], e.reject(i, v)
			}
			dst = appendPaimonValue(dst, start, slot, c, v)
		case v.kind == KindNull && !c.Type.NotNull:
			setPaimonNull(dst, start, i)
		case v.kind == KindNull && c.wide:
			// Upstream accepts these nulls although the column is NOT NULL, and still reserves their room.
			setPaimonNull(dst, start, i)
			dst = appendPaimonReserved(dst, start, slot, c)
		default:
			return dst[:start], e.reject(i, v)
		}
		slot += paimonSlot
	}
	return dst, nil
}

func setPaimonNull(dst []byte, start, column int) {
	bit := column + 8 // behind the row kind
	dst[start+bit/8] |= 1 << (bit % 8)
}

// appendPaimonReserved points the slot of a null at reserved zero bytes.
func appendPaimonReserved(dst []byte, start, slot int, c *keyColumn) []byte {
	putPaimonSlot(dst[slot:], len(dst)-start, 0)
	if c.kind == KindDecimal {
		return appendZeros(dst, paimonDecimal)
	}
	return appendZeros(dst, 8)
}

// putPaimonSlot writes a reference into the variable part: offset from the start of the row, and a number that is the
// length of the data or the part of it that fits here.
func putPaimonSlot(slot []byte, offset int, n uint32) {
	binary.LittleEndian.PutUint64(slot, uint64(offset)<<32|uint64(n))
}

// appendPaimonValue fills the slot of a value and appends what does not fit into it.
func appendPaimonValue(dst []byte, start, slot int, c *keyColumn, v *Value) []byte {
	s := dst[slot : slot+paimonSlot]
	switch c.kind {
	case KindBoolean, KindTinyInt:
		s[0] = byte(v.i)
	case KindSmallInt:
		binary.LittleEndian.PutUint16(s, uint16(v.i))
	case KindInt, KindDate, KindTime, KindFloat:
		binary.LittleEndian.PutUint32(s, uint32(v.i))
	case KindBigInt, KindDouble:
		binary.LittleEndian.PutUint64(s, uint64(v.i))
	case KindChar, KindString:
		return appendPaimonData(dst, start, slot, v.s)
	case KindBinary, KindBytes:
		return appendPaimonData(dst, start, slot, v.b)
	case KindDecimal:
		if !c.wide {
			binary.LittleEndian.PutUint64(s, uint64(v.i))
			return dst
		}
		var buf [16]byte
		raw := v.int128().minimal(&buf)
		offset := len(dst)
		putPaimonSlot(s, offset-start, uint32(len(raw)))
		dst = appendZeros(dst, paimonDecimal)
		copy(dst[offset:], raw)
	default: // TIMESTAMP, TIMESTAMP_LTZ
		if !c.wide {
			binary.LittleEndian.PutUint64(s, uint64(v.i))
			return dst
		}
		putPaimonSlot(s, len(dst)-start, uint32(v.x))
		return binary.LittleEndian.AppendUint64(dst, uint64(v.i))
	}
	return dst
}

func appendPaimonData[T string | []byte](dst []byte, start, slot int, data T) []byte {
	if len(data) <= paimonInline {
		copy(dst[slot:], data)
		dst[slot+paimonInline] = 0x80 | byte(len(data))
		return dst
	}
	putPaimonSlot(dst[slot:], len(dst)-start, uint32(len(data)))
	dst = append(dst, data...)
	return appendZeros(dst, -len(data)&7)
}

func appendZeros(dst []byte, n int) []byte {
	dst = slices.Grow(dst, n)
	end := len(dst) + n
	clear(dst[len(dst):end])
	return dst[:end]
}
