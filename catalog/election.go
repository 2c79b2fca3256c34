package catalog

import "slices"

// The election rules are Fluss's: no unclean election, the preferred leader is
// the first replica in the list that is alive and in sync, and a table with
// standby replicas prefers its standby. They decide on a bucket alone.

// aliveFunc says whether a server may lead or be in sync.
type aliveFunc func(ServerID) bool

// startBucket is the first state of a bucket, or false while none of its
// replicas is alive.
func startBucket(replicas []ServerID, standby bool, alive aliveFunc) (BucketState, bool) {
	live := keep(replicas, alive)
	if len(live) == 0 {
		return BucketState{Leader: NoServer}, false
	}
	s := BucketState{Ready: true, Leader: live[0], ISR: live}
	if standby && len(live) > 1 {
		s.Standby = live[1:2:2]
	}
	return s, true
}

// electLeader chooses among the replicas that are alive and in isr, in the order
// of the list. With standby the current standby is preferred, and the next
// candidate becomes the new one.
func electLeader(replicas, isr, current []ServerID, standby bool, alive aliveFunc) (leader ServerID, next []ServerID, ok bool) {
	candidates := keep(replicas, func(id ServerID) bool { return alive(id) && slices.Contains(isr, id) })
	if len(candidates) == 0 {
		return NoServer, nil, false
	}
	leader = candidates[0]
	if !standby {
		return leader, nil, true
	}
	if len(current) > 0 && slices.Contains(candidates, current[0]) {
		leader = current[0]
	}
	for _, c := range candidates {
		if c != leader {
			return leader, []ServerID{c}, true
		}
	}
	return leader, nil, true
}

// elected is the state after a default election, or false if nobody can lead.
func elected(s BucketState, replicas []ServerID, standby bool, alive aliveFunc) (BucketState, bool) {
	leader, next, ok := electLeader(replicas, s.ISR, s.Standby, standby, alive)
	if !ok {
		return s, false
	}
	s.Leader, s.Standby = leader, next
	s.LeaderEpoch++
	s.BucketEpoch++
	return s, true
}

// withoutServers is the state after servers went away: they leave the ISR if one
// that is alive stays in it (all that are in it have all data, so nothing is
// gained by taking the last ones out), and if the leader is among them another one is elected, or
// there is none. The epoch of the leader rises once. It reports whether anything
// changed.
func withoutServers(s BucketState, replicas []ServerID, standby bool, gone, alive aliveFunc) (BucketState, bool) {
	hit := s.Leader != NoServer && gone(s.Leader)
	isr := keep(s.ISR, func(id ServerID) bool { return !gone(id) })
	shrinks := len(isr) < len(s.ISR) && slices.ContainsFunc(isr, alive)
	lost := slices.ContainsFunc(s.Standby, gone)
	if !hit && !shrinks && !lost {
		return s, false
	}
	if shrinks {
		s.ISR = isr
	}
	s.Standby = keep(s.Standby, func(id ServerID) bool { return !gone(id) })
	if !hit {
		s.BucketEpoch++
		return s, true
	}
	if next, ok := elected(s, replicas, standby, alive); ok {
		return next, true
	}
	s.Leader = NoServer
	s.LeaderEpoch++
	s.BucketEpoch++
	return s, true
}

// handedOver is the state after a controlled shutdown of servers: led by
// another replica, and without them in the ISR. It is false if nobody else can
// lead, in which case the leader stays.
func handedOver(s BucketState, replicas []ServerID, standby bool, leaving, alive aliveFunc) (BucketState, bool) {
	isr := keep(s.ISR, func(id ServerID) bool { return !leaving(id) })
	leader, next, ok := electLeader(replicas, isr, s.Standby, standby, func(id ServerID) bool { return alive(id) && !leaving(id) })
	if !ok {
		return s, false
	}
	s.Leader, s.Standby, s.ISR = leader, next, isr
	s.LeaderEpoch++
	s.BucketEpoch++
	return s, true
}

// reassigned is the state after an election for new replicas: the first of them
// that is alive and in sync.
func reassigned(s BucketState, replicas []ServerID, standby bool, alive aliveFunc) (BucketState, bool) {
	leader, next, ok := electLeader(replicas, s.ISR, nil, standby, alive)
	if !ok {
		return s, false
	}
	s.Leader, s.Standby = leader, next
	s.LeaderEpoch++
	s.BucketEpoch++
	return s, true
}

// keep returns the ids that f accepts, in order: the input itself if all are.
func keep(ids []ServerID, f func(ServerID) bool) []ServerID {
	for i, id := range ids {
		if f(id) {
			continue
		}
		var out []ServerID
		out = append(out, ids[:i]...)
		for _, id := range ids[i+1:] {
			if f(id) {
				out = append(out, id)
			}
		}
		return out
	}
	return ids
}
