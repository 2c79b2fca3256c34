package raftnode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/msgpack"
	"github.com/stavedb/stave/internal/raftnet"
	"github.com/stavedb/stave/snapshots"
)

// Methods of the peer protocol. Frozen: peer protocol v1.
const (
	methodTerm      = 1 // request: nothing; response: the node's current term
	methodReadIndex = 2 // request: nothing; response: index and incarnation number
	methodForward   = 3 // request: encoded entries; response: a result each
	methodHash      = 4 // request: a revision; response: the state hash at that marker, nothing if it is not kept any more
	methodKeepAlive = 5 // request: leases; response: those that are lost
	methodFence     = 6 // request: a revision and the majority's hash there; response: nothing
	methodClock     = 7 // request: nothing; response: the node's wall clock, Unix milliseconds in 8 bytes
)

// forwardTimeout bounds a forwarded command whose caller gives more time.
const forwardTimeout = 10 * time.Second

func (n *Node) handlePeers() {
	n.peers.Handle(methodTerm, n.serveTerm)
	n.peers.Handle(methodReadIndex, n.serveReadIndex)
	n.peers.Handle(methodForward, n.serveForward)
	n.peers.Handle(methodHash, n.serveHash)
	n.peers.Handle(methodFence, n.serveFence)
	n.peers.Handle(methodKeepAlive, n.serveKeepAlive)
	n.peers.Handle(methodClock, n.serveClock)
}

// serveTerm answers a term probe. A voter that answers T had not moved past T
// when it was asked, so nobody with a later term had its vote.
func (n *Node) serveTerm(context.Context, string, []byte) ([]byte, error) {
	e := n.engine.Load()
	if e == nil {
		return nil, ErrUnavailable
	}
	return binary.BigEndian.AppendUint64(nil, e.raft.CurrentTerm()), nil
}

func (n *Node) serveReadIndex(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	l := n.lead.Load()
	if l == nil {
		return nil, n.notLeader()
	}
	index, err := n.rounds.join(ctx)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(nil, index), nil
}

// maxForwarded bounds the commands of one message.
const maxForwarded = 4096

// serveForward executes commands that another node was given. They are never
// handed on.
func (n *Node) serveForward(ctx context.Context, _ string, req []byte) ([]byte, error) {
	var entries [][]byte
	in := msgpack.NewDecoder(req)
	msgpack.Slice(in, &entries, maxForwarded, (*msgpack.Codec).Blob)
	if err := in.Finish(); err != nil {
		return nil, fmt.Errorf("forwarded commands: %w", err)
	}
	outcomes := n.executeForwarded(ctx, entries)
	results := make([]catalog.Result, len(outcomes))
	for i, o := range outcomes {
		results[i] = o.Result
		if o.Err != nil && o.Result.Code == catalog.Done {
			results[i] = resultOf(o.Err)
		}
	}
	out := msgpack.NewEncoder(nil)
	msgpack.Slice(out, &results, maxForwarded, snapshots.ResultV1)
	return out.Bytes(), out.Finish()
}

func (n *Node) executeForwarded(ctx context.Context, entries [][]byte) []Outcome {
	list := make([]Submission, len(entries))
	var d fsm.Decoder
	for i, data := range entries {
		env, cmd, err := d.Decode(data)
		if err != nil {
			return repeat(len(entries), &catalog.Error{Code: catalog.ErrUnknownCommand, Message: "forwarded command: " + err.Error()})
		}
		list[i] = Submission{Envelope: env, Command: cmd}
	}
	return n.submitLocal(ctx, n.lead.Load(), list)
}

// resultOf carries an error of a node in the form of a result.
func resultOf(err error) catalog.Result {
	var e *catalog.Error
	if !errors.Is(err, ErrOutcomeUnknown) && errors.As(err, &e) {
		return catalog.Result{Code: e.Code, Message: e.Message, Current: e.Current, Limit: e.Limit, Size: e.Size}
	}
	return catalog.Result{Code: codeOf(err), Message: err.Error()}
}

// codeOf finds the code an error stands for; one that has none is unavailable.
func codeOf(err error) catalog.Code {
	var c catalog.Code
	if errors.As(err, &c) {
		return c
	}
	return catalog.ErrUnavailable
}

// forward hands encoded commands to the leader once, in one message.
func (n *Node) forward(ctx context.Context, entries [][]byte) []Outcome {
	leader := n.Leader()
	if leader == "" || leader == n.cfg.ID {
		return repeat(len(entries), n.notLeader())
	}
	c := msgpack.NewEncoder(nil)
	msgpack.Slice(c, &entries, maxForwarded, (*msgpack.Codec).Blob)
	if err := c.Finish(); err != nil {
		return repeat(len(entries), unavailable("forward to %s: %s", leader, err))
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	data, err := n.peers.Call(ctx, leader, methodForward, c.Bytes())
	if err != nil {
		return repeat(len(entries), forwardError(leader, err))
	}
	var results []catalog.Result
	in := msgpack.NewDecoder(data)
	msgpack.Slice(in, &results, maxForwarded, snapshots.ResultV1)
	if err := in.Finish(); err != nil || len(results) != len(entries) {
		return repeat(len(entries), outcomeUnknown("answer of "+leader, fmt.Errorf("%d results for %d commands: %w", len(results), len(entries), err)))
	}
	out := make([]Outcome, len(results))
	for i, r := range results {
		out[i] = n.forwarded(leader, r)
	}
	return out
}

// forwarded turns a leader's answer back into what Submit returns.
func (n *Node) forwarded(leader string, r catalog.Result) Outcome {
	switch r.Code {
	case catalog.ErrNotLeader:
		return Outcome{Err: n.notLeader()}
	case catalog.ErrOutcomeUnknown:
		return Outcome{Err: outcomeUnknown("forward to "+leader, errors.New(r.Message))}
	}
	return Outcome{Result: r, Err: r.Err()}
}

// forwardError tells a command that cannot have arrived from one that may have.
func forwardError(leader string, err error) error {
	var pe *raftnet.PeerError
	var re *raftnet.RemoteError
	switch {
	case errors.As(err, &re):
		return unavailable("forward to %s: %s", leader, re.Message)
	case errors.As(err, &pe) && !pe.MaybeSent, errors.Is(err, raftnet.ErrTooLarge):
		return unavailable("forward to %s: %s", leader, err)
	default:
		return outcomeUnknown("forward to "+leader, err)
	}
}
