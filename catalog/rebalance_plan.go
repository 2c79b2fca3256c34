package catalog

import "slices"

// RebalancePlan is what PlanRebalance found.
type RebalancePlan struct {
	Moves []Move
	// Copies is how many replicas the moves make anew; moves that only change who
	// is preferred as leader make none.
	Copies int
	// More says that the plan was cut at its bound: another one is due after it.
	More bool
	// Load is what each registered server has before and after, by id.
	Load []ServerLoad
}

// ServerLoad counts the replicas of a server, and the buckets of which it is
// preferred as leader, before and after a plan.
type ServerLoad struct {
	ID                          ServerID
	Replicas, Leaders           int
	ReplicasAfter, LeadersAfter int
}

// serverLoad is a server during planning.
type serverLoad struct {
	ServerLoad
	replicas, leaders, rack int
	from                    *Server
}

// PlanRebalance computes the moves that
//
//  1. take all replicas off servers tagged PermanentOffline, and the preference
//     as leader off servers with any tag,
//  2. bring every server that may get replicas within 5 % of an even share of
//     replicas, rounded to whole ones, and
//  3. of preferred leaders,
//
// each with as few moves as a greedy choice needs, never onto fewer racks, and at
// most limit of them (0 or more than MaxMoves: MaxMoves). What is on servers that
// are down, and not tagged, stays. Buckets are taken scattered over all tables, so
// that no table ends up on one server. It is a function of the state: every node
// computes the same. It takes time and memory in the number of buckets. The error
// is an *Error with ErrRebalanceFailure while a plan runs, or with
// ErrInvalidReplicationFactor if nobody can take what has to go.
func (s *State) PlanRebalance(limit int) (*RebalancePlan, error) {
	if r := s.running(); r != nil {
		return nil, refuse(ErrRebalanceFailure, "rebalance %s is running; wait for it or cancel it", r.ID)
	}
	if limit < 1 || limit > MaxMoves {
		limit = MaxMoves
	}
	p := newPlanner(s, limit)
	if err := p.drain(); err != nil {
		return nil, err
	}
	p.evenReplicas()
	p.evenLeaders()
	return p.plan(), nil
}

// planBucket is a bucket during planning; to is nil while it is not changed.
type planBucket struct {
	ref      BucketRef
	from, to []ServerID
}

func (b *planBucket) replicas() []ServerID {
	if b.to != nil {
		return b.to
	}
	return b.from
}

type planner struct {
	buckets []planBucket
	servers map[ServerID]*serverLoad
	all     []*serverLoad // by id
	free    []*serverLoad // that may get replicas, by id
	racks   int           // 0: not every one has a rack
	changed int
	limit   int
	more    bool
	scans   int // how often all servers may still be looked at
}

// maxPlanWork bounds the looks at a server while replicas are evened out, which
// racks can make futile.
const maxPlanWork = 100_000_000

func newPlanner(s *State, limit int) *planner {
	p := &planner{servers: make(map[ServerID]*serverLoad, s.servers.len()), limit: limit}
	racks := map[string]int{}
	plain := false
	s.servers.all(func(id ServerID, v *Server) bool {
		l := &serverLoad{ServerLoad: ServerLoad{ID: id}, from: v}
		p.servers[id] = l
		p.all = append(p.all, l)
		if _, ok := racks[v.Rack]; !ok {
			racks[v.Rack] = len(racks)
		}
		l.rack = racks[v.Rack]
		if v.assignable() {
			p.free = append(p.free, l)
			plain = plain || v.Rack == ""
		}
		return true
	})
	if !plain {
		p.racks = len(racks)
	}
	p.scans = maxPlanWork / max(1, len(p.free))
	s.eachBucket(func(ref BucketRef, replicas []ServerID) {
		p.buckets = append(p.buckets, planBucket{ref: ref, from: replicas})
	})
	for i := range p.buckets {
		for j, id := range p.buckets[i].from {
			l, ok := p.servers[id]
			if !ok {
				continue
			}
			if l.replicas++; j == 0 {
				l.leaders++
			}
		}
	}
	for _, l := range p.all {
		l.Replicas, l.Leaders = l.replicas, l.leaders
	}
	return p
}

// eachBucket passes every bucket that can be moved, in order.
func (s *State) eachBucket(f func(BucketRef, []ServerID)) {
	object := func(ref BucketRef, p *Placement) {
		if p == nil {
			return
		}
		for i := range p.Replicas {
			ref.Bucket = BucketID(i)
			f(ref, p.Replicas[i])
		}
	}
	s.tableIDs.all(func(id TableID, t *Table) bool {
		if t.Dropped || t.Importing() {
			return true
		}
		object(BucketRef{Table: id}, t.Placement)
		s.Partitions(id, "", func(q *Partition) bool {
			object(BucketRef{Table: id, Partition: Some(q.ID)}, q.Placement)
			return true
		})
		return true
	})
}

// scattered calls f for all buckets, neighbours far from each other, until it
// says false.
func (p *planner) scattered(f func(*planBucket) bool) {
	n := len(p.buckets)
	step := max(1, n*618/1000)
	for gcd(step, n) != 1 {
		step++
	}
	for i, at := 0, 0; i < n; i, at = i+1, (at+step)%n {
		if !f(&p.buckets[at]) {
			return
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// open makes a bucket's list writable, or returns false if the plan is full.
func (p *planner) open(b *planBucket) bool {
	if b.to != nil {
		return true
	}
	if p.changed == p.limit {
		p.more = true
		return false
	}
	p.changed++
	b.to = slices.Clone(b.from)
	return true
}

// place puts a server in the place of another one.
func (p *planner) place(b *planBucket, slot int, l *serverLoad) {
	if old, ok := p.servers[b.to[slot]]; ok {
		if old.replicas--; slot == 0 {
			old.leaders--
		}
	}
	b.to[slot] = l.ID
	if l.replicas++; slot == 0 {
		l.leaders++
	}
}

// prefer makes the server of a slot the preferred leader.
func (p *planner) prefer(b *planBucket, slot int) {
	if old, ok := p.servers[b.to[0]]; ok {
		old.leaders--
	}
	p.servers[b.to[slot]].leaders++
	b.to[0], b.to[slot] = b.to[slot], b.to[0]
}

// clash is how many other replicas of the bucket are on the server's rack.
func (p *planner) clash(b *planBucket, slot int, l *serverLoad) int {
	n := 0
	for i, id := range b.replicas() {
		if o, ok := p.servers[id]; i != slot && p.racks > 0 && ok && o.rack == l.rack {
			n++
		}
	}
	return n
}

// best returns the server with the fewest replicas that can take over a slot:
// without another replica of the bucket, and on a rack with the fewest of them.
func (p *planner) best(b *planBucket, slot int, ok func(*serverLoad) bool) *serverLoad {
	var out *serverLoad
	least := 0
	for _, l := range p.free {
		if slices.Contains(b.replicas(), l.ID) || !ok(l) {
			continue
		}
		c := p.clash(b, slot, l)
		if out == nil || c < least || c == least && l.replicas < out.replicas {
			out, least = l, c
		}
	}
	return out
}

// drain empties servers that are gone for ever, and takes the preference as
// leader off all with a tag.
func (p *planner) drain() *Error {
	anyServer := func(*serverLoad) bool { return true }
	var failed *Error
	p.scattered(func(b *planBucket) bool {
		for slot, id := range b.from {
			l, ok := p.servers[id]
			if !ok || l.from.Tag != PermanentOffline {
				continue
			}
			to := p.best(b, slot, anyServer)
			if to == nil {
				failed = refuseLimit(ErrInvalidReplicationFactor, uint64(len(p.free)), uint64(len(b.from)),
					"no tablet server can take %s from server %d: its %d replicas need as many that are live and have no tag, of which there are %d",
					b.ref, id, len(b.from), len(p.free))
				return false
			}
			if !p.open(b) {
				return false
			}
			p.place(b, slot, to)
		}
		if l, ok := p.servers[b.replicas()[0]]; ok && l.from.Tag != NoTag {
			if slot := p.heir(b, func(*serverLoad) bool { return true }); slot > 0 && p.open(b) {
				p.prefer(b, slot)
			}
		}
		return true
	})
	return failed
}

// heir returns the slot of the replica that is preferred as leader the least, of
// those on servers that may get replicas, or 0.
func (p *planner) heir(b *planBucket, ok func(*serverLoad) bool) int {
	out := 0
	for slot, id := range b.replicas() {
		l, known := p.servers[id]
		if slot == 0 || !known || !l.from.assignable() || !ok(l) {
			continue
		}
		if out == 0 || l.leaders < p.servers[b.replicas()[out]].leaders {
			out = slot
		}
	}
	return out
}

// share is the band of an even share: 5 % around it, and whole numbers, so that a
// few replicas are spread as evenly as they can be.
type share struct{ low, even, high int }

func (p *planner) share(count func(*serverLoad) int) share {
	n, total := len(p.free), 0
	for _, l := range p.free {
		total += count(l)
	}
	return share{
		low:  min(total/n, (total*95+100*n-1)/(100*n)),
		even: total / n,
		high: max((total+n-1)/n, total*105/(100*n)),
	}
}

// outside reports whether a server is outside of the band.
func (p *planner) outside(band share, count func(*serverLoad) int) bool {
	return slices.ContainsFunc(p.free, func(l *serverLoad) bool { return count(l) < band.low || count(l) > band.high })
}

// gives reports whether what is moved from a server with a load to one with
// another brings the first or the second one into the band, and neither out.
func (b share) gives(from, to int) bool {
	return from-to >= 2 && (from > b.high && to < b.high || to < b.low && from > b.even)
}

func countReplicas(l *serverLoad) int { return l.replicas }
func countLeaders(l *serverLoad) int  { return l.leaders }

func (p *planner) evenReplicas() {
	if len(p.free) < 2 {
		return
	}
	band := p.share(countReplicas)
	least := p.leastReplicas()
	p.scattered(func(b *planBucket) bool {
		for slot, id := range b.replicas() {
			l, ok := p.servers[id]
			if !ok || !l.from.assignable() || !band.gives(l.replicas, least) {
				continue
			}
			p.scans--
			clash := p.clash(b, slot, l)
			to := p.best(b, slot, func(o *serverLoad) bool { return band.gives(l.replicas, o.replicas) && p.clash(b, slot, o) <= clash })
			if to == nil {
				continue
			}
			if !p.open(b) {
				return false
			}
			p.place(b, slot, to)
			least = p.leastReplicas()
		}
		return p.scans > 0 && p.outside(band, countReplicas)
	})
}

func (p *planner) leastReplicas() int {
	least := p.free[0].replicas
	for _, l := range p.free {
		least = min(least, l.replicas)
	}
	return least
}

// evenLeaders changes the order of replicas. A second look finds what the first
// one opened the way for.
func (p *planner) evenLeaders() {
	if len(p.free) < 2 {
		return
	}
	band := p.share(countLeaders)
	for range 3 {
		if !p.outside(band, countLeaders) {
			return
		}
		p.scattered(func(b *planBucket) bool {
			l, ok := p.servers[b.replicas()[0]]
			if !ok || !l.from.assignable() || l.leaders <= band.even {
				return true
			}
			if slot := p.heir(b, func(o *serverLoad) bool { return band.gives(l.leaders, o.leaders) }); slot > 0 {
				if !p.open(b) {
					return false
				}
				p.prefer(b, slot)
			}
			return true
		})
	}
}

func (p *planner) plan() *RebalancePlan {
	out := &RebalancePlan{More: p.more}
	for i := range p.buckets {
		b := &p.buckets[i]
		if b.to == nil || slices.Equal(b.from, b.to) {
			continue
		}
		m := Move{Bucket: b.ref, From: b.from, To: b.to}
		out.Moves = append(out.Moves, m)
		out.Copies += len(m.Added())
	}
	slices.SortFunc(out.Moves, func(a, b Move) int { return a.Bucket.Compare(b.Bucket) })
	for _, l := range p.all {
		l.ReplicasAfter, l.LeadersAfter = l.replicas, l.leaders
		out.Load = append(out.Load, l.ServerLoad)
	}
	return out
}
