package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func (a *app) rebalanceCommand() *cobra.Command {
	return noun("rebalance", "Move buckets so that tablet servers are emptied or evenly loaded",
		a.rebalancePlan(), a.rebalanceApply(), a.rebalanceStatus(), a.rebalanceCancel())
}

func (a *app) rebalancePlan() *cobra.Command {
	var limit int32
	var moves bool
	c := &cobra.Command{
		Use: "plan", Short: "Show what a rebalance would do", Args: exactArgs(0),
		Long: `Compute the moves that take all replicas off tablet servers tagged permanent-offline,
take leadership off servers with any tag, and even out replicas and preferred leaders
over the others, with few moves and never onto fewer racks. Nothing is changed. What
is on servers that are down and have no tag stays.`,
		Example: "  stave rebalance plan --moves",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.placement.PlanRebalance(ctx, &pb.PlanRebalanceRequest{Consistency: a.read(), MaxMoves: limit})
				if err != nil {
					return err
				}
				return a.showPlan(r, moves)
			})
		},
	}
	planFlags(c, &limit, &moves)
	return c
}

func planFlags(c *cobra.Command, limit *int32, moves *bool) {
	c.Flags().Int32Var(limit, "max-moves", 0, fmt.Sprintf("how many buckets at most; 0: %d", catalog.MaxMoves))
	c.Flags().BoolVar(moves, "moves", false, "list the moves")
}

func (a *app) showPlan(r *pb.PlanRebalanceResponse, moves bool) error {
	v := api.RebalancePlanJSON(r)
	if moves && !a.json() {
		return a.show(v, movesGrid(v.Moves))
	}
	g := newGrid("SERVER", "REPLICAS", "AFTER", "LEADERS", "AFTER")
	for _, l := range v.Load {
		g.add(l.ServerID, l.Replicas, l.ReplicasAfter, l.Leaders, l.LeadersAfter)
	}
	if err := a.show(v, g); err != nil || a.json() {
		return err
	}
	more := ""
	if v.More {
		more = "; more are left for another plan"
	}
	return a.print(fmt.Sprintf("%d moves, which copy %d replicas%s\n", len(v.Moves), v.Copies, more))
}

func movesGrid(list []api.Move) *grid {
	g := newGrid("TABLE ID", "PARTITION ID", "BUCKET", "FROM", "TO", "PHASE")
	for _, m := range list {
		g.add(m.TableID, orDash(m.PartitionID), m.Bucket, m.From, m.To, m.Phase)
	}
	return g
}

// planTries is how often a plan is computed again because buckets changed before
// it was begun.
const planTries = 3

func (a *app) rebalanceApply() *cobra.Command {
	var limit int32
	var moves bool
	var inFlight uint32
	var id string
	c := &cobra.Command{
		Use: "apply", Short: "Compute a plan and begin it", Args: exactArgs(0),
		Long: `Compute a plan, as 'stave rebalance plan' does, and begin it. It is carried out by the
cluster, whoever leads, with a bounded number of moves at a time: a bucket gets its new
replicas, and loses the old ones when the new ones are in sync. One plan runs at a time.`,
		Example: "  stave rebalance apply --in-flight 8",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.applyPlan(ctx, limit, inFlight, id)
				if err != nil {
					return err
				}
				return a.showRebalance(r, moves, "nothing to do")
			})
		},
	}
	planFlags(c, &limit, &moves)
	c.Flags().Uint32Var(&inFlight, "in-flight", 0, fmt.Sprintf("how many moves copy data at a time, up to %d; 0: %d", catalog.MaxInFlight, catalog.DefaultInFlight))
	c.Flags().StringVar(&id, "id", "", "names the plan; default: made from the time")
	return c
}

// applyPlan plans and begins. An answer without a plan says that nothing is to be
// done.
func (s *session) applyPlan(ctx context.Context, limit int32, inFlight uint32, id string) (*pb.RebalanceResponse, error) {
	if id == "" {
		id = "rebalance-" + time.Now().UTC().Format("20060102-150405.000")
	}
	for try := 1; ; try++ {
		plan, err := s.placement.PlanRebalance(ctx, &pb.PlanRebalanceRequest{MaxMoves: limit})
		if err != nil {
			return nil, err
		}
		if len(plan.GetMoves()) == 0 {
			return &pb.RebalanceResponse{Header: plan.GetHeader()}, nil
		}
		r, err := s.placement.StartRebalance(ctx, &pb.StartRebalanceRequest{Id: id, Moves: plan.GetMoves(), InFlight: inFlight})
		if err == nil || try == planTries || api.CodeOf(fault(err)) != catalog.ErrVersionConflict {
			return r, err
		}
	}
}

// showRebalance prints a plan that was begun, or in words that there is none.
func (a *app) showRebalance(r *pb.RebalanceResponse, moves bool, none string) error {
	if r.GetRebalance() == nil {
		g := newGrid()
		g.add(none)
		return a.show(nil, g)
	}
	v := api.RebalanceJSON(r.GetRebalance(), r.GetPhases())
	if moves && !a.json() {
		return a.show(v, movesGrid(v.Moves))
	}
	g := newGrid("REBALANCE", "STATUS", "MOVES", "WAITING", "COPYING", "DONE", "NOT DONE", "IN FLIGHT", "REVISION")
	g.add(v.ID, v.Status, len(v.Moves), v.Waiting, v.Copying, v.Done, v.NotDone, v.InFlight, v.Revision)
	return a.show(v, g)
}

func (a *app) rebalanceStatus() *cobra.Command {
	var moves bool
	c := &cobra.Command{
		Use: "status", Short: "Show the plan that runs, or the last one", Args: exactArgs(0),
		Example: "  stave rebalance status --moves",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.placement.GetRebalance(ctx, &pb.GetRebalanceRequest{Consistency: a.read()})
				if err != nil {
					return err
				}
				return a.showRebalance(r, moves, "no rebalance was begun yet")
			})
		},
	}
	c.Flags().BoolVar(&moves, "moves", false, "list the moves")
	return c
}

func (a *app) rebalanceCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel [ID]", Short: "End the running plan", Args: cobra.MaximumNArgs(1),
		Long: `End the running plan: moves that are done stay, moves in flight are taken back. With
ID only that plan is ended.`,
		Example: "  stave rebalance cancel",
		RunE: func(c *cobra.Command, args []string) error {
			req := &pb.CancelRebalanceRequest{}
			if len(args) > 0 {
				req.Id = args[0]
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.placement.CancelRebalance(ctx, req)
				if err != nil {
					return err
				}
				return a.showRebalance(r, false, "")
			})
		},
	}
}
