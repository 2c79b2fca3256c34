package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// Pauses between attempts of one request.
const (
	minRetryPause = 10 * time.Millisecond
	maxRetryPause = time.Second
)

// Retry says what becomes of a request that was sent with a route and failed, by
// the rules of routing.React. With a nil error the same request may be sent
// again, with the route returned: the same bucket and pinned count, and whoever
// leads it now. attempt counts the attempts made, from 1. Retry waits between
// attempts.
//
// Otherwise the request has failed, and what was wrong in the router is
// forgotten: the next Route of the same rows asks the cluster. Errors: cause, if
// it is no reason to try again, with STALE_METADATA first of all; a
// *routing.StaleError if the partition turned out to have another count than the
// pinned one, whatever the server said; catalog.ErrPartitionNotExists or
// catalog.ErrTableNotExist if it is gone; routing.ErrAttempts, with cause, after
// RouterOptions.Attempts; those of a read.
//
// cause has to be a catalog.Code, wrapped as may be. A server that did not answer
// is catalog.ErrNetwork: the router then looks for another leader.
func (r *Router) Retry(ctx context.Context, sent routing.Route, attempt int, cause error) (routing.Route, error) {
	if cause == nil {
		return sent, nil
	}
	what := routing.React(api.CodeOf(cause))
	if what.DropPartition {
		r.forgetPartition(sent, api.CodeOf(cause))
	}
	if what.DropTable {
		r.forgetTable(sent.Table)
	}
	switch {
	case !what.Retry:
		return routing.Route{}, cause
	case attempt >= r.o.Attempts:
		b := sent.TableBucket()
		return routing.Route{}, fmt.Errorf("%w: %s after %d: %w", routing.ErrAttempts, b, attempt, cause)
	}
	ctx, cancel := r.c.budget(ctx)
	defer cancel()
	next, moved := sent, false
	if what.Refresh {
		l, err := r.find.get(ctx, lookupKey{name: sent.Name()}, true)
		if err != nil {
			return routing.Route{}, err
		}
		if err := routing.AfterRefresh(sent, l, attempt, r.o.Attempts); err != nil {
			r.forgetPartition(sent, api.CodeOf(err))
			return routing.Route{}, err
		}
		next.In, _ = l.PartitionByID(sent.Partition)
		was, _ := sent.Leader()
		now, led := next.Leader()
		moved = led && (now.Server != was.Server || now.LeaderEpoch != was.LeaderEpoch)
	}
	if !moved && !pause(ctx, retryPause(attempt)) {
		return routing.Route{}, fmt.Errorf("%w: %w", r.c.closedCause(ctx), cause)
	}
	return next, nil
}

// retryPause doubles from attempt to attempt, a half of it at random.
func retryPause(attempt int) time.Duration {
	d := maxRetryPause
	if attempt < 7 {
		d = min(minRetryPause<<max(attempt-1, 0), maxRetryPause)
	}
	return d/2 + rand.N(d/2)
}

// Reroute routes a row whose route was refused, from what the cluster says now.
// The error is routing.ErrSameRoute if that is the refused route: the same
// partition id with the same count would be refused again.
func (r *Router) Reroute(ctx context.Context, refused routing.Route, row []routing.Value) (routing.Route, error) {
	ctx, cancel := r.c.budget(ctx)
	defer cancel()
	l, err := r.Layout(ctx)
	if err != nil {
		return routing.Route{}, err
	}
	name, err := partitionOf(l, row)
	if err != nil {
		return routing.Route{}, err
	}
	if _, err = r.find.get(ctx, lookupKey{name, r.o.Create && name != ""}, true); err != nil {
		return routing.Route{}, err
	}
	out, err := r.Route(ctx, row)
	if err != nil {
		return routing.Route{}, err
	}
	if err := routing.CheckReroute(refused, out); err != nil {
		return routing.Route{}, err
	}
	return out, nil
}

// forgetPartition drops what a refused route was made of, unless another count
// is known already.
func (r *Router) forgetPartition(sent routing.Route, code catalog.Code) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.layout.Load()
	if l == nil || l.Incarnation() != sent.Incarnation || l.Table().ID != sent.Table {
		return
	}
	if code == catalog.ErrPartitionNotExists {
		r.cache.WithoutDropped(r.path, sent.Name(), sent.Partition)
	} else if p, ok := l.PartitionByID(sent.Partition); ok && p.Count == sent.Count {
		r.cache.Without(r.path, sent.Partition)
	}
	r.assign.Forget(sent.Partition)
	r.publish()
}
