package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// model is the catalog once more, written naively: maps, pointers, everything
// recomputed. It shares no code with the package but its command types.
type model struct {
	rev, lease, wall uint64
	term             uint64
	coordinator      int
	limits           [3]uint64 // buckets, partitions, replicas; 0: default
	dbs              map[string]*modelDB
	tables           map[string]*modelTable
	dead, deadParts  map[uint64]bool // ids of dropped tables and partitions
	nextTable        uint64
	nextPart         uint64
	nextClient       uint64
	clients          map[uint64]*modelClient
	kv               map[string]*modelKV
	counters         map[string]uint64
	servers          map[int]*modelServer
	importing        map[string]*modelImport
}

type modelImport struct{ baseTable, basePart uint64 }

type modelDB struct {
	comment string
	props   map[string]string
	rev     uint64
	limits  [3]uint64
	created uint64
}

type modelTable struct {
	id          uint64
	buckets, rf int
	epoch       uint64
	legacy      int // 0: not set
	partitioned bool
	lake        string // "" or format
	tiered      bool
	imp         string
	comment     string
	custom      map[string]string
	parts       map[string]*modelPart
	placement   string
	rev         uint64
	layouts     []string
}

type modelPart struct {
	id        uint64
	own       int // 0: legacy
	epoch     uint64
	placement string
}

type modelClient struct {
	watermark, active, activeAt, ttl uint64
	results                          map[uint64]outcome
}

type modelKV struct {
	value   string
	version uint64
}

type modelServer struct {
	dir         string
	incarnation uint64
	renewed     uint64
	ttl         uint64
}

// outcome is what a command came to, in plain values.
type outcome struct {
	Code    Code
	IDs     []uint64
	Count   int
	Epoch   uint64
	Version uint64
	Changed bool
	Rev     uint64
}

func newModel() *model {
	return &model{
		coordinator: -1, nextClient: 1, dbs: map[string]*modelDB{}, tables: map[string]*modelTable{}, dead: map[uint64]bool{}, deadParts: map[uint64]bool{},
		clients: map[uint64]*modelClient{}, kv: map[string]*modelKV{}, counters: map[string]uint64{}, servers: map[int]*modelServer{},
		importing: map[string]*modelImport{},
	}
}

func no(c Code) outcome { return outcome{Code: c} }

func (m *model) limit(db string, i int) uint64 {
	v := [3]uint64{4096, 100_000, 65_536}[i]
	if m.limits[i] != 0 {
		v = m.limits[i]
	}
	if d := m.dbs[db]; d != nil && d.limits[i] != 0 {
		v = d.limits[i]
	}
	return v
}

// apply is 'Exactly once' and the clocks, around one command.
func (m *model) apply(rev uint64, env Envelope, cmd Command) outcome {
	m.rev, m.lease, m.wall = rev, max(m.lease, uint64(env.Lease)), max(m.wall, uint64(max(0, env.Wall)))
	if env.Client == 0 {
		if env.Sequence+env.Ack != 0 {
			return m.at(no(ErrInvalidArgument))
		}
		return m.at(m.fencedOr(env, cmd))
	}
	c := m.clients[uint64(env.Client)]
	if c == nil {
		return m.at(no(ErrSessionExpired))
	}
	if env.Sequence == 0 {
		return m.at(no(ErrInvalidArgument))
	}
	c.active, c.activeAt, c.watermark = m.lease, rev, max(c.watermark, env.Ack)
	maps.DeleteFunc(c.results, func(seq uint64, _ outcome) bool { return seq <= c.watermark })
	if env.Sequence <= c.watermark {
		return m.at(no(ErrAlreadyAcknowledged))
	}
	if r, ok := c.results[env.Sequence]; ok {
		return r
	}
	if env.Sequence > c.watermark+4096 {
		return m.at(no(ErrBusy))
	}
	r := m.at(m.fencedOr(env, cmd))
	c.results[env.Sequence] = r
	return r
}

func (m *model) at(o outcome) outcome {
	o.Rev = m.rev
	return o
}

func (m *model) fencedOr(env Envelope, cmd Command) outcome {
	if env.Fence.Set && (env.Fence.V.Incarnation != 0 || int(env.Fence.V.Coordinator) != m.coordinator) {
		return no(ErrFenced)
	}
	return m.run(cmd)
}

func (m *model) run(cmd Command) outcome {
	switch c := cmd.(type) {
	case NewTerm:
		changed := c.Term > m.term
		if changed {
			m.term = c.Term
			m.coordinator++
		}
		return outcome{Epoch: uint64(max(0, m.coordinator)), Changed: changed}
	case SetLimits:
		return m.setLimits(c)
	case CreateDatabase:
		if m.dbs[c.Name] != nil {
			if c.IfNotExists {
				return outcome{}
			}
			return no(ErrDatabaseAlreadyExist)
		}
		m.dbs[c.Name] = &modelDB{comment: c.Comment, props: map[string]string{}, rev: m.rev, created: m.wall}
		return outcome{Changed: true}
	case AlterDatabase:
		return m.alterDatabase(c)
	case DropDatabase:
		return m.dropDatabase(c)
	case CreateTable:
		return m.createTable(c)
	case AlterTable:
		return m.alterTable(c)
	case RescaleTable:
		return m.rescale(c)
	case DropTable:
		t := m.tables[c.Table]
		if t == nil || c.TableID.Set && uint64(c.TableID.V) != t.id {
			return m.missing(c.IfExists)
		}
		m.drop(c.Table)
		return outcome{IDs: []uint64{t.id}, Changed: true}
	case CreatePartitions:
		return m.createPartitions(c)
	case DropPartitions:
		return m.dropPartitions(c)
	case ImportBatch:
		return m.importBatch(c)
	default:
		return m.runOther(cmd)
	}
}

func (m *model) missing(ignore bool) outcome {
	if ignore {
		return outcome{}
	}
	return no(ErrTableNotExist)
}

func (m *model) setLimits(c SetLimits) outcome {
	set := [3]uint64{uint64(c.Limits.Buckets), uint64(c.Limits.Partitions), uint64(c.Limits.Replicas)}
	for i, most := range []uint64{65_536, 10_000_000, 1_048_576} {
		if set[i] > most {
			return no(ErrTooLarge)
		}
	}
	to := &m.limits
	if c.Database != "" {
		d := m.dbs[c.Database]
		if d == nil {
			return no(ErrDatabaseNotExist)
		}
		to = &d.limits
	}
	changed := false
	for i, v := range set {
		if v != 0 && to[i] != v {
			to[i], changed = v, true
		}
	}
	if changed && c.Database != "" {
		m.dbs[c.Database].rev = m.rev
	}
	return outcome{Changed: changed}
}

// alterMap sets, then resets, and says whether anything is different.
func alterMap(have map[string]string, set []Property, reset []string) (map[string]string, bool) {
	out := maps.Clone(have)
	for _, p := range set {
		out[p.Key] = p.Value
	}
	for _, k := range reset {
		delete(out, k)
	}
	return out, !maps.Equal(out, have)
}

func (m *model) alterDatabase(c AlterDatabase) outcome {
	d := m.dbs[c.Name]
	if d == nil {
		if c.IfExists {
			return outcome{}
		}
		return no(ErrDatabaseNotExist)
	}
	if c.ExpectedRevision.Set && uint64(c.ExpectedRevision.V) != d.rev {
		return no(ErrVersionConflict)
	}
	props, changed := alterMap(d.props, c.Set, c.Reset)
	if comment := c.Comment.Or(d.comment); comment != d.comment || changed {
		d.comment, d.props, d.rev = comment, props, m.rev
		return outcome{Changed: true}
	}
	return outcome{}
}

func (m *model) dropDatabase(c DropDatabase) outcome {
	if m.dbs[c.Name] == nil {
		if c.IfExists {
			return outcome{}
		}
		return no(ErrDatabaseNotExist)
	}
	var tables []string
	for p := range m.tables {
		if strings.HasPrefix(p, c.Name+".") {
			tables = append(tables, p)
		}
	}
	if len(tables) > 0 && !c.Cascade {
		return no(ErrDatabaseNotEmpty)
	}
	for _, p := range tables {
		m.drop(p)
	}
	delete(m.dbs, c.Name)
	return outcome{Changed: true}
}

func (m *model) drop(path string) {
	m.dead[m.tables[path].id] = true
	delete(m.tables, path)
}

// place spreads buckets as the contract says, or says why not.
func (m *model) place(id uint64, buckets, rf int) (string, Code) {
	if len(m.servers) == 0 {
		return "", Done
	}
	ids := slices.Sorted(maps.Keys(m.servers))
	n := len(ids)
	if rf > n {
		return "", ErrInvalidReplicationFactor
	}
	var out []string
	start, shift := int(id%uint64(n)), int(id/uint64(n)%uint64(max(1, n-1)))
	for b := range buckets {
		round, first := shift+b/n, (b+start)%n
		list := []int{ids[first]}
		for j := 0; j < rf-1; j++ {
			list = append(list, ids[(first+1+(round+j)%(n-1))%n])
		}
		out = append(out, fmt.Sprint(list))
	}
	return strings.Join(out, ""), Done
}

func (m *model) createTable(c CreateTable) outcome {
	db, _, _ := strings.Cut(c.Table, ".")
	if m.dbs[db] == nil {
		return no(ErrDatabaseNotExist)
	}
	if t := m.tables[c.Table]; t != nil {
		if c.IfNotExists {
			return outcome{IDs: []uint64{t.id}, Count: t.buckets, Epoch: t.epoch}
		}
		return no(ErrTableAlreadyExist)
	}
	t := &modelTable{
		id: m.nextTable, buckets: int(c.Buckets.Or(1)), rf: 1, partitioned: len(c.PartitionKeys) > 0, custom: map[string]string{},
		parts: map[string]*modelPart{}, rev: m.rev, comment: c.Comment,
	}
	for _, p := range c.Properties {
		switch p.Key {
		case PropReplication:
			fmt.Sscan(p.Value, &t.rf)
		case PropLakeFormat:
			t.lake = p.Value
		case PropLakeEnabled:
			t.tiered = p.Value == "true"
		}
	}
	switch {
	case t.buckets < 1:
		return no(ErrInvalidTable)
	case uint64(t.buckets) > m.limit(db, 0):
		return no(ErrBucketMaxNum)
	case t.rf < 1:
		return no(ErrInvalidConfig)
	}
	if !t.partitioned {
		var code Code
		if t.placement, code = m.place(t.id, t.buckets, t.rf); code != Done {
			return no(code)
		}
		if uint64(t.buckets*t.rf) > m.limit(db, 2) {
			return no(ErrTooLarge)
		}
	}
	t.layouts = []string{fmt.Sprint(0, t.buckets)}
	m.tables[c.Table] = t
	m.nextTable++
	return outcome{IDs: []uint64{t.id}, Count: t.buckets, Changed: true}
}

func (m *model) alterTable(c AlterTable) outcome {
	t := m.tables[c.Table]
	if t == nil || c.TableID.Set && uint64(c.TableID.V) != t.id {
		return m.missing(c.IfExists)
	}
	if t.imp != "" {
		return no(ErrTableImporting)
	}
	if c.ExpectedRevision.Set && uint64(c.ExpectedRevision.V) != t.rev {
		return no(ErrVersionConflict)
	}
	custom, changed := alterMap(t.custom, c.Set, c.Reset)
	if comment := c.Comment.Or(t.comment); comment != t.comment || changed {
		t.comment, t.custom, t.rev = comment, custom, m.rev
		return outcome{IDs: []uint64{t.id}, Count: t.buckets, Epoch: t.epoch, Changed: true}
	}
	return outcome{}
}

func (m *model) rescale(c RescaleTable) outcome {
	db, _, _ := strings.Cut(c.Table, ".")
	t, n := m.tables[c.Table], int(c.Buckets)
	switch {
	case t == nil || c.TableID.Set && uint64(c.TableID.V) != t.id:
		return no(ErrTableNotExist)
	case c.ExpectedEpoch.Set && uint64(c.ExpectedEpoch.V) != t.epoch:
		return no(ErrVersionConflict)
	case !t.partitioned:
		return no(ErrTableNotPartitioned)
	case t.imp != "":
		return no(ErrTableImporting)
	case n < 1 || t.lake == "iceberg":
		if n >= 1 && uint64(n) > m.limit(db, 0) {
			return no(ErrBucketMaxNum)
		}
		return no(ErrInvalidAlterTable)
	case uint64(n) > m.limit(db, 0):
		return no(ErrBucketMaxNum)
	case n == t.buckets:
		return outcome{IDs: []uint64{t.id}, Count: n, Epoch: t.epoch}
	case t.lake == "paimon" && t.tiered && !c.Propagated:
		return no(ErrInvalidAlterTable)
	}
	if t.epoch == 0 {
		t.legacy = t.buckets
	}
	t.epoch++
	t.buckets, t.rev = n, m.rev
	t.layouts = append(t.layouts, fmt.Sprint(t.epoch, n))
	return outcome{IDs: []uint64{t.id}, Count: n, Epoch: t.epoch, Changed: true}
}
