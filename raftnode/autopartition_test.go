package raftnode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/autopartition"
	"github.com/stavedb/stave/catalog"
)

// fastClock is a wall clock that runs sixty times as fast as the other one: a
// minute is an hour.
type fastClock struct{ origin time.Time }

const fastFactor = 60

func (c fastClock) Wall() time.Time           { return c.origin.Add(fastFactor * time.Since(c.origin)) }
func (c fastClock) Monotonic() time.Duration  { return time.Since(c.origin) }
func (c fastClock) sleepUntil(wall time.Time) { time.Sleep(wall.Sub(c.Wall()) / fastFactor) }
func useClock(c Clock) func(cfg *Config)      { return func(cfg *Config) { cfg.Clock = c } }

func timeTable(path, unit string, precreate, retention int) catalog.CreateTable {
	return catalog.CreateTable{
		Table: path, Columns: []catalog.NewColumn{{Name: "id", Type: "INT"}, {Name: "dt", Type: "STRING"}}, PartitionKeys: []string{"dt"},
		Properties: []catalog.Property{
			{Key: catalog.PropAutoEnabled, Value: "true"},
			{Key: catalog.PropAutoUnit, Value: unit},
			{Key: catalog.PropAutoPrecreate, Value: fmt.Sprint(precreate)},
			{Key: catalog.PropAutoRetention, Value: fmt.Sprint(retention)},
		},
	}
}

// made returns how often each partition of a table was created, those that were
// dropped since included, and the names of those that are there.
func made(st *catalog.State, t *catalog.Table) (times map[string]int, live []string) {
	times = map[string]int{}
	st.Partitions(t.ID, "", func(p *catalog.Partition) bool {
		times[p.Name]++
		live = append(live, p.Name)
		return true
	})
	st.DroppedPartitions(0, func(d *catalog.DroppedObject) bool {
		if d.Table == t.ID {
			times[d.Name]++
		}
		return true
	})
	return times, live
}

func onceEach(names []string) map[string]int {
	out := map[string]int{}
	for _, n := range names {
		out[n]++
	}
	return out
}

// namesBetween lists the periods from one time to another, both included.
func namesBetween(from, to time.Time, step time.Duration, layout string) (out []string) {
	for at := from.Truncate(step); !at.After(to); at = at.Add(step) {
		out = append(out, at.Format(layout))
	}
	return out
}

// Over two days in which the leader moves, by transfer and by crash, every
// partition that is due is created exactly once, and what is too old goes.
func TestNode_AutoPartition_OnceThroughLeaderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := fastClock{time.Now().UTC()}
		c := newCluster(t, 3, LogStoreWAL, func(cfg *Config) {
			cfg.Clock = clock
			cfg.HeartbeatTimeout, cfg.CommitTimeout = 4*time.Second, 500*time.Millisecond // days with fewer heartbeats
		})
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		c.propose(c.leader(), catalog.CreateDatabase{Name: "d"})
		start := clock.Wall()
		c.propose(c.leader(), timeTable("d.hours", "HOUR", 2, 3))
		c.propose(c.leader(), timeTable("d.days", "DAY", 2, 1))
		time.Sleep(2 * time.Second) // soon, not only after ten seconds
		for path, want := range map[string][]string{
			"d.hours": namesBetween(start, start.Add(time.Hour), time.Hour, "2006010215"),
			"d.days":  namesBetween(start, start.Add(24*time.Hour), 24*time.Hour, "20060102"),
		} {
			st := c.leader().fsm.State()
			table, _ := st.Table(path)
			if _, live := made(st, table); !slices.Equal(live, want) {
				t.Errorf("%s has %v soon after its creation, want %v", path, live, want)
			}
		}
		end := start.Truncate(24 * time.Hour).Add(2*24*time.Hour + 30*time.Minute)
		moves := 0
		for clock.Wall().Before(end.Add(-2 * time.Hour)) {
			time.Sleep(time.Duration(random.IntN(60_000)) * time.Millisecond)
			moves++
			if random.IntN(3) > 0 {
				if err := c.leader().TransferLeadership(t.Context(), ""); err != nil {
					t.Logf("transfer: %v", err)
				}
				continue
			}
			id := c.leader().cfg.ID
			c.stop(id)
			c.leader()
			c.start(id)
		}
		clock.sleepUntil(end)
		c.converge()
		st := c.leader().fsm.State()
		t.Logf("%d leader changes, coordinator epoch %d", moves, st.Cluster().Coordinator)

		hours, _ := st.Table("d.hours")
		times, live := made(st, hours)
		if d := cmp.Diff(onceEach(namesBetween(start, end.Add(time.Hour), time.Hour, "2006010215")), times); d != "" {
			t.Errorf("hours created: -want +got\n%s", d)
		}
		if d := cmp.Diff(namesBetween(end.Add(-3*time.Hour), end.Add(time.Hour), time.Hour, "2006010215"), live); d != "" {
			t.Errorf("hours there: -want +got\n%s", d)
		}
		days, _ := st.Table("d.days")
		times, live = made(st, days)
		s, err := autopartition.NewStrategy(days)
		if err != nil {
			t.Fatal(err)
		}
		late := end.Add(-s.Delay)
		if d := cmp.Diff(onceEach(namesBetween(start, late.Add(24*time.Hour), 24*time.Hour, "20060102")), times); d != "" {
			t.Errorf("days created, delay %s: -want +got\n%s", s.Delay, d)
		}
		if d := cmp.Diff(namesBetween(end.Add(-24*time.Hour), late.Add(24*time.Hour), 24*time.Hour, "20060102"), live); d != "" {
			t.Errorf("days there: -want +got\n%s", d)
		}
	})
}

// A table that is dropped and made again under its name while partitions are
// being created for it never gets one of the other, nor loses one to the other.
func TestNode_AutoPartition_DropAndRecreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		c.propose(c.leader(), catalog.CreateDatabase{Name: "d"})
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		partitions := 0
		for range 100 {
			n := c.leader()
			if random.IntN(20) == 0 {
				if err := n.TransferLeadership(t.Context(), ""); err != nil {
					t.Logf("transfer: %v", err)
				}
			}
			c.propose(n, timeTable("d.t", "HOUR", 4, 1))
			time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
			st := c.leader().fsm.State()
			st.PartitionsByID(0, func(p *catalog.Partition) bool {
				partitions++
				table, ok := st.TableByID(p.Table)
				if current, _ := st.Table("d.t"); !ok || table != current {
					t.Errorf("partition %d %s belongs to table %d, which is not d.t", p.ID, p.Name, p.Table)
				}
				return true
			})
			c.propose(c.leader(), catalog.DropTable{Table: "d.t"})
		}
		if partitions == 0 {
			t.Error("no partition was made in any round")
		}
		time.Sleep(2 * time.Second)
		c.converge()
		if left := c.leader().fsm.State().Counts().Partitions; left != 0 {
			t.Errorf("%d partitions are left of dropped tables", left)
		}
	})
}

// What was planned before a table or a partition was replaced by another one of
// its name does not touch the new one.
func TestNode_AutoPartition_PlannedForThePredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := fastClock{time.Now().UTC()}
		c := newCluster(t, 1, LogStoreWAL, useClock(clock))
		n := c.leader()
		l := n.lead.Load()
		c.propose(n, catalog.CreateDatabase{Name: "d"})
		c.propose(n, timeTable("d.create", "HOUR", 4, 1))
		c.propose(n, timeTable("d.drop", "HOUR", 0, 0))
		old := catalog.PartitionSpec{{Key: "dt", Value: clock.Wall().Format("2006010215")}}
		c.propose(n, catalog.CreatePartitions{Table: "d.drop", Specs: []catalog.PartitionSpec{old}})
		late := catalog.Millis(clock.Wall().Add(time.Hour).UnixMilli())
		a := &autoPartitions{trouble: map[catalog.TableID]catalog.Code{}}
		orders, _ := a.due(n, n.fsm.State(), late, true)
		if len(orders) != 2 {
			t.Fatalf("%d orders, want a creation and a drop", len(orders))
		}
		c.propose(n, catalog.DropTable{Table: "d.create"})
		plain := timeTable("d.create", "HOUR", 4, 1)
		plain.Properties = nil
		c.propose(n, plain)
		c.propose(n, catalog.DropPartitions{Table: "d.drop", Specs: []catalog.PartitionSpec{old}})
		again := c.propose(n, catalog.CreatePartitions{Table: "d.drop", Specs: []catalog.PartitionSpec{old}})
		if err := a.carryOut(c.timeout(5*time.Second), n, l, orders); err != nil {
			t.Fatal(err)
		}
		st := n.fsm.State()
		table, _ := st.Table("d.create")
		if _, live := made(st, table); len(live) != 0 {
			t.Errorf("the new table got %v", live)
		}
		id, _ := again.FirstID()
		if _, ok := st.PartitionByID(catalog.PartitionID(id)); !ok {
			t.Error("the new partition was dropped for the old one")
		}
		deposed := *l
		deposed.fence.Coordinator++
		if err := a.carryOut(c.timeout(5*time.Second), n, &deposed, orders); !isCode(err, catalog.ErrFenced) {
			t.Errorf("under another term: %v, want %v", err, catalog.ErrFenced)
		}
	})
}

// A creation by hand and a zone are judged by the leader, also for others; a
// sequence that has its result is not judged again.
func TestNode_AutoPartition_Judged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := fastClock{time.Now().UTC()}
		c := newCluster(t, 3, LogStoreWAL, useClock(clock))
		c.propose(c.leader(), catalog.CreateDatabase{Name: "d"})
		c.propose(c.leader(), timeTable("d.t", "HOUR", 0, 0))
		mars := timeTable("d.mars", "DAY", 1, 1)
		mars.Properties = append(mars.Properties, catalog.Property{Key: catalog.PropAutoZone, Value: "Mars/Base"})
		create := func(value string) catalog.CreatePartitions {
			return catalog.CreatePartitions{Table: "d.t", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: value}}}}
		}
		hour := func(ahead time.Duration) string { return clock.Wall().Add(ahead).Format("2006010215") }
		forged := create(hour(-time.Hour))
		forged.Automatic = true
		for _, n := range []*Node{c.leader(), c.followers()[0]} {
			for _, r := range []struct {
				cmd  catalog.Command
				code catalog.Code
			}{
				{mars, catalog.ErrInvalidConfig},
				{create("2024013124"), catalog.ErrPartitionSpecInvalid},
				{create(hour(-time.Hour)), catalog.ErrPartitionSpecInvalid},
				{forged, catalog.ErrPartitionSpecInvalid},
			} {
				if _, err := n.Propose(c.timeout(5*time.Second), r.cmd); !isCode(err, r.code) {
					t.Errorf("%s at %s: %v, want %v", r.cmd.Kind(), n.cfg.ID, err, r.code)
				}
			}
		}
		c.propose(c.followers()[0], create(hour(100*time.Hour)))
		reg := c.propose(c.leader(), catalog.RegisterClient{Name: "test"})
		id, _ := reg.FirstID()
		env := catalog.Envelope{Client: catalog.ClientID(id), Sequence: 1}
		now := create(hour(0))
		first, err := c.leader().Submit(c.timeout(5*time.Second), env, now)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // two hours of the wall clock
		again, err := c.followers()[0].Submit(c.timeout(5*time.Second), env, now)
		if err != nil || !cmp.Equal(first.IDs, again.IDs) {
			t.Errorf("the same sequence again: %+v, %v, want ids %v", again, err, first.IDs)
		}
		env.Sequence = 2
		if _, err := c.leader().Submit(c.timeout(5*time.Second), env, now); !isCode(err, catalog.ErrPartitionSpecInvalid) {
			t.Errorf("another sequence: %v, want %v", err, catalog.ErrPartitionSpecInvalid)
		}
	})
}

// What cannot be created stops neither the drops nor other tables, and comes
// with the next look once it can.
func TestNode_AutoPartition_Limits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := fastClock{time.Now().UTC()}
		c := newCluster(t, 1, LogStoreWAL, useClock(clock))
		n := c.leader()
		c.propose(n, catalog.CreateDatabase{Name: "d"})
		c.propose(n, catalog.SetLimits{Limits: catalog.Limits{Partitions: 3, Replicas: 6}})
		wide := timeTable("d.wide", "HOUR", 2, 0)
		wide.Buckets = catalog.Some[int32](4) // both together are above the limit of one command
		c.propose(n, wide)
		start := clock.Wall()
		c.propose(n, timeTable("d.many", "HOUR", 5, 0))
		live := func(path string) []string {
			st := n.fsm.State()
			table, _ := st.Table(path)
			_, names := made(st, table)
			return names
		}
		time.Sleep(3 * time.Second)
		if got, want := live("d.wide"), namesBetween(start, start.Add(time.Hour), time.Hour, "2006010215"); !slices.Equal(got, want) {
			t.Errorf("wide: %v, want %v", got, want)
		}
		if got, want := live("d.many"), namesBetween(start, start.Add(2*time.Hour), time.Hour, "2006010215"); !slices.Equal(got, want) {
			t.Errorf("many: %v, want %v", got, want)
		}
		later := start.Truncate(time.Hour).Add(90 * time.Minute)
		clock.sleepUntil(later)
		if got, want := live("d.many"), namesBetween(later, later.Add(2*time.Hour), time.Hour, "2006010215"); !slices.Equal(got, want) {
			t.Errorf("many an hour later: %v, want %v", got, want)
		}
		c.propose(n, catalog.SetLimits{Limits: catalog.Limits{Partitions: 100}})
		time.Sleep(12 * time.Second)
		if got, want := live("d.many"), namesBetween(later, later.Add(4*time.Hour), time.Hour, "2006010215"); !slices.Equal(got, want) {
			t.Errorf("many with room: %v, want %v", got, want)
		}
	})
}
