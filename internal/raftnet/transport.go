package raftnet

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// View is what a node's raft instance is at a moment. It is called for
// heartbeats that wait, on the goroutine that feeds raft, and must not block:
// raft's own State, CurrentTerm and LeaderWithID do not. The term must be read
// after the state and before the leader.
type View func() (follower bool, term uint64, leader string)

// TransportConfig says how raft's messages travel.
type TransportConfig struct {
	// Mux carries the connections. Required.
	Mux *Mux
	// Logger gets what raft's transport logs. Default: nothing is logged.
	Logger hclog.Logger
	// Timeout bounds a message other than a snapshot, connecting included.
	// Default: 2 s.
	Timeout time.Duration
	// MaxPool is how many idle connections to one node are kept. Default: 3.
	MaxPool int
	// MaxAppend is how many bytes of entries one append carries at most, except
	// that one entry always travels. Default: 8 MiB. Below Raft's own batch size
	// it slows a follower that catches up; above MaxMessage nothing gets through.
	MaxAppend int
	// MaxMessage bounds one received message, in bytes. Default: 32 MiB.
	MaxMessage int64
	// BusyAfter is how long raft may work on one message before heartbeats are
	// answered on its behalf. Default: 20 ms.
	BusyAfter time.Duration
	// Covered reports whether raft has applied all of a snapshot that ends at an
	// index and term, and has the same entry there. Such a snapshot, from the
	// leader raft follows, is acknowledged and not installed: it comes late, and
	// installing it would throw away what was acknowledged behind it. It is called
	// like BeforeSnapshot. Default: never.
	Covered func(index, term uint64) bool
	// Synced returns the part of an index up to which the log is on the disk; no
	// append tells a higher commit index. Default: all of it.
	Synced func(index uint64) uint64
	// AwaitSynced waits until all that raft has in its log is on the disk. It is
	// called before appends and snapshots are acknowledged, if Synced says that
	// something is missing. Default: returns at once.
	AwaitSynced func(context.Context) error
	// BeforeSnapshot is called before raft is given a snapshot to install, and
	// AfterSnapshot when raft has answered, before the answer is sent. Both run on
	// the goroutine that feeds raft: they must return soon and must not close the
	// transport or raft themselves. Default: nothing is called.
	BeforeSnapshot func(index, term uint64)
	AfterSnapshot  func(index, term uint64, installed bool)
}

// withDefaults returns c with every zero field set.
func (c TransportConfig) withDefaults() TransportConfig {
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Second
	}
	if c.MaxPool <= 0 {
		c.MaxPool = 3
	}
	if c.MaxAppend <= 0 {
		c.MaxAppend = 8 << 20
	}
	if c.BusyAfter <= 0 {
		c.BusyAfter = 20 * time.Millisecond
	}
	if c.Covered == nil {
		c.Covered = func(uint64, uint64) bool { return false }
	}
	if c.Synced == nil {
		c.Synced = func(index uint64) uint64 { return index }
	}
	if c.AwaitSynced == nil {
		c.AwaitSynced = func(context.Context) error { return nil }
	}
	if c.BeforeSnapshot == nil {
		c.BeforeSnapshot = func(uint64, uint64) {}
	}
	if c.AfterSnapshot == nil {
		c.AfterSnapshot = func(uint64, uint64, bool) {}
	}
	return c
}

// Transport is raft's transport over a Mux, with the repairs that doc.go lists.
// It serves one raft instance, which closes it on shutdown; the next instance
// gets a new Transport over the same Mux.
//
// It implements raft.Transport, raft.WithPreVote and raft.WithClose, which is
// every optional interface that raft's network transport has.
type Transport struct {
	cfg   TransportConfig
	layer *RaftLayer
	inner *raft.NetworkTransport
	view  atomic.Pointer[View]
	gated atomic.Bool
	muted atomic.Bool
	held  atomic.Bool

	toRaft chan raft.RPC
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	once   sync.Once
	wg     sync.WaitGroup // the feed
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// NewTransport starts a transport. The caller, or the raft instance it is given
// to, must Close it.
func NewTransport(cfg TransportConfig) *Transport {
	cfg = cfg.withDefaults()
	t := &Transport{cfg: cfg, layer: cfg.Mux.RaftLayer(cfg.MaxMessage), toRaft: make(chan raft.RPC)}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.inner = raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: t.layer, MaxPool: cfg.MaxPool, Timeout: cfg.Timeout, Logger: cfg.Logger,
	})
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		newFeed(t).run()
	}()
	return t
}

// SetView tells the transport how to look at the raft instance. Until then no
// heartbeat is answered on its behalf.
func (t *Transport) SetView(v View) { t.view.Store(&v) }

// SetGate closes or opens the way out for everything that raft sends of its own
// accord; answers still leave. When SetGate(true) returns, no message that a
// call had not handed to the network leaves any more, pipelines included, and
// until SetGate(false) every call fails at once with ErrGated.
func (t *Transport) SetGate(closed bool) {
	t.gated.Store(closed)
	t.layer.setGate(closed)
}

// Gated reports whether the gate is closed.
func (t *Transport) Gated() bool { return t.gated.Load() }

// SetCandidacy forbids or allows the node to stand for election: its requests
// for votes and pre-votes fail at once with ErrNoCandidate, and a leader's call
// to start an election is refused. Everything else goes on: the node votes, acknowledges and, if it
// leads, replicates. A closed gate forbids candidacy too.
func (t *Transport) SetCandidacy(allowed bool) { t.muted.Store(!allowed) }

// Hold makes the transport hand nothing more to raft, for good: what arrives
// waits until Close. An owner that is about to replace the raft instance calls
// it from AfterSnapshot, so that the old instance cannot answer what the next
// one would answer otherwise. The answer to the snapshot itself is still sent.
func (t *Transport) Hold() { t.held.Store(true) }

// silent reports whether the node must not become a candidate.
func (t *Transport) silent() bool { return t.gated.Load() || t.muted.Load() }

// Close closes every raft connection and ends the transport's goroutines.
func (t *Transport) Close() error {
	var err error
	t.once.Do(func() {
		t.stop()
		err = t.inner.Close()
		t.inner.CloseStreams()
	})
	t.wg.Wait()
	return err
}

// Consumer returns what raft's main goroutine takes messages from.
func (t *Transport) Consumer() <-chan raft.RPC { return t.toRaft }

// LocalAddr returns this node's id.
func (t *Transport) LocalAddr() raft.ServerAddress { return t.inner.LocalAddr() }

// EncodePeer returns the id of a node as bytes.
func (t *Transport) EncodePeer(id raft.ServerID, addr raft.ServerAddress) []byte {
	return t.inner.EncodePeer(id, addr)
}

// DecodePeer is the inverse of EncodePeer.
func (t *Transport) DecodePeer(b []byte) raft.ServerAddress { return t.inner.DecodePeer(b) }

// SetHeartbeatHandler does nothing: the handler would change term and role
// beside raft's main goroutine, which may at that moment be storing a client's
// entry as leader of the old term.
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// gate runs a call unless the gate is closed, and says so if it was closed
// meanwhile.
func (t *Transport) gate(call func() error) error {
	if t.gated.Load() {
		return ErrGated
	}
	err := call()
	if err != nil && t.gated.Load() {
		return fmt.Errorf("%w: %w", ErrGated, err)
	}
	return err
}

// prepare shortens an append to MaxAppend, in place, and tells a commit index only
// for what this node has on its disk: raft counts the leader itself when it has
// stored an entry, which may be before that.
func (t *Transport) prepare(args *raft.AppendEntriesRequest) {
	trim(args, t.cfg.MaxAppend)
	args.LeaderCommitIndex = t.cfg.Synced(args.LeaderCommitIndex)
}

// AppendEntries sends one append, see prepare.
func (t *Transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	return t.gate(func() error {
		t.prepare(args)
		return t.inner.AppendEntries(id, to, args, resp)
	})
}

// RequestVote sends a vote request.
func (t *Transport) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if t.muted.Load() {
		return ErrNoCandidate
	}
	return t.gate(func() error { return t.inner.RequestVote(id, to, args, resp) })
}

// RequestPreVote sends a pre-vote request.
func (t *Transport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if t.muted.Load() {
		return ErrNoCandidate
	}
	return t.gate(func() error { return t.inner.RequestPreVote(id, to, args, resp) })
}

// InstallSnapshot streams a snapshot. It fails when no byte moves for five
// seconds, and at the latest after Timeout per 256 KiB of it.
func (t *Transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return t.gate(func() error { return t.inner.InstallSnapshot(id, to, args, resp, data) })
}

// TimeoutNow asks a node to start an election.
func (t *Transport) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.gate(func() error { return t.inner.TimeoutNow(id, to, args, resp) })
}

// AppendEntriesPipeline opens a connection on which appends follow each other
// without waiting for answers.
func (t *Transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	var p raft.AppendPipeline
	err := t.gate(func() (err error) {
		p, err = t.inner.AppendEntriesPipeline(id, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newPipeline(p, t), nil
}
