package raftnet

import (
	"bufio"
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

// maxChunk is how many payload bytes a chunk carries at most.
const maxChunk = 64 << 10

// chunkHead is the length in front of a chunk's payload.
const chunkHead = 4

// installSnapshot is the first byte of the one message whose body is streamed
// instead of decoded as a whole. It is raft's numbering.
const installSnapshot = 2

// chunkConn carries the byte stream of raft's transport in chunks that never
// hold bytes of two messages, because the sender flushes at the end of each.
// That is what lets the receiving side know where it stands: a read hands out
// bytes of one chunk only, so that after a message nothing of the next is
// buffered above, and
//
//   - on the accepting side a read that follows a written response waits for a
//     new message and may idle; any other read is inside a message, which
//     includes the body of a snapshot, and must not stall;
//   - on the dialling side a read at a chunk's start waits for a response under
//     the deadlines that raft sets; within a chunk it must not stall.
//
// It also bounds what one message may make the node allocate.
type chunkConn struct {
	*stallConn
	accepted bool
	limit    int64 // bytes of one message, other than a snapshot's body

	// Of the reading side.
	br        *bufio.Reader
	left      int   // payload bytes of the current chunk not handed out
	begun     bool  // bytes of a message were read and no response written since
	streaming bool  // the message is a snapshot whose head has been read
	got       int64 // bytes of the message so far

	wbuf []byte // of the writing side: head and payload of one chunk
}

func newChunkConn(c *stallConn, accepted bool, limit int64) *chunkConn {
	return &chunkConn{stallConn: c, accepted: accepted, limit: limit, br: bufio.NewReaderSize(c, chunkHead+maxChunk)}
}

// Read returns bytes of the current chunk, or of the next one.
func (c *chunkConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.left == 0 {
		if err := c.nextChunk(); err != nil {
			return 0, err
		}
	}
	k, err := c.br.Read(p[:min(len(p), c.left)])
	c.left -= k
	return k, err
}

// nextChunk reads the head of a chunk and judges it.
func (c *chunkConn) nextChunk() error {
	first := !c.accepted || !c.begun
	c.inside.Store(!first)
	if _, err := c.br.Peek(1); err != nil {
		return err
	}
	c.inside.Store(true)
	head, err := c.br.Peek(chunkHead)
	if err != nil {
		return err
	}
	k := int64(binary.BigEndian.Uint32(head))
	if k == 0 || k > maxChunk {
		return fmt.Errorf("chunk of %d bytes: %w", k, ErrMalformed)
	}
	_, _ = c.br.Discard(chunkHead)
	c.left = int(k)
	if !c.accepted {
		return nil
	}
	if first {
		c.got = 0
		if c.streaming, err = c.vetSnapshot(c.left); err != nil {
			return err
		}
	}
	c.begun = true
	if c.got += k; c.got > c.limit && !c.streaming {
		return fmt.Errorf("raft message of more than %d bytes: %w", c.limit, ErrTooLarge)
	}
	return nil
}

// vetSnapshot looks at the first chunk of a message. For a snapshot it checks
// that the chunk holds the whole head, so that all that follows is body, and
// that its configuration can be decoded: raft stops the process on one that
// cannot.
func (c *chunkConn) vetSnapshot(k int) (bool, error) {
	kind, err := c.br.Peek(1)
	if err != nil || kind[0] != installSnapshot {
		return false, err
	}
	b, err := c.br.Peek(k)
	if err != nil {
		return false, err
	}
	var req raft.InstallSnapshotRequest
	d := codec.NewDecoderBytes(b[1:], &codec.MsgpackHandle{})
	if err := d.Decode(&req); err != nil {
		return false, fmt.Errorf("snapshot head: %w: %w", ErrMalformed, err)
	}
	if d.NumBytesRead() != k-1 || req.Size < 0 {
		return false, fmt.Errorf("snapshot head of %d bytes in a chunk of %d, size %d: %w", d.NumBytesRead(), k-1, req.Size, ErrMalformed)
	}
	if req.SnapshotVersion > 0 {
		if err := vetConfiguration(req.Configuration); err != nil {
			return false, fmt.Errorf("snapshot head: %w", err)
		}
	}
	return true, nil
}

// Write sends p in as many chunks as it needs. On the accepting side a write is
// the response to a message that was read to its end.
func (c *chunkConn) Write(p []byte) (int, error) {
	if c.accepted {
		c.begun = false
	}
	total := 0
	for len(p) > 0 {
		k := min(len(p), maxChunk)
		c.wbuf = binary.BigEndian.AppendUint32(c.wbuf[:0], uint32(k))
		c.wbuf = append(c.wbuf, p[:k]...)
		sent, err := c.stallConn.Write(c.wbuf)
		total += max(sent-chunkHead, 0)
		if err != nil {
			return total, err
		}
		p = p[k:]
	}
	return total, nil
}
