package routing

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustShuffle(t testing.TB, channels int32) Shuffle {
	t.Helper()
	s, err := NewShuffle(channels)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// S95: every row of flink_channels.json. For the hash of the smallest int32 the original gives negative channels; here
// they are those of hash 0.
func TestS95_ChannelVectors(t *testing.T) {
	type row struct {
		Partition *string `json:"partition"`
		Hash      *int32  `json:"java_hash"`
		Buckets   int32   `json:"num_buckets"`
		Channels  int32   `json:"channels"`
		Combine   bool    `json:"combine"`
		Want      []int32 `json:"channel_by_bucket"`
	}
	smallest := 0
	for _, r := range readVectors[row](t, "flink_channels.json", 180).Rows {
		var ref PartitionRef
		want := r.Want
		if r.Partition != nil {
			ref = NamedPartition(*r.Partition)
			if ref.hash != *r.Hash {
				t.Errorf("hash of %q is %d, want %d", *r.Partition, ref.hash, *r.Hash)
			}
			if ref.hash == math.MinInt32 && r.Combine {
				smallest++
				want = make([]int32, r.Buckets)
				for b := range want {
					want[b] = int32(b) % r.Channels
				}
			}
		}
		s := mustShuffle(t, r.Channels)
		if got := s.Combines(ref, r.Buckets); got != r.Combine {
			t.Errorf("%+v: combines %v", r, got)
		}
		got := make([]int32, r.Buckets)
		for b := range got {
			var err error
			if got[b], err = s.Channel(ref, int32(b), r.Buckets); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v of %d on %d (-want +got):\n%s", ref, r.Buckets, r.Channels, diff)
		}
	}
	if smallest == 0 {
		t.Error("no vector has the smallest hash")
	}
}

// S95: 10 buckets on 5 channels ignore the partition, on 3 channels they do not.
func TestS95_ChannelFormula(t *testing.T) {
	hello, no := NamedPartition("hello"), NamedPartition("no")
	for b := range int32(10) {
		for _, tt := range []struct {
			channels int32
			same     bool
		}{{5, true}, {3, false}} {
			s := mustShuffle(t, tt.channels)
			one, err := s.Channel(hello, b, 10)
			if err != nil {
				t.Fatal(err)
			}
			two, err := s.Channel(no, b, 10)
			if err != nil {
				t.Fatal(err)
			}
			if (one == two) != tt.same {
				t.Errorf("bucket %d on %d channels: %d and %d", b, tt.channels, one, two)
			}
		}
	}
}

// S95: no hash, not even that of the smallest int32, gives a channel outside 0..channels-1.
func TestS95_ChannelNeverNegative(t *testing.T) {
	for _, name := range []string{"GydZG_", "polygenelubricants", "DESIGNING WORKHOUSES"} {
		if h := JavaStringHash(name); h != math.MinInt32 {
			t.Fatalf("hash of %q is %d", name, h)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ref := PartitionRef{named: rapid.Bool().Draw(t, "named"), hash: rapid.Int32().Draw(t, "hash")}
		count := rapid.Int32Range(1, math.MaxInt32).Draw(t, "count")
		bucket := rapid.Int32Range(0, count-1).Draw(t, "bucket")
		channels := rapid.Int32Range(1, math.MaxInt32).Draw(t, "channels")
		got, err := Shuffle{channels: channels}.Channel(ref, bucket, count)
		if err != nil || got < 0 || got >= channels {
			t.Fatalf("channel %d of %d, %v", got, channels, err)
		}
	})
}

// rescaleRow shows, for keys of one INT column, what becomes of channels computed with a count that is not the
// partition's own.
type rescaleRow struct {
	Captured    int32              `json:"captured_table_count"`
	Actual      int32              `json:"actual_partition_count"`
	Parallelism int32              `json:"parallelism"`
	Partition   string             `json:"partition"`
	Keys        [][4]int32         `json:"keys"` // id, actual bucket, channel with the captured and the actual count
	Fragmented  map[string][]int32 `json:"writers_per_bucket_captured"`
	Writers     map[string][]int32 `json:"writers_per_bucket_actual"`
}

// With the partition's own count every bucket has one writer, and it is the bucket's recovery owner; with the count
// captured before a rescale the failure of the original is reproduced key by key.
func TestShuffle_RescaleVectors(t *testing.T) {
	e, err := NewKeyEncoder(FormatFluss, []Column{{Name: "id", Type: Type{Kind: KindInt}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readVectors[rescaleRow](t, "rescale_channels.json", 4).Rows {
		s := mustShuffle(t, r.Parallelism)
		ref := NamedPartition(r.Partition)
		place := func(id, count int32) (bucket, channel int32) {
			bucket, _, err := e.Bucket(nil, []Value{Int(id)}, count)
			if err != nil {
				t.Fatal(err)
			}
			channel, err = s.Channel(ref, bucket, count)
			if err != nil {
				t.Fatal(err)
			}
			return bucket, channel
		}
		fragmented, writers := map[string][]int32{}, map[string][]int32{}
		for _, key := range r.Keys {
			bucket, channel := place(key[0], r.Actual)
			_, wrong := place(key[0], r.Captured)
			if diff := cmp.Diff(key, [4]int32{key[0], bucket, wrong, channel}); diff != "" {
				t.Errorf("%d to %d on %d (-want +got):\n%s", r.Captured, r.Actual, r.Parallelism, diff)
			}
			owns, err := s.Owns(channel, ref, bucket, r.Actual)
			if err != nil || !owns {
				t.Errorf("channel %d writes bucket %d but does not own it: %v", channel, bucket, err)
			}
			name := strconv.Itoa(int(bucket))
			writers[name] = addSorted(writers[name], channel)
			fragmented[name] = addSorted(fragmented[name], wrong)
		}
		if diff := cmp.Diff(r.Writers, writers); diff != "" {
			t.Errorf("writers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(r.Fragmented, fragmented); diff != "" {
			t.Errorf("writers with the captured count (-want +got):\n%s", diff)
		}
	}
}

func addSorted(set []int32, n int32) []int32 {
	for i, have := range set {
		if have == n {
			return set
		}
		if have > n {
			return append(set[:i], append([]int32{n}, set[i:]...)...)
		}
	}
	return append(set, n)
}

// Bucket ids from another count and impossible parallelism are refused, naming the bound.
func TestShuffle_Refusals(t *testing.T) {
	_, err := NewShuffle(0)
	wantError(t, err, ErrParallelism)
	_, err = Shuffle{}.Channel(PartitionRef{}, 0, 1)
	wantError(t, err, ErrParallelism)
	s := mustShuffle(t, 4)
	for _, bucket := range []int32{-1, 2, math.MaxInt32, math.MinInt32} {
		_, err := s.Channel(NamedPartition("p1"), bucket, 2)
		wantError(t, err, ErrBucketRange)
	}
	_, err = s.Channel(PartitionRef{}, 0, 0)
	wantError(t, err, ErrBucketCount)
	for _, subtask := range []int32{-1, 4} {
		_, err := s.Owns(subtask, PartitionRef{}, 0, 1)
		wantError(t, err, ErrParallelism)
	}
	if s.Combines(PartitionRef{}, 3) || (Shuffle{}).Combines(NamedPartition("a"), 3) {
		t.Error("combines without a partition or without channels")
	}
}
