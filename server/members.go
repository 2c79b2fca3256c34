package server

import (
	"context"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/raftnode"
)

// AddMember implements pb.ClusterServer.
func (c *clusterService) AddMember(ctx context.Context, r *pb.AddMemberRequest) (*pb.StatusResponse, error) {
	if c.isMemberAt(r.GetNodeId(), r.GetRaftAddress()) {
		return c.changed(ctx, nil)
	}
	return c.changed(ctx, c.s.node.AddMember(ctx, r.GetNodeId(), r.GetRaftAddress()))
}

// isMemberAt reports whether adding a node changes nothing, at the leader.
func (c *clusterService) isMemberAt(id, addr string) bool {
	st := c.s.node.Status()
	if st.Role != "leader" || addr == "" {
		return false
	}
	for _, m := range st.Members {
		if m.ID == id {
			return m.RaftAddr == addr
		}
	}
	return false
}

// PromoteMember implements pb.ClusterServer.
func (c *clusterService) PromoteMember(ctx context.Context, r *pb.PromoteMemberRequest) (*pb.StatusResponse, error) {
	return c.changed(ctx, c.s.node.PromoteMember(ctx, r.GetNodeId()))
}

// RemoveMember implements pb.ClusterServer.
func (c *clusterService) RemoveMember(ctx context.Context, r *pb.RemoveMemberRequest) (*pb.StatusResponse, error) {
	return c.changed(ctx, c.s.node.RemoveMember(ctx, r.GetNodeId()))
}

// TransferLeadership implements pb.ClusterServer.
func (c *clusterService) TransferLeadership(ctx context.Context, r *pb.TransferLeadershipRequest) (*pb.StatusResponse, error) {
	return c.changed(ctx, c.s.node.TransferLeadership(ctx, r.GetNodeId()))
}

// changed answers a change of the membership with the status after it. The
// state is this node's: leadership may have moved away.
func (c *clusterService) changed(ctx context.Context, err error) (*pb.StatusResponse, error) {
	if err != nil {
		return nil, err
	}
	st, err := c.s.node.Read(ctx, raftnode.Stale)
	if err != nil {
		return nil, err
	}
	return c.s.clusterStatus(view{State: st, header: c.s.header(st)}), nil
}
