package server

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// readyWait is how long a probe waits for the commit index it found.
const readyWait = time.Second

// ready reports why the node does not serve yet: it has not applied what was
// known to be committed when it was asked, or knows no leader.
func (s *Server) ready(ctx context.Context) error {
	st := s.node.Status()
	switch {
	case s.isClosing():
		return fmt.Errorf("node %s is being closed", s.id)
	case s.node.Err() != nil:
		return fmt.Errorf("node %s has ended: %w", s.id, s.node.Err())
	case len(st.Health) > 0 && !s.node.Ready():
		return fmt.Errorf("node %s: %s: %s", s.id, st.Health[0].Code, st.Health[0].Message)
	case st.Leader == "":
		return fmt.Errorf("node %s knows no leader", s.id)
	case st.Leader == s.id && st.Role != "leader":
		return fmt.Errorf("node %s was elected and does not lead yet", s.id)
	case s.node.Ready():
		return nil
	}
	// While commands come in, the state is always a little behind: it must reach
	// what was committed at the probe, not what is committed now.
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	if _, err := s.node.Read(ctx, raftnode.AtLeast(catalog.Revision(st.CommitIndex))); err != nil && !s.node.Ready() {
		return fmt.Errorf("node %s has applied index %d, %d is committed", s.id, s.node.Status().AppliedIndex, st.CommitIndex)
	}
	return nil
}

// healthService implements the health protocol of grpc. The empty name and the
// names of the services share one answer.
type healthService struct {
	healthpb.UnimplementedHealthServer
	s *Server
}

func known(service string) bool {
	switch service {
	case "", pb.Catalog_ServiceDesc.ServiceName, pb.Placement_ServiceDesc.ServiceName, pb.KV_ServiceDesc.ServiceName,
		pb.Watch_ServiceDesc.ServiceName, pb.Cluster_ServiceDesc.ServiceName:
		return true
	}
	return false
}

func (h *healthService) now(ctx context.Context) healthpb.HealthCheckResponse_ServingStatus {
	if h.s.ready(ctx) != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}

// Check implements healthpb.HealthServer.
func (h *healthService) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !known(r.GetService()) {
		return nil, status.Errorf(codes.NotFound, "service %q is not served here", r.GetService())
	}
	return &healthpb.HealthCheckResponse{Status: h.now(ctx)}, nil
}

// healthEvery is how often a health watch looks.
const healthEvery = 500 * time.Millisecond

// Watch implements healthpb.HealthServer: it sends every change of the answer.
func (h *healthService) Watch(r *healthpb.HealthCheckRequest, out grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	t := time.NewTicker(healthEvery)
	defer t.Stop()
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		cur := healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		if known(r.GetService()) {
			cur = h.now(out.Context())
		}
		if cur != last {
			if err := out.Send(&healthpb.HealthCheckResponse{Status: cur}); err != nil {
				return err
			}
			last = cur
		}
		select {
		case <-t.C:
		case <-out.Context().Done():
			return out.Context().Err()
		case <-h.s.closing:
			return closingError()
		}
	}
}
