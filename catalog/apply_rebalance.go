package catalog

import "slices"

// Bounds of a plan.
const (
	// MaxMoves bounds the moves of one plan, and so the row that holds it.
	MaxMoves = 4096
	// DefaultInFlight is how many moves copy data at the same time if the plan
	// does not say; MaxInFlight is the most it may say.
	DefaultInFlight = 32
	MaxInFlight     = 1024
)

// running returns the plan that is being carried out, or nil.
func (s *State) running() *Rebalance {
	if r := s.rebal; r != nil && r.Status == RebalanceRunning {
		return r
	}
	return nil
}

// find returns the move of a bucket.
func (r *Rebalance) find(ref BucketRef) (*Move, bool) {
	i, ok := slices.BinarySearchFunc(r.Moves, ref, func(m Move, ref BucketRef) int { return m.Bucket.Compare(ref) })
	if !ok {
		return nil, false
	}
	return &r.Moves[i], true
}

func (b *Batch) startRebalance(c StartRebalance) (Result, *Error) {
	if err := b.checkPlan(c); err != nil {
		return Result{}, err
	}
	moves, err := b.checkMoves(c.Moves, false)
	if err != nil {
		return Result{}, err
	}
	inFlight := c.InFlight
	if inFlight == 0 {
		inFlight = DefaultInFlight
	}
	r := &Rebalance{ID: c.ID, Status: RebalanceRunning, Moves: moves, InFlight: inFlight, Started: b.s.cluster.Wall, Revision: b.rev}
	b.putRebalance(r)
	b.stepPlan(r)
	return Result{Changed: true, Count: int32(len(moves))}, nil
}

func (b *Batch) checkPlan(c StartRebalance) *Error {
	if c.ID == "" {
		return refuse(ErrInvalidArgument, "rebalance id is empty")
	}
	if err := checkText("rebalance id", c.ID, maxNameBytes); err != nil {
		return err
	}
	if c.InFlight > MaxInFlight {
		return refuseLimit(ErrInvalidArgument, MaxInFlight, uint64(c.InFlight), "%d moves in flight are above %d", c.InFlight, MaxInFlight)
	}
	switch r := b.s.rebal; {
	case r == nil:
	case r.Status == RebalanceRunning:
		return refuse(ErrRebalanceFailure, "rebalance %s is running; wait for it or cancel it", r.ID)
	case r.ID == c.ID:
		return refuse(ErrRebalanceFailure, "rebalance %s has been run already; give the new plan another id", r.ID)
	}
	return nil
}

// checkMoves validates moves and returns them sorted, with what the buckets have
// as From. lax leaves out moves that change nothing and takes an empty From for
// whatever is there.
func (b *Batch) checkMoves(in []Move, lax bool) ([]Move, *Error) {
	if n := len(in); n < 1 || n > MaxMoves {
		return nil, refuseLimit(ErrInvalidArgument, MaxMoves, uint64(n), "%d moves are not in 1..%d", n, MaxMoves)
	}
	out := make([]Move, 0, len(in))
	for _, m := range in {
		replicas, err := b.checkMove(m, lax)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(replicas, m.To) {
			out = append(out, Move{Bucket: m.Bucket, From: replicas, To: m.To})
		} else if !lax {
			return nil, refuse(ErrInvalidArgument, "the move of %s changes nothing: it has replicas %s", m.Bucket, idList(replicas))
		}
	}
	slices.SortFunc(out, func(a, b Move) int { return a.Bucket.Compare(b.Bucket) })
	for i := 1; i < len(out); i++ {
		if out[i].Bucket == out[i-1].Bucket {
			return nil, refuse(ErrInvalidArgument, "%s is named twice", out[i].Bucket)
		}
	}
	return out, nil
}

// checkMove validates one move and returns the replicas of its bucket.
func (b *Batch) checkMove(m Move, lax bool) ([]ServerID, *Error) {
	_, replicas, ok := b.s.Bucket(m.Bucket)
	if !ok {
		return nil, refuse(ErrUnknownTableOrBucket, "%s does not exist or has no replicas yet", m.Bucket)
	}
	if t, _ := b.s.tableIDs.get(m.Bucket.Table); t.Importing() || t.Dropped {
		return nil, refuse(ErrTableImporting, "table %s of %s is being imported or dropped", t.Path, m.Bucket)
	}
	if (!lax || len(m.From) > 0) && !slices.Equal(replicas, m.From) {
		return nil, refuse(ErrVersionConflict, "%s has replicas %s, not %s: plan anew", m.Bucket, idList(replicas), idList(m.From))
	}
	if n := len(m.To); n < 1 || n > maxReplication {
		return nil, refuseLimit(ErrInvalidReplicationFactor, maxReplication, uint64(n), "%s is to have %d replicas, want 1..%d", m.Bucket, n, maxReplication)
	}
	for i, id := range m.To {
		v, ok := b.s.servers.get(id)
		switch {
		case !ok:
			return nil, refuse(ErrServerNotExist, "tablet server %d, a new replica of %s, is not registered", id, m.Bucket)
		case slices.Contains(m.To[:i], id):
			return nil, refuse(ErrInvalidArgument, "tablet server %d is given twice for %s", id, m.Bucket)
		case !slices.Contains(replicas, id) && !v.assignable():
			return nil, refuse(ErrIneligibleReplica, "tablet server %d, a new replica of %s, is not live, is draining or has a tag", id, m.Bucket)
		}
	}
	return replicas, nil
}

// idList writes ids as [1 2 3].
func idList(ids []ServerID) string {
	s := "["
	for i, id := range ids {
		if i > 0 {
			s += " "
		}
		s += itoa(int64(id))
	}
	return s + "]"
}

// assignable reports whether a server may get new replicas.
func (v *Server) assignable() bool { return v.Live && !v.ShuttingDown && v.Tag == NoTag }

func (b *Batch) stepRebalance(c StepRebalance) (Result, *Error) {
	r := b.s.running()
	if r == nil || r.ID != c.ID {
		return Result{}, refuse(ErrNoRebalanceInProgress, "rebalance %q is not running", c.ID)
	}
	return Result{Changed: b.stepPlan(r)}, nil
}

func (b *Batch) cancelRebalance(c CancelRebalance) (Result, *Error) {
	r := b.s.running()
	switch {
	case r == nil:
		return Result{}, refuse(ErrNoRebalanceInProgress, "no rebalance is running")
	case c.ID != "" && r.ID != c.ID:
		return Result{}, refuse(ErrNoRebalanceInProgress, "rebalance %q is not running, %s is", c.ID, r.ID)
	}
	var back []Move
	for _, m := range r.Moves {
		if b.s.Phase(m) == MoveCopying {
			back = append(back, m)
		}
	}
	b.moveBuckets(back, takenBack)
	b.endPlan(r, RebalanceCanceled)
	return Result{Changed: true, Count: int32(len(back))}, nil
}

// reassign moves buckets by hand: as a plan of its own, or with the one that
// runs, of which it does not wait.
func (b *Batch) reassign(c Reassign) (Result, *Error) {
	moves, err := b.checkMoves(c.Moves, true)
	if err != nil || len(moves) == 0 {
		return Result{}, err
	}
	r := &Rebalance{
		ID: "reassign-" + utoa(uint64(b.rev)), Status: RebalanceRunning, InFlight: MaxInFlight, Started: b.s.cluster.Wall, Revision: b.rev,
	}
	if old := b.s.running(); old != nil {
		if r, err = b.joined(old, moves); err != nil {
			return Result{}, err
		}
	} else {
		r.Moves = moves
	}
	b.putRebalance(r)
	b.moveBuckets(moves, begun)
	b.stepPlan(r)
	return Result{Changed: true, Count: int32(len(moves))}, nil
}

// joined is the running plan with further moves, without finished ones of the
// same buckets.
func (b *Batch) joined(old *Rebalance, moves []Move) (*Rebalance, *Error) {
	r := *old
	r.Revision = b.rev
	r.Moves = slices.Clone(old.Moves)
	for _, m := range moves {
		i, found := slices.BinarySearchFunc(r.Moves, m.Bucket, func(m Move, ref BucketRef) int { return m.Bucket.Compare(ref) })
		switch {
		case !found:
			r.Moves = slices.Insert(r.Moves, i, m)
		case b.s.Phase(r.Moves[i]) != MoveDone:
			return nil, refuse(ErrRebalanceFailure, "%s is being moved to %s by rebalance %s; wait for it or cancel it", m.Bucket, idList(r.Moves[i].To), old.ID)
		default:
			r.Moves[i] = m
		}
	}
	if n := len(r.Moves); n > MaxMoves {
		return nil, refuseLimit(ErrTooLarge, MaxMoves, uint64(n), "rebalance %s would have %d moves, above %d", old.ID, n, MaxMoves)
	}
	return &r, nil
}

// finishMove ends the move of a bucket whose ISR changed, if it can.
func (b *Batch) finishMove(ref BucketRef) bool {
	r := b.s.running()
	if r == nil {
		return false
	}
	m, ok := r.find(ref)
	if !ok {
		return false
	}
	s, replicas, _ := b.s.Bucket(ref)
	if !m.begunWith(replicas) || b.s.Phase(*m) == MoveDone && !m.grows() {
		return false
	}
	t, _ := b.s.tableIDs.get(ref.Table)
	next, ok := finished(m, s, t.Standby(), b.alive)
	if !ok {
		return false
	}
	b.moveBuckets([]Move{*m}, func(m *Move, _ BucketState, _ bool, _ aliveFunc) bucketMove { return bucketMove{next, m.To} })
	return true
}

// moveBuckets gives buckets of a sorted list of moves other replicas, one row
// for all buckets of a table or partition.
func (b *Batch) moveBuckets(moves []Move, f func(*Move, BucketState, bool, aliveFunc) bucketMove) {
	for len(moves) > 0 {
		n := 1
		for n < len(moves) && moves[n].Bucket.sameObject(moves[0].Bucket) {
			n++
		}
		b.moveObject(moves[:n], f)
		moves = moves[n:]
	}
}

func (b *Batch) moveObject(moves []Move, f func(*Move, BucketState, bool, aliveFunc) bucketMove) {
	p, _ := b.s.bucket(moves[0].Bucket)
	t, _ := b.s.tableIDs.get(moves[0].Bucket.Table)
	q := &Placement{Replicas: slices.Clone(p.Replicas), Buckets: slices.Clone(p.Buckets)}
	buckets := make([]int, len(moves))
	for i := range moves {
		at := moves[i].Bucket.Bucket
		buckets[i] = int(at)
		next := f(&moves[i], p.Buckets[at], t.Standby(), b.alive)
		next.s.CoordinatorEpoch = b.s.cluster.Coordinator
		q.Buckets[at], q.Replicas[at] = next.s, next.replicas
	}
	b.setPlacement(moves[0].Bucket, q, buckets)
	for _, m := range moves {
		old, now := p.Replicas[m.Bucket.Bucket], q.Replicas[m.Bucket.Bucket]
		b.regained(m.Bucket, now)
		if p.Buckets[m.Bucket.Bucket].Ready { // else there was no replica yet
			b.movedAway(m.Bucket, keep(old, func(id ServerID) bool { return !slices.Contains(now, id) }))
		}
	}
}

// stepPlan begins what the plan lets begin, and ends it if nothing is left. It
// reports whether anything changed.
func (b *Batch) stepPlan(r *Rebalance) bool {
	next := b.s.planStep(r)
	b.moveBuckets(next.begin, begun)
	if next.left == 0 && len(next.begin) > 0 { // what had nothing to copy is done
		next = b.s.planStep(r)
	}
	if next.left+len(next.begin) > 0 {
		return len(next.begin) > 0
	}
	status := RebalanceCompleted
	if next.lost > 0 {
		status = RebalanceFailed
	}
	b.endPlan(r, status)
	return true
}

// endPlan marks the moves that were carried out.
func (b *Batch) endPlan(r *Rebalance, status RebalanceStatus) {
	n := *r
	n.Status, n.Revision = status, b.rev
	n.Moves = slices.Clone(r.Moves)
	for i := range n.Moves {
		n.Moves[i].Done = b.s.Phase(n.Moves[i]) == MoveDone
	}
	b.putRebalance(&n)
}

// planStep is what the next step of a plan does.
type planStep struct {
	begin []Move
	// left are the moves that copy or will, after those to begin; lost those that
	// never will.
	left, lost int
}

// planStep decides the next step. Moves that copy nothing are not held back, and
// those whose new replicas are on servers that are gone for the time do not hold
// back others.
func (s *State) planStep(r *Rebalance) planStep {
	var next planStep
	var waiting []Move
	flying := uint32(0)
	for _, m := range r.Moves {
		switch s.Phase(m) {
		case MoveCopying:
			if next.left++; s.reach(m, false) == reachable {
				flying++
			}
		case MoveWaiting:
			waiting = append(waiting, m)
		case MoveDone, MoveGone:
		}
	}
	for _, m := range waiting {
		copies := len(m.Added()) > 0
		switch reach := s.reach(m, true); {
		case m.begunWith(m.From) && !s.finishable(m): // it only drops replicas, and waits for the others to be in sync
			next.left++
		case reach == lost:
			next.lost++
		case reach == away || copies && flying >= r.InFlight:
			next.left++
		default:
			next.begin = append(next.begin, m)
			if copies {
				flying++
			}
		}
	}
	return next
}

// reach of the servers that a move adds.
type reach uint8

const (
	reachable reach = iota
	away            // one is not live, shuts down, or gets nothing for the time
	lost            // one is not registered any more, or gets nothing for ever
)

// reach says whether a move can copy; begins also asks whether it may begin.
func (s *State) reach(m Move, begins bool) reach {
	out := reachable
	for _, id := range m.Added() {
		v, ok := s.servers.get(id)
		switch {
		case !ok || begins && v.Tag == PermanentOffline:
			return lost
		case !v.Live || v.ShuttingDown || begins && v.Tag != NoTag:
			out = away
		}
	}
	return out
}

// finishable reports whether a move's new replicas are all in sync.
func (s *State) finishable(m Move) bool {
	state, _, ok := s.Bucket(m.Bucket)
	return ok && (!state.Ready || allIn(m.To, state.ISR))
}

// RebalanceDue reports whether StepRebalance would change anything. It looks at
// every move of the plan.
func (s *State) RebalanceDue() (id string, due bool) {
	r := s.running()
	if r == nil {
		return "", false
	}
	next := s.planStep(r)
	return r.ID, len(next.begin) > 0 || next.left == 0
}
