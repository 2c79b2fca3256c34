package server

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// batcher answers one stream of commands: what arrived while a batch was under
// way is submitted together. Order is kept because one batch is under way at a
// time.
type batcher struct {
	s    *Server
	in   *inbox
	out  grpc.BidiStreamingServer[pb.CommandsRequest, pb.CommandsResponse]
	take []queued
	subs []raftnode.Submission
}

// Commands implements pb.ClusterServer.
func (c *clusterService) Commands(stream grpc.BidiStreamingServer[pb.CommandsRequest, pb.CommandsResponse]) error {
	b := &batcher{s: c.s, in: newInbox(), out: stream}
	ctx := stream.Context()
	c.s.group.Go(func() { b.in.fill(ctx, stream) })
	for {
		var err error
		if b.take, err = b.in.next(ctx, c.s.closing, b.take); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := b.run(ctx); err != nil {
			return err
		}
	}
}

// run submits a batch and answers it. The error ends the stream.
func (b *batcher) run(ctx context.Context) error {
	b.subs = b.subs[:0]
	for i := range b.take {
		if b.take[i].err == nil {
			b.subs = append(b.subs, b.take[i].sub)
		}
	}
	bounded, cancel := b.s.bounded(ctx)
	outcomes := b.s.node.SubmitAll(bounded, b.subs)
	cancel()
	b.s.metrics.commands.Add(float64(len(b.take)))
	msg, end := b.answer(outcomes)
	clear(b.subs)
	clear(b.take)
	if err := b.out.Send(msg); err != nil {
		return err
	}
	return end
}

// answer puts the outcomes into the order of the commands. end is the first one
// after which nothing more may be proposed.
func (b *batcher) answer(outcomes []raftnode.Outcome) (msg *pb.CommandsResponse, end error) {
	msg = &pb.CommandsResponse{Outcomes: make([]*pb.CommandOutcome, len(b.take))}
	var highest catalog.Revision
	next := 0
	for i := range b.take {
		err := b.take[i].err
		var result *catalog.Result
		if err == nil {
			o := &outcomes[next]
			next++
			if executed(o) {
				result, highest = &o.Result, max(highest, o.Result.Revision)
			} else if err = b.s.public(o.Err); end == nil && endsStream(err) {
				end = err
			}
		}
		msg.Outcomes[i] = api.OutcomeToProto(b.take[i].sequence, result, err)
	}
	msg.Header = b.s.headerAt(highest)
	return msg, end
}

// executed reports whether a command has a result, which may be a refusal. What
// a client's record refuses was not executed, and neither was what has no
// revision.
func executed(o *raftnode.Outcome) bool {
	if o.Err == nil {
		return true
	}
	switch o.Result.Code {
	case catalog.Done, catalog.ErrSessionExpired, catalog.ErrAlreadyAcknowledged, catalog.ErrBusy:
		return false
	}
	return o.Result.Revision != 0
}

func endsStream(err error) bool {
	return errors.Is(err, catalog.ErrNotLeader) || errors.Is(err, catalog.ErrBusy) || errors.Is(err, catalog.ErrOutcomeUnknown) ||
		errors.Is(err, catalog.ErrUnavailable)
}

// headerAt is the header of an answer that is about a revision which this node
// may not have yet; 0 stands for its own.
func (s *Server) headerAt(rev catalog.Revision) *pb.ResponseHeader {
	st, err := s.node.Read(context.Background(), raftnode.Stale) // never waits
	if err != nil {
		return &pb.ResponseHeader{Revision: uint64(rev)}
	}
	h := s.header(st)
	if rev != 0 {
		h.Revision = uint64(rev)
	}
	return h
}
