package catalog

// Kind numbers a command in the log. Numbers are given by hand in blocks of 16
// per group, appended, and never reused. Frozen: log format v1.
type Kind uint8

// Kinds of the cluster group.
const (
	KindNewTerm Kind = 0x10 + iota
	KindActivateIncarnation
	KindSetLimits
	KindSetFeatureLevel
	KindChecksum
	KindAnnounceMember
	KindForgetMember
)

// Kinds of the catalog group.
const (
	KindCreateDatabase Kind = 0x20 + iota
	KindAlterDatabase
	KindDropDatabase
	KindCreateTable
	KindAlterTable
	KindRescaleTable
	KindDropTable
	KindCreatePartitions
	KindDropPartitions
	KindImportBatch
)

// Kinds of the placement group.
const (
	KindRegisterServer Kind = 0x30 + iota
	KindRenewLeases
	KindExpireServers
	KindUnregisterServer
	KindTagServer
	KindAssignPending
	KindAdjustISR
	KindElectLeaders
	KindReassign
	KindStartRebalance
	KindStepRebalance
	KindCancelRebalance
	KindAckDeletion
	KindPurgeDropped
)

// Kinds of the clients group.
const (
	KindRegisterClient Kind = 0x40 + iota
	KindExpireClients
)

// Kinds of the generic group.
const (
	KindPutKV Kind = 0x50 + iota
	KindDeleteKV
	KindTxnKV
	KindAllocateIDs
)

// Command is one change of the state. All commands are plain structs of this
// package, passed by value, and must not be changed after they are handed over.
type Command interface {
	// Kind returns the command's number in the log.
	Kind() Kind
}

// Envelope is what the proposer says about a command. All of it is replicated.
type Envelope struct {
	// Client and Sequence identify the command for exactly-once; Client 0 is not
	// deduplicated and must have Sequence and Ack 0.
	Client   ClientID
	Sequence uint64
	// Ack is the client's watermark: it holds every result up to here.
	Ack uint64
	// Fence, if set, is the leadership under which the command was decided; under
	// another one it is refused with ErrFenced.
	Fence Opt[Fence]
	// Lease is the proposer's lease clock, Wall its wall clock.
	Lease, Wall Millis
	// Actor names who asked, for the history; may be empty.
	Actor string
}

// Fence names one leadership of one incarnation.
type Fence struct {
	Incarnation uint64
	Coordinator CoordinatorEpoch
}

// NewTerm opens the term of a leader; nothing is served before it is applied.
// It is idempotent per term. Result: Epoch is the coordinator epoch.
type NewTerm struct {
	Term   uint64
	Leader string
}

// ActivateIncarnation begins a history. The first one also sets the cluster id.
type ActivateIncarnation struct {
	ClusterID   string
	Incarnation Incarnation
	// Level is the feature level a new cluster starts at.
	Level FeatureLevel
}

// SetLimits sets the non-zero fields for the cluster, or for one database.
type SetLimits struct {
	// Database is empty for the cluster's scope.
	Database string
	Limits   Limits
}

// SetFeatureLevel raises the level. It is never lowered.
type SetFeatureLevel struct{ Level FeatureLevel }

// Checksum is a marker at which replicas compare their state hash.
type Checksum struct{}

// AnnounceMember records the addresses and the level of a node.
type AnnounceMember struct {
	NodeID, DirectoryID         string
	RaftAddr, APIAddr, HTTPAddr string
	Level                       FeatureLevel
	Build                       string
}

// ForgetMember deletes the record of a removed node.
type ForgetMember struct{ NodeID string }

// CreateDatabase makes a database.
type CreateDatabase struct {
	Name        string
	Comment     string
	Properties  []Property
	IfNotExists bool
}

// AlterDatabase changes comment and properties; Set is applied before Reset.
type AlterDatabase struct {
	Name     string
	Comment  Opt[string]
	Set      []Property
	Reset    []string
	IfExists bool
	// ExpectedRevision refuses the change if the database changed since.
	ExpectedRevision Opt[Revision]
}

// DropDatabase removes a database; with Cascade also its tables.
type DropDatabase struct {
	Name     string
	Cascade  bool
	IfExists bool
}

// NewColumn is a column to be made; its id is allocated.
type NewColumn struct {
	Name    string
	Type    DataType
	Comment string
}

// CreateTable makes a table. Result: IDs holds the table id, Count its buckets.
type CreateTable struct {
	// Table is "database.table".
	Table            string
	Comment          string
	Columns          []NewColumn
	PrimaryKey       []string
	PartitionKeys    []string
	BucketKeys       []string
	Buckets          Opt[int32] // default 1
	Properties       []Property // keys with prefix "table."
	CustomProperties []Property
	IfNotExists      bool
}

// AlterTable adds columns, or sets and resets properties; not both.
type AlterTable struct {
	Table            string
	TableID          Opt[TableID]
	AddColumns       []NewColumn
	Set              []Property
	Reset            []string
	Comment          Opt[string]
	IfExists         bool
	ExpectedRevision Opt[Revision]
}

// RescaleTable sets the default bucket count of a partitioned table and raises
// its layout epoch by one. Existing partitions keep their counts. Setting the
// current count changes nothing. Result: Count and Epoch afterwards.
type RescaleTable struct {
	Table         string
	TableID       Opt[TableID]
	Buckets       int32
	ExpectedEpoch Opt[Epoch]
	// Propagated says that a lake table of format paimon was told first.
	Propagated bool
}

// DropTable removes a table with its partitions.
type DropTable struct {
	Table    string
	TableID  Opt[TableID]
	IfExists bool
}

// PartitionSpec gives a value to each partition key, in any order.
type PartitionSpec []Property

// CreatePartitions makes partitions, all or none, with the table's bucket count
// at apply. Result: IDs in the order of Specs, those of existing partitions
// included when IfNotExists; Count and Epoch of the last one.
type CreatePartitions struct {
	Table       string
	TableID     Opt[TableID]
	Specs       []PartitionSpec
	IfNotExists bool
	// Assignment, if not empty, is used for every spec instead of the computed one.
	Assignment [][]ServerID
	// Automatic marks a proposal of the auto-partition duty.
	Automatic bool
}

// DropPartitions removes partitions, all or none. Specs and IDs may be given
// together: then IDs[i] must be the current id of Specs[i].
type DropPartitions struct {
	Table    string
	TableID  Opt[TableID]
	Specs    []PartitionSpec
	IDs      []PartitionID
	IfExists bool
}

// ImportBatch adds rows of an export. Identical rows are skipped; any other
// clash refuses the whole batch.
type ImportBatch struct {
	Import ImportID
	// Skip is how many rows of the file were sent before this batch.
	Skip uint64
	// Last ends the import: its tables become usable.
	Last       bool
	Counters   Opt[ImportCounters]
	Databases  []Database
	Tables     []ImportTable
	Partitions []ImportPartition
	KeyValues  []ImportKeyValue
	IDCounters []ImportCounter
}

// ImportCounters are the source's id counters.
type ImportCounters struct {
	NextTable     TableID
	NextPartition PartitionID
}

// ImportTable is a table row of an export. Finished says that no partition of
// it follows.
type ImportTable struct {
	Table    Table
	Finished bool
}

// ImportPartition is a partition row of an export. Its buckets are placed anew
// once the import of its table has ended.
type ImportPartition struct {
	Table   TableID
	ID      PartitionID
	Name    string
	Buckets int32
	Legacy  bool
	Epoch   Epoch
	Created Millis
}

// ImportKeyValue is a key-value row of an export.
type ImportKeyValue struct {
	Key     string
	Value   []byte
	Version uint64
}

// ImportCounter is a named counter of an export.
type ImportCounter struct {
	Name string
	Next uint64
}

// RegisterClient makes a client record. Result: IDs holds the client id.
type RegisterClient struct {
	Name string
	// TTL is how long on the lease clock the client lives without a command,
	// MinClientTTL to ClientTTL; 0 means ClientTTL.
	TTL Millis
}

// ClientActivity names a client and the last activity the proposer saw.
type ClientActivity struct {
	ID       ClientID
	ActiveAt Revision
}

// ExpireClients removes the clients whose activity is still the one named and
// whose time is over on the lease clock.
type ExpireClients struct{ Clients []ClientActivity }

// PutKV writes a value. Result: Version.
type PutKV struct {
	Key   string
	Value []byte
	// ExpectedVersion: 0 means the key must not exist.
	ExpectedVersion Opt[uint64]
}

// DeleteKV removes a key; an absent one is ErrKeyNotExist unless IfExists.
type DeleteKV struct {
	Key             string
	ExpectedVersion Opt[uint64]
	IfExists        bool
}

// CompareKV is met when the key has the version; 0 means absent.
type CompareKV struct {
	Key     string
	Version uint64
}

// OpKV is one write of a TxnKV.
type OpKV struct {
	Key    string
	Value  []byte
	Delete bool
}

// TxnKV does all operations if all compares are met, else ErrVersionConflict.
type TxnKV struct {
	Compares []CompareKV
	Ops      []OpKV
}

// AllocateIDs takes Count ids from a named counter. Result: IDs.
type AllocateIDs struct {
	Counter string
	Count   uint64
}
