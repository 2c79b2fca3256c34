package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// errDown is a node that does not answer.
var errDown = status.Error(codes.Unavailable, "the node is down")

func (n *fakeNode) GetTable(_ context.Context, r *pb.GetTableRequest) (*pb.TableResponse, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, r); err != nil {
			return nil, wireError(err)
		}
	}
	t, ok := f.state.Table(r.GetTable())
	if !ok {
		return nil, wireError(&catalog.Error{Code: catalog.ErrTableNotExist, Message: "no such table"})
	}
	return &pb.TableResponse{Header: f.header(), Table: api.TableToProto(t)}, nil
}

// do applies a command, which may be refused.
func (f *fake) do(cmd catalog.Command) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.apply(api.Ref{}, cmd)
	return r.Err()
}

func (f *fake) must(cmds ...catalog.Command) {
	f.t.Helper()
	for _, cmd := range cmds {
		if err := f.do(cmd); err != nil {
			f.t.Fatalf("%s: %v", cmd.Kind(), err)
		}
	}
}

func createOrders(buckets int32) catalog.CreateTable {
	return catalog.CreateTable{
		Table: orders, Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: catalog.Some(buckets),
	}
}

// keyed makes the table whose rows go by their key.
func (f *fake) keyed(buckets int32) *fake {
	f.t.Helper()
	f.must(catalog.CreateDatabase{Name: "shop", IfNotExists: true}, createOrders(buckets))
	return f
}

func specs(names ...string) (out []catalog.PartitionSpec) {
	for _, n := range names {
		out = append(out, catalog.PartitionSpec{{Key: "dt", Value: n}})
	}
	return out
}

func createDTs(names ...string) catalog.CreatePartitions {
	return catalog.CreatePartitions{Table: orders, Specs: specs(names...)}
}

func dropDTs(names ...string) catalog.DropPartitions {
	return catalog.DropPartitions{Table: orders, Specs: specs(names...)}
}

func rescaleTo(n int32) catalog.RescaleTable { return catalog.RescaleTable{Table: orders, Buckets: n} }

func rowOf(a int32, dt string) []routing.Value {
	return []routing.Value{routing.Int(a), routing.String(dt)}
}

// traffic counts metadata calls and creations.
type traffic struct{ layouts, creations atomic.Int64 }

func (f *fake) traffic() *traffic {
	var n traffic
	f.hook(func(_ *fakeNode, req any) error {
		switch req.(type) {
		case *pb.GetLayoutRequest:
			n.layouts.Add(1)
		case *pb.CreatePartitionsRequest:
			n.creations.Add(1)
		}
		return nil
	}, nil)
	return &n
}

func openRouter(t testing.TB, c *Client, o RouterOptions) *Router {
	t.Helper()
	r, err := c.OpenRouter(t.Context(), orders, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func mustRoute(t testing.TB, r *Router, row []routing.Value) routing.Route {
	t.Helper()
	out, err := r.Route(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantCode(t testing.TB, what string, err error, want catalog.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}
