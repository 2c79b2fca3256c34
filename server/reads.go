package server

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// Bounds of the stream of reads: what a message may hold and how many of them
// wait, how long a batch waits for a leader before its caller is sent elsewhere,
// and when a message of outcomes is full.
const (
	readMessage   = 1024
	readMessages  = 8
	readWait      = time.Second
	readAnswer    = 1 << 20
	readOverheads = 64 // of one outcome that is not worth measuring
)

// readStream answers one stream of reads.
type readStream struct {
	s   *Server
	out grpc.BidiStreamingServer[pb.ReadsRequest, pb.ReadsResponse]
	in  chan received
}

// received is a message, or why none follows.
type received struct {
	msg *pb.ReadsRequest
	err error
}

// Reads implements pb.ClusterServer.
func (c *clusterService) Reads(stream grpc.BidiStreamingServer[pb.ReadsRequest, pb.ReadsResponse]) error {
	r := &readStream{s: c.s, out: stream, in: make(chan received, readMessages)}
	ctx := stream.Context()
	c.s.group.Go(func() { r.receive(ctx) })
	var batch []*pb.Read
	for {
		var end error
		if batch, end = r.next(ctx, batch[:0]); len(batch) > 0 {
			if err := r.run(ctx, batch); err != nil {
				return err
			}
		}
		if errors.Is(end, io.EOF) {
			return nil
		} else if end != nil {
			return end
		}
	}
}

// receive hands on messages until the stream ends. A full channel makes it stop
// reading, and so the caller stop sending.
func (r *readStream) receive(ctx context.Context) {
	for {
		m, err := r.out.Recv()
		if n := len(m.GetReads()); err == nil && n > readMessage {
			err = &catalog.Error{
				Code: catalog.ErrTooLarge, Limit: readMessage, Size: uint64(n), Message: "a message has more than 1024 reads",
			}
		}
		select {
		case r.in <- received{m, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// next waits for reads and takes all that are there. The error says that nothing
// follows them.
func (r *readStream) next(ctx context.Context, batch []*pb.Read) ([]*pb.Read, error) {
	select {
	case m := <-r.in:
		if m.err != nil {
			return batch, m.err
		}
		batch = append(batch, m.msg.GetReads()...)
	case <-r.s.closing:
		return batch, closingError()
	case <-ctx.Done():
		return batch, context.Cause(ctx)
	}
	for {
		select {
		case m := <-r.in:
			if m.err != nil {
				return batch, m.err
			}
			batch = append(batch, m.msg.GetReads()...)
		default:
			return batch, nil
		}
	}
}

// run answers a batch from one state, which is at least as new as everything
// that was committed when the last of its reads arrived. The error ends the
// stream.
func (r *readStream) run(ctx context.Context, batch []*pb.Read) error {
	r.s.metrics.reads.Add(float64(len(batch)))
	r.s.metrics.rounds.Inc()
	bounded, cancel := context.WithTimeout(ctx, min(readWait, r.s.cfg.RequestTimeout))
	st, err := r.s.node.Read(bounded, raftnode.Linearizable)
	cancel()
	if err != nil {
		return r.refuse(batch, r.s.public(err))
	}
	header, v := r.s.header(st), view{State: st}
	outs, size := make([]*pb.ReadOutcome, 0, len(batch)), 0
	for i, read := range batch {
		out := r.s.outcome(v, read)
		size += outcomeSize(out)
		outs = append(outs, out)
		if size >= readAnswer || i == len(batch)-1 {
			if err := r.out.Send(&pb.ReadsResponse{Header: header, Outcomes: outs}); err != nil {
				return err
			}
			outs, size = make([]*pb.ReadOutcome, 0, len(batch)-1-i), 0
		}
	}
	return nil
}

// refuse gives all reads of a batch the same error, and ends the stream with it.
func (r *readStream) refuse(batch []*pb.Read, err error) error {
	out := &pb.ReadOutcome{Outcome: &pb.ReadOutcome_Error{Error: api.ErrorToProto(err)}}
	msg := &pb.ReadsResponse{Header: r.s.headerAt(0), Outcomes: make([]*pb.ReadOutcome, len(batch))}
	for i := range msg.Outcomes {
		msg.Outcomes[i] = out
	}
	if serr := r.out.Send(msg); serr != nil {
		return serr
	}
	return err
}

// outcomeSize is about how many bytes an outcome takes.
func outcomeSize(o *pb.ReadOutcome) int {
	if get, ok := o.GetOutcome().(*pb.ReadOutcome_Get); ok {
		return len(get.Get.GetRow().GetKey()) + len(get.Get.GetRow().GetValue()) + readOverheads
	}
	return proto.Size(o)
}

// outcome answers one read.
func (s *Server) outcome(v view, r *pb.Read) *pb.ReadOutcome {
	out := &pb.ReadOutcome{}
	var err error
	switch q := r.GetRead().(type) {
	case *pb.Read_Get:
		o := &pb.ReadOutcome_Get{}
		o.Get, err = bare(v, q.Get, getKey)
		out.Outcome = o
	case *pb.Read_Database:
		o := &pb.ReadOutcome_Database{}
		o.Database, err = bare(v, q.Database, getDatabase)
		out.Outcome = o
	case *pb.Read_Table:
		o := &pb.ReadOutcome_Table{}
		o.Table, err = bare(v, q.Table, getTable)
		out.Outcome = o
	case *pb.Read_Partition:
		o := &pb.ReadOutcome_Partition{}
		o.Partition, err = bare(v, q.Partition, getPartition)
		out.Outcome = o
	case *pb.Read_Layout:
		o := &pb.ReadOutcome_Layout{}
		o.Layout, err = bare(v, q.Layout, getLayout)
		out.Outcome = o
	default:
		err = refuse(catalog.ErrInvalidArgument, "read is not set, or is one that this node does not know")
	}
	if err != nil {
		out.Outcome = &pb.ReadOutcome_Error{Error: api.ErrorToProto(s.public(err))}
	}
	return out
}

// bare answers a read whose state is chosen already.
func bare[R consistent, A any](v view, r R, from func(view, R) (A, error)) (A, error) {
	var none A
	if want := r.GetConsistency(); want != nil {
		c, err := api.ConsistencyFromProto(want)
		switch {
		case err != nil:
			return none, err
		case c.Level != api.Linearizable:
			return none, refuse(catalog.ErrInvalidArgument, "consistency.level is %s, want linearizable or none in the stream of reads", want.GetLevel())
		case !c.Incarnation.IsZero() && c.Incarnation != v.Incarnation():
			return none, &api.RestoredError{Incarnation: v.Incarnation()}
		}
	}
	return from(v, r)
}
