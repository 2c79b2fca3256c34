package client

import (
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Watch serves the events of the fake in fragments of one change.
func (n *fakeWatch) Watch(r *pb.WatchRequest, s grpc.ServerStreamingServer[pb.WatchResponse]) error {
	w := fakeWatching{n: n.fakeNode, s: s, left: -1}
	f := n.f
	f.mu.Lock()
	if f.cutAfter != nil {
		w.left = f.cutAfter()
	}
	st, inc := f.state, f.state.Incarnation()
	oldest := catalog.Revision(0)
	if n.id == "n1" {
		oldest = f.oldest
	}
	f.mu.Unlock()
	if r.Incarnation != nil && api.IncarnationFromProto(r.Incarnation) != inc {
		return wireError(&api.RestoredError{Incarnation: inc})
	}
	if err := w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Hello{Hello: &pb.WatchHello{
		Incarnation: api.IncarnationToProto(inc), Oldest: uint64(oldest), Current: uint64(st.Revision()),
	}}}); err != nil {
		return err
	}
	from := st.Revision()
	if r.FromRevision != nil {
		from = catalog.Revision(r.GetFromRevision())
	}
	if from < oldest && !r.GetSnapshot() {
		return wireError(&api.CompactedError{Oldest: oldest})
	}
	if r.GetSnapshot() && (r.FromRevision == nil || from < oldest) {
		from = st.Revision()
		if err := w.snapshot(st); err != nil {
			return err
		}
	}
	return w.follow(r, from, inc)
}

type fakeWatching struct {
	n    *fakeNode
	s    grpc.ServerStreamingServer[pb.WatchResponse]
	left int
}

func (w *fakeWatching) send(m *pb.WatchResponse) error {
	if w.left == 0 {
		return errLost
	}
	w.left--
	return w.s.Send(m)
}

func (w *fakeWatching) snapshot(st *catalog.State) error {
	var rows []*pb.Object
	st.KeyValues("", func(v *catalog.KeyValue) bool {
		o, _ := api.ObjectToProto(v, nil)
		rows = append(rows, o)
		return true
	})
	for i := 0; i == 0 || i < len(rows); i++ {
		m := &pb.WatchSnapshot{Revision: uint64(st.Revision()), More: i+1 < len(rows)}
		if i < len(rows) {
			m.Rows = rows[i : i+1]
		}
		if err := w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Snapshot{Snapshot: m}}); err != nil {
			return err
		}
	}
	return nil
}

func (w *fakeWatching) follow(r *pb.WatchRequest, from catalog.Revision, inc catalog.Incarnation) error {
	f := w.n.f
	for {
		f.mu.Lock()
		events, changed, cur := f.events, f.changed, f.state
		f.mu.Unlock()
		if cur.Incarnation() != inc {
			return wireError(&api.RestoredError{Incarnation: cur.Incarnation()})
		}
		for _, e := range events {
			if e.Revision <= from || r.UntilRevision != nil && uint64(e.Revision) > r.GetUntilRevision() {
				continue
			}
			p, err := api.EventToProto(e, r.GetBeforeValues(), nil)
			if err != nil {
				return err
			}
			changes := p.Changes
			for i := range changes {
				p.Changes, p.More = changes[i:i+1], i+1 < len(changes)
				if err := w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Batch{Batch: p}}); err != nil {
					return err
				}
			}
			from = e.Revision
		}
		if r.UntilRevision != nil && uint64(cur.Revision()) >= r.GetUntilRevision() {
			return w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Bookmark{Bookmark: &pb.WatchBookmark{Revision: r.GetUntilRevision()}}})
		}
		select {
		case <-changed:
		case <-w.s.Context().Done():
			return w.s.Context().Err()
		}
	}
}
