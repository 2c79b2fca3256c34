package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/tidwall/btree"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// ErrLocked is returned for a bucket whose file another server has open: a
// deposed leader has not let go of it yet.
var ErrLocked = errors.New("the bucket's file is held by another server")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	recordHeader = 16
	maxRow       = 16 << 20
)

// row is a value with who wrote it.
type row struct {
	value  []byte
	server catalog.ServerID
	epoch  catalog.LeaderEpoch
}

// bucketFile is one bucket: a file that only grows, and its rows in memory. It
// is locked as long as it is open, so that one server at a time writes it; the
// system frees the lock of a process that dies.
//
//	record: length of key and value u32 | CRC-32C of the rest u32 |
//	        server u32 | leader epoch u32 | key length uvarint | key | value
type bucketFile struct {
	mu   sync.RWMutex
	f    *os.File
	size int64 // up to which the file is whole
	rows btree.Map[string, row]
	err  error // once set nothing is served any more
}

// bucketPath is dir/TABLE/PARTITION/BUCKET.log, "all" for a table without
// partitions.
func bucketPath(dir string, b routing.TableBucket) string {
	return filepath.Join(objectPath(dir, b.TableID, b.PartitionID), fmt.Sprintf("%d.log", b.Bucket))
}

func objectPath(dir string, t catalog.TableID, p catalog.PartitionID) string {
	name := "all"
	if p != routing.NoPartition {
		name = fmt.Sprint(p)
	}
	return filepath.Join(dir, fmt.Sprint(t), name)
}

// openBucket locks and reads a bucket. What a crash left half written at the end
// is cut off: it was never acknowledged. Errors: ErrLocked, and those of the disk.
func openBucket(path string) (*bucketFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	b := &bucketFile{f: f}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(ErrLocked, f.Close())
	}
	if err := b.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return b, nil
}

func (b *bucketFile) load() error {
	raw, err := io.ReadAll(b.f)
	if err != nil {
		return err
	}
	for rest := raw; ; {
		n, key, r := decodeRecord(rest)
		if n == 0 {
			break
		}
		b.rows.Set(key, r)
		b.size += int64(n)
		rest = rest[n:]
	}
	if b.size < int64(len(raw)) {
		if err := b.f.Truncate(b.size); err != nil {
			return err
		}
		return b.f.Sync()
	}
	return nil
}

func appendRecord(out []byte, key, value []byte, server catalog.ServerID, epoch catalog.LeaderEpoch) []byte {
	at := len(out)
	out = append(out, make([]byte, recordHeader)...)
	out = binary.AppendUvarint(out, uint64(len(key)))
	out = append(append(out, key...), value...)
	h := out[at:]
	binary.LittleEndian.PutUint32(h, uint32(len(h)-recordHeader))
	binary.LittleEndian.PutUint32(h[8:], uint32(server))
	binary.LittleEndian.PutUint32(h[12:], uint32(epoch))
	binary.LittleEndian.PutUint32(h[4:], crc32.Checksum(h[8:], castagnoli))
	return out
}

// decodeRecord returns the length of the first record, 0 if it is not whole.
func decodeRecord(b []byte) (int, string, row) {
	if len(b) < recordHeader {
		return 0, "", row{}
	}
	body := int64(binary.LittleEndian.Uint32(b))
	if body > int64(len(b)-recordHeader) {
		return 0, "", row{}
	}
	n := recordHeader + int(body)
	if crc32.Checksum(b[8:n], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, "", row{}
	}
	k, width := binary.Uvarint(b[recordHeader:n])
	if width <= 0 || k > uint64(n-recordHeader-width) {
		return 0, "", row{}
	}
	at := recordHeader + width
	return n, string(b[at : at+int(k)]), row{
		value: b[at+int(k) : n : n], server: catalog.ServerID(binary.LittleEndian.Uint32(b[8:])), epoch: catalog.LeaderEpoch(binary.LittleEndian.Uint32(b[12:])),
	}
}

// put stores rows in one write and one fsync. After a failure the file is shut:
// what is on disk is not known any more, and a new leader finds out.
func (b *bucketFile) put(keys, values [][]byte, server catalog.ServerID, epoch catalog.LeaderEpoch) error {
	var out []byte
	for i := range keys {
		out = appendRecord(out, keys[i], values[i], server, epoch)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	if _, err := b.f.WriteAt(out, b.size); err != nil {
		b.err = err
	} else if err := b.f.Sync(); err != nil {
		b.err = err
	}
	if b.err != nil {
		return b.err
	}
	b.size += int64(len(out))
	for i := range keys {
		b.rows.Set(string(keys[i]), row{value: values[i], server: server, epoch: epoch})
	}
	return nil
}

func (b *bucketFile) get(key []byte) (row, bool, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	r, ok := b.rows.Get(string(key))
	return r, ok, b.err
}

// scan calls f for the rows behind a key until f says no.
func (b *bucketFile) scan(after []byte, f func(key string, r row) bool) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.err != nil {
		return b.err
	}
	b.rows.Ascend(string(after), func(k string, r row) bool {
		return len(after) > 0 && k == string(after) || f(k, r)
	})
	return nil
}

var errShut = errors.New("the bucket is not led by this server any more")

// close waits for a put under way, shuts the file and frees its lock.
func (b *bucketFile) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = errShut
	return b.f.Close()
}

func (b *bucketFile) broken() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.err != nil
}
