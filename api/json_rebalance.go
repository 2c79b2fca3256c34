package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
)

// Move is the JSON of one move of a plan.
type Move struct {
	TableID     uint64  `json:"table_id"`
	PartitionID *uint64 `json:"partition_id,omitempty"`
	Bucket      int32   `json:"bucket"`
	From        []int32 `json:"from"`
	To          []int32 `json:"to"`
	// Phase is waiting, copying, done, gone, or not_done in a plan that ended;
	// absent in one that was not begun.
	Phase string `json:"phase,omitempty"`
}

// Rebalance is the JSON of the plan that runs, or of the last one.
type Rebalance struct {
	ID        string `json:"id"`
	Status    string `json:"status"`
	InFlight  uint32 `json:"in_flight"`
	Waiting   int    `json:"waiting"`
	Copying   int    `json:"copying"`
	Done      int    `json:"done"`
	NotDone   int    `json:"not_done"`
	StartedMS int64  `json:"started_ms"`
	Revision  uint64 `json:"revision"`
	Moves     []Move `json:"moves"`
}

// ServerLoad is the JSON of what a server has before and after a plan.
type ServerLoad struct {
	ServerID      int32 `json:"server_id"`
	Replicas      int32 `json:"replicas"`
	ReplicasAfter int32 `json:"replicas_after"`
	Leaders       int32 `json:"leaders"`
	LeadersAfter  int32 `json:"leaders_after"`
}

// RebalancePlan is the JSON of a plan that was not begun.
type RebalancePlan struct {
	Copies int32        `json:"copies"`
	More   bool         `json:"more"`
	Load   []ServerLoad `json:"load"`
	Moves  []Move       `json:"moves"`
}

var phaseNames = map[pb.MovePhase]string{
	pb.MovePhase_MOVE_PHASE_WAITING: "waiting", pb.MovePhase_MOVE_PHASE_COPYING: "copying",
	pb.MovePhase_MOVE_PHASE_DONE: "done", pb.MovePhase_MOVE_PHASE_GONE: "gone",
}

func moveJSON(m *pb.Move) Move {
	out := Move{TableID: m.GetBucket().GetTableId(), Bucket: m.GetBucket().GetBucket(), From: list(m.GetFrom()), To: list(m.GetTo())}
	if m.GetBucket() != nil {
		out.PartitionID = m.GetBucket().PartitionId
	}
	return out
}

// RebalanceJSON makes the JSON of a plan with how far its moves are. Buckets that
// were dropped count as done.
func RebalanceJSON(p *pb.Rebalance, phases []pb.MovePhase) Rebalance {
	row := rebalanceJSON(p)
	out := Rebalance{
		ID: row.ID, Status: row.Status, InFlight: p.GetInFlight(), StartedMS: row.StartedMS, Revision: row.Revision, Moves: []Move{},
	}
	for i, m := range p.GetMoves() {
		v := moveJSON(m)
		switch {
		case i < len(phases):
			v.Phase = phaseNames[phases[i]]
		case m.GetDone():
			v.Phase = "done"
		default:
			v.Phase = "not_done"
		}
		switch v.Phase {
		case "waiting":
			out.Waiting++
		case "copying":
			out.Copying++
		case "not_done":
			out.NotDone++
		default:
			out.Done++
		}
		out.Moves = append(out.Moves, v)
	}
	return out
}

// RebalancePlanJSON makes the JSON of a plan that was not begun.
func RebalancePlanJSON(p *pb.PlanRebalanceResponse) RebalancePlan {
	out := RebalancePlan{Copies: p.GetCopies(), More: p.GetMore(), Load: []ServerLoad{}, Moves: []Move{}}
	for _, l := range p.GetLoad() {
		out.Load = append(out.Load, ServerLoad{
			ServerID: l.GetServerId(), Replicas: l.GetReplicas(), ReplicasAfter: l.GetReplicasAfter(),
			Leaders: l.GetLeaders(), LeadersAfter: l.GetLeadersAfter(),
		})
	}
	for _, m := range p.GetMoves() {
		out.Moves = append(out.Moves, moveJSON(m))
	}
	return out
}
