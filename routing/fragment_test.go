package routing

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The bytes of a fragment, frozen: checkpoints hold them.
func TestFragment_Bytes(t *testing.T) {
	f := &Fragment{Version: FragmentV2, TableID: 7, Offsets: []BucketOffset{
		{TableBucket{TableID: 7, PartitionID: NoPartition, Bucket: 3}, 10},
		{TableBucket{TableID: 7, PartitionID: 258, Bucket: 1}, math.MaxInt64},
	}}
	want := mustHex(t, "00000002"+"0000000000000007"+"00000002"+
		"00"+"00000003"+"000000000000000a"+
		"01"+"0000000000000102"+"00000001"+"7fffffffffffffff")
	got, err := AppendFragment([]byte("x"), f)
	if err != nil || !bytes.Equal(got[1:], want) || got[0] != 'x' {
		t.Fatalf("bytes %x, %v, want %x", got, err, want)
	}
	back, err := DecodeFragment(want)
	if diff := cmp.Diff(f, back); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	for n := range want {
		if _, err := DecodeFragment(want[:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(want))
		}
	}
	_, err = DecodeFragment(append(bytes.Clone(want), 0))
	wantError(t, err, ErrRestoreState)
}

// What could not be read back is not written.
func TestAppendFragment_Refusals(t *testing.T) {
	for name, f := range map[string]*Fragment{
		"version":   {Version: FragmentV1, TableID: 7},
		"table":     {Version: FragmentV2, TableID: 7, Offsets: []BucketOffset{{TableBucket{TableID: 8}, 1}}},
		"partition": {Version: FragmentV2, TableID: 7, Offsets: []BucketOffset{{TableBucket{TableID: 7, PartitionID: 1 << 63}, 1}}},
	} {
		got, err := AppendFragment([]byte("x"), f)
		if !wantError(t, err, ErrRestoreState) || string(got) != "x" {
			t.Errorf("%s: buffer %q", name, got)
		}
	}
}

// Any bytes decode to an error or to a fragment that encodes to the very same bytes and shares none of them.
func FuzzDecodeFragment(f *testing.F) {
	f.Add(mustHex(f, "00000002000000000000000700000000"))
	f.Add(mustHex(f, "000000020000000000000007000000010100000000000001020000000100000000000000ff"))
	f.Add(mustHex(f, "0000000200000000000000077fffffff00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fragment, err := DecodeFragment(data)
		if err != nil {
			wantError(t, err, ErrRestoreState)
			return
		}
		original := bytes.Clone(data)
		for i := range data {
			data[i] ^= 0xff
		}
		again, err := AppendFragment(nil, fragment)
		if err != nil || !bytes.Equal(again, original) {
			t.Errorf("%x encodes to %x, %v", original, again, err)
		}
	})
}
