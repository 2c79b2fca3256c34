package catalog

import (
	"slices"
	"testing"
	"time"
)

// wideTable is a state with 16 servers and a table of 1,000 partitions with 64
// buckets on 3 replicas each: 192,000 replicas.
func wideTable(t testing.TB) *State {
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
	do(CreateDatabase{Name: "shop"})
	for i := range ServerID(16) {
		do(RegisterServer{ID: i, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 10_000})
	}
	c := ordersTable("shop.orders", 64)
	c.Properties = []Property{replication(3)}
	do(c)
	for i := range 10 {
		var values []string
		for j := range 100 {
			values = append(values, utoa(uint64(10_000+100*i+j)))
		}
		do(CreatePartitions{Table: "shop.orders", Specs: dt(values...)})
	}
	return b.Publish()
}

// TestDrop_Wide: a table of 1,000 partitions with 64 buckets is gone with one
// command of one small event; its rows are purged in steps of bounded size, each
// server hears of one deletion and acknowledges it, at most five failed tries
// long.
func TestDrop_Wide(t *testing.T) {
	s := wideTable(t)
	h := &history{t: t, b: s.Begin(), rev: s.Revision(), last: s, env: Envelope{Wall: 1}}
	was := h.table("shop.orders")
	res, ev := h.try(DropTable{Table: "shop.orders"})
	if res.Code != Done || len(ev.Changes) != 2 {
		t.Fatalf("drop: %v, %d changes", res.Err(), len(ev.Changes))
	}
	if _, ok := h.last.Table("shop.orders"); ok {
		t.Fatal("the table is still there")
	}
	if _, _, ok := h.last.Bucket(BucketRef{Table: was.ID, Partition: Some(PartitionID(5))}); ok {
		t.Error("a bucket of the dropped table is still served")
	}
	h.create(h.orders(1).Path, "10000") // the name is free at once
	steps := 0
	for h.last.PartitionCount(was.ID) > 0 {
		before := h.last.PartitionCount(was.ID)
		_, ev := h.try(PurgeDropped{Max: 4096})
		steps++
		if n := before - h.last.PartitionCount(was.ID); n < 1 || n*64*3 > maxInlineReplicas || len(ev.Changes) > n+1 {
			t.Fatalf("step %d purged %d partitions with %d changes", steps, n, len(ev.Changes))
		}
	}
	if steps != 3 {
		t.Errorf("purged in %d steps, want 3", steps)
	}
	pending := func() (out []ServerID) {
		h.last.DroppedTables(func(d *DroppedObject) bool {
			for _, p := range d.Pending {
				out = append(out, p.Server)
			}
			return true
		})
		return out
	}
	for id := range ServerID(16) {
		tries := 1
		failed := id%2 == 0
		if failed {
			tries = maxDeletionTries
		}
		for i := range tries {
			if !slices.Contains(pending(), id) {
				t.Fatalf("server %d was given up after %d tries", id, i)
			}
			h.must(AckDeletion{Server: id, Incarnation: h.incarnation(id), Objects: []DeletionAck{{Table: was.ID, Failed: failed}}})
		}
	}
	if left := pending(); left != nil {
		t.Errorf("servers %v are still waited for", left)
	}
	h.env.Wall = 10
	if !h.last.Purgeable(h.env.Wall) {
		t.Error("the record is not purgeable")
	}
	h.must(PurgeDropped{Max: 10, Before: h.env.Wall})
	h.last.DroppedTables(func(d *DroppedObject) bool { t.Errorf("record %+v is left", d); return true })
}

// TestDropDatabase_Wide: the bound on replicas holds for all tables together.
func TestDropDatabase_Wide(t *testing.T) {
	h := newHistory(t)
	for i := range ServerID(3) {
		h.servers(i)
	}
	h.must(CreateDatabase{Name: "d"})
	for _, name := range []string{"d.a", "d.b", "d.c"} {
		c := ordersTable(name, 1000)
		c.Properties = []Property{replication(3)}
		h.must(c)
		for _, values := range [][]string{{"1", "2", "3", "4", "5"}, {"6", "7", "8", "9", "10"}} {
			h.create(name, values...)
		}
	}
	h.must(DropDatabase{Name: "d", Cascade: true})
	if n := h.last.Counts().Partitions; n != 10 {
		t.Errorf("%d partitions are left to purge, want the 10 of the third table", n)
	}
	h.must(PurgeDropped{Max: 4096})
	if n := h.last.Counts().Partitions; n != 0 {
		t.Errorf("%d partitions are left", n)
	}
}

// TestS52_DropDuringOutage: what is dropped while the leader of its buckets is
// down is told to it when it is back, and waited for until it has deleted its
// replicas or failed five times.
func TestS52_DropDuringOutage(t *testing.T) {
	h := placed(t, 3, "3", 2)
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p")})
	s, _ := h.bucket(partitionRef(h, "p", 0))
	table, part := h.table("d.t").ID, h.partition("d.t", "p").ID
	h.env.Lease = 10_000
	h.must(ExpireServers{Servers: []Expiry{lease(h, int(s.Leader))}})
	h.must(DropPartitions{Table: "d.t", Specs: dt("p")})
	waits := func(id ServerID) bool {
		d, ok := h.last.DroppedPartition(part)
		return ok && slices.ContainsFunc(d.Pending, func(p PendingDeletion) bool { return p.Server == id })
	}
	ack := AckDeletion{Server: s.Leader, Incarnation: h.incarnation(s.Leader), Objects: []DeletionAck{{Table: table, Partition: Some(part), Failed: true}}}
	h.refused(ErrSessionExpired, ack)
	h.env.Wall += Millis(30 * 24 * time.Hour / time.Millisecond)
	h.unchanged(PurgeDropped{Max: 10, Before: h.env.Wall}) // it is waited for, however long
	h.must(RegisterServer{ID: s.Leader, DirectoryID: dirOf(int(s.Leader)), Listeners: []string{"h:1"}, TTL: 10_000})
	ack.Incarnation++
	for i := range maxDeletionTries {
		if !waits(s.Leader) {
			t.Fatalf("server %d was given up after %d tries", s.Leader, i)
		}
		h.must(ack)
	}
	if waits(s.Leader) {
		t.Errorf("server %d is waited for after %d failed tries", s.Leader, maxDeletionTries)
	}
	for id := range ServerID(3) {
		if id != s.Leader && !waits(id) {
			t.Errorf("server %d is not waited for", id)
		}
	}
}

// BenchmarkDropWide drops a table of 1,000 partitions with 64 buckets on 3
// replicas; BenchmarkPurgeWide is one step of its purge.
func BenchmarkDropWide(b *testing.B) {
	s := wideTable(b)
	b.ResetTimer()
	for range b.N {
		s.Begin().Apply(s.Revision()+1, Envelope{}, DropTable{Table: "shop.orders"})
	}
}

// BenchmarkPurgeWide is one of the three steps in which its rows go.
func BenchmarkPurgeWide(b *testing.B) {
	s := wideTable(b)
	batch := s.Begin()
	batch.Apply(s.Revision()+1, Envelope{}, DropTable{Table: "shop.orders"})
	s = batch.Publish()
	b.ResetTimer()
	for range b.N {
		s.Begin().Apply(s.Revision()+1, Envelope{}, PurgeDropped{Max: 4096})
	}
}
