package raftlog

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// A deleted entry is gone for every reader, also while its segment stays.
func TestStores_DeletedPrefixIsGone(t *testing.T) {
	for _, kind := range []Kind{KindWAL, KindBolt} {
		t.Run(string(kind), func(t *testing.T) {
			s, err := Open(Config{Dir: t.TempDir(), Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i := uint64(1); i <= 100; i++ {
				if err := s.Log().StoreLog(&raft.Log{Index: i, Term: 1, Data: []byte("x")}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Log().DeleteRange(1, 60); err != nil {
				t.Fatal(err)
			}
			for i := uint64(1); i <= 100; i++ {
				var l raft.Log
				if err := s.Log().GetLog(i, &l); (err == nil) != (i > 60) || err != nil && !errors.Is(err, raft.ErrLogNotFound) {
					t.Errorf("entry %d after deleting up to 60: %v", i, err)
				}
			}
		})
	}
}
