package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/catalog"
)

// Defaults and bounds of a layout cache.
const (
	DefaultCachedLayouts = 65_536
	DefaultAbsentTime    = time.Second

	maxCachedLayouts = 1 << 24
	maxAbsent        = 1024
	maxNamesPerRead  = 1024
)

// LayoutCacheOptions bound a layout cache. Zero values mean the default; Size
// below 0 caches nothing.
type LayoutCacheOptions struct {
	// Size is how many layouts are kept; default 65,536.
	Size int
	// AbsentTime is how long an object that does not exist is not asked for again;
	// default 1 s. At most 1,024 of them are remembered.
	AbsentTime time.Duration
}

// CachedLayout is the layout of a table as a whole, or of one of its partitions,
// in one state. It is immutable.
type CachedLayout struct {
	Incarnation catalog.Incarnation
	Revision    catalog.Revision
	Table       *catalog.Table
	// Partition is nil for a table as a whole.
	Partition *catalog.Partition
	// Buckets is the effective count.
	Buckets int32
}

func (l *CachedLayout) name() string {
	if l.Partition == nil {
		return ""
	}
	return l.Partition.Name
}

func (l *CachedLayout) at() position { return position{l.Incarnation, l.Revision} }

// LayoutCache keeps layouts by table and partition name. What it holds never
// goes back to an older state, in whatever order answers arrive; a new
// incarnation empties it, and a table that was dropped and made again takes its
// partitions with it. It may be used by any number of goroutines.
type LayoutCache struct {
	c    *Client
	size int
	ttl  time.Duration

	mu     sync.RWMutex
	inc    catalog.Incarnation
	tables map[string]*cachedTable
	ring   []*slot // all slots, for eviction
	hand   int
	absent map[layoutName]absence
	reads  map[string]*tableRead
}

type layoutName struct{ table, partition string }

type cachedTable struct {
	id    catalog.TableID
	rev   catalog.Revision // of the newest answer
	slots map[string]*slot
}

// slot holds one layout. used is set by a hit and gives it a second chance.
type slot struct {
	key    layoutName
	layout *CachedLayout
	used   atomic.Bool
	index  int // in ring
}

// absence is an object that did not exist at a revision.
type absence struct {
	rev   catalog.Revision
	err   error
	until time.Time
}

// NewLayoutCache makes an empty cache that reads through c. It needs no closing.
func (c *Client) NewLayoutCache(o LayoutCacheOptions) (*LayoutCache, error) {
	switch {
	case o.Size == 0:
		o.Size = DefaultCachedLayouts
	case o.Size < 0:
		o.Size = 0
	}
	if o.AbsentTime == 0 {
		o.AbsentTime = DefaultAbsentTime
	}
	var errs []error
	if o.Size > maxCachedLayouts {
		errs = append(errs, fmt.Errorf("size is %d, want at most %d", o.Size, maxCachedLayouts))
	}
	if o.AbsentTime < 0 || o.AbsentTime > time.Hour {
		errs = append(errs, fmt.Errorf("absent time is %s, want 0 to 1h", o.AbsentTime))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("layout cache: %w", err)
	}
	l := &LayoutCache{c: c, size: o.Size, ttl: o.AbsentTime}
	l.clear(catalog.Incarnation{})
	l.reads = map[string]*tableRead{}
	return l, nil
}

func (l *LayoutCache) clear(inc catalog.Incarnation) {
	l.inc, l.tables, l.ring, l.hand, l.absent = inc, map[string]*cachedTable{}, nil, 0, map[layoutName]absence{}
}

// Get returns a layout, from the cache if it is there. partition is the name of
// a partition, or empty for the table as a whole. Errors:
// catalog.ErrTableNotExist, catalog.ErrPartitionNotExists,
// catalog.ErrStaleMetadata for a partition whose count cannot be known, and
// those of a read.
func (l *LayoutCache) Get(ctx context.Context, table, partition string) (*CachedLayout, error) {
	if hit := l.hit(table, partition); hit != nil {
		return hit, nil
	}
	return l.miss(ctx, layoutName{table, partition}, nil)
}

func (l *LayoutCache) hit(table, partition string) *CachedLayout {
	l.mu.RLock()
	var s *slot
	if t := l.tables[table]; t != nil {
		s = t.slots[partition]
	}
	if s == nil {
		l.mu.RUnlock()
		return nil
	}
	out := s.layout
	if !s.used.Load() {
		s.used.Store(true)
	}
	l.mu.RUnlock()
	return out
}

// Refresh returns a layout that is newer than one that proved stale, reading it
// only if the cache does not hold it already. Whatever the number of callers,
// one read is under way for a table.
func (l *LayoutCache) Refresh(ctx context.Context, stale *CachedLayout) (*CachedLayout, error) {
	key := layoutName{stale.Table.Path, stale.name()}
	if hit := l.hit(key.table, key.partition); hit != nil && hit.at().compare(stale.at()) > 0 {
		return hit, nil
	}
	return l.miss(ctx, key, stale)
}

// Forget drops a table and what is known of its partitions, absences included.
func (l *LayoutCache) Forget(table string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropTable(table)
	for k := range l.absent {
		if k.table == table {
			delete(l.absent, k)
		}
	}
}

// Len returns how many layouts are cached.
func (l *LayoutCache) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.ring)
}

// learn takes the answer about some names of one table into the cache. The lock
// is held.
func (l *LayoutCache) learn(table string, names []string, got TableLayout, m Meta) {
	switch c := m.Incarnation.Compare(l.inc); {
	case c < 0:
		return
	case c > 0:
		l.clear(m.Incarnation)
	}
	t := l.tables[table]
	if t != nil && t.id != got.Table.ID {
		if m.Revision < t.rev {
			return
		}
		l.dropTable(table)
		t = nil
	}
	if t == nil {
		t = &cachedTable{id: got.Table.ID, slots: map[string]*slot{}}
		l.tables[table] = t
	}
	t.rev = max(t.rev, m.Revision)
	found := map[string]*CachedLayout{"": {Incarnation: m.Incarnation, Revision: m.Revision, Table: got.Table, Buckets: got.Table.Buckets}}
	for _, p := range got.Partitions {
		n, err := catalog.EffectiveCount(got.Table, p)
		if err != nil {
			l.absentee(layoutName{table, p.Name}, m.Revision, err)
			continue
		}
		found[p.Name] = &CachedLayout{Incarnation: m.Incarnation, Revision: m.Revision, Table: got.Table, Partition: p, Buckets: n}
	}
	for _, name := range names {
		key := layoutName{table, name}
		if f := found[name]; f != nil {
			l.put(t, key, f)
			continue
		}
		if s := t.slots[name]; s != nil && s.layout.Revision <= m.Revision {
			l.remove(s)
		}
		if _, known := l.absent[key]; !known || l.absent[key].rev < m.Revision {
			l.absentee(key, m.Revision, &catalog.Error{
				Code: catalog.ErrPartitionNotExists, Message: fmt.Sprintf("table %s has no partition %q", table, name),
			})
		}
	}
	if len(t.slots) == 0 && l.tables[table] == t {
		delete(l.tables, table)
	}
}

// put stores a layout unless a newer answer is there.
func (l *LayoutCache) put(t *cachedTable, key layoutName, f *CachedLayout) {
	if a, ok := l.absent[key]; ok {
		if a.rev > f.Revision {
			return
		}
		delete(l.absent, key)
	}
	if s := t.slots[key.partition]; s != nil {
		if s.layout.Revision < f.Revision {
			s.layout = f
		}
		return
	}
	if l.size == 0 {
		return
	}
	s := &slot{key: key, layout: f}
	if len(l.ring) >= l.size {
		l.evict()
	}
	l.tables[key.table] = t // eviction may have emptied it
	t.slots[key.partition] = s
	s.index = len(l.ring)
	l.ring = append(l.ring, s)
}

// evict removes the first slot from the hand on that was not used since the
// hand last passed.
func (l *LayoutCache) evict() {
	for {
		l.hand %= len(l.ring)
		if s := l.ring[l.hand]; !s.used.Swap(false) {
			l.remove(s)
			return
		}
		l.hand++
	}
}

func (l *LayoutCache) remove(s *slot) {
	last := len(l.ring) - 1
	l.ring[s.index] = l.ring[last]
	l.ring[s.index].index = s.index
	l.ring[last] = nil
	l.ring = l.ring[:last]
	t := l.tables[s.key.table]
	if delete(t.slots, s.key.partition); len(t.slots) == 0 {
		delete(l.tables, s.key.table)
	}
}

func (l *LayoutCache) dropTable(table string) {
	if t := l.tables[table]; t != nil {
		for _, s := range t.slots {
			l.remove(s)
		}
	}
}

// absentee remembers an object that has no layout, for a short time. A full
// memory forgets an arbitrary one.
func (l *LayoutCache) absentee(key layoutName, rev catalog.Revision, err error) {
	if len(l.absent) >= maxAbsent {
		for k := range l.absent {
			delete(l.absent, k)
			break
		}
	}
	l.absent[key] = absence{rev: rev, err: err, until: time.Now().Add(l.ttl)}
}
