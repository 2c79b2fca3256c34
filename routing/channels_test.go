package routing

import (
	"context"
	"errors"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// worldSource answers from a catalog, after failing as often as told.
type worldSource struct {
	w              *world
	failures       int
	calls, creates int
}

var errDown = errors.New("metadata is down")

func (s *worldSource) Lookup(_ context.Context, name string) (PartitionCount, error) {
	if s.calls++; s.failures > 0 {
		s.failures--
		return PartitionCount{}, errDown
	}
	l := s.w.layout()
	out := PartitionCount{Default: l.Table().Buckets}
	if p, ok := l.Partition(name); ok {
		out.Exists, out.Partition = true, PartitionBuckets{ID: p.ID, Name: p.Name, Count: p.Count}
	}
	return out, nil
}

func (s *worldSource) Create(ctx context.Context, name string) (PartitionBuckets, error) {
	s.creates++
	s.w.create(name)
	a, err := s.Lookup(ctx, name)
	return a.Partition, err
}

func newChannels(t *testing.T, s *worldSource, channels int32, strict bool) *Channels {
	t.Helper()
	c, err := NewChannels(ChannelConfig{Keys: s.w.layout().Keys(), Channels: channels, Source: s, Strict: strict})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// channelsOf returns the channels of keys 1..40 in a partition.
func channelsOf(t *testing.T, c *Channels, dt string) (out [40]int32) {
	t.Helper()
	for i := range out {
		var err error
		if out[i], err = c.Channel(t.Context(), row(int32(i+1), dt)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// owners returns the owners of the buckets that keys 1..40 really go to.
func owners(t *testing.T, w *world, channels int32, dt string) (out [40]int32) {
	t.Helper()
	s := mustShuffle(t, channels)
	for i := range out {
		r := w.route(int32(i+1), dt)
		var err error
		if out[i], err = s.Channel(NamedPartition(dt), r.Bucket, r.Count); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Each row goes to the owner of its bucket by the partition's own count, also where the table's has changed in a way
// that is no multiple.
func TestChannels_OwnCount(t *testing.T) {
	for _, tt := range []struct{ from, to, channels int32 }{{4, 6, 4}, {3, 4, 2}, {3, 6, 2}, {8, 3, 3}} {
		w := newWorld(t)
		w.must(catalog.RescaleTable{Table: "d.t", Buckets: tt.from})
		w.create("20260901")
		src := &worldSource{w: w}
		c := newChannels(t, src, tt.channels, false)
		w.must(catalog.RescaleTable{Table: "d.t", Buckets: tt.to})
		w.create("20260902")
		for _, dt := range []string{"20260901", "20260902"} {
			if got, want := channelsOf(t, c, dt), owners(t, w, tt.channels, dt); got != want {
				t.Errorf("%+v %s:\n%v, want\n%v", tt, dt, got, want)
			}
		}
	}
}

// S98: a partition that is not there yet is spread by the table's current count, which is not remembered.
func TestS98_NotThereYet(t *testing.T) {
	w := newWorld(t)
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 4})
	src := &worldSource{w: w}
	c := newChannels(t, src, 4, false)
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 6})
	early := channelsOf(t, c, "p")
	if src.creates != 0 || len(c.known) != 0 {
		t.Errorf("%d created, %d remembered", src.creates, len(c.known))
	}
	w.create("p")
	if got := channelsOf(t, c, "p"); got != early || got != owners(t, w, 4, "p") {
		t.Errorf("after the creation %v, before %v", got, early)
	}
	channelsOf(t, c, "q")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 7})
	w.create("q")
	if got := channelsOf(t, c, "q"); got != owners(t, w, 4, "q") {
		t.Errorf("a rescale before the creation: %v", got)
	}
}

// S98, strict: the first row already goes to the owner, whatever rescale follows.
func TestS98_Strict(t *testing.T) {
	w := newWorld(t)
	src := &worldSource{w: w}
	c := newChannels(t, src, 4, true)
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 6})
	early := channelsOf(t, c, "p")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 7})
	if got := channelsOf(t, c, "p"); got != early || got != owners(t, w, 4, "p") || src.creates != 1 {
		t.Errorf("%v, then %v, %d created", early, got, src.creates)
	}
}

// S99: failures below the bound pass, at the bound they are an error; the table's count is never a substitute.
func TestS99_MetadataFailure(t *testing.T) {
	w := newWorld(t)
	w.create("p")
	src := &worldSource{w: w, failures: 2}
	c := newChannels(t, src, 4, false)
	if _, err := c.Channel(t.Context(), row(1, "p")); err != nil || src.calls != 3 {
		t.Errorf("%d calls, %v", src.calls, err)
	}
	src.failures, src.calls = 3, 0
	if _, err := c.Channel(t.Context(), row(1, "q")); !errors.Is(err, ErrCountUnknown) || !errors.Is(err, errDown) || src.calls != 3 {
		t.Errorf("%d calls, %v", src.calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Channel(ctx, row(1, "q")); !errors.Is(err, ErrCountUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// S100: a million rows of one partition ask once, and allocate nothing after.
func TestS100_OneLookup(t *testing.T) {
	w := newWorld(t)
	w.create("p")
	src := &worldSource{w: w}
	c := newChannels(t, src, 4, false)
	values := row(1, "p")
	for i := range 1_000_000 {
		values[0] = Int(int32(i))
		if _, err := c.Channel(t.Context(), values); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Channel(ctx, values) }); src.calls != 1 || n != 0 {
		t.Errorf("%d lookups, %v allocations", src.calls, n)
	}
}

// A partition that was dropped and created again is another one once its id is seen.
func TestChannels_Recreated(t *testing.T) {
	w := newWorld(t)
	w.create("p")
	c := newChannels(t, &worldSource{w: w}, 4, false)
	channelsOf(t, c, "p")
	old := c.known["p"].partition
	w.drop("p")
	w.must(catalog.RescaleTable{Table: "d.t", Buckets: 7})
	w.create("p")
	p, _ := w.layout().Partition("p")
	c.Observe(PartitionBuckets{ID: p.ID, Name: p.Name, Count: p.Count})
	c.Observe(old)
	if got := channelsOf(t, c, "p"); got != owners(t, w, 4, "p") {
		t.Errorf("%v", got)
	}
	c.Forget("p")
	if len(c.known) != 0 {
		t.Error("not forgotten")
	}
	if _, err := NewChannels(ChannelConfig{Keys: w.layout().Keys()}); !errors.Is(err, ErrParallelism) {
		t.Errorf("no channels: %v", err)
	}
}
