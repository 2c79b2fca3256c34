package catalog

import "slices"

// MaxBucketChanges bounds the buckets of one AdjustISR and of one ElectLeaders.
const MaxBucketChanges = 256

// caller refuses a tablet server that is not, or no longer, who it says.
func (b *Batch) caller(id ServerID, incarnation ServerIncarnation) *Error {
	v, ok := b.s.servers.get(id)
	switch {
	case !ok || !v.Live && v.Incarnation == incarnation:
		return refuse(ErrSessionExpired, "tablet server %d is not registered or its lease has expired", id)
	case v.Incarnation != incarnation:
		return &Error{
			Code: ErrFenced, Current: uint64(v.Incarnation),
			Message: "tablet server " + itoa(int64(id)) + " has incarnation " + utoa(uint64(v.Incarnation)) + ", not " + utoa(uint64(incarnation)),
		}
	}
	return nil
}

// bucket finds a bucket's state and replicas.
func (s *State) bucket(ref BucketRef) (*Placement, bool) {
	var p *Placement
	if ref.Partition.Set {
		row, ok := s.partIDs.get(ref.Partition.V)
		if !ok || row.Table != ref.Table || s.purging.has(ref.Table) {
			return nil, false
		}
		p = row.Placement
	} else if row, ok := s.tableIDs.get(ref.Table); ok && !row.Dropped {
		p = row.Placement
	}
	return p, p != nil && ref.Bucket >= 0 && int(ref.Bucket) < len(p.Buckets)
}

// Bucket returns the state and the replicas of a bucket.
func (s *State) Bucket(ref BucketRef) (BucketState, []ServerID, bool) {
	p, ok := s.bucket(ref)
	if !ok {
		return BucketState{}, nil, false
	}
	return p.Buckets[ref.Bucket], p.Replicas[ref.Bucket], true
}

// setBucket writes one bucket's state.
func (b *Batch) setBucket(ref BucketRef, s BucketState) {
	s.CoordinatorEpoch = b.s.cluster.Coordinator
	p, _ := b.s.bucket(ref)
	q := &Placement{Replicas: p.Replicas, Buckets: slices.Clone(p.Buckets)}
	q.Buckets[ref.Bucket] = s
	b.setPlacement(ref, q, []int{int(ref.Bucket)})
}

// setPlacement writes the placement of a bucket's table or partition, in which
// some buckets are changed.
func (b *Batch) setPlacement(ref BucketRef, q *Placement, buckets []int) {
	if ref.Partition.Set {
		old, _ := b.s.partIDs.get(ref.Partition.V)
		n := *old
		n.Placement, n.Revision = q, b.rev
		n.sum = b.sumAfter(old.sum, old.Placement, q, buckets)
		b.putPartition(old, &n)
		return
	}
	old, _ := b.s.tableIDs.get(ref.Table)
	n := *old
	n.Placement, n.Revision = q, b.rev
	n.sum = b.sumAfter(old.sum, old.Placement, q, buckets)
	b.putTable(old, &n)
}

// adjustISR changes in-sync replicas at the wish of their leader, each bucket on
// its own merit. A move of the running plan whose new replicas are all in sync now
// is finished, and the next ones begin. Result: Buckets has a code for each change.
func (b *Batch) adjustISR(c AdjustISR) (Result, *Error) {
	if n := len(c.Changes); n < 1 || n > MaxBucketChanges {
		return Result{}, refuseLimit(ErrInvalidArgument, MaxBucketChanges, uint64(n), "%d ISR changes are not in 1..%d", n, MaxBucketChanges)
	}
	if err := b.caller(c.Server, c.Incarnation); err != nil {
		return Result{}, err
	}
	r := Result{Buckets: make([]Code, len(c.Changes))}
	finished := false
	for i := range c.Changes {
		ch := &c.Changes[i]
		if r.Buckets[i] = b.checkISR(c.Server, ch); r.Buckets[i] != Done {
			continue
		}
		s, _, _ := b.s.Bucket(ch.Bucket)
		s.ISR, s.Standby = ch.ISR, ch.Standby
		s.BucketEpoch++
		b.setBucket(ch.Bucket, s)
		finished = b.finishMove(ch.Bucket) || finished
		r.Changed = true
	}
	if finished {
		b.stepPlan(b.s.running())
	}
	return r, nil
}

// checkISR is the order of checks of upstream.
func (b *Batch) checkISR(server ServerID, c *ISRChange) Code {
	s, replicas, ok := b.s.Bucket(c.Bucket)
	within := func(ids []ServerID) bool {
		return !slices.ContainsFunc(ids, func(id ServerID) bool { return !slices.Contains(replicas, id) })
	}
	switch {
	case !ok:
		return ErrUnknownTableOrBucket
	case c.LeaderEpoch > s.LeaderEpoch || c.BucketEpoch > s.BucketEpoch || c.Coordinator > b.s.cluster.Coordinator:
		return ErrInvalidCoordinator
	case c.LeaderEpoch < s.LeaderEpoch:
		return ErrFencedLeaderEpoch
	case c.BucketEpoch < s.BucketEpoch:
		return ErrInvalidUpdateVersion
	case s.Leader != server:
		return ErrFencedLeaderEpoch
	case !slices.Contains(c.ISR, s.Leader) || repeated(c.ISR):
		return ErrIneligibleReplica
	case slices.ContainsFunc(c.ISR, func(id ServerID) bool { return !b.alive(id) }):
		return ErrIneligibleReplica
	case !within(c.ISR) || !within(c.Standby) || slices.Contains(c.Standby, s.Leader) || repeated(c.Standby):
		return ErrFencedLeaderEpoch
	}
	return Done
}

func repeated(ids []ServerID) bool {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return true
		}
	}
	return false
}

// electLeaders elects leaders for the named buckets, or moves everything away
// from a server that shuts down. Result: Buckets has a code for each named
// bucket; Count is how many buckets the server still leads.
func (b *Batch) electLeaders(c ElectLeaders) (Result, *Error) {
	if c.Reason == ElectControlledShutdown {
		return b.shutDownServer(c)
	}
	if c.Server.Set {
		return Result{}, refuse(ErrInvalidArgument, "an election for a server needs the reason controlled shutdown")
	}
	if n := len(c.Buckets); n < 1 || n > MaxBucketChanges {
		return Result{}, refuseLimit(ErrInvalidArgument, MaxBucketChanges, uint64(n), "%d buckets to elect for are not in 1..%d", n, MaxBucketChanges)
	}
	r := Result{Buckets: make([]Code, len(c.Buckets))}
	for i, ref := range c.Buckets {
		s, replicas, ok := b.s.Bucket(ref)
		if !ok {
			r.Buckets[i] = ErrUnknownTableOrBucket
			continue
		}
		next, code := b.electBucket(c.Reason, ref, s, replicas)
		if r.Buckets[i] = code; code == Done && next.LeaderEpoch != s.LeaderEpoch {
			b.setBucket(ref, next)
			r.Changed = true
		}
	}
	return r, nil
}

func (b *Batch) electBucket(reason ElectionReason, ref BucketRef, s BucketState, replicas []ServerID) (BucketState, Code) {
	t, _ := b.s.tableIDs.get(ref.Table)
	switch {
	case reason == ElectPreferred && s.Leader == replicas[0]:
		return s, Done
	case reason == ElectPreferred:
		next, ok := reassigned(s, replicas[:1], false, b.alive)
		if !ok {
			return s, ErrIneligibleReplica
		}
		next.Standby = s.Standby
		if slices.Contains(next.Standby, next.Leader) {
			next.Standby = nil
		}
		return next, Done
	case s.Leader != NoServer:
		return s, Done
	}
	next, ok := elected(s, replicas, t.Standby(), b.alive)
	if !ok {
		return s, ErrLeaderNotAvailable
	}
	return next, Done
}

// shutDownServer moves leadership away from a server and takes it out of the
// ISRs it only follows in. What nobody else can lead it goes on leading.
func (b *Batch) shutDownServer(c ElectLeaders) (Result, *Error) {
	old, ok := b.s.servers.get(c.Server.V)
	if !c.Server.Set || !ok {
		return Result{}, refuse(ErrServerNotExist, "tablet server %d is not registered", c.Server.V)
	}
	if !old.Live {
		return Result{}, refuse(ErrSessionExpired, "the lease of tablet server %d has expired", c.Server.V)
	}
	id := c.Server.V
	var r Result
	if !old.ShuttingDown {
		v := *old
		v.ShuttingDown, v.Revision = true, b.rev
		b.putServer(old, &v, false)
		r.Changed = true
	}
	alive := b.aliveSet()
	leaving := serverSet([]ServerID{id})
	b.eachPlaced(leaving, func(standby bool, s BucketState, replicas []ServerID) (BucketState, bool) {
		if s.Leader == id {
			next, ok := handedOver(s, replicas, standby, leaving, alive)
			if !ok {
				r.Count++
			}
			r.Changed = r.Changed || ok
			return next, ok
		}
		next, ok := withoutServers(s, replicas, standby, leaving, alive)
		r.Changed = r.Changed || ok
		return next, ok
	})
	return r, nil
}
