package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// Defaults and bounds of a router.
const (
	DefaultRouterPartitions = 100_000
	DefaultRouterPending    = 16_384
	DefaultRouterAttempts   = 16

	maxRouterPartitions = 1 << 24
	maxRouterAttempts   = 1000
)

// RouterOptions say how a router works. Zero values mean the default.
type RouterOptions struct {
	// Create makes a partition that a row needs and that does not exist. Default:
	// the row is refused with catalog.ErrPartitionNotExists.
	Create bool
	// Assign spreads the rows of a table without bucket key; default routing.Sticky.
	Assign routing.AssignMode
	// Partitions bounds the partitions that are remembered: one more, and all are
	// forgotten and looked up again. Default 100,000, at most 16,777,216.
	Partitions int
	// Pending bounds the partitions that are being looked up or created; rows of
	// others are refused with catalog.ErrBusy meanwhile. Default 16,384.
	Pending int
	// Attempts is how often one request may be sent, for Retry, and how often a
	// lookup that was overtaken begins anew. Default 16, at most 1,000. Pauses
	// between attempts grow from 10 ms to 1 s: 16 take about 9 s.
	Attempts int
}

func (o RouterOptions) withDefaults() RouterOptions {
	if o.Partitions == 0 {
		o.Partitions = DefaultRouterPartitions
	}
	if o.Pending == 0 {
		o.Pending = DefaultRouterPending
	}
	if o.Attempts == 0 {
		o.Attempts = DefaultRouterAttempts
	}
	return o
}

func (o RouterOptions) validate() error {
	var errs []error
	check := func(field string, v, limit int) {
		if v < 1 || v > limit {
			errs = append(errs, fmt.Errorf("%s is %d, want 1 to %d", field, v, limit))
		}
	}
	check("partitions", o.Partitions, maxRouterPartitions)
	check("pending", o.Pending, maxRouterPartitions)
	check("attempts", o.Attempts, maxRouterAttempts)
	if o.Assign > routing.RoundRobin {
		errs = append(errs, fmt.Errorf("assign is %d, want %d (sticky) or %d (round robin)", o.Assign, routing.Sticky, routing.RoundRobin))
	}
	return errors.Join(errs...)
}

// Router tells where the rows of one table belong: the partition, the bucket by
// that partition's own count, and who leads it. Routes of partitions it knows
// cost no I/O. It follows the table's path: of a table that was dropped and made
// again it gives the routes of the new one.
//
// The count that a bucket was computed with is pinned in the route. Send it with
// the rows (Route.Request) and hand every failure to Retry.
//
// A Router may be used by any number of goroutines.
type Router struct {
	c       *Client
	path    string
	o       RouterOptions
	assign  *routing.Assigners
	scratch sync.Pool // of *routing.Scratch
	// layout is what is known, for routes that need no lock; nil when nothing is.
	// Invariant: it is the cache's, outside mu.
	layout atomic.Pointer[routing.Layout]
	closed atomic.Bool
	find   *finder

	mu    sync.Mutex // serialises changes of cache and layout
	cache *routing.LayoutCache
}

// OpenRouter reads a table and returns a router of its rows. Errors:
// catalog.ErrTableNotExist, catalog.ErrTableImporting, those of
// routing.NewTableKeys, those of a read, and one that names every option that is
// wrong. Close ends it; so does closing the client.
func (c *Client) OpenRouter(ctx context.Context, table string, o RouterOptions) (*Router, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("router of %s: %w", table, err)
	}
	r := &Router{
		c: c, path: table, o: o, assign: routing.NewAssigners(o.Assign, rand.Uint64()),
		cache: routing.NewLayoutCache(1, o.Partitions), scratch: sync.Pool{New: func() any { return &routing.Scratch{} }},
	}
	r.find = newFinder(r)
	if _, err := r.Layout(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends blocked calls with ErrClosed and waits for lookups under way.
// Routes that were given stay valid. Close may be called again.
func (r *Router) Close() error {
	r.closed.Store(true)
	r.find.close()
	return nil
}

// Layout returns what the router knows of the table, reading its row if it knows
// nothing. It has the partitions that were routed to, not all. Errors are those
// of OpenRouter.
func (r *Router) Layout(ctx context.Context) (*routing.Layout, error) {
	if l := r.layout.Load(); l != nil && !r.closed.Load() {
		return l, nil
	}
	ctx, cancel := r.c.budget(ctx)
	defer cancel()
	return r.find.get(ctx, lookupKey{}, false)
}

// Route returns where a row belongs. A partition that is known costs no I/O and
// allocates nothing. Otherwise the call blocks until one layout has the
// partition's id and count, and the bucket is computed with that layout; with
// RouterOptions.Create a missing partition is created first. Whatever the number
// of callers, one lookup and one creation are under way per partition.
//
// row has one value per column, in order; it is not kept. Errors: those of the
// row, as from routing.Layout.Route; catalog.ErrPartitionNotExists and
// catalog.ErrTableNotExist; the refusal of a creation, such as
// catalog.ErrPartitionMaxNum; catalog.ErrStaleMetadata for a partition whose
// count cannot be known; catalog.ErrBusy beyond RouterOptions.Pending; a
// *CallError if the cluster did not answer, ctx ended or the router was closed.
// A refused partition does not keep rows of others from being routed.
func (r *Router) Route(ctx context.Context, row []routing.Value) (route routing.Route, err error) {
	l := r.layout.Load()
	if l == nil || r.closed.Load() {
		return r.resolve(ctx, row)
	}
	if l.RouteShort(&route, row) {
		return route, nil
	}
	return r.routeIn(ctx, l, row)
}

// routeIn routes with what is known, and asks if that is not enough.
func (r *Router) routeIn(ctx context.Context, l *routing.Layout, row []routing.Value) (routing.Route, error) {
	s := r.scratch.Get().(*routing.Scratch)
	out, err := l.RouteAny(row, s, r.assign)
	r.scratch.Put(s)
	if err != nil && lookupHelps(err) {
		return r.resolve(ctx, row)
	}
	return out, err
}

// lookupHelps reports whether what is not known may be known once read.
func lookupHelps(err error) bool {
	return errors.Is(err, catalog.ErrPartitionNotExists) || errors.Is(err, catalog.ErrStaleMetadata)
}

// resolve looks the partition of a row up and routes with the layout found.
func (r *Router) resolve(ctx context.Context, row []routing.Value) (routing.Route, error) {
	ctx, cancel := r.c.budget(ctx)
	defer cancel()
	l, err := r.Layout(ctx)
	if err != nil {
		return routing.Route{}, err
	}
	var s routing.Scratch
	for range r.o.Attempts {
		out, err := l.RouteAny(row, &s, r.assign)
		if err == nil || !lookupHelps(err) {
			return out, err
		}
		name, nerr := partitionOf(l, row)
		if nerr != nil {
			return routing.Route{}, nerr
		}
		if l, nerr = r.find.get(ctx, lookupKey{name, r.o.Create && l.Table().Partitioned()}, false); nerr != nil {
			return routing.Route{}, nerr
		}
		if errors.Is(err, catalog.ErrStaleMetadata) { // it was asked for again, and that is the answer
			return l.RouteAny(row, &s, r.assign)
		}
	}
	return routing.Route{}, &catalog.Error{
		Code: catalog.ErrUnavailable, Message: fmt.Sprintf("the layout of table %s changed %d times while a row was routed", r.path, r.o.Attempts),
	}
}

// partitionOf returns the partition name of a row; empty for a table without
// partitions.
func partitionOf(l *routing.Layout, row []routing.Value) (string, error) {
	n := l.Keys().Partition()
	if n == nil {
		return "", nil
	}
	name, err := n.Append(nil, row)
	return string(name), err
}

// RouteAll routes many rows; unknown partitions are looked up and created
// together. errs is nil when all is well, else it has the error of each row that
// has no route, nil for the others. The rows of one partition are routed with
// one layout.
func (r *Router) RouteAll(ctx context.Context, rows [][]routing.Value) (routes []routing.Route, errs []error) {
	ctx, cancel := r.c.budget(ctx)
	defer cancel()
	routes = make([]routing.Route, len(rows))
	fail := func(i int, err error) {
		if errs == nil {
			errs = make([]error, len(rows))
		}
		errs[i] = err
	}
	l, err := r.Layout(ctx)
	if err != nil {
		for i := range rows {
			fail(i, err)
		}
		return routes, errs
	}
	s := r.scratch.Get().(*routing.Scratch)
	defer r.scratch.Put(s)
	unknown := map[string][]int{}
	var names []string // in order of first use
	for i, row := range rows {
		out, err := l.RouteAny(row, s, r.assign)
		var missing *routing.UnknownPartitionError
		switch {
		case err == nil:
			routes[i] = out
		case errors.As(err, &missing):
			if unknown[missing.Name] == nil {
				names = append(names, missing.Name)
			}
			unknown[missing.Name] = append(unknown[missing.Name], i)
		default:
			if routes[i], err = r.Route(ctx, row); err != nil {
				fail(i, err)
			}
		}
	}
	r.find.each(ctx, names, r.o.Create, func(name string, l *routing.Layout, err error) {
		for _, i := range unknown[name] {
			out, rerr := routing.Route{}, err
			if err == nil {
				out, rerr = l.RouteAny(rows[i], s, r.assign)
			}
			if routes[i] = out; rerr != nil {
				fail(i, rerr)
			}
		}
	})
	return routes, errs
}

// NewBatch tells that a batch of rows without bucket key is full: a sticky
// router goes on with another bucket of that partition, if there is one.
func (r *Router) NewBatch(full routing.Route) {
	if full.In != nil {
		r.assign.NewBatch(full.In, full.Bucket)
	}
}

// learn takes an answer about names into the cache and returns what is known
// then; false if the answer is older than what is known, so that it must be asked
// for again.
func (r *Router) learn(answer *routing.Layout, names []string) (*routing.Layout, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.layout.Load(); old != nil {
		if added := r.forgetAbsent(old, answer, names); added > 0 && old.Len()+added > r.o.Partitions {
			r.cache.WithoutAll(r.path)
		}
	}
	out := r.cache.Put(answer)
	r.publish()
	return out, out == r.layout.Load()
}

// forgetAbsent drops what an answer was asked for and does not have, and returns
// how many partitions the answer adds.
func (r *Router) forgetAbsent(old, answer *routing.Layout, names []string) (added int) {
	same := old.Incarnation() == answer.Incarnation() && old.Table().ID == answer.Table().ID
	for _, name := range names {
		_, there := answer.Partition(name)
		p, known := old.Partition(name)
		switch {
		case there && !known:
			added++
		case !there && known && same && p.Revision < answer.Revision():
			r.cache.WithoutDropped(r.path, name, p.ID)
			r.assign.Forget(p.ID)
		}
	}
	return added
}

// publish makes what the cache holds the layout of new routes. mu is held.
func (r *Router) publish() {
	l, ok := r.cache.Get(r.path)
	if !ok {
		l = nil
	}
	r.layout.Store(l)
}

// forgetTable drops everything, because the table id is gone.
func (r *Router) forgetTable(id catalog.TableID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cache.WithoutTable(r.path, id)
	r.publish()
}
