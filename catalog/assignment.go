package catalog

import (
	"slices"
	"strings"
)

// Candidate is a tablet server that may get replicas.
type Candidate struct {
	ID   ServerID
	Rack string
}

// Assign spreads the replicas of buckets over servers, the preferred leader of
// each bucket first. It is Fluss's algorithm: without racks, bucket b has its
// first replica at (b + start) mod N and the others at distance 1 + (shift + j)
// mod (N-1) from it, shift growing by one per round over the servers; with a
// rack on every server, servers are taken from the racks in turn, and a
// follower is placed on a rack that has none of the bucket's replicas while one
// is left. servers are in the order that counts without racks. The result is
// the caller's. The error is an *Error with ErrInvalidReplicationFactor, or with
// ErrInvalidTable for a bucket count below 1.
func Assign(servers []Candidate, buckets, replication int32, start, shift int) ([][]ServerID, error) {
	if buckets < 1 {
		return nil, refuse(ErrInvalidTable, "Number of buckets must be larger than 0.")
	}
	if replication < 1 {
		return nil, refuse(ErrInvalidReplicationFactor, "Replication factor must be larger than 0.")
	}
	if int(replication) > len(servers) {
		return nil, refuseLimit(ErrInvalidReplicationFactor, uint64(len(servers)), uint64(replication),
			"Replication factor: %d larger than available tablet servers: %d.", replication, len(servers))
	}
	order, racks := servers, 0
	if !slices.ContainsFunc(servers, func(c Candidate) bool { return c.Rack == "" }) {
		order, racks = alternateRacks(servers)
	}
	return assign(order, racks, buckets, replication, start, shift), nil
}

// alternateRacks takes servers from the racks, sorted by name, in turn.
func alternateRacks(servers []Candidate) (order []Candidate, racks int) {
	byRack := map[string][]Candidate{}
	var names []string
	for _, s := range servers {
		if _, ok := byRack[s.Rack]; !ok {
			names = append(names, s.Rack)
		}
		byRack[s.Rack] = append(byRack[s.Rack], s)
	}
	slices.SortFunc(names, strings.Compare)
	for _, n := range names {
		slices.SortFunc(byRack[n], func(a, b Candidate) int { return int(a.ID) - int(b.ID) })
	}
	for i := 0; len(order) < len(servers); i++ {
		for _, n := range names {
			if i < len(byRack[n]) {
				order = append(order, byRack[n][i])
			}
		}
	}
	return order, len(names)
}

// follower is the place of the j-th follower of a bucket that begins at first.
func follower(first, shift, j, n int) int { return (first + 1 + (shift+j)%(n-1)) % n }

// assign fills one array for all buckets; racks is 0 without racks.
func assign(order []Candidate, racks int, buckets, replication int32, start, shift int) [][]ServerID {
	n, r := len(order), int(replication)
	flat := make([]ServerID, 0, int(buckets)*r)
	out := make([][]ServerID, buckets)
	for b := range int(buckets) {
		if b > 0 && b%n == 0 {
			shift++
		}
		first := (b + start) % n
		from := len(flat)
		flat = append(flat, order[first].ID)
		if racks == 0 {
			for j := range r - 1 {
				flat = append(flat, order[follower(first, shift, j, n)].ID)
			}
		} else {
			flat = appendRackFollowers(flat, from, order, racks, first, shift, r)
		}
		out[b] = flat[from:len(flat):len(flat)]
	}
	return out
}

// appendRackFollowers scans the servers and takes one only if its rack has no
// replica of the bucket, or every rack has one.
func appendRackFollowers(flat []ServerID, from int, order []Candidate, racks, first, shift, r int) []ServerID {
	n := len(order)
	used := make(map[string]bool, racks)
	used[order[first].Rack] = true
	for k := 0; len(flat)-from < r; k++ {
		c := order[follower(first, shift*racks, k, n)]
		if used[c.Rack] && len(used) < racks || slices.Contains(flat[from:], c.ID) {
			continue
		}
		flat = append(flat, c.ID)
		used[c.Rack] = true
	}
	return flat
}

// placer computes placements within one command.
type placer struct {
	b        *Batch
	limits   Limits
	replicas uint64 // created by the command so far
}

func (b *Batch) placer(limits Limits) placer { return placer{b: b, limits: limits} }

// candidates returns the live servers that may get new replicas, in the order
// that assign wants, and the number of racks.
func (b *Batch) candidates() ([]Candidate, int) {
	if b.orderKnown {
		return b.order, b.racks
	}
	var list []Candidate
	plain := false
	b.s.servers.all(func(_ ServerID, v *Server) bool {
		if v.assignable() {
			list = append(list, Candidate{v.ID, v.Rack})
			plain = plain || v.Rack == ""
		}
		return true
	})
	b.order, b.racks, b.orderKnown = list, 0, true
	if !plain && len(list) > 0 {
		b.order, b.racks = alternateRacks(list)
	}
	return b.order, b.racks
}

// place computes the placement of an object from its id, or nil while no server
// record exists.
func (p *placer) place(into *Placement, id uint64, t *Table, buckets int32) (*Placement, *Error) {
	if p.b.s.servers.len() == 0 {
		return nil, p.count(uint64(buckets) * uint64(t.Replication))
	}
	order, racks := p.b.candidates()
	n := uint64(len(order))
	if uint64(t.Replication) > n {
		return nil, refuseLimit(ErrInvalidReplicationFactor, n, uint64(t.Replication),
			"Replication factor: %d larger than available tablet servers: %d live of %d registered.", t.Replication, n, p.b.s.servers.len())
	}
	// Counted last: what cannot be placed takes nothing of the command's bound.
	if err := p.count(uint64(buckets) * uint64(t.Replication)); err != nil {
		return nil, err
	}
	start, shift := int(id%n), int((id/n)%max(1, n-1))
	return p.b.newPlacement(into, t, assign(order, racks, buckets, t.Replication, start, shift)), nil
}

// count adds to the replicas of the command and refuses above the limit.
func (p *placer) count(n uint64) *Error {
	if n += p.replicas; n > uint64(p.limits.Replicas) {
		return refuseLimit(ErrTooLarge, uint64(p.limits.Replicas), n, "the command creates %d bucket replicas, above %d", n, p.limits.Replicas)
	}
	p.replicas = n
	return nil
}

// supplied checks an assignment that came with the command.
func (p *placer) supplied(into *Placement, t *Table, replicas [][]ServerID) (*Placement, *Error) {
	if len(replicas) != int(t.Buckets) {
		return nil, refuse(ErrStaleMetadata, "the assignment has %d buckets, table %s has %d at layout epoch %d", len(replicas), t.Path, t.Buckets, t.Epoch)
	}
	total := 0
	for i, list := range replicas {
		total += len(list)
		if len(list) == 0 || len(list) > maxReplication {
			return nil, refuse(ErrInvalidReplicationFactor, "bucket %d has %d replicas, want 1..%d", i, len(list), maxReplication)
		}
		for j, id := range list {
			v, ok := p.b.s.servers.get(id)
			if !ok || !v.Live {
				return nil, refuse(ErrServerNotExist, "tablet server %d of bucket %d is not registered or not live", id, i)
			}
			if slices.Contains(list[:j], id) {
				return nil, refuse(ErrInvalidArgument, "tablet server %d is given twice for bucket %d", id, i)
			}
		}
	}
	if err := p.count(uint64(total)); err != nil {
		return nil, err
	}
	return p.b.newPlacement(into, t, replicas), nil
}

// newPlacement makes every bucket lead at its first live replica.
func (b *Batch) newPlacement(p *Placement, t *Table, replicas [][]ServerID) *Placement {
	p.Replicas, p.Buckets = replicas, make([]BucketState, len(replicas))
	standby := t.Standby()
	for i, list := range replicas {
		s := &p.Buckets[i]
		s.Ready, s.Leader, s.ISR = true, list[0], list
		s.CoordinatorEpoch = b.s.cluster.Coordinator
		if standby && len(list) > 1 {
			s.Standby = list[1:2:2]
		}
	}
	return p
}
