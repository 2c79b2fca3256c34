package snapshots

import (
	"errors"
	"slices"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

var (
	errUneven    = errors.New("replica lists and bucket states differ in number")
	errRedundant = errors.New("list is equal to the replicas and must be left out")
)

// ServersV1 states a list of server ids.
func ServersV1(c *msgpack.Codec, v *[]catalog.ServerID) {
	msgpack.Slice(c, v, maxList, msgpack.Int[catalog.ServerID])
}

// BucketRefV1 states the fields of a bucket's name.
func BucketRefV1(c *msgpack.Codec, b *catalog.BucketRef) {
	c.Record(3)
	msgpack.Uint(c, &b.Table)
	opt(c, &b.Partition, msgpack.Uint[catalog.PartitionID])
	msgpack.Int(c, &b.Bucket)
}

// MoveV1 states the fields of a move.
func MoveV1(c *msgpack.Codec, m *catalog.Move) {
	c.Record(4)
	BucketRefV1(c, &m.Bucket)
	ServersV1(c, &m.From)
	ServersV1(c, &m.To)
	c.Bool(&m.Done)
}

// placement is nil or a list of buckets, each with its replicas.
func placement(c *msgpack.Codec, p **catalog.Placement) {
	set := *p != nil
	msgpack.Optional(c, &set, p, placementBuckets)
}

func placementBuckets(c *msgpack.Codec, p **catalog.Placement) {
	if c.Decoding() {
		decodePlacement(c, p)
		return
	}
	v := *p
	n := len(v.Buckets)
	if len(v.Replicas) != n {
		c.Fail(errUneven)
	}
	c.ArrayLen(&n, 0, maxList)
	for i := 0; i < n && c.Err() == nil; i++ {
		c.Record(8)
		encodeServers(c, v.Replicas[i])
		bucketNumbers(c, &v.Buckets[i])
		isr := v.Buckets[i].ISR
		differs := !slices.Equal(isr, v.Replicas[i])
		msgpack.Optional(c, &differs, &isr, ServersV1)
		encodeServers(c, v.Buckets[i].Standby)
	}
}

func encodeServers(c *msgpack.Codec, list []catalog.ServerID) {
	n := len(list)
	c.ArrayLen(&n, 0, maxList)
	for i := range list {
		msgpack.Int(c, &list[i])
	}
}

func bucketNumbers(c *msgpack.Codec, b *catalog.BucketState) {
	msgpack.Int(c, &b.Leader)
	msgpack.Int(c, &b.LeaderEpoch)
	msgpack.Int(c, &b.BucketEpoch)
	msgpack.Int(c, &b.CoordinatorEpoch)
	c.Bool(&b.Ready)
}

// decodePlacement keeps the replicas of all buckets in one array, as the
// catalog does, and lets an ISR that is equal to them share it.
func decodePlacement(c *msgpack.Codec, p **catalog.Placement) {
	var n int
	if c.ArrayLen(&n, 0, maxList); c.Err() != nil {
		return
	}
	// An element has 9 bytes or more, so that the input bounds the memory.
	if n > len(c.Bytes())/9 {
		c.Fail(msgpack.ErrTruncated)
		return
	}
	v := &catalog.Placement{Replicas: make([][]catalog.ServerID, n), Buckets: make([]catalog.BucketState, n)}
	var flat []catalog.ServerID
	for i := range n {
		var k int
		c.Record(8)
		if c.ArrayLen(&k, 0, maxList); c.Err() != nil {
			return
		}
		if i == 0 {
			flat = make([]catalog.ServerID, 0, min(n*k, len(c.Bytes())))
		}
		from := len(flat)
		for range k {
			var id catalog.ServerID
			msgpack.Int(c, &id)
			flat = append(flat, id)
		}
		if k > 0 {
			v.Replicas[i] = flat[from:len(flat):len(flat)]
		}
		decodeBucket(c, &v.Buckets[i], v.Replicas[i])
		if c.Err() != nil {
			return
		}
	}
	*p = v
}

func decodeBucket(c *msgpack.Codec, b *catalog.BucketState, replicas []catalog.ServerID) {
	bucketNumbers(c, b)
	var differs bool
	msgpack.Optional(c, &differs, &b.ISR, ServersV1)
	switch {
	case !differs:
		b.ISR = replicas
	case slices.Equal(b.ISR, replicas):
		c.Fail(errRedundant)
	}
	ServersV1(c, &b.Standby)
}
