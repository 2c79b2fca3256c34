package server

import (
	"slices"
	"testing"
	"time"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// A server is emptied as its tablet servers see it: the new one hears of its
// replicas before the old ones go, the old one of each replica that it has to
// delete, and what it acknowledged it does not hear of again.
func TestRebalance(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		ctx := timeout(t, time.Minute)
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var incs [3]uint64 // by server
		for id := int32(1); id <= 2; id++ {
			reg, err := s.placement.RegisterServer(ctx, &pb.RegisterServerRequest{ServerId: id, DirectoryId: "d", Listeners: []string{"h:1"}, TtlMs: 60_000})
			must(reg, err)
			incs[id] = reg.GetServer().GetIncarnation()
			if id == 1 { // all buckets go to the first one
				must(s.catalog.CreateDatabase(ctx, &pb.CreateDatabaseRequest{Name: "d"}))
				two := int32(2)
				must(s.catalog.CreateTable(ctx, &pb.CreateTableRequest{Table: "d.t", Columns: []*pb.NewColumn{{Name: "a", Type: "INT"}}, Buckets: &two}))
			}
		}
		_, err := s.placement.CancelRebalance(ctx, &pb.CancelRebalanceRequest{})
		refusedAs(t, err, catalog.ErrNoRebalanceInProgress)
		_, err = s.placement.PlanRebalance(ctx, &pb.PlanRebalanceRequest{MaxMoves: -1})
		refusedAs(t, err, catalog.ErrInvalidArgument)
		if r, err := s.placement.GetRebalance(ctx, &pb.GetRebalanceRequest{}); err != nil || r.GetRebalance() != nil {
			t.Fatalf("a plan before any: %v, %v", r, err)
		}
		must(s.placement.TagServers(ctx, &pb.TagServersRequest{ServerIds: []int32{1}, Tag: pb.ServerTag_SERVER_TAG_PERMANENT_OFFLINE}))
		old, err := s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: incs[1]})
		must(old, err)
		fresh, err := s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 2, Incarnation: incs[2]})
		must(fresh, err)
		nextStep(t, old)
		nextStep(t, fresh)

		plan, err := s.placement.PlanRebalance(ctx, &pb.PlanRebalanceRequest{})
		if err != nil || len(plan.GetMoves()) != 2 || plan.GetCopies() != 2 {
			t.Fatalf("plan: %v, %v", plan, err)
		}
		r, err := s.placement.StartRebalance(ctx, &pb.StartRebalanceRequest{Id: "r", Moves: plan.GetMoves(), InFlight: 1})
		if err != nil || !slices.Equal(r.GetPhases(), []pb.MovePhase{pb.MovePhase_MOVE_PHASE_COPYING, pb.MovePhase_MOVE_PHASE_WAITING}) {
			t.Fatalf("started: %v, %v", r, err)
		}
		_, err = s.placement.PlanRebalance(ctx, &pb.PlanRebalanceRequest{})
		refusedAs(t, err, catalog.ErrRebalanceFailure)
		// The new server catches up with whatever it is given a replica of.
		synced := map[int32]bool{}
		for len(synced) < 2 {
			for _, a := range nextStep(t, fresh).GetActivations() {
				if a.GetLeader() != 1 || !slices.Equal(a.GetReplicas(), []int32{2, 1}) || synced[a.GetBucket().GetBucket()] {
					continue
				}
				r, err := s.placement.AdjustISR(ctx, &pb.AdjustISRRequest{ServerId: 1, Incarnation: incs[1], Changes: []*pb.ISRChange{{
					Bucket: a.GetBucket(), LeaderEpoch: a.GetLeaderEpoch(), BucketEpoch: a.GetBucketEpoch(), Isr: []int32{1, 2},
				}}})
				if err != nil || r.GetResult().GetBucketCodes()[0] != 0 {
					t.Fatalf("%v in sync: %v, %v", a, r, err)
				}
				synced[a.GetBucket().GetBucket()] = true
			}
		}
		// The old one hears what it has to delete, once.
		ack := &pb.AckDeletionsRequest{ServerId: 1, Incarnation: incs[1]}
		for len(ack.GetObjects()) < 2 {
			for _, d := range nextStep(t, old).GetDeletions() {
				if d.Bucket == nil || d.GetBucket() != int32(len(ack.GetObjects())) {
					t.Fatalf("deletion %v after %v", d, ack.GetObjects())
				}
				ack.Objects = append(ack.Objects, &pb.DeletionAck{TableId: d.GetTableId(), Bucket: d.Bucket})
			}
		}
		again := func() []*pb.Deletion {
			t.Helper()
			f, err := s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: incs[1]})
			must(f, err)
			return nextStep(t, f).GetDeletions()
		}
		if got := again(); len(got) != 2 {
			t.Errorf("a new feed tells the deletions %v, want both", got)
		}
		must(s.placement.AckDeletions(ctx, ack))
		if got := again(); len(got) != 0 {
			t.Errorf("acknowledged deletions are told again: %v", got)
		}
		end, err := s.placement.GetRebalance(ctx, &pb.GetRebalanceRequest{})
		if err != nil || end.GetRebalance().GetStatus() != pb.RebalanceStatus_REBALANCE_STATUS_COMPLETED || len(end.GetPhases()) != 0 {
			t.Errorf("at the end: %v, %v", end, err)
		}
		must(s.placement.UnregisterServer(ctx, &pb.UnregisterServerRequest{ServerId: 1}))
	})
}
