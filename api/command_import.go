package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func importFrom(r *pb.ImportRequest) catalog.Command {
	out := catalog.ImportBatch{
		Import: importIDFromProto(r.GetImport()), Skip: r.GetSkip(), Last: r.GetLast(),
		Tables:     each(r.GetTables(), ImportTableFromProto),
		Databases:  each(r.GetDatabases(), func(d *pb.Database) catalog.Database { return *DatabaseFromProto(d) }),
		Partitions: each(r.GetPartitions(), ImportPartitionFromProto),
		KeyValues:  each(r.GetKeyValues(), ImportKeyValueFromProto),
		IDCounters: each(r.GetIdCounters(), ImportCounterFromProto),
	}
	if r.Counters != nil {
		out.Counters = catalog.Some(importCountersFrom(r.Counters))
	}
	return out
}

func importTo(c catalog.ImportBatch, client *pb.ClientRef) *pb.ImportRequest {
	out := &pb.ImportRequest{
		Client: client, Import: importIDToProto(c.Import), Skip: c.Skip, Last: c.Last,
		Databases:  each(c.Databases, func(d catalog.Database) *pb.Database { return DatabaseToProto(&d) }),
		Tables:     each(c.Tables, ImportTableToProto),
		Partitions: each(c.Partitions, ImportPartitionToProto),
		KeyValues:  each(c.KeyValues, ImportKeyValueToProto),
		IdCounters: each(c.IDCounters, ImportCounterToProto),
	}
	if c.Counters.Set {
		out.Counters = importCountersTo(c.Counters.V)
	}
	return out
}

func importCountersFrom(p *pb.ImportCounters) catalog.ImportCounters {
	return catalog.ImportCounters{NextTable: catalog.TableID(p.GetNextTableId()), NextPartition: catalog.PartitionID(p.GetNextPartitionId())}
}

func importCountersTo(c catalog.ImportCounters) *pb.ImportCounters {
	return &pb.ImportCounters{NextTableId: uint64(c.NextTable), NextPartitionId: uint64(c.NextPartition)}
}

// ImportTableToProto converts a table row of an export.
func ImportTableToProto(t catalog.ImportTable) *pb.ImportTable {
	return &pb.ImportTable{Table: TableToProto(&t.Table), Finished: t.Finished}
}

// ImportTableFromProto converts a table row of an export. A row without a schema
// is left to the catalog, which refuses it.
func ImportTableFromProto(p *pb.ImportTable) catalog.ImportTable {
	return catalog.ImportTable{Table: *tableFrom(p.GetTable()), Finished: p.GetFinished()}
}

// ImportPartitionToProto converts a partition row of an export.
func ImportPartitionToProto(r catalog.ImportPartition) *pb.ImportPartition {
	return &pb.ImportPartition{
		TableId: uint64(r.Table), PartitionId: uint64(r.ID), Name: r.Name, BucketCount: r.Buckets, Legacy: r.Legacy,
		LayoutEpoch: uint64(r.Epoch), CreatedMs: int64(r.Created),
	}
}

// ImportPartitionFromProto converts a partition row of an export.
func ImportPartitionFromProto(p *pb.ImportPartition) catalog.ImportPartition {
	return catalog.ImportPartition{
		Table: catalog.TableID(p.GetTableId()), ID: catalog.PartitionID(p.GetPartitionId()), Name: p.GetName(), Buckets: p.GetBucketCount(),
		Legacy: p.GetLegacy(), Epoch: catalog.Epoch(p.GetLayoutEpoch()), Created: catalog.Millis(p.GetCreatedMs()),
	}
}

// ImportKeyValueToProto converts a key-value row of an export.
func ImportKeyValueToProto(r catalog.ImportKeyValue) *pb.ImportKeyValue {
	return &pb.ImportKeyValue{Key: r.Key, Value: copyBytes(r.Value), Version: r.Version}
}

// ImportKeyValueFromProto converts a key-value row of an export.
func ImportKeyValueFromProto(p *pb.ImportKeyValue) catalog.ImportKeyValue {
	return catalog.ImportKeyValue{Key: p.GetKey(), Value: copyBytes(p.GetValue()), Version: p.GetVersion()}
}

// ImportCounterToProto converts a counter of an export.
func ImportCounterToProto(r catalog.ImportCounter) *pb.ImportCounter {
	return &pb.ImportCounter{Name: r.Name, Next: r.Next}
}

// ImportCounterFromProto converts a counter of an export.
func ImportCounterFromProto(p *pb.ImportCounter) catalog.ImportCounter {
	return catalog.ImportCounter{Name: p.GetName(), Next: p.GetNext()}
}
