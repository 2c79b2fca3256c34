package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/raftnet"
	"github.com/stavedb/stave/snapshots"
)

// Membership changes are made at the leader; elsewhere they fail with
// ErrNotLeader.

func (n *Node) leading() (*engine, *leadership, error) {
	if err := n.usable(); err != nil {
		return nil, nil, err
	}
	l := n.lead.Load()
	if l == nil {
		return nil, nil, n.notLeader()
	}
	return n.engine.Load(), l, nil
}

// AddMember adds a node as non-voter. The node must run at the raft address and
// answer with the id; it begins to take part once it learns of this. Adding a
// member again at its address changes nothing; another address is refused.
func (n *Node) AddMember(ctx context.Context, id, raftAddr string) error {
	e, l, err := n.leading()
	if err != nil {
		return err
	}
	if !validID.MatchString(id) {
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf("node id %q: want 1 to 64 letters, digits, '.', '_' or '-'", id)}
	}
	if err := checkAdvertised("raft address", raftAddr); err != nil {
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: err.Error()}
	}
	if s, ok := server(e, id); ok {
		at, known := n.Resolve(id)
		if known && at == raftAddr {
			return nil
		}
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf("node %s is a member already, as %s at %s, not %s: "+
			"start it with its directory at the new address, or remove it first", id, suffrage(s.Suffrage), at, raftAddr)}
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	a, err := raftnet.AskIdentity(ask, n.cfg.Network, raftAddr, id, raftnet.Question{From: n.cfg.ID, Build: uint32(n.cfg.level)})
	if err != nil {
		return unavailable("node %s does not answer at %s: %s", id, raftAddr, err)
	}
	n.mu.Lock()
	own := n.id.Cluster
	n.mu.Unlock()
	if a.Cluster != "" && a.Cluster != own {
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf("node %s at %s belongs to cluster %s, this is %s", id, raftAddr, a.Cluster, own)}
	}
	announce := catalog.AnnounceMember{NodeID: id, DirectoryID: a.Directory, RaftAddr: raftAddr, Level: n.fsm.State().Cluster().Level}
	if err := n.order(ctx, l, announce); err != nil {
		return err
	}
	return changed(e.await(e.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id), 0, enqueueTimeout)), "add "+id)
}

// PromoteMember makes a non-voter a voter. It must have the log up to where the
// leader was when it was asked.
func (n *Node) PromoteMember(ctx context.Context, id string) error {
	e, _, err := n.leading()
	if err != nil {
		return err
	}
	s, ok := server(e, id)
	switch {
	case !ok:
		return notMember(id)
	case s.Suffrage == raft.Voter:
		return nil
	}
	if m, ok := n.fsm.State().Member(id); !ok || m.Build == "" {
		return &catalog.Error{Code: catalog.ErrUnavailable, Message: "node " + id + " has not announced itself yet"}
	}
	if _, err := n.peers.Call(ctx, id, methodTerm, nil); err != nil {
		return unavailable("node %s does not answer: %s", id, err)
	}
	return changed(e.await(e.raft.AddVoter(raft.ServerID(id), raft.ServerAddress(id), 0, enqueueTimeout)), "promote "+id)
}

// RemoveMember takes a node out of the cluster. Its directory must be emptied
// before it can come back. A leader that is to remove itself hands leadership over
// and returns a *NotLeaderError that names the next one, which can remove it.
func (n *Node) RemoveMember(ctx context.Context, id string) error {
	e, l, err := n.leading()
	if err != nil {
		return err
	}
	if _, ok := server(e, id); !ok {
		return notMember(id)
	}
	if len(e.raft.GetConfiguration().Configuration().Servers) == 1 {
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: "node " + id + " is the only member"}
	}
	if id == n.cfg.ID {
		return n.stepAside(ctx, e, l)
	}
	if err := changed(e.await(e.raft.RemoveServer(raft.ServerID(id), 0, enqueueTimeout)), "remove "+id); err != nil {
		return err
	}
	n.mux.Disconnect(id)
	return n.order(ctx, l, catalog.ForgetMember{NodeID: id})
}

// stepAside hands leadership over, so that the next leader can remove this node.
// It never returns nil.
func (n *Node) stepAside(ctx context.Context, e *engine, l *leadership) error {
	voters := 0
	for _, s := range e.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters == 1 {
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: "node " + n.cfg.ID + " is the only voter: promote another one first"}
	}
	if err := n.TransferLeadership(ctx, ""); err != nil && n.lead.Load() == l {
		return unavailable("node %s leads and cannot hand leadership over before it is removed: %s", n.cfg.ID, err)
	}
	return n.notLeader()
}

// TransferLeadership hands leadership to a voter, or to the one that is furthest
// if id is empty. When it returns nil, raft names that voter as leader and this
// node serves as leader no more; the voter serves once it has opened its term.
func (n *Node) TransferLeadership(ctx context.Context, id string) error {
	e, l, err := n.leading()
	if err != nil {
		return err
	}
	if id == "" {
		if err := changed(e.transfer(), "transfer leadership"); err != nil {
			return err
		}
		return n.handedOver(ctx, e, l, id)
	}
	s, ok := server(e, id)
	switch {
	case !ok:
		return notMember(id)
	case s.Suffrage != raft.Voter:
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: "node " + id + " is not a voter"}
	case id == n.cfg.ID:
		return nil
	}
	if err := changed(e.await(e.raft.LeadershipTransferToServer(s.ID, s.Address)), "transfer leadership to "+id); err != nil {
		return err
	}
	return n.handedOver(ctx, e, l, id)
}

// handedOver waits until a transfer has its result: raft answers as soon as the
// old leader stepped down, and another voter may win the election that follows.
func (n *Node) handedOver(ctx context.Context, e *engine, l *leadership, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*n.cfg.ElectionTimeout)
	defer cancel()
	select {
	case <-l.ended:
	case <-ctx.Done():
		return outcomeUnknown("transfer leadership", ctx.Err())
	}
	ticker := time.NewTicker(n.cfg.ElectionTimeout / 50)
	defer ticker.Stop()
	for {
		switch _, now := e.raft.LeaderWithID(); {
		case now == "":
		case id == "" || string(now) == id:
			return nil
		default:
			return unavailable("transfer leadership to %s: %s was elected", id, now)
		}
		select {
		case <-ticker.C:
		case <-e.gone:
			return ErrClosed
		case <-ctx.Done():
			return outcomeUnknown("transfer leadership", ctx.Err())
		}
	}
}

func server(e *engine, id string) (raft.Server, bool) {
	list := e.raft.GetConfiguration().Configuration().Servers
	i := slices.IndexFunc(list, func(s raft.Server) bool { return string(s.ID) == id })
	if i < 0 {
		return raft.Server{}, false
	}
	return list[i], true
}

func notMember(id string) error {
	return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: "node " + id + " is not a member"}
}

// changed maps what raft says of a configuration change.
func changed(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return &NotLeaderError{}
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return &catalog.Error{Code: catalog.ErrBusy, Message: what + ": raft is busy"}
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrRaftShutdown):
		return outcomeUnknown(what, err)
	default:
		return unavailable("%s: %s", what, err)
	}
}

// Snapshot writes a snapshot of the state that a read of the level returns to w.
// It returns the state it wrote. The context bounds the read, not the writing.
// Without a majority only Stale and AtLeast return: what this node has, which is
// all that is left of a cluster whose other voters are gone. Errors: those of Read,
// and w's.
func (n *Node) Snapshot(ctx context.Context, level Level, w io.Writer) (*catalog.State, error) {
	st, err := n.Read(ctx, level)
	if err != nil {
		return nil, err
	}
	if err := snapshots.Write(w, st, nil); err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	return st, nil
}
