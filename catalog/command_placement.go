package catalog

// RegisterServer makes or replaces the record of a tablet server. The same
// directory id replaces at once; another one is refused while the lease lives.
// Result: IDs holds the server's incarnation.
type RegisterServer struct {
	ID          ServerID
	DirectoryID string
	Listeners   []string
	Rack        string
	TTL         Millis
}

// Lease names a server, its incarnation, and is renewed by RenewLeases.
type Lease struct {
	ID          ServerID
	Incarnation ServerIncarnation
}

// RenewLeases renews leases to the envelope's lease clock. It makes no event.
type RenewLeases struct{ Leases []Lease }

// Expiry names the renewal that the proposer saw.
type Expiry struct {
	ID          ServerID
	Incarnation ServerIncarnation
	RenewedAt   Revision
}

// ExpireServers marks servers dead whose last renewal is still the one named
// and whose TTL is over, and re-elects every bucket they led.
type ExpireServers struct{ Servers []Expiry }

// UnregisterServer deletes a record; it must hold no replica.
type UnregisterServer struct {
	ID          ServerID
	Incarnation Opt[ServerIncarnation]
}

// TagServer sets or, with Remove, clears a tag.
type TagServer struct {
	IDs    []ServerID
	Tag    ServerTag
	Remove bool
}

// AssignPending computes assignments for unassigned objects, oldest ids first.
type AssignPending struct{ MaxReplicas uint32 }

// ISRChange is what the leader of a bucket asks for.
type ISRChange struct {
	Bucket      BucketRef
	LeaderEpoch LeaderEpoch
	BucketEpoch BucketEpoch
	Coordinator CoordinatorEpoch
	ISR         []ServerID
	Standby     []ServerID
}

// AdjustISR changes in-sync replicas, each on its own merit, and goes on with the
// running plan.
type AdjustISR struct {
	Server      ServerID
	Incarnation ServerIncarnation
	Changes     []ISRChange
}

// ElectionReason says why leaders are elected.
type ElectionReason uint8

// Reasons of an election.
const (
	ElectDefault ElectionReason = iota
	ElectPreferred
	ElectControlledShutdown
)

// ElectLeaders elects leaders for buckets, or moves all of a server away.
type ElectLeaders struct {
	Reason  ElectionReason
	Buckets []BucketRef
	Server  Opt[ServerID]
}

// Reassign changes the replicas of buckets, all or none, at once: it adds moves
// to the running plan, or makes a plan of them. From may be empty, else it must
// be what the bucket has. Result: Count is how many buckets change.
type Reassign struct{ Moves []Move }

// StartRebalance begins a plan; a second one while one runs is refused with
// ErrRebalanceFailure. The moves say From what they start; if a bucket has other
// replicas by now the whole plan is refused with ErrVersionConflict. Result:
// Count is the number of moves.
type StartRebalance struct {
	// ID names the plan; it is not that of the plan before.
	ID    string
	Moves []Move
	// InFlight bounds the moves that copy data at the same time; 0:
	// DefaultInFlight.
	InFlight uint32
}

// StepRebalance begins as many waiting moves of the running plan as it lets be in
// flight, and ends the plan when none is left. Which ones follows from the state.
// AdjustISR does so itself when it finishes a move; this is for what servers that
// come and go make possible.
type StepRebalance struct{ ID string }

// CancelRebalance ends the running plan, whichever it is if ID is empty. What is
// finished stays; moves in flight are taken back.
type CancelRebalance struct{ ID string }

// AckDeletion says that a server deleted, or failed to delete, its replicas.
type AckDeletion struct {
	Server      ServerID
	Incarnation ServerIncarnation
	Objects     []DeletionAck
}

// DeletionAck names a dropped object, or with Bucket the replica of one bucket
// that was moved away.
type DeletionAck struct {
	Table     TableID
	Partition Opt[PartitionID]
	Bucket    Opt[BucketID]
	Failed    bool
}

// PurgeDropped removes up to Max partitions of dropped tables, and drop records
// older than Before that nobody waits for.
type PurgeDropped struct {
	Max    uint32
	Before Millis
}
