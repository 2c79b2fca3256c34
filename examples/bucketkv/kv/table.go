package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	pb "github.com/stavedb/stave/examples/bucketkv/v1"
	"github.com/stavedb/stave/routing"
)

// statusOf returns the status of a call's error; errors of a stave client, which
// are no statuses, become one.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	return api.StatusFromError(err)
}

// Table puts and gets the rows of one table at the servers that lead their
// buckets. It may be used by any number of goroutines.
type Table struct {
	router *client.Router
	keys   *routing.TableKeys

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
}

// OpenTable opens a table with a primary key. A partition that a row needs is
// created.
func OpenTable(ctx context.Context, c *client.Client, path string) (*Table, error) {
	r, err := c.OpenRouter(ctx, path, client.RouterOptions{Create: true, Attempts: 40})
	if err != nil {
		return nil, err
	}
	l, err := r.Layout(ctx)
	if err == nil && l.Keys().PrimaryKey() == nil {
		err = fmt.Errorf("table %s has no primary key", path)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &Table{router: r, keys: l.Keys(), conns: map[string]*grpc.ClientConn{}}, nil
}

// Close closes the router and all connections.
func (t *Table) Close() error {
	err := t.router.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Put stores a row and returns where. Putting again what was put, as a retry
// does, changes nothing; so does Put until it has an answer.
func (t *Table) Put(ctx context.Context, row []routing.Value, value []byte) (routing.Route, error) {
	key, err := t.key(row)
	if err != nil {
		return routing.Route{}, err
	}
	return t.call(ctx, row, func(kv pb.BucketKVClient, b *pb.Bucket) error {
		_, err := kv.Put(ctx, &pb.PutRequest{Bucket: b, Rows: []*pb.Row{{Key: key, Value: value}}})
		return err
	})
}

// Get reads a row by its key columns; nil if there is none.
func (t *Table) Get(ctx context.Context, row []routing.Value) (*pb.Row, routing.Route, error) {
	key, err := t.key(row)
	if err != nil {
		return nil, routing.Route{}, err
	}
	var out *pb.Row
	route, err := t.call(ctx, row, func(kv pb.BucketKVClient, b *pb.Bucket) error {
		r, err := kv.Get(ctx, &pb.GetRequest{Bucket: b, Key: key})
		out = r.GetRow()
		return err
	})
	return out, route, err
}

func (t *Table) key(row []routing.Value) ([]byte, error) { return t.keys.PrimaryKey().Append(nil, row) }

// reroutes is how often a row is routed anew after its route was refused.
const reroutes = 5

// call routes a row and calls the leader of its bucket. The request goes again to
// whoever leads the bucket now, with the count it was routed with; a refused route
// is dropped, and the row is routed anew.
func (t *Table) call(ctx context.Context, row []routing.Value, f func(pb.BucketKVClient, *pb.Bucket) error) (routing.Route, error) {
	var err error
	for range reroutes {
		var r routing.Route
		if r, err = t.router.Route(ctx, row); err != nil {
			return r, err
		}
		for attempt := 1; err == nil; attempt++ {
			if err = t.once(r, f); err == nil {
				return r, nil
			}
			r, err = t.router.Retry(ctx, r, attempt, err)
		}
		switch api.CodeOf(err) {
		case catalog.ErrStaleMetadata, catalog.ErrPartitionNotExists:
		default:
			return r, err
		}
	}
	return routing.Route{}, err
}

// once makes one attempt. An error has a code that Retry knows.
func (t *Table) once(r routing.Route, f func(pb.BucketKVClient, *pb.Bucket) error) error {
	leader, ok := r.Leader()
	if !ok || len(leader.Listeners) == 0 {
		return &catalog.Error{Code: catalog.ErrLeaderNotAvailable, Message: r.Name() + " has no leader for a bucket"}
	}
	conn, err := t.conn(leader.Listeners[0])
	if err != nil {
		return err
	}
	b := &pb.Bucket{TableId: uint64(r.Table), Bucket: r.Bucket, BucketCount: r.Count}
	if r.Partition != routing.NoPartition {
		id := uint64(r.Partition)
		b.PartitionId = &id
	}
	err = f(pb.NewBucketKVClient(conn), b)
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	if got := api.ErrorFromStatus(st); api.CodeOf(got) != catalog.ErrUnavailable && st.Code() != codes.Unavailable {
		return got
	} else if len(st.Details()) > 0 {
		return got
	}
	return &catalog.Error{Code: catalog.ErrNetwork, Message: err.Error()}
}

func (t *Table) conn(listener string) (*grpc.ClientConn, error) {
	if _, addr, ok := strings.Cut(listener, "://"); ok {
		listener = addr
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.conns[listener]; c != nil {
		return c, nil
	}
	c, err := grpc.NewClient("passthrough:///"+listener, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		t.conns[listener] = c
	}
	return c, err
}
