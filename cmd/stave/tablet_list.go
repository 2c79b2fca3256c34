package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

// tabletServer is the JSON of a tablet server with what is derived from other
// rows of the same state; absent where those were not read.
type tabletServer struct {
	api.Server
	// Leaders and Replicas count buckets.
	Leaders  *int `json:"leaders,omitempty"`
	Replicas *int `json:"replicas,omitempty"`
	// LeaseAgeMS is how long ago, on the lease clock, the replicated state saw
	// the last renewal.
	LeaseAgeMS *int64 `json:"lease_age_ms,omitempty"`
}

func (a *app) showServers(v any, list ...tabletServer) error {
	g := newGrid("SERVER", "STATE", "LEADERS", "REPLICAS", "LEASE AGE", "TTL", "TAG", "LISTENERS", "RACK", "INCARNATION", "DIRECTORY", "REVISION")
	for _, s := range list {
		age := ""
		if s.LeaseAgeMS != nil {
			age = millis(*s.LeaseAgeMS).String()
		}
		g.add(s.ServerID, serverState(s.Server), orDash(s.Leaders), orDash(s.Replicas), age, millis(s.TTLMS), s.Tag,
			join(s.Listeners), s.Rack, s.Incarnation, s.DirectoryID, s.Revision)
	}
	return a.show(v, g)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func serverState(s api.Server) string {
	switch {
	case !s.Live:
		return "expired"
	case s.ShuttingDown:
		return "draining"
	}
	return "live"
}

func (a *app) tabletList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all tablet servers with the buckets they hold", Args: exactArgs(0),
		Long: `List all tablet servers with the buckets they hold and lead, from one state. The lease
age counts from the last renewal that was replicated; leaders keep fresher ones in
memory. With --consistency stale or at-least only the records are read, and nothing
is counted.`,
		Example: "  stave tablet list",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				read := s.countedServers
				if a.read() != nil {
					read = func(ctx context.Context) ([]tabletServer, error) { return s.plainServers(ctx, a.read()) }
				}
				list, err := read(ctx)
				if err != nil {
					return err
				}
				return a.showServers(list, list...)
			})
		},
	}
}

// plainServers reads the records alone.
func (s *session) plainServers(ctx context.Context, read *pb.Consistency) ([]tabletServer, error) {
	chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListServersResponse], error) {
		return s.placement.ListServers(ctx, &pb.ListServersRequest{Consistency: read})
	})
	list := []tabletServer{}
	for _, r := range chunks {
		for _, v := range r.GetServers() {
			list = append(list, tabletServer{Server: api.ServerJSON(v)})
		}
	}
	return list, err
}

// countedServers reads records and placements from one linearizable state: that
// with which a watch begins.
func (s *session) countedServers(ctx context.Context) ([]tabletServer, error) {
	w, err := s.Watch(ctx, client.WatchOptions{Snapshot: true, Filter: client.WatchFilter{Kinds: []catalog.ObjectKind{
		catalog.ObjectCluster, catalog.ObjectTable, catalog.ObjectPartition, catalog.ObjectServer,
	}}})
	if err != nil {
		return nil, err
	}
	defer w.Close() //nolint:errcheck // it only waits
	for {
		b, err := w.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b.Snapshot {
			return countServers(b.Objects), nil
		}
	}
}

func countServers(rows []*pb.Object) []tabletServer {
	leaders, replicas := map[int32]int{}, map[int32]int{}
	count := func(p *pb.Assignment) {
		for _, b := range p.GetBuckets() {
			if b.Leader != nil {
				leaders[b.GetLeader()]++
			}
			for _, id := range b.GetReplicas() {
				replicas[id]++
			}
		}
	}
	var lease int64
	var servers []*pb.Server
	for _, row := range rows {
		count(row.GetTable().GetAssignment())
		count(row.GetPartition().GetAssignment())
		if c := row.GetCluster(); c != nil {
			lease = c.GetLeaseMs()
		}
		if v := row.GetServer(); v != nil {
			servers = append(servers, v)
		}
	}
	out := []tabletServer{}
	for _, v := range servers {
		led, held, age := leaders[v.GetServerId()], replicas[v.GetServerId()], lease-v.GetRenewedMs()
		out = append(out, tabletServer{Server: api.ServerJSON(v), Leaders: &led, Replicas: &held, LeaseAgeMS: &age})
	}
	return out
}
