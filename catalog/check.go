package catalog

import (
	"errors"
	"fmt"
	"slices"
)

// Check verifies every invariant listed in the package doc by a full scan and
// returns all violations it finds, up to a hundred, joined. It reads only.
func (s *State) Check() error {
	c := checker{s: s, b: &Batch{}}
	c.cluster()
	c.tables()
	c.partitionSets()
	c.partitions()
	c.rows()
	if want := c.hash; want != s.hash {
		c.failf("I11: rolling hash %016x differs from the scan's %016x", s.hash, want)
	}
	return errors.Join(c.errs...)
}

type checker struct {
	s       *State
	b       *Batch // for its hash buffer
	hash    uint64
	errs    []error
	placed  int // partitions with a placement
	tablesN int
}

const maxViolations = 100

func (c *checker) failf(format string, args ...any) {
	if len(c.errs) < maxViolations {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *checker) cluster() {
	cl := &c.s.cluster
	if cl.Coordinator < NoCoordinator {
		c.failf("I9: coordinator epoch %d is below %d", cl.Coordinator, NoCoordinator)
	}
	if cl.Lease < 0 || cl.Wall < 0 {
		c.failf("I10: clocks %d and %d must not be negative", cl.Lease, cl.Wall)
	}
}

func (c *checker) row(what string, cached, scanned uint64) {
	c.hash += scanned
	if cached != scanned {
		c.failf("I11: row hash of %s is %016x, scanned %016x", what, cached, scanned)
	}
}

func (c *checker) tables() {
	s := c.s
	s.tableIDs.all(func(id TableID, t *Table) bool {
		c.table(id, t)
		return true
	})
	if n := s.tables.len(); n != c.tablesN {
		c.failf("I10: %d table names for %d tables that are not dropped", n, c.tablesN)
	}
	s.unplacedTables.all(func(id TableID, _ struct{}) bool {
		if t, ok := s.tableIDs.get(id); !ok || t.Partitioned() || t.Placement != nil || t.Dropped {
			c.failf("I10: table %d is listed as unassigned and is not", id)
		}
		return true
	})
}

func (c *checker) table(id TableID, t *Table) {
	s := c.s
	c.row("table "+t.Path, t.hash, c.b.hashTable(t))
	if t.ID != id {
		c.failf("I10: table %s with id %d is indexed under %d", t.Path, t.ID, id)
	}
	if id >= s.cluster.NextTable {
		c.failf("I6: table %s has id %d, the counter is at %d", t.Path, id, s.cluster.NextTable)
	}
	if !t.Dropped {
		c.tablesN++
		if n, ok := s.tables.get(t.Path); !ok || n != t {
			c.failf("I10: table %s is not found by its name", t.Path)
		}
		if !s.databases.has(t.Database()) {
			c.failf("I7: database of table %s does not exist", t.Path)
		}
	}
	if n := len(t.History); n == 0 || t.History[n-1].Epoch != t.Epoch || t.History[n-1].Buckets != t.Buckets {
		c.failf("I3: layout history of table %s does not end at epoch %d with %d buckets", t.Path, t.Epoch, t.Buckets)
	}
	for i := 1; i < len(t.History); i++ {
		if t.History[i].Epoch <= t.History[i-1].Epoch {
			c.failf("I3: layout history of table %s falls from epoch %d to %d", t.Path, t.History[i-1].Epoch, t.History[i].Epoch)
		}
	}
	if t.LegacyCount.Set && t.Epoch == 0 {
		c.failf("I1: table %s at layout epoch 0 has legacy count %d", t.Path, t.LegacyCount.V)
	}
	if t.Partitioned() && t.Placement != nil {
		c.failf("I2: partitioned table %s has a placement of its own", t.Path)
	}
	if !t.Partitioned() && !t.Dropped && t.Placement == nil && !s.unplacedTables.has(id) {
		c.failf("I10: unassigned table %s is not listed", t.Path)
	}
	c.placement("table "+t.Path, t.Placement, int(t.Buckets))
}

func (c *checker) partitionSets() {
	s := c.s
	named := 0
	s.parts.all(func(id TableID, set *partitionSet) bool {
		if !s.tableIDs.has(id) {
			c.failf("I7: partitions of table %d, which does not exist", id)
		}
		legacy, epochs := 0, map[Epoch]int{}
		set.byName.all(func(name string, p *Partition) bool {
			named++
			if q, ok := s.partIDs.get(p.ID); !ok || q != p || p.Name != name || p.Table != id {
				c.failf("I10: partition '%s' of table %d is not found by its id %d", name, id, p.ID)
			}
			if p.Legacy {
				legacy++
			}
			epochs[p.Epoch]++
			return true
		})
		if legacy != set.legacy {
			c.failf("I10: table %d counts %d legacy partitions and has %d", id, set.legacy, legacy)
		}
		n := 0
		set.perEpoch.all(func(e Epoch, k int) bool {
			n++
			if epochs[e] != k {
				c.failf("I10: table %d counts %d partitions of epoch %d and has %d", id, k, e, epochs[e])
			}
			return true
		})
		if n != len(epochs) {
			c.failf("I10: table %d counts %d epochs with partitions and has %d", id, n, len(epochs))
		}
		return true
	})
	if n := s.partIDs.len(); n != named {
		c.failf("I10: %d partition ids for %d partition names", n, named)
	}
}

func (c *checker) partitions() {
	s := c.s
	s.partIDs.all(func(id PartitionID, p *Partition) bool {
		c.partition(id, p)
		return true
	})
	if n := s.unplacedParts.len(); n+c.placed != s.partIDs.len() {
		c.failf("I10: %d unassigned and %d assigned partitions are listed of %d", n, c.placed, s.partIDs.len())
	}
}

func (c *checker) partition(id PartitionID, p *Partition) {
	s := c.s
	c.row("partition "+p.Name, p.hash, c.b.hashPartition(p))
	if id != p.ID || id >= s.cluster.NextPartition {
		c.failf("I6: partition '%s' has id %d under %d, the counter is at %d", p.Name, p.ID, id, s.cluster.NextPartition)
	}
	if (p.Buckets == 0) != p.Legacy || p.Buckets < 0 || p.Legacy && !p.Imported {
		c.failf("I5: partition %d has %d buckets and legacy mark %v", id, p.Buckets, p.Legacy)
	}
	t, ok := s.tableIDs.get(p.Table)
	if !ok {
		c.failf("I7: table %d of partition %d does not exist", p.Table, id)
		return
	}
	if p.Epoch > t.Epoch {
		c.failf("I3: partition %d has layout epoch %d, table %s is at %d", id, p.Epoch, t.Path, t.Epoch)
	}
	if !p.Imported && !inHistory(t, p) {
		c.failf("I4: partition %d has (epoch %d, %d buckets), which table %s never had", id, p.Epoch, p.Buckets, t.Path)
	}
	if p.Placement == nil {
		if !s.unplacedParts.has(id) {
			c.failf("I10: unassigned partition %d is not listed", id)
		}
		return
	}
	c.placed++
	count, err := EffectiveCount(t, p)
	if err != nil {
		c.failf("I2: placed partition %d: %w", id, err)
		return
	}
	c.placement("partition "+itoa(int64(id)), p.Placement, int(count))
}

// inHistory reports whether the table once had the partition's layout.
func inHistory(t *Table, p *Partition) bool {
	i, ok := slices.BinarySearchFunc(t.History, p.Epoch, func(e LayoutEntry, epoch Epoch) int {
		switch {
		case e.Epoch < epoch:
			return -1
		case e.Epoch > epoch:
			return 1
		}
		return 0
	})
	return ok && t.History[i].Buckets == p.Buckets
}

func (c *checker) placement(what string, p *Placement, count int) {
	if p == nil {
		return
	}
	if len(p.Replicas) != count || len(p.Buckets) != count {
		c.failf("I2: %s has %d buckets, %d replica lists and %d bucket states", what, count, len(p.Replicas), len(p.Buckets))
		return
	}
	for i := range p.Buckets {
		b, replicas := &p.Buckets[i], p.Replicas[i]
		if len(replicas) == 0 {
			c.failf("I2: bucket %d of %s has no replicas", i, what)
		}
		if b.Ready && len(b.ISR) == 0 || !b.Ready && (len(b.ISR) > 0 || b.Leader != NoServer) {
			c.failf("I8: bucket %d of %s: ready %v with leader %d and ISR %v", i, what, b.Ready, b.Leader, b.ISR)
		}
		if b.Leader != NoServer && !slices.Contains(b.ISR, b.Leader) {
			c.failf("I8: leader %d of bucket %d of %s is not in ISR %v", b.Leader, i, what, b.ISR)
		}
		for _, id := range b.ISR {
			if !slices.Contains(replicas, id) {
				c.failf("I8: ISR member %d of bucket %d of %s is not in %v", id, i, what, replicas)
			}
		}
	}
}

// rows scans what no other rule looks at, for the hash and the indexes.
func (c *checker) rows() {
	s, b := c.s, c.b
	s.databases.all(func(n string, d *Database) bool {
		c.row("database "+n, d.hash, b.hashDatabase(d))
		return true
	})
	s.servers.all(func(id ServerID, v *Server) bool {
		c.row("server "+itoa(int64(id)), v.hash, b.hashServer(v))
		return true
	})
	s.members.all(func(id string, m *Member) bool {
		c.row("member "+id, m.hash, b.hashMember(m))
		return true
	})
	s.kv.all(func(k string, v *KeyValue) bool {
		c.row("key "+k, v.hash, b.hashKeyValue(v))
		return true
	})
	s.counters.all(func(n string, v *Counter) bool {
		c.row("counter "+n, v.hash, b.hashCounter(v))
		return true
	})
	s.imports.all(func(n string, i *Import) bool {
		c.row("import "+n, i.hash, b.hashImport(i))
		return true
	})
	s.DroppedTables(func(d *DroppedObject) bool {
		c.row("dropped table "+d.Path, d.hash, b.hashDropped(d))
		return true
	})
	s.DroppedPartitions(0, func(d *DroppedObject) bool {
		c.row("dropped partition "+d.Name, d.hash, b.hashDropped(d))
		return true
	})
	if s.rebal != nil {
		c.row("rebalance "+s.rebal.ID, s.rebal.hash, b.hashRebalance(s.rebal))
	}
	c.clients()
}

func (c *checker) clients() {
	s := c.s
	s.clients.all(func(id ClientID, v *Client) bool {
		c.row("client "+utoa(uint64(id)), v.hash, c.b.hashClient(v))
		if id != v.ID || id == 0 || id >= s.cluster.NextClient {
			c.failf("I6: client %d is indexed under %d, the counter is at %d", v.ID, id, s.cluster.NextClient)
		}
		v.results.all(func(seq uint64, r Result) bool {
			c.hash += c.b.hashResult(id, seq, &r)
			if seq <= v.Watermark || seq > v.Watermark+ClientWindow {
				c.failf("I10: client %d keeps the result of sequence %d, its watermark is %d", id, seq, v.Watermark)
			}
			return true
		})
		return true
	})
}

// CheckStep verifies the invariants that speak of two states, before and after
// a command: I1, I3, I6 and I9. Both states must be of one history.
func CheckStep(before, after *State) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	a, b := &before.cluster, &after.cluster
	if b.NextTable < a.NextTable || b.NextPartition < a.NextPartition || b.NextClient < a.NextClient {
		fail("I6: a counter fell: %d %d %d to %d %d %d", a.NextTable, a.NextPartition, a.NextClient, b.NextTable, b.NextPartition, b.NextClient)
	}
	if a.Incarnation == b.Incarnation {
		if d := b.Coordinator - a.Coordinator; d < 0 || b.Term == a.Term && d != 0 || b.Term > a.Term && d < 1 {
			fail("I9: coordinator epoch went from %d to %d between terms %d and %d", a.Coordinator, b.Coordinator, a.Term, b.Term)
		}
	}
	if after.revision < before.revision || b.Lease < a.Lease || b.Wall < a.Wall {
		fail("I9: revision or a clock fell: %d %d %d to %d %d %d", before.revision, a.Lease, a.Wall, after.revision, b.Lease, b.Wall)
	}
	before.tableIDs.all(func(id TableID, t *Table) bool {
		if n, ok := after.tableIDs.get(id); ok && (n.Epoch < t.Epoch || n.Epoch == t.Epoch && n.Buckets != t.Buckets || n.Epoch > t.Epoch+1) {
			fail("I3: table %s went from epoch %d with %d buckets to %d with %d", t.Path, t.Epoch, t.Buckets, n.Epoch, n.Buckets)
		}
		return true
	})
	before.partIDs.all(func(id PartitionID, p *Partition) bool {
		q, ok := after.partIDs.get(id)
		if !ok || q == p && !p.Legacy {
			return true
		}
		t, _ := before.tableIDs.get(p.Table)
		u, _ := after.tableIDs.get(q.Table)
		was, err1 := EffectiveCount(t, p)
		is, err2 := EffectiveCount(u, q)
		if q.Table != p.Table || q.Name != p.Name || was != is || (err1 == nil) != (err2 == nil) {
			fail("I1: partition %d '%s' went from %d to %d buckets", id, p.Name, was, is)
		}
		return true
	})
	return errors.Join(errs...)
}
