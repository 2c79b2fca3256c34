package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// CreateTable implements pb.CatalogServer.
func (c *catalogService) CreateTable(ctx context.Context, r *pb.CreateTableRequest) (*pb.TableResponse, error) {
	return c.table(ctx, r, r.GetTable(), nil)
}

// AlterTable implements pb.CatalogServer.
func (c *catalogService) AlterTable(ctx context.Context, r *pb.AlterTableRequest) (*pb.TableResponse, error) {
	return c.table(ctx, r, r.GetTable(), r.TableId)
}

// RescaleTable implements pb.CatalogServer.
func (c *catalogService) RescaleTable(ctx context.Context, r *pb.RescaleTableRequest) (*pb.TableResponse, error) {
	return c.table(ctx, r, r.GetTable(), r.TableId)
}

// table answers a write with the table it was about: the one whose id the
// result or the caller names, so that a table made anew at its path is never
// taken for it.
func (c *catalogService) table(ctx context.Context, r api.Request, path string, id *uint64) (*pb.TableResponse, error) {
	w, err := c.s.write(ctx, r)
	if err != nil {
		return nil, err
	}
	if first, ok := w.firstID(); ok {
		id = &first
	}
	out := &pb.TableResponse{Header: w.header, Result: w.result}
	if t, err := findTable(w.State, path, id); err == nil {
		out.Table = api.TableToProto(t)
	}
	return out, nil
}

// DropTable implements pb.CatalogServer.
func (c *catalogService) DropTable(ctx context.Context, r *pb.DropTableRequest) (*pb.WriteResponse, error) {
	return c.s.plainWrite(ctx, r)
}

// GetTable implements pb.CatalogServer.
func (c *catalogService) GetTable(ctx context.Context, r *pb.GetTableRequest) (*pb.TableResponse, error) {
	return answer(ctx, c.s, r, func(r *pb.GetTableRequest) error { return checkTable(r.GetTable(), r.TableId) }, getTable)
}

func getTable(v view, r *pb.GetTableRequest) (*pb.TableResponse, error) {
	t, err := findTable(v.State, r.GetTable(), r.TableId)
	if err != nil {
		return nil, err
	}
	return &pb.TableResponse{Header: v.header, Table: api.TableToProto(t)}, nil
}

// ListTables implements pb.CatalogServer.
func (c *catalogService) ListTables(r *pb.ListTablesRequest, out grpc.ServerStreamingServer[pb.ListTablesResponse]) error {
	name := r.GetDatabase()
	if name != "" {
		if err := catalog.CheckDatabaseName(name); err != nil {
			return err
		}
	}
	v, err := c.s.open(out.Context(), r.GetConsistency())
	if err != nil {
		return err
	}
	if name != "" {
		if _, err := findDatabase(v.State, name); err != nil {
			return err
		}
	}
	list := chunks[*pb.Table]{send: func(rows []*pb.Table) error {
		return out.Send(&pb.ListTablesResponse{Header: v.header, Tables: rows})
	}}
	v.Tables(r.GetDatabase(), func(t *catalog.Table) bool { return list.add(api.TableToProto(t)) })
	return list.end()
}

// withoutHistory is a table's message for answers about its partitions: the
// layout history of a table that was rescaled a thousand times would be most of
// it.
func withoutHistory(t *catalog.Table) *pb.Table {
	short := *t
	short.History = nil
	return api.TableToProto(&short)
}
