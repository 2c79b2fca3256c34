package server

import (
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// A write at a follower is handed on, is answered from a state that holds it,
// and names the leader's address.
func TestCluster_WriteAtFollower(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		leader, followers := leaderOf(t, newCluster(t, 3, nil))
		for _, f := range followers {
			r := must(f.catalog.CreateDatabase(f.ctx(), &pb.CreateDatabaseRequest{Name: "db_" + f.id}))(t)
			if r.GetDatabase().GetName() != "db_"+f.id {
				t.Errorf("%s answers without the database: %v", f.id, r)
			}
			if got, want := r.GetHeader().GetLeader(), leader.id+":7401"; got.GetAddress() != want || got.GetNodeId() != leader.id {
				t.Errorf("%s hints at %v, want %s", f.id, got, want)
			}
			for _, level := range []*pb.Consistency{
				nil,
				{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST, AtLeast: r.GetHeader().GetRevision(), Incarnation: r.GetHeader().GetIncarnation()},
			} {
				must(leader.catalog.GetDatabase(leader.ctx(), &pb.GetDatabaseRequest{Name: "db_" + f.id, Consistency: level}))(t)
			}
			_, err := f.cluster.RemoveMember(f.ctx(), &pb.RemoveMemberRequest{NodeId: leader.id})
			hint, ok := refusedAs(t, err, catalog.ErrNotLeader).(*api.NotLeaderError)
			if !ok || hint.Leader != leader.id || hint.Addr != leader.id+":7401" {
				t.Errorf("%s hints at %+v", f.id, hint)
			}
		}
	})
}

func TestCluster_Status(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		leader, followers := leaderOf(t, newCluster(t, 3, nil))
		f := followers[0]
		f.await(5*time.Second, "status", func() error {
			_, err := f.cluster.Status(f.ctx(), &pb.StatusRequest{Consistency: &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_LINEARIZABLE}})
			return err
		})
		st := must(f.cluster.Status(f.ctx(), &pb.StatusRequest{}))(t)
		if len(st.GetMembers()) != 3 || st.GetNodeId() != f.id || st.GetHeader().AgeMs == nil {
			t.Errorf("status: %v", st)
		}
		for _, m := range st.GetMembers() {
			if m.GetLeader() != (m.GetMember().GetNodeId() == leader.id) || m.GetRole() != pb.MemberRole_MEMBER_ROLE_VOTER {
				t.Errorf("member: %v", m)
			}
		}
		must(leader.cluster.TransferLeadership(f.ctx(), &pb.TransferLeadershipRequest{NodeId: f.id}))(t)
		f.await(10*time.Second, "leadership", func() error {
			if r := f.node.Status().Role; r != "leader" {
				return refuse(catalog.ErrUnavailable, "%s", r)
			}
			return nil
		})
	})
}

func TestCluster_Refusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		other := &pb.Incarnation{Number: 1, Random: 2}
		for _, tt := range []struct {
			name string
			code catalog.Code
			call func() error
		}{
			{"sequence without a client", catalog.ErrInvalidArgument, func() error {
				_, err := s.kv.Put(s.ctx(), &pb.PutRequest{Key: "k", Client: &pb.ClientRef{Sequence: 1}})
				return err
			}},
			{"unknown client", catalog.ErrSessionExpired, func() error {
				_, err := s.kv.Put(s.ctx(), &pb.PutRequest{Key: "k", Client: &pb.ClientRef{ClientId: 99, Sequence: 1}})
				return err
			}},
			{"no table", catalog.ErrInvalidArgument, func() error {
				_, err := s.catalog.GetTable(s.ctx(), &pb.GetTableRequest{})
				return err
			}},
			{"unknown table", catalog.ErrTableNotExist, func() error {
				_, err := s.catalog.GetTable(s.ctx(), &pb.GetTableRequest{Table: "a.b"})
				return err
			}},
			{"no key", catalog.ErrInvalidArgument, func() error {
				_, err := s.kv.Get(s.ctx(), &pb.GetRequest{})
				return err
			}},
			{"unknown key", catalog.ErrKeyNotExist, func() error {
				_, err := s.kv.Get(s.ctx(), &pb.GetRequest{Key: "k"})
				return err
			}},
			{"unknown level", catalog.ErrInvalidArgument, func() error {
				_, err := s.kv.Get(s.ctx(), &pb.GetRequest{Key: "k", Consistency: &pb.Consistency{Level: 9}})
				return err
			}},
			{"another incarnation", catalog.ErrRestored, func() error {
				_, err := s.kv.Get(s.ctx(), &pb.GetRequest{Key: "k", Consistency: &pb.Consistency{Incarnation: other}})
				return err
			}},
			{"no leases", catalog.ErrInvalidArgument, func() error {
				_, err := s.placement.KeepAlive(s.ctx(), &pb.KeepAliveRequest{})
				return err
			}},
			{"unknown server", catalog.ErrServerNotExist, func() error {
				_, err := s.placement.GetServer(s.ctx(), &pb.GetServerRequest{ServerId: 4})
				return err
			}},
			{"only member", catalog.ErrInvalidArgument, func() error {
				_, err := s.cluster.RemoveMember(s.ctx(), &pb.RemoveMemberRequest{NodeId: s.id})
				return err
			}},
			{"limits of nothing", catalog.ErrInvalidArgument, func() error {
				_, err := s.cluster.SetLimits(s.ctx(), &pb.SetLimitsRequest{})
				return err
			}},
			{"layout of too many", catalog.ErrTooLarge, func() error {
				_, err := s.catalog.GetLayout(s.ctx(), &pb.GetLayoutRequest{Table: "a.b", Names: make([]string, maxLayout+1)})
				return err
			}},
			{"future revision", catalog.ErrUnavailable, func() error {
				level := &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST, AtLeast: 1 << 40}
				_, err := s.kv.Get(t.Context(), &pb.GetRequest{Key: "k", Consistency: level})
				return err
			}},
		} {
			t.Log(tt.name)
			before := must(s.cluster.Status(s.ctx(), &pb.StatusRequest{}))(t).GetCounts()
			refusedAs(t, tt.call(), tt.code)
			if after := must(s.cluster.Status(s.ctx(), &pb.StatusRequest{}))(t).GetCounts(); after.String() != before.String() {
				t.Errorf("%s changed %v to %v", tt.name, before, after)
			}
		}
	})
}

// A wait with a deadline ends before its caller gives up, and says where the node is.
func TestRead_TellsBeforeTheDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		level := &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST, AtLeast: 1 << 40}
		_, err := s.kv.Get(timeout(t, 5*time.Second), &pb.GetRequest{Key: "k", Consistency: level})
		refusedAs(t, err, catalog.ErrUnavailable)
		if !strings.Contains(err.Error(), "revision 1099511627776 is not here yet, this node is at ") {
			t.Errorf("what was waited for is not told: %v", err)
		}
	})
}

// What no state can answer is refused at once, not after the wait for a state.
func TestRead_RefusesBeforeItWaits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		level := &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST, AtLeast: 1 << 40}
		for name, call := range map[string]func() error{
			"key": func() error {
				_, err := s.kv.Get(s.ctx(), &pb.GetRequest{Consistency: level})
				return err
			},
			"database": func() error {
				_, err := s.catalog.GetDatabase(s.ctx(), &pb.GetDatabaseRequest{Name: "a b", Consistency: level})
				return err
			},
			"table": func() error {
				_, err := s.catalog.GetTable(s.ctx(), &pb.GetTableRequest{Table: "shop", Consistency: level})
				return err
			},
			"partition": func() error {
				_, err := s.catalog.GetPartition(s.ctx(), &pb.GetPartitionRequest{Table: "a.b", Consistency: level})
				return err
			},
			"table of a partition": func() error {
				_, err := s.catalog.GetPartition(s.ctx(), &pb.GetPartitionRequest{Name: "x", Consistency: level})
				return err
			},
			"layout": func() error {
				_, err := s.catalog.GetLayout(s.ctx(), &pb.GetLayoutRequest{Table: "shop.a.b", Consistency: level})
				return err
			},
			"tables of a database": func() error {
				_, err := must(s.catalog.ListTables(s.ctx(), &pb.ListTablesRequest{Database: "a b", Consistency: level}))(t).Recv()
				return err
			},
			"partitions of a table": func() error {
				_, err := must(s.catalog.ListPartitions(s.ctx(), &pb.ListPartitionsRequest{Consistency: level}))(t).Recv()
				return err
			},
		} {
			began := time.Now()
			err := call()
			if code := api.CodeOf(api.ErrorFromStatus(status.Convert(err))); code == catalog.Done || code == catalog.ErrUnavailable || time.Since(began) > 0 {
				t.Errorf("%s: %v after %s", name, err, time.Since(began))
			}
		}
	})
}

func TestHealth(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		h := healthpb.NewHealthClient(s.conn)
		for _, name := range []string{"", "stave.v1.Catalog"} {
			if r := must(h.Check(s.ctx(), &healthpb.HealthCheckRequest{Service: name}))(t); r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("%q: %v", name, r)
			}
		}
		if _, err := h.Check(s.ctx(), &healthpb.HealthCheckRequest{Service: "x"}); err == nil {
			t.Error("an unknown service is served")
		}
		w := must(h.Watch(s.ctx(), &healthpb.HealthCheckRequest{}))(t)
		if r := must(w.Recv())(t); r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("watch: %v", r)
		}
	})
}
