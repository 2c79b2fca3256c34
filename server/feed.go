package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/feed"
	"github.com/stavedb/stave/raftnode"
	"github.com/stavedb/stave/watch"
)

// feedChunk is how many activations one message carries at most.
const feedChunk = 512

// Feed implements pb.PlacementServer.
func (p *placementService) Feed(r *pb.FeedRequest, out grpc.ServerStreamingServer[pb.FeedResponse]) error {
	f := &feeder{
		s: p.s, feed: feed.New(catalog.ServerID(r.GetServerId())),
		lease: catalog.Lease{ID: catalog.ServerID(r.GetServerId()), Incarnation: catalog.ServerIncarnation(r.GetIncarnation())},
	}
	return p.s.follow(out, &f.sender, func() error { return f.begin(out.Context(), r) }, f.run)
}

// feeder serves one feed.
type feeder struct {
	sender
	s     *Server
	feed  *feed.Feed
	lease catalog.Lease
	// snap is told before the events that follow it.
	snap *catalog.State
}

// begin goes on from the position asked for if the history still has it, else
// with a snapshot.
func (f *feeder) begin(ctx context.Context, r *pb.FeedRequest) error {
	v, err := f.s.open(ctx, nil)
	if err != nil {
		return err
	}
	if err := v.RenewalError(f.lease, 0); err != nil {
		return err
	}
	if r.FromRevision != nil {
		o := watch.Options{From: catalog.Revision(r.GetFromRevision()), Incarnation: catalog.Some(v.Incarnation())}
		if r.History != nil {
			o.Incarnation = catalog.Some(api.IncarnationFromProto(r.History))
		}
		err := f.subscribe(o)
		if err == nil {
			f.feed.Resume()
			return nil
		}
		if !errors.Is(err, catalog.ErrCompacted) {
			return err
		}
	}
	return f.beginSnapshot(ctx)
}

// beginSnapshot subscribes from the state that is told first.
func (f *feeder) beginSnapshot(ctx context.Context) error {
	var err error
	for range beginTries {
		var v view
		if v, err = f.s.open(ctx, nil); err != nil {
			return err
		}
		if err = f.subscribe(watch.Options{From: v.Revision(), Incarnation: catalog.Some(v.Incarnation())}); err == nil {
			f.snap = v.State
			return nil
		}
		if !errors.Is(err, catalog.ErrCompacted) {
			return err
		}
	}
	return err
}

func (f *feeder) subscribe(o watch.Options) error {
	o.Filter.Kinds = []catalog.ObjectKind{catalog.ObjectTable, catalog.ObjectPartition, catalog.ObjectDropped, catalog.ObjectServer}
	o.Before, o.Bookmarks = true, true
	sub, err := f.s.node.Subscribe(o)
	f.sub = sub
	return err
}

// run tells every change until the registration or the call ends.
func (f *feeder) run(ctx context.Context) error {
	if f.snap != nil {
		if err := f.tell(f.snap, f.feed.Snapshot(f.snap)); err != nil {
			return err
		}
		f.snap = nil // what the peer has is no reason to keep a state
	}
	for {
		b, err := f.sub.Next(ctx)
		if err != nil {
			return err
		}
		st, err := f.s.node.Read(ctx, raftnode.Stale)
		if err != nil {
			return err
		}
		if b.Bookmark() {
			if err := f.tell(st, feed.Step{Revision: b.Revision}); err != nil {
				return err
			}
			continue
		}
		if f.concerns(b.Event) {
			if err := st.RenewalError(f.lease, 0); err != nil {
				return err
			}
		}
		step, ok := f.feed.Event(b.Event, st)
		if !ok {
			continue
		}
		if err := f.tell(st, step); err != nil {
			return err
		}
	}
}

// concerns reports whether an event changed the server's own record.
func (f *feeder) concerns(e *catalog.Event) bool {
	for _, c := range e.Changes {
		if v, ok := c.After.(*catalog.Server); ok && v.ID == f.lease.ID {
			return true
		}
		if v, ok := c.Before.(*catalog.Server); ok && v.ID == f.lease.ID {
			return true
		}
	}
	return false
}

// tell sends a step in as many messages as it needs; only the last one has its
// revision reached.
func (f *feeder) tell(st *catalog.State, step feed.Step) error {
	msg := &pb.FeedResponse{Header: f.s.header(st), Snapshot: step.Snapshot, Revision: uint64(step.Revision)}
	for _, e := range step.Epochs {
		msg.Epochs = append(msg.Epochs, &pb.TableEpoch{TableId: uint64(e.Table), LayoutEpoch: uint64(e.Epoch)})
	}
	for _, d := range step.Deletions {
		msg.Deletions = append(msg.Deletions, api.DeletionToProto(d.Table, d.Partition, d.Bucket))
	}
	for _, r := range step.Removed {
		msg.Removed = append(msg.Removed, api.BucketRefToProto(r))
	}
	for len(step.Activations) > feedChunk {
		msg.Activations, step.Activations = activations(step.Activations[:feedChunk]), step.Activations[feedChunk:]
		msg.More = true
		if err := f.send(msg); err != nil {
			return err
		}
		msg = &pb.FeedResponse{Header: msg.Header, Revision: msg.Revision}
	}
	msg.Activations = activations(step.Activations)
	return f.send(msg)
}

func activations(list []feed.Activation) []*pb.Activation {
	out := make([]*pb.Activation, len(list))
	for i, a := range list {
		out[i] = &pb.Activation{
			Bucket: api.BucketRefToProto(a.Bucket), Table: a.Table, Partition: a.Partition, BucketCount: a.Count,
			Leader: int32(a.State.Leader), LeaderEpoch: int32(a.State.LeaderEpoch), BucketEpoch: int32(a.State.BucketEpoch),
			CoordinatorEpoch: int64(a.State.CoordinatorEpoch), Isr: serverIDs(a.State.ISR), Standby: serverIDs(a.State.Standby),
			Replicas: serverIDs(a.Replicas),
		}
	}
	return out
}

func serverIDs(in []catalog.ServerID) []int32 {
	out := make([]int32, len(in))
	for i, id := range in {
		out[i] = int32(id)
	}
	return out
}
