package server

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

type watchStream = grpc.ServerStreamingClient[pb.WatchResponse]

func (s *served) open(r *pb.WatchRequest) (watchStream, *pb.WatchHello) {
	s.t.Helper()
	w := must(s.watch.Watch(s.t.Context(), r))(s.t)
	m, err := w.Recv()
	if err != nil {
		s.t.Fatalf("watch: %v", err)
	}
	if m.GetHello() == nil {
		s.t.Fatalf("the first message is %v, want a hello", m)
	}
	return w, m.GetHello()
}

func (s *served) put(key string) uint64 {
	s.t.Helper()
	return must(s.kv.Put(s.ctx(), &pb.PutRequest{Key: key}))(s.t).GetResult().GetRevision()
}

// keys reads a watch up to the bookmark that ends it.
func keys(t *testing.T, w watchStream) (keys []string, last uint64) {
	t.Helper()
	for {
		m, err := w.Recv()
		if errors.Is(err, io.EOF) {
			return keys, last
		}
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case m.GetBatch() != nil:
			if m.GetBatch().GetRevision() <= last {
				t.Errorf("revision %d after %d", m.GetBatch().GetRevision(), last)
			}
			last = m.GetBatch().GetRevision()
			for _, c := range m.GetBatch().GetChanges() {
				if k := c.GetAfter().GetKeyValue(); k != nil {
					keys = append(keys, k.GetKey())
				}
			}
		case m.GetBookmark() != nil:
			last = max(last, m.GetBookmark().GetRevision())
		case m.GetSnapshot() != nil:
			for _, o := range m.GetSnapshot().GetRows() {
				if k := o.GetKeyValue(); k != nil {
					keys = append(keys, "state:"+k.GetKey())
				}
			}
		}
	}
}

// A watch tells every change after its start once, and can be resumed from any
// revision it told, on any node.
func TestWatch_Resume(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newCluster(t, 3, nil)
		var revs []uint64
		for i := range 6 {
			revs = append(revs, nodes[i%3].put(fmt.Sprintf("k%d", i)))
		}
		for _, n := range nodes {
			for from := range 5 {
				w, _ := n.open(&pb.WatchRequest{FromRevision: &revs[from], UntilRevision: &revs[5]})
				got, last := keys(t, w)
				var want []string
				for i := from + 1; i < 6; i++ {
					want = append(want, fmt.Sprintf("k%d", i))
				}
				if d := cmp.Diff(want, got); d != "" || last != revs[5] {
					t.Errorf("%s from %d: %s; ended at %d, want %d", n.id, revs[from], d, last, revs[5])
				}
			}
			w, _ := n.open(&pb.WatchRequest{FromRevision: &revs[5], UntilRevision: &revs[5]})
			if got, last := keys(t, w); len(got) != 0 || last != revs[5] {
				t.Errorf("%s: nothing to tell, got %v up to %d", n.id, got, last)
			}
		}
	})
}

// Without a start a watch begins at the current state, and one of a future
// revision waits.
func TestWatch_Starts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		first := s.put("before")
		until := first + 3
		now, _ := s.open(&pb.WatchRequest{UntilRevision: &until, Filter: &pb.WatchFilter{Kinds: []pb.ObjectKind{pb.ObjectKind_OBJECT_KIND_KEY_VALUE}}})
		future := first + 2
		later, _ := s.open(&pb.WatchRequest{FromRevision: &future, UntilRevision: &until})
		whole, _ := s.open(&pb.WatchRequest{Snapshot: true, UntilRevision: &until})
		for i := range 3 {
			if got := s.put(fmt.Sprintf("k%d", i)); got != first+uint64(i)+1 {
				t.Fatalf("put %d at %d, want %d", i, got, first+uint64(i)+1)
			}
		}
		for _, tt := range []struct {
			name string
			w    watchStream
			want string
		}{{"now", now, "k0 k1 k2"}, {"future", later, "k2"}, {"snapshot", whole, "state:before k0 k1 k2"}} {
			got, last := keys(t, tt.w)
			if strings.Join(got, " ") != tt.want || last != until {
				t.Errorf("%s: %v up to %d, want %s up to %d", tt.name, got, last, tt.want, until)
			}
		}
	})
}

// An update is told as one, and its row before only to who asked.
func TestWatch_BeforeValuesAndFilters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		from := s.put("a/1")
		s.ordersTable(4)
		s.put("a/1")
		s.put("b/1")
		must(s.kv.Delete(s.ctx(), &pb.DeleteRequest{Key: "a/1"}))(t)
		until := must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts("x")}))(t).GetResult().GetRevision()
		for _, tt := range []struct {
			name   string
			filter *pb.WatchFilter
			before bool
			want   string
		}{
			{"keys", &pb.WatchFilter{KeyPrefix: "a/"}, false, "UPDATED kv=a/1 before=false; DELETED kv=a/1 before=true"},
			{"before", &pb.WatchFilter{KeyPrefix: "a/"}, true, "UPDATED kv=a/1 before=true; DELETED kv=a/1 before=true"},
			{"table", &pb.WatchFilter{Table: "shop.orders"}, false, "CREATED table before=false; CREATED partition=x/4 before=false"},
			{"database", &pb.WatchFilter{Database: "shop", Kinds: []pb.ObjectKind{pb.ObjectKind_OBJECT_KIND_DATABASE}}, false, "CREATED database before=false"},
		} {
			w, _ := s.open(&pb.WatchRequest{FromRevision: &from, UntilRevision: &until, Filter: tt.filter, BeforeValues: tt.before})
			var got []string
			for _, m := range all(t, w, nil) {
				for _, c := range m.GetBatch().GetChanges() {
					got = append(got, describe(c))
				}
			}
			if d := cmp.Diff(tt.want, strings.Join(got, "; ")); d != "" {
				t.Errorf("%s: %s", tt.name, d)
			}
		}
		_, err := must(s.watch.Watch(s.ctx(), &pb.WatchRequest{Filter: &pb.WatchFilter{Database: "a", KeyPrefix: "b"}}))(t).Recv()
		refusedAs(t, err, catalog.ErrInvalidArgument)
	})
}

func describe(c *pb.Change) string {
	o := c.GetAfter()
	if o == nil {
		o = c.GetBefore()
	}
	what := "?"
	switch {
	case o.GetKeyValue() != nil:
		what = "kv=" + o.GetKeyValue().GetKey()
	case o.GetTable() != nil:
		what = "table"
	case o.GetDatabase() != nil:
		what = "database"
	case o.GetPartition() != nil:
		what = fmt.Sprintf("partition=%s/%d", o.GetPartition().GetName(), o.GetPartition().GetBucketCount())
	}
	return fmt.Sprintf("%s %s before=%v", strings.TrimPrefix(c.GetType().String(), "CHANGE_TYPE_"), what, c.GetBefore() != nil)
}

// A large event comes in fragments that make it whole.
func TestWatch_Fragments(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		s.ordersTable(4)
		from := s.put("k")
		var names []string
		for i := range 4000 {
			names = append(names, fmt.Sprintf("p%04d-%s", i, strings.Repeat("x", 60)))
		}
		until := must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts(names...)}))(t).GetResult().GetRevision()
		w, _ := s.open(&pb.WatchRequest{FromRevision: &from, UntilRevision: &until})
		var whole *pb.EventBatch
		parts := 0
		for _, m := range all(t, w, nil) {
			b := m.GetBatch()
			if b == nil {
				continue
			}
			if parts++; parts == 1 {
				whole = b
			} else if _, err := api.JoinFragments(whole, b); err != nil {
				t.Fatal(err)
			}
			if n := proto.Size(m); n > 2*fragmentBytes {
				t.Errorf("a fragment of %d bytes", n)
			}
		}
		if parts < 3 || len(whole.GetChanges()) < 4000 || whole.GetMore() {
			t.Errorf("%d fragments with %d changes, more %v", parts, len(whole.GetChanges()), whole.GetMore())
		}
	})
}

// A peer that does not read is cut with BUSY, can resume from what it saw, and
// holds up nobody.
func TestWatch_SlowReader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		from := s.put("k")
		w, _ := s.open(&pb.WatchRequest{FromRevision: &from})
		value := make([]byte, 100<<10)
		var until uint64
		for i := range 150 {
			until = must(s.kv.Put(s.ctx(), &pb.PutRequest{Key: fmt.Sprintf("k%d", i), Value: value}))(t).GetResult().GetRevision()
		}
		time.Sleep(5 * time.Second)
		last := from
		var err error
		for err == nil {
			var m *pb.WatchResponse
			if m, err = w.Recv(); err == nil {
				last = max(last, m.GetBatch().GetRevision())
			}
		}
		refusedAs(t, err, catalog.ErrBusy)
		again, _ := s.open(&pb.WatchRequest{FromRevision: &last, UntilRevision: &until})
		got, end := keys(t, again)
		if end != until || uint64(len(got)) != until-last {
			t.Errorf("resumed from %d: %d keys up to %d, want %d up to %d", last, len(got), end, until-last, until)
		}
	})
}

// Watches end when the server closes.
func TestServer_Close_EndsWatches(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, func(c *Config) { c.MaxWatches = 1 })
		w, _ := s.open(&pb.WatchRequest{})
		_, err := must(s.watch.Watch(s.ctx(), &pb.WatchRequest{}))(t).Recv()
		refusedAs(t, err, catalog.ErrBusy)
		if err := s.srv.Close(s.ctx()); err != nil {
			t.Errorf("close: %v", err)
		}
		for err = nil; err == nil; {
			_, err = w.Recv()
		}
		refusedAs(t, err, catalog.ErrUnavailable)
	})
}
