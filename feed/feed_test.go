package feed

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/catalog"
)

// knowledge is what a server knows after some steps.
type knowledge struct {
	Epochs    map[catalog.TableID]catalog.Epoch
	Buckets   map[string]Activation
	Deletions map[string]bool
}

func newKnowledge() *knowledge {
	return &knowledge{map[catalog.TableID]catalog.Epoch{}, map[string]Activation{}, map[string]bool{}}
}

func (k *knowledge) take(t *testing.T, s Step) {
	t.Helper()
	if s.Snapshot {
		*k = *newKnowledge()
	}
	for _, e := range s.Epochs {
		k.Epochs[e.Table] = e.Epoch
	}
	for _, d := range s.Deletions {
		k.Deletions[fmt.Sprint(d)] = true
		for key, a := range k.Buckets {
			if a.Bucket.Table == d.Table && (!d.Partition.Set || a.Bucket.Partition == d.Partition) && (!d.Bucket.Set || a.Bucket.Bucket == d.Bucket.V) {
				delete(k.Buckets, key)
			}
		}
	}
	for _, r := range s.Removed {
		delete(k.Buckets, fmt.Sprint(r))
	}
	for _, a := range s.Activations {
		if _, ok := k.Epochs[a.Bucket.Table]; !ok {
			t.Fatalf("activation of %v before the epoch of its table", a.Bucket)
		}
		if a.Count < 1 {
			t.Fatalf("activation of %v has count %d", a.Bucket, a.Count)
		}
		k.Buckets[fmt.Sprint(a.Bucket)] = a
	}
}

// forget drops the epochs of tables that the server holds nothing of: they may
// be known or not.
func (k *knowledge) forget() {
	held := map[catalog.TableID]bool{}
	for _, a := range k.Buckets {
		held[a.Bucket.Table] = true
	}
	for id := range k.Epochs {
		if !held[id] {
			delete(k.Epochs, id)
		}
	}
}

// After the steps up to a revision a server knows what a snapshot at that
// revision tells, over random histories of placement, rescale, loss and drop.
func TestFeed_EqualsSnapshot(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomFeed(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func randomFeed(t *testing.T, r *rand.Rand) {
	b := catalog.NewState().Begin()
	rev := catalog.Revision(0)
	lease := catalog.Millis(0)
	f := New(1)
	known := newKnowledge()
	known.take(t, f.Snapshot(b.Publish()))
	do := func(c catalog.Command) {
		rev++
		lease += 1000
		_, ev := b.Apply(rev, catalog.Envelope{Lease: lease, Wall: 1}, c)
		st := b.Publish()
		if ev != nil {
			if step, ok := f.Event(ev, st); ok {
				known.take(t, step)
			}
		}
		want := newKnowledge()
		want.take(t, New(1).Snapshot(st))
		known.forget()
		want.forget()
		for d := range known.Deletions { // an acknowledged or superseded deletion may stay known
			if !want.Deletions[d] {
				delete(known.Deletions, d)
			}
		}
		if diff := cmp.Diff(want, known); diff != "" {
			t.Fatalf("after %s %+v at %d (-snapshot +feed):\n%s", c.Kind(), c, rev, diff)
		}
	}
	for i := range catalog.ServerID(4) {
		do(catalog.RegisterServer{ID: i, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 5000})
	}
	do(catalog.CreateDatabase{Name: "d"})
	for range 150 {
		do(randomCommand(r, b.View()))
	}
}

func randomCommand(r *rand.Rand, st *catalog.State) catalog.Command {
	table := fmt.Sprintf("d.t%d", r.IntN(2))
	spec := []catalog.PartitionSpec{{{Key: "dt", Value: fmt.Sprint("p", r.IntN(3))}}}
	id := catalog.ServerID(r.IntN(4))
	switch r.IntN(13) {
	case 0:
		return catalog.CreateTable{
			Table: table, Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}}, PartitionKeys: []string{"dt"},
			Buckets: catalog.Some(int32(1 + r.IntN(3))), Properties: []catalog.Property{{Key: catalog.PropReplication, Value: "2"}},
		}
	case 1:
		return catalog.CreateTable{Table: "d.plain", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}}, Buckets: catalog.Some[int32](3)}
	case 2:
		return catalog.RescaleTable{Table: table, Buckets: int32(1 + r.IntN(4))}
	case 3, 4:
		return catalog.CreatePartitions{Table: table, Specs: spec}
	case 5:
		return catalog.DropPartitions{Table: table, Specs: spec}
	case 6:
		return catalog.DropTable{Table: []string{table, "d.plain"}[r.IntN(2)]}
	case 9, 10:
		if ref, ok := someBucket(r, st); ok {
			return catalog.Reassign{Moves: []catalog.Move{{Bucket: ref, To: []catalog.ServerID{id, (id + 1) % 4}[:1+r.IntN(2)]}}}
		}
		return catalog.CancelRebalance{}
	case 11:
		ref, _ := someBucket(r, st)
		s, replicas, _ := st.Bucket(ref)
		c := catalog.AdjustISR{Server: s.Leader, Changes: []catalog.ISRChange{
			{Bucket: ref, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, ISR: replicas},
		}}
		if v, ok := st.Server(s.Leader); ok {
			c.Incarnation = v.Incarnation
		}
		return c
	case 12:
		c := catalog.AckDeletion{Server: id}
		if v, ok := st.Server(id); ok {
			c.Incarnation = v.Incarnation
		}
		st.DroppedBuckets(func(d *catalog.DroppedObject) bool {
			c.Objects = append(c.Objects, catalog.DeletionAck{Table: d.Table, Partition: d.Partition, Bucket: d.Bucket})
			return true
		})
		return c
	case 7:
		return catalog.RegisterServer{ID: id, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 5000}
	default:
		v, _ := st.Server(id)
		return catalog.ExpireServers{Servers: []catalog.Expiry{{ID: id, Incarnation: v.Incarnation, RenewedAt: v.RenewedAt}}}
	}
}

// someBucket is a bucket that has replicas.
func someBucket(r *rand.Rand, st *catalog.State) (ref catalog.BucketRef, ok bool) {
	add := func(t catalog.TableID, p catalog.Opt[catalog.PartitionID], placed *catalog.Placement) {
		if placed != nil && (!ok || r.IntN(2) == 0) {
			ref, ok = catalog.BucketRef{Table: t, Partition: p, Bucket: catalog.BucketID(r.IntN(len(placed.Buckets)))}, true
		}
	}
	st.Tables("", func(t *catalog.Table) bool {
		add(t.ID, catalog.Opt[catalog.PartitionID]{}, t.Placement)
		st.Partitions(t.ID, "", func(p *catalog.Partition) bool {
			add(t.ID, catalog.Some(p.ID), p.Placement)
			return true
		})
		return true
	})
	return ref, ok
}

// A server that resumes behind any revision ends up knowing what a snapshot
// tells.
func TestFeed_Resume(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 9))
	b := catalog.NewState().Begin()
	var events []*catalog.Event
	var states []*catalog.State
	do := func(c catalog.Command) {
		rev := catalog.Revision(len(states) + 1)
		_, ev := b.Apply(rev, catalog.Envelope{Lease: catalog.Millis(rev) * 1000, Wall: 1}, c)
		events, states = append(events, ev), append(states, b.Publish())
	}
	for i := range catalog.ServerID(4) {
		do(catalog.RegisterServer{ID: i, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 5000})
	}
	do(catalog.CreateDatabase{Name: "d"})
	for range 80 {
		do(randomCommand(r, b.View()))
	}
	last := states[len(states)-1]
	want := newKnowledge()
	want.take(t, New(1).Snapshot(last))
	want.forget()
	for from := range states {
		known := newKnowledge()
		known.take(t, New(1).Snapshot(states[from]))
		f := New(1)
		f.Resume()
		for _, ev := range events[from+1:] {
			if ev == nil {
				continue
			}
			if step, ok := f.Event(ev, last); ok {
				known.take(t, step)
			}
		}
		known.forget()
		known.Deletions = want.Deletions
		if diff := cmp.Diff(want, known); diff != "" {
			t.Fatalf("resumed behind %d (-snapshot +feed):\n%s", from+1, diff)
		}
	}
}
