package raftnet

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unicode/utf8"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxString bounds ids, addresses and names on the wire; a byte holds their
// length.
const maxString = 255

// maxReason bounds the sentence of a refusal, in bytes.
const maxReason = 1024

// appendString adds a length byte and the string.
func appendString(b []byte, s string) ([]byte, error) {
	if len(s) > maxString || !utf8.ValidString(s) {
		return nil, fmt.Errorf("string of %d bytes, limit %d, valid UTF-8: %w", len(s), maxString, ErrTooLarge)
	}
	return append(append(b, byte(len(s))), s...), nil
}

// appendStrings adds several strings.
func appendStrings(b []byte, ss ...string) ([]byte, error) {
	var err error
	for _, s := range ss {
		if b, err = appendString(b, s); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// cursor reads fields off a byte slice; after the first field that does not fit
// every later one is zero and ok is false.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(k int) []byte {
	if c.bad || k > len(c.b) {
		c.bad = true
		return nil
	}
	p := c.b[:k]
	c.b = c.b[k:]
	return p
}

func (c *cursor) u8() uint8 {
	if p := c.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if p := c.take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if p := c.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (c *cursor) string() string { return c.text(int(c.u8())) }

func (c *cursor) text(k int) string {
	p := c.take(k)
	if !utf8.Valid(p) {
		c.bad = true
		return ""
	}
	return string(p)
}

// flag reads a byte that must be 0 or 1.
func (c *cursor) flag() bool {
	v := c.u8()
	c.bad = c.bad || v > 1
	return v == 1
}

// end reports whether all fields fitted and nothing is left.
func (c *cursor) end() error {
	if c.bad || len(c.b) > 0 {
		return fmt.Errorf("%w: field out of bounds or %d bytes left over", ErrMalformed, len(c.b))
	}
	return nil
}
