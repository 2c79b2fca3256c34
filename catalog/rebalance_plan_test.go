package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// spread returns a history with servers on racks, 0 meaning none, and a
// partition whose buckets have the given replicas.
func spread(t *testing.T, racks []int, replicas [][]ServerID) *history {
	t.Helper()
	h := newHistory(t)
	h.must(NewTerm{Term: 1})
	h.must(CreateDatabase{Name: "d"})
	for i, rack := range racks {
		c := RegisterServer{ID: ServerID(i), DirectoryID: dirOf(i), Listeners: []string{"h:1"}, TTL: 10_000}
		if rack > 0 {
			c.Rack = fmt.Sprint("r", rack)
		}
		h.must(c)
	}
	h.must(ordersTable("d.t", int32(len(replicas))))
	h.must(CreatePartitions{Table: "d.t", Specs: dt("p"), Assignment: replicas})
	return h
}

func repeat(n int, replicas ...ServerID) [][]ServerID {
	out := make([][]ServerID, n)
	for i := range out {
		out[i] = replicas
	}
	return out
}

func mustPlan(t *testing.T, s *State, limit int) *RebalancePlan {
	t.Helper()
	p, err := s.PlanRebalance(limit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// carryOut starts a plan and lets every new replica come into sync.
func (h *history) carryOut(p *RebalancePlan) {
	h.t.Helper()
	id := "plan-" + utoa(uint64(h.rev))
	h.must(StartRebalance{ID: id, Moves: p.Moves, InFlight: 7})
	for range len(p.Moves) + 2 {
		r := h.last.Rebalance()
		if r.Status != RebalanceRunning {
			break
		}
		for _, m := range r.Moves {
			if h.last.Phase(m) != MoveCopying {
				continue
			}
			s, replicas := h.bucket(m.Bucket)
			if s.Leader != NoServer {
				h.inSync(m.Bucket, keep(replicas, func(id ServerID) bool { v, ok := h.last.Server(id); return ok && v.Live })...)
			}
		}
		if _, due := h.last.RebalanceDue(); due {
			h.must(StepRebalance{ID: id})
		}
	}
	if r := h.last.Rebalance(); r.Status != RebalanceCompleted {
		h.t.Fatalf("plan %s is %d after all replicas came into sync", id, r.Status)
	}
}

func TestPlan_Table(t *testing.T) {
	even := [][]ServerID{{0, 1}, {1, 2}, {2, 3}, {3, 0}}
	for _, c := range []struct {
		name     string
		racks    []int
		replicas [][]ServerID
		tag      map[ServerID]ServerTag
		moves    int
		copies   int
		after    []int // replicas
		leaders  []int
	}{
		{"even", make([]int, 4), even, nil, 0, 0, []int{2, 2, 2, 2}, []int{1, 1, 1, 1}},
		{"new server", make([]int, 5), repeat(20, 0, 1, 2, 3), nil, 17, 16, []int{16, 16, 16, 16, 16}, []int{4, 4, 4, 4, 4}},
		{"leaders only", make([]int, 2), repeat(10, 0, 1), nil, 5, 0, []int{10, 10}, []int{5, 5}},
		{"drain", make([]int, 5), even, map[ServerID]ServerTag{1: PermanentOffline}, 2, 2, []int{2, 0, 2, 2, 2}, []int{1, 0, 1, 1, 1}},
		{"upgrade", make([]int, 4), even, map[ServerID]ServerTag{1: TemporaryOffline}, 1, 0, []int{2, 2, 2, 2}, []int{1, 0, 2, 1}},
		{"racks", []int{1, 1, 2, 2}, repeat(4, 0, 2), nil, 4, 4, []int{2, 2, 2, 2}, []int{1, 1, 1, 1}},
		{"one server", make([]int, 1), repeat(4, 0), nil, 0, 0, []int{4}, []int{4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := spread(t, c.racks, c.replicas)
			for id, tag := range c.tag {
				h.must(TagServer{IDs: ids(id), Tag: tag})
			}
			p := mustPlan(t, h.last, 0)
			var replicas, leaders []int
			for _, l := range p.Load {
				replicas, leaders = append(replicas, l.ReplicasAfter), append(leaders, l.LeadersAfter)
			}
			t.Logf("%d moves, %d copies, replicas %v, leaders %v", len(p.Moves), p.Copies, replicas, leaders)
			if p.Copies != c.copies || len(p.Moves) > c.moves || p.More {
				t.Errorf("%d moves with %d copies, want %d with %d", len(p.Moves), p.Copies, c.moves, c.copies)
			}
			if slices.Max(replicas) != slices.Max(c.after) || !slices.Equal(zeros(replicas), zeros(c.after)) {
				t.Errorf("replicas afterwards: %v, want %v", replicas, c.after)
			}
			if c.leaders != nil && (slices.Max(leaders) != slices.Max(c.leaders) || !slices.Equal(zeros(leaders), zeros(c.leaders))) {
				t.Errorf("leaders afterwards: %v, want %v", leaders, c.leaders)
			}
		})
	}
}

// zeros says which are 0.
func zeros(list []int) (out []bool) {
	for _, n := range list {
		out = append(out, n == 0)
	}
	return out
}

// TestPlan_Properties: over random clusters a plan that is carried out empties
// what is to be emptied, takes no bucket onto fewer racks, evens out replicas and
// leaders as well as racks let it, says beforehand what everyone will have, is the
// same when it is computed again, and leaves nothing for a second plan.
func TestPlan_Properties(t *testing.T) {
	for range 60 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { planProperties(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

func planProperties(t *testing.T, r *rand.Rand) {
	racks := make([]int, 3+r.IntN(6))
	withRacks := r.IntN(2) == 0
	for i := range racks {
		if withRacks {
			racks[i] = 1 + i%3
		}
	}
	factor := 1 + r.IntN(min(3, len(racks)-1))
	lists := make([][]ServerID, 1+r.IntN(60))
	for i := range lists {
		for len(lists[i]) < factor {
			if id := ServerID(r.IntN(len(racks)) * r.IntN(len(racks)) / len(racks)); !slices.Contains(lists[i], id) {
				lists[i] = append(lists[i], id)
			}
		}
	}
	h := spread(t, racks, lists)
	tagged := NoServer
	if r.IntN(2) == 0 {
		tagged = ServerID(r.IntN(len(racks)))
		h.must(TagServer{IDs: ids(tagged), Tag: PermanentOffline})
	}
	p := mustPlan(t, h.last, 0)
	if again := mustPlan(t, h.last, 0); fmt.Sprint(again) != fmt.Sprint(p) {
		t.Fatalf("planned again: %v, first %v", again, p)
	}
	rackCount := func(replicas []ServerID) int {
		seen := map[int]bool{}
		for _, id := range replicas {
			seen[racks[id]] = true
		}
		return len(seen)
	}
	for _, m := range p.Moves {
		if withRacks && tagged == NoServer && rackCount(m.To) < rackCount(m.From) {
			t.Errorf("%s goes from %d racks to %d: %+v", m.Bucket, rackCount(m.From), rackCount(m.To), m)
		}
		if slices.Contains(m.To, tagged) {
			t.Errorf("%s stays on server %d: %+v", m.Bucket, tagged, m)
		}
	}
	if len(p.Moves) > 0 {
		h.carryOut(p)
	}
	replicas, leaders := map[ServerID]int{}, map[ServerID]int{}
	h.last.eachBucket(func(ref BucketRef, list []ServerID) {
		if s, _, _ := h.last.Bucket(ref); s.Leader != list[0] {
			t.Errorf("%s is led by %d of %v", ref, s.Leader, list)
		}
		leaders[list[0]]++
		for _, id := range list {
			replicas[id]++
		}
	})
	low, high := 1<<30, 0
	for _, l := range p.Load {
		if l.ReplicasAfter != replicas[l.ID] || l.LeadersAfter != leaders[l.ID] {
			t.Errorf("server %d has %d replicas and leads %d, the plan said %+v", l.ID, replicas[l.ID], leaders[l.ID], l)
		}
		if l.ID != tagged {
			low, high = min(low, l.ReplicasAfter), max(high, l.ReplicasAfter)
		}
	}
	total := len(lists) * factor
	n := len(racks)
	if tagged != NoServer {
		n--
	}
	if !withRacks && (low < min(total/n, (total*95+100*n-1)/(100*n)) || high > max((total+n-1)/n, total*105/(100*n))) {
		t.Errorf("replicas per server are %d..%d, %d in all on %d servers", low, high, total, n)
	}
	if second := mustPlan(t, h.last, 0); second.Copies > 0 && !withRacks {
		t.Errorf("a second plan copies %d replicas: %+v", second.Copies, second.Moves)
	}
	if tagged != NoServer {
		h.must(UnregisterServer{ID: tagged})
	}
}

// TestPlan_DrainKeepsRacks: what leaves a server goes onto a rack that has no other
// replica of the bucket, also if another server is emptier.
func TestPlan_DrainKeepsRacks(t *testing.T) {
	h := spread(t, []int{1, 1, 2, 2}, append(repeat(4, 1, 2), ids(0, 2)))
	h.must(TagServer{IDs: ids(0), Tag: PermanentOffline})
	h.carryOut(mustPlan(t, h.last, 0))
	for i := range 5 {
		if _, replicas := h.bucket(partitionRef(h, "p", i)); !slices.Contains(replicas, 1) {
			t.Errorf("bucket %d has replicas %v, of which none is on rack 1", i, replicas)
		}
	}
}

// TestPlan_Bounds: a plan that is cut says so, and plans one after the other get
// to the end; nobody to take what has to go is a refusal.
func TestPlan_Bounds(t *testing.T) {
	h := spread(t, make([]int, 4), repeat(30, 0, 1, 2))
	h.must(TagServer{IDs: ids(0), Tag: PermanentOffline})
	for left := 30; left > 0; left -= 8 {
		p := mustPlan(t, h.last, 8)
		if len(p.Moves) != 8 || left > 8 && !p.More {
			t.Fatalf("%d moves, more: %v, with %d left", len(p.Moves), p.More, left)
		}
		h.carryOut(p)
		if n := h.last.ReplicasOn(0); n != max(0, left-8) {
			t.Fatalf("%d replicas are left on server 0", n)
		}
	}
	h.must(TagServer{IDs: ids(1), Tag: PermanentOffline})
	h.refusedPlan(ErrInvalidReplicationFactor, "from server 1", "of which there are 2")
	h.must(TagServer{IDs: ids(1), Tag: PermanentOffline, Remove: true})
	ref := partitionRef(h, "p", 0)
	_, replicas := h.bucket(ref)
	h.inSync(ref, replicas[0])
	h.must(StartRebalance{ID: "r", Moves: []Move{{Bucket: ref, From: replicas, To: replicas[1:]}}})
	h.refusedPlan(ErrRebalanceFailure, "rebalance r is running")
	if _, err := NewState().PlanRebalance(0); err != nil {
		t.Errorf("plan of nothing: %v", err)
	}
}

func (h *history) refusedPlan(code Code, texts ...string) {
	h.t.Helper()
	_, err := h.last.PlanRebalance(0)
	if !errors.Is(err, code) {
		h.t.Fatalf("plan: got %v, want %v", err, code)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			h.t.Errorf("plan: %v does not contain %q", err, text)
		}
	}
}
