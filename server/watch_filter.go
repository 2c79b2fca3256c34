package server

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// watchFilter is what a watch shows: what the history selects, and of the keys
// those with a prefix.
type watchFilter struct {
	history watch.Filter
	prefix  string
}

// newWatchFilter checks the request of a watch.
func newWatchFilter(r *pb.WatchRequest) (watchFilter, error) {
	if err := api.WatchRequestCheck(r); err != nil {
		return watchFilter{}, err
	}
	p := r.GetFilter()
	f := watchFilter{prefix: p.GetKeyPrefix()}
	if db := p.GetDatabase(); db != "" {
		if err := catalog.CheckDatabaseName(db); err != nil {
			return watchFilter{}, err
		}
		f.history.Databases = []string{db}
	}
	if t := p.GetTable(); t != "" {
		if _, _, err := catalog.SplitPath(t); err != nil {
			return watchFilter{}, err
		}
		f.history.Tables = []string{t}
	}
	for _, k := range p.GetKinds() {
		f.history.Kinds = append(f.history.Kinds, catalog.ObjectKind(k))
	}
	if f.prefix == "" {
		return f, nil
	}
	if f.scoped() || len(f.history.Kinds) > 0 && !slices.Contains(f.history.Kinds, catalog.ObjectKeyValue) {
		return watchFilter{}, refuse(catalog.ErrInvalidArgument, "filter.key_prefix is %q, want it empty where the other fields leave no keys", f.prefix)
	}
	f.history.Kinds = []catalog.ObjectKind{catalog.ObjectKeyValue}
	return f, nil
}

func (f *watchFilter) scoped() bool { return len(f.history.Databases)+len(f.history.Tables) > 0 }

// keep returns the event without the changes that only the prefix leaves out;
// the same one if that is all of them.
func (f *watchFilter) keep(ev *catalog.Event) *catalog.Event {
	if f.prefix == "" || !slices.ContainsFunc(ev.Changes, f.foreign) {
		return ev
	}
	part := *ev
	part.Changes = slices.DeleteFunc(slices.Clone(ev.Changes), f.foreign)
	return &part
}

func (f *watchFilter) foreign(c catalog.Change) bool {
	o := c.After
	if o == nil {
		o = c.Before
	}
	row, ok := o.(*catalog.KeyValue)
	return !ok || !strings.HasPrefix(row.Key, f.prefix)
}

// row reports whether a row of a state belongs to what the watch shows; path is
// that of its table, if it has one.
func (f *watchFilter) row(o catalog.Object, path string) bool {
	if len(f.history.Kinds) > 0 && !slices.Contains(f.history.Kinds, o.Object()) {
		return false
	}
	if kv, ok := o.(*catalog.KeyValue); ok && !strings.HasPrefix(kv.Key, f.prefix) {
		return false
	}
	if !f.scoped() {
		return true
	}
	if d, ok := o.(*catalog.Database); ok {
		return slices.Contains(f.history.Databases, d.Name)
	}
	db, _, ok := strings.Cut(path, ".")
	return ok && (slices.Contains(f.history.Tables, path) || slices.Contains(f.history.Databases, db))
}
