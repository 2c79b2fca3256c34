package server

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// nextStep reads the feed up to the next message that tells something.
func nextStep(t *testing.T, stream grpc.ServerStreamingClient[pb.FeedResponse]) *pb.FeedResponse {
	t.Helper()
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatalf("feed: %v", err)
		}
		if m.GetSnapshot() || len(m.GetEpochs())+len(m.GetActivations())+len(m.GetDeletions())+len(m.GetRemoved()) > 0 {
			return m
		}
	}
}

// A tablet server hears of its buckets with their count, of every rescale, of
// what it has to delete, and is cut off when its incarnation is replaced.
func TestFeed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		ctx := timeout(t, time.Minute)
		register := func() uint64 {
			t.Helper()
			r, err := s.placement.RegisterServer(ctx, &pb.RegisterServerRequest{ServerId: 1, DirectoryId: "d", Listeners: []string{"h:1"}, TtlMs: 60_000})
			if err != nil {
				t.Fatal(err)
			}
			return r.GetServer().GetIncarnation()
		}
		inc := register()
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(s.catalog.CreateDatabase(ctx, &pb.CreateDatabaseRequest{Name: "d"}))
		two := int32(2)
		must(s.catalog.CreateTable(ctx, &pb.CreateTableRequest{
			Table: "d.t", Columns: []*pb.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}}, PartitionKeys: []string{"dt"}, Buckets: &two,
		}))
		spec := []*pb.PartitionSpec{{Values: []*pb.Property{{Key: "dt", Value: "p1"}}}}
		must(s.catalog.CreatePartitions(ctx, &pb.CreatePartitionsRequest{Table: "d.t", Specs: spec}))

		stream, err := s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: inc})
		if err != nil {
			t.Fatal(err)
		}
		m := nextStep(t, stream)
		if !m.GetSnapshot() || len(m.GetEpochs()) != 1 || len(m.GetActivations()) != 2 || m.GetActivations()[0].GetBucketCount() != 2 ||
			m.GetActivations()[0].GetLeader() != 1 {
			t.Fatalf("snapshot: %v", m)
		}
		must(s.catalog.RescaleTable(ctx, &pb.RescaleTableRequest{Table: "d.t", Buckets: 3}))
		if m = nextStep(t, stream); len(m.GetEpochs()) != 1 || m.GetEpochs()[0].GetLayoutEpoch() != 1 || len(m.GetActivations()) != 0 {
			t.Fatalf("rescale: %v", m)
		}
		resume := m.GetRevision()
		must(s.catalog.DropPartitions(ctx, &pb.DropPartitionsRequest{Table: "d.t", Specs: spec}))
		if m = nextStep(t, stream); len(m.GetDeletions()) != 1 || m.GetDeletions()[0].PartitionId == nil {
			t.Fatalf("drop: %v", m)
		}
		again, err := s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: inc, FromRevision: &resume, History: m.GetHeader().GetIncarnation()})
		if err != nil {
			t.Fatal(err)
		}
		if m = nextStep(t, again); m.GetSnapshot() || len(m.GetDeletions()) != 1 {
			t.Fatalf("resumed: %v", m)
		}
		ack := &pb.AckDeletionsRequest{ServerId: 1, Incarnation: inc, Objects: []*pb.DeletionAck{{TableId: m.GetDeletions()[0].GetTableId(), PartitionId: m.GetDeletions()[0].PartitionId}}}
		must(s.placement.AckDeletions(ctx, ack))

		register()
		for err == nil {
			_, err = stream.Recv()
		}
		if got := api.ErrorFromStatus(status.Convert(err)); api.CodeOf(got) != catalog.ErrFenced {
			t.Errorf("the feed of a replaced incarnation ended with %v", got)
		}
		old, err := s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: inc})
		if err == nil {
			_, err = old.Recv()
		}
		if api.CodeOf(api.ErrorFromStatus(status.Convert(err))) != catalog.ErrFenced {
			t.Errorf("a replaced incarnation was fed: %v", err)
		}
		if _, err := s.placement.AckDeletions(ctx, ack); api.CodeOf(api.ErrorFromStatus(status.Convert(err))) != catalog.ErrFenced {
			t.Errorf("a replaced incarnation acknowledged: %v", err)
		}
	})
}

// A server whose process does not read its feed is cut with BUSY, and a feed
// counts as one of the streams that a node serves at most.
func TestFeed_SlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, func(c *Config) { c.MaxWatches = 1 })
		ctx := timeout(t, time.Minute)
		inc := must(s.placement.RegisterServer(ctx, &pb.RegisterServerRequest{ServerId: 1, DirectoryId: "d", Listeners: []string{"h:1"}, TtlMs: 600_000}))(t).GetServer().GetIncarnation()
		stream := must(s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: inc}))(t)
		nextStep(t, stream)
		_, err := must(s.placement.Feed(ctx, &pb.FeedRequest{ServerId: 1, Incarnation: inc}))(t).Recv()
		refusedAs(t, err, catalog.ErrBusy)
		must(s.catalog.CreateDatabase(ctx, &pb.CreateDatabaseRequest{Name: "d"}))(t)
		many := int32(4096) // more activations than what a stream takes before its peer reads
		for i := range 40 {
			must(s.catalog.CreateTable(ctx, &pb.CreateTableRequest{Table: fmt.Sprintf("d.t%d", i), Columns: []*pb.NewColumn{{Name: "a", Type: "INT"}}, Buckets: &many}))(t)
		}
		value := make([]byte, 100<<10)
		for i := range 150 {
			must(s.kv.Put(ctx, &pb.PutRequest{Key: fmt.Sprintf("k%d", i), Value: value}))(t)
		}
		time.Sleep(5 * time.Second)
		for err = nil; err == nil; {
			_, err = stream.Recv()
		}
		refusedAs(t, err, catalog.ErrBusy)
	})
}
