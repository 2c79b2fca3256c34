package msgpack_test

import (
	"testing"

	"github.com/stavedb/stave/internal/msgpack"
)

// Encoding into a buffer that is large enough allocates nothing.
func TestCodec_Encode_NoAllocs(t *testing.T) {
	in := sampleOrder()
	buf := make([]byte, 0, 512)
	c := msgpack.NewEncoder(buf)
	allocs := testing.AllocsPerRun(100, func() {
		c.Reset(buf)
		orderFields(c, &in)
		if c.Finish() != nil {
			panic(c.Err())
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per record, want 0", allocs)
	}
}

func BenchmarkEncodeRecord(b *testing.B) {
	in := sampleOrder()
	c := msgpack.NewEncoder(make([]byte, 0, 512))
	buf := c.Bytes()
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(buf)
		orderFields(c, &in)
		if err := c.Finish(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(c.Offset()))
}

func BenchmarkDecodeRecord(b *testing.B) {
	in := sampleOrder()
	enc := msgpack.NewEncoder(nil)
	orderFields(enc, &in)
	data := enc.Bytes()
	var out order
	c := msgpack.NewDecoder(data)
	b.ReportAllocs()
	for b.Loop() {
		c.Reset(data)
		orderFields(c, &out)
		if err := c.Finish(); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(data)))
}
