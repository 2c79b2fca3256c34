package catalog

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// placed returns a history with servers 0..n-1 and a partitioned table.
func placed(t *testing.T, servers int, replication string, buckets int32) *history {
	t.Helper()
	h := newHistory(t)
	h.must(NewTerm{Term: 1, Leader: "n1"})
	for i := range servers {
		h.must(RegisterServer{ID: ServerID(i), DirectoryID: dirOf(i), Listeners: []string{"h:1"}, TTL: 10_000})
	}
	h.must(CreateDatabase{Name: "d"})
	h.must(CreateTable{
		Table: "d.t", Columns: []NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}}, PrimaryKey: []string{"a", "dt"},
		PartitionKeys: []string{"dt"}, Buckets: Some(buckets), Properties: []Property{{PropReplication, replication}, {PropStandby, "false"}},
	})
	return h
}

func dirOf(i int) string { return "dir" + string(rune('a'+i)) }

func partitionRef(h *history, name string, bucket int) BucketRef {
	t, _ := h.last.Table("d.t")
	p, _ := h.last.Partition(t.ID, name)
	return BucketRef{Table: t.ID, Partition: Some(p.ID), Bucket: BucketID(bucket)}
}

func lease(h *history, id int) Expiry {
	v, _ := h.last.Server(ServerID(id))
	return Expiry{ID: v.ID, Incarnation: v.Incarnation, RenewedAt: v.RenewedAt}
}

// TestS50_LostServer: a dead server's buckets get new leaders in one command and
// one event; replicas stay where they are; coming back moves no leader.
func TestS50_LostServer(t *testing.T) {
	h := placed(t, 3, "3", 6)
	h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", "p"}}}})
	before, replicas, _ := h.last.Bucket(partitionRef(h, "p", 0))
	dead := before.Leader
	h.unchanged(ExpireServers{Servers: []Expiry{lease(h, int(dead))}}) // its time is not over
	h.env.Lease = 10_000
	var others []Lease
	h.last.Servers(func(v *Server) bool {
		if v.ID != dead {
			others = append(others, Lease{v.ID, v.Incarnation})
		}
		return true
	})
	if _, ev := h.try(RenewLeases{Leases: others}); ev != nil {
		t.Errorf("a renewal made the event %+v", ev)
	}
	stale := lease(h, int(dead))
	stale.RenewedAt++
	h.unchanged(ExpireServers{Servers: []Expiry{stale}})
	for _, o := range others { // a renewed lease is not expired, whoever says so
		h.unchanged(ExpireServers{Servers: []Expiry{lease(h, int(o.ID))}})
	}
	_, ev := h.try(ExpireServers{Servers: []Expiry{lease(h, int(dead))}})
	if ev == nil || len(ev.Changes) != 2 {
		t.Fatalf("loss of a server made the event %+v, want the server and the partition", ev)
	}
	for i := range 6 {
		s, r, _ := h.last.Bucket(partitionRef(h, "p", i))
		if s.Leader == dead || s.Leader == NoServer || slices.Contains(s.ISR, dead) || len(s.ISR) != 2 {
			t.Errorf("bucket %d after the loss of %d: %+v", i, dead, s)
		}
		if i == 0 && (!slices.Equal(r, replicas) || s.LeaderEpoch != before.LeaderEpoch+1 || s.BucketEpoch != before.BucketEpoch+1) {
			t.Errorf("bucket 0: replicas %v, state %+v, before %v %+v", r, s, replicas, before)
		}
	}
	if err := h.last.RenewalError(Lease{dead, 1}, h.rev); err == nil {
		t.Error("a late keepalive of an expired server was accepted")
	}
	h.must(RegisterServer{ID: dead, DirectoryID: dirOf(int(dead)), Listeners: []string{"h:1"}, TTL: 10_000})
	if s, _, _ := h.last.Bucket(partitionRef(h, "p", 0)); s.Leader == dead {
		t.Errorf("leadership moved back by itself: %+v", s)
	}
}

// TestServers_AllLost: the ISR is never emptied, and whoever of it returns first
// leads again.
func TestServers_AllLost(t *testing.T) {
	h := placed(t, 3, "3", 1)
	h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", "p"}}}})
	h.env.Lease = 20_000
	h.must(ExpireServers{Servers: []Expiry{lease(h, 0), lease(h, 1), lease(h, 2)}})
	s, _, _ := h.last.Bucket(partitionRef(h, "p", 0))
	if s.Leader != NoServer || len(s.ISR) != 3 {
		t.Fatalf("after the loss of all: %+v", s)
	}
	h.must(RegisterServer{ID: 1, DirectoryID: dirOf(1), Listeners: []string{"h:1"}, TTL: 10_000})
	if s, _, _ = h.last.Bucket(partitionRef(h, "p", 0)); s.Leader != 1 {
		t.Errorf("after 1 returned: %+v", s)
	}
}

// TestS51_DuplicateRegistration: another directory waits for the end of the
// lease; the same one replaces at once and fences the old incarnation.
func TestS51_DuplicateRegistration(t *testing.T) {
	h := placed(t, 3, "3", 1)
	h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", "p"}}}})
	s, _, _ := h.last.Bucket(partitionRef(h, "p", 0))
	id := s.Leader
	old := h.incarnation(id)
	other := RegisterServer{ID: id, DirectoryID: "other", Listeners: []string{"h:1"}, TTL: 10_000}
	h.refused(ErrServerIDInUse, other, "10000 ms")
	h.must(RegisterServer{ID: id, DirectoryID: dirOf(int(id)), Listeners: []string{"h:1"}, TTL: 10_000})
	after, _, _ := h.last.Bucket(partitionRef(h, "p", 0))
	if after.LeaderEpoch <= s.LeaderEpoch {
		t.Errorf("the old incarnation still leads: %+v, was %+v", after, s)
	}
	change := ISRChange{Bucket: partitionRef(h, "p", 0), LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, ISR: []ServerID{id}}
	h.refused(ErrFenced, AdjustISR{Server: id, Incarnation: old, Changes: []ISRChange{change}}, "incarnation "+utoa(uint64(old)+1))
	h.env.Lease = 10_000
	h.must(other)
}

// TestS48_AdjustISR walks the checks in their order; a refusal leaves the bucket
// as it is.
func TestS48_AdjustISR(t *testing.T) {
	h := placed(t, 4, "3", 1)
	h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", "p"}}}})
	ref := partitionRef(h, "p", 0)
	s, replicas, _ := h.last.Bucket(ref)
	var outside ServerID
	for id := range ServerID(4) {
		if !slices.Contains(replicas, id) {
			outside = id
		}
	}
	shrunk := []ServerID{s.Leader, replicas[1]}
	ok := ISRChange{Bucket: ref, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, ISR: shrunk}
	with := func(f func(*ISRChange)) ISRChange {
		c := ok
		f(&c)
		return c
	}
	for _, tc := range []struct {
		name   string
		server ServerID
		change ISRChange
		want   Code
	}{
		{"unknown bucket", s.Leader, with(func(c *ISRChange) { c.Bucket.Bucket = 9 }), ErrUnknownTableOrBucket},
		{"leader epoch of the future", s.Leader, with(func(c *ISRChange) { c.LeaderEpoch++ }), ErrInvalidCoordinator},
		{"bucket epoch of the future", s.Leader, with(func(c *ISRChange) { c.BucketEpoch++ }), ErrInvalidCoordinator},
		{"coordinator of the future", s.Leader, with(func(c *ISRChange) { c.Coordinator = 9 }), ErrInvalidCoordinator},
		{"old leader epoch", s.Leader, with(func(c *ISRChange) { c.LeaderEpoch-- }), ErrFencedLeaderEpoch},
		{"old bucket epoch", s.Leader, with(func(c *ISRChange) { c.BucketEpoch-- }), ErrInvalidUpdateVersion},
		{"not the leader", replicas[1], ok, ErrFencedLeaderEpoch},
		{"without the leader", s.Leader, with(func(c *ISRChange) { c.ISR = replicas[1:] }), ErrIneligibleReplica},
		{"empty", s.Leader, with(func(c *ISRChange) { c.ISR = nil }), ErrIneligibleReplica},
		{"outside the replicas", s.Leader, with(func(c *ISRChange) { c.ISR = []ServerID{s.Leader, outside} }), ErrFencedLeaderEpoch},
		{"unregistered", s.Leader, with(func(c *ISRChange) { c.ISR = []ServerID{s.Leader, 77} }), ErrIneligibleReplica},
	} {
		r := h.must(AdjustISR{Server: tc.server, Incarnation: h.incarnation(tc.server), Changes: []ISRChange{tc.change}})
		if r.Buckets[0] != tc.want || r.Changed {
			t.Errorf("%s: %v, want %v", tc.name, r.Buckets[0], tc.want)
		}
	}
	r := h.must(AdjustISR{Server: s.Leader, Incarnation: h.incarnation(s.Leader), Changes: []ISRChange{ok, with(func(c *ISRChange) { c.Bucket.Bucket = 9 })}})
	after, _, _ := h.last.Bucket(ref)
	if r.Buckets[0] != Done || r.Buckets[1] != ErrUnknownTableOrBucket || after.BucketEpoch != s.BucketEpoch+1 || !slices.Equal(after.ISR, shrunk) {
		t.Errorf("adjusted: %v, %+v", r.Buckets, after)
	}
}

// TestS46_ControlledShutdown: leaders move, followers leave the ISR, and what
// nobody else can lead stays.
func TestS46_ControlledShutdown(t *testing.T) {
	h := placed(t, 2, "2", 2)
	h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", "p"}}}})
	r := h.must(ElectLeaders{Reason: ElectControlledShutdown, Server: Some[ServerID](0)})
	if r.Count != 0 {
		t.Errorf("server 0 still leads %d buckets", r.Count)
	}
	for i := range 2 {
		if s, _, _ := h.last.Bucket(partitionRef(h, "p", i)); s.Leader != 1 || !slices.Equal(s.ISR, []ServerID{1}) {
			t.Errorf("bucket %d: %+v", i, s)
		}
	}
	if r := h.must(ElectLeaders{Reason: ElectControlledShutdown, Server: Some[ServerID](1)}); r.Count != 2 {
		t.Errorf("both shut down: server 1 leads %d buckets, want 2", r.Count)
	}
}

// TestTagServer: a tagged server gets no new replica; codes of wrong tags.
func TestTagServer(t *testing.T) {
	h := placed(t, 3, "2", 4)
	h.refused(ErrServerNotExist, TagServer{IDs: []ServerID{0, 100}, Tag: PermanentOffline}, "100")
	h.must(TagServer{IDs: []ServerID{0}, Tag: PermanentOffline})
	h.unchanged(TagServer{IDs: []ServerID{0}, Tag: PermanentOffline})
	h.refused(ErrServerTagAlreadyExist, TagServer{IDs: []ServerID{0}, Tag: TemporaryOffline})
	h.refused(ErrServerTagNotExist, TagServer{IDs: []ServerID{1}, Tag: PermanentOffline, Remove: true})
	h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", "p"}}}})
	if n := h.last.ReplicasOn(0); n != 0 {
		t.Errorf("a tagged server got %d replicas", n)
	}
	h.must(TagServer{IDs: []ServerID{0}, Tag: PermanentOffline, Remove: true})
}

// TestPlacement_Random runs random placement commands; the harness verifies the
// invariants, I8 among them, after each.
func TestPlacement_Random(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	h := placed(t, 5, "3", 3)
	names := []string{"p0", "p1", "p2"}
	for range 400 {
		h.env.Lease += Millis(r.IntN(4_000))
		id := r.IntN(5)
		switch r.IntN(8) {
		case 0:
			h.try(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", names[r.IntN(3)]}}}})
		case 1:
			h.try(RegisterServer{ID: ServerID(id), DirectoryID: dirOf(id), Listeners: []string{"h:1"}, TTL: 10_000})
		case 2:
			h.try(ExpireServers{Servers: []Expiry{lease(h, id)}})
		case 3:
			h.try(ElectLeaders{Reason: ElectControlledShutdown, Server: Some(ServerID(id))})
		case 4:
			h.try(DropPartitions{Table: "d.t", Specs: []PartitionSpec{{{"dt", names[r.IntN(3)]}}}})
		case 5:
			v, _ := h.last.Server(ServerID(id))
			h.try(RenewLeases{Leases: []Lease{{v.ID, v.Incarnation}}})
		default:
			adjustRandom(h, r, names[r.IntN(3)])
		}
	}
}

func adjustRandom(h *history, r *rand.Rand, name string) {
	t, _ := h.last.Table("d.t")
	p, ok := h.last.Partition(t.ID, name)
	if !ok || p.Placement == nil {
		return
	}
	ref := BucketRef{Table: t.ID, Partition: Some(p.ID), Bucket: BucketID(r.IntN(3))}
	s, replicas, _ := h.last.Bucket(ref)
	if s.Leader == NoServer || r.IntN(2) == 0 {
		h.try(ElectLeaders{Reason: ElectionReason(r.IntN(2)), Buckets: []BucketRef{ref}})
		return
	}
	v, _ := h.last.Server(s.Leader)
	isr := slices.DeleteFunc(slices.Clone(replicas), func(ServerID) bool { return r.IntN(3) == 0 })
	h.try(AdjustISR{Server: v.ID, Incarnation: v.Incarnation, Changes: []ISRChange{{
		Bucket: ref, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, Coordinator: s.CoordinatorEpoch, ISR: isr,
	}}})
}
