package raftnode

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// jumpClock is a wall clock that can be set.
type jumpClock struct {
	origin time.Time
	ahead  atomic.Int64
}

func (c *jumpClock) Wall() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *jumpClock) Monotonic() time.Duration { return time.Since(c.origin) }

func TestMedianOffset(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		in   []time.Duration
		want time.Duration
	}{
		{[]time.Duration{0}, 0},
		{[]time.Duration{0, h}, h},
		{[]time.Duration{-h, 0}, -h},
		{[]time.Duration{h, 0, 0}, 0},
		{[]time.Duration{h, 0, h + 1}, h},
		{[]time.Duration{0, 0, h, h}, h},
		{[]time.Duration{-2 * h, 0, 0, 0, 2 * h}, 0},
	} {
		if got := medianOffset(slices.Clone(c.in)); got != c.want {
			t.Errorf("median of %v is %s, want %s", c.in, got, c.want)
		}
	}
}

// However the clock of a leader jumps, before or while it leads, time goes on as the
// monotonic clock does: nothing is dropped or created early. Health tells, and stops
// when the clock is right again. The clock of another node is no matter.
func TestNode_ClockJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clocks := map[string]*jumpClock{}
		c := newCluster(t, 3, LogStoreWAL, func(cfg *Config) {
			if clocks[cfg.ID] == nil {
				clocks[cfg.ID] = &jumpClock{origin: time.Now()}
			}
			cfg.Clock = clocks[cfg.ID]
		})
		c.propose(c.leader(), catalog.CreateDatabase{Name: "d"})
		c.propose(c.leader(), timeTable("d.t", "DAY", 2, 3))
		partitions := func() (names []string) {
			st := c.leader().fsm.State()
			tb, _ := st.Table("d.t")
			st.Partitions(tb.ID, "", func(p *catalog.Partition) bool {
				names = append(names, p.Name)
				return true
			})
			return names
		}
		c.until("partitions are created", func() bool { return len(partitions()) == 2 })
		begin, want := time.Now(), partitions()
		check := func(when string, jumped bool) {
			t.Helper()
			time.Sleep(3 * time.Second)
			l := c.leader()
			c.propose(l, catalog.PutKV{Key: "k"})
			if off := time.Duration(l.fsm.State().Cluster().Wall-wallMillis(systemClock{})) * time.Millisecond; off.Abs() > 2*time.Second {
				t.Errorf("%s: the time of the state is %s off", when, off)
			}
			if got := partitions(); !slices.Equal(got, want) {
				t.Errorf("%s: partitions %v, want %v", when, got, want)
			}
			told := slices.ContainsFunc(l.Status().Health, func(h HealthIssue) bool {
				return h.Code == "CLOCK_JUMP" && strings.Contains(h.Message, "720h0m0s")
			})
			if told != jumped {
				t.Errorf("%s: health %v", when, l.Status().Health)
			}
			if l.lead.Load().clock.ahead().Abs() > maxClockOffset != jumped {
				t.Errorf("%s: offset %s", when, l.lead.Load().clock.ahead())
			}
		}
		const month = 30 * 24 * time.Hour
		l, f := c.leader(), c.followers()[0]
		clocks[f.cfg.ID].ahead.Store(int64(month))
		check("a follower's clock jumped", false)
		clocks[f.cfg.ID].ahead.Store(0)

		clocks[l.cfg.ID].ahead.Store(int64(month))
		c.propose(l, catalog.PutKV{Key: "at once"})
		check("the leader's clock jumped", true)
		clocks[l.cfg.ID].ahead.Store(-int64(month))
		check("it jumped back by two months", true)
		clocks[l.cfg.ID].ahead.Store(0)
		check("it was set right", false)

		clocks[f.cfg.ID].ahead.Store(int64(month))
		if err := l.TransferLeadership(t.Context(), f.cfg.ID); err != nil {
			t.Fatal(err)
		}
		c.propose(c.leader(), catalog.PutKV{Key: "first"})
		check("a node with a wrong clock was elected", true)
		if time.Since(begin) > time.Hour {
			t.Error("the test took long enough for partitions to come")
		}
	})
}
