package snapshots

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// Tags of rows, in the order in which rows come; a table is followed by its
// partitions and a client by its results. Frozen: snapshot format v1.
const (
	tagCluster   = 0x01
	tagDatabase  = 0x02
	tagTable     = 0x03
	tagPartition = 0x04
	tagServer    = 0x05
	tagMember    = 0x06
	tagKeyValue  = 0x07
	tagCounter   = 0x08
	tagImport    = 0x09
	tagDropped   = 0x0a
	tagRebalance = 0x0b
	tagClient    = 0x0c
	tagResult    = 0x0d
	tagEvent     = 0x0e
)

// maxList bounds every list; what is really there bounds it further.
const maxList = 1 << 26

func incarnation(c *msgpack.Codec, i *catalog.Incarnation) {
	c.Record(2)
	c.Uint64(&i.Number)
	c.Uint64(&i.Random)
}

func importID(c *msgpack.Codec, i *catalog.ImportID) {
	c.Record(2)
	incarnation(c, &i.Incarnation)
	msgpack.Uint(c, &i.Revision)
}

func limits(c *msgpack.Codec, l *catalog.Limits) {
	c.Record(3)
	c.Uint32(&l.Buckets)
	c.Uint32(&l.Partitions)
	c.Uint32(&l.Replicas)
}

// PropertyV1 states the fields of a property. Frozen: log format v1, snapshot
// format v1, as are the other functions whose name ends in V1.
func PropertyV1(c *msgpack.Codec, p *catalog.Property) {
	c.Record(2)
	c.Repeated(&p.Key)
	c.String(&p.Value)
}

func text(c *msgpack.Codec, s *string) { c.String(s) }

func texts(c *msgpack.Codec, v *[]string) { msgpack.Slice(c, v, maxList, text) }

func props(c *msgpack.Codec, v *[]catalog.Property) { msgpack.Slice(c, v, maxList, PropertyV1) }

func opt[T any](c *msgpack.Codec, o *catalog.Opt[T], each func(*msgpack.Codec, *T)) {
	msgpack.Optional(c, &o.Set, &o.V, each)
}

func cluster(c *msgpack.Codec, r *catalog.Cluster) {
	c.Record(12)
	c.String(&r.ID)
	incarnation(c, &r.Incarnation)
	c.Uint64(&r.Term)
	msgpack.Int(c, &r.Coordinator)
	c.String(&r.Leader)
	msgpack.Uint(c, &r.Level)
	limits(c, &r.Limits)
	msgpack.Int(c, &r.Lease)
	msgpack.Int(c, &r.Wall)
	msgpack.Uint(c, &r.NextTable)
	msgpack.Uint(c, &r.NextPartition)
	msgpack.Uint(c, &r.NextClient)
}

// DatabaseV1 states the fields of a database row.
func DatabaseV1(c *msgpack.Codec, d *catalog.Database) {
	c.Record(8)
	c.String(&d.Name)
	c.String(&d.Comment)
	props(c, &d.Properties)
	msgpack.Int(c, &d.Created)
	msgpack.Int(c, &d.Wall)
	msgpack.Uint(c, &d.CreatedAt)
	msgpack.Uint(c, &d.Revision)
	limits(c, &d.Limits)
}

func column(c *msgpack.Codec, v *catalog.Column) {
	c.Record(4)
	msgpack.Uint(c, &v.ID)
	c.String(&v.Name)
	msgpack.Str(c, &v.Type)
	c.String(&v.Comment)
}

func schema(c *msgpack.Codec, v *catalog.Schema) {
	c.Record(2)
	msgpack.Uint(c, &v.ID)
	msgpack.Slice(c, &v.Columns, maxList, column)
}

func layoutEntry(c *msgpack.Codec, v *catalog.LayoutEntry) {
	c.Record(4)
	msgpack.Uint(c, &v.Epoch)
	c.Int32(&v.Buckets)
	msgpack.Uint(c, &v.Revision)
	msgpack.Int(c, &v.Wall)
}

// TableV1 states the fields of a table row, its placement included.
func TableV1(c *msgpack.Codec, t *catalog.Table) {
	c.Record(22)
	msgpack.Uint(c, &t.ID)
	c.String(&t.Path)
	c.String(&t.Comment)
	msgpack.Slice(c, &t.Schemas, maxList, schema)
	msgpack.Uint(c, &t.NextColumn)
	texts(c, &t.PrimaryKey)
	texts(c, &t.PartitionKeys)
	texts(c, &t.BucketKeys)
	c.Int32(&t.Buckets)
	msgpack.Uint(c, &t.Epoch)
	opt(c, &t.LegacyCount, msgpack.Int[int32])
	msgpack.Slice(c, &t.History, maxList, layoutEntry)
	c.Int32(&t.Replication)
	props(c, &t.Properties)
	props(c, &t.CustomProperties)
	importID(c, &t.Import)
	c.Bool(&t.Dropped)
	msgpack.Int(c, &t.Created)
	msgpack.Int(c, &t.Wall)
	msgpack.Uint(c, &t.CreatedAt)
	msgpack.Uint(c, &t.Revision)
	placement(c, &t.Placement)
}

func partition(c *msgpack.Codec, p *catalog.Partition) {
	c.Record(11)
	msgpack.Uint(c, &p.ID)
	msgpack.Uint(c, &p.Table)
	c.String(&p.Name)
	c.Int32(&p.Buckets)
	c.Bool(&p.Legacy)
	c.Bool(&p.Imported)
	msgpack.Uint(c, &p.Epoch)
	msgpack.Int(c, &p.Created)
	msgpack.Uint(c, &p.CreatedAt)
	msgpack.Uint(c, &p.Revision)
	placement(c, &p.Placement)
}

func server(c *msgpack.Codec, v *catalog.Server) {
	c.Record(13)
	msgpack.Int(c, &v.ID)
	msgpack.Uint(c, &v.Incarnation)
	c.String(&v.DirectoryID)
	texts(c, &v.Listeners)
	c.String(&v.Rack)
	msgpack.Int(c, &v.TTL)
	msgpack.Int(c, &v.Renewed)
	msgpack.Uint(c, &v.RenewedAt)
	c.Bool(&v.Live)
	c.Bool(&v.ShuttingDown)
	msgpack.Uint(c, &v.Tag)
	msgpack.Int(c, &v.Registered)
	msgpack.Uint(c, &v.Revision)
}

func member(c *msgpack.Codec, m *catalog.Member) {
	c.Record(8)
	c.String(&m.NodeID)
	c.String(&m.DirectoryID)
	c.String(&m.RaftAddr)
	c.String(&m.APIAddr)
	c.String(&m.HTTPAddr)
	msgpack.Uint(c, &m.Level)
	c.String(&m.Build)
	msgpack.Uint(c, &m.Revision)
}

func keyValue(c *msgpack.Codec, v *catalog.KeyValue) {
	c.Record(6)
	c.String(&v.Key)
	c.Blob(&v.Value)
	c.Uint64(&v.Version)
	msgpack.Uint(c, &v.CreatedAt)
	msgpack.Uint(c, &v.Revision)
	msgpack.Int(c, &v.Wall)
}

func counter(c *msgpack.Codec, v *catalog.Counter) {
	c.Record(3)
	c.String(&v.Name)
	c.Uint64(&v.Next)
	msgpack.Uint(c, &v.Revision)
}

func importRow(c *msgpack.Codec, i *catalog.Import) {
	c.Record(6)
	importID(c, &i.ID)
	c.Uint64(&i.Rows)
	msgpack.Uint(c, &i.BaseTable)
	msgpack.Uint(c, &i.BasePartition)
	msgpack.Slice(c, &i.Tables, maxList, msgpack.Uint[catalog.TableID])
	msgpack.Uint(c, &i.Revision)
}

func pending(c *msgpack.Codec, p *catalog.PendingDeletion) {
	c.Record(2)
	msgpack.Int(c, &p.Server)
	c.Uint8(&p.Tries)
}

func dropped(c *msgpack.Codec, d *catalog.DroppedObject) {
	c.Record(10)
	msgpack.Uint(c, &d.Table)
	opt(c, &d.Partition, msgpack.Uint[catalog.PartitionID])
	opt(c, &d.Bucket, msgpack.Int[catalog.BucketID])
	c.String(&d.Path)
	c.String(&d.Name)
	c.Int32(&d.Buckets)
	msgpack.Uint(c, &d.Epoch)
	msgpack.Int(c, &d.Dropped)
	msgpack.Uint(c, &d.Revision)
	msgpack.Slice(c, &d.Pending, maxList, pending)
}

func rebalance(c *msgpack.Codec, r *catalog.Rebalance) {
	c.Record(6)
	c.String(&r.ID)
	msgpack.Uint(c, &r.Status)
	msgpack.Slice(c, &r.Moves, maxList, MoveV1)
	c.Uint32(&r.InFlight)
	msgpack.Int(c, &r.Started)
	msgpack.Uint(c, &r.Revision)
}

func client(c *msgpack.Codec, v *catalog.Client) {
	c.Record(6)
	msgpack.Uint(c, &v.ID)
	c.Uint64(&v.Watermark)
	msgpack.Int(c, &v.Active)
	msgpack.Uint(c, &v.ActiveAt)
	c.String(&v.Name)
	msgpack.Int(c, &v.TTL)
}

func idRange(c *msgpack.Codec, r *catalog.IDRange) {
	c.Record(2)
	c.Uint64(&r.First)
	c.Uint64(&r.Count)
}

// storedResult is one result of a client.
type storedResult struct {
	client   catalog.ClientID
	sequence uint64
	result   catalog.Result
}

func result(c *msgpack.Codec, v *storedResult) {
	c.Record(3)
	msgpack.Uint(c, &v.client)
	c.Uint64(&v.sequence)
	ResultV1(c, &v.result)
}

// ResultV1 is the result of a command. It is also what a leader answers to the
// node that handed a command on.
func ResultV1(c *msgpack.Codec, r *catalog.Result) {
	c.Record(13)
	msgpack.Int(c, &r.Code)
	c.String(&r.Message)
	msgpack.Uint(c, &r.Revision)
	c.Bool(&r.Changed)
	msgpack.Slice(c, &r.IDs, maxList, idRange)
	c.Int32(&r.Count)
	c.Uint64(&r.Epoch)
	c.Uint64(&r.Version)
	c.Uint64(&r.Current)
	c.Uint64(&r.Limit)
	c.Uint64(&r.Size)
	c.Bool(&r.More)
	msgpack.Slice(c, &r.Buckets, maxList, msgpack.Int[catalog.Code])
}
