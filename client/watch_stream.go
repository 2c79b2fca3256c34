package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// errWatchOrder is a stream that breaks its promises; another node may keep them.
var errWatchOrder = &catalog.Error{Code: catalog.ErrUnavailable, Message: "the node's watch stream is out of order"}

// session is one stream from one node.
func (f *follower) session(ctx context.Context, l *link, out chan<- Batch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.calls.Add(1)
	defer l.calls.Add(-1)
	f.c.metrics.attempts.Inc()
	s, err := l.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, pb.Watch_Watch_FullMethodName)
	if err != nil {
		return errorOf(err)
	}
	if err = s.SendMsg(f.request(f.o.Snapshot && (!f.resume || f.whole))); err == nil {
		err = s.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return errorOf(err)
	}
	a := assembly{f: f}
	for {
		m := new(pb.WatchResponse)
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return io.EOF
		} else if err != nil {
			return errorOf(err)
		}
		b, err := a.add(m)
		if err != nil {
			return err
		}
		if b == nil {
			continue
		}
		select {
		case out <- *b:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		f.advance(b)
	}
}

// advance notes what was delivered.
func (f *follower) advance(b *Batch) {
	f.inc, f.last, f.resume = b.Incarnation, b.Revision, true
	if b.Snapshot {
		f.whole = false
	}
}

// assembly puts the messages of one stream together. What it holds when the
// stream breaks is forgotten: it will be sent again.
type assembly struct {
	f     *follower
	inc   catalog.Incarnation
	hello bool
	batch *pb.EventBatch
	snap  *pb.WatchSnapshot
}

func (a *assembly) add(m *pb.WatchResponse) (*Batch, error) {
	if h := m.GetHello(); h != nil {
		return nil, a.greet(h)
	}
	if !a.hello {
		return nil, errWatchOrder
	}
	switch {
	case m.GetSnapshot() != nil:
		return a.snapshot(m.GetSnapshot())
	case m.GetBatch() != nil:
		return a.event(m.GetBatch())
	case m.GetBookmark() != nil:
		return a.bookmark(m.GetBookmark())
	}
	return nil, nil // a message of a newer server
}

func (a *assembly) greet(h *pb.WatchHello) error {
	if a.hello {
		return errWatchOrder
	}
	a.hello, a.inc = true, api.IncarnationFromProto(h.GetIncarnation())
	f := a.f
	if f.resume && !f.inc.IsZero() && a.inc != f.inc {
		return &api.RestoredError{Incarnation: a.inc}
	}
	if !f.resume && !f.o.Snapshot { // "now" is decided: it must not move when the stream breaks
		f.inc, f.last, f.resume = a.inc, catalog.Revision(h.GetCurrent()), true
	} else if f.resume {
		f.inc = a.inc
	}
	return nil
}

func (a *assembly) snapshot(p *pb.WatchSnapshot) (*Batch, error) {
	if a.batch != nil || (a.snap != nil && a.snap.GetRevision() != p.GetRevision()) {
		return nil, errWatchOrder
	}
	f := a.f
	if f.resume && (!f.o.Snapshot || catalog.Revision(p.GetRevision()) < f.last) {
		return nil, errWatchOrder
	}
	if a.snap == nil {
		a.snap = &pb.WatchSnapshot{Revision: p.GetRevision()}
	}
	a.snap.Rows = append(a.snap.Rows, p.GetRows()...)
	if p.GetMore() {
		return nil, nil
	}
	b := &Batch{Incarnation: a.inc, Revision: catalog.Revision(p.GetRevision()), Snapshot: true, Objects: a.snap.Rows}
	a.snap = nil
	b.Rows = make([]catalog.Object, len(b.Objects))
	for i, o := range b.Objects {
		row, err := api.ObjectFromProto(o)
		if err != nil {
			return nil, fmt.Errorf("row %d of a snapshot: %w", i, err)
		}
		b.Rows[i] = row
	}
	return b, nil
}

func (a *assembly) event(p *pb.EventBatch) (*Batch, error) {
	if a.snap != nil || (!a.f.resume && a.f.o.Snapshot) {
		return nil, errWatchOrder
	}
	if a.batch == nil {
		a.batch = p
	} else if _, err := api.JoinFragments(a.batch, p); err != nil {
		return nil, errWatchOrder
	}
	if a.batch.GetMore() {
		return nil, nil
	}
	whole := a.batch
	a.batch = nil
	if rev := catalog.Revision(whole.GetRevision()); rev <= a.f.last {
		return nil, errWatchOrder
	}
	e, err := api.EventFromProto(whole)
	if err != nil {
		return nil, fmt.Errorf("event of revision %d: %w", whole.GetRevision(), err)
	}
	return &Batch{Incarnation: a.inc, Revision: e.Revision, Event: e, Wire: whole}, nil
}

func (a *assembly) bookmark(p *pb.WatchBookmark) (*Batch, error) {
	if a.batch != nil || a.snap != nil {
		return nil, errWatchOrder
	}
	rev := catalog.Revision(p.GetRevision())
	if !a.f.resume || rev <= a.f.last { // also from a node that is behind: nothing is learned
		return nil, nil
	}
	return &Batch{Incarnation: a.inc, Revision: rev}, nil
}
