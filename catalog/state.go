package catalog

import "strings"

// State is everything the cluster knows, at one revision. It is immutable: any
// number of goroutines may read it and keep it. The rows it returns must not be
// changed by the caller.
type State struct {
	gen      uint64
	revision Revision
	cluster  Cluster
	rebal    *Rebalance
	hash     uint64 // sum over all rows but the cluster's

	databases tree[string, *Database]
	tables    tree[string, *Table] // by path, dropped ones excluded
	tableIDs  tree[TableID, *Table]
	parts     tree[TableID, *partitionSet]
	partIDs   tree[PartitionID, *Partition]
	servers   tree[ServerID, *Server]
	clients   tree[ClientID, *Client]
	kv        tree[string, *KeyValue]
	counters  tree[string, *Counter]
	members   tree[string, *Member]
	imports   tree[string, *Import]

	droppedTables tree[TableID, *DroppedObject]
	droppedParts  tree[PartitionID, *DroppedObject]
	// droppedBuckets are the records of replicas that were moved away.
	droppedBuckets tree[string, *DroppedObject]

	// Derived, checked by Check: tables without partition keys that have no
	// placement, tables that have partitions without one, how many those are,
	// and dropped tables that still have partitions.
	unplacedTables tree[TableID, struct{}]
	unplacedSets   tree[TableID, struct{}]
	unplacedParts  int
	purging        tree[TableID, struct{}]
}

// partitionSet are the partitions of one table.
type partitionSet struct {
	gen    uint64
	byName tree[string, *Partition]
	// legacy counts those without a count of their own, perEpoch those created
	// at each layout epoch.
	legacy   int
	perEpoch tree[Epoch, int]
	unplaced tree[PartitionID, struct{}]
}

// NewState returns the empty state at revision 0: no incarnation, no leader.
func NewState() *State {
	return &State{cluster: Cluster{Coordinator: NoCoordinator, NextClient: 1}}
}

// Revision returns the raft index of the last entry in the state.
func (s *State) Revision() Revision { return s.revision }

// Incarnation returns the history the state belongs to.
func (s *State) Incarnation() Incarnation { return s.cluster.Incarnation }

// Cluster returns the cluster-wide row.
func (s *State) Cluster() Cluster { return s.cluster }

// Limits returns the limits that hold in a database: its own, else the
// cluster's, else the defaults. An unknown or empty name gives the cluster's.
func (s *State) Limits(database string) Limits {
	l := mergeLimits(DefaultLimits, s.cluster.Limits)
	if d, ok := s.databases.get(database); ok {
		l = mergeLimits(l, d.Limits)
	}
	return l
}

func mergeLimits(base, over Limits) Limits {
	if over.Buckets != 0 {
		base.Buckets = over.Buckets
	}
	if over.Partitions != 0 {
		base.Partitions = over.Partitions
	}
	if over.Replicas != 0 {
		base.Replicas = over.Replicas
	}
	return base
}

// Database returns a database by name.
func (s *State) Database(name string) (*Database, bool) { return s.databases.get(name) }

// Databases calls f in name order until it says false.
func (s *State) Databases(f func(*Database) bool) {
	s.databases.all(func(_ string, d *Database) bool { return f(d) })
}

// Table returns a table by path, "database.table".
func (s *State) Table(path string) (*Table, bool) { return s.tables.get(path) }

// TableByID returns a table by id, also one whose partitions are being purged.
func (s *State) TableByID(id TableID) (*Table, bool) { return s.tableIDs.get(id) }

// Tables calls f in path order for the tables of a database, or of all if the
// name is empty, until it says false.
func (s *State) Tables(database string, f func(*Table) bool) {
	if database == "" {
		s.tables.all(func(_ string, t *Table) bool { return f(t) })
		return
	}
	prefix := database + "."
	s.tables.ascend(prefix, func(p string, t *Table) bool { return strings.HasPrefix(p, prefix) && f(t) })
}

// TablesByID calls f in id order, dropped tables included, until it says false.
func (s *State) TablesByID(f func(*Table) bool) {
	s.tableIDs.all(func(_ TableID, t *Table) bool { return f(t) })
}

// Partition returns a partition of a table by name. It allocates nothing.
func (s *State) Partition(table TableID, name string) (*Partition, bool) {
	set, ok := s.parts.get(table)
	if !ok {
		return nil, false
	}
	return set.byName.get(name)
}

// PartitionByID returns a partition by id.
func (s *State) PartitionByID(id PartitionID) (*Partition, bool) { return s.partIDs.get(id) }

// Partitions calls f in name order for the partitions of a table, from the
// first name >= from, until it says false.
func (s *State) Partitions(table TableID, from string, f func(*Partition) bool) {
	if set, ok := s.parts.get(table); ok {
		set.byName.ascend(from, func(_ string, p *Partition) bool { return f(p) })
	}
}

// PartitionsByID calls f in id order, from the first id >= from, until it says
// false.
func (s *State) PartitionsByID(from PartitionID, f func(*Partition) bool) {
	s.partIDs.ascend(from, func(_ PartitionID, p *Partition) bool { return f(p) })
}

// PartitionCount returns how many partitions a table has.
func (s *State) PartitionCount(table TableID) int {
	if set, ok := s.parts.get(table); ok {
		return set.byName.len()
	}
	return 0
}

// LegacyCount returns how many partitions of a table have no count of their own.
func (s *State) LegacyCount(table TableID) int {
	if set, ok := s.parts.get(table); ok {
		return set.legacy
	}
	return 0
}

// Server returns a tablet server's record.
func (s *State) Server(id ServerID) (*Server, bool) { return s.servers.get(id) }

// Servers calls f in id order until it says false.
func (s *State) Servers(f func(*Server) bool) {
	s.servers.all(func(_ ServerID, v *Server) bool { return f(v) })
}

// Member returns what a node announced.
func (s *State) Member(id string) (*Member, bool) { return s.members.get(id) }

// Members calls f in id order until it says false.
func (s *State) Members(f func(*Member) bool) {
	s.members.all(func(_ string, m *Member) bool { return f(m) })
}

// Client returns a client record.
func (s *State) Client(id ClientID) (*Client, bool) { return s.clients.get(id) }

// Clients calls f in id order until it says false.
func (s *State) Clients(f func(*Client) bool) {
	s.clients.all(func(_ ClientID, c *Client) bool { return f(c) })
}

// Results calls f for a client's stored results in order of sequence.
func (c *Client) Results(f func(uint64, Result) bool) {
	c.results.all(func(seq uint64, r *storedResult) bool { return f(seq, r.Result) })
}

// KeyValue returns a row of the generic group.
func (s *State) KeyValue(key string) (*KeyValue, bool) { return s.kv.get(key) }

// KeyValues calls f in key order from the first key >= from until it says false.
func (s *State) KeyValues(from string, f func(*KeyValue) bool) {
	s.kv.ascend(from, func(_ string, v *KeyValue) bool { return f(v) })
}

// Counter returns a named id counter.
func (s *State) Counter(name string) (*Counter, bool) { return s.counters.get(name) }

// Counters calls f in name order until it says false.
func (s *State) Counters(f func(*Counter) bool) {
	s.counters.all(func(_ string, c *Counter) bool { return f(c) })
}

// Imports calls f for the running imports until it says false.
func (s *State) Imports(f func(*Import) bool) {
	s.imports.all(func(_ string, i *Import) bool { return f(i) })
}

// DroppedTables calls f in id order for the records of dropped tables.
func (s *State) DroppedTables(f func(*DroppedObject) bool) {
	s.droppedTables.all(func(_ TableID, d *DroppedObject) bool { return f(d) })
}

// DroppedPartitions calls f in id order, from the first id >= from, for the
// records of dropped partitions.
func (s *State) DroppedPartitions(from PartitionID, f func(*DroppedObject) bool) {
	s.droppedParts.ascend(from, func(_ PartitionID, d *DroppedObject) bool { return f(d) })
}

// DroppedPartition returns the record of a dropped partition.
func (s *State) DroppedPartition(id PartitionID) (*DroppedObject, bool) {
	return s.droppedParts.get(id)
}

// DroppedBuckets calls f in bucket order for the records of replicas that were
// moved away and are still to be deleted.
func (s *State) DroppedBuckets(f func(*DroppedObject) bool) {
	s.droppedBuckets.all(func(_ string, d *DroppedObject) bool { return f(d) })
}

// Rebalance returns the last rebalance plan, or nil.
func (s *State) Rebalance() *Rebalance { return s.rebal }

// Counts returns how many rows of each kind there are.
func (s *State) Counts() Counts {
	return Counts{
		Databases: s.databases.len(), Tables: s.tables.len(), Partitions: s.partIDs.len(), Servers: s.servers.len(),
		Clients: s.clients.len(), Keys: s.kv.len(), Unassigned: s.unplacedTables.len() + s.unplacedParts,
	}
}

// Counts are numbers of rows.
type Counts struct{ Databases, Tables, Partitions, Servers, Clients, Keys, Unassigned int }

// EffectiveCount is the one rule for the bucket count of a partition: its own;
// else, if it is marked legacy, the table's legacy count if that is set, else
// the table's count while its epoch is 0; else ErrStaleMetadata. It never
// guesses. t must be the partition's table.
func EffectiveCount(t *Table, p *Partition) (int32, error) {
	switch {
	case p.Buckets > 0:
		return p.Buckets, nil
	case p.Legacy && t.LegacyCount.Set:
		return t.LegacyCount.V, nil
	case p.Legacy && t.Epoch == 0:
		return t.Buckets, nil
	default:
		return 0, refuse(ErrStaleMetadata, "partition '%s' of table %s has no bucket count and the table's layout epoch is %d",
			p.Name, t.Path, t.Epoch)
	}
}
