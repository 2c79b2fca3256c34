package catalog

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestModel runs random commands, in random batches, from clients that repeat,
// skip, acknowledge and expire, against the model: every result, the visible
// state and the invariants after each one. States published on the way are
// verified again at the end.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "commands")
		r := &modelRun{t: t, m: newModel(), b: NewState().Begin(), rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		r.last = r.b.Publish()
		for _, cmd := range modelPrelude() {
			r.apply(cmd)
		}
		for range n {
			r.envelope()
			r.apply(r.command())
		}
		for _, k := range r.kept {
			if err := k.s.Check(); err != nil || k.s.Hash() != k.hash {
				t.Fatalf("published state at revision %d was written again: hash %x, was %x, check %v", k.s.Revision(), k.s.Hash(), k.hash, err)
			}
		}
		reload(t, r.b.Publish())
	})
}

type modelRun struct {
	rnd  *rand.Rand
	t    *rapid.T
	m    *model
	b    *Batch
	rev  uint64
	env  Envelope
	last *State
	kept []keptState
}

// modelPrelude makes a state in which most commands find something to do.
func modelPrelude() []Command {
	return []Command{
		CreateDatabase{Name: "a"},
		CreateDatabase{Name: "b"},
		ordersTable("a.t", 4), plainTable("b.t", 3),
		RegisterClient{},
		RegisterClient{},
		ImportBatch{Import: ImportID{Revision: 1}, Tables: []ImportTable{exported(2, "a.u", 4)}, Partitions: []ImportPartition{legacyRow(2, 0, "l1")}, Last: true},
	}
}

func one[T any](r *modelRun, from []T) T { return from[r.rnd.IntN(len(from))] }

func (r *modelRun) between(low, high int) int { return low + r.rnd.IntN(high-low+1) }

func (r *modelRun) upTo(low, high uint64) uint64 { return low + r.rnd.Uint64N(high-low+1) }

func (r *modelRun) some(from []string) []string {
	out := make([]string, r.between(1, 3))
	for i := range out {
		out[i] = one(r, from)
	}
	return out
}

// apply lets catalog and model execute one command and compares all of both.
func (r *modelRun) apply(cmd Command) {
	t := r.t
	r.rev += r.upTo(1, 3)
	r.env.Lease += Millis(one(r, []int{0, 0, 1, 1, 5_000, 5_000, 5_000, 4_000_000}))
	r.env.Wall += Millis(r.between(-5, 20))
	want := r.m.apply(r.rev, r.env, cmd)
	res, ev := r.b.Apply(Revision(r.rev), r.env, cmd)
	got := outcome{Code: res.Code, Count: int(res.Count), Epoch: res.Epoch, Version: res.Version, Changed: res.Changed, Rev: uint64(res.Revision)}
	for _, run := range res.IDs {
		for i := range run.Count {
			got.IDs = append(got.IDs, run.First+i)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s %+v from %+v: %v\n-model +catalog\n%s", cmd.Kind(), cmd, r.env, res.Err(), d)
	}
	if ev != nil && (len(ev.Changes) == 0 || !res.Changed || uint64(ev.Revision) != r.rev) {
		t.Fatalf("%s: event %+v for result %+v", cmd.Kind(), ev, res)
	}
	now := r.b.View()
	if cmd.Kind() == KindRegisterServer {
		r.followElections(now)
	}
	err := now.Check()
	if r.last != nil { // the state before this command was published
		err = errors.Join(err, CheckStep(r.last, now))
	}
	if err != nil {
		t.Fatalf("after %s %+v: %v", cmd.Kind(), cmd, err)
	}
	if d := cmp.Diff(r.m.dump(), dump(now)); d != "" {
		t.Fatalf("state after %s %+v: -model +catalog\n%s", cmd.Kind(), cmd, d)
	}
	r.last = nil
	if r.between(0, 3) > 0 {
		r.last = r.b.Publish()
		r.kept = append(r.kept, keptState{r.last, r.last.Hash()})
	}
}

// followElections takes over the revisions of tables whose buckets got other
// leaders when a server registered again; elections have tests of their own.
func (r *modelRun) followElections(now *State) {
	for path, t := range r.m.tables {
		if row, ok := now.Table(path); ok && t.placement != "" && uint64(row.Revision) == r.rev {
			t.rev = r.rev
		}
	}
}

// envelope picks who sends, often a repetition or a mistake.
func (r *modelRun) envelope() {
	r.env.Client, r.env.Sequence, r.env.Ack, r.env.Fence = 0, 0, 0, Opt[Fence]{}
	if r.between(0, 19) == 0 {
		r.env.Fence = Some(Fence{Incarnation: 0, Coordinator: CoordinatorEpoch(r.between(-1, 2))})
	}
	if r.between(0, 1) == 0 {
		return
	}
	r.env.Client = ClientID(r.upTo(1, r.m.nextClient))
	var mark uint64
	if c := r.m.clients[uint64(r.env.Client)]; c != nil {
		mark = c.watermark
	}
	r.env.Sequence = mark + one(r, []uint64{0, 1, 2, 3, 1 + r.upTo(0, 30), 1 + r.upTo(0, 30), 1 + r.upTo(0, 30), 1 + r.upTo(0, 30), 4096, 4097})
	r.env.Ack = mark + one(r, []uint64{0, 0, 0, 0, 0, 1, 9})
}

func (r *modelRun) pick(_ string, from ...string) string {
	return one(r, from)
}

func (r *modelRun) coin(_ string) bool { return r.rnd.IntN(2) == 0 }

func (r *modelRun) path() string { return r.pick("table", "a.t", "a.u", "b.t") }

// id is absent, right or wrong.
func (r *modelRun) tableID(path string) Opt[TableID] {
	t := r.m.tables[path]
	if t == nil || r.coin("no id") {
		return Opt[TableID]{}
	}
	return Some(TableID(t.id + one(r, []uint64{0, 0, 0, 1})))
}

func (r *modelRun) specs() []PartitionSpec {
	values := r.some([]string{"1", "2", "3", "4", "5", "6", "7", "8", "1", "2", "3", "$", "__x"})
	return dt(values...)
}

func (r *modelRun) command() Command {
	switch kind := one(r, modelKinds); kind {
	case KindNewTerm:
		return NewTerm{Term: r.upTo(0, 9)}
	case KindSetLimits:
		c := SetLimits{Database: r.pick("scope", "", "a", "b")}
		c.Limits.Buckets = one(r, []uint32{0, 3, 8, 4096, 65_537})
		c.Limits.Partitions = one(r, []uint32{0, 0, 3, 100})
		c.Limits.Replicas = one(r, []uint32{0, 0, 10, 65_536})
		return c
	case KindCreateDatabase:
		return CreateDatabase{Name: r.pick("db", "a", "b"), Comment: r.pick("comment", "", "x"), IfNotExists: r.coin("if")}
	case KindAlterDatabase:
		c := AlterDatabase{Name: r.pick("db", "a", "b"), IfExists: r.coin("if")}
		c.Set, c.Reset, c.Comment = r.alteration()
		if d := r.m.dbs[c.Name]; d != nil && r.coin("expect") {
			c.ExpectedRevision = Some(Revision(d.rev + r.upTo(0, 1)))
		}
		return c
	case KindDropDatabase:
		return DropDatabase{Name: r.pick("db", "a", "b"), Cascade: r.between(0, 4) == 0, IfExists: r.coin("if")}
	case KindCreateTable:
		c := ordersTable(r.path(), int32(r.between(0, 9)))
		if r.between(0, 3) == 0 {
			c = plainTable(c.Table, c.Buckets.V)
		}
		c.IfNotExists = r.coin("if")
		c.Properties = []Property{replication(one(r, []int{1, 1, 1, 2, 2, 3, 0}))}
		if f := r.pick("lake", "", "", "paimon", "iceberg"); f != "" {
			c.Properties = append(c.Properties, Property{PropLakeFormat, f}, Property{PropLakeEnabled, "true"})
		}
		return c
	case KindAlterTable:
		path := r.path()
		c := AlterTable{Table: path, TableID: r.tableID(path), IfExists: r.coin("if")}
		c.Set, c.Reset, c.Comment = r.alteration()
		if x := r.m.tables[path]; x != nil && r.coin("expect") {
			c.ExpectedRevision = Some(Revision(x.rev + r.upTo(0, 1)))
		}
		return c
	case KindRescaleTable:
		path := r.path()
		c := RescaleTable{Table: path, TableID: r.tableID(path), Buckets: int32(r.between(-1, 9)), Propagated: r.coin("propagated")}
		if x := r.m.tables[path]; x != nil && r.coin("expect") {
			c.ExpectedEpoch = Some(Epoch(max(0, int(x.epoch)+r.between(-1, 1))))
		}
		return c
	case KindDropTable:
		path := r.path()
		return DropTable{Table: path, TableID: r.tableID(path), IfExists: r.coin("if")}
	case KindCreatePartitions:
		return r.creation()
	case KindDropPartitions:
		path := r.path()
		c := DropPartitions{Table: path, TableID: r.tableID(path), Specs: r.specs(), IfExists: r.coin("if")}
		if r.coin("ids") {
			for range c.Specs {
				c.IDs = append(c.IDs, PartitionID(r.upTo(0, r.m.nextPart+1)))
			}
		}
		return c
	default:
		return r.otherCommand(kind)
	}
}

func (r *modelRun) alteration() (set []Property, reset []string, comment Opt[string]) {
	if r.coin("set") {
		set = []Property{{r.pick("key", "k", "l"), r.pick("value", "1", "2")}}
	}
	if r.coin("reset") {
		reset = []string{r.pick("reset key", "k", "l")}
	}
	if r.coin("comment") {
		comment = Some(r.pick("comment text", "", "x"))
	}
	return set, reset, comment
}

func (r *modelRun) creation() CreatePartitions {
	path := r.path()
	c := CreatePartitions{Table: path, TableID: r.tableID(path), Specs: r.specs(), IfNotExists: r.coin("if")}
	if x := r.m.tables[path]; x != nil && r.between(0, 4) == 0 {
		for range max(1, x.buckets-r.between(0, 1)) {
			c.Assignment = append(c.Assignment, slices.Repeat([]ServerID{ServerID(r.between(0, 4))}, 1))
		}
		if x.rf > 1 {
			c.Assignment = nil // the model counts replicas by the factor
		}
	}
	return c
}

var modelKinds = []Kind{
	KindNewTerm, KindSetLimits, KindCreateDatabase, KindCreateDatabase, KindAlterDatabase, KindCreateTable, KindCreateTable,
	KindCreateTable, KindAlterTable, KindRescaleTable, KindRescaleTable, KindRescaleTable, KindDropTable, KindCreatePartitions,
	KindCreatePartitions, KindCreatePartitions, KindCreatePartitions, KindDropPartitions, KindImportBatch, KindImportBatch, KindRegisterClient,
	KindExpireClients, KindPutKV, KindDeleteKV, KindTxnKV, KindAllocateIDs, KindRegisterServer, KindRegisterServer, KindUnregisterServer,
	KindAssignPending, KindPurgeDropped, KindDropDatabase,
}

func (r *modelRun) otherCommand(kind Kind) Command {
	key := func() string { return r.pick("kv key", "k1", "k2", "k3") }
	version := func() uint64 { return r.upTo(0, 3) }
	switch kind {
	case KindImportBatch:
		return r.importBatch()
	case KindRegisterClient:
		return RegisterClient{TTL: []Millis{0, 0, 10_000, 60_000, 9_999, 3_600_001}[r.between(0, 5)]}
	case KindExpireClients:
		var c ExpireClients
		for _, id := range slices.Sorted(maps.Keys(r.m.clients)) {
			if r.coin("expire") {
				c.Clients = append(c.Clients, ClientActivity{ClientID(id), Revision(r.m.clients[id].activeAt - r.upTo(0, 1))})
			}
		}
		return c
	case KindPutKV:
		c := PutKV{Key: key(), Value: []byte(r.pick("value", "", "v"))}
		if r.coin("expect") {
			c.ExpectedVersion = Some(version())
		}
		return c
	case KindDeleteKV:
		c := DeleteKV{Key: key(), IfExists: r.coin("if")}
		if r.coin("expect") {
			c.ExpectedVersion = Some(version())
		}
		return c
	case KindTxnKV:
		c := TxnKV{Ops: []OpKV{{Key: key(), Value: []byte("t")}, {Key: key(), Delete: r.coin("delete")}}}
		if r.coin("compare") {
			k := key()
			c.Compares = []CompareKV{{k, r.m.version(k) + r.upTo(0, 1)}}
		}
		return c
	case KindAllocateIDs:
		return AllocateIDs{Counter: r.pick("counter", "x", "y"), Count: r.upTo(0, 5)}
	case KindRegisterServer:
		return RegisterServer{
			ID: ServerID(r.between(0, 4)), DirectoryID: r.pick("dir", "d1", "d1", "d2"), Listeners: []string{"h:1"}, TTL: 10_000,
		}
	case KindUnregisterServer:
		c := UnregisterServer{ID: ServerID(r.between(0, 4))}
		if v, ok := r.m.servers[int(c.ID)]; ok && r.coin("incarnation") {
			c.Incarnation = Some(ServerIncarnation(v.incarnation + uint64(r.between(0, 1))))
		}
		return c
	case KindAssignPending:
		return AssignPending{MaxReplicas: one(r, []uint32{0, 1, 5, 20})}
	default:
		return PurgeDropped{Max: 10}
	}
}

func (r *modelRun) importBatch() ImportBatch {
	c := ImportBatch{Import: ImportID{Revision: Revision(r.between(1, 2))}, Last: r.coin("last")}
	path := r.path()
	id := TableID(r.upTo(0, r.m.nextTable+2))
	if x := r.m.tables[path]; x != nil && r.coin("same") {
		id = TableID(x.id)
	}
	if r.coin("with table") {
		c.Tables = []ImportTable{exported(id, path, int32(r.between(1, 9)))}
	}
	for range r.between(0, 2) {
		c.Partitions = append(c.Partitions, legacyRow(id, PartitionID(r.upTo(0, r.m.nextPart+3)), r.pick("name", "l1", "l2", "1")))
	}
	return c
}

// dump and (*model).dump list what a reader sees, in one order.
func dump(s *State) []string {
	var out []string
	c := s.Cluster()
	out = append(out, fmt.Sprint("cluster ", c.Term, c.Coordinator, c.NextTable, c.NextPartition, c.NextClient, c.Lease, c.Wall, " at ", s.Revision()))
	s.Databases(func(d *Database) bool {
		out = append(out, fmt.Sprintf("db %s %q %v rev %d created %d", d.Name, d.Comment, d.Properties, d.Revision, d.Created))
		return true
	})
	replicas := func(p *Placement) (text string) {
		if p != nil {
			for _, l := range p.Replicas {
				text += fmt.Sprint(l)
			}
		}
		return text
	}
	s.Tables("", func(t *Table) bool {
		out = append(out, fmt.Sprintf("table %s %d buckets %d epoch %d legacy %d custom %v %q rev %d %s", t.Path, t.ID, t.Buckets, t.Epoch,
			t.LegacyCount.V, t.CustomProperties, t.Comment, t.Revision, replicas(t.Placement)))
		s.Partitions(t.ID, "", func(p *Partition) bool {
			n, err := EffectiveCount(t, p)
			out = append(out, fmt.Sprintf("  %s %d count %d %v epoch %d %s", p.Name, p.ID, n, err, p.Epoch, replicas(p.Placement)))
			return true
		})
		return true
	})
	s.KeyValues("", func(v *KeyValue) bool {
		out = append(out, fmt.Sprintf("kv %s %q %d", v.Key, v.Value, v.Version))
		return true
	})
	s.Counters(func(v *Counter) bool {
		out = append(out, fmt.Sprintf("counter %s %d", v.Name, v.Next))
		return true
	})
	s.Servers(func(v *Server) bool {
		out = append(out, fmt.Sprintf("server %d %s %d", v.ID, v.DirectoryID, v.Incarnation))
		return true
	})
	s.Clients(func(v *Client) bool {
		n := 0
		v.Results(func(uint64, Result) bool { n++; return true })
		out = append(out, fmt.Sprintf("client %d %d active %d %d results %d", v.ID, v.Watermark, v.Active, v.ActiveAt, n))
		return true
	})
	return out
}

func properties(m map[string]string) (out []Property) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Property{k, m[k]})
	}
	return out
}

func (m *model) dump() []string {
	out := []string{fmt.Sprint("cluster ", m.term, m.coordinator, m.nextTable, m.nextPart, m.nextClient, m.lease, m.wall, " at ", m.rev)}
	for _, n := range slices.Sorted(maps.Keys(m.dbs)) {
		d := m.dbs[n]
		out = append(out, fmt.Sprintf("db %s %q %v rev %d created %d", n, d.comment, properties(d.props), d.rev, d.created))
	}
	for _, n := range slices.Sorted(maps.Keys(m.tables)) {
		t := m.tables[n]
		out = append(out, fmt.Sprintf("table %s %d buckets %d epoch %d legacy %d custom %v %q rev %d %s", n, t.id, t.buckets, t.epoch, t.legacy,
			properties(t.custom), t.comment, t.rev, t.placement))
		for _, v := range slices.Sorted(maps.Keys(t.parts)) {
			p := t.parts[v]
			out = append(out, fmt.Sprintf("  %s %d count %d %v epoch %d %s", v, p.id, t.effective(p), nil, p.epoch, p.placement))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m.kv)) {
		out = append(out, fmt.Sprintf("kv %s %q %d", k, m.kv[k].value, m.kv[k].version))
	}
	for _, k := range slices.Sorted(maps.Keys(m.counters)) {
		out = append(out, fmt.Sprintf("counter %s %d", k, m.counters[k]))
	}
	for _, id := range slices.Sorted(maps.Keys(m.servers)) {
		out = append(out, fmt.Sprintf("server %d %s %d", id, m.servers[id].dir, m.servers[id].incarnation))
	}
	for _, id := range slices.Sorted(maps.Keys(m.clients)) {
		c := m.clients[id]
		out = append(out, fmt.Sprintf("client %d %d active %d %d results %d", id, c.watermark, c.active, c.activeAt, len(c.results)))
	}
	return out
}
