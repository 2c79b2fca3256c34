package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/catalog"
)

// Defaults and bounds of options.
const (
	// DefaultTimeout is the budget of a call whose context has no deadline.
	DefaultTimeout = 10 * time.Second
	// DefaultName is the name a client registers with.
	DefaultName = "stave-client"

	maxNameBytes = 256
	minTimeout   = time.Millisecond
	maxTimeout   = 24 * time.Hour
)

// Option changes how a Client works. Options check themselves; New reports all
// of their problems at once.
type Option func(*config) error

type config struct {
	timeout time.Duration
	name    string
	// recordTTL is of the client record; 0: the cluster's default.
	recordTTL time.Duration
	dial      func(ctx context.Context, addr string) (net.Conn, error)
	resolve   func(ctx context.Context, host string) ([]string, error)
	logger    *slog.Logger
	registry  prometheus.Registerer
	batching  bool
	sessions  bool
	tracing   []grpc.DialOption
}

// WithTimeout sets the budget of calls whose context has no deadline, all
// attempts included. Default DefaultTimeout; 1 ms to 24 h.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d < minTimeout || d > maxTimeout {
			return fmt.Errorf("timeout is %s, want %s to %s", d, minTimeout, maxTimeout)
		}
		c.timeout = d
		return nil
	}
}

// WithRecordTTL bounds how long the cluster remembers the client once it is silent:
// 10 s to 1 h, which is the default. Programs that make a few writes and end leave
// room for others with less; the cluster keeps at most catalog.MaxClients records. A
// client that was silent for longer registers again by itself; only a write that was
// under way all that time ends with ErrOutcomeUnknown.
func WithRecordTTL(d time.Duration) Option {
	return func(c *config) error {
		const low, high = time.Duration(catalog.MinClientTTL) * time.Millisecond, time.Duration(catalog.ClientTTL) * time.Millisecond
		if d < low || d > high {
			return fmt.Errorf("record ttl is %s, want %s to %s", d, low, high)
		}
		c.recordTTL = d
		return nil
	}
}

// WithName sets the name that shows in the cluster's list of clients. Default
// DefaultName; 1 to 256 bytes.
func WithName(name string) Option {
	return func(c *config) error {
		if name == "" || len(name) > maxNameBytes {
			return fmt.Errorf("name has %d bytes, want 1 to %d", len(name), maxNameBytes)
		}
		c.name = name
		return nil
	}
}

// WithDialer replaces how connections to "host:port" are made. Default: TCP.
func WithDialer(dial func(ctx context.Context, addr string) (net.Conn, error)) Option {
	return func(c *config) error {
		if dial == nil {
			return errors.New("dialer is nil, want a function")
		}
		c.dial = dial
		return nil
	}
}

// WithResolver replaces how the host of a "dns:///host:port" endpoint becomes
// addresses without port. Default: the system's resolver.
func WithResolver(resolve func(ctx context.Context, host string) ([]string, error)) Option {
	return func(c *config) error {
		if resolve == nil {
			return errors.New("resolver is nil, want a function")
		}
		c.resolve = resolve
		return nil
	}
}

// WithLogger sets where changes of connections, sessions and leaders are
// logged. Default: nowhere.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l == nil {
			return errors.New("logger is nil, want a logger")
		}
		c.logger = l
		return nil
	}
}

// WithRegisterer registers the client's metrics. Several clients may share one
// registerer; they share the metrics, too. Default: none.
func WithRegisterer(r prometheus.Registerer) Option {
	return func(c *config) error {
		if r == nil {
			return errors.New("registerer is nil, want a registerer")
		}
		c.registry = r
		return nil
	}
}

// WithTracerProvider makes a span for each call to a node. Default: no tracing.
func WithTracerProvider(tp oteltrace.TracerProvider) Option {
	return func(c *config) error {
		if tp == nil {
			return errors.New("tracer provider is nil, want a tracer provider")
		}
		c.tracing = []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(tp)))}
		return nil
	}
}

// WithBatching says whether commands of Do, and linearizable reads of one
// object, that are issued while others are on their way are sent together on one
// stream each. Default true.
func WithBatching(on bool) Option {
	return func(c *config) error {
		c.batching = on
		return nil
	}
}

// WithoutSession makes every write a single attempt without deduplication: it is
// never sent again, and an answer that does not arrive is
// catalog.ErrOutcomeUnknown.
func WithoutSession() Option {
	return func(c *config) error {
		c.sessions = false
		return nil
	}
}

func newConfig(opts []Option) (config, error) {
	var d net.Dialer
	c := config{
		timeout: DefaultTimeout, name: DefaultName, logger: slog.New(slog.DiscardHandler), batching: true, sessions: true,
		dial:    func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) },
		resolve: net.DefaultResolver.LookupHost,
	}
	var errs []error
	for _, o := range opts {
		if o == nil {
			errs = append(errs, errors.New("option is nil"))
			continue
		}
		if err := o(&c); err != nil {
			errs = append(errs, err)
		}
	}
	return c, errors.Join(errs...)
}
