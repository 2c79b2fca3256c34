package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (t *modelTable) effective(p *modelPart) int {
	switch {
	case p.own > 0:
		return p.own
	case t.legacy > 0:
		return t.legacy
	default:
		return t.buckets
	}
}

func badValue(v string, create bool) bool {
	return v == "" || strings.Contains(v, "$") || create && strings.HasPrefix(v, "__")
}

func (m *model) open(path string, id Opt[TableID]) (*modelTable, Code) {
	t := m.tables[path]
	switch {
	case t == nil || id.Set && uint64(id.V) != t.id:
		return nil, ErrTableNotExist
	case !t.partitioned:
		return nil, ErrTableNotPartitioned
	case t.imp != "":
		return nil, ErrTableImporting
	}
	return t, Done
}

func (m *model) createPartitions(c CreatePartitions) outcome {
	db, _, _ := strings.Cut(c.Table, ".")
	t, code := m.open(c.Table, c.TableID)
	if code != Done {
		return no(code)
	}
	var res outcome
	fresh, order := map[string]*modelPart{}, []string{}
	for _, s := range c.Specs {
		v := s[0].Value
		if badValue(v, true) {
			return no(ErrPartitionSpecInvalid)
		}
		if p := t.parts[v]; p != nil {
			if !c.IfNotExists {
				return no(ErrPartitionAlreadyExists)
			}
			res.IDs = append(res.IDs, p.id)
			res.Count, res.Epoch = t.effective(p), p.epoch
			continue
		}
		p := &modelPart{id: m.nextPart + uint64(len(fresh)), own: t.buckets, epoch: t.epoch}
		switch {
		case fresh[v] != nil:
			return no(ErrInvalidArgument)
		case uint64(len(t.parts)+len(fresh)+1) > m.limit(db, 1):
			return no(ErrPartitionMaxNum)
		case uint64(t.buckets) > m.limit(db, 0):
			return no(ErrBucketMaxNum)
		}
		if len(c.Assignment) > 0 {
			if code := m.supplied(t, c.Assignment); code != Done {
				return no(code)
			}
			p.placement = strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Assignment), "] [", "]["), " ")
			p.placement = p.placement[1 : len(p.placement)-1]
		} else if p.placement, code = m.place(p.id, t.buckets, t.rf); code != Done {
			return no(code)
		}
		fresh[v], order = p, append(order, v)
		if uint64(len(fresh)*t.buckets*t.rf) > m.limit(db, 2) {
			return no(ErrTooLarge)
		}
		res.IDs = append(res.IDs, p.id)
		res.Count, res.Epoch, res.Changed = p.own, p.epoch, true
	}
	for _, v := range order {
		t.parts[v] = fresh[v]
	}
	m.nextPart += uint64(len(fresh))
	return res
}

func (m *model) supplied(t *modelTable, lists [][]ServerID) Code {
	if len(lists) != t.buckets {
		return ErrStaleMetadata
	}
	for _, l := range lists {
		for _, id := range l {
			if m.servers[int(id)] == nil {
				return ErrServerNotExist
			}
		}
	}
	return Done
}

func (m *model) dropPartitions(c DropPartitions) outcome {
	t, code := m.open(c.Table, c.TableID)
	if code != Done {
		return no(code)
	}
	if len(c.IDs) > 0 && len(c.IDs) != len(c.Specs) {
		return no(ErrInvalidArgument)
	}
	var res outcome
	victims := map[string]bool{}
	for i, s := range c.Specs {
		v := s[0].Value
		if badValue(v, false) {
			return no(ErrPartitionSpecInvalid)
		}
		p := t.parts[v]
		if p == nil || len(c.IDs) > 0 && uint64(c.IDs[i]) != p.id {
			if !c.IfExists {
				return no(ErrPartitionNotExists)
			}
			continue
		}
		if !victims[v] {
			res.IDs = append(res.IDs, p.id)
		}
		victims[v], res.Changed = true, true
	}
	for v := range victims {
		m.deadParts[t.parts[v].id] = true
		delete(t.parts, v)
	}
	return res
}

// importBatch takes one table with legacy partitions, as the generator makes it.
func (m *model) importBatch(c ImportBatch) outcome {
	key := c.Import.String()
	run := m.importing[key]
	if run == nil {
		run = &modelImport{m.nextTable, m.nextPart}
	}
	next := m.clone()
	for _, row := range c.Tables {
		r := row.Table
		db, _, _ := strings.Cut(r.Path, ".")
		if next.dbs[db] == nil {
			return no(ErrDatabaseNotExist)
		}
		if have := next.tables[r.Path]; have != nil {
			same := have.id == uint64(r.ID) && have.buckets == int(r.Buckets) && have.epoch == 0 && have.partitioned && have.rf == 1 &&
				have.lake == "" && have.comment == "" && len(have.custom) == 0 && have.layouts[0] == "imported"
			if !same {
				return no(ErrTableAlreadyExist)
			}
			continue
		}
		if uint64(r.ID) < run.baseTable || next.dead[uint64(r.ID)] || next.hasTable(uint64(r.ID)) {
			return no(ErrTableAlreadyExist)
		}
		if uint64(r.Buckets) > next.limit(db, 0) {
			return no(ErrBucketMaxNum)
		}
		next.tables[r.Path] = &modelTable{
			id: uint64(r.ID), buckets: int(r.Buckets), rf: 1, partitioned: true, custom: map[string]string{}, parts: map[string]*modelPart{},
			imp: key, rev: m.rev, layouts: []string{"imported"},
		}
		next.nextTable = max(next.nextTable, uint64(r.ID)+1)
	}
	for _, r := range c.Partitions {
		if code := next.importPartition(r, key, run); code != Done {
			return no(code)
		}
	}
	changed := !c.Last || m.importing[key] != nil || len(next.tables) > len(m.tables)
	if c.Last {
		for _, t := range next.tables {
			if t.imp == key {
				t.imp, t.rev = "", m.rev
			}
		}
		delete(next.importing, key)
	} else {
		next.importing[key] = run
	}
	*m = *next
	return outcome{Changed: changed}
}

func (m *model) importPartition(r ImportPartition, key string, run *modelImport) Code {
	var t *modelTable
	var db string
	for path, x := range m.tables {
		if x.id == uint64(r.Table) {
			t = x
			db, _, _ = strings.Cut(path, ".")
		}
	}
	if t == nil {
		return ErrTableNotExist
	}
	if have := t.parts[r.Name]; have != nil {
		if have.id == uint64(r.ID) && have.own == 0 {
			return Done
		}
		return ErrPartitionAlreadyExists
	}
	if t.imp != key {
		return ErrInvalidTable
	}
	for _, x := range m.tables {
		for _, p := range x.parts {
			if p.id == uint64(r.ID) {
				return ErrPartitionAlreadyExists
			}
		}
	}
	if uint64(r.ID) < run.basePart || m.deadParts[uint64(r.ID)] {
		return ErrPartitionAlreadyExists
	}
	if uint64(len(t.parts)+1) > m.limit(db, 1) {
		return ErrPartitionMaxNum
	}
	t.parts[r.Name] = &modelPart{id: uint64(r.ID)}
	m.nextPart = max(m.nextPart, uint64(r.ID)+1)
	return Done
}

func (m *model) hasTable(id uint64) bool {
	for _, t := range m.tables {
		if t.id == id {
			return true
		}
	}
	return false
}

func (m *model) clone() *model {
	c := *m
	c.tables = map[string]*modelTable{}
	for k, t := range m.tables {
		n := *t
		n.parts = map[string]*modelPart{}
		for v, p := range t.parts {
			q := *p
			n.parts[v] = &q
		}
		c.tables[k] = &n
	}
	c.importing = maps.Clone(m.importing)
	return &c
}

func (m *model) runOther(cmd Command) outcome {
	switch c := cmd.(type) {
	case RegisterClient:
		ttl := uint64(3_600_000)
		if c.TTL != 0 {
			ttl = uint64(c.TTL)
		}
		if ttl < 10_000 || ttl > 3_600_000 {
			return no(ErrInvalidArgument)
		}
		id := m.nextClient
		m.nextClient++
		m.clients[id] = &modelClient{active: m.lease, activeAt: m.rev, ttl: ttl, results: map[uint64]outcome{}}
		return outcome{IDs: []uint64{id}, Changed: true}
	case ExpireClients:
		var res outcome
		for _, a := range c.Clients {
			if x := m.clients[uint64(a.ID)]; x != nil && x.activeAt == uint64(a.ActiveAt) && m.lease-x.active >= x.ttl {
				delete(m.clients, uint64(a.ID))
				res.Changed = true
			}
		}
		return res
	case PutKV:
		if c.ExpectedVersion.Set && c.ExpectedVersion.V != m.version(c.Key) {
			return no(ErrVersionConflict)
		}
		return outcome{Changed: true, Version: m.put(c.Key, c.Value)}
	case DeleteKV:
		switch {
		case c.ExpectedVersion.Set && c.ExpectedVersion.V != m.version(c.Key):
			return no(ErrVersionConflict)
		case m.kv[c.Key] == nil && !c.IfExists:
			return no(ErrKeyNotExist)
		}
		had := m.kv[c.Key] != nil
		delete(m.kv, c.Key)
		return outcome{Changed: had}
	case TxnKV:
		return m.txn(c)
	case AllocateIDs:
		if c.Count < 1 {
			return no(ErrInvalidArgument)
		}
		first := m.counters[c.Counter]
		m.counters[c.Counter] += c.Count
		var ids []uint64
		for i := range c.Count {
			ids = append(ids, first+i)
		}
		return outcome{IDs: ids, Changed: true}
	case RegisterServer:
		old := m.servers[int(c.ID)]
		if old != nil && old.dir != c.DirectoryID && m.lease-old.renewed < old.ttl {
			return no(ErrServerIDInUse)
		}
		n := &modelServer{dir: c.DirectoryID, incarnation: m.rev, renewed: m.lease, ttl: uint64(c.TTL)}
		if old != nil {
			n.incarnation = old.incarnation + 1
		}
		m.servers[int(c.ID)] = n
		return outcome{IDs: []uint64{n.incarnation}, Changed: true}
	case UnregisterServer:
		return m.unregister(c)
	case AssignPending:
		return m.assignPending(c)
	case PurgeDropped:
		return outcome{} // the generator purges nothing old enough
	}
	panic("the model does not know " + cmd.Kind().String())
}

func (m *model) version(k string) uint64 {
	if v := m.kv[k]; v != nil {
		return v.version
	}
	return 0
}

func (m *model) put(k string, v []byte) uint64 {
	m.kv[k] = &modelKV{string(v), m.version(k) + 1}
	return m.kv[k].version
}

func (m *model) txn(c TxnKV) outcome {
	seen := map[string]bool{}
	for _, o := range c.Ops {
		if seen[o.Key] {
			return no(ErrInvalidArgument)
		}
		seen[o.Key] = true
	}
	for _, p := range c.Compares {
		if m.version(p.Key) != p.Version {
			return no(ErrVersionConflict)
		}
	}
	var res outcome
	for _, o := range c.Ops {
		switch {
		case !o.Delete:
			res.Version, res.Changed = m.put(o.Key, o.Value), true
		case m.kv[o.Key] != nil:
			delete(m.kv, o.Key)
			res.Changed = true
		}
	}
	return res
}

func (m *model) unregister(c UnregisterServer) outcome {
	v := m.servers[int(c.ID)]
	if v == nil {
		return no(ErrServerNotExist)
	}
	if c.Incarnation.Set && uint64(c.Incarnation.V) != v.incarnation {
		return no(ErrFenced)
	}
	for _, t := range m.tables {
		all := t.placement
		for _, p := range t.parts {
			all += p.placement
		}
		for _, word := range strings.FieldsFunc(all, func(r rune) bool { return r == '[' || r == ']' || r == ' ' }) {
			if word == fmt.Sprint(c.ID) {
				return no(ErrInvalidArgument)
			}
		}
	}
	delete(m.servers, int(c.ID))
	return outcome{Changed: true}
}

// assignPending tries every object in the order of ids; the generator's objects
// are small, so that only the command's bound ends it.
func (m *model) assignPending(c AssignPending) outcome {
	if len(m.servers) == 0 {
		return outcome{}
	}
	bound := min(m.limit("", 2), 65_536)
	if c.MaxReplicas > 0 {
		bound = min(bound, uint64(c.MaxReplicas))
	}
	var used uint64
	full := false
	try := func(id uint64, buckets, rf int, db string, to *string) bool {
		need := uint64(buckets * rf)
		if full || need > m.limit(db, 2) {
			return false
		}
		text, code := m.place(id, buckets, rf)
		if used+need > bound && (used > 0 || need <= bound) {
			full = true
			return false
		}
		if code != Done {
			return false
		}
		*to, used = text, used+need
		full = need > bound
		return true
	}
	for _, path := range m.byID() {
		t := m.tables[path]
		db, _, _ := strings.Cut(path, ".")
		if !t.partitioned && t.placement == "" && t.imp == "" && try(t.id, t.buckets, t.rf, db, &t.placement) {
			t.rev = m.rev
		}
	}
	for _, path := range m.byID() {
		t := m.tables[path]
		db, _, _ := strings.Cut(path, ".")
		if t.imp != "" {
			continue
		}
		names := slices.SortedFunc(maps.Keys(t.parts), func(a, b string) int { return int(t.parts[a].id) - int(t.parts[b].id) })
		for _, v := range names {
			if p := t.parts[v]; p.placement == "" {
				try(p.id, t.effective(p), t.rf, db, &p.placement)
			}
		}
	}
	return outcome{Changed: used > 0}
}

func (m *model) byID() []string {
	return slices.SortedFunc(maps.Keys(m.tables), func(a, b string) int { return int(m.tables[a].id) - int(m.tables[b].id) })
}
