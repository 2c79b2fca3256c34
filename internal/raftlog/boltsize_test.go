package raftlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// A bbolt file that was cut at any place is refused, never read beyond its end.
func TestOpen_CutBoltFile(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		dir := t.TempDir()
		s, err := Open(Config{Dir: dir, Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(50) {
			if err := s.Log().StoreLogs([]*raft.Log{{Index: i + 1, Term: 1, Data: make([]byte, 500)}}); err != nil {
				t.Fatal(err)
			}
			if err := s.Stable().SetUint64([]byte("CurrentTerm"), i); err != nil {
				t.Fatal(err)
			}
		}
		mustClose(t, s)
		for _, name := range []string{stableName, boltName, filepath.Join(walName, "wal-meta.db")} {
			file := filepath.Join(dir, name)
			whole, err := os.ReadFile(file)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			refused := 0
			for _, size := range []int{8266, 10252, 12288, 12289} {
				if size >= len(whole) {
					continue
				}
				if err := os.WriteFile(file, whole[:size], 0o600); err != nil {
					t.Fatal(err)
				}
				s, err := Open(Config{Dir: dir, Kind: kind})
				switch {
				case err == nil: // the pages in use are all there
					mustClose(t, s)
				case errors.Is(err, ErrCorruptLog):
					refused++
				default:
					t.Errorf("%s cut to %d bytes: %v", name, size, err)
				}
				if err := os.WriteFile(file, whole, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if refused == 0 {
				t.Errorf("%s: no cut was refused", name)
			}
		}
	})
}
