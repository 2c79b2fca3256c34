package snapshots

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

const (
	kindBlock   = 'B'
	kindTrailer = 'T'
	// blockBytes closes a block once it has that many; a row is never split, so
	// that a block may be longer.
	blockBytes = 64 << 10
	// frameBytes are the kind and the length in front of a block.
	frameBytes = 5
	crcBytes   = 4
	sumBytes   = 8
	// maxBlock bounds the length field; no row comes near it.
	maxBlock = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes a state and the last events of its watch history, oldest first.
// It may run while later states are made. Equal states and histories give equal
// bytes. An error is the writer's, wrapped, or says which row cannot be
// written; what was written then is not a snapshot.
func Write(w io.Writer, s *catalog.State, history []*catalog.Event) error {
	h := headerOf(s, history)
	wr := writer{w: w, sum: xxhash.New(), buf: make([]byte, frameBytes, blockBytes*5/4)}
	wr.c = msgpack.NewEncoder(nil)
	if err := wr.head(&h); err != nil {
		return err
	}
	wr.c.Reset(wr.buf[:frameBytes])
	wr.state(s)
	for _, e := range history {
		put(&wr, tagEvent, e, event)
	}
	wr.flush()
	if wr.err != nil {
		return wr.err
	}
	if want := h.Rows.total(); wr.rows != want {
		return fmt.Errorf("write snapshot: %d rows for %d counted", wr.rows, want)
	}
	return wr.trailer(h.Hash)
}

type writer struct {
	w            io.Writer
	c            *msgpack.Codec
	buf          []byte // of the current block, frame first
	sum          *xxhash.Digest
	tag          uint8
	rows, blocks uint64
	err          error
}

func (w *writer) head(h *Header) error {
	w.c.Reset(nil)
	headerRecord(w.c, h)
	if err := w.c.Finish(); err != nil {
		return fmt.Errorf("encode snapshot header: %w", err)
	}
	body := w.c.Bytes()
	if len(body) > maxHeader {
		return fmt.Errorf("encode snapshot header: %d bytes are above %d", len(body), maxHeader)
	}
	out := append(make([]byte, 0, headFixed+len(body)+crcBytes), magic...)
	out = append(out, Version)
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	out = append(out, body...)
	return w.emit(out, "head")
}

// emit appends the CRC and writes.
func (w *writer) emit(b []byte, what string) error {
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	_, _ = w.sum.Write(b) // it never errs
	if _, err := w.w.Write(b); err != nil {
		return fmt.Errorf("write snapshot %s: %w", what, err)
	}
	return nil
}

// put writes one row and closes the block when it is full.
func put[T any](w *writer, tag uint8, v *T, each func(*msgpack.Codec, *T)) bool {
	if w.err != nil {
		return false
	}
	w.tag = tag
	w.c.Uint8(&w.tag)
	each(w.c, v)
	w.rows++
	if w.c.Offset() >= blockBytes || w.c.Err() != nil {
		w.flush()
	}
	return w.err == nil
}

func (w *writer) flush() {
	if w.err != nil {
		return
	}
	if err := w.c.Finish(); err != nil {
		w.err = fmt.Errorf("encode snapshot row %d with tag %d: %w", w.rows, w.tag, err)
		return
	}
	n := w.c.Offset()
	switch {
	case n == 0:
		return
	case n > maxBlock:
		w.err = fmt.Errorf("encode snapshot row %d with tag %d: %d bytes are above %d", w.rows, w.tag, n, maxBlock)
		return
	}
	block := w.c.Bytes()
	block[0] = kindBlock
	binary.BigEndian.PutUint32(block[1:], uint32(n))
	w.blocks++
	w.err = w.emit(block, "block")
	w.c.Reset(block[:frameBytes])
}

func (w *writer) trailer(hash uint64) error {
	t := trailer{rows: w.rows, blocks: w.blocks, hash: hash}
	w.c.Reset(make([]byte, frameBytes))
	trailerRecord(w.c, &t)
	if err := w.c.Finish(); err != nil {
		return fmt.Errorf("encode snapshot trailer: %w", err)
	}
	n := w.c.Offset()
	out := w.c.Bytes()
	out[0] = kindTrailer
	binary.BigEndian.PutUint32(out[1:], uint32(n))
	if err := w.emit(out, "trailer"); err != nil {
		return err
	}
	if _, err := w.w.Write(binary.BigEndian.AppendUint64(nil, w.sum.Sum64())); err != nil {
		return fmt.Errorf("write snapshot trailer: %w", err)
	}
	return nil
}

// state writes the rows in the order of their tags.
func (w *writer) state(s *catalog.State) {
	cl := s.Cluster()
	put(w, tagCluster, &cl, cluster)
	s.Databases(func(d *catalog.Database) bool { return put(w, tagDatabase, d, DatabaseV1) })
	s.TablesByID(func(t *catalog.Table) bool {
		ok := put(w, tagTable, t, TableV1)
		s.Partitions(t.ID, "", func(p *catalog.Partition) bool {
			ok = put(w, tagPartition, p, partition)
			return ok
		})
		return ok
	})
	s.Servers(func(v *catalog.Server) bool { return put(w, tagServer, v, server) })
	s.Members(func(m *catalog.Member) bool { return put(w, tagMember, m, member) })
	s.KeyValues("", func(v *catalog.KeyValue) bool { return put(w, tagKeyValue, v, keyValue) })
	s.Counters(func(v *catalog.Counter) bool { return put(w, tagCounter, v, counter) })
	s.Imports(func(i *catalog.Import) bool { return put(w, tagImport, i, importRow) })
	s.DroppedTables(func(d *catalog.DroppedObject) bool { return put(w, tagDropped, d, dropped) })
	s.DroppedPartitions(0, func(d *catalog.DroppedObject) bool { return put(w, tagDropped, d, dropped) })
	s.DroppedBuckets(func(d *catalog.DroppedObject) bool { return put(w, tagDropped, d, dropped) })
	if r := s.Rebalance(); r != nil {
		put(w, tagRebalance, r, rebalance)
	}
	s.Clients(func(v *catalog.Client) bool {
		ok := put(w, tagClient, v, client)
		v.Results(func(seq uint64, r catalog.Result) bool {
			ok = put(w, tagResult, &storedResult{v.ID, seq, r}, result)
			return ok
		})
		return ok
	})
}
