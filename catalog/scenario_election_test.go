package catalog

import (
	"slices"
	"testing"
)

// TestS44_NewBucket: a new bucket is led by the first of its replicas that is
// live, and they are its ISR; a primary-key table may name the next one standby;
// without a live one it waits.
func TestS44_NewBucket(t *testing.T) {
	live := func(list ...ServerID) aliveFunc { return func(id ServerID) bool { return slices.Contains(list, id) } }
	for _, c := range []struct {
		name    string
		live    []ServerID
		standby bool
		want    BucketState
		ok      bool
	}{
		{"log table", ids(1, 2), false, BucketState{Ready: true, Leader: 1, ISR: ids(1, 2)}, true},
		{"standby", ids(1, 2), true, BucketState{Ready: true, Leader: 1, ISR: ids(1, 2), Standby: ids(2)}, true},
		{"nobody", nil, true, BucketState{Leader: NoServer}, false},
	} {
		got, ok := startBucket(ids(0, 1, 2), c.standby, live(c.live...))
		if ok != c.ok || got.Ready != c.want.Ready || got.Leader != c.want.Leader || got.LeaderEpoch != 0 || got.BucketEpoch != 0 ||
			!slices.Equal(got.ISR, c.want.ISR) || !slices.Equal(got.Standby, c.want.Standby) {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
	// Through commands: as a whole, and again when a server comes back.
	h, ref := oneBucket(t, 3, 0, 1)
	h.wantBucket(ref, 0, 0, ids(0, 1), ids(0, 1))
	h.env.Lease = 20_000
	h.must(RenewLeases{Leases: []Lease{{2, 1}}})
	h.must(ExpireServers{Servers: []Expiry{lease(h, 0), lease(h, 1)}})
	h.must(CreatePartitions{Table: "d.t", Specs: dt("q"), Assignment: [][]ServerID{{2}}})
	h.b.moveBuckets([]Move{{Bucket: partitionRef(h, "q", 0)}}, func(*Move, BucketState, bool, aliveFunc) bucketMove {
		return bucketMove{BucketState{Leader: NoServer}, ids(0, 1)}
	})
	h.last = h.b.Publish()
	h.must(RegisterServer{ID: 1, DirectoryID: dirOf(1), Listeners: []string{"h:1"}, TTL: 10_000})
	h.wantBucket(partitionRef(h, "q", 0), 1, 0, ids(1), ids(0, 1))
}

// TestS45_Election: the first replica in the list that is live and in sync leads;
// a standby that is known is preferred; nobody live changes nothing.
func TestS45_Election(t *testing.T) {
	live := func(list ...ServerID) aliveFunc { return func(id ServerID) bool { return slices.Contains(list, id) } }
	for _, c := range []struct {
		name                     string
		replicas, live, isr, was []ServerID
		standby                  bool
		leader                   ServerID
		next                     []ServerID
		ok                       bool
	}{
		{"re-election", ids(2, 4), ids(2, 4), ids(2, 4), nil, false, 2, nil, true},
		{"no standby known", ids(2, 3, 4), ids(3, 4), ids(2, 3, 4), nil, true, 3, ids(4), true},
		{"known standby", ids(2, 3, 4), ids(3, 4), ids(2, 3, 4), ids(4), true, 4, ids(3), true},
		{"nobody live", ids(2, 4), nil, ids(2, 4), nil, false, 4, nil, false},
		{"outside of the ISR", ids(2, 4), ids(2), ids(4), nil, false, 4, nil, false},
	} {
		s := BucketState{Ready: true, Leader: 4, LeaderEpoch: 7, BucketEpoch: 9, ISR: c.isr, Standby: c.was}
		got, ok := elected(s, c.replicas, c.standby, live(c.live...))
		if ok != c.ok || got.Leader != c.leader || !slices.Equal(got.ISR, c.isr) || ok && !slices.Equal(got.Standby, c.next) {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
		if raised := got.LeaderEpoch == 8 && got.BucketEpoch == 10; raised != c.ok {
			t.Errorf("%s: epochs %d and %d", c.name, got.LeaderEpoch, got.BucketEpoch)
		}
	}
}

// TestS49_CoordinatorEpoch: the first leader has epoch 0, each later one one
// more; what a deposed one decided is refused, and so is an ISR change that knows
// a coordinator to come.
func TestS49_CoordinatorEpoch(t *testing.T) {
	h := newHistory(t)
	for i, term := range []uint64{2, 3, 7} {
		if res := h.must(NewTerm{Term: term, Leader: "n"}); res.Epoch != uint64(i) {
			t.Fatalf("term %d has coordinator epoch %d, want %d", term, res.Epoch, i)
		}
	}
	h.must(CreateDatabase{Name: "d"})
	h.servers(0, 1)
	c := plainTable("d.t", 1, replication(2))
	h.must(c)
	ref := BucketRef{Table: h.table("d.t").ID}
	for _, cmd := range []Command{
		StartRebalance{ID: "r", Moves: []Move{{Bucket: ref, From: ids(0, 1), To: ids(1, 0)}}},
		StepRebalance{ID: "r"},
		Reassign{Moves: []Move{{Bucket: ref, To: ids(1, 0)}}},
		CancelRebalance{},
		AssignPending{},
		PurgeDropped{Max: 1},
		ExpireServers{Servers: []Expiry{lease(h, 0)}},
	} {
		h.env.Fence = Some(Fence{Coordinator: 1})
		h.refused(ErrFenced, cmd, "coordinator epoch 1", "2")
		h.env.Fence = Opt[Fence]{}
	}
	s, _ := h.bucket(ref)
	change := ISRChange{Bucket: ref, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, Coordinator: 3, ISR: ids(s.Leader)}
	res := h.must(AdjustISR{Server: s.Leader, Incarnation: h.incarnation(s.Leader), Changes: []ISRChange{change}})
	if res.Buckets[0] != ErrInvalidCoordinator {
		t.Errorf("coordinator epoch 3: %v, want %v", res.Buckets[0], ErrInvalidCoordinator)
	}
	h.inSync(ref, s.Leader)
	if got, _ := h.bucket(ref); got.CoordinatorEpoch != 2 {
		t.Errorf("the bucket was decided under coordinator epoch %d", got.CoordinatorEpoch)
	}
}
