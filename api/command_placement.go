package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// placementCommand converts the messages of tablet servers and buckets; nil for
// others.
func placementCommand(req Request) (catalog.Command, error) {
	switch r := req.(type) {
	case *pb.RegisterServerRequest:
		return catalog.RegisterServer{
			ID: catalog.ServerID(r.GetServerId()), DirectoryID: r.GetDirectoryId(), Listeners: copyTexts(r.GetListeners()),
			Rack: r.GetRack(), TTL: catalog.Millis(r.GetTtlMs()),
		}, nil
	case *pb.UnregisterServerRequest:
		return catalog.UnregisterServer{
			ID: catalog.ServerID(r.GetServerId()), Incarnation: optFrom[catalog.ServerIncarnation](r.Incarnation),
		}, nil
	case *pb.AssignPendingRequest:
		return catalog.AssignPending{MaxReplicas: r.GetMaxReplicas()}, nil
	case *pb.TagServersRequest:
		if r.GetTag() < 0 || r.GetTag() > pb.ServerTag_SERVER_TAG_TEMPORARY_OFFLINE {
			return nil, invalid("tag", r.GetTag().String(), "a known tag")
		}
		return catalog.TagServer{IDs: numbers[catalog.ServerID](r.GetServerIds()), Tag: catalog.ServerTag(r.GetTag()), Remove: r.GetRemove()}, nil
	case *pb.AdjustISRRequest:
		return catalog.AdjustISR{
			Server: catalog.ServerID(r.GetServerId()), Incarnation: catalog.ServerIncarnation(r.GetIncarnation()),
			Changes: each(r.GetChanges(), isrChangeFrom),
		}, nil
	case *pb.ElectLeadersRequest:
		if r.GetReason() < 0 || r.GetReason() > pb.ElectionReason_ELECTION_REASON_CONTROLLED_SHUTDOWN {
			return nil, invalid("reason", r.GetReason().String(), "a known reason")
		}
		return catalog.ElectLeaders{
			Reason: catalog.ElectionReason(r.GetReason()), Buckets: each(r.GetBuckets(), bucketRefFrom), Server: optFrom[catalog.ServerID](r.ServerId),
		}, nil
	case *pb.ReassignRequest:
		return catalog.Reassign{Moves: each(r.GetMoves(), moveFrom)}, nil
	case *pb.StartRebalanceRequest:
		return catalog.StartRebalance{ID: r.GetId(), Moves: each(r.GetMoves(), moveFrom), InFlight: r.GetInFlight()}, nil
	case *pb.CancelRebalanceRequest:
		return catalog.CancelRebalance{ID: r.GetId()}, nil
	case *pb.AckDeletionsRequest:
		return catalog.AckDeletion{
			Server: catalog.ServerID(r.GetServerId()), Incarnation: catalog.ServerIncarnation(r.GetIncarnation()),
			Objects: each(r.GetObjects(), deletionAckFrom),
		}, nil
	}
	return nil, nil //nolint:nilnil // another group's message
}

// placementRequest converts the commands of tablet servers and buckets; nil for
// others.
func placementRequest(cmd catalog.Command, client *pb.ClientRef) (Request, error) {
	switch c := cmd.(type) {
	case catalog.RegisterServer:
		return &pb.RegisterServerRequest{
			Client: client, ServerId: int32(c.ID), DirectoryId: c.DirectoryID, Listeners: copyTexts(c.Listeners), Rack: c.Rack, TtlMs: int64(c.TTL),
		}, nil
	case catalog.UnregisterServer:
		return &pb.UnregisterServerRequest{Client: client, ServerId: int32(c.ID), Incarnation: optTo[uint64](c.Incarnation)}, nil
	case catalog.AssignPending:
		return &pb.AssignPendingRequest{Client: client, MaxReplicas: c.MaxReplicas}, nil
	case catalog.TagServer:
		return &pb.TagServersRequest{Client: client, ServerIds: numbers[int32](c.IDs), Tag: pb.ServerTag(c.Tag), Remove: c.Remove}, nil
	case catalog.AdjustISR:
		return &pb.AdjustISRRequest{
			Client: client, ServerId: int32(c.Server), Incarnation: uint64(c.Incarnation), Changes: each(c.Changes, isrChangeTo),
		}, nil
	case catalog.ElectLeaders:
		return &pb.ElectLeadersRequest{
			Client: client, Reason: pb.ElectionReason(c.Reason), Buckets: each(c.Buckets, bucketRefTo), ServerId: optTo[int32](c.Server),
		}, nil
	case catalog.Reassign:
		return &pb.ReassignRequest{Client: client, Moves: each(c.Moves, moveTo)}, nil
	case catalog.StartRebalance:
		return &pb.StartRebalanceRequest{Client: client, Id: c.ID, Moves: each(c.Moves, moveTo), InFlight: c.InFlight}, nil
	case catalog.CancelRebalance:
		return &pb.CancelRebalanceRequest{Client: client, Id: c.ID}, nil
	case catalog.AckDeletion:
		return &pb.AckDeletionsRequest{
			Client: client, ServerId: int32(c.Server), Incarnation: uint64(c.Incarnation), Objects: each(c.Objects, deletionAckTo),
		}, nil
	}
	return nil, nil //nolint:nilnil // another group's command
}

func isrChangeFrom(c *pb.ISRChange) catalog.ISRChange {
	return catalog.ISRChange{
		Bucket: bucketRefFrom(c.GetBucket()), LeaderEpoch: catalog.LeaderEpoch(c.GetLeaderEpoch()), BucketEpoch: catalog.BucketEpoch(c.GetBucketEpoch()),
		Coordinator: catalog.CoordinatorEpoch(c.GetCoordinatorEpoch()), ISR: numbers[catalog.ServerID](c.GetIsr()),
		Standby: numbers[catalog.ServerID](c.GetStandby()),
	}
}

func isrChangeTo(c catalog.ISRChange) *pb.ISRChange {
	return &pb.ISRChange{
		Bucket: bucketRefTo(c.Bucket), LeaderEpoch: int32(c.LeaderEpoch), BucketEpoch: int32(c.BucketEpoch),
		CoordinatorEpoch: int64(c.Coordinator), Isr: numbers[int32](c.ISR), Standby: numbers[int32](c.Standby),
	}
}

func deletionAckFrom(d *pb.DeletionAck) catalog.DeletionAck {
	return catalog.DeletionAck{
		Table: catalog.TableID(d.GetTableId()), Partition: optFrom[catalog.PartitionID](d.PartitionId),
		Bucket: optFrom[catalog.BucketID](d.Bucket), Failed: d.GetFailed(),
	}
}

func deletionAckTo(d catalog.DeletionAck) *pb.DeletionAck {
	return &pb.DeletionAck{TableId: uint64(d.Table), PartitionId: optTo[uint64](d.Partition), Bucket: optTo[int32](d.Bucket), Failed: d.Failed}
}

// BucketRefToProto converts the name of a bucket.
func BucketRefToProto(r catalog.BucketRef) *pb.BucketRef { return bucketRefTo(r) }

// BucketRefFromProto converts the name of a bucket.
func BucketRefFromProto(p *pb.BucketRef) catalog.BucketRef { return bucketRefFrom(p) }

// DeletionToProto names an object, or a bucket of one, whose replicas are to be
// deleted.
func DeletionToProto(table catalog.TableID, partition catalog.Opt[catalog.PartitionID], bucket catalog.Opt[catalog.BucketID]) *pb.Deletion {
	return &pb.Deletion{TableId: uint64(table), PartitionId: optTo[uint64](partition), Bucket: optTo[int32](bucket)}
}

// PlanToProto converts a plan that was not begun.
func PlanToProto(p *catalog.RebalancePlan) *pb.PlanRebalanceResponse {
	return &pb.PlanRebalanceResponse{
		Moves: each(p.Moves, moveTo), Copies: int32(p.Copies), More: p.More,
		Load: each(p.Load, func(l catalog.ServerLoad) *pb.ServerLoad {
			return &pb.ServerLoad{
				ServerId: int32(l.ID), Replicas: int32(l.Replicas), Leaders: int32(l.Leaders),
				ReplicasAfter: int32(l.ReplicasAfter), LeadersAfter: int32(l.LeadersAfter),
			}
		}),
	}
}

// RebalanceToProto converts the plan of a state, with how far its moves are while
// it runs; nil if there is none.
func RebalanceToProto(s *catalog.State) (*pb.Rebalance, []pb.MovePhase) {
	r := s.Rebalance()
	if r == nil {
		return nil, nil
	}
	if r.Status != catalog.RebalanceRunning {
		return rebalanceTo(r), nil
	}
	return rebalanceTo(r), each(r.Moves, func(m catalog.Move) pb.MovePhase { return pb.MovePhase(s.Phase(m)) + pb.MovePhase_MOVE_PHASE_WAITING })
}
