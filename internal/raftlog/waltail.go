package raftlog

import (
	"encoding/binary"
	"hash/crc32"
)

// The segment format of raft-wal, as far as a check of the tail needs it: a
// header, then frames, each of 8 bytes and a payload padded to 8 bytes.
//
//	 0      1      2      3      4      5      6      7      8
//	+------+------+------+------+------+------+------+------+
//	| type | reserved           | length, or CRC of a commit |
//	+------+------+------+------+------+------+------+------+
//
// A batch is one or more entry frames, an index frame when it seals the
// segment, and a commit frame with the CRC-32C of everything since the commit
// before; the first batch includes the header.
const (
	walHeader = 32
	walFrame  = 8

	frameEntry  = 1
	frameIndex  = 2
	frameCommit = 3

	// A disk writes sectors, the kernel cuts writes at pages.
	sectorSize = 512
	pageSize   = 4096
)

// tail is what the bytes of an unsealed segment hold.
type tail struct {
	// end is behind the last batch of the unbroken run of good batches.
	end int
	// entries counts the entries in that run.
	entries uint64
	// indexStart is where the index lies when that run seals the segment, else 0.
	indexStart uint64
	// dirty is behind the last byte after end that is not zero; end when
	// nothing follows.
	dirty int
	// damaged tells that what follows end was once completely written, so
	// it may have been acknowledged. Otherwise it is a write that was cut.
	damaged bool
}

// scanTail reads a segment. It never looks beyond b.
func scanTail(b []byte) tail {
	var t tail
	for t.indexStart == 0 {
		batch, ok := scanBatch(b, t.end)
		if !ok {
			break
		}
		t.end, t.indexStart = batch.end, batch.indexStart
		t.entries += batch.entries
	}
	t.dirty = len(b)
	for t.dirty > t.end && b[t.dirty-1] == 0 {
		t.dirty--
	}
	if t.dirty > t.end {
		t.dirty = min(len(b), (t.dirty+walFrame-1)&^(walFrame-1))
		t.damaged = goodBatchAfter(b[:t.dirty], t.end) || completeWrite(b[:t.dirty], t.end)
	}
	return t
}

type batch struct {
	end        int
	entries    uint64
	indexStart uint64
	crc        bool // the checksum in the commit frame matches
}

// scanBatch reads the batch that starts at start; ok when it is whole and its
// checksum matches.
func scanBatch(b []byte, start int) (batch, bool) {
	out, ok := walkBatch(b, start)
	return out, ok && out.crc
}

// walkBatch follows the frames from start to their commit frame.
func walkBatch(b []byte, start int) (batch, bool) {
	var out batch
	pos := start
	if start == 0 {
		pos = walHeader
	}
	for pos+walFrame <= len(b) {
		n := int(binary.LittleEndian.Uint32(b[pos+4:]))
		switch b[pos] {
		case frameEntry:
			out.entries++
		case frameIndex:
			out.indexStart = uint64(pos) + walFrame
		case frameCommit:
			if out.entries == 0 && out.indexStart == 0 {
				return out, false // the sum of nothing is 0: any payload may hold that
			}
			out.end = pos + walFrame
			out.crc = crc32.Checksum(b[start:pos], castagnoli) == uint32(n)
			return out, true
		default:
			return out, false
		}
		pos += walFrame + (n+walFrame-1)&^(walFrame-1)
	}
	return out, false
}

// goodBatchAfter looks for a whole batch behind damage. A batch is written
// only when the one before is durable, so there is none behind a cut write.
func goodBatchAfter(b []byte, end int) bool {
	for p := max(end, walHeader-walFrame) + walFrame; p+2*walFrame <= len(b); p += walFrame {
		if b[p] != frameEntry && b[p] != frameIndex || b[p+1]|b[p+2]|b[p+3] != 0 {
			continue
		}
		if _, ok := scanBatch(b, p); ok {
			return true
		}
	}
	return false
}

// completeWrite judges the last write, in b[end:], whose checksum does not
// match. A kill or power loss leaves whole sectors unwritten, which a fresh
// file holds as zeros; when no sector is missing and a commit frame stands at
// the end, the write was complete and was damaged later. A payload with an
// empty sector of its own leaves the case open, and counts as cut.
func completeWrite(b []byte, end int) bool {
	if len(b)-end < 2*walFrame || len(b)%walFrame != 0 {
		return false
	}
	last := b[len(b)-walFrame:]
	if crc32.Checksum(b[end:len(b)-walFrame], castagnoli) == binary.LittleEndian.Uint32(last[4:]) {
		return true // only the type of the commit frame itself is damaged
	}
	if last[0] != frameCommit || last[1]|last[2]|last[3] != 0 {
		return false
	}
	for lo := end; lo < len(b); {
		hi := min((lo/sectorSize+1)*sectorSize, len(b))
		if allZero(b[lo:hi]) {
			return false
		}
		lo = hi
	}
	if len(b)%pageSize != 0 && binary.LittleEndian.Uint32(last[4:]) != 0 {
		return true
	}
	// The write ends where the kernel may have cut a longer one, or in a
	// frame that is cut itself: payload bytes that look like a commit frame
	// do not count.
	w, ok := walkBatch(b, end)
	return ok && w.end == len(b)
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
