package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/raftnode"
)

// Server answers the calls of one node. All methods may be called concurrently.
type Server struct {
	cfg     Config
	node    *raftnode.Node
	id      string // of the node
	metrics *metrics
	grpc    *grpc.Server
	memory  *bufconn.Listener // the way from HTTP to grpc
	gateway *grpc.ClientConn
	front   *Front
	watches watches

	serving atomic.Bool
	closing chan struct{} // closed when Close begins: streams end
	// planning holds the one plan that is being computed.
	planning chan struct{}
	once     sync.Once
	group    sync.WaitGroup
}

// New makes a server. It accepts nothing before Serve, and must be closed in
// any case.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	s := &Server{cfg: cfg.withDefaults(), node: cfg.Node, closing: make(chan struct{}), planning: make(chan struct{}, 1)}
	s.id = s.node.Status().ID
	s.cfg.Logger = s.cfg.Logger.With("node", s.id)
	s.watches.init(s.cfg)
	var err error
	if s.metrics, err = newMetrics(s.cfg.Registerer, s.id); err != nil {
		return nil, err
	}
	s.grpc = grpc.NewServer(s.options()...)
	pb.RegisterCatalogServer(s.grpc, &catalogService{s: s})
	pb.RegisterPlacementServer(s.grpc, &placementService{s: s})
	pb.RegisterKVServer(s.grpc, &kvService{s: s})
	pb.RegisterWatchServer(s.grpc, &watchService{s: s})
	pb.RegisterClusterServer(s.grpc, &clusterService{s: s})
	healthpb.RegisterHealthServer(s.grpc, &healthService{s: s})
	reflection.Register(s.grpc)
	if err := s.openGateway(); err != nil {
		s.metrics.unregister()
		return nil, err
	}
	s.group.Go(func() { s.watches.cutSlow(s.closing) })
	return s, nil
}

// How many bytes a client may have under way that nobody has read yet: on one
// stream, and on all streams of a connection together.
const (
	streamWindow = 1 << 20
	connWindow   = 4 << 20
)

func (s *Server) options() []grpc.ServerOption {
	out := []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		// Without workers every call begins on a new goroutine, whose stack grows
		// anew each time. A write keeps its worker until it is applied, so that
		// there must be more of them than cores.
		grpc.NumStreamWorkers(uint32(128 * runtime.GOMAXPROCS(0))),
		// Fixed windows: gRPC's estimator pings the peer as long as data comes.
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ChainUnaryInterceptor(s.unary),
		grpc.ChainStreamInterceptor(s.stream),
		grpc.MaxConcurrentStreams(s.cfg.MaxStreams),
		grpc.MaxRecvMsgSize(s.cfg.MaxMessage),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if tp := s.cfg.TracerProvider; tp != nil {
		out = append(out, grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(tp))))
	}
	return out
}

// Serve answers calls on both listeners until Close, and then returns nil, or
// until one of them fails. Either may be nil. It closes the listeners and may be
// called once.
func (s *Server) Serve(api, http net.Listener) error {
	if !s.serving.CompareAndSwap(false, true) {
		return errors.New("server: Serve was called before")
	}
	ends := make(chan error, 2)
	n := 0
	serve := func(l net.Listener, what string, f func(net.Listener) error) {
		if l == nil {
			return
		}
		n++
		s.group.Go(func() {
			err := f(l)
			if err != nil {
				err = fmt.Errorf("serve %s on %s: %w", what, l.Addr(), err)
			}
			ends <- err
		})
	}
	serve(api, "grpc", s.grpc.Serve)
	serve(http, "http", s.front.Serve)
	for range n {
		select {
		case err := <-ends:
			if err == nil || s.isClosing() {
				continue
			}
			return err
		case <-s.closing:
		}
	}
	<-s.closing
	return nil
}

func (s *Server) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Close ends streams with UNAVAILABLE, waits for running calls as long as ctx
// lasts, and then ends those too. It closes the listeners, and returns ctx's
// error if calls were cut.
func (s *Server) Close(ctx context.Context) error {
	var err error
	s.once.Do(func() {
		close(s.closing)
		err = s.front.Close(ctx)
		if cerr := s.gateway.Close(); err == nil {
			err = cerr
		}
		ended := make(chan struct{})
		go func() {
			s.grpc.GracefulStop()
			close(ended)
		}()
		select {
		case <-ended:
		case <-ctx.Done():
			err = context.Cause(ctx)
			s.grpc.Stop()
			<-ended
		}
		s.group.Wait()
		s.metrics.unregister()
	})
	return err
}
