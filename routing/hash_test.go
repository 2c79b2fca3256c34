package routing

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

// The three hashes give the numbers of the original implementation for every vector.
func TestHashes_Vectors(t *testing.T) {
	type row struct {
		Key      string `json:"key"`
		Murmur42 int32  `json:"murmur42"`
		Mix      int32  `json:"mix"`
		Standard int32  `json:"guava_murmur3_32_fixed_seed0"`
	}
	for _, r := range readVectors[row](t, "murmur_hash.json", 64).Rows {
		key := mustHex(t, r.Key)
		if got := murmur42(key); got != r.Murmur42 {
			t.Errorf("murmur42(%s) = %d, want %d", r.Key, got, r.Murmur42)
		}
		if got := mixInt(r.Murmur42); got != r.Mix {
			t.Errorf("mixInt(%d) = %d, want %d", r.Murmur42, got, r.Mix)
		}
		if got := murmurStandard(key); got != r.Standard {
			t.Errorf("murmurStandard(%s) = %d, want %d", r.Key, got, r.Standard)
		}
	}
	type mix struct {
		In  int32 `json:"in"`
		Out int32 `json:"out"`
	}
	for _, r := range readVectors[mix](t, "int_mix.json", 75).Rows {
		if got := mixInt(r.In); got != r.Out {
			t.Errorf("mixInt(%d) = %d, want %d", r.In, got, r.Out)
		}
	}
}

// bucketEdgeCase is a row for keys and counts at the bounds; the result is a bucket or the text of an exception.
type bucketEdgeCase struct {
	Fn     string          `json:"fn"`
	Key    string          `json:"key"`
	N      int32           `json:"n"`
	Result json.RawMessage `json:"result"`
}

// Every format places every vector as the original does, for counts from 1 to 2^31-1, and refuses what it refuses.
func TestFormat_Bucket_Vectors(t *testing.T) {
	type row struct {
		Fn      string  `json:"fn"`
		Key     string  `json:"key"`
		Buckets []int32 `json:"buckets"`
	}
	file := readVectors[row](t, "bucketing_functions.json", 282)
	for _, r := range file.Rows {
		f, err := ParseFormat(r.Fn)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range file.NumBuckets {
			got, err := f.Bucket(mustHex(t, r.Key), n)
			if err != nil || got != r.Buckets[i] {
				t.Errorf("%s %s of %d: bucket %d, %v, want %d", r.Fn, r.Key, n, got, err, r.Buckets[i])
			}
		}
	}
	if len(file.EdgeCases) != 50 {
		t.Fatalf("%d edge cases, want 50", len(file.EdgeCases))
	}
	exceptions := []struct {
		text string
		want error
	}{
		{"Assigned key must not be empty", ErrEmptyKey},
		{"bucketKey must not be null or empty", ErrEmptyKey},
		{"bucketKey must be exactly 4 bytes", ErrKeyLength},
		{"/ by zero", ErrBucketCount},
		{"numBuckets must be positive", ErrBucketCount},
	}
	for _, e := range file.EdgeCases {
		f, err := ParseFormat(e.Fn)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Bucket(mustHex(t, e.Key), e.N)
		var text string
		if json.Unmarshal(e.Result, &text) != nil { // a number
			if want := mustInt(t, string(e.Result)); err != nil || int64(got) != want {
				t.Errorf("%s %s of %d: bucket %d, %v, want %d", e.Fn, e.Key, e.N, got, err, want)
			}
			continue
		}
		known := false
		for _, x := range exceptions {
			if strings.Contains(text, x.text) {
				known = true
				wantError(t, err, x.want)
			}
		}
		if !known {
			t.Errorf("no error is expected for %q", text)
		}
	}
}

// A count below one is a typed error naming it, for every format, never a division by zero or a negative bucket.
func TestFormat_Bucket_Count(t *testing.T) {
	for f := FormatFluss; f <= FormatLance; f++ {
		for _, n := range []int32{0, -1, -7, math.MinInt32} {
			_, err := f.Bucket([]byte{1, 2, 3, 4}, n)
			var count *BucketCountError
			if !errors.As(err, &count) || count.Count != n {
				t.Errorf("%s of %d: error %v, want a BucketCountError with the count", f, n, err)
			}
		}
	}
	_, err := Format(9).Bucket([]byte{1}, 1)
	wantError(t, err, ErrFormat)
}

// S60: the literal buckets of the original tests.
func TestS60_BucketingLiterals(t *testing.T) {
	tests := []struct {
		key                          string
		n                            int32
		fluss, paimon, iceberg, lake int32
	}{
		{"\x00\x0a", 7, 1, 1, 3, 1},
		{"\x00\x0a\x0a\x0a", 12, 0, 11, 4, 0},
		{"2bb87d68-baf9-4e64-90f9-f80910419fa6", 16, 6, 12, 12, 6},
		{"The quick brown fox jumps over the lazy dog", 8, 6, 0, 3, 6},
	}
	for _, tt := range tests {
		for f, want := range map[Format]int32{
			FormatFluss: tt.fluss, FormatPaimon: tt.paimon, FormatIceberg: tt.iceberg, FormatLance: tt.lake,
		} {
			got, err := f.Bucket([]byte(tt.key), tt.n)
			if err != nil || got != want {
				t.Errorf("%s %q of %d: bucket %d, %v, want %d", f, tt.key, tt.n, got, err, want)
			}
		}
	}
}
