package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// catalogCommand converts the messages of databases, tables and partitions; nil
// for others.
func catalogCommand(req Request) (catalog.Command, error) {
	switch r := req.(type) {
	case *pb.CreateDatabaseRequest:
		return catalog.CreateDatabase{
			Name: r.GetName(), Comment: r.GetComment(), Properties: propertiesFromProto(r.GetProperties()), IfNotExists: r.GetIfNotExists(),
		}, nil
	case *pb.AlterDatabaseRequest:
		return catalog.AlterDatabase{
			Name: r.GetName(), Comment: textFrom(r.Comment), Set: propertiesFromProto(r.GetSet()), Reset: copyTexts(r.GetReset_()),
			IfExists: r.GetIfExists(), ExpectedRevision: optFrom[catalog.Revision](r.ExpectedRevision),
		}, nil
	case *pb.DropDatabaseRequest:
		return catalog.DropDatabase{Name: r.GetName(), Cascade: r.GetCascade(), IfExists: r.GetIfExists()}, nil
	case *pb.CreateTableRequest:
		return createTableFrom(r), nil
	case *pb.AlterTableRequest:
		return catalog.AlterTable{
			Table: r.GetTable(), TableID: optFrom[catalog.TableID](r.TableId), AddColumns: each(r.GetAddColumns(), newColumnFrom),
			Set: propertiesFromProto(r.GetSet()), Reset: copyTexts(r.GetReset_()), Comment: textFrom(r.Comment),
			IfExists: r.GetIfExists(), ExpectedRevision: optFrom[catalog.Revision](r.ExpectedRevision),
		}, nil
	case *pb.RescaleTableRequest:
		return catalog.RescaleTable{
			Table: r.GetTable(), TableID: optFrom[catalog.TableID](r.TableId), Buckets: r.GetBuckets(),
			ExpectedEpoch: optFrom[catalog.Epoch](r.ExpectedEpoch), Propagated: r.GetPropagated(),
		}, nil
	case *pb.DropTableRequest:
		return catalog.DropTable{Table: r.GetTable(), TableID: optFrom[catalog.TableID](r.TableId), IfExists: r.GetIfExists()}, nil
	case *pb.CreatePartitionsRequest:
		return catalog.CreatePartitions{
			Table: r.GetTable(), TableID: optFrom[catalog.TableID](r.TableId), Specs: each(r.GetSpecs(), specFrom), IfNotExists: r.GetIfNotExists(),
			Assignment: each(r.GetAssignment(), replicasFrom), Automatic: r.GetAutomatic(),
		}, nil
	case *pb.DropPartitionsRequest:
		return catalog.DropPartitions{
			Table: r.GetTable(), TableID: optFrom[catalog.TableID](r.TableId), Specs: each(r.GetSpecs(), specFrom),
			IDs: numbers[catalog.PartitionID](r.GetPartitionIds()), IfExists: r.GetIfExists(),
		}, nil
	case *pb.ImportRequest:
		return importFrom(r), nil
	}
	return nil, nil //nolint:nilnil // another group's message
}

func createTableFrom(r *pb.CreateTableRequest) catalog.CreateTable {
	return catalog.CreateTable{
		Table: r.GetTable(), Comment: r.GetComment(), Columns: each(r.GetColumns(), newColumnFrom),
		PrimaryKey: copyTexts(r.GetPrimaryKey()), PartitionKeys: copyTexts(r.GetPartitionKeys()), BucketKeys: copyTexts(r.GetBucketKeys()),
		Buckets: optFrom[int32](r.Buckets), Properties: propertiesFromProto(r.GetProperties()),
		CustomProperties: propertiesFromProto(r.GetCustomProperties()), IfNotExists: r.GetIfNotExists(),
	}
}

func newColumnFrom(c *pb.NewColumn) catalog.NewColumn {
	return catalog.NewColumn{Name: c.GetName(), Type: catalog.DataType(c.GetType()), Comment: c.GetComment()}
}

func newColumnTo(c catalog.NewColumn) *pb.NewColumn {
	return &pb.NewColumn{Name: c.Name, Type: string(c.Type), Comment: c.Comment}
}

func specFrom(p *pb.PartitionSpec) catalog.PartitionSpec { return propertiesFromProto(p.GetValues()) }

func specTo(s catalog.PartitionSpec) *pb.PartitionSpec {
	return &pb.PartitionSpec{Values: propertiesToProto(s)}
}

// SpecFromProto converts a partition spec.
func SpecFromProto(p *pb.PartitionSpec) catalog.PartitionSpec { return specFrom(p) }

// SpecToProto converts a partition spec.
func SpecToProto(s catalog.PartitionSpec) *pb.PartitionSpec { return specTo(s) }

func replicasFrom(b *pb.BucketReplicas) []catalog.ServerID {
	return numbers[catalog.ServerID](b.GetServers())
}

func replicasTo(r []catalog.ServerID) *pb.BucketReplicas {
	return &pb.BucketReplicas{Servers: numbers[int32](r)}
}

// catalogRequest converts the commands of databases, tables and partitions; nil
// for others.
func catalogRequest(cmd catalog.Command, client *pb.ClientRef) (Request, error) {
	switch c := cmd.(type) {
	case catalog.CreateDatabase:
		return &pb.CreateDatabaseRequest{
			Client: client, Name: c.Name, Comment: c.Comment, Properties: propertiesToProto(c.Properties), IfNotExists: c.IfNotExists,
		}, nil
	case catalog.AlterDatabase:
		return &pb.AlterDatabaseRequest{
			Client: client, Name: c.Name, Comment: textTo(c.Comment), Set: propertiesToProto(c.Set), Reset_: copyTexts(c.Reset),
			IfExists: c.IfExists, ExpectedRevision: optTo[uint64](c.ExpectedRevision),
		}, nil
	case catalog.DropDatabase:
		return &pb.DropDatabaseRequest{Client: client, Name: c.Name, Cascade: c.Cascade, IfExists: c.IfExists}, nil
	case catalog.CreateTable:
		return &pb.CreateTableRequest{
			Client: client, Table: c.Table, Comment: c.Comment, Columns: each(c.Columns, newColumnTo),
			PrimaryKey: copyTexts(c.PrimaryKey), PartitionKeys: copyTexts(c.PartitionKeys), BucketKeys: copyTexts(c.BucketKeys),
			Buckets: optTo[int32](c.Buckets), Properties: propertiesToProto(c.Properties),
			CustomProperties: propertiesToProto(c.CustomProperties), IfNotExists: c.IfNotExists,
		}, nil
	case catalog.AlterTable:
		return &pb.AlterTableRequest{
			Client: client, Table: c.Table, TableId: optTo[uint64](c.TableID), AddColumns: each(c.AddColumns, newColumnTo),
			Set: propertiesToProto(c.Set), Reset_: copyTexts(c.Reset), Comment: textTo(c.Comment), IfExists: c.IfExists,
			ExpectedRevision: optTo[uint64](c.ExpectedRevision),
		}, nil
	case catalog.RescaleTable:
		return &pb.RescaleTableRequest{
			Client: client, Table: c.Table, TableId: optTo[uint64](c.TableID), Buckets: c.Buckets,
			ExpectedEpoch: optTo[uint64](c.ExpectedEpoch), Propagated: c.Propagated,
		}, nil
	case catalog.DropTable:
		return &pb.DropTableRequest{Client: client, Table: c.Table, TableId: optTo[uint64](c.TableID), IfExists: c.IfExists}, nil
	case catalog.CreatePartitions:
		return &pb.CreatePartitionsRequest{
			Client: client, Table: c.Table, TableId: optTo[uint64](c.TableID), Specs: each(c.Specs, specTo), IfNotExists: c.IfNotExists,
			Assignment: each(c.Assignment, replicasTo), Automatic: c.Automatic,
		}, nil
	case catalog.DropPartitions:
		return &pb.DropPartitionsRequest{
			Client: client, Table: c.Table, TableId: optTo[uint64](c.TableID), Specs: each(c.Specs, specTo),
			PartitionIds: numbers[uint64](c.IDs), IfExists: c.IfExists,
		}, nil
	case catalog.ImportBatch:
		return importTo(c, client), nil
	}
	return nil, nil //nolint:nilnil // another group's command
}
