package testcluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os/exec"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// Hosts that are no nodes under test.
const (
	// ClientHost is where clients are; cutting it from a node cuts API calls.
	ClientHost = "client"
	// ArchiveHost is the member that keeps the whole log.
	ArchiveHost = "archive"
)

// ErrUnsupported is returned for an order that a backend cannot carry out here;
// the error says why.
var ErrUnsupported = errors.New("not possible here")

// Config says what cluster to make. Zero values mean the default.
type Config struct {
	// Nodes vote from the beginning; default 3. Spares are ids that may be started
	// and added later.
	Nodes, Spares int
	// Dir holds the directories of all nodes. Required.
	Dir string
	// LogStore is the log store of all nodes.
	LogStore raftnode.LogStore
	// SnapshotThreshold is how many entries make a snapshot due; default 400. The
	// log keeps twice as many.
	SnapshotThreshold uint64
	// SnapshotInterval is how often that is looked at; default 1 s.
	SnapshotInterval time.Duration
	// Heartbeat is the heartbeat timeout; default that of a node.
	Heartbeat time.Duration
	// OwnDisks gives each node of proc a file system of its own, so that power can
	// be lost; see CanLosePower.
	OwnDisks bool
	// Logger gets what nodes log in sim; default: nothing.
	Logger *slog.Logger
	// Command makes the process of a node from its flags. Required in proc: the
	// program calls NodeSeams and runs a server with them.
	Command func(args ...string) *exec.Cmd
}

func (c Config) withDefaults() Config {
	if c.Nodes == 0 {
		c.Nodes = 3
	}
	if c.SnapshotThreshold == 0 {
		c.SnapshotThreshold = 400
	}
	if c.SnapshotInterval == 0 {
		c.SnapshotInterval = time.Second
	}
	if c.LogStore == "" {
		c.LogStore = raftnode.LogStoreWAL
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Status is what a node says of itself, without asking others.
type Status struct {
	ID, Role, Leader string
	Term             uint64
	Revision         catalog.Revision
	Incarnation      uint64
	Hash             uint64
	// Installed counts snapshots taken over since the process began, Full and
	// Stalled the writes that met such a disk.
	Installed     int64
	Full, Stalled int64
	// Goroutines and Files are the process's; 0 in sim.
	Goroutines, Files int
	Health            []string
}

// backend is what sim and proc do differently. Methods may be called
// concurrently; those of one node are called one at a time.
type backend interface {
	kind() string
	// start begins a node and returns before it is open.
	start(id string) error
	stop(ctx context.Context, id string) error
	kill(id string) error
	pause(id string) error
	resume(id string) error
	powerLoss(id string) error
	// link sets what happens to bytes from one host to another.
	link(from, to string, cut bool, delay time.Duration)
	reset(a, b string)
	disk(id string, mode DiskMode) error
	clock(id string, by time.Duration) error
	status(ctx context.Context, id string) (Status, error)
	raftAddr(id string) string
	apiAddr(id string) string
	dial(ctx context.Context, addr string) (net.Conn, error)
	// network is the nodes' network as a host of this process sees it.
	network(host string) raftnode.Network
	dir(id string) string
	// complaints are what nodes said that no node should say, as panics.
	complaints() []string
	close() error
}
