package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// placed are the buckets of a table or partition, with the name of one of them.
type placed struct {
	ref     *pb.BucketRef
	buckets []*pb.BucketState
}

// object reads the buckets of a table, or of the partition that a spec names.
func (s *session) object(ctx context.Context, args []string) (placed, error) {
	spec, err := parseSpec(args[1:])
	if err != nil {
		return placed{}, err
	}
	if len(spec.GetValues()) == 0 {
		r, err := s.catalog.GetTable(ctx, &pb.GetTableRequest{Table: args[0]})
		if err != nil {
			return placed{}, err
		}
		if keys := r.GetTable().GetPartitionKeys(); len(keys) > 0 {
			return placed{}, usagef("table %s is partitioned by %s: name a partition, as KEY=VALUE", args[0], join(keys))
		}
		return placed{&pb.BucketRef{TableId: r.GetTable().GetTableId()}, r.GetTable().GetAssignment().GetBuckets()}, nil
	}
	r, err := s.catalog.GetPartition(ctx, &pb.GetPartitionRequest{Table: args[0], Spec: spec})
	if err != nil {
		return placed{}, err
	}
	p := r.GetPartition()
	id := p.GetPartitionId()
	return placed{&pb.BucketRef{TableId: p.GetTableId(), PartitionId: &id}, p.GetAssignment().GetBuckets()}, nil
}

func (p placed) bucket(i int32) *pb.BucketRef {
	return &pb.BucketRef{TableId: p.ref.GetTableId(), PartitionId: p.ref.PartitionId, Bucket: i}
}

// check refuses the number of a bucket that is not there.
func (p placed) check(i int32) error {
	if i < 0 || int(i) >= len(p.buckets) {
		return usagef("--bucket %d: the buckets that have replicas are 0..%d", i, len(p.buckets)-1)
	}
	return nil
}

func (a *app) tabletReassign() *cobra.Command {
	var bucket int32
	var replicas []int32
	c := &cobra.Command{
		Use: "reassign DB.T [KEY=VALUE ...]", Short: "Give a bucket other replicas", Args: minArgs(1),
		Long: `Give a bucket of a table or partition other replicas, the preferred leader first. The
new ones are added at once; the old ones go when all new ones are in sync. It runs as
a rebalance of its own, or as part of the one that runs, and can be watched and
cancelled as such.`,
		Example: "  stave tablet reassign shop.orders dt=2026-11-30 --bucket 0 --replicas 4,5,6",
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("bucket") || len(replicas) == 0 {
				return usagef("a reassignment wants --bucket and --replicas")
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				p, err := s.object(ctx, args)
				if err != nil {
					return err
				}
				if err := p.check(bucket); err != nil {
					return err
				}
				r, err := s.placement.Reassign(ctx, &pb.ReassignRequest{Moves: []*pb.Move{{Bucket: p.bucket(bucket), To: replicas}}})
				if err != nil {
					return err
				}
				return a.showRebalance(r, false, "nothing to do")
			})
		},
	}
	c.Flags().Int32Var(&bucket, "bucket", 0, "number of the bucket")
	c.Flags().Int32SliceVar(&replicas, "replicas", nil, "tablet servers, the preferred leader first")
	return c
}

// elected is the JSON of what an election came to for one bucket.
type elected struct {
	Bucket int32 `json:"bucket"`
	// Code is NONE if the bucket is led as asked for.
	Code        string `json:"code"`
	Leader      *int32 `json:"leader"`
	LeaderEpoch int32  `json:"leader_epoch"`
	Preferred   int32  `json:"preferred"`
}

func (a *app) tabletElect() *cobra.Command {
	var only []int32
	c := &cobra.Command{
		Use: "elect DB.T [KEY=VALUE ...]", Short: "Let preferred leaders lead", Args: minArgs(1),
		Long: `Move the leadership of the buckets of a table or partition to the first of their
replicas, where that one is alive and in sync. Leaders that failed over do not move
back by themselves.`,
		Example: "  stave tablet elect shop.orders dt=2026-11-30",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				p, err := s.object(ctx, args)
				if err != nil {
					return err
				}
				list := only
				if len(list) == 0 {
					for i := range p.buckets {
						list = append(list, int32(i))
					}
				}
				codes, err := s.elect(ctx, p, list)
				if err != nil {
					return err
				}
				if p, err = s.object(ctx, args); err != nil {
					return err
				}
				return a.showElected(p, list, codes)
			})
		},
	}
	c.Flags().Int32SliceVar(&only, "bucket", nil, "numbers of the buckets; default: all")
	return c
}

// elect elects the preferred leaders of buckets, as many in a command as it takes.
func (s *session) elect(ctx context.Context, p placed, list []int32) (codes []int32, err error) {
	for len(list) > 0 {
		n := min(len(list), catalog.MaxBucketChanges)
		req := &pb.ElectLeadersRequest{Reason: pb.ElectionReason_ELECTION_REASON_PREFERRED}
		for _, i := range list[:n] {
			if err := p.check(i); err != nil {
				return nil, err
			}
			req.Buckets = append(req.Buckets, p.bucket(i))
		}
		r, err := s.placement.ElectLeaders(ctx, req)
		if err != nil {
			return nil, err
		}
		codes = append(codes, r.GetResult().GetBucketCodes()...)
		list = list[n:]
	}
	return codes, nil
}

func (a *app) showElected(p placed, list, codes []int32) error {
	out := []elected{}
	g := newGrid("BUCKET", "PREFERRED", "LEADER", "LEADER EPOCH", "OUTCOME")
	for i, n := range list {
		if int(n) >= len(p.buckets) || i >= len(codes) {
			continue // dropped and made anew meanwhile
		}
		b := p.buckets[n]
		v := elected{
			Bucket: n, Code: catalog.Code(codes[i]).String(), Leader: b.Leader, LeaderEpoch: b.GetLeaderEpoch(), Preferred: b.GetReplicas()[0],
		}
		out = append(out, v)
		g.add(v.Bucket, v.Preferred, orDash(v.Leader), v.LeaderEpoch, v.Code)
	}
	return a.show(out, g)
}

func (a *app) tabletISR() *cobra.Command {
	var bucket int32
	var isr []int32
	c := &cobra.Command{
		Use: "isr DB.T [KEY=VALUE ...]", Short: "Say which replicas of a bucket are in sync", Args: minArgs(1),
		Long: `Say in the name of the leader of a bucket which of its replicas are in sync. Leaders do
so by themselves through the API; this is for rehearsals, and for servers that cannot.
A replica that is named although it lacks data can become leader, and the data is lost.`,
		Example: "  stave tablet isr shop.orders dt=2026-11-30 --bucket 0 --in-sync 4,5,6",
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("bucket") || len(isr) == 0 {
				return usagef("an ISR wants --bucket and --in-sync")
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				p, err := s.object(ctx, args)
				if err != nil {
					return err
				}
				if err := p.check(bucket); err != nil {
					return err
				}
				b, err := s.adjustISR(ctx, p, bucket, isr, args)
				if err != nil {
					return err
				}
				return a.showBucket(bucket, b)
			})
		},
	}
	c.Flags().Int32Var(&bucket, "bucket", 0, "number of the bucket")
	c.Flags().Int32SliceVar(&isr, "in-sync", nil, "tablet servers whose replicas are in sync, the leader among them")
	return c
}

// adjustISR speaks for the leader of a bucket and returns the bucket afterwards.
func (s *session) adjustISR(ctx context.Context, p placed, bucket int32, isr []int32, args []string) (*pb.BucketState, error) {
	b := p.buckets[bucket]
	if b.Leader == nil {
		return nil, &catalog.Error{Code: catalog.ErrLeaderNotAvailable, Message: fmt.Sprintf("bucket %d has no leader", bucket)}
	}
	leader, err := s.placement.GetServer(ctx, &pb.GetServerRequest{ServerId: b.GetLeader()})
	if err != nil {
		return nil, err
	}
	r, err := s.placement.AdjustISR(ctx, &pb.AdjustISRRequest{
		ServerId: b.GetLeader(), Incarnation: leader.GetServer().GetIncarnation(), Changes: []*pb.ISRChange{{
			Bucket: p.bucket(bucket), LeaderEpoch: b.GetLeaderEpoch(), BucketEpoch: b.GetBucketEpoch(),
			CoordinatorEpoch: b.GetCoordinatorEpoch(), Isr: isr, Standby: b.GetStandby(),
		}},
	})
	if err != nil {
		return nil, err
	}
	for _, code := range r.GetResult().GetBucketCodes() {
		if c := catalog.Code(code); c != catalog.Done {
			return nil, &catalog.Error{Code: c, Message: fmt.Sprintf("replicas %v of bucket %d as in sync, with replicas %v and leader %d", isr, bucket, b.GetReplicas(), b.GetLeader())}
		}
	}
	if p, err = s.object(ctx, args); err != nil {
		return nil, err
	}
	if err := p.check(bucket); err != nil {
		return nil, err
	}
	return p.buckets[bucket], nil
}

func (a *app) showBucket(i int32, b *pb.BucketState) error {
	v := api.Bucket{Bucket: i, Replicas: b.GetReplicas(), Leader: b.Leader, LeaderEpoch: b.GetLeaderEpoch(), ISR: b.GetIsr()}
	g := newGrid("BUCKET", "REPLICAS", "LEADER", "LEADER EPOCH", "ISR")
	g.add(v.Bucket, v.Replicas, orDash(v.Leader), v.LeaderEpoch, v.ISR)
	return a.show(v, g)
}
