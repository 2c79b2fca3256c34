package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// maxSpecsPerCreate is how many partitions one command creates at most.
const maxSpecsPerCreate = 256

// lookupKey names what is asked for: a partition, or the table's row by the
// empty name. Whoever must not create anything does not wait for a creation.
type lookupKey struct {
	name   string
	create bool
}

// lookup is one question that all its callers share. layout and err are its
// outcome once done is closed; the rest is guarded by finder.mu.
type lookup struct {
	key     lookupKey
	done    chan struct{}
	layout  *routing.Layout
	err     error
	waiters int
	tries   int
	// reading says that a read is under way that may not see what its caller
	// already knows.
	reading bool
}

// finder reads and creates partitions for a router: at any time one read and one
// creation are under way, and what is asked for meanwhile is in the next ones.
type finder struct {
	r    *Router
	ctx  context.Context // the life of the router, which is within the client's
	end  context.CancelFunc
	jobs sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	pending  map[lookupKey]*lookup
	count    int // lookups without an outcome, those replaced in pending included
	reads    []*lookup
	creates  []*lookup
	reading  bool
	creating bool
}

func newFinder(r *Router) *finder {
	f := &finder{r: r, pending: map[lookupKey]*lookup{}}
	f.ctx, f.end = context.WithCancel(r.c.pool.ctx)
	return f
}

func (f *finder) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.end()
	f.jobs.Wait()
}

// get returns a layout that answers key. fresh wants one that is read after now.
func (f *finder) get(ctx context.Context, key lookupKey, fresh bool) (*routing.Layout, error) {
	for {
		q, joined, err := f.ask(key, fresh)
		if err != nil {
			return nil, err
		}
		l, err := f.wait(ctx, q)
		if joined && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			continue // it began earlier, and its time was over before this caller's
		}
		return l, err
	}
}

// each asks for many partitions, as many at a time as may be pending with room
// for others, and calls f with each outcome.
func (f *finder) each(ctx context.Context, names []string, create bool, done func(string, *routing.Layout, error)) {
	for chunk := range slices.Chunk(names, max(f.r.o.Pending/2, 1)) {
		qs := make([]*lookup, len(chunk))
		errs := make([]error, len(chunk))
		for i, name := range chunk {
			qs[i], _, errs[i] = f.ask(lookupKey{name, create}, false)
		}
		for i, name := range chunk {
			if qs[i] == nil {
				done(name, nil, errs[i])
				continue
			}
			l, err := f.wait(ctx, qs[i])
			done(name, l, err)
		}
	}
}

// ask begins a lookup, or joins one that another caller began.
func (f *finder) ask(key lookupKey, fresh bool) (q *lookup, joined bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.ctx.Err() != nil {
		return nil, false, (&trace{method: f.what(key)}).fail(ErrClosed)
	}
	if q := f.pending[key]; q != nil && (!fresh || !q.reading) {
		q.waiters++
		return q, true, nil
	}
	if f.count >= f.r.o.Pending {
		return nil, false, &catalog.Error{
			Code: catalog.ErrBusy, Limit: uint64(f.r.o.Pending), Size: uint64(f.count),
			Message: fmt.Sprintf("%d partitions of table %s are being looked up", f.count, f.r.path),
		}
	}
	q = &lookup{key: key, done: make(chan struct{}), waiters: 1}
	f.pending[key] = q
	f.count++
	f.r.c.metrics.lookups.WithLabelValues("miss").Inc()
	f.read(q)
	return q, false, nil
}

func (f *finder) what(key lookupKey) string {
	if key.name == "" {
		return "layout of " + f.r.path
	}
	return "partition '" + key.name + "' of " + f.r.path
}

// wait blocks until a lookup has its outcome, ctx ends or the router is closed.
func (f *finder) wait(ctx context.Context, q *lookup) (*routing.Layout, error) {
	select {
	case <-q.done:
		return q.layout, q.err
	case <-ctx.Done():
		f.leave(q)
		return nil, (&trace{method: f.what(q.key)}).fail(f.r.c.closedCause(ctx))
	case <-f.ctx.Done():
		return nil, (&trace{method: f.what(q.key)}).fail(ErrClosed)
	}
}

// leave takes a caller off a lookup. One that nobody waits for is not begun.
func (f *finder) leave(q *lookup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.waiters--
}

// read queues a lookup for the next read. The lock is held.
func (f *finder) read(q *lookup) {
	q.reading = false
	f.reads = append(f.reads, q)
	if !f.reading {
		f.reading = f.spawn(f.runReads)
	}
}

// spawn starts a loop of the router's life. The lock is held, so that close
// waits for it.
func (f *finder) spawn(loop func(context.Context)) bool {
	f.jobs.Add(1)
	if f.r.c.spawn(func(context.Context) { defer f.jobs.Done(); loop(f.ctx) }) {
		return true
	}
	f.jobs.Done()
	return false
}

// take removes up to n lookups that somebody waits for from a queue.
func (f *finder) take(queue *[]*lookup, n int) (out []*lookup) {
	i := 0
	for ; i < len(*queue) && len(out) < n; i++ {
		if q := (*queue)[i]; q.waiters > 0 {
			out = append(out, q)
		} else {
			f.finish(q, nil, context.Canceled)
		}
	}
	clear((*queue)[:i])
	if *queue = (*queue)[i:]; len(*queue) == 0 {
		*queue = nil
	}
	return out
}

// finish gives a lookup its outcome. The lock is held.
func (f *finder) finish(q *lookup, l *routing.Layout, err error) {
	q.layout, q.err = l, err
	if f.pending[q.key] == q {
		delete(f.pending, q.key)
	}
	f.count--
	close(q.done)
}

func (f *finder) runReads(ctx context.Context) {
	for {
		f.mu.Lock()
		batch := f.take(&f.reads, maxNamesPerRead)
		if len(batch) == 0 || ctx.Err() != nil {
			f.reading = false
			f.mu.Unlock()
			return
		}
		for _, q := range batch {
			q.reading = true
		}
		f.mu.Unlock()
		l, current, err := f.readOnce(ctx, batch)
		f.mu.Lock()
		for _, q := range batch {
			f.settle(q, l, current, err)
		}
		f.mu.Unlock()
	}
}

// budget is a little less than what callers have by default, so that they learn
// what the cluster answered instead of only that their time is over.
func (f *finder) budget(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.r.c.cfg.timeout-f.r.c.cfg.timeout/8)
}

// readOnce reads the names of a batch from one state.
func (f *finder) readOnce(ctx context.Context, batch []*lookup) (*routing.Layout, bool, error) {
	var names []string
	for _, q := range batch {
		if q.key.name != "" {
			names = append(names, q.key.name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	f.r.c.metrics.lookups.WithLabelValues("read").Inc()
	known := f.r.layout.Load()
	ctx, cancel := f.budget(ctx)
	defer cancel()
	got, meta, err := f.r.c.Layout(ctx, f.r.path, names)
	if err != nil {
		if errors.Is(err, catalog.ErrTableNotExist) && known != nil {
			f.r.forgetTable(known.Table().ID)
		}
		return nil, false, err
	}
	answer, err := routing.NewLayout(meta.Incarnation, meta.Revision, got.Table, got.Partitions, got.Servers)
	if err != nil {
		return nil, false, err
	}
	l, current := f.r.learn(answer, names)
	return l, current, nil
}

// settle decides what a read means for a lookup. The lock is held.
func (f *finder) settle(q *lookup, l *routing.Layout, current bool, err error) {
	switch {
	case err != nil:
		f.finish(q, nil, err)
		return
	case !current:
		f.again(q)
		return
	case q.key.name == "":
		f.finish(q, l, nil)
		return
	}
	switch _, there := l.Partition(q.key.name); {
	case there:
		f.finish(q, l, nil)
	case !q.key.create || !l.Table().Partitioned():
		f.finish(q, nil, &catalog.Error{
			Code: catalog.ErrPartitionNotExists, Message: fmt.Sprintf("partition '%s' of table %s does not exist", q.key.name, f.r.path),
		})
	default:
		q.reading = false
		q.layout = l // the table to create it in
		f.creates = append(f.creates, q)
		if !f.creating {
			f.creating = f.spawn(f.runCreates)
		}
	}
}

// again reads once more, within bounds, what was overtaken. The lock is held.
func (f *finder) again(q *lookup) {
	if q.tries++; q.tries >= f.r.o.Attempts {
		f.finish(q, nil, &catalog.Error{
			Code: catalog.ErrUnavailable, Message: fmt.Sprintf("%s was dropped or replaced %d times while it was looked up", f.what(q.key), q.tries),
		})
		return
	}
	f.read(q)
}

func (f *finder) runCreates(ctx context.Context) {
	for {
		f.mu.Lock()
		batch := f.take(&f.creates, maxSpecsPerCreate)
		if len(batch) == 0 || ctx.Err() != nil {
			f.creating = false
			f.mu.Unlock()
			return
		}
		// All of a command are for one table: those of another one wait.
		table := batch[0].layout.Table()
		rest := batch[:0:0]
		batch = slices.DeleteFunc(batch, func(q *lookup) bool {
			other := q.layout.Table().ID != table.ID
			if other {
				rest = append(rest, q)
			}
			return other
		})
		f.creates = append(rest, f.creates...)
		f.mu.Unlock()
		f.create(ctx, table, batch)
	}
}

// create makes partitions of one table. A command is all or nothing, so a refused
// one is parted until each refusal has reached its own partition.
func (f *finder) create(ctx context.Context, t *catalog.Table, batch []*lookup) {
	cmd := catalog.CreatePartitions{Table: t.Path, TableID: catalog.Some(t.ID), IfNotExists: true}
	for _, q := range batch {
		cmd.Specs = append(cmd.Specs, t.Spec(&catalog.Partition{Name: q.key.name}))
	}
	cctx, cancel := f.budget(ctx)
	defer cancel()
	_, err := f.r.c.Do(cctx, cmd)
	var call *CallError
	switch {
	case err == nil, errors.Is(err, catalog.ErrTableNotExist), errors.Is(err, catalog.ErrOutcomeUnknown):
		// The next read tells id and count, or what became of the table. Asking
		// again after an unknown outcome creates nothing twice.
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, q := range batch {
			q.layout = nil
			f.again(q)
		}
	case len(batch) > 1 && !errors.As(err, &call) && ctx.Err() == nil:
		half := len(batch) / 2
		f.create(ctx, t, batch[:half])
		f.create(ctx, t, batch[half:])
	default:
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, q := range batch {
			f.finish(q, nil, err)
		}
	}
}
