package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
)

// Layout of a bbolt file: two meta pages at its beginning, each after a page
// header. The valid one of the later transaction says how many pages there are.
const (
	boltMagic      = 0xED0CDAED
	boltPageHeader = 16
	boltMetaBytes  = 64
	boltMaxPage    = 64 << 10
)

// checkBoltSize refuses a file that is shorter than its meta page says. bbolt
// maps the file into memory, and reading what is not there ends the process in
// a way that nothing can recover from.
func checkBoltSize(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if info.Size() == 0 {
		return nil // created and never written
	}
	pages, pageSize, ok := boltPages(f, info.Size())
	if !ok {
		return nil // bbolt itself says what is wrong with it
	}
	if need := pages * pageSize; uint64(info.Size()) < need {
		return &CorruptError{
			Kind: KindBolt, File: file, Offset: info.Size(),
			Err: fmt.Errorf("file ends after %d bytes, its meta page says %d pages of %d bytes", info.Size(), pages, pageSize),
		}
	}
	return nil
}

// boltPages reads the meta pages.
func boltPages(f io.ReaderAt, size int64) (pages, pageSize uint64, ok bool) {
	first, found := boltMeta(f, 0)
	candidates := []int64{4096, 8192, 16384, 32768, boltMaxPage}
	if found {
		candidates = []int64{int64(first.pageSize)}
	}
	best, ok := first, found
	for _, at := range candidates {
		if at+boltPageHeader+boltMetaBytes > size {
			continue
		}
		if m, good := boltMeta(f, at); good && (!ok || m.tx > best.tx) {
			best, ok = m, true
		}
	}
	return best.pages, best.pageSize, ok
}

type boltMetaPage struct{ pageSize, pages, tx uint64 }

func boltMeta(f io.ReaderAt, at int64) (boltMetaPage, bool) {
	var b [boltMetaBytes]byte
	if _, err := f.ReadAt(b[:], at+boltPageHeader); err != nil {
		return boltMetaPage{}, false
	}
	le := binary.LittleEndian
	h := fnv.New64a()
	h.Write(b[:56])
	m := boltMetaPage{pageSize: uint64(le.Uint32(b[8:])), pages: le.Uint64(b[40:]), tx: le.Uint64(b[48:])}
	good := le.Uint32(b[:]) == boltMagic && le.Uint64(b[56:]) == h.Sum64() && m.pageSize >= 512 && m.pageSize <= boltMaxPage && m.pages < 1<<40
	return m, good
}
