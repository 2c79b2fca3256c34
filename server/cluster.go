package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// clusterService answers the calls on the cluster itself.
type clusterService struct {
	pb.UnimplementedClusterServer
	s *Server
}

// Status implements pb.ClusterServer. Without a level it shows what this node
// has, so that it answers while there is no leader.
func (c *clusterService) Status(ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error) {
	want := r.GetConsistency()
	if want.GetLevel() == pb.ConsistencyLevel_CONSISTENCY_LEVEL_UNSPECIFIED {
		want = &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE, AtLeast: want.GetAtLeast(), Incarnation: want.GetIncarnation()}
	}
	v, err := c.s.read(ctx, want)
	if err != nil {
		return nil, err
	}
	return c.s.clusterStatus(v), nil
}

func (s *Server) clusterStatus(v view) *pb.StatusResponse {
	st := s.node.Status()
	cl, n := v.Cluster(), v.Counts()
	out := &pb.StatusResponse{
		Header: v.header, NodeId: st.ID, Cluster: api.ClusterToProto(&cl), CommitIndex: st.CommitIndex, AppliedIndex: st.AppliedIndex,
		Counts: &pb.StateCounts{
			Databases: uint64(n.Databases), Tables: uint64(n.Tables), Partitions: uint64(n.Partitions), Servers: uint64(n.Servers),
			Clients: uint64(n.Clients), Keys: uint64(n.Keys), Unassigned: uint64(n.Unassigned),
		},
	}
	for _, h := range st.Health {
		out.Conditions = append(out.Conditions, h.Code+": "+h.Message)
	}
	for _, m := range st.Members {
		out.Members = append(out.Members, memberStatus(v, st, m))
	}
	return out
}

// memberStatus says of another node only what this one knows.
func memberStatus(v view, st raftnode.Status, m raftnode.MemberStatus) *pb.MemberStatus {
	out := &pb.MemberStatus{Member: &pb.Member{NodeId: m.ID, RaftAddress: m.RaftAddr}, Leader: m.Leader, Role: pb.MemberRole_MEMBER_ROLE_NON_VOTER}
	if row, ok := v.Member(m.ID); ok {
		out.Member = api.MemberToProto(row)
	}
	if m.Suffrage == "voter" {
		out.Role = pb.MemberRole_MEMBER_ROLE_VOTER
	}
	if m.ID == st.ID {
		out.Reachable, out.AppliedRevision, out.LastContactMs = proto.Bool(true), proto.Uint64(uint64(st.Revision)), proto.Uint64(0)
	}
	return out
}

// RegisterClient implements pb.ClusterServer.
func (c *clusterService) RegisterClient(ctx context.Context, r *pb.RegisterClientRequest) (*pb.RegisterClientResponse, error) {
	w, err := c.s.submit(ctx, catalog.Envelope{}, catalog.RegisterClient{Name: r.GetName(), TTL: catalog.Millis(r.GetTtlMs())})
	if err != nil {
		return nil, err
	}
	id, ok := w.firstID()
	if !ok {
		return nil, refuse(catalog.ErrUnknownServerError, "the registration gave no client id")
	}
	return &pb.RegisterClientResponse{Header: w.header, ClientId: id}, nil
}

// SetLimits implements pb.ClusterServer.
func (c *clusterService) SetLimits(ctx context.Context, r *pb.SetLimitsRequest) (*pb.WriteResponse, error) {
	return c.s.plainWrite(ctx, r)
}
