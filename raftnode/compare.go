package raftnode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/failpoint"
	"github.com/stavedb/stave/snapshots"
)

// divergence is why a node is fenced: its state at a checksum marker is not the
// one that more than half of all voters have.
type divergence struct {
	revision    catalog.Revision
	own, agreed uint64
}

func (d *divergence) err() error {
	return &catalog.Error{Code: catalog.ErrDiverged, Message: d.String()}
}

// String names the revision and both hashes.
func (d *divergence) String() string {
	return fmt.Sprintf("state at revision %d has hash %016x here and %016x at a majority of the voters", d.revision, d.own, d.agreed)
}

// machine is the state machine as raft gets it.
type machine struct {
	*fsm.FSM
	n *Node
	// notRestored is why the last Restore failed: raft does not say it.
	notRestored error
}

// Restore implements raft.FSM. Raft calls it while it opens, and on its goroutine
// for the state machine.
func (m *machine) Restore(source io.ReadCloser) error {
	failpoint.Hit(failpoint.RestoreBegin)
	err := m.FSM.Restore(source)
	m.notRestored = err
	failpoint.Hit(failpoint.RestoreDone)
	return err
}

// cause says why raft did not open.
func (m *machine) cause(err error) error {
	switch restore := m.notRestored; {
	case restore == nil:
		return err
	case errors.Is(restore, snapshots.ErrLevel):
		return fmt.Errorf("%w: %w", ErrOldBuild, restore)
	default:
		return fmt.Errorf("%w: %w", ErrCorrupt, restore)
	}
}

// Apply implements raft.FSM.
func (m *machine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch waits until the entries are on this node's own disk: raft counts the
// leader among those that have an entry as soon as it has stored it, which may be
// before that.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	m.n.stores.HoldUnsynced(logs[len(logs)-1].Index)
	return m.FSM.ApplyBatch(logs)
}

// Snapshot refuses while the node is fenced: the state must not be what it
// starts from next time.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if d := m.n.diverged.Load(); d != nil {
		return nil, d.err()
	}
	return m.FSM.Snapshot()
}

// standsBack reports whether the node must not lead: its disk is in trouble or
// its state differs.
func (n *Node) standsBack() bool { return n.gated.Load() || n.diverged.Load() != nil }

// comparison is what a leader knows of the last markers.
type comparison struct {
	mu sync.Mutex
	// agreed is the last marker, by node, at which the node's hash was the one of
	// a majority of all voters.
	agreed map[string]catalog.Revision
	// done is the last marker that every member answered for.
	done catalog.Revision
	// split says what no majority could decide, empty if nothing is open.
	split string
}

func (c *comparison) agreedAt(node string) catalog.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agreed[node]
}

func (c *comparison) openSplit() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.split
}

// hashAnswer is what a member says of its hash at a marker.
type hashAnswer struct {
	node  string
	voter bool
	hash  uint64
	known bool
	late  bool // the member is past the marker and has forgotten its hash
}

// dutyCompare asks every member for its hash at the last marker until all have
// answered. A missing answer counts for nobody. Who has another hash than more
// than half of all voters is told, and fences itself.
func (n *Node) dutyCompare(ctx context.Context, _ *leadership) error {
	rev := catalog.Revision(n.lastChecksum.Load())
	n.compared.mu.Lock()
	done := n.compared.done >= rev
	n.compared.mu.Unlock()
	e := n.engine.Load()
	if done || rev == 0 {
		return nil
	}
	servers := e.raft.GetConfiguration().Configuration()
	answers := n.askHashes(ctx, servers, rev)
	agreed, ok := majority(answers, len(voters(servers)))
	n.noteHashes(rev, answers, agreed, ok)
	if !ok {
		return nil
	}
	for _, a := range answers {
		if a.known && a.hash != agreed {
			n.tellDiverged(ctx, a, rev, agreed)
		}
	}
	return nil
}

// majority returns the hash that more than half of all voters have.
func majority(answers []hashAnswer, voters int) (uint64, bool) {
	votes := map[uint64]int{}
	for _, a := range answers {
		if a.known && a.voter {
			if votes[a.hash]++; votes[a.hash] > voters/2 {
				return a.hash, true
			}
		}
	}
	return 0, false
}

func (n *Node) askHashes(ctx context.Context, c raft.Configuration, rev catalog.Revision) []hashAnswer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out := make([]hashAnswer, len(c.Servers))
	var wg sync.WaitGroup
	for i, s := range c.Servers {
		out[i] = hashAnswer{node: string(s.ID), voter: s.Suffrage == raft.Voter}
		if out[i].node == n.cfg.ID {
			out[i].hash, out[i].known = n.fsm.HashAt(rev)
			continue
		}
		wg.Go(func() {
			data, err := n.peers.Call(ctx, out[i].node, methodHash, binary.BigEndian.AppendUint64(nil, uint64(rev)))
			switch {
			case err == nil && len(data) == 8:
				out[i].hash, out[i].known = binary.BigEndian.Uint64(data), true
			case err == nil && len(data) == 0:
				out[i].late = true
			}
		})
	}
	wg.Wait()
	return out
}

// noteHashes keeps what was learned. A member that came back behind the marker
// makes a new one due.
func (n *Node) noteHashes(rev catalog.Revision, answers []hashAnswer, agreed uint64, ok bool) {
	c := &n.compared
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agreed == nil {
		c.agreed = map[string]catalog.Revision{}
	}
	all, hashes := true, map[uint64]string{}
	for _, a := range answers {
		all = all && (a.known || a.late)
		if a.late {
			n.markerDue.Store(true)
		}
		if a.known && a.voter {
			hashes[a.hash] = a.node
		}
		if ok && a.known && a.hash == agreed {
			c.agreed[a.node] = rev
		}
	}
	before := c.split
	c.split = ""
	if !ok && len(hashes) > 1 {
		c.split = fmt.Sprintf("voters have %d different states at revision %d and none has a majority", len(hashes), rev)
		if c.split != before {
			n.log.Error("states differ and no majority agrees", "revision", rev, "hashes", len(hashes))
		}
	}
	if all && ok {
		c.done = rev
	}
}

// tellDiverged fences a member, this node included.
func (n *Node) tellDiverged(ctx context.Context, a hashAnswer, rev catalog.Revision, agreed uint64) {
	if a.node == n.cfg.ID {
		n.fence(&divergence{revision: rev, own: a.hash, agreed: agreed})
		return
	}
	n.log.Error("state of a member differs from the majority's", "member", a.node, "revision", rev, "hash", a.hash, "majority_hash", agreed)
	req := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(rev)), agreed)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := n.peers.Call(ctx, a.node, methodFence, req); err != nil {
		n.log.Warn("member was not told that it differs", "member", a.node, "error", err)
	}
}

// fence makes the node serve no reads and no longer stand for election. It still
// votes and acknowledges: its log is not in doubt. A leader hands over first.
// It lasts until the node is opened again, from a snapshot and the log.
func (n *Node) fence(d *divergence) {
	if !n.diverged.CompareAndSwap(nil, d) {
		return
	}
	n.log.Error("state differs from the majority's, node is fenced", "revision", d.revision, "hash", d.own, "majority_hash", d.agreed)
	n.resign()
	n.gateMu.Lock()
	e := n.engine.Load()
	e.trans.SetCandidacy(false)
	n.gateMu.Unlock()
	n.goFunc(func() {
		for e.raft.State() == raft.Leader {
			if err := e.transfer(); err != nil {
				n.log.Warn("fenced leader could not hand over, trying again", "error", err)
			}
			if !n.sleep(time.Second) {
				return
			}
		}
	})
}

func (n *Node) serveHash(_ context.Context, _ string, req []byte) ([]byte, error) {
	if len(req) != 8 {
		return nil, fmt.Errorf("hash request of %d bytes", len(req))
	}
	rev := binary.BigEndian.Uint64(req)
	if at := n.fsm.Index(); at < rev {
		return nil, fmt.Errorf("state is at %d, revision %d is not there yet", at, rev)
	}
	hash, ok := n.fsm.HashAt(catalog.Revision(rev))
	if !ok {
		return nil, nil
	}
	return binary.BigEndian.AppendUint64(nil, hash), nil
}

// serveFence takes the leader's word only for a marker whose own hash differs
// indeed.
func (n *Node) serveFence(_ context.Context, from string, req []byte) ([]byte, error) {
	if len(req) != 16 {
		return nil, fmt.Errorf("fence request of %d bytes", len(req))
	}
	if from != n.Leader() {
		return nil, fmt.Errorf("%s is not the leader", from)
	}
	d := &divergence{revision: catalog.Revision(binary.BigEndian.Uint64(req)), agreed: binary.BigEndian.Uint64(req[8:])}
	var ok bool
	if d.own, ok = n.fsm.HashAt(d.revision); !ok || d.own == d.agreed {
		return nil, fmt.Errorf("revision %d does not differ here", d.revision)
	}
	n.fence(d)
	return nil, nil
}
