package testhistory

import (
	"slices"
	"strings"

	"github.com/stavedb/stave/catalog"
)

// answer is what the naive model says of a command.
type answer struct {
	code    catalog.Code
	ids     []uint64
	count   int32
	epoch   uint64
	version uint64
}

// naive is a second, simpler model of the commands that callers send. It keeps
// everything in maps and knows nothing of package catalog's state.
type naive struct {
	databases map[string]bool
	tables    map[string]*naiveTable
	kv        map[string]uint64 // version
	counters  map[string]uint64
	clients   map[uint64]*naiveClient
	nextTable uint64
	nextPart  uint64
	nextID    uint64 // of clients
	checked   int    // answers compared
}

type naiveTable struct {
	id          uint64
	buckets     int32
	epoch       uint64
	partitioned bool
	parts       map[string]uint64
}

type naiveClient struct {
	watermark uint64
	answers   map[uint64]answer
}

func newNaive() *naive {
	return &naive{
		databases: map[string]bool{}, tables: map[string]*naiveTable{}, kv: map[string]uint64{}, counters: map[string]uint64{},
		clients: map[uint64]*naiveClient{}, nextID: 1,
	}
}

// apply executes a command. placeable says whether enough servers are alive for
// new objects, which this model does not keep. It reports false for a command it
// does not know.
func (n *naive) apply(env catalog.Envelope, cmd catalog.Command, placeable bool) (answer, bool) {
	if env.Client == 0 {
		return n.execute(cmd, placeable)
	}
	c := n.clients[uint64(env.Client)]
	if c == nil {
		return answer{code: catalog.ErrSessionExpired}, true
	}
	for s := range c.answers {
		if s <= env.Ack {
			delete(c.answers, s)
		}
	}
	c.watermark = max(c.watermark, env.Ack)
	if env.Sequence <= c.watermark {
		return answer{code: catalog.ErrAlreadyAcknowledged}, true
	}
	if a, ok := c.answers[env.Sequence]; ok {
		return a, true
	}
	a, known := n.execute(cmd, placeable)
	if known {
		c.answers[env.Sequence] = a
	}
	return a, known
}

func (n *naive) execute(cmd catalog.Command, placeable bool) (answer, bool) {
	switch c := cmd.(type) {
	case catalog.RegisterClient:
		id := n.nextID
		n.nextID++
		n.clients[id] = &naiveClient{answers: map[uint64]answer{}}
		return answer{ids: []uint64{id}}, true
	case catalog.PutKV:
		if c.ExpectedVersion.Set && c.ExpectedVersion.V != n.kv[c.Key] {
			return answer{code: catalog.ErrVersionConflict}, true
		}
		n.kv[c.Key]++
		return answer{version: n.kv[c.Key]}, true
	case catalog.DeleteKV:
		return n.deleteKey(c), true
	case catalog.TxnKV:
		return n.txn(c), true
	case catalog.AllocateIDs:
		var a answer
		for range c.Count {
			a.ids = append(a.ids, n.counters[c.Counter])
			n.counters[c.Counter]++
		}
		return a, true
	case catalog.CreateDatabase:
		if n.databases[c.Name] && !c.IfNotExists {
			return answer{code: catalog.ErrDatabaseAlreadyExist}, true
		}
		n.databases[c.Name] = true
		return answer{}, true
	case catalog.CreateTable:
		return n.createTable(c, placeable), true
	case catalog.RescaleTable:
		return n.rescale(c), true
	case catalog.DropTable:
		if n.tables[c.Table] == nil && !c.IfExists {
			return answer{code: catalog.ErrTableNotExist}, true
		}
		delete(n.tables, c.Table)
		return answer{}, true
	case catalog.CreatePartitions:
		return n.createPartitions(c, placeable), true
	case catalog.DropPartitions:
		return n.dropPartitions(c), true
	}
	return answer{}, false
}

func (n *naive) deleteKey(c catalog.DeleteKV) answer {
	switch {
	case c.ExpectedVersion.Set && c.ExpectedVersion.V != n.kv[c.Key]:
		return answer{code: catalog.ErrVersionConflict}
	case n.kv[c.Key] == 0 && !c.IfExists:
		return answer{code: catalog.ErrKeyNotExist}
	}
	delete(n.kv, c.Key)
	return answer{}
}

func (n *naive) txn(c catalog.TxnKV) answer {
	for _, cmp := range c.Compares {
		if n.kv[cmp.Key] != cmp.Version {
			return answer{code: catalog.ErrVersionConflict}
		}
	}
	for _, op := range c.Ops {
		if op.Delete {
			delete(n.kv, op.Key)
		} else {
			n.kv[op.Key]++
		}
	}
	return answer{}
}

func (n *naive) createTable(c catalog.CreateTable, placeable bool) answer {
	database, _, _ := strings.Cut(c.Table, ".")
	switch t := n.tables[c.Table]; {
	case !n.databases[database]:
		return answer{code: catalog.ErrDatabaseNotExist}
	case t != nil && c.IfNotExists:
		return answer{ids: []uint64{t.id}, count: t.buckets}
	case t != nil:
		return answer{code: catalog.ErrTableAlreadyExist}
	case len(c.PartitionKeys) == 0 && !placeable:
		return answer{code: catalog.ErrInvalidReplicationFactor}
	}
	t := &naiveTable{id: n.nextTable, buckets: 1, partitioned: len(c.PartitionKeys) > 0, parts: map[string]uint64{}}
	if c.Buckets.Set {
		t.buckets = c.Buckets.V
	}
	n.nextTable++
	n.tables[c.Table] = t
	return answer{ids: []uint64{t.id}, count: t.buckets}
}

func (n *naive) rescale(c catalog.RescaleTable) answer {
	t := n.tables[c.Table]
	switch {
	case t == nil:
		return answer{code: catalog.ErrTableNotExist}
	case c.ExpectedEpoch.Set && uint64(c.ExpectedEpoch.V) != t.epoch:
		return answer{code: catalog.ErrVersionConflict}
	case c.Buckets != t.buckets:
		t.buckets = c.Buckets
		t.epoch++
	}
	return answer{count: t.buckets, epoch: t.epoch}
}

func partName(s catalog.PartitionSpec) string {
	var values []string
	for _, p := range s {
		values = append(values, p.Value)
	}
	return strings.Join(values, "$")
}

func (n *naive) createPartitions(c catalog.CreatePartitions, placeable bool) answer {
	t := n.tables[c.Table]
	if t == nil {
		return answer{code: catalog.ErrTableNotExist}
	}
	fresh := 0
	for _, s := range c.Specs {
		if _, have := t.parts[partName(s)]; !have {
			fresh++
		} else if !c.IfNotExists {
			return answer{code: catalog.ErrPartitionAlreadyExists}
		}
	}
	if fresh > 0 && !placeable {
		return answer{code: catalog.ErrInvalidReplicationFactor}
	}
	a := answer{count: -1}
	for _, s := range c.Specs {
		name := partName(s)
		if _, have := t.parts[name]; !have {
			t.parts[name] = n.nextPart
			n.nextPart++
		}
		a.ids = append(a.ids, t.parts[name])
	}
	if fresh == len(c.Specs) { // else the last one may be of an older layout, which is not kept here
		a.count, a.epoch = t.buckets, t.epoch
	}
	return a
}

func (n *naive) dropPartitions(c catalog.DropPartitions) answer {
	t := n.tables[c.Table]
	if t == nil {
		return answer{code: catalog.ErrTableNotExist}
	}
	for _, s := range c.Specs {
		if _, have := t.parts[partName(s)]; !have && !c.IfExists {
			return answer{code: catalog.ErrPartitionNotExists}
		}
	}
	for _, s := range c.Specs {
		delete(t.parts, partName(s))
	}
	return answer{}
}

// agrees compares the model's answer with what the log gives.
func (a answer) agrees(r catalog.Result) bool {
	if a.code != r.Code {
		return false
	}
	if a.code != catalog.Done {
		return true
	}
	var ids []uint64
	for _, run := range r.IDs {
		for i := range run.Count {
			ids = append(ids, run.First+i)
		}
	}
	if !r.More && a.ids != nil && !slices.Equal(ids, a.ids) {
		return false
	}
	return (a.count <= 0 || a.count == r.Count && (a.epoch == r.Epoch)) && (a.version == 0 || a.version == r.Version)
}
