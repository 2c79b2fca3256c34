package api

// Database is the JSON of a database.
type Database struct {
	Name       string     `json:"name"`
	Comment    string     `json:"comment"`
	Properties Properties `json:"properties"`
	Limits     Limits     `json:"limits"`
	CreatedMS  int64      `json:"created_ms"`
	ModifiedMS int64      `json:"modified_ms"`
	Revision   uint64     `json:"revision"`
}

// Limits is the JSON of limits; 0 means not set here.
type Limits struct {
	Buckets    uint32 `json:"buckets"`
	Partitions uint32 `json:"partitions"`
	Replicas   uint32 `json:"replicas"`
}

// Column is the JSON of a column.
type Column struct {
	ID      uint32 `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Comment string `json:"comment"`
}

// LayoutStep is the JSON of a step of a table's layout history.
type LayoutStep struct {
	Epoch    uint64 `json:"epoch"`
	Count    int32  `json:"count"`
	Revision uint64 `json:"revision"`
	WallMS   int64  `json:"wall_ms"`
}

// Table is the JSON of a table with its current columns.
type Table struct {
	Database    string `json:"database"`
	Name        string `json:"name"`
	TableID     uint64 `json:"table_id"`
	BucketCount int32  `json:"bucket_count"`
	LayoutEpoch uint64 `json:"layout_epoch"`
	// LegacyCount is absent until a rescale set it.
	LegacyCount *int32 `json:"legacy_count,omitempty"`
	// History is never empty for a table as stored; absent where an answer leaves it out.
	History           []LayoutStep `json:"history,omitempty"`
	SchemaID          uint32       `json:"schema_id"`
	Columns           []Column     `json:"columns"`
	PrimaryKey        []string     `json:"primary_key"`
	BucketKeys        []string     `json:"bucket_keys"`
	PartitionKeys     []string     `json:"partition_keys"`
	ReplicationFactor int32        `json:"replication_factor"`
	Comment           string       `json:"comment"`
	Properties        Properties   `json:"properties"`
	CustomProperties  Properties   `json:"custom_properties"`
	Importing         bool         `json:"importing"`
	CreatedMS         int64        `json:"created_ms"`
	ModifiedMS        int64        `json:"modified_ms"`
	// Assignment is absent for a partitioned table and empty while unassigned.
	Assignment *[]Bucket `json:"assignment,omitempty"`
	Revision   uint64    `json:"revision"`
}

// Bucket is the JSON of one bucket of an assignment.
type Bucket struct {
	Bucket   int32   `json:"bucket"`
	Replicas []int32 `json:"replicas"`
	// Leader is null while there is none.
	Leader      *int32  `json:"leader"`
	LeaderEpoch int32   `json:"leader_epoch"`
	ISR         []int32 `json:"isr"`
}

// Partition is the JSON of a partition.
type Partition struct {
	Name string `json:"name"`
	// Spec is absent where the table was not at hand.
	Spec        *Properties `json:"spec,omitempty"`
	PartitionID uint64      `json:"partition_id"`
	TableID     uint64      `json:"table_id"`
	// BucketCount is the effective count, absent where it is unknown.
	BucketCount *int32 `json:"bucket_count,omitempty"`
	Legacy      bool   `json:"legacy"`
	// LayoutEpoch is absent for a legacy partition: nobody recorded it.
	LayoutEpoch *uint64  `json:"layout_epoch,omitempty"`
	Assignment  []Bucket `json:"assignment"`
	CreatedMS   int64    `json:"created_ms"`
	Revision    uint64   `json:"revision"`
}

// PartitionList is the JSON of a table's partitions, from one state.
type PartitionList struct {
	Incarnation IncarnationText `json:"incarnation"`
	Revision    uint64          `json:"revision"`
	Table       Table           `json:"table"`
	Partitions  []Partition     `json:"partitions"`
}

// Server is the JSON of a tablet server.
type Server struct {
	ServerID     int32    `json:"server_id"`
	Incarnation  uint64   `json:"incarnation"`
	DirectoryID  string   `json:"directory_id"`
	Listeners    []string `json:"listeners"`
	Rack         string   `json:"rack"`
	TTLMS        int64    `json:"ttl_ms"`
	Live         bool     `json:"live"`
	ShuttingDown bool     `json:"shutting_down"`
	// Tag is none, permanent_offline or temporary_offline.
	Tag          string `json:"tag"`
	RegisteredMS int64  `json:"registered_ms"`
	Revision     uint64 `json:"revision"`
}

// KV is the JSON of a key. Exactly one of Value and ValueBase64 is there, the
// latter if the value is not valid UTF-8; neither in a list of keys only.
type KV struct {
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	Version     uint64  `json:"version"`
	ModifiedMS  int64   `json:"modified_ms"`
	Revision    uint64  `json:"revision"`
}

// Result is the JSON of a write that has no object to show.
type Result struct {
	Incarnation IncarnationText `json:"incarnation"`
	Revision    uint64          `json:"revision"`
}

// Member is the JSON of a node of the cluster.
type Member struct {
	ID string `json:"id"`
	// Role is voter, non_voter or unknown.
	Role         string `json:"role"`
	Leader       bool   `json:"leader"`
	RaftAddr     string `json:"raft_addr"`
	APIAddr      string `json:"api_addr"`
	HTTPAddr     string `json:"http_addr"`
	DirectoryID  string `json:"directory_id"`
	FeatureLevel uint32 `json:"feature_level"`
	Build        string `json:"build"`
	// The rest is absent where the answering node does not know.
	Reachable       *bool   `json:"reachable,omitempty"`
	AppliedRevision *uint64 `json:"applied_revision,omitempty"`
	LastContactMS   *uint64 `json:"last_contact_ms,omitempty"`
}

// ClusterStatus is the JSON of the cluster as one node sees it.
type ClusterStatus struct {
	ClusterID        string          `json:"cluster_id"`
	Incarnation      IncarnationText `json:"incarnation"`
	Revision         uint64          `json:"revision"`
	NodeID           string          `json:"node_id"`
	Leader           string          `json:"leader"`
	Term             uint64          `json:"term"`
	CoordinatorEpoch int64           `json:"coordinator_epoch"`
	FeatureLevel     uint32          `json:"feature_level"`
	CommitIndex      uint64          `json:"commit_index"`
	AppliedIndex     uint64          `json:"applied_index"`
	// AgeMS is there for a stale view.
	AgeMS      *uint64  `json:"age_ms,omitempty"`
	Members    []Member `json:"members"`
	Limits     Limits   `json:"limits"`
	Counts     Counts   `json:"counts"`
	Conditions []string `json:"conditions"`
	// Changed is there after a change of members or of the leader: false if
	// everything was as asked for already.
	Changed *bool `json:"changed,omitempty"`
}

// Counts is the JSON of the numbers of rows.
type Counts struct {
	Databases  uint64 `json:"databases"`
	Tables     uint64 `json:"tables"`
	Partitions uint64 `json:"partitions"`
	Servers    uint64 `json:"servers"`
	Clients    uint64 `json:"clients"`
	Keys       uint64 `json:"keys"`
	Unassigned uint64 `json:"unassigned"`
}

// Event is the JSON of everything one command changed.
type Event struct {
	Revision uint64   `json:"revision"`
	Command  string   `json:"command"`
	WallMS   int64    `json:"wall_ms"`
	Actor    string   `json:"actor"`
	Changes  []Change `json:"changes"`
}

// Change is the JSON of one changed row. Before and After are the JSON of the
// row's kind, absent where there is no such row or it was not asked for.
type Change struct {
	// Type is created, updated, deleted, or present in a snapshot; Kind is the
	// kind of the row.
	Type   string `json:"type"`
	Kind   string `json:"kind"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// Error is the JSON of an error.
type Error struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody is the code, as TABLE_NOT_EXIST or USAGE, and a sentence.
type ErrorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
