package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stavedb/stave/catalog"
)

// tableRead is what is read of one table: one read under way, and the names that
// the next one asks for.
type tableRead struct {
	running *layoutRead
	next    *layoutRead
}

// layoutRead is one read that all its callers share. got holds its outcome for
// callers that the cache has no room for.
type layoutRead struct {
	names map[string]bool
	done  chan struct{}
	table TableLayout
	meta  Meta
	err   error
}

func newLayoutRead() *layoutRead {
	return &layoutRead{names: map[string]bool{}, done: make(chan struct{})}
}

// miss waits for a read that covers a name.
func (l *LayoutCache) miss(ctx context.Context, key layoutName, stale *CachedLayout) (*CachedLayout, error) {
	ctx, cancel := l.c.budget(ctx)
	defer cancel()
	l.mu.Lock()
	// Looked at again under the lock: a read may have ended meanwhile.
	if t := l.tables[key.table]; t != nil {
		if s := t.slots[key.partition]; s != nil && (stale == nil || s.layout.at().compare(stale.at()) > 0) {
			hit := s.layout
			l.mu.Unlock()
			return hit, nil
		}
	}
	if a, ok := l.absent[key]; ok && (stale == nil || a.rev > stale.Revision) {
		if time.Now().Before(a.until) {
			l.mu.Unlock()
			l.c.metrics.lookups.WithLabelValues("absent").Inc()
			return nil, a.err
		}
		delete(l.absent, key)
	}
	l.c.metrics.lookups.WithLabelValues("miss").Inc()
	r := l.join(key)
	l.mu.Unlock()
	if r == nil {
		return nil, (&trace{method: "layout of " + key.table}).fail(ErrClosed)
	}
	select {
	case <-r.done:
		return r.answer(key)
	case <-ctx.Done():
		return nil, (&trace{method: "layout of " + key.table}).fail(context.Cause(ctx))
	}
}

// join adds a name to the read under way if it asks for it, else to the next
// one. The lock is held.
func (l *LayoutCache) join(key layoutName) *layoutRead {
	t := l.reads[key.table]
	if t == nil {
		t = &tableRead{running: newLayoutRead()}
		t.running.names[key.partition] = true
		if !l.c.spawn(func(ctx context.Context) { l.run(ctx, key.table, t) }) {
			return nil
		}
		l.reads[key.table] = t
		l.c.metrics.lookups.WithLabelValues("read").Inc()
		return t.running
	}
	if t.running.names[key.partition] {
		return t.running
	}
	if t.next == nil {
		t.next = newLayoutRead()
	}
	t.next.names[key.partition] = true
	return t.next
}

// run reads one table until nobody asks for more of it.
func (l *LayoutCache) run(ctx context.Context, table string, t *tableRead) {
	for r := t.running; r != nil; {
		l.read(ctx, table, r)
		l.mu.Lock()
		l.settle(table, r)
		close(r.done)
		r, t.next = t.next, nil
		if t.running = r; r == nil {
			delete(l.reads, table)
		}
		l.mu.Unlock()
	}
}

func (l *LayoutCache) read(ctx context.Context, table string, r *layoutRead) {
	names := slices.Sorted(maps.Keys(r.names))
	if names[0] == "" { // the table comes with every answer
		names = names[1:]
	}
	for first := true; first || len(names) > 0; first = false {
		n := min(len(names), maxNamesPerRead)
		got, meta, err := l.c.Layout(ctx, table, names[:n])
		if err != nil {
			r.err = err
			return
		}
		names = names[n:]
		if !first && (meta.Incarnation != r.meta.Incarnation || got.Table.ID != r.table.Table.ID) {
			r.err = &catalog.Error{Code: catalog.ErrUnavailable, Message: "the table was replaced while its layouts were read"}
			return
		}
		got.Partitions = append(r.table.Partitions, got.Partitions...)
		if first { // parts are as old as the first of them
			r.meta = meta
		}
		r.table = got
	}
}

// settle takes a read's outcome into the cache. The lock is held.
func (l *LayoutCache) settle(table string, r *layoutRead) {
	if errors.Is(r.err, catalog.ErrTableNotExist) {
		l.dropTable(table)
		for name := range r.names {
			l.absentee(layoutName{table, name}, 0, r.err)
		}
	}
	if r.err == nil {
		l.learn(table, slices.Collect(maps.Keys(r.names)), r.table, r.meta)
	}
}

// answer picks a name out of what was read.
func (r *layoutRead) answer(key layoutName) (*CachedLayout, error) {
	if r.err != nil {
		return nil, r.err
	}
	out := &CachedLayout{Incarnation: r.meta.Incarnation, Revision: r.meta.Revision, Table: r.table.Table}
	if key.partition == "" {
		out.Buckets = out.Table.Buckets
		return out, nil
	}
	i := slices.IndexFunc(r.table.Partitions, func(p *catalog.Partition) bool { return p.Name == key.partition })
	if i < 0 {
		return nil, &catalog.Error{Code: catalog.ErrPartitionNotExists, Message: "table " + key.table + " has no partition " + key.partition}
	}
	var err error
	out.Partition = r.table.Partitions[i]
	out.Buckets, err = catalog.EffectiveCount(out.Table, out.Partition)
	if err != nil {
		return nil, err
	}
	return out, nil
}
