package client

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

func channelsOf(t *testing.T, r *Router, n int32, strict bool) *routing.Channels {
	t.Helper()
	l, err := r.Layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := routing.NewChannels(routing.ChannelConfig{Keys: l.Keys(), Channels: n, Source: r.CountSource(), Strict: strict})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// S98: a partition that is not there yet is spread by the table's current count,
// not by the one the router was opened with, and created by nobody; once it is
// there its own count decides. In strict mode the very first row creates it, so
// that a rescale in between does not move its key. 4 to 6 at 4 channels.
func TestS98_RouterChannels(t *testing.T) {
	for _, strict := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			f := newFake(t, 1).keyed(4)
			r := openRouter(t, f.client(), RouterOptions{})
			f.must(rescaleTo(6))
			n := f.traffic()
			c := channelsOf(t, r, 4, strict)
			all := func() (out [40]int32) {
				for i := range out {
					var err error
					if out[i], err = c.Channel(t.Context(), rowOf(int32(i+1), "p1")); err != nil {
						t.Fatal(err)
					}
				}
				return out
			}
			first := all()
			f.must(rescaleTo(7))
			if !strict {
				f.must(createDTs("p1"))
			}
			second := all()
			if made := n.creations.Load(); (made == 1) != strict || (first == second) != strict {
				t.Errorf("strict %v: %d creations, channels the same: %v", strict, made, first == second)
			}
			asked := n.layouts.Load()
			all()
			if n.layouts.Load() != asked {
				t.Error("a known partition was looked up again")
			}
			want := mustRoute(t, r, rowOf(1, "p1")).Count
			if got := map[bool]int32{false: 7, true: 6}[strict]; want != got {
				t.Errorf("strict %v: %d buckets, want %d", strict, want, got)
			}
		})
	}
}

// S99: while the metadata cannot be read there is an error, never the table's
// count.
func TestS99_RouterMetadataDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(4)
		r := openRouter(t, f.client(WithTimeout(time.Second)), RouterOptions{})
		c := channelsOf(t, r, 4, false)
		f.hook(func(*fakeNode, any) error { return errDown }, nil)
		if _, err := c.Channel(t.Context(), rowOf(1, "p1")); !errors.Is(err, routing.ErrCountUnknown) || !errors.Is(err, catalog.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		f.hook(nil, nil)
		if _, err := c.Channel(t.Context(), rowOf(1, "p1")); err != nil {
			t.Error(err)
		}
	})
}
