package raftnet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// MaxPayload bounds a request and a response, in bytes.
const MaxPayload = 2 << 20

// frameHead is what stands in front of a peer frame's payload.
const frameHead = 26

// frameType says what a peer frame is.
type frameType uint8

// Frozen: protocol version 1.
const (
	frameRequest  frameType = 1
	frameResponse frameType = 2
	framePing     frameType = 3 // answered by framePong at once; both carry nothing
	framePong     frameType = 4
)

// frame is one message of a peer connection.
type frame struct {
	typ     frameType
	tag     uint8         // request: method; response: Status; otherwise 0
	id      uint64        // a response has its request's
	budget  time.Duration // request: how long the caller waits, in microseconds; 0: no bound
	payload []byte
}

// appendFrameHead adds everything but the payload.
func appendFrameHead(b []byte, f *frame) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	b = append(b, 0, 0, 0, 0, byte(f.typ), f.tag)
	b = binary.BigEndian.AppendUint64(b, f.id)
	b = binary.BigEndian.AppendUint64(b, uint64(f.budget/time.Microsecond))
	binary.BigEndian.PutUint32(b[at+4:], frameSum(b[at:], f.payload))
	return b
}

// frameSum is the CRC-32C over a frame without its own four bytes.
func frameSum(head, payload []byte) uint32 {
	sum := crc32.Checksum(head[:4], castagnoli)
	sum = crc32.Update(sum, castagnoli, head[8:frameHead])
	return crc32.Update(sum, castagnoli, payload)
}

// readFrame reads one frame. waiting is called with false once its first byte is
// there. The payload is not shared with the reader's buffer; memory for it is
// taken as its bytes arrive.
func readFrame(r *bufio.Reader, waiting func(bool)) (frame, error) {
	waiting(true)
	if _, err := r.Peek(1); err != nil {
		return frame{}, err
	}
	waiting(false)
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, noEOF(err)
	}
	k := binary.BigEndian.Uint32(head[:])
	if k > MaxPayload {
		return frame{}, fmt.Errorf("peer frame of %d bytes, limit %d: %w", k, MaxPayload, ErrTooLarge)
	}
	budget := binary.BigEndian.Uint64(head[18:])
	f := frame{typ: frameType(head[8]), tag: head[9], id: binary.BigEndian.Uint64(head[10:])}
	if f.typ < frameRequest || f.typ > framePong || budget > uint64(maxBudget/time.Microsecond) {
		return frame{}, fmt.Errorf("peer frame of type %d, budget %d us: %w", f.typ, budget, ErrMalformed)
	}
	f.budget = time.Duration(budget) * time.Microsecond
	var err error
	if f.payload, err = readPayload(r, int(k)); err != nil {
		return frame{}, noEOF(err)
	}
	if frameSum(head[:], f.payload) != binary.BigEndian.Uint32(head[4:]) {
		return frame{}, fmt.Errorf("peer frame checksum: %w", ErrMalformed)
	}
	return f, nil
}

// maxBudget bounds what a caller may ask for; longer is as good as for ever.
const maxBudget = 24 * time.Hour

// payloadStep is how much memory a claimed length gets before its bytes arrive.
const payloadStep = 64 << 10

func readPayload(r *bufio.Reader, k int) ([]byte, error) {
	if k == 0 {
		return nil, nil
	}
	p := make([]byte, min(k, payloadStep))
	if _, err := io.ReadFull(r, p); err != nil {
		return nil, err
	}
	for len(p) < k {
		at := len(p)
		p = append(p, make([]byte, min(k-at, at))...)
		if _, err := io.ReadFull(r, p[at:]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// noEOF turns an end inside a frame into an error that does not look like one
// between frames.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
