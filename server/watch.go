package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// watchService answers watches.
type watchService struct {
	pb.UnimplementedWatchServer
	s *Server
}

// Watch implements pb.WatchServer.
func (ws *watchService) Watch(r *pb.WatchRequest, out grpc.ServerStreamingServer[pb.WatchResponse]) error {
	filter, err := newWatchFilter(r)
	if err != nil {
		return err
	}
	w := &watcher{s: ws.s, filter: filter, before: r.GetBeforeValues(), until: r.UntilRevision}
	return ws.s.follow(out, &w.sender, func() error { return w.begin(out.Context(), r) }, w.run)
}

// watcher is one watch.
type watcher struct {
	sender
	s      *Server
	filter watchFilter
	before bool
	until  *uint64
	// snap is sent before the events that follow it.
	snap *catalog.State
	// from is where the watch starts, told the last revision the peer was told.
	from, told catalog.Revision
	synced     bool
}

// beginTries bounds how often a start is tried that the history outruns.
const beginTries = 3

// begin subscribes. A watch that starts with a state subscribes from its
// revision, so that there is no gap.
func (w *watcher) begin(ctx context.Context, r *pb.WatchRequest) error {
	if r.FromRevision != nil {
		o := watch.Options{From: catalog.Revision(r.GetFromRevision())}
		if r.Incarnation != nil {
			o.Incarnation = catalog.Some(api.IncarnationFromProto(r.Incarnation))
		}
		err := w.subscribe(o)
		if !r.GetSnapshot() || !errors.Is(err, catalog.ErrCompacted) {
			return err
		}
	}
	var err error
	for range beginTries {
		var v view
		if v, err = w.s.open(ctx, nil); err != nil {
			return err
		}
		o := watch.Options{From: v.Revision(), Incarnation: catalog.Some(v.Incarnation())}
		if err = w.subscribe(o); err == nil {
			if r.GetSnapshot() {
				w.snap = v.State
			}
			return nil
		}
		if !errors.Is(err, catalog.ErrCompacted) {
			return err
		}
	}
	return err
}

func (w *watcher) subscribe(o watch.Options) error {
	o.Filter = w.filter.history
	o.Before = true // without it an update looks like a creation
	o.Bookmarks = true
	if w.until != nil {
		o.BookmarkEvery = 1 // the end is told as soon as it is reached
	}
	sub, err := w.s.node.Subscribe(o)
	if err != nil {
		return err
	}
	w.sub, w.from, w.told = sub, o.From, o.From
	return nil
}

// run sends everything; nil is the end at until.
func (w *watcher) run(ctx context.Context) error {
	if err := w.hello(); err != nil {
		return err
	}
	if err := w.snapshot(); err != nil {
		return err
	}
	if w.until != nil && catalog.Revision(*w.until) <= w.from {
		return w.bookmark(catalog.Revision(*w.until))
	}
	for {
		b, err := w.sub.Next(ctx)
		if err != nil {
			return err
		}
		if w.until != nil && b.Revision > catalog.Revision(*w.until) {
			return w.bookmark(catalog.Revision(*w.until))
		}
		if err := w.batch(b); err != nil {
			return err
		}
		if w.until != nil && b.Revision == catalog.Revision(*w.until) {
			return w.bookmark(b.Revision)
		}
	}
}

func (w *watcher) hello() error {
	h := w.sub.Hello()
	inc := h.Incarnation
	if inc.IsZero() && w.snap != nil {
		inc = w.snap.Incarnation()
	}
	return w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Hello{Hello: &pb.WatchHello{
		Incarnation: api.IncarnationToProto(inc), Oldest: uint64(startable(h.Oldest)), Current: uint64(h.Current),
	}}})
}

// batch sends an event, or tells the position.
func (w *watcher) batch(b watch.Batch) error {
	if !b.Bookmark() {
		sent, err := w.event(b)
		if err != nil {
			return err
		}
		if sent {
			w.told = b.Revision
			w.s.metrics.events.Inc()
			return nil
		}
	}
	// The history tells positions as often as it was asked to, and nothing of
	// events that only this server leaves out.
	first := b.Bookmark() && !w.synced
	w.synced = w.synced || b.Bookmark()
	if b.Revision > w.told && (first || b.Revision-w.told >= watch.DefaultBookmarkEvery) {
		return w.bookmark(b.Revision)
	}
	return nil
}

// event sends what of an event passes the filter and reports whether anything
// did.
func (w *watcher) event(b watch.Batch) (bool, error) {
	var block []byte
	ev := w.filter.keep(b.Event)
	switch {
	case len(ev.Changes) == 0:
		return false, nil
	case b.Entry != nil && ev == b.Event && !w.before:
		block = b.Entry.Encoded(func() []byte { return w.s.encodeEvent(ev, false) })
	default:
		block = w.s.encodeEvent(ev, w.before)
	}
	if len(block) == 0 {
		return false, refuse(catalog.ErrUnknownServerError, "the event of revision %d cannot be sent; the node's log says why", ev.Revision)
	}
	for f, err := range frames(block) {
		if err != nil {
			return false, err
		}
		if err := w.send(f); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (w *watcher) bookmark(rev catalog.Revision) error {
	w.told = max(w.told, rev)
	return w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Bookmark{Bookmark: &pb.WatchBookmark{Revision: uint64(rev)}}})
}
