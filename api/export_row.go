package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// ExportFormat is the format of export lines that this build writes and reads.
const ExportFormat = 1

// ExportCluster is the first row of an export: where it comes from.
type ExportCluster struct {
	Format      uint32
	Incarnation catalog.Incarnation
	Revision    catalog.Revision
	Counters    catalog.ImportCounters
}

// ID returns the id of an import of this export.
func (c ExportCluster) ID() catalog.ImportID {
	return catalog.ImportID{Incarnation: c.Incarnation, Revision: c.Revision}
}

// ExportRow is one row of an export. Exactly one field is set.
//
// Lossless for what an import takes: revisions, placements and marks of a
// running import or drop belong to the source and are left out.
type ExportRow struct {
	Cluster   *ExportCluster
	Database  *catalog.Database
	Table     *catalog.ImportTable
	Partition *catalog.ImportPartition
	KeyValue  *catalog.ImportKeyValue
	Counter   *catalog.ImportCounter
}

// Kind returns the kind as written in a line; "" if no field is set.
func (r ExportRow) Kind() string {
	switch {
	case r.Cluster != nil:
		return "cluster"
	case r.Database != nil:
		return "database"
	case r.Table != nil:
		return "table"
	case r.Partition != nil:
		return "partition"
	case r.KeyValue != nil:
		return "kv"
	case r.Counter != nil:
		return "counter"
	}
	return ""
}

// AddTo appends the row to an import batch; the cluster's row sets the id and the
// counters.
func (r ExportRow) AddTo(b *catalog.ImportBatch) {
	switch {
	case r.Cluster != nil:
		b.Import, b.Counters = r.Cluster.ID(), catalog.Some(r.Cluster.Counters)
	case r.Database != nil:
		b.Databases = append(b.Databases, *r.Database)
	case r.Table != nil:
		b.Tables = append(b.Tables, *r.Table)
	case r.Partition != nil:
		b.Partitions = append(b.Partitions, *r.Partition)
	case r.KeyValue != nil:
		b.KeyValues = append(b.KeyValues, *r.KeyValue)
	case r.Counter != nil:
		b.IDCounters = append(b.IDCounters, *r.Counter)
	}
}

// ExportRowToProto converts a row.
func ExportRowToProto(r ExportRow) *pb.ExportRow {
	switch {
	case r.Cluster != nil:
		return &pb.ExportRow{Row: &pb.ExportRow_Cluster{Cluster: &pb.ExportCluster{
			Format: r.Cluster.Format, Incarnation: IncarnationToProto(r.Cluster.Incarnation), Revision: uint64(r.Cluster.Revision),
			Counters: importCountersTo(r.Cluster.Counters),
		}}}
	case r.Database != nil:
		return &pb.ExportRow{Row: &pb.ExportRow_Database{Database: DatabaseToProto(r.Database)}}
	case r.Table != nil:
		return &pb.ExportRow{Row: &pb.ExportRow_Table{Table: ImportTableToProto(*r.Table)}}
	case r.Partition != nil:
		return &pb.ExportRow{Row: &pb.ExportRow_Partition{Partition: ImportPartitionToProto(*r.Partition)}}
	case r.KeyValue != nil:
		return &pb.ExportRow{Row: &pb.ExportRow_KeyValue{KeyValue: ImportKeyValueToProto(*r.KeyValue)}}
	case r.Counter != nil:
		return &pb.ExportRow{Row: &pb.ExportRow_Counter{Counter: ImportCounterToProto(*r.Counter)}}
	}
	return &pb.ExportRow{}
}

// ExportRowFromProto checks and converts a row; an unset one is refused.
func ExportRowFromProto(p *pb.ExportRow) (ExportRow, error) {
	switch r := p.GetRow().(type) {
	case *pb.ExportRow_Cluster:
		return ExportRow{Cluster: &ExportCluster{
			Format: r.Cluster.GetFormat(), Incarnation: IncarnationFromProto(r.Cluster.GetIncarnation()),
			Revision: catalog.Revision(r.Cluster.GetRevision()), Counters: importCountersFrom(r.Cluster.GetCounters()),
		}}, nil
	case *pb.ExportRow_Database:
		return ExportRow{Database: DatabaseFromProto(r.Database)}, nil
	case *pb.ExportRow_Table:
		t := ImportTableFromProto(r.Table)
		return ExportRow{Table: &t}, nil
	case *pb.ExportRow_Partition:
		v := ImportPartitionFromProto(r.Partition)
		return ExportRow{Partition: &v}, nil
	case *pb.ExportRow_KeyValue:
		v := ImportKeyValueFromProto(r.KeyValue)
		return ExportRow{KeyValue: &v}, nil
	case *pb.ExportRow_Counter:
		v := ImportCounterFromProto(r.Counter)
		return ExportRow{Counter: &v}, nil
	}
	return ExportRow{}, invalid("export row", "not set", "one of the known rows")
}
