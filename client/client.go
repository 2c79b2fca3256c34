package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

type (
	fieldDescriptor = protoreflect.FieldDescriptor
	fieldValue      = protoreflect.Value
)

func valueOf(m proto.Message) protoreflect.Value {
	return protoreflect.ValueOfMessage(m.ProtoReflect())
}

// Client is one caller of one cluster. It may be used by any number of
// goroutines, and should be shared: it holds the connections, the registration
// and the watermark of a process.
type Client struct {
	cfg     config
	pool    *pool
	session *session
	metrics *metrics
	batch   *batcher
	reads   *readBatcher
	results outcomes
	once    sync.Once
}

var _ grpc.ClientConnInterface = (*Client)(nil)

// New makes a client of the cluster that is found at endpoints, each
// "host:port" or "dns:///host:port" for a name that stands for several nodes.
// Nothing is connected before it is needed. The error names every endpoint and
// option that is wrong.
func New(endpoints []string, opts ...Option) (*Client, error) {
	eps, err := parseEndpoints(endpoints)
	cfg, oerr := newConfig(opts)
	if err = errors.Join(err, oerr); err != nil {
		return nil, fmt.Errorf("client options: %w", err)
	}
	c := &Client{cfg: cfg}
	if c.metrics, err = newMetrics(cfg.registry); err != nil {
		return nil, fmt.Errorf("client metrics: %w", err)
	}
	c.pool = newPool(&c.cfg, eps)
	c.session = &session{name: cfg.name, logger: cfg.logger, register: c.register, stuck: c.pool.stuck, spawn: c.spawn}
	c.batch, c.reads = newBatcher(c), newReadBatcher(c)
	return c, nil
}

// Close ends calls in flight with ErrClosed, closes all connections and returns
// when nothing of the client runs any more. Writes without an outcome stay
// without one. Close may be called again.
func (c *Client) Close() error {
	c.once.Do(c.pool.close)
	return nil
}

// spawn runs f with the context of the client's life; Close waits for it.
func (c *Client) spawn(f func(ctx context.Context)) bool {
	return c.pool.goFunc(func() { f(c.pool.ctx) })
}

// budget gives a call a deadline, and ends it when the client is closed.
func (c *Client) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	timed, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		timed, cancel = context.WithTimeout(ctx, c.cfg.timeout)
	}
	return timed, cancel
}

// register gets a client id. It may be repeated: a record nobody uses expires.
func (c *Client) register(ctx context.Context, name string, heard func(error)) (catalog.ClientID, error) {
	var res pb.RegisterClientResponse
	tr := trace{method: pb.Cluster_RegisterClient_FullMethodName, heard: heard}
	if err := c.readTraced(ctx, &tr, &pb.RegisterClientRequest{Name: name, TtlMs: c.cfg.recordTTL.Milliseconds()}, &res, nil); err != nil {
		return 0, err
	}
	if res.GetClientId() == 0 {
		return 0, &catalog.Error{Code: catalog.ErrUnknownServerError, Message: "the answer to a registration has no client id"}
	}
	return catalog.ClientID(res.GetClientId()), nil
}

// headed is any answer of a Stave node.
type headed interface{ GetHeader() *pb.ResponseHeader }

// try makes one attempt on one link.
func (c *Client) try(ctx context.Context, l *link, method string, req, reply any, opts []grpc.CallOption) error {
	l.calls.Add(1)
	defer l.calls.Add(-1)
	c.metrics.attempts.Inc()
	err := l.conn.Invoke(ctx, method, req, reply, opts...)
	if err != nil {
		err = errorOf(err)
		var nl *api.NotLeaderError
		if errors.As(err, &nl) {
			c.pool.learnLeader(&pb.LeaderHint{NodeId: nl.Leader, Address: nl.Addr})
		}
		return err
	}
	if h, ok := reply.(headed); ok {
		c.pool.learnLeader(h.GetHeader().GetLeader())
	}
	return nil
}

// pause waits before the next attempt. It reports whether there is time for one.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
