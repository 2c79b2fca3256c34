package catalog

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

// DroppedObject is the record of a dropped table or partition that is kept for
// a retention, and while replicas of it are still to be deleted.
type DroppedObject struct {
	Table     TableID
	Partition Opt[PartitionID]
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

// Rebalance is the one plan that may be running.
type Rebalance struct {
	ID       string
	Status   RebalanceStatus
	Moves    []Move
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

// Move changes the replicas of one bucket.
type Move struct {
	Bucket   BucketRef
	From, To []ServerID
	Done     bool
}

// BucketRef names a bucket by ids.
type BucketRef struct {
	Table     TableID
	Partition Opt[PartitionID]
	Bucket    BucketID
}
