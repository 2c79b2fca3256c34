package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRebalance_Model runs random placement commands and holds each step against
// what the buckets were before: the invariants, that only AdjustISR adds to an
// ISR, that somebody who had all data still counts as having it, that the leader
// is alive, that replicas change by plans alone, and that whoever lost a replica
// has to delete it.
func TestRebalance_Model(t *testing.T) {
	started, finished := 0, 0
	for range 30 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &placementModel{history: placed(t, 6, "2", 3), r: rand.New(rand.NewPCG(seed, 1)), owed: map[BucketRef]map[ServerID]bool{}}
			m.must(plainTable("d.plain", 4, replication(3)))
			m.must(CreatePartitions{Table: "d.t", Specs: dt("a", "b", "c")})
			for range 400 {
				m.step(m.command())
			}
			started, finished = started+m.started, finished+m.finished
		})
	}
	if started < 100 || finished < 50 {
		t.Errorf("%d moves began and %d ended: the commands try too little", started, finished)
	}
}

type placementModel struct {
	*history
	r                 *rand.Rand
	owed              map[BucketRef]map[ServerID]bool // replicas to be deleted
	started, finished int
}

func (m *placementModel) some() (list []BucketRef) {
	m.last.eachBucket(func(ref BucketRef, _ []ServerID) { list = append(list, ref) })
	return list
}

func (m *placementModel) server() ServerID { return ServerID(m.r.IntN(6)) }

func (m *placementModel) to() (out []ServerID) {
	for range 1 + m.r.IntN(3) {
		if id := m.server(); !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func (m *placementModel) command() Command {
	refs := m.some()
	id := m.server()
	v, _ := m.last.Server(id)
	switch m.r.IntN(16) {
	case 0:
		return RegisterServer{ID: id, DirectoryID: dirOf(int(id)), Listeners: []string{"h:1"}, TTL: 10_000}
	case 1:
		if v == nil {
			break
		}
		if m.r.IntN(3) > 0 {
			return RenewLeases{Leases: []Lease{{id, v.Incarnation}}}
		}
		m.env.Lease += 10_000
		return ExpireServers{Servers: []Expiry{{id, v.Incarnation, v.RenewedAt}}}
	case 2:
		return TagServer{IDs: ids(id), Tag: ServerTag(1 + m.r.IntN(2)), Remove: m.r.IntN(3) > 0}
	case 3:
		return ElectLeaders{Reason: ElectControlledShutdown, Server: Some(id)}
	case 4:
		return UnregisterServer{ID: id}
	case 5:
		specs := dt([]string{"a", "b", "c"}[m.r.IntN(3)])
		if m.r.IntN(4) == 0 {
			return DropPartitions{Table: "d.t", Specs: specs, IfExists: true}
		}
		return CreatePartitions{Table: "d.t", Specs: specs, IfNotExists: true}
	case 6, 7:
		if p, err := m.last.PlanRebalance(1 + m.r.IntN(6)); err == nil && len(p.Moves) > 0 {
			return StartRebalance{ID: fmt.Sprint("r", m.rev), Moves: p.Moves, InFlight: uint32(m.r.IntN(3))}
		}
		return Reassign{Moves: []Move{{Bucket: refs[m.r.IntN(len(refs))], To: m.to()}}}
	case 8:
		moves := []Move{{Bucket: refs[m.r.IntN(len(refs))], To: m.to()}, {Bucket: refs[m.r.IntN(len(refs))], To: m.to()}}
		return Reassign{Moves: moves}
	case 9:
		if m.r.IntN(3) == 0 {
			return CancelRebalance{}
		}
	case 10:
		return m.ack()
	}
	if id, due := m.last.RebalanceDue(); due && m.r.IntN(2) == 0 {
		return StepRebalance{ID: id}
	}
	if r := m.last.running(); r != nil && m.r.IntN(4) > 0 {
		refs = nil
		for _, mv := range r.Moves {
			refs = append(refs, mv.Bucket)
		}
	}
	return m.report(refs[m.r.IntN(len(refs))])
}

// report is what the leader of a bucket may say: itself and some other replicas,
// living or not.
func (m *placementModel) report(ref BucketRef) Command {
	s, replicas, _ := m.last.Bucket(ref)
	isr := []ServerID{s.Leader}
	for _, id := range replicas {
		if v, ok := m.last.Server(id); id != s.Leader && m.r.IntN(4) > 0 && (ok && v.Live || m.r.IntN(9) == 0) {
			isr = append(isr, id)
		}
	}
	c := AdjustISR{Server: s.Leader, Changes: []ISRChange{{Bucket: ref, LeaderEpoch: s.LeaderEpoch, BucketEpoch: s.BucketEpoch, ISR: isr}}}
	if v, ok := m.last.Server(s.Leader); ok {
		c.Incarnation = v.Incarnation
	}
	return c
}

func (m *placementModel) ack() Command {
	c := AckDeletion{Server: m.server()}
	if v, ok := m.last.Server(c.Server); ok {
		c.Incarnation = v.Incarnation
	}
	m.last.DroppedBuckets(func(d *DroppedObject) bool {
		c.Objects = append(c.Objects, DeletionAck{Table: d.Table, Partition: d.Partition, Bucket: d.Bucket})
		return true
	})
	m.last.DroppedPartitions(0, func(d *DroppedObject) bool {
		c.Objects = append(c.Objects, DeletionAck{Table: d.Table, Partition: d.Partition})
		return true
	})
	return c
}

func (m *placementModel) step(cmd Command) {
	t := m.t
	t.Helper()
	before := m.last
	var copying []Move
	if r := before.running(); r != nil {
		for _, mv := range r.Moves {
			if before.Phase(mv) == MoveCopying {
				copying = append(copying, mv)
			}
		}
	}
	res, _ := m.try(cmd)
	fail := func(ref BucketRef, format string, args ...any) {
		t.Helper()
		t.Fatalf("%s after %s %+v (%v): %s", ref, cmd.Kind(), cmd, res.Err(), fmt.Sprintf(format, args...))
	}
	now := map[BucketRef]bool{}
	m.last.eachBucket(func(ref BucketRef, replicas []ServerID) {
		now[ref] = true
		s, _, _ := m.last.Bucket(ref)
		if v, ok := m.last.Server(s.Leader); s.Leader != NoServer && (!ok || !v.Live) {
			fail(ref, "its leader %d is dead", s.Leader)
		}
		old, had, ok := before.Bucket(ref)
		if !ok {
			return
		}
		m.compare(cmd, old, s, had, replicas, func(format string, args ...any) { fail(ref, format, args...) })
		m.owe(ref, old, had, replicas)
	})
	for ref := range m.owed {
		if !now[ref] {
			delete(m.owed, ref)
		}
	}
	m.settle(cmd, res)
	for ref, owed := range m.owed {
		got := m.toDelete(ref)
		if len(got) != len(owed) || slices.ContainsFunc(got, func(id ServerID) bool { return !owed[id] }) {
			fail(ref, "%v have replicas to delete, want %v", got, owed)
		}
	}
	for _, mv := range copying {
		if m.last.Phase(mv) == MoveDone {
			m.finished++
		}
	}
}

// compare holds a bucket against what it was before.
func (m *placementModel) compare(cmd Command, old, s BucketState, had, replicas []ServerID, fail func(string, ...any)) {
	synced := old.ISR
	if c, ok := cmd.(AdjustISR); ok {
		synced = slices.Concat(synced, c.Changes[0].ISR)
	}
	kept := keep(s.ISR, func(id ServerID) bool { return slices.Contains(synced, id) })
	switch {
	case s.LeaderEpoch < old.LeaderEpoch || s.BucketEpoch < old.BucketEpoch:
		fail("an epoch fell: %+v, was %+v", s, old)
	case s.Leader != old.Leader && old.Ready && s.LeaderEpoch == old.LeaderEpoch:
		fail("leader changed within an epoch: %+v, was %+v", s, old)
	case old.Ready && len(kept) == 0:
		fail("nobody who was in sync is: %+v, was %+v", s, old)
	case old.Ready && len(kept) < len(s.ISR):
		fail("ISR grew by itself: %+v, was %+v", s, old)
	case slices.Equal(had, replicas):
		return
	}
	if len(replicas) > len(had) {
		m.started++
	}
	switch cmd.(type) {
	case Reassign, StartRebalance, StepRebalance, CancelRebalance, AdjustISR:
	default:
		fail("replicas went from %v to %v", had, replicas)
	}
}

// owe notes who lost or got a replica.
func (m *placementModel) owe(ref BucketRef, old BucketState, had, replicas []ServerID) {
	for _, id := range had {
		if !slices.Contains(replicas, id) && old.Ready {
			if m.owed[ref] == nil {
				m.owed[ref] = map[ServerID]bool{}
			}
			m.owed[ref][id] = true
		}
	}
	for _, id := range replicas {
		delete(m.owed[ref], id)
	}
}

// settle takes off what a command settled.
func (m *placementModel) settle(cmd Command, res Result) {
	if res.Code != Done {
		return
	}
	switch c := cmd.(type) {
	case AckDeletion:
		for _, o := range c.Objects {
			delete(m.owed[BucketRef{o.Table, o.Partition, o.Bucket.V}], c.Server)
		}
	case UnregisterServer:
		for _, owed := range m.owed {
			delete(owed, c.ID)
		}
	}
}
