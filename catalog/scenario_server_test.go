package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func candidates(ids ...ServerID) []Candidate {
	out := make([]Candidate, len(ids))
	for i, id := range ids {
		out[i].ID = id
	}
	return out
}

// TestS40_PlainAssignment: ten buckets over five servers.
func TestS40_PlainAssignment(t *testing.T) {
	got, err := Assign(candidates(0, 1, 2, 3, 4), 10, 3, 0, 0)
	want := [][]ServerID{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 0}, {4, 0, 1}, {0, 2, 3}, {1, 3, 4}, {2, 4, 0}, {3, 0, 1}, {4, 1, 2}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

// TestS41_RackAware: every bucket spans the racks; one server without a rack
// makes all plain.
func TestS41_RackAware(t *testing.T) {
	servers := []Candidate{{0, "rack1"}, {1, "rack3"}, {2, "rack3"}, {3, "rack2"}, {4, "rack2"}, {5, "rack1"}}
	got, err := Assign(servers, 7, 3, 0, 0)
	want := [][]ServerID{{0, 3, 1}, {3, 1, 5}, {1, 5, 4}, {5, 4, 2}, {4, 2, 0}, {2, 0, 3}, {0, 4, 2}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	servers[3].Rack = ""
	got, _ = Assign(servers, 7, 3, 0, 0)
	plain, _ := Assign(candidates(0, 1, 2, 3, 4, 5), 7, 3, 0, 0)
	if d := cmp.Diff(plain, got); d != "" {
		t.Error(d)
	}
}

// TestPlacement_StartAndShift: they come from the id, so that every node
// computes the same and objects spread.
func TestPlacement_StartAndShift(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.servers(4, 0, 2, 1, 3)
	for id := range uint64(12) {
		h.must(plainTable("d.t"+utoa(id), 6, replication(3)))
		want, _ := Assign(candidates(0, 1, 2, 3, 4), 6, 3, int(id%5), int(id/5%4))
		got := h.table("d.t" + utoa(id)).Placement
		if d := cmp.Diff(want, got.Replicas); d != "" {
			t.Errorf("table %d: -want +got\n%s", id, d)
		}
		for i, b := range got.Buckets {
			if b.Leader != want[i][0] || !b.Ready || !cmp.Equal(b.ISR, want[i]) || !cmp.Equal(b.Standby, want[i][1:2]) {
				t.Errorf("bucket %d: %+v", i, b)
			}
		}
	}
}

// TestS42_Replay: the same commands in batches of any size, or through rows
// loaded anew, give the same hash.
func TestS42_Replay(t *testing.T) {
	log := replayLog()
	apply := func(s *State, from, to, batch int) *State {
		b := s.Begin()
		for i := from; i < to; i++ {
			b.Apply(Revision(i+1), Envelope{Wall: Millis(i), Lease: Millis(i)}, log[i])
			if (i+1)%batch == 0 {
				b.Publish()
			}
		}
		return b.Publish()
	}
	want := apply(NewState(), 0, len(log), 1)
	if err := want.Check(); err != nil {
		t.Fatal(err)
	}
	for _, batch := range []int{2, 7, len(log)} {
		if got := apply(NewState(), 0, len(log), batch); got.Hash() != want.Hash() {
			t.Errorf("in batches of %d the hash is %x, want %x", batch, got.Hash(), want.Hash())
		}
	}
	for cut := 0; cut <= len(log); cut += 5 {
		s := reload(t, apply(NewState(), 0, cut, 3))
		if got := apply(s, cut, len(log), 4); got.Hash() != want.Hash() {
			t.Errorf("reloaded after %d commands the hash is %x, want %x", cut, got.Hash(), want.Hash())
		}
	}
}

func replayLog() []Command {
	log := []Command{
		NewTerm{Term: 1, Leader: "n1"},
		ActivateIncarnation{ClusterID: "c", Incarnation: Incarnation{1, 2}, Level: 1},
		CreateDatabase{Name: "shop"},
		ordersTable("shop.orders", 2),
		CreatePartitions{Table: "shop.orders", Specs: dt("u1", "u2")},
		plainTable("shop.plain", 3, replication(2)),
	}
	for i := range ServerID(4) {
		log = append(log, RegisterServer{ID: i, DirectoryID: "d", Listeners: []string{"h:1"}, Rack: "r" + itoa(int64(i%2)), TTL: 10_000})
	}
	for i := range 20 {
		log = append(log,
			CreatePartitions{Table: "shop.orders", Specs: dt("p"+itoa(int64(i)), "q"+itoa(int64(i)))},
			RescaleTable{Table: "shop.orders", Buckets: int32(i%5 + 1)}, AssignPending{MaxReplicas: 3},
			DropPartitions{Table: "shop.orders", Specs: dt("p" + itoa(int64(i/2))), IfExists: true}, PutKV{Key: itoa(int64(i % 3)), Value: []byte{byte(i)}},
			AllocateIDs{Counter: "n", Count: 3},
		)
	}
	return append(log,
		ImportBatch{Import: importID, Databases: []Database{{Name: "imp"}}, Tables: []ImportTable{exported(50, "imp.t", 4)}},
		ImportBatch{Import: importID, Skip: 2, Partitions: []ImportPartition{legacyRow(50, 500, "l")}}, DropTable{Table: "shop.plain"},
	)
}

// reload copies every row of a state into a new one.
func reload(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, s *State,
) *State {
	t.Helper()
	l := NewLoader()
	l.Cluster(s.Cluster())
	add := func(o Object) bool {
		if err := l.Add(o); err != nil {
			t.Fatal(err)
		}
		return true
	}
	s.Databases(func(r *Database) bool { c := *r; return add(&c) })
	s.TablesByID(func(r *Table) bool { c := *r; return add(&c) })
	s.PartitionsByID(0, func(r *Partition) bool { c := *r; return add(&c) })
	s.Servers(func(r *Server) bool { c := *r; return add(&c) })
	s.Members(func(r *Member) bool { c := *r; return add(&c) })
	s.KeyValues("", func(r *KeyValue) bool { c := *r; return add(&c) })
	s.Counters(func(r *Counter) bool { c := *r; return add(&c) })
	s.Imports(func(r *Import) bool { c := *r; return add(&c) })
	s.DroppedTables(func(r *DroppedObject) bool { c := *r; return add(&c) })
	s.DroppedPartitions(0, func(r *DroppedObject) bool { c := *r; return add(&c) })
	if s.rebal != nil {
		c := *s.rebal
		add(&c)
	}
	s.Clients(func(r *Client) bool {
		c := &Client{ID: r.ID, Watermark: r.Watermark, Active: r.Active, ActiveAt: r.ActiveAt, Name: r.Name, TTL: r.TTL}
		if err := l.AddClient(c); err != nil {
			t.Fatal(err)
		}
		r.Results(func(seq uint64, res Result) bool {
			if err := l.AddResult(r.ID, seq, res); err != nil {
				t.Fatal(err)
			}
			return true
		})
		return true
	})
	out, err := l.Finish(s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	if out.Hash() != s.Hash() {
		t.Fatalf("reloaded hash %x, want %x", out.Hash(), s.Hash())
	}
	return out
}

// TestS43_Tags: a tagged server, a dead one and one that shuts down get no new
// replica.
func TestS43_Tags(t *testing.T) {
	for name, mark := range map[string]func(*Server){
		"permanent offline": func(v *Server) { v.Tag = PermanentOffline },
		"temporary offline": func(v *Server) { v.Tag = TemporaryOffline },
		"dead":              func(v *Server) { v.Live = false },
		"shutting down":     func(v *Server) { v.ShuttingDown = true },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.must(CreateDatabase{Name: "d"})
			h.servers(0, 1, 2)
			h.mark(1, mark)
			for i := range 6 {
				h.must(plainTable("d.t"+itoa(int64(i)), 5, replication(2)))
			}
			if n := h.last.ReplicasOn(1); n != 0 {
				t.Errorf("server 1 got %d replicas", n)
			}
			h.refused(ErrInvalidReplicationFactor, plainTable("d.x", 1, replication(3)), "2 live of 3 registered")
		})
	}
}

// TestAssignPending: what was created without servers is placed in id order
// within the bound; importing, dropped and impossible objects hold up nobody.
func TestAssignPending(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.must(plainTable("shop.plain", 3))
	h.must(plainTable("shop.five", 3, replication(5)))
	h.create("shop.orders", "a", "b", "c")
	h.unchanged(AssignPending{})
	h.must(ImportBatch{Import: importID, Tables: []ImportTable{exported(50, "shop.imp", 4)}, Partitions: []ImportPartition{legacyRow(50, 500, "l")}})
	big := ordersTable("shop.big", 1)
	h.must(big)
	fill(h, "shop.big", maxInlineDrop+1)
	h.must(DropTable{Table: "shop.big"})
	h.servers(7)
	placed := func(name string) bool { return h.partition("shop.orders", name).Placement != nil }
	h.must(AssignPending{MaxReplicas: 4}) // the table with 3; a partition of 2 does not fit
	if h.table("shop.plain").Placement == nil || placed("a") {
		t.Error("the bound of 4 was not kept")
	}
	h.must(AssignPending{MaxReplicas: 4})
	if !placed("a") || !placed("b") || placed("c") {
		t.Error("want a and b placed by the second command")
	}
	// An object above the bound goes alone.
	h.must(AssignPending{MaxReplicas: 1})
	if !placed("c") {
		t.Error("c is not placed")
	}
	h.unchanged(AssignPending{})
	if h.table("shop.five").Placement != nil || h.partition("shop.imp", "l").Placement != nil {
		t.Error("an impossible or importing object was placed")
	}
	h.must(ImportBatch{Import: importID, Last: true})
	h.must(AssignPending{})
	if p := h.partition("shop.imp", "l").Placement; p == nil || len(p.Replicas) != 4 {
		t.Errorf("placement of the legacy partition: %+v", p)
	}
	h.servers(1, 2, 3, 4)
	h.must(AssignPending{})
	if h.table("shop.five").Placement == nil {
		t.Error("five servers are live and the table is not placed")
	}
}

// TestPlacement_NoLiveServer: with records, none live is a refusal that says so.
func TestPlacement_NoLiveServer(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.servers(1)
	h.mark(1, func(v *Server) { v.Live = false })
	h.refused(ErrInvalidReplicationFactor, CreatePartitions{Table: "shop.orders", Specs: dt("a")}, "0 live of 1 registered")
	h.refused(ErrInvalidReplicationFactor, plainTable("shop.t", 1), "0 live of 1 registered")
	h.must(UnregisterServer{ID: 1})
	h.create("shop.orders", "a")
	if h.partition("shop.orders", "a").Placement != nil {
		t.Error("placed without servers")
	}
}

// TestPlacement_Supplied: an assignment made for another layout is stale.
func TestPlacement_Supplied(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.servers(1, 2)
	give := func(lists ...[]ServerID) CreatePartitions {
		return CreatePartitions{Table: "shop.orders", Specs: dt("a"), Assignment: lists}
	}
	h.refused(ErrStaleMetadata, give([]ServerID{1}), "1 buckets", "has 2 at layout epoch 0")
	h.refused(ErrServerNotExist, give([]ServerID{1}, []ServerID{3}), "tablet server 3 of bucket 1")
	h.refused(ErrInvalidArgument, give([]ServerID{1, 1}, []ServerID{2}), "given twice")
	h.refused(ErrInvalidReplicationFactor, give([]ServerID{1}, nil), "bucket 1 has 0 replicas")
	h.must(SetLimits{Limits: Limits{Replicas: 3}})
	h.refused(ErrTooLarge, give([]ServerID{1, 2}, []ServerID{2, 1}), "4 bucket replicas, above 3")
	h.must(give([]ServerID{2, 1}, []ServerID{1}))
	if d := cmp.Diff([][]ServerID{{2, 1}, {1}}, h.partition("shop.orders", "a").Placement.Replicas); d != "" {
		t.Error(d)
	}
	h.must(RescaleTable{Table: "shop.orders", Buckets: 3})
	h.refused(ErrStaleMetadata, CreatePartitions{Table: "shop.orders", Specs: dt("b"), Assignment: [][]ServerID{{1}, {2}}}, "layout epoch 1")
}

// TestRegisterServer: the same directory replaces at once, another one waits for
// the lease to end; what a server is keeps its tag.
func TestRegisterServer(t *testing.T) {
	h := newHistory(t)
	reg := func(dir string) RegisterServer {
		return RegisterServer{ID: 3, DirectoryID: dir, Listeners: []string{"CLIENT://h:9123", "[::1]:1"}, Rack: "r", TTL: 10_000}
	}
	first := uint64(0)
	incarnation := func(want uint64, r Result) {
		t.Helper()
		got, _ := r.FirstID()
		if first == 0 {
			if first = got; got != uint64(r.Revision) {
				t.Errorf("incarnation %d at revision %d", got, r.Revision)
			}
		}
		if got -= first; got != want {
			t.Errorf("incarnation %d above the first, want %d", got, want)
		}
	}
	h.env.Lease = 100
	incarnation(0, h.must(reg("a")))
	incarnation(1, h.must(reg("a")))
	h.env.Lease = 10_099
	h.refused(ErrServerIDInUse, reg("b"), "directory id a", "another 1 ms")
	h.env.Lease = 10_100
	incarnation(2, h.must(reg("b")))
	h.refused(ErrServerIDInUse, reg("a"), "directory id b")
	for _, bad := range []func(*RegisterServer){
		func(c *RegisterServer) { c.ID = -1 },
		func(c *RegisterServer) { c.TTL = 999 },
		func(c *RegisterServer) { c.TTL = 600_001 },
		func(c *RegisterServer) { c.DirectoryID = "" },
		func(c *RegisterServer) { c.Listeners = nil },
		func(c *RegisterServer) { c.Listeners = make([]string, 17) },
		func(c *RegisterServer) { c.Listeners = []string{"h:0"} },
		func(c *RegisterServer) { c.Listeners = []string{"h"} },
		func(c *RegisterServer) { c.Listeners = []string{":9123"} },
		func(c *RegisterServer) { c.Rack = "\xff" },
	} {
		c := reg("b")
		bad(&c)
		h.refused(ErrInvalidArgument, c)
	}
}

// TestUnregisterServer: only an empty one, and only the incarnation meant.
func TestUnregisterServer(t *testing.T) {
	h := newHistory(t)
	h.servers(1, 2)
	h.must(CreateDatabase{Name: "d"})
	h.must(plainTable("d.t", 3, replication(2)))
	h.refused(ErrServerNotExist, UnregisterServer{ID: 9}, "tablet server 9")
	was := h.incarnation(1)
	h.refused(ErrFenced, UnregisterServer{ID: 1, Incarnation: Some(was + 1)}, "incarnation "+utoa(uint64(was))+", not")
	h.refused(ErrInvalidArgument, UnregisterServer{ID: 1}, "3 bucket replicas")
	h.must(DropTable{Table: "d.t"})
	h.env.Wall++
	h.unchanged(PurgeDropped{Max: 9, Before: h.env.Wall}) // its servers still have to delete
	h.must(UnregisterServer{ID: 1, Incarnation: Some(was)})
	h.must(UnregisterServer{ID: 2})
	h.must(PurgeDropped{Max: 9, Before: h.env.Wall}) // nobody is left to wait for
}

// TestUnregisterServer_ComesBack: nothing that the earlier life of a server left
// under way is accepted from it, or for it, once its id is registered anew.
func TestUnregisterServer_ComesBack(t *testing.T) {
	h := newHistory(t)
	reg := RegisterServer{ID: 1, DirectoryID: "a", Listeners: []string{"h:1"}, TTL: 10_000}
	for range 3 {
		h.must(reg) // restarts
	}
	v, _ := h.last.Server(1)
	h.must(UnregisterServer{ID: 1})
	h.must(reg)
	if now := h.incarnation(1); now <= v.Incarnation {
		t.Errorf("incarnation %d after %d", now, v.Incarnation)
	}
	h.env.Lease += 60_000
	for age := range v.Incarnation + 1 {
		old := v.Incarnation - age
		h.refused(ErrFenced, AdjustISR{Server: 1, Incarnation: old, Changes: []ISRChange{{}}}, "not "+utoa(uint64(old)))
		h.refused(ErrFenced, UnregisterServer{ID: 1, Incarnation: Some(old)}, "not "+utoa(uint64(old)))
		h.unchanged(RenewLeases{Leases: []Lease{{1, old}}})
		h.unchanged(ExpireServers{Servers: []Expiry{{1, old, v.RenewedAt}}})
	}
}
