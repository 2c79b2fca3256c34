package routing

import "encoding/binary"

// appendIceberg writes the bytes Iceberg's bucket transform hashes; the key has one column.
func (e *KeyEncoder) appendIceberg(dst []byte, row []Value) ([]byte, error) {
	c := &e.cols[0]
	v := &row[c.src]
	if v.kind != c.value || v.fault(&c.Type) != "" {
		return dst, e.reject(0, v)
	}
	switch c.kind {
	case KindInt, KindDate, KindBigInt, KindDouble:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.i)), nil
	case KindFloat:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.i)), nil
	case KindTime: // microseconds
		return binary.LittleEndian.AppendUint64(dst, uint64(v.i*1000)), nil
	case KindTimestamp: // microseconds
		return binary.LittleEndian.AppendUint64(dst, uint64(v.i*1000+v.x/1000)), nil
	case KindDecimal:
		var buf [16]byte
		return append(dst, v.int128().minimal(&buf)...), nil
	case KindBinary, KindBytes:
		return append(dst, v.b...), nil
	default: // CHAR, STRING
		return append(dst, v.s...), nil
	}
}
