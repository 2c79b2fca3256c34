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

// AdjustISR changes in-sync replicas, each on its own merit.
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

// Reassign changes the replicas of buckets.
type Reassign struct{ Moves []Move }

// StartRebalance begins a plan.
type StartRebalance struct {
	ID    string
	Moves []Move
}

// StepRebalance marks moves of the running plan as done, or ends it.
type StepRebalance struct {
	ID     string
	Done   []BucketRef
	Status RebalanceStatus
}

// CancelRebalance ends the running plan; finished moves stay.
type CancelRebalance struct{ ID string }

// AckDeletion says that a server deleted, or failed to delete, its replicas.
type AckDeletion struct {
	Server      ServerID
	Incarnation ServerIncarnation
	Objects     []DeletionAck
}

// DeletionAck names a dropped object.
type DeletionAck struct {
	Table     TableID
	Partition Opt[PartitionID]
	Failed    bool
}

// PurgeDropped removes up to Max partitions of dropped tables, and drop records
// older than Before that nobody waits for.
type PurgeDropped struct {
	Max    uint32
	Before Millis
}
