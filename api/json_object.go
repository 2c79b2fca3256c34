package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
)

// ClusterRow is the JSON of the cluster-wide row in events.
type ClusterRow struct {
	ClusterID        string          `json:"cluster_id"`
	Incarnation      IncarnationText `json:"incarnation"`
	Term             uint64          `json:"term"`
	CoordinatorEpoch int64           `json:"coordinator_epoch"`
	Leader           string          `json:"leader"`
	FeatureLevel     uint32          `json:"feature_level"`
	Limits           Limits          `json:"limits"`
	NextTableID      uint64          `json:"next_table_id"`
	NextPartitionID  uint64          `json:"next_partition_id"`
	NextClientID     uint64          `json:"next_client_id"`
}

// CounterRow is the JSON of a named counter in events.
type CounterRow struct {
	Name     string `json:"name"`
	Next     uint64 `json:"next"`
	Revision uint64 `json:"revision"`
}

// DroppedRow is the JSON of a dropped table or partition in events.
type DroppedRow struct {
	TableID     uint64  `json:"table_id"`
	PartitionID *uint64 `json:"partition_id,omitempty"`
	// Bucket is set for the replicas that were moved away from one.
	Bucket      *int32 `json:"bucket,omitempty"`
	Table       string `json:"table"`
	Partition   string `json:"partition"`
	BucketCount int32  `json:"bucket_count"`
	LayoutEpoch uint64 `json:"layout_epoch"`
	DroppedMS   int64  `json:"dropped_ms"`
	Revision    uint64 `json:"revision"`
}

// RebalanceRow is the JSON of a rebalance plan in events.
type RebalanceRow struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	Moves     int    `json:"moves"`
	Done      int    `json:"done"`
	StartedMS int64  `json:"started_ms"`
	Revision  uint64 `json:"revision"`
}

// ImportRow is the JSON of a running import in events.
type ImportRow struct {
	Incarnation IncarnationText `json:"incarnation"`
	Source      uint64          `json:"source_revision"`
	Rows        uint64          `json:"rows"`
	TableIDs    []uint64        `json:"table_ids"`
	Revision    uint64          `json:"revision"`
}

// ClientRow is the JSON of a registered client in events.
type ClientRow struct {
	ClientID  uint64 `json:"client_id"`
	Name      string `json:"name"`
	Watermark uint64 `json:"watermark"`
	ActiveAt  uint64 `json:"active_at"`
}

var rebalanceNames = [...]string{"not_started", "running", "failed", "completed", "canceled", "timed_out"}

// ObjectJSON makes the JSON of any row: a Table for a table, and so on. An unset
// row is nil.
func ObjectJSON(p *pb.Object) any {
	switch r := p.GetRow().(type) {
	case *pb.Object_Cluster:
		return clusterJSON(r.Cluster)
	case *pb.Object_Database:
		return DatabaseJSON(r.Database)
	case *pb.Object_Table:
		return TableJSON(r.Table)
	case *pb.Object_Partition:
		return PartitionJSON(r.Partition)
	case *pb.Object_Server:
		return ServerJSON(r.Server)
	case *pb.Object_Member:
		return MemberJSON(&pb.MemberStatus{Member: r.Member})
	case *pb.Object_KeyValue:
		return KVJSON(r.KeyValue)
	case *pb.Object_Counter:
		return CounterRow{Name: r.Counter.GetName(), Next: r.Counter.GetNext(), Revision: r.Counter.GetRevision()}
	case *pb.Object_Dropped:
		return droppedJSON(r.Dropped)
	case *pb.Object_Rebalance:
		return rebalanceJSON(r.Rebalance)
	case *pb.Object_Import:
		i := r.Import
		return ImportRow{
			Incarnation: IncarnationText(IncarnationFromProto(i.GetId().GetIncarnation())), Source: i.GetId().GetRevision(),
			Rows: i.GetRows(), TableIDs: list(i.GetTableIds()), Revision: i.GetRevision(),
		}
	case *pb.Object_Client:
		c := r.Client
		return ClientRow{ClientID: c.GetClientId(), Name: c.GetName(), Watermark: c.GetWatermark(), ActiveAt: c.GetActiveAt()}
	}
	return nil
}

func clusterJSON(p *pb.ClusterState) ClusterRow {
	return ClusterRow{
		ClusterID: p.GetClusterId(), Incarnation: IncarnationText(IncarnationFromProto(p.GetIncarnation())), Term: p.GetTerm(),
		CoordinatorEpoch: p.GetCoordinatorEpoch(), Leader: p.GetLeader(), FeatureLevel: p.GetFeatureLevel(), Limits: limitsJSON(p.GetLimits()),
		NextTableID: p.GetNextTableId(), NextPartitionID: p.GetNextPartitionId(), NextClientID: p.GetNextClientId(),
	}
}

func droppedJSON(p *pb.DroppedObject) DroppedRow {
	out := DroppedRow{
		TableID: p.GetTableId(), Table: p.GetPath(), Partition: p.GetName(), BucketCount: p.GetBucketCount(),
		LayoutEpoch: p.GetLayoutEpoch(), DroppedMS: p.GetDroppedMs(), Revision: p.GetRevision(),
	}
	if p != nil {
		out.PartitionID, out.Bucket = p.PartitionId, p.Bucket
	}
	return out
}

func rebalanceJSON(p *pb.Rebalance) RebalanceRow {
	out := RebalanceRow{ID: p.GetId(), Status: "unknown", Moves: len(p.GetMoves()), StartedMS: p.GetStartedMs(), Revision: p.GetRevision()}
	if s := p.GetStatus(); s >= 0 && int(s) < len(rebalanceNames) {
		out.Status = rebalanceNames[s]
	}
	for _, m := range p.GetMoves() {
		if m.GetDone() {
			out.Done++
		}
	}
	return out
}
