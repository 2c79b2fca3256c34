package routing

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/stavedb/stave/catalog"
)

// LayoutCache keeps the layouts of many tables, bounded, and puts the answers of lookups together in whatever order they
// arrive. A hit takes no lock and allocates nothing. It is safe for concurrent use.
type LayoutCache struct {
	// tables is replaced, never changed, when a path comes or goes.
	tables atomic.Pointer[map[string]*cachedTable]

	mu struct {
		sync.Mutex
		incarnation catalog.Incarnation // the newest seen; older layouts are not taken
		partitions  int                 // sum of the layouts' sizes
	}
	maxTables, maxPartitions int
}

// cachedTable is one path. layout is nil after the table was dropped.
type cachedTable struct {
	layout atomic.Pointer[Layout]
	used   atomic.Bool     // since the last time something had to go
	floor  catalog.TableID // lower ids were dropped; guarded by the cache's mu
}

// NewLayoutCache returns a cache of at most so many tables and partitions, each at least 1. One layout that is larger by
// itself is kept alone.
func NewLayoutCache(tables, partitions int) *LayoutCache {
	c := &LayoutCache{maxTables: max(tables, 1), maxPartitions: max(partitions, 1)}
	c.tables.Store(&map[string]*cachedTable{})
	return c
}

// Get returns the layout of a table.
func (c *LayoutCache) Get(path string) (*Layout, bool) {
	t := (*c.tables.Load())[path]
	if t == nil {
		return nil, false
	}
	if !t.used.Load() {
		t.used.Store(true)
	}
	l := t.layout.Load()
	return l, l != nil
}

// Put adds an answer to what is known of its table, by the rules of Layout.With, and returns what is known then. A newer
// incarnation empties the cache first; an answer of an older one, or for a table that was dropped, is returned and not
// kept.
func (c *LayoutCache) Put(l *Layout) *Layout {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch order := l.incarnation.Compare(c.mu.incarnation); {
	case order < 0:
		return l
	case order > 0:
		c.mu.incarnation, c.mu.partitions = l.incarnation, 0
		c.tables.Store(&map[string]*cachedTable{})
	}
	path := l.table.Path
	t := (*c.tables.Load())[path]
	if t == nil {
		t = &cachedTable{}
		next := maps.Clone(*c.tables.Load())
		next[path] = t
		c.tables.Store(&next)
	}
	if l.table.ID < t.floor {
		return l
	}
	if held := t.layout.Load(); held != nil {
		l = held.With(l)
	}
	c.store(t, l)
	t.used.Store(true)
	c.evict(path)
	return l
}

func (c *LayoutCache) store(t *cachedTable, l *Layout) {
	if old := t.layout.Load(); old != nil {
		c.mu.partitions -= old.Len()
	}
	if l != nil {
		c.mu.partitions += l.Len()
	}
	t.layout.Store(l)
}

// evict makes room. Tables that were not used since the last time go first.
func (c *LayoutCache) evict(keep string) {
	tables := *c.tables.Load()
	if len(tables) <= c.maxTables && c.mu.partitions <= c.maxPartitions {
		return
	}
	next := maps.Clone(tables)
	for range 2 {
		for path, t := range next {
			if path == keep || len(next) <= c.maxTables && c.mu.partitions <= c.maxPartitions {
				continue
			}
			if !t.used.Swap(false) {
				c.store(t, nil)
				delete(next, path)
			}
		}
	}
	c.tables.Store(&next)
}

// Without forgets a partition in doubt, as Layout.Without.
func (c *LayoutCache) Without(path string, id catalog.PartitionID) {
	c.change(path, func(l *Layout) *Layout { return l.Without(id) })
}

// WithoutDropped forgets a partition that was dropped, as Layout.WithoutDropped.
func (c *LayoutCache) WithoutDropped(path, name string, id catalog.PartitionID) {
	c.change(path, func(l *Layout) *Layout { return l.WithoutDropped(name, id) })
}

// WithoutAll forgets all partitions of a table, as Layout.WithoutAll.
func (c *LayoutCache) WithoutAll(path string) { c.change(path, (*Layout).WithoutAll) }

func (c *LayoutCache) change(path string, f func(*Layout) *Layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := (*c.tables.Load())[path]; t != nil && t.layout.Load() != nil {
		c.store(t, f(t.layout.Load()))
	}
}

// WithoutTable forgets a table that was dropped. Answers that were under way do not bring its id back as long as the
// path is remembered, which is as long as that of any other table.
func (c *LayoutCache) WithoutTable(path string, id catalog.TableID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := (*c.tables.Load())[path]
	if t == nil {
		return
	}
	t.floor = max(t.floor, id+1)
	if l := t.layout.Load(); l != nil && l.table.ID <= id {
		c.store(t, nil)
	}
}
