package fsm

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

func newTerm(c *msgpack.Codec, v *catalog.NewTerm) {
	c.Record(2)
	c.Uint64(&v.Term)
	c.String(&v.Leader)
}

func incarnation(c *msgpack.Codec, v *catalog.Incarnation) {
	c.Record(2)
	c.Uint64(&v.Number)
	c.Uint64(&v.Random)
}

func activateIncarnation(c *msgpack.Codec, v *catalog.ActivateIncarnation) {
	c.Record(3)
	c.String(&v.ClusterID)
	incarnation(c, &v.Incarnation)
	msgpack.Uint(c, &v.Level)
}

func setLimits(c *msgpack.Codec, v *catalog.SetLimits) {
	c.Record(4)
	c.String(&v.Database)
	c.Uint32(&v.Limits.Buckets)
	c.Uint32(&v.Limits.Partitions)
	c.Uint32(&v.Limits.Replicas)
}

func setFeatureLevel(c *msgpack.Codec, v *catalog.SetFeatureLevel) {
	c.Record(1)
	msgpack.Uint(c, &v.Level)
}

func checksum(c *msgpack.Codec, _ *catalog.Checksum) { c.Record(0) }

func announceMember(c *msgpack.Codec, v *catalog.AnnounceMember) {
	c.Record(7)
	c.String(&v.NodeID)
	c.String(&v.DirectoryID)
	c.String(&v.RaftAddr)
	c.String(&v.APIAddr)
	c.String(&v.HTTPAddr)
	msgpack.Uint(c, &v.Level)
	c.String(&v.Build)
}

func forgetMember(c *msgpack.Codec, v *catalog.ForgetMember) {
	c.Record(1)
	c.String(&v.NodeID)
}
