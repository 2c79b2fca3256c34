package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// ClusterToProto converts the cluster-wide row.
func ClusterToProto(c *catalog.Cluster) *pb.ClusterState {
	return &pb.ClusterState{
		ClusterId: c.ID, Incarnation: IncarnationToProto(c.Incarnation), Term: c.Term, CoordinatorEpoch: int64(c.Coordinator), Leader: c.Leader,
		FeatureLevel: uint32(c.Level), Limits: limitsToProto(c.Limits), LeaseMs: int64(c.Lease), WallMs: int64(c.Wall),
		NextTableId: uint64(c.NextTable), NextPartitionId: uint64(c.NextPartition), NextClientId: uint64(c.NextClient),
	}
}

// ClusterFromProto converts the cluster-wide row.
func ClusterFromProto(p *pb.ClusterState) *catalog.Cluster {
	return &catalog.Cluster{
		ID: p.GetClusterId(), Incarnation: IncarnationFromProto(p.GetIncarnation()), Term: p.GetTerm(),
		Coordinator: catalog.CoordinatorEpoch(p.GetCoordinatorEpoch()), Leader: p.GetLeader(), Level: catalog.FeatureLevel(p.GetFeatureLevel()),
		Limits: limitsFromProto(p.GetLimits()), Lease: catalog.Millis(p.GetLeaseMs()), Wall: catalog.Millis(p.GetWallMs()),
		NextTable: catalog.TableID(p.GetNextTableId()), NextPartition: catalog.PartitionID(p.GetNextPartitionId()),
		NextClient: catalog.ClientID(p.GetNextClientId()),
	}
}

// MemberToProto converts a row.
func MemberToProto(m *catalog.Member) *pb.Member {
	return &pb.Member{
		NodeId: m.NodeID, DirectoryId: m.DirectoryID, RaftAddress: m.RaftAddr, ApiAddress: m.APIAddr, HttpAddress: m.HTTPAddr,
		FeatureLevel: uint32(m.Level), Build: m.Build, Revision: uint64(m.Revision),
	}
}

// MemberFromProto converts a row.
func MemberFromProto(p *pb.Member) *catalog.Member {
	return &catalog.Member{
		NodeID: p.GetNodeId(), DirectoryID: p.GetDirectoryId(), RaftAddr: p.GetRaftAddress(), APIAddr: p.GetApiAddress(), HTTPAddr: p.GetHttpAddress(),
		Level: catalog.FeatureLevel(p.GetFeatureLevel()), Build: p.GetBuild(), Revision: catalog.Revision(p.GetRevision()),
	}
}

func droppedTo(d *catalog.DroppedObject) *pb.DroppedObject {
	return &pb.DroppedObject{
		TableId: uint64(d.Table), PartitionId: optTo[uint64](d.Partition), Path: d.Path, Name: d.Name, BucketCount: d.Buckets,
		LayoutEpoch: uint64(d.Epoch), DroppedMs: int64(d.Dropped), Revision: uint64(d.Revision), Bucket: optTo[int32](d.Bucket),
		Pending: each(d.Pending, func(p catalog.PendingDeletion) *pb.PendingDeletion {
			return &pb.PendingDeletion{ServerId: int32(p.Server), Tries: uint32(p.Tries)}
		}),
	}
}

func droppedFrom(p *pb.DroppedObject) (*catalog.DroppedObject, error) {
	pending, err := eachErr(p.GetPending(), "dropped.pending", func(d *pb.PendingDeletion) (catalog.PendingDeletion, error) {
		tries, err := byteField("tries", d.GetTries())
		return catalog.PendingDeletion{Server: catalog.ServerID(d.GetServerId()), Tries: tries}, err
	})
	if err != nil {
		return nil, err
	}
	out := &catalog.DroppedObject{
		Table: catalog.TableID(p.GetTableId()), Path: p.GetPath(), Name: p.GetName(), Buckets: p.GetBucketCount(),
		Epoch: catalog.Epoch(p.GetLayoutEpoch()), Dropped: catalog.Millis(p.GetDroppedMs()), Revision: catalog.Revision(p.GetRevision()),
		Pending: pending,
	}
	if p != nil {
		out.Partition = optFrom[catalog.PartitionID](p.PartitionId)
		out.Bucket = optFrom[catalog.BucketID](p.Bucket)
	}
	return out, nil
}

func rebalanceTo(r *catalog.Rebalance) *pb.Rebalance {
	return &pb.Rebalance{
		Id: r.ID, Status: pb.RebalanceStatus(r.Status), StartedMs: int64(r.Started), Revision: uint64(r.Revision),
		Moves: each(r.Moves, moveTo), InFlight: r.InFlight,
	}
}

func moveTo(m catalog.Move) *pb.Move {
	return &pb.Move{Bucket: bucketRefTo(m.Bucket), From: numbers[int32](m.From), To: numbers[int32](m.To), Done: m.Done}
}

func moveFrom(m *pb.Move) catalog.Move {
	return catalog.Move{
		Bucket: bucketRefFrom(m.GetBucket()), From: numbers[catalog.ServerID](m.GetFrom()), To: numbers[catalog.ServerID](m.GetTo()), Done: m.GetDone(),
	}
}

func rebalanceFrom(p *pb.Rebalance) (*catalog.Rebalance, error) {
	if s := p.GetStatus(); s < 0 || s > pb.RebalanceStatus_REBALANCE_STATUS_TIMED_OUT {
		return nil, invalid("rebalance.status", int32(s), "a known status (0..5)")
	}
	return &catalog.Rebalance{
		ID: p.GetId(), Status: catalog.RebalanceStatus(p.GetStatus()), Started: catalog.Millis(p.GetStartedMs()), Revision: catalog.Revision(p.GetRevision()),
		Moves: each(p.GetMoves(), moveFrom), InFlight: p.GetInFlight(),
	}, nil
}

func bucketRefTo(r catalog.BucketRef) *pb.BucketRef {
	return &pb.BucketRef{TableId: uint64(r.Table), PartitionId: optTo[uint64](r.Partition), Bucket: int32(r.Bucket)}
}

func bucketRefFrom(p *pb.BucketRef) catalog.BucketRef {
	out := catalog.BucketRef{Table: catalog.TableID(p.GetTableId()), Bucket: catalog.BucketID(p.GetBucket())}
	if p != nil {
		out.Partition = optFrom[catalog.PartitionID](p.PartitionId)
	}
	return out
}

func importRowTo(i *catalog.Import) *pb.Import {
	return &pb.Import{
		Id: importIDToProto(i.ID), Rows: i.Rows, BaseTableId: uint64(i.BaseTable), BasePartitionId: uint64(i.BasePartition),
		TableIds: numbers[uint64](i.Tables), Revision: uint64(i.Revision),
	}
}

func importRowFrom(p *pb.Import) *catalog.Import {
	return &catalog.Import{
		ID: importIDFromProto(p.GetId()), Rows: p.GetRows(), BaseTable: catalog.TableID(p.GetBaseTableId()),
		BasePartition: catalog.PartitionID(p.GetBasePartitionId()), Tables: numbers[catalog.TableID](p.GetTableIds()), Revision: catalog.Revision(p.GetRevision()),
	}
}

func clientTo(c *catalog.Client) *pb.RegisteredClient {
	return &pb.RegisteredClient{
		ClientId: uint64(c.ID), Watermark: c.Watermark, ActiveMs: int64(c.Active), ActiveAt: uint64(c.ActiveAt), Name: c.Name, TtlMs: int64(c.TTL),
	}
}

func clientFrom(p *pb.RegisteredClient) *catalog.Client {
	return &catalog.Client{
		ID: catalog.ClientID(p.GetClientId()), Watermark: p.GetWatermark(), Active: catalog.Millis(p.GetActiveMs()),
		ActiveAt: catalog.Revision(p.GetActiveAt()), Name: p.GetName(), TTL: catalog.Millis(p.GetTtlMs()),
	}
}
