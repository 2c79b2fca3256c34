package catalog

import (
	"slices"
	"strings"
	"testing"
)

// broken returns a healthy state with everything an invariant speaks of, and a
// batch on it to break one thing by hand.
func broken(t *testing.T) (*State, *Batch) {
	t.Helper()
	h := newHistory(t)
	h.must(NewTerm{Term: 1, Leader: "n1"})
	h.must(ActivateIncarnation{ClusterID: "c", Incarnation: Incarnation{9, 9}})
	h.servers(1, 2, 3)
	h.must(CreateDatabase{Name: "shop"})
	c := ordersTable("shop.orders", 2)
	c.Properties = []Property{replication(2)}
	h.must(c)
	h.must(plainTable("shop.plain", 3))
	h.create("shop.orders", "p0")
	h.must(RescaleTable{Table: "shop.orders", Buckets: 4})
	h.create("shop.orders", "p1", "gone")
	h.must(DropPartitions{Table: "shop.orders", Specs: dt("gone")})
	h.must(ImportBatch{Import: importID, Last: true, Tables: []ImportTable{exported(5, "shop.legacy", 3)}, Partitions: []ImportPartition{legacyRow(5, 20, "l")}})
	h.must(RescaleTable{Table: "shop.legacy", Buckets: 6})
	h.must(PutKV{Key: "k", Value: []byte("v")})
	h.must(AllocateIDs{Counter: "n", Count: 3})
	id := h.client()
	h.as(id, 1, 0).must(PutKV{Key: "k2"})
	h.as(0, 0, 0)
	return h.last, h.last.Begin()
}

// edit replaces a partition by a changed copy, index and hash kept.
func editPartition(b *Batch, table, name string, change func(*Partition)) {
	t, _ := b.s.Table(table)
	p, _ := b.s.Partition(t.ID, name)
	n := *p
	if p.Placement != nil {
		n.Placement = &Placement{Replicas: slices.Clone(p.Placement.Replicas), Buckets: slices.Clone(p.Placement.Buckets)}
	}
	b.deletePartition(p)
	change(&n)
	b.putPartition(nil, &n)
}

func editTable(b *Batch, path string, change func(*Table)) {
	t, _ := b.s.Table(path)
	n := *t
	n.History = slices.Clone(t.History)
	change(&n)
	b.putTable(t, &n)
}

// TestCheck_NamesTheInvariant: each rule, broken by hand, is reported under its
// own number and no other.
func TestCheck_NamesTheInvariant(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		spoil func(b *Batch)
	}{
		"I1 legacy count at epoch 0": {"I1", func(b *Batch) {
			editTable(b, "shop.plain", func(t *Table) { t.LegacyCount = Some[int32](3) })
		}},
		"I2 assignment length": {"I2", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) { p.Placement.Replicas = p.Placement.Replicas[:3] })
		}},
		"I2 no replicas": {"I2", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) {
				p.Placement.Replicas[1], p.Placement.Buckets[1] = nil, BucketState{Leader: NoServer}
			})
		}},
		"I3 history end": {"I3", func(b *Batch) { editTable(b, "shop.legacy", func(t *Table) { t.Buckets = 7 }) }},
		"I3 partition from the future": {"I3", func(b *Batch) {
			editPartition(b, "shop.legacy", "l", func(p *Partition) { p.Epoch = 9 })
		}},
		"I4 count not in history": {"I4", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) { p.Epoch = 0 })
		}},
		"I5 no count, not legacy": {"I5", func(b *Batch) {
			editPartition(b, "shop.legacy", "l", func(p *Partition) { p.Legacy = false })
		}},
		"I5 count and legacy": {"I5", func(b *Batch) {
			editPartition(b, "shop.legacy", "l", func(p *Partition) { p.Buckets = 3 })
		}},
		"I6 table counter":     {"I6", func(b *Batch) { b.s.cluster.NextTable = 5 }},
		"I6 partition counter": {"I6", func(b *Batch) { b.s.cluster.NextPartition = 20 }},
		"I6 client counter":    {"I6", func(b *Batch) { b.s.cluster.NextClient = 1 }},
		"I6 id of a dropped partition": {"I6", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) { p.ID = 2 })
		}},
		"I7 table gone": {"I7", func(b *Batch) {
			t, _ := b.s.Table("shop.legacy")
			set, _ := b.s.parts.get(t.ID)
			b.deleteTable(t)
			b.s.parts.set(b.s.gen, t.ID, set)
		}},
		"I7 database gone": {"I7", func(b *Batch) {
			d, _ := b.s.Database("shop")
			b.deleteDatabase(d)
		}},
		"I8 leader not in ISR": {"I8", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) { p.Placement.Buckets[0].Leader = 77 })
		}},
		"I8 ISR outside the replicas": {"I8", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) {
				s := &p.Placement.Buckets[0]
				s.ISR = append(slices.Clone(s.ISR), 77)
			})
		}},
		"I8 ISR empty once set": {"I8", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) {
				p.Placement.Buckets[0].ISR, p.Placement.Buckets[0].Leader = nil, NoServer
			})
		}},
		"I9 coordinator epoch": {"I9", func(b *Batch) { b.s.cluster.Coordinator = -2 }},
		"I10 name index": {"I10", func(b *Batch) {
			t, _ := b.s.Table("shop.orders")
			set := b.partitions(t.ID)
			p, _ := set.byName.get("p1")
			set.byName.delete(b.s.gen, "p1")
			set.byName.set(b.s.gen, "p2", p)
		}},
		"I10 legacy counter": {"I10", func(b *Batch) {
			t, _ := b.s.Table("shop.legacy")
			b.partitions(t.ID).legacy = 0
		}},
		"I10 epoch counter": {"I10", func(b *Batch) {
			t, _ := b.s.Table("shop.orders")
			b.partitions(t.ID).perEpoch.set(b.s.gen, 0, 2)
		}},
		"I10 unassigned index": {"I10", func(b *Batch) {
			t, _ := b.s.Table("shop.legacy")
			b.partitions(t.ID).unplaced.delete(b.s.gen, 20)
		}},
		"I10 key of a row": {"I10", func(b *Batch) {
			v, _ := b.s.kv.get("k")
			b.s.kv.delete(b.s.gen, "k")
			b.s.kv.set(b.s.gen, "kk", v)
		}},
		"I10 client window": {"I10", func(b *Batch) {
			c, _ := b.s.clients.get(1)
			b.touch(c, Envelope{})
			c, _ = b.s.clients.get(1)
			b.s.hash -= c.hash
			c.Watermark = 1
			c.hash = b.hashClient(c)
			b.s.hash += c.hash
		}},
		"I11 sum": {"I11", func(b *Batch) { b.s.hash++ }},
		"I11 row": {"I11", func(b *Batch) {
			v, _ := b.s.kv.get("k")
			n := *v
			n.Value = []byte("w")
			b.s.kv.set(b.s.gen, "k", &n)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			healthy, b := broken(t)
			if err := healthy.Check(); err != nil {
				t.Fatalf("before: %v", err)
			}
			c.spoil(b)
			expectOnly(t, c.want, b.Publish().Check())
		})
	}
}

// expectOnly wants at least one violation, all of one invariant.
func expectOnly(t *testing.T, want string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("nothing is reported, want %s", want)
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !strings.HasPrefix(line, want+":") {
			t.Errorf("want only %s, got %q", want, line)
		}
	}
}

// TestCheckStep_NamesTheInvariant does the same for the rules about two states.
func TestCheckStep_NamesTheInvariant(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		spoil func(b *Batch)
	}{
		"I1 own count": {"I1", func(b *Batch) {
			editPartition(b, "shop.orders", "p1", func(p *Partition) { p.Buckets = 2 })
		}},
		"I1 legacy count lost at a rescale": {"I1", func(b *Batch) {
			editTable(b, "shop.legacy", func(t *Table) { t.Epoch, t.Buckets, t.LegacyCount = 2, 8, Some[int32](6) })
		}},
		"I3 count without epoch": {"I3", func(b *Batch) { editTable(b, "shop.orders", func(t *Table) { t.Buckets = 9 }) }},
		"I3 epoch by two": {"I3", func(b *Batch) {
			editTable(b, "shop.orders", func(t *Table) { t.Epoch, t.Buckets = 3, 9 })
		}},
		"I3 epoch back":          {"I3", func(b *Batch) { editTable(b, "shop.orders", func(t *Table) { t.Epoch, t.Buckets = 0, 2 }) }},
		"I3 epoch without count": {"I3", func(b *Batch) { editTable(b, "shop.orders", func(t *Table) { t.Epoch = 2 }) }},
		"I6 counter back":        {"I6", func(b *Batch) { b.s.cluster.NextPartition-- }},
		"I6 named counter back": {"I6", func(b *Batch) {
			c, _ := b.s.Counter("n")
			b.putCounter(c, &Counter{Name: "n", Next: 2})
		}},
		"I6 partition id again": {"I6", func(b *Batch) {
			b.putPartition(nil, &Partition{ID: 2, Table: 0, Name: "again", Buckets: 4, Epoch: 1})
		}},
		"I6 table id again": {"I6", func(b *Batch) {
			b.putTable(nil, &Table{ID: 2, Path: "shop.x", Buckets: 1, Schemas: []Schema{{}}})
		}},
		"I9 epoch without a term":  {"I9", func(b *Batch) { b.s.cluster.Coordinator++ }},
		"I9 term without an epoch": {"I9", func(b *Batch) { b.s.cluster.Term++ }},
		"I9 epoch by two": {"I9", func(b *Batch) {
			b.s.cluster.Term++
			b.s.cluster.Coordinator += 2
		}},
		"I9 clock back": {"I9", func(b *Batch) { b.s.cluster.Wall-- }},
	} {
		t.Run(name, func(t *testing.T) {
			healthy, b := broken(t)
			if err := CheckStep(healthy, healthy); err != nil {
				t.Fatalf("before: %v", err)
			}
			c.spoil(b)
			expectOnly(t, c.want, CheckStep(healthy, b.Publish()))
		})
	}
}

// TestEffectiveCount_NeverGuesses: a partition without count and mark, or a
// legacy one of a rescaled table without legacy count, has none.
func TestEffectiveCount_NeverGuesses(t *testing.T) {
	for _, c := range []struct {
		name string
		t    Table
		p    Partition
		want int32
	}{
		{"own count", Table{Buckets: 4, Epoch: 3, LegacyCount: Some[int32](2)}, Partition{Buckets: 7}, 7},
		{"legacy at epoch 0", Table{Buckets: 4}, Partition{Legacy: true}, 4},
		{"legacy with legacy count", Table{Buckets: 8, Epoch: 2, LegacyCount: Some[int32](4)}, Partition{Legacy: true}, 4},
		{"legacy without legacy count", Table{Buckets: 8, Epoch: 1}, Partition{Legacy: true}, 0},
		{"neither, epoch 0", Table{Buckets: 8}, Partition{}, 0},
		{"neither, epoch 1", Table{Buckets: 8, Epoch: 1, LegacyCount: Some[int32](4)}, Partition{}, 0},
	} {
		got, err := EffectiveCount(&c.t, &c.p)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "STALE_METADATA") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
