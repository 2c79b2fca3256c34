package catalog

// Limits bound what commands may create. A zero field means: not set here.
type Limits struct {
	// Buckets per table that is not partitioned, or per partition.
	Buckets uint32
	// Partitions per table.
	Partitions uint32
	// Replicas of buckets created by one command.
	Replicas uint32
}

// DefaultLimits hold where neither cluster nor database sets one; MaxLimits are
// the highest that SetLimits accepts.
var (
	DefaultLimits = Limits{Buckets: 4096, Partitions: 100_000, Replicas: 65_536}
	MaxLimits     = Limits{Buckets: 65_536, Partitions: 10_000_000, Replicas: 1_048_576}
)

// Fixed bounds of the generic and client groups.
const (
	// ClientWindow is how far a sequence may be ahead of the watermark.
	ClientWindow = 4096
	// MaxClients is the number of client records kept.
	MaxClients = 10_000
	// ClientTTL is how long on the lease clock a client lives without a command,
	// unless it asked for less, down to MinClientTTL.
	ClientTTL    Millis = 3_600_000
	MinClientTTL Millis = 10_000
	// MaxResultBytes bounds the stored result of one command.
	MaxResultBytes = 1024
	// MaxHistory is how many layout history entries a table keeps before those
	// without partitions are dropped.
	MaxHistory = 1024
	// MaxKeyBytes and MaxValueBytes bound a key and a value of the generic group.
	MaxKeyBytes   = 1024
	MaxValueBytes = 512 << 10
	// MaxTxn bounds the compares and the operations of one TxnKV, each.
	MaxTxn = 128
	// MaxAllocate bounds the ids of one AllocateIDs.
	MaxAllocate = 1 << 32
	// RestoreGap is added to every id counter by a restore.
	RestoreGap = 1 << 20
)

// Member is what a node last announced about itself.
type Member struct {
	// NodeID is its raft id.
	NodeID      string
	DirectoryID string
	RaftAddr    string
	APIAddr     string
	HTTPAddr    string
	// Level is the highest feature level its binary supports.
	Level FeatureLevel
	// Build is a readable version.
	Build    string
	Revision Revision
	hash     uint64
}

// Cluster is the one row of cluster-wide state.
type Cluster struct {
	// ID is set by the first ActivateIncarnation.
	ID          string
	Incarnation Incarnation
	// Term is the last raft term that a NewTerm announced; 0 after a restore.
	Term uint64
	// Coordinator is the epoch of that term's leader.
	Coordinator CoordinatorEpoch
	// Leader is the node id that announced Term.
	Leader string
	Level  FeatureLevel
	Limits Limits
	// Lease is the lease clock: it advances only while a leader leads.
	Lease Millis
	// Wall is max(previous, leader's wall clock).
	Wall Millis
	// Counters: the next id of each kind. They never fall.
	NextTable     TableID
	NextPartition PartitionID
	NextClient    ClientID
}

// ImportID names one import: the source's incarnation and revision.
type ImportID struct {
	Incarnation Incarnation
	Revision    Revision
}

// Client is the record of one registered client.
type Client struct {
	ID ClientID
	// Watermark: every sequence at or below it was acknowledged by the client.
	Watermark uint64
	// Active is the lease clock at the last command, ActiveAt its revision.
	Active   Millis
	ActiveAt Revision
	// Name is what the client said of itself.
	Name string
	// TTL is how long on the lease clock it lives without a command.
	TTL Millis
	// results are those above the watermark.
	results tree[uint64, *storedResult]
	gen     uint64 // of the batch that owns the record and may change it in place
	hash    uint64 // without the results, which are hashed one by one
}

// storedResult is a result with its hash, so that dropping it costs no second
// hashing. It is immutable.
type storedResult struct {
	Result
	hash uint64
}

// KeyValue is one row of the generic group.
type KeyValue struct {
	Key   string
	Value []byte
	// Version is 1 at creation and + 1 per change; 0 names an absent key.
	Version uint64
	// CreatedAt and Revision are the revisions of creation and last change.
	CreatedAt, Revision Revision
	Wall                Millis
	hash                uint64
}

// Counter is a named id allocator; Next is the first id not yet given out.
type Counter struct {
	Name     string
	Next     uint64
	Revision Revision
	hash     uint64
}

// Import is a running import.
type Import struct {
	ID ImportID
	// Rows is how many rows were taken, so that a rerun resumes.
	Rows uint64
	// BaseTable and BasePartition are the counters when it began: an id below
	// them was used here and cannot be imported.
	BaseTable     TableID
	BasePartition PartitionID
	Tables        []TableID // tables it created and has not finished
	Revision      Revision
	hash          uint64
}

// String returns "number-random@revision".
func (i ImportID) String() string { return i.Incarnation.String() + "@" + utoa(uint64(i.Revision)) }
