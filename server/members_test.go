package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// What is as asked for already is answered with changed = false, and a member is
// not added at a second address.
func TestMembers_AlreadySo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		leader, followers := leaderOf(t, newCluster(t, 3, nil))
		f := followers[0]
		for name, call := range map[string]func() (*pb.StatusResponse, error){
			"add": func() (*pb.StatusResponse, error) {
				return leader.cluster.AddMember(f.ctx(), &pb.AddMemberRequest{NodeId: f.id, RaftAddress: f.id + ":7001"})
			},
			"promote": func() (*pb.StatusResponse, error) {
				return leader.cluster.PromoteMember(f.ctx(), &pb.PromoteMemberRequest{NodeId: f.id})
			},
			"transfer": func() (*pb.StatusResponse, error) {
				return leader.cluster.TransferLeadership(f.ctx(), &pb.TransferLeadershipRequest{NodeId: leader.id})
			},
		} {
			r := must(call())(t)
			if r.Changed == nil || r.GetChanged() || len(r.GetMembers()) != 3 {
				t.Errorf("%s: %v", name, r)
			}
		}
		for _, addr := range []string{f.id + ":7002", "h:1"} {
			_, err := leader.cluster.AddMember(f.ctx(), &pb.AddMemberRequest{NodeId: f.id, RaftAddress: addr})
			refusedAs(t, err, catalog.ErrInvalidArgument)
			for _, text := range []string{f.id + " is a member already, as voter at " + f.id + ":7001", "not " + addr} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("at %s: %v does not say %q", addr, err, text)
				}
			}
		}
		if r := must(leader.cluster.Status(f.ctx(), &pb.StatusRequest{}))(t); r.Changed != nil || len(r.GetMembers()) != 3 {
			t.Errorf("status: %v", r)
		}
		r := must(leader.cluster.TransferLeadership(f.ctx(), &pb.TransferLeadershipRequest{NodeId: f.id}))(t)
		if r.Changed == nil || !r.GetChanged() {
			t.Errorf("a transfer: %v", r)
		}
	})
}

// A leader that is to be removed hands leadership over and names the next leader,
// which removes it; whoever follows the hints needs nothing else.
func TestMembers_RemoveLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newCluster(t, 3, nil)
		leader, followers := leaderOf(t, nodes)
		_, err := leader.cluster.RemoveMember(leader.ctx(), &pb.RemoveMemberRequest{NodeId: leader.id})
		refusedAs(t, err, catalog.ErrNotLeader)
		asked := leader
		leader.await(20*time.Second, "removal", func() error {
			r, err := asked.cluster.RemoveMember(leader.ctx(), &pb.RemoveMemberRequest{NodeId: leader.id})
			if err == nil {
				if r.Changed == nil || !r.GetChanged() || len(r.GetMembers()) != 2 {
					t.Errorf("removed: %v", r)
				}
				return nil
			}
			var hint *api.NotLeaderError
			if errors.As(api.ErrorFromStatus(status.Convert(err)), &hint) {
				for _, n := range nodes {
					if n.id == hint.Leader {
						asked = n
					}
				}
			}
			return err
		})
		for _, f := range followers {
			must(f.kv.Put(f.ctx(), &pb.PutRequest{Key: f.id, Value: []byte("v")}))(t)
			for _, m := range f.node.Status().Members {
				if m.ID == leader.id {
					t.Errorf("%s is a member still for %s", leader.id, f.id)
				}
			}
		}
	})
}
