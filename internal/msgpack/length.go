package msgpack

import (
	"encoding/binary"
	"fmt"
	"math"
)

// kind is a type that carries a length.
type kind struct {
	name string
	// fix is the first of the format bytes that carry the length themselves,
	// up to fixMax; fixMax < 0 when there are none.
	fix    byte
	fixMax int
	// first and last are the format bytes with the length in 1<<shift to 4 bytes.
	first, last, shift byte
}

var (
	kindString = &kind{name: "string", fix: 0xa0, fixMax: 31, first: fmtStr8, last: fmtStr32}
	kindBytes  = &kind{name: "bytes", fixMax: -1, first: fmtBin8, last: fmtBin32}
	kindArray  = &kind{name: "array", fix: 0x90, fixMax: 15, first: fmtArray16, last: fmtArray32, shift: 1}
)

// writeLen writes the header of a string or byte string.
func (c *Codec) writeLen(k *kind, n int) bool {
	if n > math.MaxInt32 {
		c.fail(c.Offset(), ErrRange, k.name, fmt.Sprintf("%d bytes", n))
		return false
	}
	c.seen()
	switch {
	case n <= k.fixMax:
		c.buf = append(c.buf, k.fix|byte(n))
	case n <= math.MaxUint8:
		c.buf = append(c.buf, k.first, byte(n))
	case n <= math.MaxUint16:
		c.buf = append(c.buf, k.first+1, byte(n>>8), byte(n))
	default:
		c.buf = binary.BigEndian.AppendUint32(append(c.buf, k.last), uint32(n))
	}
	return true
}

// readLen reads the header of a string, byte string or array. The length is
// not yet checked against the input.
func (c *Codec) readLen(k *kind) (int, bool) {
	at := c.off
	if at >= len(c.buf) {
		c.failByte(at, k.name)
		return 0, false
	}
	b := c.buf[at]
	if k.fixMax >= 0 && b >= k.fix && int(b-k.fix) <= k.fixMax {
		c.off++
		return int(b - k.fix), true
	}
	if b < k.first || b > k.last {
		c.failByte(at, k.name)
		return 0, false
	}
	log := b - k.first + k.shift
	n, ok := c.readFixed(1<<log, k.name)
	if !ok {
		return 0, false
	}
	// The shortest form: above what the format byte alone, and what the next
	// shorter length, can hold.
	if int64(n) <= int64(k.fixMax) || b > k.first && n>>(4<<log) == 0 {
		c.fail(at, ErrNotMinimal, k.name, fmt.Sprintf("length %d in %d bytes", n, 1<<log))
		return 0, false
	}
	if n > math.MaxInt32 { // no encoder writes it, and int may have 32 bits
		c.fail(at, ErrTruncated, fmt.Sprintf("%s of %d", k.name, n), fmt.Sprintf("%d bytes left", len(c.buf)-c.off))
		return 0, false
	}
	return int(n), true
}

// readRaw reads a string or byte string; the result aliases the input
// and the caller calls seen.
func (c *Codec) readRaw(k *kind) ([]byte, bool) {
	at := c.off
	n, ok := c.readLen(k)
	if !ok {
		return nil, false
	}
	if n > len(c.buf)-c.off {
		c.fail(at, ErrTruncated, fmt.Sprintf("%s of %d bytes", k.name, n), fmt.Sprintf("%d bytes left", len(c.buf)-c.off))
		return nil, false
	}
	raw := c.buf[c.off : c.off+n]
	c.off += n
	return raw, true
}

// Record begins a record of exactly n fields, which the caller must let follow.
func (c *Codec) Record(n int) {
	c.ArrayLen(&n, n, n)
}

// ArrayLen begins an array of *n elements, which the caller must let follow.
// In both directions it is an error when min <= *n <= max does not hold. A
// decoder also refuses a length above the number of bytes left, since every
// element takes at least one.
func (c *Codec) ArrayLen(n *int, minLen, maxLen int) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		c.writeArrayLen(*n, minLen, maxLen)
		return
	}
	at := c.off
	size, ok := c.readLen(kindArray)
	if !ok {
		return
	}
	switch {
	case size < minLen || size > maxLen:
		c.fail(at, ErrRange, wantLen(minLen, maxLen), fmt.Sprintf("array of %d", size))
	case size > len(c.buf)-c.off:
		c.fail(at, ErrTruncated, fmt.Sprintf("array of %d", size), fmt.Sprintf("%d bytes left", len(c.buf)-c.off))
	default:
		*n = size
		c.seen()
		c.open += size
	}
}

func (c *Codec) writeArrayLen(n, minLen, maxLen int) {
	if n < max(minLen, 0) || n > maxLen || n > math.MaxInt32 {
		c.fail(c.Offset(), ErrRange, wantLen(minLen, maxLen), fmt.Sprintf("array of %d", n))
		return
	}
	c.seen()
	c.open += n
	switch {
	case n < 16:
		c.buf = append(c.buf, 0x90|byte(n))
	case n <= math.MaxUint16:
		c.buf = append(c.buf, fmtArray16, byte(n>>8), byte(n))
	default:
		c.buf = binary.BigEndian.AppendUint32(append(c.buf, fmtArray32), uint32(n))
	}
}

func wantLen(minLen, maxLen int) string {
	if minLen == maxLen {
		return fmt.Sprintf("array of %d", minLen)
	}
	return fmt.Sprintf("array of %d to %d", minLen, maxLen)
}
