package server

import (
	"context"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// maxLeases bounds the leases of one KeepAlive.
const maxLeases = 4096

// placementService answers the calls on tablet servers.
type placementService struct {
	pb.UnimplementedPlacementServer
	s *Server
}

// RegisterServer implements pb.PlacementServer.
func (p *placementService) RegisterServer(ctx context.Context, r *pb.RegisterServerRequest) (*pb.ServerResponse, error) {
	w, err := p.s.write(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &pb.ServerResponse{Header: w.header, Result: w.result}
	if row, ok := w.Server(catalog.ServerID(r.GetServerId())); ok {
		out.Server = api.ServerToProto(row)
	}
	return out, nil
}

// KeepAlive implements pb.PlacementServer. It may be sent again at any time, so
// that it needs no client.
func (p *placementService) KeepAlive(ctx context.Context, r *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error) {
	if n := len(r.GetLeases()); n < 1 || n > maxLeases {
		return nil, refuse(catalog.ErrInvalidArgument, "leases are %d, want 1..%d", n, maxLeases)
	}
	lost, err := p.s.node.KeepAlive(ctx, api.LeasesFromProto(r.GetLeases()))
	if err != nil {
		return nil, err
	}
	st, err := p.s.node.Read(ctx, raftnode.Stale)
	if err != nil {
		return nil, err
	}
	out := &pb.KeepAliveResponse{Header: p.s.header(st)}
	for _, l := range lost {
		out.Lost = append(out.Lost, api.LeasesToProto([]catalog.Lease{l.Lease})...)
	}
	return out, nil
}

// UnregisterServer implements pb.PlacementServer.
func (p *placementService) UnregisterServer(ctx context.Context, r *pb.UnregisterServerRequest) (*pb.WriteResponse, error) {
	return p.s.plainWrite(ctx, r)
}

// AssignPending implements pb.PlacementServer.
func (p *placementService) AssignPending(ctx context.Context, r *pb.AssignPendingRequest) (*pb.WriteResponse, error) {
	return p.s.plainWrite(ctx, r)
}

// TagServers implements pb.PlacementServer.
func (p *placementService) TagServers(ctx context.Context, r *pb.TagServersRequest) (*pb.WriteResponse, error) {
	return p.s.plainWrite(ctx, r)
}

// AdjustISR implements pb.PlacementServer.
func (p *placementService) AdjustISR(ctx context.Context, r *pb.AdjustISRRequest) (*pb.WriteResponse, error) {
	return p.s.plainWrite(ctx, r)
}

// ElectLeaders implements pb.PlacementServer.
func (p *placementService) ElectLeaders(ctx context.Context, r *pb.ElectLeadersRequest) (*pb.WriteResponse, error) {
	return p.s.plainWrite(ctx, r)
}

// Reassign implements pb.PlacementServer.
func (p *placementService) Reassign(ctx context.Context, r *pb.ReassignRequest) (*pb.RebalanceResponse, error) {
	return p.rebalanced(ctx, r)
}

// StartRebalance implements pb.PlacementServer.
func (p *placementService) StartRebalance(ctx context.Context, r *pb.StartRebalanceRequest) (*pb.RebalanceResponse, error) {
	return p.rebalanced(ctx, r)
}

// CancelRebalance implements pb.PlacementServer.
func (p *placementService) CancelRebalance(ctx context.Context, r *pb.CancelRebalanceRequest) (*pb.RebalanceResponse, error) {
	return p.rebalanced(ctx, r)
}

func (p *placementService) rebalanced(ctx context.Context, r api.Request) (*pb.RebalanceResponse, error) {
	w, err := p.s.write(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &pb.RebalanceResponse{Header: w.header, Result: w.result}
	out.Rebalance, out.Phases = api.RebalanceToProto(w.State)
	return out, nil
}

// GetRebalance implements pb.PlacementServer.
func (p *placementService) GetRebalance(ctx context.Context, r *pb.GetRebalanceRequest) (*pb.RebalanceResponse, error) {
	v, err := p.s.read(ctx, r.GetConsistency())
	if err != nil {
		return nil, err
	}
	out := &pb.RebalanceResponse{Header: v.header}
	out.Rebalance, out.Phases = api.RebalanceToProto(v.State)
	return out, nil
}

// PlanRebalance implements pb.PlacementServer. One plan is computed at a time: it
// costs time and memory in the number of buckets.
func (p *placementService) PlanRebalance(ctx context.Context, r *pb.PlanRebalanceRequest) (*pb.PlanRebalanceResponse, error) {
	if n := r.GetMaxMoves(); n < 0 || n > catalog.MaxMoves {
		return nil, refuse(catalog.ErrInvalidArgument, "max_moves %d is not in 0..%d", n, catalog.MaxMoves)
	}
	select {
	case p.s.planning <- struct{}{}:
		defer func() { <-p.s.planning }()
	default:
		return nil, refuse(catalog.ErrBusy, "a plan is being computed already; try again")
	}
	v, err := p.s.read(ctx, r.GetConsistency())
	if err != nil {
		return nil, err
	}
	plan, err := v.PlanRebalance(int(r.GetMaxMoves()))
	if err != nil {
		return nil, err
	}
	out := api.PlanToProto(plan)
	out.Header = v.header
	return out, nil
}

// AckDeletions implements pb.PlacementServer.
func (p *placementService) AckDeletions(ctx context.Context, r *pb.AckDeletionsRequest) (*pb.WriteResponse, error) {
	return p.s.plainWrite(ctx, r)
}

// GetServer implements pb.PlacementServer.
func (p *placementService) GetServer(ctx context.Context, r *pb.GetServerRequest) (*pb.ServerResponse, error) {
	v, err := p.s.read(ctx, r.GetConsistency())
	if err != nil {
		return nil, err
	}
	row, ok := v.Server(catalog.ServerID(r.GetServerId()))
	if !ok {
		return nil, refuse(catalog.ErrServerNotExist, "tablet server %d is not registered", r.GetServerId())
	}
	return &pb.ServerResponse{Header: v.header, Server: api.ServerToProto(row)}, nil
}

// ListServers implements pb.PlacementServer.
func (p *placementService) ListServers(r *pb.ListServersRequest, out grpc.ServerStreamingServer[pb.ListServersResponse]) error {
	v, err := p.s.open(out.Context(), r.GetConsistency())
	if err != nil {
		return err
	}
	list := chunks[*pb.Server]{send: func(rows []*pb.Server) error {
		return out.Send(&pb.ListServersResponse{Header: v.header, Servers: rows})
	}}
	v.Servers(func(row *catalog.Server) bool { return list.add(api.ServerToProto(row)) })
	return list.end()
}
