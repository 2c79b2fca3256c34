package catalog

import "slices"

// renewLeases moves leases of live servers to the lease clock. A lease of an
// expired server, or of an incarnation that was replaced, is not touched: its
// holder is told by whoever carried the renewal, from the state.
func (b *Batch) renewLeases(c RenewLeases) (Result, *Error) {
	var r Result
	for _, l := range c.Leases {
		old, ok := b.s.servers.get(l.ID)
		if !ok || !old.Live || old.Incarnation != l.Incarnation {
			continue
		}
		v := *old
		v.Renewed, v.RenewedAt = b.s.cluster.Lease, b.rev
		known := b.orderKnown
		b.putServer(old, &v, true)
		b.orderKnown = known // a renewal does not change who may get replicas
		r.Changed = true
	}
	return r, nil
}

// RenewalError says what a keepalive is answered that was carried by the
// renewal at a revision: nil if the lease was renewed then or later, else
// ErrSessionExpired, or ErrFenced for an incarnation that was replaced.
func (s *State) RenewalError(l Lease, at Revision) error {
	v, ok := s.servers.get(l.ID)
	switch {
	case !ok:
		return refuse(ErrSessionExpired, "tablet server %d is not registered", l.ID)
	case v.Incarnation != l.Incarnation:
		return &Error{
			Code: ErrFenced, Current: uint64(v.Incarnation),
			Message: "tablet server " + itoa(int64(l.ID)) + " has incarnation " + utoa(uint64(v.Incarnation)) + ", not " + utoa(uint64(l.Incarnation)),
		}
	case !v.Live || v.RenewedAt < at:
		return refuse(ErrSessionExpired, "the lease of tablet server %d has expired", l.ID)
	}
	return nil
}

// expireServers marks servers dead and re-elects every bucket they led, in one
// command. An expiry that names another renewal than the last is refused for
// that server alone, as is one whose time is not over.
func (b *Batch) expireServers(c ExpireServers) (Result, *Error) {
	var r Result
	var gone []ServerID
	for _, e := range c.Servers {
		old, ok := b.s.servers.get(e.ID)
		if !ok || !old.Live || old.Incarnation != e.Incarnation || old.RenewedAt != e.RenewedAt ||
			b.s.cluster.Lease-old.Renewed < old.TTL {
			continue
		}
		v := *old
		v.Live, v.ShuttingDown, v.Revision = false, false, b.rev
		b.putServer(old, &v, false)
		gone = append(gone, e.ID)
		r.addID(uint64(uint32(e.ID)))
	}
	if len(gone) > 0 {
		b.serversGone(gone)
		r.Changed = true
	}
	return r, nil
}

// alive reports whether a server may lead or be in sync.
func (b *Batch) alive(id ServerID) bool {
	v, ok := b.s.servers.get(id)
	return ok && v.Live && !v.ShuttingDown
}

// aliveSet is alive for all servers at once, for passes over every bucket.
func (b *Batch) aliveSet() aliveFunc {
	set := make(map[ServerID]bool, b.s.servers.len())
	b.s.servers.all(func(id ServerID, v *Server) bool {
		set[id] = v.Live && !v.ShuttingDown
		return true
	})
	return func(id ServerID) bool { return set[id] }
}

// serversGone takes servers out of every ISR and re-elects what they led.
func (b *Batch) serversGone(ids []ServerID) {
	gone := serverSet(ids)
	alive := b.aliveSet()
	b.eachPlaced(gone, func(standby bool, s BucketState, replicas []ServerID) (BucketState, bool) {
		return withoutServers(s, replicas, standby, gone, alive)
	})
}

// serverSet is a set of servers, mostly of one.
func serverSet(ids []ServerID) aliveFunc {
	if len(ids) == 1 {
		only := ids[0]
		return func(id ServerID) bool { return id == only }
	}
	set := make(map[ServerID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return func(id ServerID) bool { return set[id] }
}

// serverBack starts the buckets that wait for a server: new ones that never had
// a live replica, and leaderless ones that have it in sync.
func (b *Batch) serverBack(id ServerID) {
	alive := b.aliveSet()
	b.eachPlaced(serverSet([]ServerID{id}), func(standby bool, s BucketState, replicas []ServerID) (BucketState, bool) {
		switch {
		case s.Leader != NoServer:
			return s, false
		case !s.Ready:
			return startBucket(replicas, standby, alive)
		}
		return elected(s, replicas, standby, alive)
	})
}

// bucketChange says what becomes of a bucket, or false if it stays.
type bucketChange func(standby bool, s BucketState, replicas []ServerID) (BucketState, bool)

// eachPlaced passes every bucket of which one of some servers has a replica to f
// and writes the rows of which f changed a bucket. Tables come first, then
// partitions, in id order.
func (b *Batch) eachPlaced(on aliveFunc, f bucketChange) {
	var tables []*Table
	b.s.tableIDs.all(func(_ TableID, t *Table) bool {
		if p := t.Placement; p != nil {
			if q, sum, ok := b.changedPlacement(t.Standby(), p, t.sum, on, f); ok {
				n := *t
				n.Placement, n.sum, n.Revision = q, sum, b.rev
				tables = append(tables, t, &n)
			}
		}
		return true
	})
	for i := 0; i < len(tables); i += 2 {
		b.putTable(tables[i], tables[i+1])
	}
	var parts []*Partition
	var table *Table
	standby := false
	b.s.partIDs.all(func(_ PartitionID, p *Partition) bool {
		if p.Placement == nil {
			return true
		}
		if table == nil || table.ID != p.Table {
			table, _ = b.s.tableIDs.get(p.Table)
			standby = table.Standby()
		}
		if q, sum, ok := b.changedPlacement(standby, p.Placement, p.sum, on, f); ok {
			n := *p
			n.Placement, n.sum, n.Revision = q, sum, b.rev
			parts = append(parts, p, &n)
		}
		return true
	})
	for i := 0; i < len(parts); i += 2 {
		b.putPartition(parts[i], parts[i+1])
	}
}

// changedPlacement returns a copy with the buckets that f changed, and its sum, or
// false.
func (b *Batch) changedPlacement(standby bool, p *Placement, sum placementSum, on aliveFunc, f bucketChange) (*Placement, placementSum, bool) {
	var out *Placement
	buckets := b.touched[:0]
	for i, replicas := range p.Replicas {
		if !slices.ContainsFunc(replicas, on) {
			continue
		}
		s, ok := f(standby, p.Buckets[i], replicas)
		if !ok {
			continue
		}
		if out == nil {
			out = &Placement{Replicas: p.Replicas, Buckets: slices.Clone(p.Buckets)}
		}
		s.CoordinatorEpoch = b.s.cluster.Coordinator
		out.Buckets[i] = s
		buckets = append(buckets, i)
	}
	b.touched = buckets
	if out == nil {
		return nil, placementSum{}, false
	}
	return out, b.sumAfter(sum, p, out, buckets), true
}

// tagServer sets or clears a tag on servers, all or none.
func (b *Batch) tagServer(c TagServer) (Result, *Error) {
	if c.Tag != PermanentOffline && c.Tag != TemporaryOffline {
		return Result{}, refuse(ErrInvalidArgument, "server tag %d is not known, want permanent-offline (1) or temporary-offline (2)", c.Tag)
	}
	if len(c.IDs) == 0 || len(c.IDs) > MaxTxn*8 {
		return Result{}, refuse(ErrInvalidArgument, "%d servers to tag are not in 1..%d", len(c.IDs), MaxTxn*8)
	}
	for _, id := range c.IDs {
		v, ok := b.s.servers.get(id)
		switch {
		case !ok:
			return Result{}, refuse(ErrServerNotExist, "tablet server %d is not registered", id)
		case !c.Remove && v.Tag != NoTag && v.Tag != c.Tag:
			return Result{}, refuse(ErrServerTagAlreadyExist, "tablet server %d is tagged %s already", id, v.Tag)
		case c.Remove && v.Tag != c.Tag:
			return Result{}, refuse(ErrServerTagNotExist, "tablet server %d is not tagged %s", id, c.Tag)
		}
	}
	var r Result
	for _, id := range c.IDs {
		old, _ := b.s.servers.get(id)
		v := *old
		if v.Tag = c.Tag; c.Remove {
			v.Tag = NoTag
		}
		if v.Tag != old.Tag {
			v.Revision = b.rev
			b.putServer(old, &v, false)
			r.Changed = true
		}
	}
	return r, nil
}
