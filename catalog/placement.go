package catalog

import "cmp"

// Server is the record of one tablet server. UnregisterServer deletes it;
// expiry only marks it.
type Server struct {
	ID          ServerID
	Incarnation ServerIncarnation
	// DirectoryID tells a restarted server from another one with its id.
	DirectoryID string
	// Listeners are "NAME://host:port" or "host:port".
	Listeners []string
	Rack      string
	TTL       Millis
	// Renewed is the lease clock at the last renewal, RenewedAt its revision.
	Renewed   Millis
	RenewedAt Revision
	// Live is false once the lease expired.
	Live bool
	// ShuttingDown is set by a controlled shutdown; such a server leads nothing.
	ShuttingDown bool
	Tag          ServerTag
	Registered   Millis // wall time of this incarnation's registration
	Revision     Revision
	hash         uint64
}

// ServerTag keeps new replicas away from a server.
type ServerTag uint8

// Tags of a tablet server.
const (
	NoTag ServerTag = iota
	PermanentOffline
	TemporaryOffline
)

// String returns the tag as the command line writes it.
func (t ServerTag) String() string {
	switch t {
	case NoTag:
		return "none"
	case PermanentOffline:
		return "permanent-offline"
	case TemporaryOffline:
		return "temporary-offline"
	default:
		return itoa(int64(t))
	}
}

// DroppedObject is the record of a dropped table or partition that is kept for
// a retention, and while replicas of it are still to be deleted. With Bucket it
// is about replicas that were moved away from a bucket that is still there, and
// is kept until they are deleted.
type DroppedObject struct {
	Table     TableID
	Partition Opt[PartitionID]
	Bucket    Opt[BucketID]
	// Path is the table's path and Name the partition's name when dropped.
	Path, Name string
	// Buckets is the effective count and Epoch the layout epoch when dropped.
	Buckets int32
	Epoch   Epoch
	// Dropped is the wall time of the drop.
	Dropped  Millis
	Revision Revision
	// Pending are the servers that have not acknowledged the deletion, with the
	// tries so far; sorted by server.
	Pending []PendingDeletion
	hash    uint64
}

// PendingDeletion is a server that still holds replicas of a dropped object.
type PendingDeletion struct {
	Server ServerID
	Tries  uint8
}

// Rebalance is the one plan that may be running, or the last one. How far a
// running plan is follows from the replicas of its buckets, see Phase: the row
// itself is written when the plan begins and ends, so that a plan of thousands
// of moves does not flood the history.
//
// Invariant: Moves are sorted by bucket and name each bucket once; while the plan
// runs, the replicas of a bucket are the move's From, its To, or To followed by
// the rest of From.
type Rebalance struct {
	ID     string
	Status RebalanceStatus
	Moves  []Move
	// InFlight is how many moves may copy data at the same time.
	InFlight uint32
	Started  Millis
	Revision Revision
	hash     uint64
}

// RebalanceStatus says how far a plan is.
type RebalanceStatus uint8

// States of a rebalance, with Fluss's numbers.
const (
	RebalanceNotStarted RebalanceStatus = iota
	RebalanceRunning
	RebalanceFailed
	RebalanceCompleted
	RebalanceCanceled
	RebalanceTimedOut
)

// Move changes the replicas of one bucket. The first server of To is to lead.
type Move struct {
	Bucket   BucketRef
	From, To []ServerID
	// Done is set when the plan ends, for the moves that were carried out.
	Done bool
}

// BucketRef names a bucket by ids.
type BucketRef struct {
	Table     TableID
	Partition Opt[PartitionID]
	Bucket    BucketID
}

// Compare orders buckets by table, partition and number; a table's own buckets
// stand before those of partitions.
func (r BucketRef) Compare(o BucketRef) int {
	switch {
	case r.Table != o.Table:
		return cmp.Compare(r.Table, o.Table)
	case r.Partition.Set != o.Partition.Set:
		if o.Partition.Set {
			return -1
		}
		return 1
	case r.Partition.V != o.Partition.V:
		return cmp.Compare(r.Partition.V, o.Partition.V)
	}
	return cmp.Compare(r.Bucket, o.Bucket)
}

// sameObject reports whether both are buckets of one table or partition.
func (r BucketRef) sameObject(o BucketRef) bool {
	return r.Table == o.Table && r.Partition == o.Partition
}

// String returns "bucket 3 of table 7" or "bucket 3 of partition 9 of table 7".
func (r BucketRef) String() string {
	s := "bucket " + itoa(int64(r.Bucket)) + " of "
	if r.Partition.Set {
		s += "partition " + utoa(uint64(r.Partition.V)) + " of "
	}
	return s + "table " + utoa(uint64(r.Table))
}
