package fsm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// MaxEntryBytes bounds one log entry.
const MaxEntryBytes = 1 << 20

const (
	formatV1    = 1
	prefixBytes = 3
	crcBytes    = 4
	// minEntry is an entry whose envelope and body are one byte each.
	minEntry = prefixBytes + 2 + crcBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func envelope(c *msgpack.Codec, e *catalog.Envelope) {
	c.Record(7)
	msgpack.Uint(c, &e.Client)
	c.Uint64(&e.Sequence)
	c.Uint64(&e.Ack)
	opt(c, &e.Fence, fence)
	msgpack.Int(c, &e.Lease)
	msgpack.Int(c, &e.Wall)
	c.Repeated(&e.Actor)
}

func fence(c *msgpack.Codec, f *catalog.Fence) {
	c.Record(2)
	c.Uint64(&f.Incarnation)
	msgpack.Int(c, &f.Coordinator)
}

// AppendEntry appends the log entry of a command to buf, which may be nil. What
// it returns was decoded once, so that every replica can decode it. A too large
// entry is a *catalog.Error with ErrTooLarge and its Limit and Size; what no
// entry can hold (text that is not UTF-8, for instance) is one with
// ErrInvalidArgument; a command without an encoding one with ErrUnknownCommand.
// On an error buf is returned as it was.
func AppendEntry(buf []byte, env catalog.Envelope, cmd catalog.Command) ([]byte, error) {
	if cmd == nil {
		return buf, &catalog.Error{Code: catalog.ErrUnknownCommand, Message: "no command is given"}
	}
	kind := cmd.Kind()
	k := &kinds[kind]
	from := len(buf)
	c := msgpack.NewEncoder(append(buf, formatV1, byte(kind), k.version))
	if envelope(c, &env); k.encode == nil || !k.encode(c, cmd) {
		return buf, &catalog.Error{Code: catalog.ErrUnknownCommand, Message: fmt.Sprintf("command %s of type %T has no encoding", kind, cmd)}
	}
	if err := c.Finish(); err != nil {
		return buf, &catalog.Error{Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf("command %s cannot be encoded: %v", kind, err)}
	}
	out := c.Bytes()
	size := len(out) - from + crcBytes
	if size > MaxEntryBytes {
		return buf, &catalog.Error{
			Code: catalog.ErrTooLarge, Limit: MaxEntryBytes, Size: uint64(size),
			Message: fmt.Sprintf("command %s of %d bytes is above %d", kind, size, MaxEntryBytes),
		}
	}
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(out[from:], castagnoli))
	d, _ := decoders.Get().(*Decoder) // nothing else is put
	defer decoders.Put(d)
	if _, _, err := d.Decode(out[from:]); err != nil {
		return buf, fmt.Errorf("decode the entry of %s just encoded: %w", kind, err)
	}
	return out, nil
}

// VerifyEntry checks length and checksum of an entry and allocates nothing
// unless they are wrong. The error unwraps to ErrCorruptEntry.
func VerifyEntry(data []byte) error {
	if len(data) < minEntry || len(data) > MaxEntryBytes {
		return fmt.Errorf("%w: %d bytes", ErrCorruptEntry, len(data))
	}
	n := len(data) - crcBytes
	want := binary.BigEndian.Uint32(data[n:])
	if got := crc32.Checksum(data[:n], castagnoli); got != want {
		return fmt.Errorf("%w: checksum is %08x, computed %08x", ErrCorruptEntry, want, got)
	}
	return nil
}

// EntryKind returns the kind of an entry without looking further, 0 if data is
// too short.
func EntryKind(data []byte) catalog.Kind {
	if len(data) < prefixBytes {
		return 0
	}
	return catalog.Kind(data[1])
}

// Decoder decodes entries. The zero Decoder is ready; it is used by one
// goroutine at a time and keeps nothing of an entry.
type Decoder struct {
	c   *msgpack.Codec
	env catalog.Envelope
	// scratch holds a *T for each command type T seen.
	scratch [256]any
}

// decoders serve AppendEntry.
var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// Decode verifies and decodes one entry. What it returns owns its memory and
// does not refer to data. The error unwraps to ErrCorruptEntry or is an
// *UnknownKindError.
func (d *Decoder) Decode(data []byte) (catalog.Envelope, catalog.Command, error) {
	if err := VerifyEntry(data); err != nil {
		return catalog.Envelope{}, nil, err
	}
	kind, version := catalog.Kind(data[1]), data[2]
	k := &kinds[kind]
	if data[0] != formatV1 || k.decode == nil || version != k.version {
		return catalog.Envelope{}, nil, &UnknownKindError{Format: data[0], Kind: kind, Version: version}
	}
	if d.c == nil {
		d.c = msgpack.NewDecoder(nil)
	}
	d.c.Reset(data[prefixBytes : len(data)-crcBytes])
	d.env = catalog.Envelope{}
	envelope(d.c, &d.env)
	cmd := k.decode(d.c, &d.scratch[kind])
	if err := d.c.Finish(); err != nil {
		return catalog.Envelope{}, nil, fmt.Errorf("%w: %s: %w", ErrCorruptEntry, kind, err)
	}
	if n := d.c.Values(); n != 2 {
		return catalog.Envelope{}, nil, fmt.Errorf("%w: %s: %d values instead of 2", ErrCorruptEntry, kind, n)
	}
	return d.env, cmd, nil
}
