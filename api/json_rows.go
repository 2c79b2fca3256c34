package api

import (
	"strings"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func limitsJSON(p *pb.Limits) Limits {
	return Limits{Buckets: p.GetBuckets(), Partitions: p.GetPartitions(), Replicas: p.GetReplicas()}
}

func propertiesJSON(p []*pb.Property) Properties { return Properties(propertiesFromProto(p)) }

// DatabaseJSON makes the JSON of a database.
func DatabaseJSON(p *pb.Database) Database {
	return Database{
		Name: p.GetName(), Comment: p.GetComment(), Properties: propertiesJSON(p.GetProperties()), Limits: limitsJSON(p.GetLimits()),
		CreatedMS: p.GetCreatedMs(), ModifiedMS: p.GetModifiedMs(), Revision: p.GetRevision(),
	}
}

// TableJSON makes the JSON of a table.
func TableJSON(p *pb.Table) Table {
	database, name, _ := strings.Cut(p.GetPath(), ".")
	out := Table{
		Database: database, Name: name, TableID: p.GetTableId(), BucketCount: p.GetBucketCount(), LayoutEpoch: p.GetLayoutEpoch(),
		History: []LayoutStep{}, Columns: []Column{}, PrimaryKey: list(p.GetPrimaryKey()), BucketKeys: list(p.GetBucketKeys()),
		PartitionKeys: list(p.GetPartitionKeys()), ReplicationFactor: p.GetReplicationFactor(), Comment: p.GetComment(),
		Properties: propertiesJSON(p.GetProperties()), CustomProperties: propertiesJSON(p.GetCustomProperties()),
		Importing: p.GetImport() != nil, CreatedMS: p.GetCreatedMs(), ModifiedMS: p.GetModifiedMs(), Revision: p.GetRevision(),
	}
	if p != nil {
		out.LegacyCount = p.LegacyCount
	}
	for _, e := range p.GetHistory() {
		out.History = append(out.History, LayoutStep{Epoch: e.GetEpoch(), Count: e.GetBucketCount(), Revision: e.GetRevision(), WallMS: e.GetWallMs()})
	}
	if n := len(p.GetSchemas()); n > 0 {
		s := p.GetSchemas()[n-1]
		out.SchemaID = s.GetId()
		out.Columns = list(columnsJSON(s))
	}
	if len(p.GetPartitionKeys()) == 0 {
		buckets := assignmentJSON(p.GetAssignment())
		out.Assignment = &buckets
	}
	return out
}

func columnsJSON(s *pb.Schema) []Column {
	return each(s.GetColumns(), func(c *pb.Column) Column {
		return Column{ID: c.GetId(), Name: c.GetName(), Type: c.GetType(), Comment: c.GetComment()}
	})
}

func assignmentJSON(p *pb.Assignment) []Bucket {
	out := make([]Bucket, len(p.GetBuckets()))
	for i, b := range p.GetBuckets() {
		out[i] = Bucket{Bucket: int32(i), Replicas: list(b.GetReplicas()), LeaderEpoch: b.GetLeaderEpoch(), ISR: list(b.GetIsr())}
		if b != nil {
			out[i].Leader = b.Leader
		}
	}
	return out
}

// PartitionJSON makes the JSON of a partition.
func PartitionJSON(p *pb.Partition) Partition {
	out := Partition{
		Name: p.GetName(), PartitionID: p.GetPartitionId(), TableID: p.GetTableId(), Legacy: p.GetLegacy(),
		Assignment: assignmentJSON(p.GetAssignment()), CreatedMS: p.GetCreatedMs(), Revision: p.GetRevision(),
	}
	if len(p.GetSpec()) > 0 {
		spec := propertiesJSON(p.GetSpec())
		out.Spec = &spec
	}
	if p != nil && p.BucketCount != nil {
		out.BucketCount = p.BucketCount
	}
	if !p.GetLegacy() {
		epoch := p.GetLayoutEpoch()
		out.LayoutEpoch = &epoch
	}
	return out
}

// PartitionListJSON makes the JSON of all chunks of a list.
func PartitionListJSON(h *pb.ResponseHeader, t *pb.Table, partitions []*pb.Partition) PartitionList {
	return PartitionList{
		Incarnation: incarnationJSON(h), Revision: h.GetRevision(), Table: TableJSON(t), Partitions: list(each(partitions, PartitionJSON)),
	}
}

func incarnationJSON(h *pb.ResponseHeader) IncarnationText {
	return IncarnationText(IncarnationFromProto(h.GetIncarnation()))
}

// ServerJSON makes the JSON of a tablet server.
func ServerJSON(p *pb.Server) Server {
	return Server{
		ServerID: p.GetServerId(), Incarnation: p.GetIncarnation(), DirectoryID: p.GetDirectoryId(), Listeners: list(p.GetListeners()),
		Rack: p.GetRack(), TTLMS: p.GetTtlMs(), Live: p.GetLive(), ShuttingDown: p.GetShuttingDown(), Tag: tagJSON(p.GetTag()),
		RegisteredMS: p.GetRegisteredMs(), Revision: p.GetRevision(),
	}
}

func tagJSON(t pb.ServerTag) string {
	switch t {
	case pb.ServerTag_SERVER_TAG_UNSPECIFIED:
		return "none"
	case pb.ServerTag_SERVER_TAG_PERMANENT_OFFLINE:
		return "permanent_offline"
	case pb.ServerTag_SERVER_TAG_TEMPORARY_OFFLINE:
		return "temporary_offline"
	}
	return "unknown"
}

// KVJSON makes the JSON of a key with its value.
func KVJSON(p *pb.KeyValue) KV {
	out := KeyJSON(p)
	out.Value, out.ValueBase64 = splitValue(p.GetValue())
	return out
}

// KeyJSON makes the JSON of a key without its value.
func KeyJSON(p *pb.KeyValue) KV {
	return KV{Key: p.GetKey(), Version: p.GetVersion(), ModifiedMS: p.GetModifiedMs(), Revision: p.GetRevision()}
}

// ResultJSON makes the JSON of a write without an object.
func ResultJSON(h *pb.ResponseHeader) Result {
	return Result{Incarnation: incarnationJSON(h), Revision: h.GetRevision()}
}

// MemberJSON makes the JSON of a node.
func MemberJSON(p *pb.MemberStatus) Member {
	m := p.GetMember()
	out := Member{
		ID: m.GetNodeId(), Role: "unknown", Leader: p.GetLeader(), RaftAddr: m.GetRaftAddress(), APIAddr: m.GetApiAddress(), HTTPAddr: m.GetHttpAddress(),
		DirectoryID: m.GetDirectoryId(), FeatureLevel: m.GetFeatureLevel(), Build: m.GetBuild(),
	}
	if p != nil {
		out.Reachable, out.AppliedRevision, out.LastContactMS = p.Reachable, p.AppliedRevision, p.LastContactMs
	}
	switch p.GetRole() {
	case pb.MemberRole_MEMBER_ROLE_VOTER:
		out.Role = "voter"
	case pb.MemberRole_MEMBER_ROLE_NON_VOTER:
		out.Role = "non_voter"
	default:
	}
	return out
}

// ClusterStatusJSON makes the JSON of a status.
func ClusterStatusJSON(p *pb.StatusResponse) ClusterStatus {
	c, n, h := p.GetCluster(), p.GetCounts(), p.GetHeader()
	out := ClusterStatus{
		ClusterID: c.GetClusterId(), Incarnation: incarnationJSON(h), Revision: h.GetRevision(), NodeID: p.GetNodeId(),
		Leader: h.GetLeader().GetNodeId(), Term: c.GetTerm(), CoordinatorEpoch: c.GetCoordinatorEpoch(), FeatureLevel: c.GetFeatureLevel(),
		CommitIndex: p.GetCommitIndex(), AppliedIndex: p.GetAppliedIndex(), Members: list(each(p.GetMembers(), MemberJSON)),
		Limits: limitsJSON(c.GetLimits()), Conditions: list(p.GetConditions()),
		Counts: Counts{
			Databases: n.GetDatabases(), Tables: n.GetTables(), Partitions: n.GetPartitions(), Servers: n.GetServers(),
			Clients: n.GetClients(), Keys: n.GetKeys(), Unassigned: n.GetUnassigned(),
		},
	}
	if h != nil {
		out.AgeMS = h.AgeMs
	}
	if p != nil {
		out.Changed = p.Changed
	}
	return out
}

// ErrorJSON makes the JSON of a non-nil error.
func ErrorJSON(err error) Error {
	code := CodeOf(err).String()
	return Error{ErrorBody{Code: code, Message: strings.TrimPrefix(err.Error(), code+": ")}}
}

// UsageErrorJSON makes the JSON of an error in a command line.
func UsageErrorJSON(message string) Error { return Error{ErrorBody{Code: "USAGE", Message: message}} }

// EventJSON makes the JSON of a whole event.
func EventJSON(p *pb.EventBatch) Event {
	return Event{
		Revision: p.GetRevision(), Command: p.GetCommand(), WallMS: p.GetWallMs(), Actor: p.GetActor(), Changes: list(each(p.GetChanges(), changeJSON)),
	}
}

// SnapshotJSON makes the JSON of a part of a watch's snapshot: an event of the
// command Snapshot whose changes have the type present.
func SnapshotJSON(p *pb.WatchSnapshot) Event {
	return Event{
		Revision: p.GetRevision(), Command: "Snapshot",
		Changes: list(each(p.GetRows(), func(o *pb.Object) Change {
			return Change{Type: "present", Kind: objectKind(o).String(), After: ObjectJSON(o)}
		})),
	}
}

func changeJSON(p *pb.Change) Change {
	out := Change{Before: ObjectJSON(p.GetBefore()), After: ObjectJSON(p.GetAfter())}
	row := p.GetAfter()
	if row == nil {
		row = p.GetBefore()
	}
	out.Kind = objectKind(row).String()
	switch p.GetType() {
	case pb.ChangeType_CHANGE_TYPE_CREATED:
		out.Type = "created"
	case pb.ChangeType_CHANGE_TYPE_UPDATED:
		out.Type = "updated"
	case pb.ChangeType_CHANGE_TYPE_DELETED:
		out.Type = "deleted"
	default:
		out.Type = "unknown"
	}
	return out
}

// objectKind returns the kind of a row: its field number.
func objectKind(p *pb.Object) catalog.ObjectKind {
	m := p.ProtoReflect()
	if !m.IsValid() {
		return 0
	}
	f := m.WhichOneof(m.Descriptor().Oneofs().ByName("row"))
	if f == nil {
		return 0
	}
	return catalog.ObjectKind(f.Number())
}
