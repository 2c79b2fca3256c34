package catalog

import "slices"

// MovePhase says how far a move of the running plan is.
type MovePhase uint8

// Phases of a move, in the order in which it goes through them.
const (
	// MoveWaiting: the bucket has the replicas it had when the plan began.
	MoveWaiting MovePhase = iota
	// MoveCopying: it has the old and the new ones; the new ones catch up.
	MoveCopying
	// MoveDone: it has the new ones.
	MoveDone
	// MoveGone: the bucket was dropped.
	MoveGone
)

// String returns the name used in JSON.
func (p MovePhase) String() string {
	return [...]string{"waiting", "copying", "done", "gone"}[p]
}

// Phase returns how far a move of the running plan is. For a plan that ended it
// tells nothing but whether the bucket has the replicas asked for.
func (s *State) Phase(m Move) MovePhase {
	state, replicas, ok := s.Bucket(m.Bucket)
	switch {
	case !ok:
		return MoveGone
	case slices.Equal(replicas, m.To):
		if m.grows() && state.Ready && !allIn(m.Added(), state.ISR) {
			return MoveCopying
		}
		return MoveDone
	case slices.Equal(replicas, m.From):
		return MoveWaiting
	}
	return MoveCopying
}

// grows reports whether replicas are added and none goes.
func (m *Move) grows() bool { return len(m.Added()) > 0 && len(m.Removed()) == 0 }

func allIn(ids, list []ServerID) bool {
	return !slices.ContainsFunc(ids, func(id ServerID) bool { return !slices.Contains(list, id) })
}

// begunWith reports whether these are the replicas of a bucket while it is moved.
func (m *Move) begunWith(replicas []ServerID) bool {
	n := len(m.To)
	return len(replicas) >= n && slices.Equal(replicas[:n], m.To) && slices.Equal(replicas[n:], m.Removed())
}

// Added returns the servers that get a replica of the bucket, in the order of
// To. The slice is To itself if all of them do.
func (m *Move) Added() []ServerID {
	return keep(m.To, func(id ServerID) bool { return !slices.Contains(m.From, id) })
}

// Removed returns the servers that lose their replica, in the order of From.
func (m *Move) Removed() []ServerID {
	return keep(m.From, func(id ServerID) bool { return !slices.Contains(m.To, id) })
}

// union is what a bucket has while it is moved: the new replicas, which are
// preferred as leaders, then those that will go.
func (m *Move) union() []ServerID { return slices.Concat(m.To, m.Removed()) }

// settled is the state of a bucket that has the replicas to alone: without
// others in the ISR, and led by the first of them that is alive and in sync. The
// leader's epoch rises only if another one leads. It is false if the data, or
// the leader, would be lost with the others.
func settled(s BucketState, to []ServerID, standby bool, alive aliveFunc) (BucketState, bool) {
	within := func(id ServerID) bool { return slices.Contains(to, id) }
	next := s
	next.ISR = keep(s.ISR, within)
	if len(next.ISR) == 0 {
		return s, false
	}
	if e, ok := reassigned(next, to, standby, alive); ok {
		if e.Leader == s.Leader {
			e.LeaderEpoch = s.LeaderEpoch
		}
		return e, true
	}
	if s.Leader != NoServer && !within(s.Leader) || slices.ContainsFunc(s.ISR, alive) {
		return s, false
	}
	next.Standby = keep(s.Standby, within)
	next.BucketEpoch++
	return next, true
}

// bucketMove is a bucket before and after a step of its move.
type bucketMove struct {
	s        BucketState
	replicas []ServerID
}

// begun is a bucket after its move began: with old and new replicas, or only with
// the new ones if nothing has to be copied.
func begun(m *Move, s BucketState, standby bool, alive aliveFunc) bucketMove {
	if !s.Ready { // nobody has data
		if next, ok := startBucket(m.To, standby, alive); ok {
			s = next
		}
		return bucketMove{s, m.To}
	}
	if next, ok := finished(m, s, standby, alive); ok {
		return bucketMove{next, m.To}
	}
	union := m.union()
	if len(union) == len(m.To) { // another order, or replicas that are not in sync yet
		if next, ok := reassigned(s, m.To, standby, alive); ok && next.Leader != s.Leader {
			return bucketMove{next, m.To}
		}
	}
	s.BucketEpoch++
	return bucketMove{s, union}
}

// finished is a bucket's state after its move, or false while new replicas are
// not in sync.
func finished(m *Move, s BucketState, standby bool, alive aliveFunc) (BucketState, bool) {
	if !allIn(m.To, s.ISR) {
		return s, false
	}
	return settled(s, m.To, standby, alive)
}

// takenBack is a bucket after its move was cancelled: with the replicas from
// before, and those new ones that alone have all data.
func takenBack(m *Move, s BucketState, standby bool, alive aliveFunc) bucketMove {
	if next, ok := settled(s, m.From, standby, alive); ok {
		return bucketMove{next, m.From}
	}
	rest := keep(s.ISR, func(id ServerID) bool { return !slices.Contains(m.From, id) })
	replicas := slices.Concat(m.From, rest)
	if next, ok := settled(s, replicas, standby, alive); ok {
		return bucketMove{next, replicas}
	}
	s.BucketEpoch++
	return bucketMove{s, replicas}
}
