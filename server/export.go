package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Import implements pb.CatalogServer.
func (c *catalogService) Import(ctx context.Context, r *pb.ImportRequest) (*pb.WriteResponse, error) {
	return c.s.plainWrite(ctx, r)
}

// Export implements pb.CatalogServer.
func (c *catalogService) Export(r *pb.ExportRequest, out grpc.ServerStreamingServer[pb.ExportResponse]) error {
	v, err := c.s.open(out.Context(), r.GetConsistency())
	if err != nil {
		return err
	}
	list := chunks[*pb.ExportRow]{send: func(rows []*pb.ExportRow) error {
		return out.Send(&pb.ExportResponse{Header: v.header, Rows: rows})
	}}
	exportRows(v.State, func(r api.ExportRow) bool { return list.add(api.ExportRowToProto(r)) })
	return list.end()
}

// exportRows calls f with the rows of a state in the order an import takes
// them, until it says false.
func exportRows(st *catalog.State, f func(api.ExportRow) bool) {
	c := st.Cluster()
	more := f(api.ExportRow{Cluster: &api.ExportCluster{
		Format: api.ExportFormat, Incarnation: c.Incarnation, Revision: st.Revision(),
		Counters: catalog.ImportCounters{NextTable: c.NextTable, NextPartition: c.NextPartition},
	}})
	each := func(r api.ExportRow) bool {
		more = more && f(r)
		return more
	}
	st.Databases(func(d *catalog.Database) bool { return each(api.ExportRow{Database: d}) })
	st.Tables("", func(t *catalog.Table) bool { return each(api.ExportRow{Table: exportedTable(st, t)}) })
	st.Tables("", func(t *catalog.Table) bool {
		st.Partitions(t.ID, "", func(p *catalog.Partition) bool { return each(api.ExportRow{Partition: exportedPartition(p)}) })
		return more
	})
	st.KeyValues("", func(k *catalog.KeyValue) bool {
		return each(api.ExportRow{KeyValue: &catalog.ImportKeyValue{Key: k.Key, Value: k.Value, Version: k.Version}})
	})
	st.Counters(func(n *catalog.Counter) bool {
		return each(api.ExportRow{Counter: &catalog.ImportCounter{Name: n.Name, Next: n.Next}})
	})
}

// exportedTable leaves out what belongs to this cluster: where the buckets are,
// and a running import.
func exportedTable(st *catalog.State, t *catalog.Table) *catalog.ImportTable {
	row := *t
	row.Placement, row.Import = nil, catalog.ImportID{}
	return &catalog.ImportTable{Table: row, Finished: st.PartitionCount(t.ID) == 0}
}

func exportedPartition(p *catalog.Partition) *catalog.ImportPartition {
	return &catalog.ImportPartition{
		Table: p.Table, ID: p.ID, Name: p.Name, Buckets: p.Buckets, Legacy: p.Legacy, Epoch: p.Epoch, Created: p.Created,
	}
}
