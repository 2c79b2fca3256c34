package api

import (
	"fmt"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// DatabaseToProto converts a row.
func DatabaseToProto(d *catalog.Database) *pb.Database {
	return &pb.Database{
		Name: d.Name, Comment: d.Comment, Properties: propertiesToProto(d.Properties), CreatedMs: int64(d.Created), ModifiedMs: int64(d.Wall),
		CreatedAt: uint64(d.CreatedAt), Revision: uint64(d.Revision), Limits: limitsToProto(d.Limits),
	}
}

// DatabaseFromProto converts a row; nil becomes an empty row.
func DatabaseFromProto(p *pb.Database) *catalog.Database {
	return &catalog.Database{
		Name: p.GetName(), Comment: p.GetComment(), Properties: propertiesFromProto(p.GetProperties()),
		Created: catalog.Millis(p.GetCreatedMs()), Wall: catalog.Millis(p.GetModifiedMs()),
		CreatedAt: catalog.Revision(p.GetCreatedAt()), Revision: catalog.Revision(p.GetRevision()), Limits: limitsFromProto(p.GetLimits()),
	}
}

// TableToProto converts a row.
func TableToProto(t *catalog.Table) *pb.Table {
	return &pb.Table{
		TableId: uint64(t.ID), Path: t.Path, Comment: t.Comment, Schemas: each(t.Schemas, schemaTo), NextColumnId: uint32(t.NextColumn),
		PrimaryKey: copyTexts(t.PrimaryKey), PartitionKeys: copyTexts(t.PartitionKeys), BucketKeys: copyTexts(t.BucketKeys),
		BucketCount: t.Buckets, LayoutEpoch: uint64(t.Epoch), LegacyCount: optTo[int32](t.LegacyCount), History: each(t.History, layoutEntryTo),
		ReplicationFactor: t.Replication, Properties: propertiesToProto(t.Properties), CustomProperties: propertiesToProto(t.CustomProperties),
		Import: importIDToProto(t.Import), Dropped: t.Dropped, CreatedMs: int64(t.Created), ModifiedMs: int64(t.Wall),
		CreatedAt: uint64(t.CreatedAt), Revision: uint64(t.Revision), Assignment: placementTo(t.Placement),
	}
}

// TableFromProto checks and converts a row. One without a schema is refused:
// catalog.Table.Schema needs the current one.
func TableFromProto(p *pb.Table) (*catalog.Table, error) {
	if len(p.GetSchemas()) == 0 {
		return nil, invalid("table.schemas", "empty", "at least one schema")
	}
	return tableFrom(p), nil
}

func tableFrom(p *pb.Table) *catalog.Table {
	t := &catalog.Table{
		ID: catalog.TableID(p.GetTableId()), Path: p.GetPath(), Comment: p.GetComment(), Schemas: each(p.GetSchemas(), schemaFrom),
		NextColumn: catalog.ColumnID(p.GetNextColumnId()), PrimaryKey: copyTexts(p.GetPrimaryKey()),
		PartitionKeys: copyTexts(p.GetPartitionKeys()), BucketKeys: copyTexts(p.GetBucketKeys()), Buckets: p.GetBucketCount(),
		Epoch: catalog.Epoch(p.GetLayoutEpoch()), History: each(p.GetHistory(), layoutEntryFrom), Replication: p.GetReplicationFactor(),
		Properties: propertiesFromProto(p.GetProperties()), CustomProperties: propertiesFromProto(p.GetCustomProperties()),
		Import: importIDFromProto(p.GetImport()), Dropped: p.GetDropped(),
		Created: catalog.Millis(p.GetCreatedMs()), Wall: catalog.Millis(p.GetModifiedMs()),
		CreatedAt: catalog.Revision(p.GetCreatedAt()), Revision: catalog.Revision(p.GetRevision()), Placement: placementFrom(p.GetAssignment()),
	}
	if p != nil {
		t.LegacyCount = optFrom[int32](p.LegacyCount)
	}
	return t
}

func schemaTo(s catalog.Schema) *pb.Schema {
	return &pb.Schema{Id: uint32(s.ID), Columns: each(s.Columns, func(c catalog.Column) *pb.Column {
		return &pb.Column{Id: uint32(c.ID), Name: c.Name, Type: string(c.Type), Comment: c.Comment}
	})}
}

func schemaFrom(p *pb.Schema) catalog.Schema {
	return catalog.Schema{ID: catalog.SchemaID(p.GetId()), Columns: each(p.GetColumns(), func(c *pb.Column) catalog.Column {
		return catalog.Column{ID: catalog.ColumnID(c.GetId()), Name: c.GetName(), Type: catalog.DataType(c.GetType()), Comment: c.GetComment()}
	})}
}

func layoutEntryTo(e catalog.LayoutEntry) *pb.LayoutEntry {
	return &pb.LayoutEntry{Epoch: uint64(e.Epoch), BucketCount: e.Buckets, Revision: uint64(e.Revision), WallMs: int64(e.Wall)}
}

func layoutEntryFrom(p *pb.LayoutEntry) catalog.LayoutEntry {
	return catalog.LayoutEntry{
		Epoch: catalog.Epoch(p.GetEpoch()), Buckets: p.GetBucketCount(), Revision: catalog.Revision(p.GetRevision()), Wall: catalog.Millis(p.GetWallMs()),
	}
}

func placementTo(p *catalog.Placement) *pb.Assignment {
	if p == nil {
		return nil
	}
	out := &pb.Assignment{Buckets: make([]*pb.BucketState, len(p.Replicas))}
	for i, r := range p.Replicas {
		b := &pb.BucketState{Replicas: numbers[int32](r)}
		if i < len(p.Buckets) {
			s := &p.Buckets[i]
			b.LeaderEpoch, b.BucketEpoch = int32(s.LeaderEpoch), int32(s.BucketEpoch)
			b.CoordinatorEpoch, b.Ready = int64(s.CoordinatorEpoch), s.Ready
			b.Isr, b.Standby = numbers[int32](s.ISR), numbers[int32](s.Standby)
			if s.Leader != catalog.NoServer {
				leader := int32(s.Leader)
				b.Leader = &leader
			}
		}
		out.Buckets[i] = b
	}
	return out
}

func placementFrom(p *pb.Assignment) *catalog.Placement {
	if p == nil {
		return nil
	}
	n := len(p.GetBuckets())
	out := &catalog.Placement{Replicas: make([][]catalog.ServerID, n), Buckets: make([]catalog.BucketState, n)}
	for i, b := range p.GetBuckets() {
		out.Replicas[i] = numbers[catalog.ServerID](b.GetReplicas())
		s := &out.Buckets[i]
		*s = catalog.BucketState{
			Leader: catalog.NoServer, LeaderEpoch: catalog.LeaderEpoch(b.GetLeaderEpoch()), BucketEpoch: catalog.BucketEpoch(b.GetBucketEpoch()),
			CoordinatorEpoch: catalog.CoordinatorEpoch(b.GetCoordinatorEpoch()), Ready: b.GetReady(),
			ISR: numbers[catalog.ServerID](b.GetIsr()), Standby: numbers[catalog.ServerID](b.GetStandby()),
		}
		if b != nil && b.Leader != nil {
			s.Leader = catalog.ServerID(b.GetLeader())
		}
	}
	return out
}

// PartitionToProto converts a row. With its table t it also carries the spec
// and the effective count, if that is known; t may be nil.
func PartitionToProto(t *catalog.Table, r *catalog.Partition) *pb.Partition {
	out := &pb.Partition{
		PartitionId: uint64(r.ID), TableId: uint64(r.Table), Name: r.Name, OwnBucketCount: r.Buckets, Legacy: r.Legacy, Imported: r.Imported,
		LayoutEpoch: uint64(r.Epoch), CreatedMs: int64(r.Created), CreatedAt: uint64(r.CreatedAt), Revision: uint64(r.Revision),
		Assignment: placementTo(r.Placement),
	}
	if t == nil {
		if r.Buckets > 0 {
			out.BucketCount = &r.Buckets
		}
		return out
	}
	if n, err := catalog.EffectiveCount(t, r); err == nil {
		out.BucketCount = &n
	}
	out.Spec = propertiesToProto(t.Spec(r))
	return out
}

// PartitionFromProto converts a row; what is derived from the table is left out.
func PartitionFromProto(p *pb.Partition) *catalog.Partition {
	return &catalog.Partition{
		ID: catalog.PartitionID(p.GetPartitionId()), Table: catalog.TableID(p.GetTableId()), Name: p.GetName(), Buckets: p.GetOwnBucketCount(),
		Legacy: p.GetLegacy(), Imported: p.GetImported(), Epoch: catalog.Epoch(p.GetLayoutEpoch()), Created: catalog.Millis(p.GetCreatedMs()),
		CreatedAt: catalog.Revision(p.GetCreatedAt()), Revision: catalog.Revision(p.GetRevision()), Placement: placementFrom(p.GetAssignment()),
	}
}

// ServerToProto converts a row.
func ServerToProto(v *catalog.Server) *pb.Server {
	return &pb.Server{
		ServerId: int32(v.ID), Incarnation: uint64(v.Incarnation), DirectoryId: v.DirectoryID, Listeners: copyTexts(v.Listeners), Rack: v.Rack,
		TtlMs: int64(v.TTL), RenewedMs: int64(v.Renewed), RenewedAt: uint64(v.RenewedAt), Live: v.Live, ShuttingDown: v.ShuttingDown,
		Tag: pb.ServerTag(v.Tag), RegisteredMs: int64(v.Registered), Revision: uint64(v.Revision),
	}
}

// ServerFromProto checks and converts a row.
func ServerFromProto(p *pb.Server) (*catalog.Server, error) {
	if t := p.GetTag(); t < 0 || t > pb.ServerTag_SERVER_TAG_TEMPORARY_OFFLINE {
		return nil, invalid("server.tag", int32(t), "a known tag (0..2)")
	}
	return &catalog.Server{
		ID: catalog.ServerID(p.GetServerId()), Incarnation: catalog.ServerIncarnation(p.GetIncarnation()), DirectoryID: p.GetDirectoryId(),
		Listeners: copyTexts(p.GetListeners()), Rack: p.GetRack(), TTL: catalog.Millis(p.GetTtlMs()), Renewed: catalog.Millis(p.GetRenewedMs()),
		RenewedAt: catalog.Revision(p.GetRenewedAt()), Live: p.GetLive(), ShuttingDown: p.GetShuttingDown(), Tag: catalog.ServerTag(p.GetTag()),
		Registered: catalog.Millis(p.GetRegisteredMs()), Revision: catalog.Revision(p.GetRevision()),
	}, nil
}

// KeyValueToProto converts a row.
func KeyValueToProto(v *catalog.KeyValue) *pb.KeyValue {
	return &pb.KeyValue{
		Key: v.Key, Value: copyBytes(v.Value), Version: v.Version, CreatedAt: uint64(v.CreatedAt), Revision: uint64(v.Revision), ModifiedMs: int64(v.Wall),
	}
}

// KeyValueFromProto converts a row.
func KeyValueFromProto(p *pb.KeyValue) *catalog.KeyValue {
	return &catalog.KeyValue{
		Key: p.GetKey(), Value: copyBytes(p.GetValue()), Version: p.GetVersion(), CreatedAt: catalog.Revision(p.GetCreatedAt()),
		Revision: catalog.Revision(p.GetRevision()), Wall: catalog.Millis(p.GetModifiedMs()),
	}
}

// ObjectToProto converts any row. tables finds the table of a partition, so that
// the partition carries its effective count; it may be nil, or return nil.
func ObjectToProto(o catalog.Object, tables func(catalog.TableID) *catalog.Table) (*pb.Object, error) {
	switch r := o.(type) {
	case *catalog.Cluster:
		return &pb.Object{Row: &pb.Object_Cluster{Cluster: ClusterToProto(r)}}, nil
	case *catalog.Database:
		return &pb.Object{Row: &pb.Object_Database{Database: DatabaseToProto(r)}}, nil
	case *catalog.Table:
		return &pb.Object{Row: &pb.Object_Table{Table: TableToProto(r)}}, nil
	case *catalog.Partition:
		var t *catalog.Table
		if tables != nil {
			t = tables(r.Table)
		}
		return &pb.Object{Row: &pb.Object_Partition{Partition: PartitionToProto(t, r)}}, nil
	case *catalog.Server:
		return &pb.Object{Row: &pb.Object_Server{Server: ServerToProto(r)}}, nil
	case *catalog.Member:
		return &pb.Object{Row: &pb.Object_Member{Member: MemberToProto(r)}}, nil
	case *catalog.KeyValue:
		return &pb.Object{Row: &pb.Object_KeyValue{KeyValue: KeyValueToProto(r)}}, nil
	case *catalog.Counter:
		return &pb.Object{Row: &pb.Object_Counter{Counter: &pb.Counter{Name: r.Name, Next: r.Next, Revision: uint64(r.Revision)}}}, nil
	case *catalog.DroppedObject:
		return &pb.Object{Row: &pb.Object_Dropped{Dropped: droppedTo(r)}}, nil
	case *catalog.Rebalance:
		return &pb.Object{Row: &pb.Object_Rebalance{Rebalance: rebalanceTo(r)}}, nil
	case *catalog.Import:
		return &pb.Object{Row: &pb.Object_Import{Import: importRowTo(r)}}, nil
	case *catalog.Client:
		return &pb.Object{Row: &pb.Object_Client{Client: clientTo(r)}}, nil
	}
	return nil, fmt.Errorf("row of type %T has no message", o)
}

// ObjectFromProto checks and converts any row; an unset one is refused. A client
// row comes without its stored results.
func ObjectFromProto(p *pb.Object) (catalog.Object, error) {
	switch r := p.GetRow().(type) {
	case *pb.Object_Cluster:
		return ClusterFromProto(r.Cluster), nil
	case *pb.Object_Database:
		return DatabaseFromProto(r.Database), nil
	case *pb.Object_Table:
		return pointer(TableFromProto(r.Table))
	case *pb.Object_Partition:
		return PartitionFromProto(r.Partition), nil
	case *pb.Object_Server:
		return pointer(ServerFromProto(r.Server))
	case *pb.Object_Member:
		return MemberFromProto(r.Member), nil
	case *pb.Object_KeyValue:
		return KeyValueFromProto(r.KeyValue), nil
	case *pb.Object_Counter:
		c := r.Counter
		return &catalog.Counter{Name: c.GetName(), Next: c.GetNext(), Revision: catalog.Revision(c.GetRevision())}, nil
	case *pb.Object_Dropped:
		return pointer(droppedFrom(r.Dropped))
	case *pb.Object_Rebalance:
		return pointer(rebalanceFrom(r.Rebalance))
	case *pb.Object_Import:
		return importRowFrom(r.Import), nil
	case *pb.Object_Client:
		return clientFrom(r.Client), nil
	}
	return nil, invalid("object.row", "not set", "one of the known rows")
}

// pointer turns a typed nil with an error into an untyped one.
func pointer[T catalog.Object](o T, err error) (catalog.Object, error) {
	if err != nil {
		return nil, err
	}
	return o, nil
}
