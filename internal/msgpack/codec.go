package msgpack

import "fmt"

// Format bytes. Frozen: they are MessagePack's.
const (
	fmtNil     = 0xc0
	fmtFalse   = 0xc2
	fmtTrue    = 0xc3
	fmtBin8    = 0xc4
	fmtBin32   = 0xc6
	fmtUint8   = 0xcc
	fmtUint16  = 0xcd
	fmtUint32  = 0xce
	fmtUint64  = 0xcf
	fmtInt8    = 0xd0
	fmtInt16   = 0xd1
	fmtInt32   = 0xd2
	fmtInt64   = 0xd3
	fmtStr8    = 0xd9
	fmtStr32   = 0xdb
	fmtArray16 = 0xdc
	fmtArray32 = 0xdd
)

// Codec encodes or decodes, by how it was made. Field methods take a pointer:
// an encoder reads through it, a decoder writes through it. On an error a
// decoder leaves the value of that call unchanged. The zero Codec is an encoder
// with an empty buffer. A Codec is for one goroutine at a time.
type Codec struct {
	// buf is the output of an encoder, the input of a decoder.
	buf []byte
	// off is the next byte a decoder reads; for an encoder, where it began.
	//
	// Invariant: 0 <= off <= len(buf).
	off int
	// open counts the elements announced by array headers and not yet seen.
	open int
	// values counts complete or begun values outside any array.
	values   int
	err      error
	decoding bool
	// repeated are texts that a decoder has made before, see Repeated.
	repeated map[string]string
}

// NewEncoder returns an encoder that appends to buf, which may be nil. It owns
// buf until the last call of Bytes.
func NewEncoder(buf []byte) *Codec { return &Codec{buf: buf, off: len(buf)} }

// NewDecoder returns a decoder that reads data. It never writes to data and
// nothing it decodes refers to data, which must not change while it is read.
func NewDecoder(data []byte) *Codec { return &Codec{buf: data, decoding: true} }

// Reset makes the codec as new, in the same direction: an encoder appends to
// buf, a decoder reads buf. The error is forgotten.
func (c *Codec) Reset(buf []byte) {
	*c = Codec{buf: buf, decoding: c.decoding, repeated: c.repeated}
	if !c.decoding {
		c.off = len(buf)
	}
}

// Decoding reports whether this is a decoder. Record functions use it where a
// field needs a conversion that differs by direction.
func (c *Codec) Decoding() bool { return c.decoding }

// Bytes returns, for an encoder, the buffer it was made with plus everything
// appended, to be used only when Err is nil; for a decoder, the unread input.
func (c *Codec) Bytes() []byte {
	if c.decoding {
		return c.buf[c.off:]
	}
	return c.buf
}

// Offset returns how many bytes this codec has written or read.
func (c *Codec) Offset() int {
	if c.decoding {
		return c.off
	}
	return len(c.buf) - c.off
}

// Values returns how many values outside any array were written or read. A
// format of one record must end with 1: more means that a Record call
// announces fewer fields than follow it.
func (c *Codec) Values() int { return c.values }

// Err returns the first error, an *Error, or nil.
func (c *Codec) Err() error { return c.err }

// Fail makes err the codec's error unless it has one already: for values that
// are well-formed and still not allowed, an unknown enum for instance. A nil
// err changes nothing.
func (c *Codec) Fail(err error) {
	if err != nil && c.err == nil {
		c.err = &Error{Offset: c.Offset(), Err: err}
	}
}

// Finish ends the message and returns Err. It makes it an error when elements
// announced by an array header are missing and, for a decoder, when bytes are
// left over.
func (c *Codec) Finish() error {
	switch {
	case c.err != nil:
	case c.open > 0:
		c.fail(c.Offset(), ErrIncomplete, fmt.Sprintf("%d more elements", c.open), "end")
	case c.decoding && c.off < len(c.buf):
		c.fail(c.off, ErrTrailing, "end", fmt.Sprintf("%d more bytes", len(c.buf)-c.off))
	}
	return c.err
}

// seen accounts for one value: an element if an array is open, else a value of
// its own.
func (c *Codec) seen() {
	if c.open > 0 {
		c.open--
		return
	}
	c.values++
}

// fail records the first error.
func (c *Codec) fail(at int, kind error, want, got string) {
	if c.err == nil {
		c.err = &Error{Offset: at, Want: want, Got: got, Err: kind}
	}
}

// failByte records that the byte at offset at does not start what is wanted.
func (c *Codec) failByte(at int, want string) {
	if at >= len(c.buf) {
		c.fail(at, ErrTruncated, want, "end of input")
		return
	}
	c.fail(at, ErrType, want, formatName(c.buf[at]))
}
