package raftnode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/raftlog"
	"github.com/stavedb/stave/internal/raftnet"
)

// Network is how a node reaches others: Listen and Dial. The default is TCP;
// tests use one in memory. Connections must honour deadlines.
type Network = raftnet.Network

// Faults injects troubles of the disk into the log and the stable store.
type Faults = raftlog.Faults

// Clock is where a node takes time from. Elections and timeouts of raft itself
// use the runtime's clock.
type Clock interface {
	// Wall is the wall clock; it may jump.
	Wall() time.Time
	// Monotonic is a clock that never jumps, from an arbitrary origin.
	Monotonic() time.Duration
}

type systemClock struct{ origin time.Time }

func (systemClock) Wall() time.Time            { return time.Now() }
func (c systemClock) Monotonic() time.Duration { return time.Since(c.origin) }

// LogStore names the store of the raft log.
type LogStore string

// The log stores. The choice is fixed for the life of a directory.
const (
	LogStoreWAL  LogStore = "wal"
	LogStoreBolt LogStore = "boltdb"
)

// Config says who a node is and where it lives. ID, Dir, RaftAddr and, for a
// new directory, InitialCluster are required; zero values of all other fields
// mean the default.
type Config struct {
	// ID is the node's id, unique in the cluster for ever: 1 to 64 letters,
	// digits, '.', '_' and '-'.
	ID string
	// Dir holds everything the node keeps. It belongs to one running node.
	Dir string
	// RaftAddr is the host:port to listen on for other nodes.
	RaftAddr string
	// AdvertiseRaft is the host:port others reach RaftAddr at; default RaftAddr.
	// An unspecified host such as 0.0.0.0 is refused.
	AdvertiseRaft string
	// APIAddr and HTTPAddr are announced to clients; empty when embedded.
	APIAddr, HTTPAddr string
	// InitialCluster maps the ids of the nodes that begin the cluster to their
	// raft addresses; all of them must be given the same. A node that is not in
	// it joins a cluster of these nodes and never begins one.
	InitialCluster map[string]string
	// ClusterToken tells clusters apart whose InitialCluster is equal.
	ClusterToken string
	// LogStore is LogStoreWAL or LogStoreBolt; default LogStoreWAL.
	LogStore LogStore
	// NoForward makes a follower refuse commands with ErrNotLeader instead of
	// handing them once to the leader.
	NoForward bool

	// HeartbeatTimeout is how long a follower waits for the leader, and
	// ElectionTimeout for votes; default 500 ms. Shorter than the worst fsync of
	// a busy disk they cost elections.
	HeartbeatTimeout, ElectionTimeout time.Duration
	// LeaderLease is how long a leader goes on without hearing from a majority;
	// default half of HeartbeatTimeout, which is also its bound.
	LeaderLease time.Duration
	// CommitTimeout is how soon followers learn of a commit without further
	// writes; default 5 ms.
	CommitTimeout time.Duration
	// SnapshotThreshold is how many entries make a snapshot due; default 65,536.
	SnapshotThreshold uint64
	// SnapshotInterval is how often that is looked at; default 10 s.
	SnapshotInterval time.Duration
	// TrailingLogs is how many entries stay after a snapshot, for followers that
	// lag and for an older snapshot to be of use: at least, and by default, twice
	// SnapshotThreshold.
	TrailingLogs uint64
	// MaxInFlight bounds the bytes a leader takes in before they are replicated,
	// beyond which commands get ErrBusy; default 32 MiB.
	MaxInFlight int64

	// Network, Clock and Faults are seams with real defaults.
	Network Network
	Clock   Clock
	Faults  Faults
	// Logger gets life-cycle and leadership changes, and what a human may act
	// on; default: nothing is logged.
	Logger *slog.Logger
	// Registerer gets the node's metrics; default: none.
	Registerer prometheus.Registerer

	// level is the feature level of the build; tests pretend to be another one.
	level catalog.FeatureLevel
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.HeartbeatTimeout, 500*time.Millisecond)
	def(&c.ElectionTimeout, c.HeartbeatTimeout)
	def(&c.LeaderLease, c.HeartbeatTimeout/2)
	def(&c.CommitTimeout, 5*time.Millisecond)
	def(&c.SnapshotInterval, 10*time.Second)
	if c.SnapshotThreshold == 0 {
		c.SnapshotThreshold = 65_536
	}
	if c.TrailingLogs == 0 {
		c.TrailingLogs = 2 * c.SnapshotThreshold
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 32 << 20
	}
	if c.level == 0 {
		c.level = catalog.CurrentLevel
	}
	if c.LogStore == "" {
		c.LogStore = LogStoreWAL
	}
	if c.AdvertiseRaft == "" {
		c.AdvertiseRaft = c.RaftAddr
	}
	if c.Network == nil {
		c.Network = raftnet.TCP{}
	}
	if c.Clock == nil {
		c.Clock = systemClock{origin: time.Now()}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("component", "raftnode", "node", c.ID)
	return c
}

var validID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// Validate reports every field that cannot be used, naming field, value and
// bound. Zero values of optional fields are good.
func (c Config) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !validID.MatchString(c.ID) {
		fail("id %q: want 1 to 64 letters, digits, '.', '_' or '-'", c.ID)
	}
	if c.Dir == "" {
		fail("data directory is not set")
	}
	if c.RaftAddr == "" {
		fail("raft address is not set")
	}
	d := c.withDefaults()
	if err := checkAdvertised("advertised raft address", d.AdvertiseRaft); err != nil {
		errs = append(errs, err)
	}
	for id, addr := range c.InitialCluster {
		if !validID.MatchString(id) {
			fail("initial cluster: id %q: want 1 to 64 letters, digits, '.', '_' or '-'", id)
		}
		if err := checkAdvertised("initial cluster: address of "+id, addr); err != nil {
			errs = append(errs, err)
		}
	}
	if own, ok := c.InitialCluster[c.ID]; ok && own != d.AdvertiseRaft {
		fail("initial cluster: address of %s is %s, but the node advertises %s", c.ID, own, d.AdvertiseRaft)
	}
	if d.LogStore != LogStoreWAL && d.LogStore != LogStoreBolt {
		fail("log store %q: want %q or %q", d.LogStore, LogStoreWAL, LogStoreBolt)
	}
	errs = append(errs, d.checkTimes()...)
	return errors.Join(errs...)
}

func (c Config) checkTimes() []error {
	var errs []error
	for _, f := range []struct {
		name     string
		value    time.Duration
		low, top time.Duration
	}{
		{"heartbeat timeout", c.HeartbeatTimeout, 10 * time.Millisecond, time.Minute},
		{"election timeout", c.ElectionTimeout, c.HeartbeatTimeout, time.Minute},
		{"leader lease", c.LeaderLease, 5 * time.Millisecond, c.HeartbeatTimeout},
		{"commit timeout", c.CommitTimeout, time.Millisecond, time.Second},
		{"snapshot interval", c.SnapshotInterval, 5 * time.Millisecond, 24 * time.Hour},
	} {
		if f.value < f.low || f.value > f.top {
			errs = append(errs, fmt.Errorf("%s %s is not in %s..%s", f.name, f.value, f.low, f.top))
		}
	}
	if c.TrailingLogs < 2*c.SnapshotThreshold {
		errs = append(errs, fmt.Errorf("trailing logs %d are below twice the snapshot threshold %d", c.TrailingLogs, c.SnapshotThreshold))
	}
	if c.MaxInFlight < 2<<20 {
		errs = append(errs, fmt.Errorf("max in flight %d is below %d bytes", c.MaxInFlight, 2<<20))
	}
	return errs
}

// checkAdvertised wants a host:port that others can connect to.
func checkAdvertised(what, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return fmt.Errorf("%s %q: %w", what, addr, err)
	case host == "" || port == "" || port == "0":
		return fmt.Errorf("%s %q: want host and port", what, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil && n == 0 || errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s %q: the port is %q, want 1 to 65535", what, addr, port)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("%s %q: others cannot connect to a wildcard address", what, addr)
	}
	return nil
}
