package fsm

import (
	"errors"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
)

// A raft instance that is opened in place restores an older snapshot into the
// same machine and hands over the log behind it once more. Nothing goes back
// and nothing happens twice, and no snapshot is taken under a lower index.
func TestFSM_OpenedInPlace(t *testing.T) {
	for _, batch := range []int{1, 7, 64} {
		var rec recorder
		f := New(Config{Publisher: &rec})
		logs := workload(t, 200, 11)
		applyIn(f, logs[:80], func() int { return 16 })
		file, at := persisted(t, f), f.Index()
		applyIn(f, logs[80:150], func() int { return 16 })
		state, revs := f.State(), len(rec.revs)

		if err := f.Restore(wrapped{&indexed{readCloser(file), at}}); err != nil {
			t.Fatal(err)
		}
		if f.State() != state || f.Index() != uint64(state.Revision()) || rec.resets != nil {
			t.Fatalf("restore of %d into a machine at %d: now at %d, resets %v", at, state.Revision(), f.Index(), rec.resets)
		}
		if _, err := f.Snapshot(); !errors.Is(err, ErrRepeating) {
			t.Errorf("snapshot before the log is repeated: %v", err)
		}
		for i, part := range slices.Collect(slices.Chunk(logs[80:], batch)) {
			for j, a := range f.ApplyBatch(part) {
				old := part[j].Index <= uint64(state.Revision())
				if (a == nil) != (old || part[j].Type != raft.LogCommand) {
					t.Fatalf("batch %d: answer %v to entry %d", i, a, part[j].Index)
				}
			}
			if _, err := f.Snapshot(); (err == nil) != (part[len(part)-1].Index >= uint64(state.Revision())) {
				t.Fatalf("snapshot after entry %d: %v", part[len(part)-1].Index, err)
			}
		}
		if !slices.IsSorted(rec.revs) || rec.revs[revs] <= state.Revision() {
			t.Errorf("published revisions %v", rec.revs)
		}
		fresh := New(Config{})
		applyIn(fresh, logs, func() int { return 200 })
		if f.State().Hash() != fresh.State().Hash() || f.Index() != fresh.Index() {
			t.Errorf("state after repeating differs from one that applied each entry once")
		}
	}
}

// A snapshot of a later incarnation replaces the state.
func TestRestore_OtherIncarnation(t *testing.T) {
	f := newShop(t, Config{}, 3).f
	members := []catalog.Member{}
	st, err := f.State().Restored(catalog.RestoreOptions{
		ClusterID: "c", Incarnation: catalog.Incarnation{Number: 9, Random: 9}, Level: 1, Members: members, Revision: f.State().Revision() + 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	src := New(Config{})
	src.state.Store(st)
	file := persisted(t, src)
	if err := f.Restore(&indexed{readCloser(file), uint64(st.Revision())}); err != nil {
		t.Fatal(err)
	}
	if f.State().Incarnation().Number != 9 || f.Index() != uint64(st.Revision()) {
		t.Errorf("incarnation %v at %d", f.State().Incarnation(), f.Index())
	}
}
