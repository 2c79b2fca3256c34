package msgpack

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Bool is a truth value.
func (c *Codec) Bool(v *bool) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		c.seen()
		if *v {
			c.buf = append(c.buf, fmtTrue)
		} else {
			c.buf = append(c.buf, fmtFalse)
		}
		return
	}
	if c.off >= len(c.buf) || c.buf[c.off]|1 != fmtTrue {
		c.failByte(c.off, "bool")
		return
	}
	*v = c.buf[c.off] == fmtTrue
	c.off++
	c.seen()
}

// Uint64 is an unsigned number.
func (c *Codec) Uint64(v *uint64) { Uint(c, v) }

// Uint32 is an unsigned number of at most 32 bits.
func (c *Codec) Uint32(v *uint32) { Uint(c, v) }

// Uint8 is an unsigned number of at most 8 bits.
func (c *Codec) Uint8(v *uint8) { Uint(c, v) }

// Int64 is a signed number.
func (c *Codec) Int64(v *int64) { Int(c, v) }

// Int32 is a signed number of at most 32 bits.
func (c *Codec) Int32(v *int32) { Int(c, v) }

// String is a text; it is an error in both directions when it is not valid
// UTF-8.
func (c *Codec) String(v *string) { Str(c, v) }

// Bounds of the texts that a decoder keeps for Repeated.
const (
	maxRepeated      = 256
	maxRepeatedBytes = 128
)

// Repeated is String for a text that is likely to come again, such as the name
// of a table: a decoder that is used again, see Reset, keeps a few hundred short
// ones and gives the same memory for the same text.
func (c *Codec) Repeated(v *string) {
	if !c.decoding || c.err != nil {
		c.String(v)
		return
	}
	at, seen := c.off, c.open
	raw, ok := c.readRaw(kindString)
	if !ok {
		return
	}
	if s, ok := c.repeated[string(raw)]; ok {
		*v = s
		c.seen()
		return
	}
	c.off, c.open = at, seen
	c.String(v)
	if c.err != nil || len(raw) > maxRepeatedBytes {
		return
	}
	if c.repeated == nil || len(c.repeated) >= maxRepeated {
		c.repeated = make(map[string]string)
	}
	c.repeated[*v] = *v
}

// Blob is a byte string. A decoder copies it out of the input; nil and empty
// are the same on the wire and decode as nil.
func (c *Codec) Blob(v *[]byte) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		if c.writeLen(kindBytes, len(*v)) {
			c.buf = append(c.buf, *v...)
		}
		return
	}
	if raw, ok := c.readRaw(kindBytes); ok {
		*v = append([]byte(nil), raw...)
		c.seen()
	}
}

func (c *Codec) writeUint(x uint64) {
	c.seen()
	switch {
	case x < 0x80:
		c.buf = append(c.buf, byte(x))
	case x <= math.MaxUint8:
		c.buf = append(c.buf, fmtUint8, byte(x))
	case x <= math.MaxUint16:
		c.buf = append(c.buf, fmtUint16, byte(x>>8), byte(x))
	case x <= math.MaxUint32:
		c.buf = binary.BigEndian.AppendUint32(append(c.buf, fmtUint32), uint32(x))
	default:
		c.buf = binary.BigEndian.AppendUint64(append(c.buf, fmtUint64), x)
	}
}

func (c *Codec) writeInt(x int64) {
	if x >= 0 {
		c.writeUint(uint64(x))
		return
	}
	c.seen()
	switch {
	case x >= -32:
		c.buf = append(c.buf, byte(x))
	case x >= math.MinInt8:
		c.buf = append(c.buf, fmtInt8, byte(x))
	case x >= math.MinInt16:
		c.buf = append(c.buf, fmtInt16, byte(x>>8), byte(x))
	case x >= math.MinInt32:
		c.buf = binary.BigEndian.AppendUint32(append(c.buf, fmtInt32), uint32(x))
	default:
		c.buf = binary.BigEndian.AppendUint64(append(c.buf, fmtInt64), uint64(x))
	}
}

// readUint reads an unsigned number in its shortest form.
func (c *Codec) readUint() (x uint64, ok bool) {
	if c.off < len(c.buf) && c.buf[c.off] < 0x80 {
		x = uint64(c.buf[c.off])
		c.off++
		return x, true
	}
	if c.off < len(c.buf) && (c.buf[c.off] >= 0xe0 || c.buf[c.off] >= fmtInt8 && c.buf[c.off] <= fmtInt64) {
		c.fail(c.off, ErrRange, "unsigned integer", "signed integer")
		return 0, false
	}
	if c.off >= len(c.buf) || c.buf[c.off] < fmtUint8 || c.buf[c.off] > fmtUint64 {
		c.failByte(c.off, "unsigned integer")
		return 0, false
	}
	at := c.off
	log := c.buf[at] - fmtUint8 // width is 1 << log bytes
	if x, ok = c.readFixed(1<<log, "unsigned integer"); !ok {
		return 0, false
	}
	if x < 0x80 || log > 0 && x>>(4<<log) == 0 {
		c.fail(at, ErrNotMinimal, "unsigned integer", fmt.Sprintf("%d in %d bytes", x, 1<<log))
		return 0, false
	}
	return x, true
}

// readInt reads a signed number in its shortest form.
func (c *Codec) readInt() (int64, bool) {
	at := c.off
	if at < len(c.buf) {
		if b := c.buf[at]; b >= 0xe0 {
			c.off++
			return int64(int8(b)), true
		} else if b >= fmtInt8 && b <= fmtInt64 {
			return c.readNegative(b - fmtInt8)
		}
	}
	x, ok := c.readUint()
	if ok && x > math.MaxInt64 {
		c.fail(at, ErrRange, "integer", fmt.Sprint(x))
		return 0, false
	}
	return int64(x), ok
}

// readNegative reads a number in a signed form of 1 << log bytes.
func (c *Codec) readNegative(log byte) (int64, bool) {
	at := c.off
	raw, ok := c.readFixed(1<<log, "integer")
	if !ok {
		return 0, false
	}
	shift := 64 - 8<<log
	x := int64(raw<<shift) >> shift
	// The next shorter form reaches down to minus 2^(half the bits, less one).
	if x >= -32 || log > 0 && x >= -1<<(4<<log-1) {
		c.fail(at, ErrNotMinimal, "integer", fmt.Sprintf("%d in %d signed bytes", x, 1<<log))
		return 0, false
	}
	return x, true
}

// readFixed reads a format byte and the big-endian number of width bytes
// behind it.
func (c *Codec) readFixed(width int, want string) (x uint64, ok bool) {
	if len(c.buf)-c.off-1 < width {
		c.fail(c.off, ErrTruncated, want, "end of input")
		return 0, false
	}
	b := c.buf[c.off+1:]
	switch width {
	case 1:
		x = uint64(b[0])
	case 2:
		x = uint64(binary.BigEndian.Uint16(b))
	case 4:
		x = uint64(binary.BigEndian.Uint32(b))
	default:
		x = binary.BigEndian.Uint64(b)
	}
	c.off += 1 + width
	return x, true
}
