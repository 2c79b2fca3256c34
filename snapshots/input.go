package snapshots

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/stavedb/stave/internal/msgpack"
)

// input reads heads and blocks and verifies their checksums.
type input struct {
	r   io.Reader
	sum *xxhash.Digest
	// begin is where the current head, block or trailer began, off what was read.
	begin, off int64
	blocks     uint64
	buf        []byte
}

func newInput(r io.Reader) *input { return &input{r: r, sum: xxhash.New()} }

func (in *input) corrupt(reason string, err error) error {
	return &CorruptError{Offset: in.begin, Reason: reason, Err: err}
}

// step is how much a length field may make the reader allocate at once.
const step = 1 << 20

// read appends n bytes of the input to in.buf.
func (in *input) read(n int) error {
	for n > 0 {
		k := min(n, step)
		have := len(in.buf)
		if cap(in.buf)-have < k {
			in.buf = append(in.buf, make([]byte, k)...)
		} else {
			in.buf = in.buf[:have+k]
		}
		got, err := io.ReadFull(in.r, in.buf[have:])
		in.off += int64(got)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return &CorruptError{Offset: in.begin, Reason: fmt.Sprintf("input ends at byte %d", in.off), Truncated: true}
		case err != nil:
			return fmt.Errorf("read snapshot at offset %d: %w", in.off, err)
		}
		n -= k
	}
	return nil
}

// start begins a head, block or trailer.
func (in *input) start() {
	in.begin = in.off
	in.buf = in.buf[:0]
}

// checked reads a CRC and compares it with everything since start.
func (in *input) checked() error {
	n := len(in.buf)
	if err := in.read(crcBytes); err != nil {
		return err
	}
	want := binary.BigEndian.Uint32(in.buf[n:])
	if got := crc32.Checksum(in.buf[:n], castagnoli); got != want {
		return in.corrupt(fmt.Sprintf("checksum is %08x, computed %08x", want, got), nil)
	}
	_, _ = in.sum.Write(in.buf) // it never errs
	return nil
}

func (in *input) head() (h Header, err error) {
	in.start()
	if err := in.read(headFixed); err != nil {
		return h, err
	}
	if string(in.buf[:len(magic)]) != magic {
		return h, in.corrupt(fmt.Sprintf("magic is %q", in.buf[:len(magic)]), nil)
	}
	h.Version = in.buf[len(magic)]
	n := binary.BigEndian.Uint32(in.buf[len(magic)+1:])
	if n > maxHeader {
		return h, in.corrupt(fmt.Sprintf("header of %d bytes", n), nil)
	}
	if err := in.read(int(n)); err != nil {
		return h, err
	}
	if err := in.checked(); err != nil {
		return h, err
	}
	if h.Version != Version {
		return h, nil // its header is not ours to read
	}
	c := msgpack.NewDecoder(in.buf[headFixed : len(in.buf)-crcBytes])
	if headerRecord(c, &h); c.Finish() != nil {
		return h, in.corrupt("header", c.Err())
	}
	return h, nil
}

// block returns the kind and the body of the next block, valid until the next
// call.
func (in *input) block() (kind byte, body []byte, err error) {
	in.start()
	if err := in.read(frameBytes); err != nil {
		return 0, nil, err
	}
	kind = in.buf[0]
	n := binary.BigEndian.Uint32(in.buf[1:])
	if kind != kindBlock && kind != kindTrailer || n == 0 || n > maxBlock {
		return 0, nil, in.corrupt(fmt.Sprintf("block of kind %#02x with %d bytes", kind, n), nil)
	}
	if err := in.read(int(n)); err != nil {
		return 0, nil, err
	}
	if err := in.checked(); err != nil {
		return 0, nil, err
	}
	if kind == kindBlock {
		in.blocks++
	}
	return kind, in.buf[frameBytes : frameBytes+int(n)], nil
}

// end verifies the trailer, the checksum of the whole file and that nothing
// follows.
func (in *input) end(body []byte, rows uint64, h *Header) error {
	var t trailer
	c := msgpack.NewDecoder(body)
	if trailerRecord(c, &t); c.Finish() != nil {
		return in.corrupt("trailer", c.Err())
	}
	if want := (trailer{rows: rows, blocks: in.blocks, hash: h.Hash}); t != want {
		return in.corrupt(fmt.Sprintf("trailer says %d rows in %d blocks with hash %016x, want %d, %d, %016x",
			t.rows, t.blocks, t.hash, want.rows, want.blocks, want.hash), nil)
	}
	want := in.sum.Sum64()
	in.start()
	if err := in.read(sumBytes); err != nil {
		return err
	}
	if got := binary.BigEndian.Uint64(in.buf); got != want {
		return in.corrupt(fmt.Sprintf("checksum of the file is %016x, computed %016x", got, want), nil)
	}
	var one [1]byte
	switch n, err := io.ReadFull(in.r, one[:]); {
	case n > 0:
		return in.corrupt("bytes follow the trailer", nil)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read snapshot at offset %d: %w", in.off, err)
	}
	return nil
}
