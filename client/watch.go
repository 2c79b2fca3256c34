package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// WatchFilter keeps the events a caller wants; empty fields keep everything.
type WatchFilter struct {
	// Database keeps rows of one database, Table ("database.table") those of one
	// table and its partitions. At most one of them is set.
	Database, Table string
	Kinds           []catalog.ObjectKind
	// KeyPrefix keeps only keys of the key-value group that begin so.
	KeyPrefix string
}

// WatchOptions say where a watch starts and what it shows.
type WatchOptions struct {
	// From is exclusive: the last revision already seen. Unset: the state current
	// when the watch begins.
	From catalog.Opt[catalog.Revision]
	// Incarnation, if not zero, is the one From belongs to.
	Incarnation catalog.Incarnation
	// Until ends the watch after that revision, with io.EOF.
	Until  catalog.Opt[catalog.Revision]
	Filter WatchFilter
	// Snapshot delivers one consistent state first. With From it does so only when
	// no node has the history any more, and after a restore, instead of
	// *api.CompactedError and *api.RestoredError.
	Snapshot bool
	// Before delivers rows as they were before an update, too.
	Before bool
}

// Batch is one step of a watch: everything one command changed, a snapshot, or
// a bookmark. It is the caller's, and its rows are immutable.
type Batch struct {
	Incarnation catalog.Incarnation
	// Revision is the one to resume from once the batch is dealt with.
	Revision catalog.Revision
	// Event is nil for a bookmark and a snapshot. An update without before-values
	// looks like a creation in it; Wire tells them apart.
	Event *catalog.Event
	// Snapshot says that Rows are the whole state at Revision: whatever was known
	// before is replaced by it.
	Snapshot bool
	Rows     []catalog.Object
	// Wire is the event as it was sent, and Objects the rows, with what is derived
	// from other rows, as effective bucket counts.
	Wire    *pb.EventBatch
	Objects []*pb.Object
}

// Bookmark reports whether the batch says only that nothing else happened up to
// its revision.
func (b *Batch) Bookmark() bool { return b.Event == nil && !b.Snapshot }

// watchBuffer is how many batches are read ahead of the caller.
const watchBuffer = 16

// Watcher delivers batches in order: revisions of events rise strictly, none is
// delivered twice, and none is left out, across any number of broken
// connections and changes of the serving node.
type Watcher struct {
	cancel context.CancelCauseFunc
	out    chan Batch
	done   chan struct{}
	err    error // why it ended; read after done
}

// Watch begins a watch. It lives until ctx ends, Close, or an error from Next.
// The error of Watch says that o contradicts itself.
func (c *Client) Watch(ctx context.Context, o WatchOptions) (*Watcher, error) {
	if !o.Incarnation.IsZero() && !o.From.Set {
		return nil, &catalog.Error{Code: catalog.ErrInvalidArgument, Message: "the incarnation of a watch is set, want none without from"}
	}
	f := &follower{c: c, o: o, r: route{c: c}, tr: trace{method: pb.Watch_Watch_FullMethodName}, inc: o.Incarnation}
	f.last, f.resume = o.From.V, o.From.Set
	if err := api.WatchRequestCheck(f.request(false)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watcher{cancel: cancel, out: make(chan Batch, watchBuffer), done: make(chan struct{})}
	if !c.spawn(func(life context.Context) {
		stop := context.AfterFunc(life, func() { cancel(ErrClosed) })
		defer stop()
		defer close(w.done)
		w.err = f.follow(ctx, w.out)
		cancel(nil)
	}) {
		cancel(ErrClosed)
		return nil, f.tr.fail(ErrClosed)
	}
	return w, nil
}

// Next returns the next batch. io.EOF says that Until was reached; after any
// error but ctx's the watch is over. One goroutine at a time.
func (w *Watcher) Next(ctx context.Context) (Batch, error) {
	select {
	case b := <-w.out:
		return b, nil
	default:
	}
	select {
	case b := <-w.out:
		return b, nil
	case <-ctx.Done():
		return Batch{}, context.Cause(ctx)
	case <-w.done:
	}
	select { // what was delivered before the end comes first
	case b := <-w.out:
		return b, nil
	default:
		return Batch{}, w.err
	}
}

// Close ends the watch and waits until nothing of it runs.
func (w *Watcher) Close() error {
	w.cancel(ErrClosed)
	<-w.done
	return nil
}

// follower is the place a watch has reached.
type follower struct {
	c  *Client
	o  WatchOptions
	r  route
	tr trace
	// inc and last are where to go on, once resume is set. Nothing at or below
	// last is delivered in inc.
	inc    catalog.Incarnation
	last   catalog.Revision
	resume bool
	// compacted are the nodes that do not have the history after last.
	compacted map[string]bool
	// whole asks for a snapshot where it would otherwise be the last resort.
	whole bool
}

func (f *follower) request(snapshot bool) *pb.WatchRequest {
	req := &pb.WatchRequest{
		Snapshot: snapshot, BeforeValues: f.o.Before,
		Filter: &pb.WatchFilter{Database: f.o.Filter.Database, Table: f.o.Filter.Table, KeyPrefix: f.o.Filter.KeyPrefix},
	}
	for _, k := range f.o.Filter.Kinds {
		req.Filter.Kinds = append(req.Filter.Kinds, pb.ObjectKind(k))
	}
	if f.o.Until.Set {
		v := uint64(f.o.Until.V)
		req.UntilRevision = &v
	}
	if f.resume {
		v := uint64(f.last)
		req.FromRevision = &v
		req.Incarnation = api.IncarnationToProto(f.inc)
	}
	return req
}

// follow runs streams one after another until the watch is over.
func (f *follower) follow(ctx context.Context, out chan<- Batch) error {
	for {
		l, err := f.r.next(ctx)
		if err != nil {
			return f.over(ctx, err)
		}
		f.tr.attempt(l.addr)
		before := position{f.inc, f.last}
		err = f.session(ctx, l, out)
		if errors.Is(err, io.EOF) && f.reached() {
			return io.EOF
		}
		if ctx.Err() != nil {
			return f.over(ctx, err)
		}
		if (position{f.inc, f.last}) != before { // it worked for a while
			f.r.failures = 0
			f.compacted = nil
			clear(f.r.avoid)
		}
		again, final := f.after(ctx, l, err)
		if !again {
			return final
		}
	}
}

func (f *follower) reached() bool {
	return f.o.Until.Set && f.resume && f.last >= f.o.Until.V
}

// over is the error of a watch that its owner ended.
func (f *follower) over(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = err
	}
	return f.tr.fail(cause)
}

// after decides how a watch goes on when a stream ended with err.
func (f *follower) after(ctx context.Context, l *link, err error) (again bool, final error) {
	f.tr.last = err
	if errors.Is(err, io.EOF) {
		f.tr.last = fmt.Errorf("node %s ended the watch", l.id.node)
		return f.retry(ctx, l, stepBroken)
	}
	switch {
	case errors.Is(err, catalog.ErrCompacted):
		return f.afterCompacted(ctx, l, err)
	case errors.Is(err, catalog.ErrRestored):
		return f.afterRestored(ctx, l, err)
	}
	s := judge(ctx, err)
	if s == stepDone || s == stepLost {
		return false, err
	}
	return f.retry(ctx, l, s)
}

func (f *follower) retry(ctx context.Context, l *link, s step) (bool, error) {
	if !f.r.after(ctx, l, s) {
		return false, f.over(ctx, f.tr.last)
	}
	return true, nil
}

// afterCompacted asks every other node first: each keeps a history of its own
// length.
func (f *follower) afterCompacted(ctx context.Context, l *link, err error) (bool, error) {
	if f.compacted == nil {
		f.compacted = map[string]bool{}
	}
	f.compacted[l.id.node] = true
	if f.c.pool.untried(f.compacted) {
		return f.retry(ctx, l, stepElsewhere)
	}
	if !f.o.Snapshot {
		return false, err
	}
	f.whole = true
	return f.retry(ctx, l, stepElsewhere)
}

// afterRestored goes on in a new history with a snapshot, if that was asked for.
func (f *follower) afterRestored(ctx context.Context, l *link, err error) (bool, error) {
	var r *api.RestoredError
	if errors.As(err, &r) && !f.inc.IsZero() && r.Incarnation.Compare(f.inc) < 0 {
		return f.retry(ctx, l, stepElsewhere) // this node has not heard of the restore yet
	}
	if !f.o.Snapshot {
		return false, err
	}
	f.inc, f.last, f.resume, f.compacted = catalog.Incarnation{}, 0, false, nil
	return f.retry(ctx, l, stepAgain)
}
