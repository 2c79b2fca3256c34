package server

import (
	"context"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/raftnode"
)

// AddMember implements pb.ClusterServer.
func (c *clusterService) AddMember(ctx context.Context, r *pb.AddMemberRequest) (*pb.StatusResponse, error) {
	was := c.suffrage(r.GetNodeId())
	return c.changed(ctx, was == "", c.s.node.AddMember(ctx, r.GetNodeId(), r.GetRaftAddress()))
}

// PromoteMember implements pb.ClusterServer.
func (c *clusterService) PromoteMember(ctx context.Context, r *pb.PromoteMemberRequest) (*pb.StatusResponse, error) {
	was := c.suffrage(r.GetNodeId())
	return c.changed(ctx, was != "voter", c.s.node.PromoteMember(ctx, r.GetNodeId()))
}

// suffrage is what a node is in this node's configuration, empty if it is no
// member. At the leader nothing is newer.
func (c *clusterService) suffrage(id string) string {
	for _, m := range c.s.node.Status().Members {
		if m.ID == id {
			return m.Suffrage
		}
	}
	return ""
}

// RemoveMember implements pb.ClusterServer.
func (c *clusterService) RemoveMember(ctx context.Context, r *pb.RemoveMemberRequest) (*pb.StatusResponse, error) {
	return c.changed(ctx, true, c.s.node.RemoveMember(ctx, r.GetNodeId()))
}

// TransferLeadership implements pb.ClusterServer.
func (c *clusterService) TransferLeadership(ctx context.Context, r *pb.TransferLeadershipRequest) (*pb.StatusResponse, error) {
	return c.changed(ctx, r.GetNodeId() != c.s.id, c.s.node.TransferLeadership(ctx, r.GetNodeId()))
}

// changed answers a change of the membership, which may have changed nothing, with
// the status after it. The state is this node's: leadership may have moved away.
func (c *clusterService) changed(ctx context.Context, did bool, err error) (*pb.StatusResponse, error) {
	if err != nil {
		return nil, err
	}
	st, err := c.s.node.Read(ctx, raftnode.Stale)
	if err != nil {
		return nil, err
	}
	out := c.s.clusterStatus(view{State: st, header: c.s.header(st)})
	out.Changed = &did
	return out, nil
}
