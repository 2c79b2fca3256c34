// Package watch keeps the recent history of a catalog by revision and lets any
// number of subscribers follow it, each at its own pace.
//
//	h := watch.New(watch.Config{TablePath: path})
//	h.Publish(rev, events)            // the FSM, once per applied batch
//	sub, err := h.Subscribe(watch.Options{From: st.Revision()})
//	b, err := sub.Next(ctx)           // every change after st
//
// # Guarantees
//
// They hold for every subscription, through trims, snapshot installs and
// restores, until Next returns an error.
//
//	ordered     revisions of events strictly increase; a bookmark is above
//	            everything told before it
//	unique      an event is delivered at most once, and nothing at or below
//	            From is delivered, also on a node that is still behind From
//	atomic      a batch is everything one command changed that the filter lets
//	            through; it is never split
//	reliable    between two answers of Next no matching event is left out. A
//	            subscription that cannot keep this ends with a typed error
//	resumable   a new subscription From the last revision told, an event's or a
//	            bookmark's, on any node of the incarnation goes on exactly there
//	bookmarks   a bookmark R is told only after every matching event at or
//	            below R was
//	filterable  a batch holds exactly the matching changes, in command order; a
//	            command without any makes no batch
//	typed ends  CompactedError: the history no longer reaches back to the
//	            position. SlowError: the reader fell behind it. RestoredError: the
//	            history was replaced. ErrClosed: the subscription or the
//	            history was closed. Errors of a subscription are final, those
//	            of the context passed to Next are not
//
// From is exclusive everywhere. Revisions count whether or not they made an
// event.
//
// # How it works
//
// The history is an array of records in segments that readers walk without
// locks. The one publisher appends, moves the bounds and wakes at most one
// waiting subscriber, which wakes the others: what the publisher does per batch
// depends neither on the number of subscribers nor on what they do. A
// subscription is a position in that array. It has no goroutine and no queue;
// filtering and encoding are paid by the goroutine that calls Next.
//
// The history is bounded by revisions and by bytes. The newest event stays even
// if it alone is larger than the bound. Bytes are estimates of what the rows
// hold, the same on every node, plus the encodings kept by Entry.Encoded.
package watch
