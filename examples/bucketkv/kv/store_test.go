package kv

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Whatever a crash leaves of the last record, what was acknowledged before it is
// read again, nothing else, and the file can be written on.
func TestStore_TornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1", "all", "0.log")
	b, err := openBucket(path)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b *bucketFile, k, v string) {
		t.Helper()
		if err := b.put([][]byte{[]byte(k)}, [][]byte{[]byte(v)}, 1, 2); err != nil {
			t.Fatal(err)
		}
	}
	put(b, "a", "1")
	whole := b.size
	if _, err := openBucket(path); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	put(b, "b", "22")
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	if err := b.put([][]byte{nil}, [][]byte{nil}, 1, 2); !errors.Is(err, errShut) {
		t.Errorf("put after close: %v", err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := whole; cut < int64(len(raw)); cut++ {
		for _, flip := range []bool{false, true} {
			torn := append([]byte{}, raw[:cut]...)
			if flip { // the length of the file grew before its content came
				torn = append(torn, make([]byte, int64(len(raw))-cut)...)
			}
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			b, err := openBucket(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, there, _ := b.get([]byte("b")); there || b.rows.Len() != 1 || b.size != whole {
				t.Errorf("cut at %d: %d rows, %d bytes", cut, b.rows.Len(), b.size)
			}
			put(b, "c", "3")
			if err := b.close(); err != nil {
				t.Fatal(err)
			}
			if b, err = openBucket(path); err != nil {
				t.Fatal(err)
			}
			if r, _, _ := b.get([]byte("c")); string(r.value) != "3" || r.server != 1 || r.epoch != 2 {
				t.Errorf("cut at %d: %+v", cut, r)
			}
			_ = b.close()
		}
	}
}
