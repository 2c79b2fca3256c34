package msgpack

import (
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// Uint is an unsigned number of a named type. A decoder refuses one that does
// not fit T.
func Uint[T ~uint64 | ~uint32 | ~uint16 | ~uint8](c *Codec, v *T) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		c.writeUint(uint64(*v))
		return
	}
	at := c.off
	x, ok := c.readUint()
	if !ok {
		return
	}
	if uint64(T(x)) != x {
		c.fail(at, ErrRange, fmt.Sprintf("uint%d", bits.Len64(uint64(^T(0)))), fmt.Sprint(x))
		return
	}
	*v = T(x)
	c.seen()
}

// Int is a signed number of a named type. A decoder refuses one that does not
// fit T.
func Int[T ~int64 | ~int32 | ~int16 | ~int8 | ~int](c *Codec, v *T) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		c.writeInt(int64(*v))
		return
	}
	at := c.off
	x, ok := c.readInt()
	if !ok {
		return
	}
	if int64(T(x)) != x {
		c.fail(at, ErrRange, fmt.Sprintf("int%d", signedBits[T]()), fmt.Sprint(x))
		return
	}
	*v = T(x)
	c.seen()
}

// signedBits returns the width of T.
func signedBits[T ~int64 | ~int32 | ~int16 | ~int8 | ~int]() int {
	n := 1
	for x := T(1); x > 0; x <<= 1 {
		n++
	}
	return n
}

// Str is a text of a named type, with the rules of String.
func Str[T ~string](c *Codec, v *T) {
	if c.err != nil {
		return
	}
	if !c.decoding {
		if !utf8.ValidString(string(*v)) {
			c.fail(c.Offset(), ErrInvalidUTF8, "string", fmt.Sprintf("%.32q", string(*v)))
			return
		}
		if c.writeLen(kindString, len(*v)) {
			c.buf = append(c.buf, *v...)
		}
		return
	}
	at := c.off
	raw, ok := c.readRaw(kindString)
	if !ok {
		return
	}
	if !utf8.Valid(raw) {
		c.fail(at, ErrInvalidUTF8, "string", fmt.Sprintf("%.32q", raw))
		return
	}
	*v = T(raw)
	c.seen()
}

// sliceStart bounds what a decoder allocates for a slice before it has seen an
// element; from there on it grows with what was really decoded.
const sliceStart = 256

// Slice is a list of at most limit elements; each states the fields of one.
// Nil and empty are the same on the wire and decode as nil. A decoder makes a
// new slice, never writes to the old one, and replaces *v only when every
// element decoded. The length in the input does not decide what is allocated.
func Slice[T any](c *Codec, v *[]T, limit int, each func(*Codec, *T)) {
	n := len(*v)
	c.ArrayLen(&n, 0, limit)
	if !c.decoding {
		for i := 0; i < n && c.err == nil; i++ {
			each(c, &(*v)[i])
		}
		return
	}
	if c.err != nil {
		return
	}
	if n == 0 {
		*v = nil
		return
	}
	out := make([]T, 0, min(n, sliceStart))
	for range n {
		var zero T
		out = append(out, zero)
		if each(c, &out[len(out)-1]); c.err != nil {
			return
		}
	}
	*v = out
}

// Optional is a value that may be unset: nil when *set is false, else what each
// states, which must not be able to be nil itself. A decoder sets *v to its
// zero value when it is unset.
func Optional[T any](c *Codec, set *bool, v *T, each func(*Codec, *T)) {
	switch {
	case c.err != nil:
	case !c.decoding && !*set:
		c.seen()
		c.buf = append(c.buf, fmtNil)
	case !c.decoding:
		at := len(c.buf)
		each(c, v)
		if c.err == nil && (len(c.buf) == at || c.buf[at] == fmtNil) {
			c.fail(at-c.off, ErrNestedNil, "a value", "nil")
		}
	case c.off < len(c.buf) && c.buf[c.off] == fmtNil:
		c.off++
		c.seen()
		var zero T
		*set, *v = false, zero
	default:
		if each(c, v); c.err == nil {
			*set = true
		}
	}
}
