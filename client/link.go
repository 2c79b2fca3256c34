package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/stavedb/stave/api/stave/v1"
)

// Times of one connection. A silent one is found after at most
// probeEvery + probeTimeout + probeEvery, which is under five seconds.
const (
	dialTimeout  = 2 * time.Second
	helloTimeout = 2 * time.Second
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second

	maxMessageBytes = 64 << 20
)

// identity says who answers on a connection. Addresses are not identities: they
// are swapped and reused.
type identity struct{ cluster, node string }

// link is one transport connection to one identified node. It never connects
// again by itself, so that its identity cannot change under a call: whatever
// listens at the address later is asked for its name first.
type link struct {
	addr string
	id   identity
	conn *grpc.ClientConn
	raw  *trackedConn
	// calls counts what is in flight; a link without calls is not probed.
	calls atomic.Int64
}

// trackedConn notes when bytes last arrived and when the connection ended.
type trackedConn struct {
	net.Conn
	lastRead atomic.Int64 // nanoseconds since start
	start    time.Time
	once     sync.Once
	closed   chan struct{}
	// http1 is set when the first bytes that arrive are an answer of HTTP/1, and
	// begun when there were any; Read is called by one goroutine.
	http1 atomic.Bool
	begun bool
}

func trackConn(c net.Conn) *trackedConn {
	return &trackedConn{Conn: c, start: time.Now(), closed: make(chan struct{})}
}

func (c *trackedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if !c.begun {
			c.begun = true
			c.http1.Store(bytes.HasPrefix(p[:n], []byte("HTTP/1")))
		}
		c.lastRead.Store(int64(time.Since(c.start)))
	}
	return n, err
}

func (c *trackedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// silence is how long nothing arrived.
func (c *trackedConn) silence() time.Duration {
	return time.Since(c.start) - time.Duration(c.lastRead.Load())
}

// errHTTP1 is an endpoint that is no API address.
var errHTTP1 = errors.New("it speaks HTTP/1 and not gRPC; want the API address of a node, not its HTTP address")

// errRedial keeps grpc from connecting by itself.
var errRedial = errors.New("the connection ended")

// openLink connects to addr and asks who is there.
func openLink(ctx context.Context, addr string, dial func(context.Context, string) (net.Conn, error), tracing []grpc.DialOption) (*link, *pb.StatusResponse, error) {
	dctx, cancel := context.WithTimeout(ctx, dialTimeout)
	c, err := dial(dctx, addr)
	cancel()
	if err != nil {
		return nil, nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	l := &link{addr: addr, raw: trackConn(c)}
	var used atomic.Bool
	options := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errRedial
			}
			return l.raw, nil
		}),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
	}, tracing...)
	l.conn, err = grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		_ = l.raw.Close()
		return nil, nil, fmt.Errorf("connect %s: %w", addr, err)
	}
	hctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	st, err := l.status(hctx)
	if err == nil && (st.GetCluster().GetClusterId() == "" || st.GetNodeId() == "") {
		err = fmt.Errorf("node %q is part of no cluster yet", st.GetNodeId())
	}
	if l.raw.http1.Load() {
		err = errHTTP1
	}
	if err != nil {
		l.close()
		return nil, nil, fmt.Errorf("identify %s: %w", addr, err)
	}
	l.id = identity{st.GetCluster().GetClusterId(), st.GetNodeId()}
	return l, st, nil
}

func (l *link) status(ctx context.Context) (*pb.StatusResponse, error) {
	return pb.NewClusterClient(l.conn).Status(ctx, &pb.StatusRequest{
		Consistency: &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE},
	})
}

// close ends the transport first, so that calls in flight see a broken
// connection.
func (l *link) close() {
	_ = l.raw.Close()
	_ = l.conn.Close()
}

// ready reports whether a call may be sent.
func (l *link) ready() bool {
	select {
	case <-l.raw.closed:
		return false
	default:
		return l.conn.GetState() == connectivity.Ready
	}
}

// watch returns when the link takes no more calls: it was closed, or the server
// asked to leave.
func (l *link) watch(ctx context.Context) {
	for s := l.conn.GetState(); s == connectivity.Ready; s = l.conn.GetState() {
		if !l.conn.WaitForStateChange(ctx, s) {
			return
		}
	}
}

// probe asks the node for a sign of life whenever calls wait and nothing
// arrived for a while, until the link ends. It closes a link that stays silent.
func (l *link) probe(ctx context.Context, seen func(*pb.StatusResponse)) (cause error) {
	t := time.NewTicker(probeEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.raw.closed:
			return nil
		case <-t.C:
		}
		if l.calls.Load() == 0 || l.raw.silence() < probeEvery {
			continue
		}
		pctx, cancel := context.WithTimeout(ctx, probeTimeout)
		st, err := l.status(pctx)
		cancel()
		switch {
		case err == nil:
			seen(st)
		case status.Code(err) == codes.DeadlineExceeded && l.raw.silence() >= probeTimeout:
			_ = l.raw.Close()
			return fmt.Errorf("nothing arrived from %s for %s", l.addr, l.raw.silence().Round(time.Millisecond))
		}
	}
}
