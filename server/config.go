package server

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/stavedb/stave/raftnode"
)

// Config says what a server serves. Node is required; zero values of all other
// fields mean the default.
type Config struct {
	// Node is the open node. The server does not close it.
	Node *raftnode.Node
	// Logger gets panics of handlers and failures of listeners; default: nothing
	// is logged.
	Logger *slog.Logger
	// Registerer gets the server's metrics, and Gatherer is what /metrics shows;
	// default: none, and /metrics is then not there.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// TracerProvider gets a span for each call; default: no tracing, which costs
	// a twentieth of a small call.
	TracerProvider trace.TracerProvider
	// PProf adds /debug/pprof to HTTP. It shows memory of the process to whoever
	// can reach the port.
	PProf bool
	// Front, if set, is the HTTP server that already answers probes; the server
	// takes it over, and closes it.
	Front *Front
	// SpoolDir holds snapshots while they are sent or received; default: the
	// system's directory for temporary files. It needs room for a whole snapshot.
	SpoolDir string

	// RequestTimeout bounds a unary call whose caller gave no deadline, and the
	// reads that a stream begins with; default 30 s.
	RequestTimeout time.Duration
	// MaxStreams bounds the concurrent calls of one connection; default 16,384.
	MaxStreams uint32
	// MaxWatches bounds the watches and feeds of this server, each with a few KiB of
	// memory; default 20,000. More get BUSY.
	MaxWatches int
	// MaxMessage bounds one received message, in bytes; default and least value
	// 4 MiB.
	MaxMessage int
	// MaxSnapshot bounds a snapshot sent to be restored, in bytes; default 16 GiB.
	MaxSnapshot int64
	// SlowAfter is how long a watch whose peer does not read may stand still
	// while it is too far behind, before it is cut; default 1 s.
	SlowAfter time.Duration
}

const leastMessage = 4 << 20

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("component", "server")
	if c.SpoolDir == "" {
		c.SpoolDir = os.TempDir()
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 30 * time.Second
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 16_384
	}
	if c.MaxWatches == 0 {
		c.MaxWatches = 20_000
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = leastMessage
	}
	if c.MaxSnapshot == 0 {
		c.MaxSnapshot = 16 << 30
	}
	if c.SlowAfter == 0 {
		c.SlowAfter = time.Second
	}
	return c
}

// Validate reports every field that cannot be used, naming field, value and
// bound.
func (c Config) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Node == nil {
		fail("node is not set")
	}
	d := c.withDefaults()
	if d.RequestTimeout < time.Millisecond {
		fail("request timeout %s is below 1ms", d.RequestTimeout)
	}
	if d.MaxWatches < 1 {
		fail("max watches %d is below 1", d.MaxWatches)
	}
	if d.MaxMessage < leastMessage {
		fail("max message %d is below %d bytes", d.MaxMessage, leastMessage)
	}
	if d.MaxSnapshot < 1 {
		fail("max snapshot %d is below 1 byte", d.MaxSnapshot)
	}
	if d.SlowAfter < time.Millisecond {
		fail("slow after %s is below 1ms", d.SlowAfter)
	}
	return errors.Join(errs...)
}
