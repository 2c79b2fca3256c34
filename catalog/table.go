package catalog

// Database is a name space of tables.
type Database struct {
	Name          string
	Comment       string
	Properties    []Property
	Created, Wall Millis // wall times of creation and last change
	CreatedAt     Revision
	Revision      Revision // of the last change
	Limits        Limits   // zero fields: the cluster's limit holds
	hash          uint64
}

// Column is one column of a schema version.
type Column struct {
	ID      ColumnID
	Name    string
	Type    DataType
	Comment string
}

// Schema is one version of a table's columns. It never changes.
type Schema struct {
	ID      SchemaID
	Columns []Column
}

// LayoutEntry is one step of a table's layout history.
type LayoutEntry struct {
	Epoch    Epoch
	Buckets  int32
	Revision Revision
	Wall     Millis
}

// Table is one table, its schema versions and its bucket layout. Partitions are
// rows of their own. It is immutable: a change makes a new Table.
type Table struct {
	ID TableID
	// Path is "database.table".
	Path    string
	Comment string
	// Schemas are all versions in order; the last is the current one.
	// Invariant: Schemas[i].ID == i+1.
	Schemas []Schema
	// NextColumn is the id of the next column; column ids are never reused.
	NextColumn ColumnID
	// PrimaryKey is empty for a log table.
	PrimaryKey []string
	// PartitionKeys is empty for a table that is not partitioned.
	PartitionKeys []string
	// BucketKeys is empty for a log table whose rows go to any bucket.
	BucketKeys []string
	// Buckets is the default count: of the table itself if it is not
	// partitioned, else of partitions created from now on.
	Buckets int32
	// Epoch is the layout epoch.
	Epoch Epoch
	// LegacyCount is set once, by the rescale that leaves epoch 0, to the count
	// before it. It is the effective count of legacy partitions from then on.
	LegacyCount Opt[int32]
	// History holds the layouts since creation, oldest first; its last entry is
	// the current (Epoch, Buckets).
	History []LayoutEntry
	// Replication is the replication factor of objects created from now on.
	Replication int32
	// Properties are keys with prefix "table."; CustomProperties are the others.
	Properties       []Property
	CustomProperties []Property
	// Import is the import that creates this table while it runs; 0: none.
	Import ImportID
	// Dropped marks a table whose partitions are still being purged: it has no
	// name any more and no partition of it can be found by name.
	Dropped       bool
	Created, Wall Millis
	CreatedAt     Revision
	Revision      Revision // of the last change of this row
	// Placement of a table that is not partitioned; nil: unassigned.
	Placement *Placement
	hash      uint64
	sum       placementSum
}

// Partitioned reports whether the table has partition keys.
func (t *Table) Partitioned() bool { return len(t.PartitionKeys) > 0 }

// Schema returns the current schema version.
func (t *Table) Schema() *Schema { return &t.Schemas[len(t.Schemas)-1] }

// Importing reports whether an import is still creating the table.
func (t *Table) Importing() bool { return t.Import != ImportID{} }

// Partition is one partition of a table. It is immutable: a change of its
// placement makes a new Partition; ID, Table, Name, Buckets, Epoch and Legacy
// never change.
type Partition struct {
	ID    PartitionID
	Table TableID
	// Name is the values in partition key order, joined by "$".
	Name string
	// Buckets is the partition's own count; 0 for a legacy partition.
	// Invariant: Buckets == 0 <=> Legacy.
	Buckets int32
	// Legacy marks a partition that was imported without a count of its own.
	Legacy bool
	// Imported says that id, count and epoch are the source's of an import.
	Imported bool
	// Epoch is the table's layout epoch at creation.
	Epoch     Epoch
	Created   Millis
	CreatedAt Revision
	Revision  Revision // of the last change of this row
	// Placement is nil while unassigned.
	Placement *Placement
	hash      uint64
	sum       placementSum
}

// Placement says which tablet servers hold the buckets of one table or
// partition, and who leads them. It is immutable.
//
// Invariant: len(Replicas) == len(Buckets) == the effective count.
type Placement struct {
	// Replicas[b] are the servers assigned to bucket b, the preferred leader
	// first. All lists may share one array.
	Replicas [][]ServerID
	// Buckets[b] is the state of bucket b.
	Buckets []BucketState
}

// BucketState is the leadership of one bucket.
//
// Invariant: Leader is NoServer or in ISR; ISR is a subset of the replicas and
// is never empty once it was set.
type BucketState struct {
	Leader           ServerID
	LeaderEpoch      LeaderEpoch
	BucketEpoch      BucketEpoch
	CoordinatorEpoch CoordinatorEpoch
	// Ready is false for a new bucket that never had a live replica.
	Ready   bool
	ISR     []ServerID
	Standby []ServerID
}
