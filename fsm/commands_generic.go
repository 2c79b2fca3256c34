package fsm

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

func registerClient(c *msgpack.Codec, v *catalog.RegisterClient) {
	c.Record(2)
	c.String(&v.Name)
	msgpack.Int(c, &v.TTL)
}

func clientActivity(c *msgpack.Codec, v *catalog.ClientActivity) {
	c.Record(2)
	msgpack.Uint(c, &v.ID)
	msgpack.Uint(c, &v.ActiveAt)
}

func expireClients(c *msgpack.Codec, v *catalog.ExpireClients) {
	c.Record(1)
	list(c, &v.Clients, clientActivity)
}

func putKV(c *msgpack.Codec, v *catalog.PutKV) {
	c.Record(3)
	c.String(&v.Key)
	c.Blob(&v.Value)
	opt(c, &v.ExpectedVersion, msgpack.Uint[uint64])
}

func deleteKV(c *msgpack.Codec, v *catalog.DeleteKV) {
	c.Record(3)
	c.String(&v.Key)
	opt(c, &v.ExpectedVersion, msgpack.Uint[uint64])
	c.Bool(&v.IfExists)
}

func compareKV(c *msgpack.Codec, v *catalog.CompareKV) {
	c.Record(2)
	c.String(&v.Key)
	c.Uint64(&v.Version)
}

func opKV(c *msgpack.Codec, v *catalog.OpKV) {
	c.Record(3)
	c.String(&v.Key)
	c.Blob(&v.Value)
	c.Bool(&v.Delete)
}

func txnKV(c *msgpack.Codec, v *catalog.TxnKV) {
	c.Record(2)
	list(c, &v.Compares, compareKV)
	list(c, &v.Ops, opKV)
}

func allocateIDs(c *msgpack.Codec, v *catalog.AllocateIDs) {
	c.Record(2)
	c.String(&v.Counter)
	c.Uint64(&v.Count)
}
