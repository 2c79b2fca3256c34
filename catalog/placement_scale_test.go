package catalog

import "testing"

// million returns a state with 1,000,000 buckets on 3 replicas each in 15,625
// partitions of 8 tables, on 100 servers in 5 racks.
func million(t testing.TB) *State {
	t.Helper()
	b := NewState().Begin()
	rev := Revision(0)
	do := func(c Command) {
		rev++
		if r, _ := b.Apply(rev, Envelope{Wall: 1}, c); r.Code != Done {
			t.Fatalf("%s: %v", c.Kind(), r.Err())
		}
	}
	do(NewTerm{Term: 1})
	do(CreateDatabase{Name: "d"})
	for i := range 100 {
		do(RegisterServer{ID: ServerID(i), DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 10_000, Rack: "r" + itoa(int64(i%5))})
	}
	left := 15_625
	for i := range 8 {
		c := ordersTable("d.t"+itoa(int64(i)), 64)
		c.Properties = []Property{replication(3)}
		do(c)
		for n := min(left, 1954); n > 0; {
			var values []string
			for ; len(values) < 300 && n > 0; n-- {
				values = append(values, utoa(uint64(100_000+left)))
				left--
			}
			do(CreatePartitions{Table: c.Table, Specs: dt(values...)})
		}
	}
	return b.Publish()
}

// BenchmarkLoseServer is the loss of one of 100 servers that hold 1,000,000
// buckets: one command, which elects a leader for each of the 10,000 buckets it
// led and takes it out of 20,000 other ISRs.
func BenchmarkLoseServer(b *testing.B) {
	s := million(b)
	v, _ := s.Server(42)
	b.ResetTimer()
	for range b.N {
		batch := s.Begin()
		_, ev := batch.Apply(s.Revision()+1, Envelope{Lease: 20_000}, ExpireServers{Servers: []Expiry{{42, v.Incarnation, v.RenewedAt}}})
		if len(ev.Changes) < 1000 {
			b.Fatalf("%d changes", len(ev.Changes))
		}
	}
}

// BenchmarkPlanRebalance plans to empty one of 100 servers that hold 1,000,000
// buckets.
func BenchmarkPlanRebalance(b *testing.B) {
	s := million(b)
	batch := s.Begin()
	batch.Apply(s.Revision()+1, Envelope{}, TagServer{IDs: []ServerID{42}, Tag: PermanentOffline})
	s = batch.Publish()
	b.ResetTimer()
	for range b.N {
		p, err := s.PlanRebalance(0)
		if err != nil || len(p.Moves) != MaxMoves {
			b.Fatal(err)
		}
	}
}

// BenchmarkStepRebalance is a step of a plan of 4,096 moves.
func BenchmarkStepRebalance(b *testing.B) {
	s := million(b)
	batch := s.Begin()
	batch.Apply(s.Revision()+1, Envelope{}, TagServer{IDs: []ServerID{42}, Tag: PermanentOffline})
	p, err := batch.View().PlanRebalance(0)
	if err != nil {
		b.Fatal(err)
	}
	batch.Apply(s.Revision()+2, Envelope{}, StartRebalance{ID: "r", Moves: p.Moves})
	s = batch.Publish()
	b.ResetTimer()
	for range b.N {
		if _, due := s.RebalanceDue(); due {
			b.Fatal("a step is due")
		}
	}
}

// TestPlacement_Even: after 10,000 creations on 100 servers every server leads
// within 5 % of an even share of the buckets. So are the replicas, unless racks are
// of different sizes: each rack gets as many.
func TestPlacement_Even(t *testing.T) {
	for name, racks := range map[string]int{"no racks": 0, "5 racks": 5, "uneven racks": 7} {
		t.Run(name, func(t *testing.T) {
			b := NewState().Begin()
			rev := Revision(0)
			do := func(c Command) {
				rev++
				if r, _ := b.Apply(rev, Envelope{Wall: 1}, c); r.Code != Done {
					t.Fatalf("%s: %v", c.Kind(), r.Err())
				}
			}
			do(CreateDatabase{Name: "d"})
			for i := range 100 {
				c := RegisterServer{ID: ServerID(i), DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 10_000}
				if racks > 0 {
					c.Rack = "r" + itoa(int64(i%racks))
				}
				do(c)
			}
			c := ordersTable("d.t", 4)
			c.Properties = []Property{replication(3)}
			do(c)
			for i := range 10_000 {
				do(CreatePartitions{Table: "d.t", Specs: dt(utoa(uint64(100_000 + i)))})
			}
			leaders, replicas := make([]int, 100), make([]int, 100)
			b.View().eachBucket(func(ref BucketRef, list []ServerID) {
				s, _, _ := b.View().Bucket(ref)
				leaders[s.Leader]++
				for _, id := range list {
					replicas[id]++
				}
			})
			for i := range 100 {
				if n := leaders[i]; n < 380 || n > 420 {
					t.Errorf("server %d leads %d buckets, an even share is 400", i, n)
				}
				if n := replicas[i]; racks != 7 && (n < 1140 || n > 1260) {
					t.Errorf("server %d holds %d replicas, an even share is 1200", i, n)
				}
			}
		})
	}
}
