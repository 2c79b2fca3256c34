package routing

import (
	stdcmp "cmp"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
)

const recoveryTable = 7

// recoveryLive has partitions from before and after a rescale from 2 to 4.
func recoveryLive() []PartitionBuckets {
	return []PartitionBuckets{{ID: 0, Name: "p1", Count: 2}, {ID: 1, Name: "p2", Count: 4}}
}

func recoveryBucket(partition catalog.PartitionID, bucket int32) TableBucket {
	return TableBucket{TableID: recoveryTable, PartitionID: partition, Bucket: bucket}
}

func fragmentV2(offsets ...BucketOffset) *Fragment {
	return &Fragment{Version: FragmentV2, TableID: recoveryTable, Offsets: offsets}
}

// S101: what fragments may and may not say together.
func TestS101_MergeFragments(t *testing.T) {
	b0, b1 := recoveryBucket(0, 0), recoveryBucket(1, 3)
	gone := recoveryBucket(9, 0)
	other := TableBucket{TableID: 8, Bucket: 0}
	legacy := &Fragment{Version: FragmentV1, Offsets: []BucketOffset{{b0, 10}}}
	tests := []struct {
		name      string
		fragments []*Fragment
		want      map[TableBucket]int64
		legacy    bool
		err       error
	}{
		{"conflict", []*Fragment{fragmentV2(BucketOffset{b0, 10}), fragmentV2(BucketOffset{b0, 20})}, nil, false, ErrConflictingOffsets},
		{"conflict within one", []*Fragment{fragmentV2(BucketOffset{b0, 10}, BucketOffset{b0, 11})}, nil, false, ErrConflictingOffsets},
		{"equal", []*Fragment{fragmentV2(BucketOffset{b0, 10}), fragmentV2(BucketOffset{b0, 10})}, map[TableBucket]int64{b0: 10}, false, nil},
		{"disjoint", []*Fragment{fragmentV2(BucketOffset{b0, 10}), fragmentV2(BucketOffset{b1, 5})}, map[TableBucket]int64{b0: 10, b1: 5}, false, nil},
		{"empty fragment", []*Fragment{fragmentV2()}, map[TableBucket]int64{}, false, nil},
		{"no fragments", []*Fragment{}, nil, false, ErrRestoreState},
		{"nil list", nil, nil, false, ErrRestoreState},
		{"nil fragment", []*Fragment{fragmentV2(), nil}, nil, false, ErrRestoreState},
		{"mixed versions", []*Fragment{fragmentV2(), legacy}, nil, false, ErrRestoreState},
		{"mixed versions, old first", []*Fragment{legacy, fragmentV2()}, nil, false, ErrRestoreState},
		{"unknown version", []*Fragment{{Version: 3, TableID: recoveryTable}}, nil, false, ErrRestoreState},
		{"only old ones", []*Fragment{legacy}, map[TableBucket]int64{b0: 10}, true, nil},
		{"other table", []*Fragment{{Version: FragmentV2, TableID: 8}}, nil, false, ErrRestoreState},
		{"bucket of other table", []*Fragment{fragmentV2(BucketOffset{other, 1})}, nil, false, ErrRestoreState},
		{"negative offset", []*Fragment{fragmentV2(BucketOffset{b0, -1})}, nil, false, ErrRestoreState},
		{"partition gone", []*Fragment{fragmentV2(BucketOffset{gone, 1}), fragmentV2(BucketOffset{gone, 2})}, map[TableBucket]int64{}, false, nil},
		{"bucket beyond the count", []*Fragment{fragmentV2(BucketOffset{recoveryBucket(0, 2), 1})}, nil, false, ErrBucketRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := MergeFragments(recoveryTable, recoveryLive(), tt.fragments)
			if !wantError(t, err, tt.err) || err != nil {
				return
			}
			if diff := cmp.Diff(Restored{Baselines: tt.want, Legacy: tt.legacy}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// S101: baselines are compared with what is there: behind is undone, ahead is an inconsistency, unknown an error.
func TestS101_PlanRecovery(t *testing.T) {
	b := recoveryBucket(0, 0)
	tests := []struct {
		name      string
		baselines map[TableBucket]int64
		current   map[TableBucket]int64
		want      RecoveryPlan
		err       error
	}{
		{"undo", map[TableBucket]int64{b: 5}, map[TableBucket]int64{b: 9}, RecoveryPlan{Undo: []UndoRange{{b, 5, 9}}, Baselines: []BucketOffset{{b, 5}}}, nil},
		{"unchanged is kept", map[TableBucket]int64{b: 5}, map[TableBucket]int64{b: 5}, RecoveryPlan{Baselines: []BucketOffset{{b, 5}}}, nil},
		{"absent is 0", nil, map[TableBucket]int64{b: 3}, RecoveryPlan{Undo: []UndoRange{{b, 0, 3}}}, nil},
		{"nothing written", nil, map[TableBucket]int64{b: 0}, RecoveryPlan{}, nil},
		{"inconsistent", map[TableBucket]int64{b: 12}, map[TableBucket]int64{b: 10}, RecoveryPlan{}, ErrDataInconsistency},
		{"missing", map[TableBucket]int64{b: 12}, nil, RecoveryPlan{}, ErrMissingOffset},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := PlanRecovery([]TableBucket{b}, Restored{Baselines: tt.baselines}, tt.current)
			wantError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, err := PlanRecovery([]TableBucket{b}, Restored{Baselines: map[TableBucket]int64{b: 12}}, map[TableBucket]int64{b: 10})
	const want = "Data inconsistency for table 7 partition 0 bucket 0: checkpoint offset 12 is beyond current offset 10."
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// S102: a checkpoint written by disagreeing writers, here with the counts 4 and 6 on 4 channels, still fails after the
// writers were mended, with the bucket and both offsets in the message.
func TestS102_FragmentedStateIsNotRepaired(t *testing.T) {
	s := mustShuffle(t, 4)
	ref := NamedPartition("20260901")
	live := []PartitionBuckets{{ID: 3, Name: "20260901", Count: 6}}
	e, err := NewKeyEncoder(FormatFluss, []Column{{Name: "id", Type: Type{Kind: KindInt}}})
	if err != nil {
		t.Fatal(err)
	}
	next := make(map[TableBucket]int64)
	states := make([]map[TableBucket]int64, s.Channels())
	for id := range int32(40) {
		stale, _, err := e.Bucket(nil, []Value{Int(id)}, 4)
		if err != nil {
			t.Fatal(err)
		}
		channel, err := s.Channel(ref, stale, 4)
		if err != nil {
			t.Fatal(err)
		}
		bucket, _, err := e.Bucket(nil, []Value{Int(id)}, 6)
		if err != nil {
			t.Fatal(err)
		}
		at := recoveryBucket(3, bucket)
		next[at]++
		if states[channel] == nil {
			states[channel] = make(map[TableBucket]int64)
		}
		states[channel][at] = next[at]
	}
	fragments := make([]*Fragment, len(states))
	for i, state := range states {
		fragments[i] = fragmentV2()
		for b := range int32(6) {
			if offset, ok := state[recoveryBucket(3, b)]; ok {
				fragments[i].Offsets = append(fragments[i].Offsets, BucketOffset{recoveryBucket(3, b), offset})
			}
		}
	}
	_, err = MergeFragments(recoveryTable, live, fragments)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, ErrConflictingOffsets) {
		t.Fatalf("error %v, want a *ConflictError", err)
	}
	fixed := &ConflictError{Bucket: recoveryBucket(3, 1), First: 10, Second: 20}
	const want = "Conflicting checkpoint offsets for table 7 partition 3 bucket 1: 10 and 20."
	if fixed.Error() != want {
		t.Errorf("message %q, want %q", fixed, want)
	}
}

// The owned buckets of all subtasks are the buckets of the partitions, each once, each by its own count; and each
// bucket's owner is the channel its rows go to.
func TestOwnedBuckets_Partition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shuffle{channels: rapid.Int32Range(1, 12).Draw(t, "channels")}
		live := make([]PartitionBuckets, rapid.IntRange(0, 4).Draw(t, "partitions"))
		for i := range live {
			live[i] = PartitionBuckets{
				ID: catalog.PartitionID(i), Name: rapid.StringMatching(`[a-zA-Z0-9_-]{1,12}`).Draw(t, "name"),
				Count: rapid.Int32Range(1, 20).Draw(t, "count"),
			}
		}
		owner := make(map[TableBucket]int32)
		for subtask := range s.Channels() {
			owned, err := OwnedBuckets(s, subtask, recoveryTable, live)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range owned {
				if other, ok := owner[b]; ok {
					t.Fatalf("%s is owned by %d and %d", b, other, subtask)
				}
				owner[b] = subtask
			}
		}
		total := 0
		for p, b := range Buckets(recoveryTable, live) {
			total++
			writer, err := s.Channel(p.Ref(), b.Bucket, p.Count)
			if err != nil || owner[b] != writer {
				t.Fatalf("%s is written by %d and owned by %d: %v", b, writer, owner[b], err)
			}
		}
		if total != len(owner) {
			t.Fatalf("%d buckets, %d owned", total, len(owner))
		}
	})
}

// A rescaled table's partitions with 2 and 4 buckets enumerate to 6, neither 4 nor 8.
func TestBuckets_OwnCount(t *testing.T) {
	var got []TableBucket
	for _, b := range Buckets(recoveryTable, recoveryLive()) {
		got = append(got, b)
	}
	want := []TableBucket{
		recoveryBucket(0, 0), recoveryBucket(0, 1),
		recoveryBucket(1, 0), recoveryBucket(1, 1), recoveryBucket(1, 2), recoveryBucket(1, 3),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range Buckets(recoveryTable, recoveryLive()) {
		break // stopping early is fine
	}
	_, err := OwnedBuckets(mustShuffle(t, 2), 0, recoveryTable, []PartitionBuckets{{ID: 1}})
	wantError(t, err, ErrBucketCount)
}

// S103: the readers of a partition's buckets are consecutive from one given by the partition id.
func TestS103_SplitOwners(t *testing.T) {
	tests := []struct {
		name      string
		partition catalog.PartitionID
		count     int32
		want      []int32
	}{
		{"partition 7 with 4", 7, 4, []int32{1, 2, 3, 0}},
		{"partition 8 with 2", 8, 2, []int32{0, 1}},
		{"no partition", NoPartition, 6, []int32{0, 1, 2, 3, 0, 1}},
		{"id above 32 bits", 1<<32 + 7, 2, []int32{2, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make([]int32, tt.count)
			for b := range got {
				var err error
				if got[b], err = SplitOwner(tt.partition, int32(b), 4); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, err := SplitOwner(1, 0, 0)
	wantError(t, err, ErrParallelism)
	_, err = SplitOwner(1, -1, 4)
	wantError(t, err, ErrBucketRange)
	_, err = UnawareSplitOwner("s", 0)
	wantError(t, err, ErrParallelism)
	// The sign bit is masked, so "polygenelubricants" counts as hash 0.
	for id, want := range map[string]int32{"polygenelubricants": 0, "20240910": (-1922325784 & math.MaxInt32) % 5} {
		if got, err := UnawareSplitOwner(id, 5); err != nil || got != want {
			t.Errorf("split %q: reader %d, %v, want %d", id, got, err, want)
		}
	}
}

// Buckets sort by table, partition and number and print what they are.
func TestTableBucket_CompareAndString(t *testing.T) {
	sorted := []TableBucket{
		{TableID: 1, PartitionID: NoPartition, Bucket: 5},
		{TableID: 1, PartitionID: 0, Bucket: 4},
		{TableID: 1, PartitionID: 2, Bucket: 0},
		{TableID: 1, PartitionID: 2, Bucket: 1},
		{TableID: 2, PartitionID: 0},
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := a.Compare(b); got != stdcmp.Compare(i, j) {
				t.Errorf("%s and %s compare %d", a, b, got)
			}
		}
	}
	if got := sorted[0].String(); got != "table 1 bucket 5" {
		t.Errorf("%q", got)
	}
}

// A table without partitions shuffles by bucket alone, and its buckets merge like any other.
func TestOwnedBuckets_NoPartition(t *testing.T) {
	live := []PartitionBuckets{{ID: NoPartition, Count: 5}}
	owned, err := OwnedBuckets(mustShuffle(t, 2), 1, recoveryTable, live)
	want := []TableBucket{recoveryBucket(NoPartition, 1), recoveryBucket(NoPartition, 3)}
	if diff := cmp.Diff(want, owned); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	r, err := MergeFragments(recoveryTable, live, []*Fragment{fragmentV2(BucketOffset{want[0], 3})})
	if err != nil || r.Baselines[want[0]] != 3 {
		t.Errorf("%v, %v", r, err)
	}
	_, err = OwnedBuckets(mustShuffle(t, 2), 2, recoveryTable, live)
	wantError(t, err, ErrParallelism)
}
