package msgpack_test

import (
	"math"

	"pgregory.net/rapid"

	"github.com/stavedb/stave/internal/msgpack"
)

type (
	orderID  uint64
	region   uint16
	priority int8
	customer string
)

// order uses every kind of field once; its twelve fields are about the size of
// a partition record.
type order struct {
	ID       orderID
	Region   region
	Priority priority
	Customer customer
	Note     string
	Paid     bool
	Created  int64
	Delta    int32
	Flags    uint32
	Digest   []byte
	Lines    []line
	HasDue   bool
	Due      int64
}

type line struct {
	Item  uint64
	Count uint8
	Tags  []string
}

const (
	maxLines = 4096
	maxTags  = 16
)

func orderFields(c *msgpack.Codec, o *order) {
	c.Record(12)
	msgpack.Uint(c, &o.ID)
	msgpack.Uint(c, &o.Region)
	msgpack.Int(c, &o.Priority)
	msgpack.Str(c, &o.Customer)
	c.String(&o.Note)
	c.Bool(&o.Paid)
	c.Int64(&o.Created)
	c.Int32(&o.Delta)
	c.Uint32(&o.Flags)
	c.Blob(&o.Digest)
	msgpack.Slice(c, &o.Lines, maxLines, lineFields)
	msgpack.Optional(c, &o.HasDue, &o.Due, (*msgpack.Codec).Int64)
}

func lineFields(c *msgpack.Codec, l *line) {
	c.Record(3)
	c.Uint64(&l.Item)
	c.Uint8(&l.Count)
	msgpack.Slice(c, &l.Tags, maxTags, (*msgpack.Codec).String)
}

func sampleOrder() order {
	return order{
		ID: 1 << 40, Region: 49, Priority: -7, Customer: "acme", Note: "dt=2026-11-30", Paid: true,
		Created: 1_796_083_200_000, Delta: -40_000, Flags: 0x1ff, Digest: []byte{1, 2, 3, 4},
		Lines:  []line{{Item: 1, Count: 2}, {Item: 300, Count: 255, Tags: []string{"a", "b"}}},
		HasDue: true, Due: math.MinInt64,
	}
}

// drawOrder draws an order in its decoded form: empty slices are nil, and the
// value of an unset optional is zero.
func drawOrder(t *rapid.T) order {
	o := order{
		ID:       orderID(rapid.Uint64().Draw(t, "id")),
		Region:   region(rapid.Uint16().Draw(t, "region")),
		Priority: priority(rapid.Int8().Draw(t, "priority")),
		Customer: customer(rapid.String().Draw(t, "customer")),
		Note:     rapid.StringN(0, 400, -1).Draw(t, "note"),
		Paid:     rapid.Bool().Draw(t, "paid"),
		Created:  rapid.Int64().Draw(t, "created"),
		Delta:    rapid.Int32().Draw(t, "delta"),
		Flags:    rapid.Uint32().Draw(t, "flags"),
		Digest:   nilIfEmpty(rapid.SliceOfN(rapid.Byte(), 0, 70_000).Draw(t, "digest")),
		Lines:    nilIfEmpty(rapid.SliceOfN(rapid.Custom(drawLine), 0, 40).Draw(t, "lines")),
		HasDue:   rapid.Bool().Draw(t, "has due"),
	}
	if o.HasDue {
		o.Due = rapid.Int64().Draw(t, "due")
	}
	return o
}

func drawLine(t *rapid.T) line {
	return line{
		Item:  rapid.Uint64().Draw(t, "item"),
		Count: rapid.Uint8().Draw(t, "count"),
		Tags:  nilIfEmpty(rapid.SliceOfN(rapid.String(), 0, maxTags).Draw(t, "tags")),
	}
}

func nilIfEmpty[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
