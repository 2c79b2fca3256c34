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
	if cl.NextClient < 1 {
		c.failf("I6: the client counter is at 0, client ids begin at 1")
	}
	if cl.Lease < 0 || cl.Wall < 0 {
		c.failf("I10: clocks %d and %d must not be negative", cl.Lease, cl.Wall)
	}
}

// row adds a row's scanned hash; kind and key name it in a violation.
func (c *checker) row(kind ObjectKind, key any, cached, scanned uint64) {
	c.hash += scanned
	if cached != scanned {
		c.failf("I11: row hash of %s %v is %016x, scanned %016x", kind, key, cached, scanned)
	}
}

// sum scans the buckets of a placement; what the row remembers must agree.
func (c *checker) sum(kind ObjectKind, id any, cached placementSum, p *Placement) placementSum {
	scanned := c.b.sumOf(p)
	if cached != scanned {
		c.failf("I11: the buckets of %s %v have the sum %016x, scanned %016x", kind, id, cached.hash, scanned.hash)
	}
	return scanned
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
	s.purging.all(func(id TableID, _ struct{}) bool {
		if t, ok := s.tableIDs.get(id); !ok || !t.Dropped {
			c.failf("I10: table %d is listed as dropped and is not", id)
		}
		return true
	})
}

func (c *checker) table(id TableID, t *Table) {
	s := c.s
	plain := *t
	plain.sum = c.sum(ObjectTable, id, t.sum, t.Placement)
	c.row(ObjectTable, id, t.hash, c.b.hashTable(&plain))
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
	if t.Dropped && !s.purging.has(id) {
		c.failf("I10: dropped table %s is not listed", t.Path)
	}
	if d, ok := s.droppedTables.get(id); ok != t.Dropped || ok && d.Path != t.Path {
		c.failf("I6: id %d of table %s (dropped: %v) has a drop record: %v", id, t.Path, t.Dropped, ok)
	}
	if t.Importing() {
		if i, ok := s.imports.get(t.Import.String()); !ok || !slices.Contains(i.Tables, id) {
			c.failf("I10: import %s of table %s does not list it", t.Import, t.Path)
		}
	}
	if !t.Partitioned() && t.Epoch != 0 {
		c.failf("I3: table %s is not partitioned and is at layout epoch %d", t.Path, t.Epoch)
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
	c.placement(ObjectTable, uint64(id), t.Placement, int(t.Buckets))
}

func (c *checker) partitionSets() {
	s := c.s
	named, pending, sets := 0, 0, 0
	s.parts.all(func(id TableID, set *partitionSet) bool {
		if !s.tableIDs.has(id) {
			c.failf("I7: partitions of table %d, which does not exist", id)
		}
		legacy, unplaced, epochs := 0, 0, map[Epoch]int{}
		set.byName.all(func(name string, p *Partition) bool {
			named++
			if q, ok := s.partIDs.get(p.ID); !ok || q != p || p.Name != name || p.Table != id {
				c.failf("I10: partition '%s' of table %d is not found by its id %d", name, id, p.ID)
			}
			if p.Legacy {
				legacy++
			}
			if p.Placement == nil {
				unplaced++
				if !set.unplaced.has(p.ID) {
					c.failf("I10: unassigned partition %d is not listed", p.ID)
				}
			}
			epochs[p.Epoch]++
			return true
		})
		pending += unplaced
		if unplaced > 0 {
			sets++
		}
		if n := set.unplaced.len(); n != unplaced || s.unplacedSets.has(id) != (unplaced > 0) {
			c.failf("I10: table %d lists %d unassigned partitions and has %d", id, n, unplaced)
		}
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
	if s.unplacedParts != pending || s.unplacedSets.len() != sets {
		c.failf("I10: %d unassigned partitions of %d tables are counted, there are %d of %d", s.unplacedParts, s.unplacedSets.len(), pending, sets)
	}
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
}

func (c *checker) partition(id PartitionID, p *Partition) {
	s := c.s
	plain := *p
	plain.sum = c.sum(ObjectPartition, id, p.sum, p.Placement)
	h := c.b.hashPartition(&plain)
	c.hash += h
	if h != p.hash {
		c.failf("I11: row hash of partition %d is %016x, scanned %016x", id, p.hash, h)
	}
	if id != p.ID || id >= s.cluster.NextPartition {
		c.failf("I6: partition '%s' has id %d under %d, the counter is at %d", p.Name, p.ID, id, s.cluster.NextPartition)
	}
	if (p.Buckets == 0) != p.Legacy || p.Buckets < 0 || p.Legacy && !p.Imported {
		c.failf("I5: partition %d has %d buckets and legacy mark %v", id, p.Buckets, p.Legacy)
	}
	if s.droppedParts.has(id) {
		c.failf("I6: id %d of partition '%s' has a drop record", id, p.Name)
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
		return
	}
	count, err := EffectiveCount(t, p)
	if err != nil {
		c.failf("I2: placed partition %d: %w", id, err)
		return
	}
	c.placement(ObjectPartition, uint64(id), p.Placement, int(count))
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
