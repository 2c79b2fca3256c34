package fsm

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
	"github.com/stavedb/stave/snapshots"
)

func createDatabase(c *msgpack.Codec, v *catalog.CreateDatabase) {
	c.Record(4)
	c.String(&v.Name)
	c.String(&v.Comment)
	props(c, &v.Properties)
	c.Bool(&v.IfNotExists)
}

func alterDatabase(c *msgpack.Codec, v *catalog.AlterDatabase) {
	c.Record(6)
	c.String(&v.Name)
	opt(c, &v.Comment, text)
	props(c, &v.Set)
	texts(c, &v.Reset)
	c.Bool(&v.IfExists)
	opt(c, &v.ExpectedRevision, msgpack.Uint[catalog.Revision])
}

func dropDatabase(c *msgpack.Codec, v *catalog.DropDatabase) {
	c.Record(3)
	c.String(&v.Name)
	c.Bool(&v.Cascade)
	c.Bool(&v.IfExists)
}

func newColumn(c *msgpack.Codec, v *catalog.NewColumn) {
	c.Record(3)
	c.String(&v.Name)
	msgpack.Str(c, &v.Type)
	c.String(&v.Comment)
}

func createTable(c *msgpack.Codec, v *catalog.CreateTable) {
	c.Record(10)
	c.Repeated(&v.Table)
	c.String(&v.Comment)
	list(c, &v.Columns, newColumn)
	texts(c, &v.PrimaryKey)
	texts(c, &v.PartitionKeys)
	texts(c, &v.BucketKeys)
	opt(c, &v.Buckets, msgpack.Int[int32])
	props(c, &v.Properties)
	props(c, &v.CustomProperties)
	c.Bool(&v.IfNotExists)
}

func tableID(c *msgpack.Codec, v *catalog.Opt[catalog.TableID]) {
	opt(c, v, msgpack.Uint[catalog.TableID])
}

func alterTable(c *msgpack.Codec, v *catalog.AlterTable) {
	c.Record(8)
	c.Repeated(&v.Table)
	tableID(c, &v.TableID)
	list(c, &v.AddColumns, newColumn)
	props(c, &v.Set)
	texts(c, &v.Reset)
	opt(c, &v.Comment, text)
	c.Bool(&v.IfExists)
	opt(c, &v.ExpectedRevision, msgpack.Uint[catalog.Revision])
}

func rescaleTable(c *msgpack.Codec, v *catalog.RescaleTable) {
	c.Record(5)
	c.Repeated(&v.Table)
	tableID(c, &v.TableID)
	c.Int32(&v.Buckets)
	opt(c, &v.ExpectedEpoch, msgpack.Uint[catalog.Epoch])
	c.Bool(&v.Propagated)
}

func dropTable(c *msgpack.Codec, v *catalog.DropTable) {
	c.Record(3)
	c.Repeated(&v.Table)
	tableID(c, &v.TableID)
	c.Bool(&v.IfExists)
}

func partitionSpec(c *msgpack.Codec, v *catalog.PartitionSpec) {
	list(c, (*[]catalog.Property)(v), snapshots.PropertyV1)
}

func createPartitions(c *msgpack.Codec, v *catalog.CreatePartitions) {
	c.Record(6)
	c.Repeated(&v.Table)
	tableID(c, &v.TableID)
	list(c, &v.Specs, partitionSpec)
	c.Bool(&v.IfNotExists)
	list(c, &v.Assignment, snapshots.ServersV1)
	c.Bool(&v.Automatic)
}

func dropPartitions(c *msgpack.Codec, v *catalog.DropPartitions) {
	c.Record(5)
	c.Repeated(&v.Table)
	tableID(c, &v.TableID)
	list(c, &v.Specs, partitionSpec)
	list(c, &v.IDs, msgpack.Uint[catalog.PartitionID])
	c.Bool(&v.IfExists)
}

func importBatch(c *msgpack.Codec, v *catalog.ImportBatch) {
	c.Record(9)
	importID(c, &v.Import)
	c.Uint64(&v.Skip)
	c.Bool(&v.Last)
	opt(c, &v.Counters, importCounters)
	list(c, &v.Databases, snapshots.DatabaseV1)
	list(c, &v.Tables, importTable)
	list(c, &v.Partitions, importPartition)
	list(c, &v.KeyValues, importKeyValue)
	list(c, &v.IDCounters, importCounter)
}

func importID(c *msgpack.Codec, v *catalog.ImportID) {
	c.Record(2)
	incarnation(c, &v.Incarnation)
	msgpack.Uint(c, &v.Revision)
}

func importCounters(c *msgpack.Codec, v *catalog.ImportCounters) {
	c.Record(2)
	msgpack.Uint(c, &v.NextTable)
	msgpack.Uint(c, &v.NextPartition)
}

func importTable(c *msgpack.Codec, v *catalog.ImportTable) {
	c.Record(2)
	snapshots.TableV1(c, &v.Table)
	c.Bool(&v.Finished)
}

func importPartition(c *msgpack.Codec, v *catalog.ImportPartition) {
	c.Record(7)
	msgpack.Uint(c, &v.Table)
	msgpack.Uint(c, &v.ID)
	c.String(&v.Name)
	c.Int32(&v.Buckets)
	c.Bool(&v.Legacy)
	msgpack.Uint(c, &v.Epoch)
	msgpack.Int(c, &v.Created)
}

func importKeyValue(c *msgpack.Codec, v *catalog.ImportKeyValue) {
	c.Record(3)
	c.String(&v.Key)
	c.Blob(&v.Value)
	c.Uint64(&v.Version)
}

func importCounter(c *msgpack.Codec, v *catalog.ImportCounter) {
	c.Record(2)
	c.String(&v.Name)
	c.Uint64(&v.Next)
}
