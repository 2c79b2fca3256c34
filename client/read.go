package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Meta says which state an answer is from. All rows of one answer are from the
// same one.
type Meta struct {
	Incarnation catalog.Incarnation
	Revision    catalog.Revision
	// Age is how long ago the node last heard of the leader, for stale reads; -1
	// otherwise.
	Age time.Duration
}

// ReadOption chooses the state of a read. Default: linearizable.
type ReadOption func(*api.Consistency)

// AtLeast reads a state at or above a revision, on any node, and waits for it.
func AtLeast(rev catalog.Revision) ReadOption {
	return func(c *api.Consistency) { c.Level, c.Revision = api.AtLeast, rev }
}

// Stale reads what a node has; Meta.Age says how old it is.
func Stale() ReadOption {
	return func(c *api.Consistency) { c.Level, c.Revision = api.Stale, 0 }
}

// In refuses a state of another incarnation, with *api.RestoredError.
func In(i catalog.Incarnation) ReadOption {
	return func(c *api.Consistency) { c.Incarnation = i }
}

func consistency(opts []ReadOption) *pb.Consistency {
	if len(opts) == 0 {
		return nil // the default
	}
	var c api.Consistency
	for _, o := range opts {
		o(&c)
	}
	return api.ConsistencyToProto(c)
}

func metaOf(h *pb.ResponseHeader) Meta {
	m := Meta{Incarnation: api.IncarnationFromProto(h.GetIncarnation()), Revision: catalog.Revision(h.GetRevision()), Age: -1}
	if h != nil && h.AgeMs != nil {
		m.Age = time.Duration(h.GetAgeMs()) * time.Millisecond
	}
	return m
}

// Database reads one database. Errors: catalog.ErrDatabaseNotExist.
func (c *Client) Database(ctx context.Context, name string, opts ...ReadOption) (*catalog.Database, Meta, error) {
	res, err := pb.NewCatalogClient(c).GetDatabase(ctx, &pb.GetDatabaseRequest{Consistency: consistency(opts), Name: name})
	if err != nil {
		return nil, Meta{}, err
	}
	return api.DatabaseFromProto(res.GetDatabase()), metaOf(res.GetHeader()), nil
}

// Databases reads all databases in name order, from one state.
func (c *Client) Databases(ctx context.Context, opts ...ReadOption) ([]*catalog.Database, Meta, error) {
	var out []*catalog.Database
	meta, err := list(ctx, c, pb.Catalog_ListDatabases_FullMethodName, &pb.ListDatabasesRequest{Consistency: consistency(opts)},
		func() { out = nil },
		func(m *pb.ListDatabasesResponse) error {
			for _, d := range m.GetDatabases() {
				out = append(out, api.DatabaseFromProto(d))
			}
			return nil
		})
	if err != nil {
		return nil, Meta{}, err
	}
	return out, meta, nil
}

// Table reads one table by its path "database.table". Errors:
// catalog.ErrTableNotExist.
func (c *Client) Table(ctx context.Context, path string, opts ...ReadOption) (*catalog.Table, Meta, error) {
	res, err := pb.NewCatalogClient(c).GetTable(ctx, &pb.GetTableRequest{Consistency: consistency(opts), Table: path})
	if err != nil {
		return nil, Meta{}, err
	}
	t, err := api.TableFromProto(res.GetTable())
	return t, metaOf(res.GetHeader()), err
}

// Tables reads the tables of a database in path order, or of all with "", from
// one state.
func (c *Client) Tables(ctx context.Context, database string, opts ...ReadOption) ([]*catalog.Table, Meta, error) {
	var out []*catalog.Table
	meta, err := list(ctx, c, pb.Catalog_ListTables_FullMethodName, &pb.ListTablesRequest{Consistency: consistency(opts), Database: database},
		func() { out = nil },
		func(m *pb.ListTablesResponse) error {
			for _, p := range m.GetTables() {
				t, err := api.TableFromProto(p)
				if err != nil {
					return err
				}
				out = append(out, t)
			}
			return nil
		})
	if err != nil {
		return nil, Meta{}, err
	}
	return out, meta, nil
}

// PartitionRow is a partition with its table, from one state.
type PartitionRow struct {
	Table     *catalog.Table
	Partition *catalog.Partition
}

// Buckets returns the effective bucket count, as catalog.EffectiveCount.
func (r PartitionRow) Buckets() (int32, error) { return catalog.EffectiveCount(r.Table, r.Partition) }

// Partition reads one partition by the path of its table and its name: the
// values in partition key order, joined by "$". Errors:
// catalog.ErrTableNotExist, catalog.ErrPartitionNotExists.
func (c *Client) Partition(ctx context.Context, table, name string, opts ...ReadOption) (PartitionRow, Meta, error) {
	res, err := pb.NewCatalogClient(c).GetPartition(ctx, &pb.GetPartitionRequest{Consistency: consistency(opts), Table: table, Name: name})
	if err != nil {
		return PartitionRow{}, Meta{}, err
	}
	t, err := api.TableFromProto(res.GetTable())
	if err != nil {
		return PartitionRow{}, Meta{}, err
	}
	return PartitionRow{t, api.PartitionFromProto(res.GetPartition())}, metaOf(res.GetHeader()), nil
}

// TablePartitions is a table and its partitions, from one state.
type TablePartitions struct {
	Table      *catalog.Table
	Partitions []*catalog.Partition
}

// Partitions reads a table and its partitions in name order, from one state.
// Errors: catalog.ErrTableNotExist.
func (c *Client) Partitions(ctx context.Context, table string, opts ...ReadOption) (TablePartitions, Meta, error) {
	var out TablePartitions
	meta, err := list(ctx, c, pb.Catalog_ListPartitions_FullMethodName, &pb.ListPartitionsRequest{Consistency: consistency(opts), Table: table},
		func() { out = TablePartitions{} },
		func(m *pb.ListPartitionsResponse) (err error) {
			if m.GetTable() != nil {
				if out.Table, err = api.TableFromProto(m.GetTable()); err != nil {
					return err
				}
			}
			for _, p := range m.GetPartitions() {
				out.Partitions = append(out.Partitions, api.PartitionFromProto(p))
			}
			return nil
		})
	if err != nil {
		return TablePartitions{}, Meta{}, err
	}
	return out, meta, nil
}

// KeyValue reads one key. Errors: catalog.ErrKeyNotExist.
func (c *Client) KeyValue(ctx context.Context, key string, opts ...ReadOption) (*catalog.KeyValue, Meta, error) {
	res, err := pb.NewKVClient(c).Get(ctx, &pb.GetRequest{Consistency: consistency(opts), Key: key})
	if err != nil {
		return nil, Meta{}, err
	}
	return api.KeyValueFromProto(res.GetRow()), metaOf(res.GetHeader()), nil
}

// KeyValues reads the keys with a prefix in byte order, from one state.
func (c *Client) KeyValues(ctx context.Context, prefix string, opts ...ReadOption) ([]*catalog.KeyValue, Meta, error) {
	var out []*catalog.KeyValue
	meta, err := list(ctx, c, pb.KV_List_FullMethodName, &pb.ListRequest{Consistency: consistency(opts), Prefix: prefix},
		func() { out = nil },
		func(m *pb.ListResponse) error {
			for _, r := range m.GetRows() {
				out = append(out, api.KeyValueFromProto(r))
			}
			return nil
		})
	if err != nil {
		return nil, Meta{}, err
	}
	return out, meta, nil
}

// TableLayout is what a route needs: a table, partitions, and the servers that
// lead their buckets, from one state.
type TableLayout struct {
	Table      *catalog.Table
	Partitions []*catalog.Partition
	Servers    []*catalog.Server
}

// Layout reads a table, the partitions with the given names, and the servers
// that lead their buckets, from one state. A partition that does not exist is
// left out. Errors: catalog.ErrTableNotExist.
func (c *Client) Layout(ctx context.Context, table string, names []string, opts ...ReadOption) (TableLayout, Meta, error) {
	res, err := pb.NewCatalogClient(c).GetLayout(ctx, &pb.GetLayoutRequest{Consistency: consistency(opts), Table: table, Names: names})
	if err != nil {
		return TableLayout{}, Meta{}, err
	}
	var out TableLayout
	if out.Table, err = api.TableFromProto(res.GetTable()); err != nil {
		return TableLayout{}, Meta{}, err
	}
	for _, p := range res.GetPartitions() {
		out.Partitions = append(out.Partitions, api.PartitionFromProto(p))
	}
	for _, p := range res.GetServers() {
		s, err := api.ServerFromProto(p)
		if err != nil {
			return TableLayout{}, Meta{}, err
		}
		out.Servers = append(out.Servers, s)
	}
	return out, metaOf(res.GetHeader()), nil
}

// message is a generated message M by its pointer.
type message[M any] interface {
	*M
	headed
}

// list reads a streamed list whole. One that breaks is read again from its
// beginning on another node, so that all of it is from one state.
func list[M any, P message[M]](ctx context.Context, c *Client, method string, req any, reset func(), add func(P) error) (Meta, error) {
	ctx, cancel := c.budget(ctx)
	defer cancel()
	r := route{c: c}
	tr := trace{method: method}
	for {
		l, err := r.next(ctx)
		if err != nil {
			return Meta{}, tr.noNode(ctx, c, err)
		}
		tr.attempt(l.addr)
		reset()
		meta, err := listOnce(ctx, c, l, method, req, add)
		s := judge(ctx, err)
		if s == stepDone || s == stepLost || s == stepRestored {
			return meta, err
		}
		tr.answer(err)
		if !r.after(ctx, l, s) || c.pool.ctx.Err() != nil {
			return Meta{}, tr.fail(c.closedCause(ctx))
		}
	}
}

// errMixedList is an answer that breaks the promise of one state. Reading again
// may help.
var errMixedList = &catalog.Error{Code: catalog.ErrUnavailable, Message: "the chunks of a list are of different states"}

func listOnce[M any, P message[M]](ctx context.Context, c *Client, l *link, method string, req any, add func(P) error) (meta Meta, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.calls.Add(1)
	defer l.calls.Add(-1)
	c.metrics.attempts.Inc()
	s, err := l.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return Meta{}, errorOf(err)
	}
	if err = s.SendMsg(req); err == nil {
		err = s.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Meta{}, errorOf(err)
	}
	for first := true; ; first = false {
		m := P(new(M))
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return meta, nil
		} else if err != nil {
			return Meta{}, errorOf(err)
		}
		c.pool.learnLeader(m.GetHeader().GetLeader())
		if got := metaOf(m.GetHeader()); first {
			meta = got
		} else if got.Incarnation != meta.Incarnation || got.Revision != meta.Revision {
			return Meta{}, errMixedList
		}
		if err := add(m); err != nil {
			return Meta{}, fmt.Errorf("list of %s: %w", method, err)
		}
	}
}
