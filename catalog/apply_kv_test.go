package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKV_Versions: 1 at creation, one more per write, 0 names an absent key.
func TestKV_Versions(t *testing.T) {
	h := newHistory(t)
	put := func(want uint64, expect Opt[uint64], v string) {
		t.Helper()
		if res := h.must(PutKV{Key: "k", Value: []byte(v), ExpectedVersion: expect}); res.Version != want {
			t.Errorf("version %d, want %d", res.Version, want)
		}
	}
	h.refused(ErrVersionConflict, PutKV{Key: "k", ExpectedVersion: Some[uint64](1)}, `key "k" has version 0, expected 1`)
	put(1, Some[uint64](0), "a")
	res := h.refused(ErrVersionConflict, PutKV{Key: "k", ExpectedVersion: Some[uint64](0)})
	if res.Current != 1 {
		t.Errorf("current %d, want 1", res.Current)
	}
	put(2, Opt[uint64]{}, "a") // the same value is a write
	put(3, Some[uint64](2), "b")
	v, _ := h.last.KeyValue("k")
	if string(v.Value) != "b" || v.CreatedAt >= v.Revision || v.Revision != h.rev {
		t.Errorf("row %+v", v)
	}
	h.refused(ErrVersionConflict, DeleteKV{Key: "k", ExpectedVersion: Some[uint64](2)})
	h.must(DeleteKV{Key: "k", ExpectedVersion: Some[uint64](3)})
	h.refused(ErrKeyNotExist, DeleteKV{Key: "k"}, `"k"`)
	h.unchanged(DeleteKV{Key: "k", IfExists: true})
}

// TestKV_Bounds: key, value and transaction have sizes, and say them.
func TestKV_Bounds(t *testing.T) {
	h := newHistory(t)
	h.refused(ErrInvalidArgument, PutKV{}, "key is empty")
	h.refused(ErrInvalidArgument, PutKV{Key: "\xff"}, "UTF-8")
	h.must(PutKV{Key: strings.Repeat("k", MaxKeyBytes), Value: make([]byte, MaxValueBytes)})
	res := h.refused(ErrTooLarge, PutKV{Key: "k", Value: make([]byte, MaxValueBytes+1)}, "524289", "524288")
	if res.Limit != MaxValueBytes || res.Size != MaxValueBytes+1 {
		t.Errorf("limit %d, size %d", res.Limit, res.Size)
	}
	h.refused(ErrTooLarge, PutKV{Key: strings.Repeat("k", MaxKeyBytes+1)}, "1025", "1024")
	h.refused(ErrTooLarge, TxnKV{Ops: make([]OpKV, MaxTxn+1)}, "129 operations")
	h.refused(ErrTooLarge, TxnKV{Compares: make([]CompareKV, MaxTxn+1)}, "129 compares")
}

// TestTxnKV: all compares or nothing.
func TestTxnKV(t *testing.T) {
	h := newHistory(t)
	h.must(PutKV{Key: "a", Value: []byte("1")})
	ops := []OpKV{{Key: "b", Value: []byte("2")}, {Key: "a", Delete: true}, {Key: "absent", Delete: true}}
	h.refused(ErrVersionConflict, TxnKV{Compares: []CompareKV{{"a", 1}, {"b", 1}}, Ops: ops}, `"b"`)
	h.refused(ErrInvalidArgument, TxnKV{Ops: append(ops, OpKV{Key: "b"})}, `"b" is written twice`)
	h.must(TxnKV{Compares: []CompareKV{{"a", 1}, {"b", 0}}, Ops: ops})
	var keys []string
	h.last.KeyValues("", func(v *KeyValue) bool {
		keys = append(keys, v.Key)
		return true
	})
	if d := cmp.Diff([]string{"b"}, keys); d != "" {
		t.Error(d)
	}
	h.unchanged(TxnKV{Compares: []CompareKV{{"a", 0}}})
	h.unchanged(TxnKV{Ops: []OpKV{{Key: "absent", Delete: true}}})
}

// TestAllocateIDs: runs follow each other and never overlap or wrap.
func TestAllocateIDs(t *testing.T) {
	h := newHistory(t)
	for _, c := range []struct{ count, first uint64 }{{1, 0}, {10, 1}, {MaxAllocate, 11}, {1, 11 + MaxAllocate}} {
		res := h.must(AllocateIDs{Counter: "n", Count: c.count})
		if d := cmp.Diff([]IDRange{{c.first, c.count}}, res.IDs); d != "" {
			t.Error(d)
		}
	}
	h.refused(ErrInvalidArgument, AllocateIDs{Counter: "n"}, "count 0")
	h.refused(ErrInvalidArgument, AllocateIDs{Counter: "n", Count: MaxAllocate + 1}, "4294967297", "4294967296")
	h.refused(ErrInvalidArgument, AllocateIDs{Count: 1}, "counter name")
	h.must(ImportBatch{Import: importID, Last: true, IDCounters: []ImportCounter{{Name: "n", Next: 1<<63 - 1}}})
	h.refused(ErrTooLarge, AllocateIDs{Counter: "n", Count: 1}, "no 1 ids left")
}
