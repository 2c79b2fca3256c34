package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func (a *app) clusterCommand() *cobra.Command {
	return noun("cluster", "Show and change the cluster",
		a.clusterStatus(), a.clusterAdd(),
		a.memberVerb("promote ID", "Make a member vote once it has caught up", "  stave cluster promote n4", "votes already",
			func(ctx context.Context, s *session, id string) (*pb.StatusResponse, error) {
				return s.cluster.PromoteMember(ctx, &pb.PromoteMemberRequest{NodeId: id})
			}),
		a.memberVerb("remove ID", "Take a node out for good, a leader after it handed over; its directory must be wiped before it can come back", "  stave cluster remove n3", "",
			func(ctx context.Context, s *session, id string) (*pb.StatusResponse, error) {
				return s.cluster.RemoveMember(ctx, &pb.RemoveMemberRequest{NodeId: id})
			}),
		a.clusterTransfer(), a.clusterLimits())
}

func (a *app) clusterStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show members, leader, revision and counts", Args: exactArgs(0),
		Long: `Show the cluster as the answering node sees it, also while there is no leader: unlike
other reads this one is stale unless --consistency says otherwise. Limits are those
in force where a database sets none of its own.`,
		Example: "  stave cluster status --consistency linearizable",
		RunE: func(c *cobra.Command, _ []string) error {
			read := a.read()
			if c.Flags().Changed("consistency") && read == nil {
				read = linearizable()
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.cluster.Status(ctx, &pb.StatusRequest{Consistency: read})
				if err != nil {
					return err
				}
				return a.showStatus(r)
			})
		},
	}
}

// linearizable is for calls that are stale unless asked.
func linearizable() *pb.Consistency {
	return &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_LINEARIZABLE}
}

func (a *app) showStatus(r *pb.StatusResponse) error {
	v := api.ClusterStatusJSON(r)
	limits := limitsText(v.Limits)
	v.Limits = effectiveLimits(v.Limits)
	if a.json() {
		return a.show(v, nil)
	}
	facts := newGrid()
	facts.add("cluster", v.ClusterID)
	facts.add("incarnation", v.Incarnation)
	facts.add("revision", v.Revision)
	facts.add("leader", v.Leader)
	facts.add("term", v.Term)
	facts.add("coordinator epoch", v.CoordinatorEpoch)
	facts.add("feature level", v.FeatureLevel)
	facts.add("answered by", fmt.Sprintf("%s (applied %d of %d)", v.NodeID, v.AppliedIndex, v.CommitIndex))
	facts.add("limits", limits)
	n := v.Counts
	facts.add("counts", fmt.Sprintf("%d databases, %d tables, %d partitions, %d keys, %d tablet servers, %d clients, %d unassigned",
		n.Databases, n.Tables, n.Partitions, n.Keys, n.Servers, n.Clients, n.Unassigned))
	if v.AgeMS != nil {
		facts.add("age", fmt.Sprintf("%d ms", *v.AgeMS))
	}
	for _, c := range v.Conditions {
		facts.add("condition", c)
	}
	if err := facts.write(a.out); err != nil {
		return err
	}
	if err := a.print("\n"); err != nil {
		return err
	}
	g := newGrid("NODE", "ROLE", "LEADER", "REACHABLE", "RAFT", "API", "HTTP", "LEVEL", "BUILD")
	for _, m := range v.Members {
		g.add(m.ID, m.Role, m.Leader, orDash(m.Reachable), m.RaftAddr, m.APIAddr, m.HTTPAddr, m.FeatureLevel, m.Build)
	}
	return g.write(a.out)
}

// showChange prints the status after a change of the membership, and says so if
// nothing had to be changed; JSON has it as changed.
func (a *app) showChange(r *pb.StatusResponse, already string) error {
	if r.Changed != nil && !r.GetChanged() && !a.json() {
		a.notice("nothing changed: node %s", already)
	}
	return a.showStatus(r)
}

// effectiveLimits fills those that the cluster does not set.
func effectiveLimits(l api.Limits) api.Limits {
	fill := func(v *uint32, def uint32) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&l.Buckets, catalog.DefaultLimits.Buckets)
	fill(&l.Partitions, catalog.DefaultLimits.Partitions)
	fill(&l.Replicas, catalog.DefaultLimits.Replicas)
	return l
}

func limitsText(l api.Limits) string {
	text := func(set, def uint32) string {
		if set == 0 {
			return fmt.Sprintf("%d (default)", def)
		}
		return fmt.Sprint(set)
	}
	d := catalog.DefaultLimits
	return fmt.Sprintf("buckets %s, partitions per table %s, replicas per command %s",
		text(l.Buckets, d.Buckets), text(l.Partitions, d.Partitions), text(l.Replicas, d.Replicas))
}

func (a *app) clusterAdd() *cobra.Command {
	return &cobra.Command{
		Use: "add ID=HOST:PORT", Short: "Add a node that gets the log but does not vote", Args: exactArgs(1),
		Long: `Add a node that runs and waits with an empty directory; HOST:PORT is its raft
address. It gets the log but does not vote until it is promoted.`,
		Example: "  stave cluster add n4=10.0.0.4:7601",
		RunE: func(c *cobra.Command, args []string) error {
			id, addr, ok := strings.Cut(args[0], "=")
			if !ok || id == "" || addr == "" {
				return usagef("%q: want ID=HOST:PORT", args[0])
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.cluster.AddMember(ctx, &pb.AddMemberRequest{NodeId: id, RaftAddress: addr})
				if err != nil {
					return err
				}
				return a.showChange(r, id+" is a member at "+addr+" already")
			})
		},
	}
}

// memberVerb is a verb on one node that answers with the cluster's status; already
// is what the node is if nothing changed.
func (a *app) memberVerb(use, short, example, already string, do func(context.Context, *session, string) (*pb.StatusResponse, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := do(ctx, s, args[0])
				if err != nil {
					return err
				}
				return a.showChange(r, args[0]+" "+already)
			})
		},
	}
}

func (a *app) clusterTransfer() *cobra.Command {
	return &cobra.Command{
		Use: "transfer [ID]", Short: "Hand leadership to a voter, or to the one that is furthest", Args: rangeArgs(0, 1),
		Example: "  stave cluster transfer n2",
		RunE: func(c *cobra.Command, args []string) error {
			req := &pb.TransferLeadershipRequest{}
			if len(args) == 1 {
				req.NodeId = args[0]
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				done, err := s.cluster.TransferLeadership(ctx, req)
				if err != nil {
					return err
				}
				// The answer came before the new leader was known; this one waits for it.
				r, err := s.cluster.Status(ctx, &pb.StatusRequest{Consistency: linearizable()})
				if err != nil {
					return err
				}
				r.Changed = done.Changed
				return a.showChange(r, req.GetNodeId()+" leads already")
			})
		},
	}
}

func (a *app) clusterLimits() *cobra.Command {
	var l pb.Limits
	var database string
	c := &cobra.Command{
		Use: "limits", Short: "Set limits of the cluster or of one database", Args: exactArgs(0),
		Long:    "Set limits of the cluster, or those that hold in one database before the cluster's. Limits left out stay.",
		Example: "  stave cluster limits --partitions 1000000 --database shop",
		RunE: func(c *cobra.Command, _ []string) error {
			if l.Buckets == 0 && l.Partitions == 0 && l.Replicas == 0 {
				return usagef("nothing to change: want --buckets, --partitions or --replicas above 0")
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.cluster.SetLimits(ctx, &pb.SetLimitsRequest{Database: database, Limits: &l})
				if err != nil {
					return err
				}
				return a.showResult(r)
			})
		},
	}
	c.Flags().Uint32Var(&l.Buckets, "buckets", 0, "buckets per table that is not partitioned, or per partition")
	c.Flags().Uint32Var(&l.Partitions, "partitions", 0, "partitions per table")
	c.Flags().Uint32Var(&l.Replicas, "replicas", 0, "replicas created by one command")
	c.Flags().StringVar(&database, "database", "", "set the limits of one database")
	return c
}
