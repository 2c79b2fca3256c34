package fsm

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
	"github.com/stavedb/stave/snapshots"
)

func registerServer(c *msgpack.Codec, v *catalog.RegisterServer) {
	c.Record(5)
	msgpack.Int(c, &v.ID)
	c.String(&v.DirectoryID)
	texts(c, &v.Listeners)
	c.String(&v.Rack)
	msgpack.Int(c, &v.TTL)
}

func lease(c *msgpack.Codec, v *catalog.Lease) {
	c.Record(2)
	msgpack.Int(c, &v.ID)
	msgpack.Uint(c, &v.Incarnation)
}

func renewLeases(c *msgpack.Codec, v *catalog.RenewLeases) {
	c.Record(1)
	list(c, &v.Leases, lease)
}

func expiry(c *msgpack.Codec, v *catalog.Expiry) {
	c.Record(3)
	msgpack.Int(c, &v.ID)
	msgpack.Uint(c, &v.Incarnation)
	msgpack.Uint(c, &v.RenewedAt)
}

func expireServers(c *msgpack.Codec, v *catalog.ExpireServers) {
	c.Record(1)
	list(c, &v.Servers, expiry)
}

func unregisterServer(c *msgpack.Codec, v *catalog.UnregisterServer) {
	c.Record(2)
	msgpack.Int(c, &v.ID)
	opt(c, &v.Incarnation, msgpack.Uint[catalog.ServerIncarnation])
}

func tagServer(c *msgpack.Codec, v *catalog.TagServer) {
	c.Record(3)
	snapshots.ServersV1(c, &v.IDs)
	msgpack.Uint(c, &v.Tag)
	c.Bool(&v.Remove)
}

func assignPending(c *msgpack.Codec, v *catalog.AssignPending) {
	c.Record(1)
	c.Uint32(&v.MaxReplicas)
}

func isrChange(c *msgpack.Codec, v *catalog.ISRChange) {
	c.Record(6)
	snapshots.BucketRefV1(c, &v.Bucket)
	msgpack.Int(c, &v.LeaderEpoch)
	msgpack.Int(c, &v.BucketEpoch)
	msgpack.Int(c, &v.Coordinator)
	snapshots.ServersV1(c, &v.ISR)
	snapshots.ServersV1(c, &v.Standby)
}

func adjustISR(c *msgpack.Codec, v *catalog.AdjustISR) {
	c.Record(3)
	msgpack.Int(c, &v.Server)
	msgpack.Uint(c, &v.Incarnation)
	list(c, &v.Changes, isrChange)
}

func electLeaders(c *msgpack.Codec, v *catalog.ElectLeaders) {
	c.Record(3)
	msgpack.Uint(c, &v.Reason)
	refs(c, &v.Buckets)
	opt(c, &v.Server, msgpack.Int[catalog.ServerID])
}

func reassign(c *msgpack.Codec, v *catalog.Reassign) {
	c.Record(1)
	list(c, &v.Moves, snapshots.MoveV1)
}

func startRebalance(c *msgpack.Codec, v *catalog.StartRebalance) {
	c.Record(3)
	c.String(&v.ID)
	list(c, &v.Moves, snapshots.MoveV1)
	c.Uint32(&v.InFlight)
}

func stepRebalance(c *msgpack.Codec, v *catalog.StepRebalance) {
	c.Record(1)
	c.String(&v.ID)
}

func cancelRebalance(c *msgpack.Codec, v *catalog.CancelRebalance) {
	c.Record(1)
	c.String(&v.ID)
}

func deletionAck(c *msgpack.Codec, v *catalog.DeletionAck) {
	c.Record(4)
	msgpack.Uint(c, &v.Table)
	opt(c, &v.Partition, msgpack.Uint[catalog.PartitionID])
	opt(c, &v.Bucket, msgpack.Int[catalog.BucketID])
	c.Bool(&v.Failed)
}

func ackDeletion(c *msgpack.Codec, v *catalog.AckDeletion) {
	c.Record(3)
	msgpack.Int(c, &v.Server)
	msgpack.Uint(c, &v.Incarnation)
	list(c, &v.Objects, deletionAck)
}

func purgeDropped(c *msgpack.Codec, v *catalog.PurgeDropped) {
	c.Record(2)
	c.Uint32(&v.Max)
	msgpack.Int(c, &v.Before)
}
