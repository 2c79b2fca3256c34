package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// catalogService answers the calls on databases, tables and partitions.
type catalogService struct {
	pb.UnimplementedCatalogServer
	s *Server
}

// CreateDatabase implements pb.CatalogServer.
func (c *catalogService) CreateDatabase(ctx context.Context, r *pb.CreateDatabaseRequest) (*pb.DatabaseResponse, error) {
	return c.database(ctx, r, r.GetName())
}

// AlterDatabase implements pb.CatalogServer.
func (c *catalogService) AlterDatabase(ctx context.Context, r *pb.AlterDatabaseRequest) (*pb.DatabaseResponse, error) {
	return c.database(ctx, r, r.GetName())
}

func (c *catalogService) database(ctx context.Context, r api.Request, name string) (*pb.DatabaseResponse, error) {
	w, err := c.s.write(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &pb.DatabaseResponse{Header: w.header, Result: w.result}
	if d, ok := w.Database(name); ok {
		out.Database = api.DatabaseToProto(d)
	}
	return out, nil
}

// DropDatabase implements pb.CatalogServer.
func (c *catalogService) DropDatabase(ctx context.Context, r *pb.DropDatabaseRequest) (*pb.WriteResponse, error) {
	return c.s.plainWrite(ctx, r)
}

// GetDatabase implements pb.CatalogServer.
func (c *catalogService) GetDatabase(ctx context.Context, r *pb.GetDatabaseRequest) (*pb.DatabaseResponse, error) {
	return answer(ctx, c.s, r, checkDatabase, getDatabase)
}

func checkDatabase(r *pb.GetDatabaseRequest) error { return catalog.CheckDatabaseName(r.GetName()) }

func getDatabase(v view, r *pb.GetDatabaseRequest) (*pb.DatabaseResponse, error) {
	if err := checkDatabase(r); err != nil {
		return nil, err
	}
	d, err := findDatabase(v.State, r.GetName())
	if err != nil {
		return nil, err
	}
	return &pb.DatabaseResponse{Header: v.header, Database: api.DatabaseToProto(d)}, nil
}

func findDatabase(st *catalog.State, name string) (*catalog.Database, error) {
	d, ok := st.Database(name)
	if !ok {
		return nil, refuse(catalog.ErrDatabaseNotExist, "database %s does not exist", name)
	}
	return d, nil
}

// ListDatabases implements pb.CatalogServer.
func (c *catalogService) ListDatabases(r *pb.ListDatabasesRequest, out grpc.ServerStreamingServer[pb.ListDatabasesResponse]) error {
	v, err := c.s.open(out.Context(), r.GetConsistency())
	if err != nil {
		return err
	}
	list := chunks[*pb.Database]{send: func(rows []*pb.Database) error {
		return out.Send(&pb.ListDatabasesResponse{Header: v.header, Databases: rows})
	}}
	v.Databases(func(d *catalog.Database) bool { return list.add(api.DatabaseToProto(d)) })
	return list.end()
}
