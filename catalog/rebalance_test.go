package catalog

import (
	"slices"
	"testing"
)

func ids(list ...ServerID) []ServerID { return list }

// oneBucket returns a history with servers 0..n-1 and one bucket with replicas.
func oneBucket(t *testing.T, servers int, replicas ...ServerID) (*history, BucketRef) {
	t.Helper()
	h := placed(t, servers, itoa(int64(len(replicas))), 1)
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p"), Assignment: [][]ServerID{replicas}})
	return h, partitionRef(h, "p", 0)
}

func (h *history) bucket(ref BucketRef) (BucketState, []ServerID) {
	h.t.Helper()
	s, replicas, ok := h.last.Bucket(ref)
	if !ok {
		h.t.Fatalf("%s is missing", ref)
	}
	return s, replicas
}

// inSync lets the leader of a bucket report its in-sync replicas.
func (h *history) inSync(ref BucketRef, isr ...ServerID) Result {
	h.t.Helper()
	s, _ := h.bucket(ref)
	v, ok := h.last.Server(s.Leader)
	if !ok {
		h.t.Fatalf("%s has no leader: %+v", ref, s)
	}
	res := h.must(AdjustISR{Server: s.Leader, Incarnation: v.Incarnation, Changes: []ISRChange{
		{Bucket: ref, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, ISR: isr},
	}})
	if res.Buckets[0] != Done {
		h.t.Fatalf("ISR %v of %s: %v", isr, ref, res.Buckets[0])
	}
	return res
}

// toDelete are the servers that have to delete a replica of a bucket.
func (h *history) toDelete(ref BucketRef) (out []ServerID) {
	h.last.DroppedBuckets(func(d *DroppedObject) bool {
		if d.bucket() == ref {
			for _, p := range d.Pending {
				out = append(out, p.Server)
			}
		}
		return true
	})
	return out
}

func (h *history) wantBucket(ref BucketRef, leader ServerID, epoch LeaderEpoch, isr, replicas []ServerID) {
	h.t.Helper()
	s, got := h.bucket(ref)
	if s.Leader != leader || s.LeaderEpoch != epoch || !slices.Equal(s.ISR, isr) || !slices.Equal(got, replicas) {
		h.t.Errorf("%s: leader %d at epoch %d, ISR %v, replicas %v; want %d at %d, %v, %v",
			ref, s.Leader, s.LeaderEpoch, s.ISR, got, leader, epoch, isr, replicas)
	}
}

// TestReassign_Steps: a bucket has old and new replicas until the new ones are
// in sync; then it has the new ones only, led by the first of them, and the old
// ones are to be deleted until they say so.
func TestReassign_Steps(t *testing.T) {
	h, ref := oneBucket(t, 5, 0, 1, 2)
	res, ev := h.try(Reassign{Moves: []Move{{Bucket: ref, To: ids(3, 4, 1)}}})
	if res.Code != Done || res.Count != 1 || ev == nil || len(ev.Changes) != 2 {
		t.Fatalf("reassign: %+v, event %+v", res, ev)
	}
	h.wantBucket(ref, 0, 0, ids(0, 1, 2), ids(3, 4, 1, 0, 2))
	h.inSync(ref, 0, 1, 2, 3)
	h.wantBucket(ref, 0, 0, ids(0, 1, 2, 3), ids(3, 4, 1, 0, 2))
	before, _ := h.bucket(ref)
	h.inSync(ref, 0, 1, 2, 3, 4)
	h.wantBucket(ref, 3, 1, ids(1, 3, 4), ids(3, 4, 1))
	if s, _ := h.bucket(ref); s.BucketEpoch != before.BucketEpoch+2 {
		t.Errorf("bucket epoch went from %d to %d", before.BucketEpoch, s.BucketEpoch)
	}
	if got := h.toDelete(ref); !slices.Equal(got, ids(0, 2)) {
		t.Fatalf("%v have replicas to delete, want 0 and 2", got)
	}
	if n := h.last.ReplicasOn(0); n != 0 {
		t.Errorf("server 0 still has %d replicas", n)
	}
	ack := func(id ServerID, failed bool) {
		h.must(AckDeletion{Server: id, Incarnation: h.incarnation(id), Objects: []DeletionAck{
			{Table: ref.Table, Partition: ref.Partition, Bucket: Some(ref.Bucket), Failed: failed},
		}})
	}
	ack(0, false)
	for range maxDeletionTries {
		if got := h.toDelete(ref); !slices.Equal(got, ids(2)) {
			t.Fatalf("%v have replicas to delete, want 2", got)
		}
		ack(2, true)
	}
	if got := h.toDelete(ref); got != nil {
		t.Errorf("%v have replicas to delete after %d tries", got, maxDeletionTries)
	}
	if r := h.last.Rebalance(); r.Status != RebalanceCompleted || !r.Moves[0].Done {
		t.Errorf("plan at the end: %+v", r)
	}
	h.must(UnregisterServer{ID: 0})
}

// TestReassign_Kinds: moves that copy nothing are done at once; more and fewer
// replicas work.
func TestReassign_Kinds(t *testing.T) {
	for _, c := range []struct {
		name            string
		to              []ServerID
		isrBefore       []ServerID
		leader          ServerID
		epoch           LeaderEpoch
		isr, replicas   []ServerID
		done            bool
		isrAfter        []ServerID
		leader2         ServerID
		epoch2          LeaderEpoch
		isr2, replicas2 []ServerID
	}{
		{"order", ids(2, 0, 1), ids(0, 1, 2), 2, 1, ids(0, 1, 2), ids(2, 0, 1), true, nil, 0, 0, nil, nil},
		{"order, first not in sync", ids(2, 0, 1), ids(0, 1), 0, 0, ids(0, 1), ids(2, 0, 1), true, nil, 0, 0, nil, nil},
		{"fewer", ids(1, 0), ids(0, 1, 2), 1, 1, ids(0, 1), ids(1, 0), true, nil, 0, 0, nil, nil},
		{"fewer, same leader", ids(0, 1), ids(0, 1, 2), 0, 0, ids(0, 1), ids(0, 1), true, nil, 0, 0, nil, nil},
		{
			"fewer, not in sync", ids(0, 1), ids(0, 2), 0, 0, ids(0, 2), ids(0, 1, 2), false,
			ids(0, 1, 2), 0, 0, ids(0, 1), ids(0, 1),
		},
		{
			"more", ids(3, 0, 1, 2), ids(0, 1, 2), 0, 0, ids(0, 1, 2), ids(3, 0, 1, 2), false,
			ids(0, 1, 2, 3), 3, 1, ids(0, 1, 2, 3), ids(3, 0, 1, 2),
		},
		{
			"all others", ids(3, 4), ids(0), 0, 0, ids(0), ids(3, 4, 0, 1, 2), false,
			ids(0, 3, 4), 3, 1, ids(3, 4), ids(3, 4),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, ref := oneBucket(t, 5, 0, 1, 2)
			if len(c.isrBefore) < 3 {
				h.inSync(ref, c.isrBefore...)
			}
			h.must(Reassign{Moves: []Move{{Bucket: ref, To: c.to}}})
			h.wantBucket(ref, c.leader, c.epoch, c.isr, c.replicas)
			if done := h.last.Rebalance().Status == RebalanceCompleted; done != c.done {
				t.Fatalf("plan after the command: %+v", h.last.Rebalance())
			}
			if c.done {
				return
			}
			h.unchanged(StepRebalance{ID: h.last.Rebalance().ID})
			h.inSync(ref, c.isrAfter...)
			h.wantBucket(ref, c.leader2, c.epoch2, c.isr2, c.replicas2)
			if h.last.Rebalance().Status != RebalanceCompleted {
				t.Errorf("plan at the end: %+v", h.last.Rebalance())
			}
		})
	}
}

// TestReassign_NewBucket: a bucket that never had a live replica has no data to
// copy.
func TestReassign_NewBucket(t *testing.T) {
	h, ref := oneBucket(t, 3, 0)
	h.mark(0, func(v *Server) { v.Live = false })
	h.b.moveBuckets([]Move{{Bucket: ref}}, func(*Move, BucketState, bool, aliveFunc) bucketMove {
		return bucketMove{BucketState{Leader: NoServer}, ids(0)}
	})
	h.last = h.b.Publish()
	h.must(Reassign{Moves: []Move{{Bucket: ref, To: ids(1, 2)}}})
	h.wantBucket(ref, 1, 0, ids(1, 2), ids(1, 2))
	if got := h.toDelete(ref); got != nil {
		t.Errorf("%v have to delete what they never had", got)
	}
}

// TestReassign_Refused: every refusal names the bucket or server, value and
// bound, and changes nothing.
func TestReassign_Refused(t *testing.T) {
	h, ref := oneBucket(t, 6, 0, 1)
	h.must(TagServer{IDs: ids(4), Tag: PermanentOffline})
	h.must(TagServer{IDs: ids(5), Tag: TemporaryOffline})
	h.mark(3, func(v *Server) { v.Live = false })
	far, wrong := ref, ref
	far.Bucket, wrong.Table = 1, 77
	move := func(to ...ServerID) []Move { return []Move{{Bucket: ref, From: ids(0, 1), To: to}} }
	for _, c := range []struct {
		name  string
		moves []Move
		code  Code
		text  string
	}{
		{"none", nil, ErrInvalidArgument, "0 moves are not in 1..4096"},
		{"too many", make([]Move, MaxMoves+1), ErrInvalidArgument, "4097 moves"},
		{"bucket", []Move{{Bucket: far, To: ids(2)}}, ErrUnknownTableOrBucket, "bucket 1 of partition 0"},
		{"table", []Move{{Bucket: wrong, To: ids(2)}}, ErrUnknownTableOrBucket, "table 77"},
		{"negative", []Move{{Bucket: BucketRef{Table: ref.Table, Partition: ref.Partition, Bucket: -1}, To: ids(2)}}, ErrUnknownTableOrBucket, "bucket -1"},
		{"from", []Move{{Bucket: ref, From: ids(1, 0), To: ids(2)}}, ErrVersionConflict, "has replicas [0 1], not [1 0]"},
		{"no replicas", move(), ErrInvalidReplicationFactor, "to have 0 replicas, want 1..128"},
		{"many replicas", move(make([]ServerID, 129)...), ErrInvalidReplicationFactor, "129"},
		{"unknown", move(0, 9), ErrServerNotExist, "tablet server 9"},
		{"twice", move(2, 2), ErrInvalidArgument, "server 2 is given twice"},
		{"dead", move(0, 3), ErrIneligibleReplica, "tablet server 3"},
		{"permanent", move(0, 4), ErrIneligibleReplica, "tablet server 4"},
		{"temporary", move(0, 5), ErrIneligibleReplica, "tablet server 5"},
		{"same bucket", append(move(2), move(0)...), ErrInvalidArgument, "is named twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			h.refused(c.code, Reassign{Moves: c.moves}, c.text)
			h.refused(c.code, StartRebalance{ID: "r", Moves: c.moves}, c.text)
		})
	}
	h.t = t
	h.unchanged(Reassign{Moves: move(0, 1)})
	h.refused(ErrInvalidArgument, StartRebalance{ID: "r", Moves: move(0, 1)}, "changes nothing")
	h.refused(ErrVersionConflict, StartRebalance{ID: "r", Moves: []Move{{Bucket: ref, To: ids(2)}}}, "not []")
	h.refused(ErrInvalidArgument, StartRebalance{Moves: move(2)}, "id is empty")
	h.refused(ErrInvalidArgument, StartRebalance{ID: "r", Moves: move(2), InFlight: 1025}, "1025 moves in flight are above 1024")
	h.refused(ErrNoRebalanceInProgress, StepRebalance{ID: "r"}, `"r"`)
	h.refused(ErrNoRebalanceInProgress, CancelRebalance{})
	h.must(StartRebalance{ID: "r", Moves: move(2)})
	h.refused(ErrRebalanceFailure, StartRebalance{ID: "s", Moves: move(2)}, "rebalance r is running")
	h.refused(ErrRebalanceFailure, Reassign{Moves: []Move{{Bucket: ref, To: ids(0, 2)}}}, "is being moved to [2] by rebalance r")
	h.refused(ErrNoRebalanceInProgress, StepRebalance{ID: "s"})
	h.refused(ErrNoRebalanceInProgress, CancelRebalance{ID: "s"})
	h.must(CancelRebalance{ID: "r"})
	h.refused(ErrRebalanceFailure, StartRebalance{ID: "r", Moves: move(2)}, "run already")
}

// TestRebalance_Throttle: no more moves copy than the plan allows; one that ends
// lets the next one begin, and those to a server that is down hold back nobody.
func TestRebalance_Throttle(t *testing.T) {
	h := placed(t, 4, "1", 8)
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p"), Assignment: [][]ServerID{{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}}})
	var moves []Move
	for i := range 8 {
		to := ids(1)
		if i < 2 {
			to = ids(2)
		}
		moves = append(moves, Move{Bucket: partitionRef(h, "p", i), From: ids(0), To: to})
	}
	slices.Reverse(moves)
	h.must(StartRebalance{ID: "r", Moves: moves, InFlight: 2})
	copying := func() (out []BucketID) {
		for _, m := range h.last.Rebalance().Moves {
			if h.last.Phase(m) == MoveCopying {
				out = append(out, m.Bucket.Bucket)
			}
		}
		return out
	}
	want := func(list ...BucketID) {
		t.Helper()
		if got := copying(); !slices.Equal(got, list) {
			t.Fatalf("buckets %v are copied, want %v", got, list)
		}
	}
	want(0, 1)
	h.unchanged(StepRebalance{ID: "r"})
	h.env.Lease += 20_000
	h.must(RenewLeases{Leases: []Lease{{0, 1}, {1, 1}, {3, 1}}})
	h.must(ExpireServers{Servers: []Expiry{lease(h, 2)}})
	if _, due := h.last.RebalanceDue(); !due {
		t.Error("no step is due after the target of all copies was lost")
	}
	h.must(StepRebalance{ID: "r"})
	want(0, 1, 2, 3)
	h.unchanged(StepRebalance{ID: "r"})
	h.inSync(partitionRef(h, "p", 3), 0, 1)
	want(0, 1, 2, 4) // the next one began with it
	for len(copying()) > 2 {
		h.inSync(partitionRef(h, "p", int(copying()[2])), 0, 1)
	}
	want(0, 1)
	h.unchanged(StepRebalance{ID: "r"})
	h.must(RegisterServer{ID: 2, DirectoryID: dirOf(2), Listeners: []string{"h:1"}, TTL: 10_000})
	h.inSync(partitionRef(h, "p", 0), 0, 2)
	h.must(DropPartitions{Table: "d.t", Specs: dt("p")})
	h.must(StepRebalance{ID: "r"})
	r := h.last.Rebalance()
	if r.Status != RebalanceCompleted {
		t.Errorf("plan after its last bucket was dropped: %+v", r)
	}
}

// TestRebalance_TargetGone: what waits for a server that is not registered any
// more, or is to be emptied, is given up.
func TestRebalance_TargetGone(t *testing.T) {
	h := placed(t, 4, "1", 3)
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p"), Assignment: [][]ServerID{{0}, {0}, {0}}})
	to := []ServerID{1, 2, 3}
	var moves []Move
	for i := range 3 {
		moves = append(moves, Move{Bucket: partitionRef(h, "p", i), From: ids(0), To: to[i : i+1]})
	}
	h.must(StartRebalance{ID: "r", Moves: moves, InFlight: 1})
	h.must(UnregisterServer{ID: 2})
	h.must(TagServer{IDs: ids(3), Tag: TemporaryOffline})
	h.inSync(partitionRef(h, "p", 0), 0, 1)
	h.unchanged(StepRebalance{ID: "r"}) // 3 may come back
	h.must(TagServer{IDs: ids(3), Tag: TemporaryOffline, Remove: true})
	h.must(TagServer{IDs: ids(3), Tag: PermanentOffline})
	h.must(StepRebalance{ID: "r"})
	r := h.last.Rebalance()
	if r.Status != RebalanceFailed || !r.Moves[0].Done || r.Moves[1].Done || r.Moves[2].Done {
		t.Errorf("plan: %+v", r)
	}
}

// TestRebalance_Cancel: finished moves stay, those in flight go back, and a new
// replica that alone has the data stays.
func TestRebalance_Cancel(t *testing.T) {
	h := placed(t, 4, "1", 3)
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p"), Assignment: [][]ServerID{{0}, {0}, {0, 1}}})
	ref := func(i int) BucketRef { return partitionRef(h, "p", i) }
	h.must(StartRebalance{ID: "r", InFlight: 2, Moves: []Move{
		{Bucket: ref(0), From: ids(0), To: ids(1)}, {Bucket: ref(1), From: ids(0), To: ids(1)}, {Bucket: ref(2), From: ids(0, 1), To: ids(2, 3)},
	}})
	h.inSync(ref(0), 0, 1)
	h.inSync(ref(2), 0, 1, 2)
	h.env.Lease += 20_000
	h.must(RenewLeases{Leases: []Lease{{2, 1}, {3, 1}}})
	h.must(ExpireServers{Servers: []Expiry{lease(h, 0), lease(h, 1)}})
	h.wantBucket(ref(2), 2, 1, ids(2), ids(2, 3, 0, 1))
	if res := h.must(CancelRebalance{}); res.Count != 2 {
		t.Errorf("%d moves were taken back, want 2", res.Count)
	}
	h.wantBucket(ref(0), NoServer, 2, ids(1), ids(1))
	h.wantBucket(ref(1), NoServer, 1, ids(0), ids(0))
	h.wantBucket(ref(2), 2, 1, ids(2), ids(0, 1, 2))
	if got := h.toDelete(ref(1)); !slices.Equal(got, ids(1)) {
		t.Errorf("%v have to delete a replica of bucket 1, want 1", got)
	}
	r := h.last.Rebalance()
	if r.Status != RebalanceCanceled || !r.Moves[0].Done || r.Moves[1].Done || r.Moves[2].Done {
		t.Errorf("plan: %+v", r)
	}
	// 1 gets a replica again before it deleted the old one: it has nothing to delete.
	h.must(RegisterServer{ID: 1, DirectoryID: dirOf(1), Listeners: []string{"h:1"}, TTL: 10_000})
	h.must(Reassign{Moves: []Move{{Bucket: ref(1), To: ids(1, 0)}}})
	if got := h.toDelete(ref(1)); got != nil {
		t.Errorf("%v have to delete a replica they have again", got)
	}
}

// TestRebalance_CancelUnderShutdown: a leader that shuts down and that nobody can
// relieve leads on, also if its replica was to go back.
func TestRebalance_CancelUnderShutdown(t *testing.T) {
	h, ref := oneBucket(t, 4, 0, 2)
	h.inSync(ref, 0)
	h.must(Reassign{Moves: []Move{{Bucket: ref, To: ids(1, 3)}}})
	h.inSync(ref, 0, 1)
	h.must(ElectLeaders{Reason: ElectPreferred, Buckets: []BucketRef{ref}})
	h.wantBucket(ref, 1, 1, ids(0, 1), ids(1, 3, 0, 2))
	h.mark(0, func(v *Server) { v.ShuttingDown = true })
	h.must(ElectLeaders{Reason: ElectControlledShutdown, Server: Some(ServerID(1))})
	h.wantBucket(ref, 1, 1, ids(0, 1), ids(1, 3, 0, 2))
	h.must(CancelRebalance{})
	h.wantBucket(ref, 1, 1, ids(0, 1), ids(0, 2, 1))
}

// TestReassign_Joins: a bucket is moved by hand while a plan runs.
func TestReassign_Joins(t *testing.T) {
	h := placed(t, 4, "1", 4)
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p"), Assignment: [][]ServerID{{0}, {0}, {0}, {0}}})
	ref := func(i int) BucketRef { return partitionRef(h, "p", i) }
	h.must(StartRebalance{ID: "r", InFlight: 1, Moves: []Move{
		{Bucket: ref(0), From: ids(0), To: ids(1)}, {Bucket: ref(2), From: ids(0), To: ids(1)},
	}})
	h.must(Reassign{Moves: []Move{{Bucket: ref(3), To: ids(2)}, {Bucket: ref(1), To: ids(2)}}})
	h.wantBucket(ref(1), 0, 0, ids(0), ids(2, 0))
	h.wantBucket(ref(2), 0, 0, ids(0), ids(0)) // waits: three are in flight
	h.inSync(ref(1), 0, 2)
	h.wantBucket(ref(1), 2, 1, ids(2), ids(2))
	h.must(Reassign{Moves: []Move{{Bucket: ref(1), To: ids(3)}}})
	r := h.last.Rebalance()
	if r.ID != "r" || len(r.Moves) != 4 {
		t.Errorf("plan: %+v", r)
	}
	for _, i := range []int{0, 1, 3} {
		s, replicas := h.bucket(ref(i))
		h.inSync(ref(i), s.Leader, replicas[0])
	}
	h.inSync(ref(2), 0, 1)
	if r := h.last.Rebalance(); r.Status != RebalanceCompleted {
		t.Errorf("plan: %+v", r)
	}
}

// TestReassign_Dropped: what a dropped object's servers still had to delete of
// single buckets goes into the record of the drop.
func TestReassign_Dropped(t *testing.T) {
	for _, drop := range []Command{DropPartitions{Table: "d.t", Specs: dt("p")}, DropTable{Table: "d.t"}} {
		h, ref := oneBucket(t, 3, 0)
		h.must(Reassign{Moves: []Move{{Bucket: ref, To: ids(1)}}})
		h.inSync(ref, 0, 1)
		h.must(drop)
		want := []PendingDeletion{{Server: 0}, {Server: 1}}
		check := func(d *DroppedObject) bool {
			if !slices.Equal(d.Pending, want) {
				t.Errorf("after %s: %+v", drop.Kind(), d)
			}
			return true
		}
		h.last.DroppedPartitions(0, check)
		h.last.DroppedTables(check)
		if got := h.toDelete(ref); got != nil {
			t.Errorf("%v have to delete replicas of a bucket that is gone", got)
		}
	}
	h, ref := oneBucket(t, 3, 0)
	h.must(Reassign{Moves: []Move{{Bucket: ref, To: ids(1)}}})
	h.inSync(ref, 0, 1)
	h.must(UnregisterServer{ID: 0})
	if got := h.toDelete(ref); got != nil {
		t.Errorf("%v have to delete replicas and are not registered", got)
	}
}
