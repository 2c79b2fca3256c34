package catalog

import (
	"errors"
	"strings"
	"testing"
)

// history applies commands one by one and verifies after each of them that the
// invariants hold, that a refusal changed nothing, and at the end that no
// published state was written again.
type history struct {
	t    testing.TB
	b    *Batch
	rev  Revision
	env  Envelope
	last *State
	kept []keptState
}

type keptState struct {
	s    *State
	hash uint64
}

func newHistory(t testing.TB) *history {
	h := &history{t: t, last: NewState()}
	h.b = h.last.Begin()
	h.env.Wall = 1_000
	t.Cleanup(func() {
		for i, k := range h.kept {
			if err := k.s.Check(); err != nil || k.s.Hash() != k.hash {
				t.Errorf("published state %d at revision %d was written again: hash %x, was %x, check %v", i, k.s.Revision(), k.s.Hash(), k.hash, err)
			}
		}
	})
	return h
}

// try applies one command and returns its result and event.
func (h *history) try(cmd Command) (Result, *Event) {
	h.t.Helper()
	h.rev++
	res, ev := h.b.Apply(h.rev, h.env, cmd)
	now := h.b.Publish()
	if err := errors.Join(now.Check(), CheckStep(h.last, now)); err != nil {
		h.t.Fatalf("after %s at revision %d: %v", cmd.Kind(), h.rev, err)
	}
	if res.Code != Done && (ev != nil || res.Changed) {
		h.t.Fatalf("%s was refused with %v and still changed something", cmd.Kind(), res.Err())
	}
	if len(h.kept) < 200 {
		h.kept = append(h.kept, keptState{now, now.Hash()})
	}
	h.last = now
	return res, ev
}

// must applies a command that succeeds.
func (h *history) must(cmd Command) Result {
	h.t.Helper()
	res, _ := h.try(cmd)
	if err := res.Err(); err != nil {
		h.t.Fatalf("%s: %v", cmd.Kind(), err)
	}
	return res
}

// refused applies a command that is refused with a code and a sentence that
// contains every text.
func (h *history) refused(code Code, cmd Command, texts ...string) Result {
	h.t.Helper()
	hash := h.last.hash
	res, _ := h.try(cmd)
	if res.Code != code {
		h.t.Fatalf("%s: got %v, want %v", cmd.Kind(), res.Err(), code)
	}
	for _, s := range texts {
		if !strings.Contains(res.Message, s) {
			h.t.Errorf("%s: message %q does not contain %q", cmd.Kind(), res.Message, s)
		}
	}
	if h.env.Client == 0 && h.last.hash != hash {
		h.t.Errorf("%s was refused with %v and changed a row", cmd.Kind(), code)
	}
	return res
}

// unchanged applies a command that succeeds and changes nothing.
func (h *history) unchanged(cmd Command) Result {
	h.t.Helper()
	hash := h.last.hash
	res, ev := h.try(cmd)
	if res.Code != Done || res.Changed || ev != nil || h.last.hash != hash {
		h.t.Errorf("%s: %v, changed %v, event %v, want success and no change", cmd.Kind(), res.Err(), res.Changed, ev)
	}
	return res
}

func (h *history) table(path string) *Table {
	h.t.Helper()
	t, ok := h.last.Table(path)
	if !ok {
		h.t.Fatalf("table %s is missing at revision %d", path, h.rev)
	}
	return t
}

func (h *history) partition(path, name string) *Partition {
	h.t.Helper()
	p, ok := h.last.Partition(h.table(path).ID, name)
	if !ok {
		h.t.Fatalf("partition %s of %s is missing at revision %d", name, path, h.rev)
	}
	return p
}

// counts returns name to effective count of a table's partitions; -1 if a count
// is not known.
func (h *history) counts(path string) map[string]int32 {
	h.t.Helper()
	t, out := h.table(path), map[string]int32{}
	h.last.Partitions(t.ID, "", func(p *Partition) bool {
		n, err := EffectiveCount(t, p)
		if err != nil {
			n = -1
		}
		out[p.Name] = n
		return true
	})
	return out
}

// orders makes what most tests begin with: database shop and table shop.orders, partitioned by dt.
func (h *history) orders(buckets int32) *Table {
	h.t.Helper()
	if _, ok := h.last.Database("shop"); !ok {
		h.must(CreateDatabase{Name: "shop"})
	}
	h.must(ordersTable("shop.orders", buckets))
	return h.table("shop.orders")
}

func ordersTable(path string, buckets int32) CreateTable {
	return CreateTable{
		Table: path, Columns: []NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, Buckets: Some(buckets),
	}
}

func plainTable(path string, buckets int32, props ...Property) CreateTable {
	return CreateTable{Table: path, Columns: []NewColumn{{Name: "a", Type: "INT"}}, PrimaryKey: []string{"a"}, Buckets: Some(buckets), Properties: props}
}

func dt(values ...string) []PartitionSpec {
	out := make([]PartitionSpec, len(values))
	for i, v := range values {
		out[i] = PartitionSpec{{"dt", v}}
	}
	return out
}

func (h *history) create(path string, values ...string) Result {
	h.t.Helper()
	return h.must(CreatePartitions{Table: path, Specs: dt(values...)})
}

func (h *history) servers(ids ...ServerID) {
	h.t.Helper()
	for _, id := range ids {
		h.must(RegisterServer{ID: id, DirectoryID: "dir" + itoa(int64(id)), Listeners: []string{"h" + itoa(int64(id)) + ":9123"}, TTL: 10_000})
	}
}

func replication(n int) Property { return Property{PropReplication, itoa(int64(n))} }

// firstID applies a command that succeeds and returns the first id it gave.
// incarnation is the current one of a registered server.
func (h *history) incarnation(id ServerID) ServerIncarnation {
	h.t.Helper()
	v, ok := h.last.Server(id)
	if !ok {
		h.t.Fatalf("server %d is not registered", id)
	}
	return v.Incarnation
}

func (h *history) firstID(cmd Command) uint64 {
	h.t.Helper()
	res := h.must(cmd)
	id, ok := res.FirstID()
	if !ok {
		h.t.Fatalf("%s gave no id", cmd.Kind())
	}
	return id
}

// mark changes a server's record as a command would that is not there yet.
func (h *history) mark(id ServerID, change func(*Server)) {
	h.t.Helper()
	v, ok := h.last.Server(id)
	if !ok {
		h.t.Fatalf("server %d is missing", id)
	}
	n := *v
	change(&n)
	h.b.putServer(v, &n, true)
	h.last = h.b.Publish()
}
