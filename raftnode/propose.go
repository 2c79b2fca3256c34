package raftnode

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
)

// Submit makes one attempt to have a command executed, at this node if it
// leads, else once at the leader unless Config.NoForward. env carries client,
// sequence, ack, fence and actor; the clocks are the leader's.
//
// A refusal comes as the error, an *catalog.Error, beside the result. Other
// errors: ErrNotLeader, ErrBusy and ErrUnavailable say that the command never
// entered the log; ErrOutcomeUnknown, also when ctx ends first, that it may
// have. With a registered client the same sequence can then be submitted again.
func (n *Node) Submit(ctx context.Context, env catalog.Envelope, cmd catalog.Command) (catalog.Result, error) {
	if err := n.usable(); err != nil {
		return catalog.Result{}, err
	}
	if l := n.lead.Load(); l != nil {
		p, err := n.begin(l, env, cmd)
		if err != nil {
			return catalog.Result{}, err
		}
		return p.wait(ctx)
	}
	if n.cfg.NoForward {
		return catalog.Result{}, n.notLeader()
	}
	entry, err := fsm.AppendEntry(nil, env, cmd)
	if err != nil {
		return catalog.Result{}, err
	}
	out := n.forward(ctx, [][]byte{entry})
	return out[0].Result, out[0].Err
}

// Submission is one command of SubmitAll.
type Submission struct {
	Envelope catalog.Envelope
	Command  catalog.Command
}

// Outcome is what became of a submission, as Submit returns it.
type Outcome struct {
	Result catalog.Result
	Err    error
}

// SubmitAll submits commands together, in order, so that they share the log's
// writes and, from a follower, one message to the leader. The first that ends
// with ErrNotLeader, ErrBusy, ErrUnavailable or ErrOutcomeUnknown when it is
// handed over ends it: later ones are not proposed and get that error.
func (n *Node) SubmitAll(ctx context.Context, list []Submission) []Outcome {
	if l := n.lead.Load(); l != nil || n.cfg.NoForward {
		return n.submitLocal(ctx, l, list)
	}
	if err := n.usable(); err != nil {
		return repeat(len(list), err)
	}
	return n.forwardAll(ctx, list)
}

// forwardAll hands over what can become an entry; the rest is refused one by
// one, as the leader would.
func (n *Node) forwardAll(ctx context.Context, list []Submission) []Outcome {
	out := make([]Outcome, len(list))
	entries := make([][]byte, 0, len(list))
	places := make([]int, 0, len(list))
	for i := range list {
		entry, err := fsm.AppendEntry(nil, list[i].Envelope, list[i].Command)
		if err != nil {
			out[i].Err = err
			continue
		}
		entries, places = append(entries, entry), append(places, i)
	}
	if len(entries) == 0 {
		return out
	}
	for i, o := range n.forward(ctx, entries) {
		out[places[i]] = o
	}
	return out
}

// submitLocal proposes at this node and waits for all.
func (n *Node) submitLocal(ctx context.Context, l *leadership, list []Submission) []Outcome {
	if l == nil {
		return repeat(len(list), n.notLeader())
	}
	out := make([]Outcome, len(list))
	waiting := make([]*pending, len(list))
	for i := range list {
		var err error
		if waiting[i], err = n.begin(l, list[i].Envelope, list[i].Command); err != nil {
			out[i].Err = err
			if endsStream(err) {
				copy(out[i:], repeat(len(list)-i, err))
				break
			}
		}
	}
	for i, p := range waiting {
		if p != nil {
			out[i].Result, out[i].Err = p.wait(ctx)
		}
	}
	return out
}

func repeat(n int, err error) []Outcome {
	out := make([]Outcome, n)
	for i := range out {
		out[i].Err = err
	}
	return out
}

// endsStream reports whether later commands of a stream must not be proposed.
func endsStream(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, ErrBusy) || errors.Is(err, ErrOutcomeUnknown) || errors.Is(err, ErrUnavailable)
}

// pending is a command on its way through this node's raft.
type pending struct {
	n    *Node
	e    *engine
	l    *leadership // it was proposed under
	kind catalog.Kind
	p    *proposal
}

// begin proposes at this node, which leads.
func (n *Node) begin(l *leadership, env catalog.Envelope, cmd catalog.Command) (*pending, error) {
	if err := n.judge(l, env, cmd); err != nil {
		return nil, err
	}
	entry, err := fsm.AppendEntry(nil, n.envelope(l, env), cmd)
	if err != nil {
		return nil, err
	}
	e := n.engine.Load()
	p, err := e.propose(entry, n.cfg.MaxInFlight)
	if errors.Is(err, ErrBusy) {
		return nil, err
	}
	if err != nil {
		return nil, n.notLeader()
	}
	return &pending{n: n, e: e, l: l, kind: cmd.Kind(), p: p}, nil
}

// wait returns the outcome, or ErrOutcomeUnknown when ctx ends first, or when the
// node stopped leading and raft, which may hang in the disk, does not say what
// became of the command. A caller can then ask the next leader.
func (p *pending) wait(ctx context.Context) (catalog.Result, error) {
	select {
	case <-p.p.done:
		return p.settled()
	case <-p.l.ended:
		return p.waitEnded(ctx)
	case <-p.e.gone:
		return catalog.Result{}, outcomeUnknown("propose "+p.kind.String(), ErrClosed)
	case <-ctx.Done():
		return catalog.Result{}, outcomeUnknown("propose "+p.kind.String(), context.Cause(ctx))
	}
}

func (p *pending) waitEnded(ctx context.Context) (catalog.Result, error) {
	timer := time.NewTimer(answerTimeout)
	defer timer.Stop()
	select {
	case <-p.p.done:
		return p.settled()
	case <-timer.C:
	case <-p.e.gone:
	case <-ctx.Done():
	}
	return catalog.Result{}, outcomeUnknown("propose "+p.kind.String(), errors.New("the node leads no more"))
}

// settled is where raft's vocabulary stops; no fate is guessed.
func (p *pending) settled() (catalog.Result, error) {
	switch err := p.p.err; {
	case err == nil:
		return *p.p.result, p.p.result.Err()
	case errors.Is(err, raft.ErrNotLeader):
		return catalog.Result{}, p.n.notLeader() // never entered the log: safe to retry elsewhere
	case errors.Is(err, raft.ErrLeadershipTransferInProgress):
		p.n.transferStuck(p.e)
		return catalog.Result{}, p.n.notLeader() // as above
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return catalog.Result{}, &catalog.Error{Code: catalog.ErrBusy, Message: "raft took no command for " + enqueueTimeout.String()}
	default:
		return catalog.Result{}, outcomeUnknown("propose "+p.kind.String(), err)
	}
}

// notLeader names the leader as far as it is known.
func (n *Node) notLeader() error {
	id := n.Leader()
	if id == n.cfg.ID {
		id = ""
	}
	e := &NotLeaderError{Leader: id}
	if m, ok := n.fsm.State().Member(id); ok {
		e.APIAddr = m.APIAddr
	}
	return e
}

// Leader returns the id of the node that leads, as far as this one knows; empty
// if none is known.
func (n *Node) Leader() string {
	e := n.engine.Load()
	if e == nil {
		return ""
	}
	_, id := e.raft.LeaderWithID()
	return string(id)
}
