package watch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// source is a catalog that commands are applied to, with the full log of what
// they changed. It stands for the log of the cluster.
type source struct {
	state  *catalog.State
	events []*catalog.Event
	// paths of all tables ever, found from their rows.
	paths map[catalog.TableID]string
	names int
}

func newSource() *source {
	return &source{state: catalog.NewState(), paths: map[catalog.TableID]string{}}
}

// apply executes commands as one raft batch; a nil command is an entry that is
// none.
func (s *source) apply(cmds ...catalog.Command) []*catalog.Event {
	b := s.state.Begin()
	rev := s.state.Revision()
	var out []*catalog.Event
	for _, c := range cmds {
		rev++
		if c == nil {
			b.Advance(rev)
			continue
		}
		if _, ev := b.Apply(rev, catalog.Envelope{Wall: 1000, Actor: "test"}, c); ev != nil {
			out = append(out, ev)
		}
	}
	s.state = b.Publish()
	s.events = append(s.events, out...)
	for _, ev := range out {
		for _, c := range ev.Changes {
			for _, o := range []catalog.Object{c.Before, c.After} {
				if t, ok := o.(*catalog.Table); ok {
					s.paths[t.ID] = t.Path
				}
			}
		}
	}
	return out
}

func (s *source) tablePath(id catalog.TableID) (string, bool) {
	t, ok := s.state.TableByID(id)
	if !ok {
		return "", false
	}
	return t.Path, true
}

// after returns the events above a revision.
func (s *source) after(rev catalog.Revision) []*catalog.Event {
	i, _ := slices.BinarySearchFunc(s.events, rev+1, func(e *catalog.Event, r catalog.Revision) int {
		return int(int64(e.Revision) - int64(r))
	})
	return s.events[i:]
}

var testDatabases = []string{"shop", "ads", "shopping"}

// command draws a command that changes something more often than not.
func (s *source) command(t *rapid.T) catalog.Command {
	s.names++
	db := rapid.SampledFrom(testDatabases).Draw(t, "database")
	path := db + "." + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "table")
	part := rapid.SampledFrom([]string{"p1", "p2", "p3"})
	switch rapid.IntRange(0, 9).Draw(t, "command") {
	case 0:
		return catalog.CreateDatabase{Name: db}
	case 1, 2:
		return createTable(path)
	case 3, 4:
		var specs []catalog.PartitionSpec
		for _, p := range rapid.SliceOfNDistinct(part, 1, 3, rapid.ID).Draw(t, "partitions") {
			specs = append(specs, spec(p))
		}
		return catalog.CreatePartitions{Table: path, Specs: specs, IfNotExists: true}
	case 5:
		return catalog.DropPartitions{Table: path, Specs: []catalog.PartitionSpec{spec(part.Draw(t, "partition"))}, IfExists: true}
	case 6:
		return catalog.DropTable{Table: path, IfExists: true}
	case 7:
		return catalog.RescaleTable{Table: path, Buckets: int32(rapid.IntRange(1, 4).Draw(t, "buckets"))}
	case 8:
		return catalog.PutKV{Key: rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), Value: fmt.Append(nil, s.names)}
	default:
		return nil
	}
}

func createTable(path string) catalog.CreateTable {
	return catalog.CreateTable{
		Table: path, Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, Buckets: catalog.Some[int32](2),
	}
}

func spec(v string) catalog.PartitionSpec { return catalog.PartitionSpec{{Key: "dt", Value: v}} }

// wanted is the rule of filters in its plainest form: what a subscription gets
// of an event, or nothing.
func (s *source) wanted(ev *catalog.Event, f watch.Filter, before bool) []catalog.Change {
	var out []catalog.Change
	for _, c := range ev.Changes {
		if !s.passes(c, f) {
			continue
		}
		if !before && c.After != nil {
			c.Before = nil
		}
		out = append(out, c)
	}
	return out
}

func (s *source) passes(c catalog.Change, f watch.Filter) bool {
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, c.Kind()) {
		return false
	}
	if len(f.Databases)+len(f.Tables)+len(f.TableIDs) == 0 {
		return true
	}
	row := c.After
	if row == nil {
		row = c.Before
	}
	var id catalog.TableID
	switch r := row.(type) {
	case *catalog.Database:
		return slices.Contains(f.Databases, r.Name)
	case *catalog.Table:
		id = r.ID
	case *catalog.Partition:
		id = r.Table
	case *catalog.DroppedObject:
		id = r.Table
	default:
		return false
	}
	path := s.paths[id]
	return slices.Contains(f.TableIDs, id) || slices.Contains(f.Tables, path) ||
		slices.ContainsFunc(f.Databases, func(d string) bool { return strings.HasPrefix(path, d+".") })
}

// patience is a context that ends as soon as somebody would wait for it.
type patience struct {
	context.Context
	waited bool
}

var ended = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (p *patience) Done() <-chan struct{} {
	p.waited = true
	return ended
}

func (p *patience) Err() error {
	if p.waited {
		return context.Canceled
	}
	return nil
}

// try returns the next batch, or false if there is none now.
func try(s *watch.Subscription) (watch.Batch, bool, error) {
	p := &patience{Context: context.Background()}
	b, err := s.Next(p)
	if err != nil && p.waited && err == context.Canceled { //nolint:errorlint // the very error of patience
		return b, false, nil
	}
	return b, err == nil, err
}

func incarnation(n uint64) catalog.Incarnation { return catalog.Incarnation{Number: n, Random: n * 7} }
