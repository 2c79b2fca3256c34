package catalog

import "fmt"

// Loader builds a state from rows, as a snapshot holds them. Rows are handed
// over: the loader keeps them and the caller must not change them. It is used
// by one goroutine.
type Loader struct {
	b *Batch
	// set takes the partitions of table; the last name and the highest id tell
	// rows that come in order, which need no search for duplicates.
	set    *partitionSet
	table  TableID
	name   string
	nextID PartitionID
}

// NewLoader returns an empty loader.
func NewLoader() *Loader {
	return &Loader{b: NewState().Begin()}
}

// Cluster sets the cluster-wide row.
func (l *Loader) Cluster(c Cluster) { l.b.s.cluster = c }

// Add adds one row other than the cluster's and a client's. Tables come before
// their partitions. A row whose key is taken is an error.
func (l *Loader) Add(o Object) error {
	l.b.changes = l.b.changes[:0]
	s := &l.b.s
	switch r := o.(type) {
	case *Database:
		if s.databases.has(r.Name) {
			return fmt.Errorf("database %s is there twice", r.Name)
		}
		l.b.putDatabase(nil, r)
	case *Table:
		if s.tableIDs.has(r.ID) || !r.Dropped && s.tables.has(r.Path) {
			return fmt.Errorf("table %s with id %d is there twice", r.Path, r.ID)
		}
		l.b.putTable(nil, r)
	case *Partition:
		return l.addPartition(r)
	case *Server:
		if s.servers.has(r.ID) {
			return fmt.Errorf("server %d is there twice", r.ID)
		}
		l.b.putServer(nil, r, true)
	default:
		return l.addOther(o)
	}
	return nil
}

// addPartition is putPartition for a new row, made for millions that come in the
// order of their table and name.
func (l *Loader) addPartition(p *Partition) error {
	s := &l.b.s
	if l.set == nil || l.table != p.Table {
		if !s.tableIDs.has(p.Table) {
			return fmt.Errorf("table %d of partition '%s' is missing", p.Table, p.Name)
		}
		l.set, l.table = l.b.partitions(p.Table), p.Table
		l.name, _, _ = l.set.byName.last()
	}
	if p.Name <= l.name && l.set.byName.has(p.Name) || p.ID < l.nextID && s.partIDs.has(p.ID) {
		return fmt.Errorf("partition '%s' with id %d is there twice", p.Name, p.ID)
	}
	l.name, l.nextID = max(l.name, p.Name), max(l.nextID, p.ID+1)
	g := s.gen
	p.sum = l.b.sumOf(p.Placement)
	p.hash = l.b.hashPartition(p)
	s.hash += p.hash
	if p.Legacy {
		l.set.legacy++
	}
	n, _ := l.set.perEpoch.get(p.Epoch)
	l.set.perEpoch.set(g, p.Epoch, n+1)
	l.set.byName.load(g, p.Name, p)
	s.partIDs.load(g, p.ID, p)
	if p.Placement == nil {
		l.set.unplaced.load(g, p.ID, struct{}{})
		s.unplacedParts++
		s.unplacedSets.set(g, p.Table, struct{}{})
	}
	return nil
}

func (l *Loader) addOther(o Object) error {
	s := &l.b.s
	switch r := o.(type) {
	case *Member:
		if s.members.has(r.NodeID) {
			return fmt.Errorf("member %s is there twice", r.NodeID)
		}
		l.b.putMember(nil, r)
	case *KeyValue:
		if s.kv.has(r.Key) {
			return fmt.Errorf("key %q is there twice", r.Key)
		}
		l.b.putKeyValue(nil, r)
	case *Counter:
		if s.counters.has(r.Name) {
			return fmt.Errorf("counter %s is there twice", r.Name)
		}
		l.b.putCounter(nil, r)
	case *Import:
		if s.imports.has(r.ID.String()) {
			return fmt.Errorf("import %s is there twice", r.ID)
		}
		l.b.putImport(nil, r)
	case *DroppedObject:
		if _, ok := s.droppedRecord(DeletionAck{Table: r.Table, Partition: r.Partition, Bucket: r.Bucket}); ok {
			return fmt.Errorf("the record of dropped %s %s is there twice", r.Path, r.Name)
		}
		l.b.putDropped(nil, r)
	case *Rebalance:
		if s.rebal != nil {
			return fmt.Errorf("rebalance is there twice")
		}
		l.b.putRebalance(r)
	default:
		return fmt.Errorf("row of kind %s cannot be loaded", o.Object())
	}
	return nil
}

// AddClient adds a client record; AddResult then its results, one by one.
func (l *Loader) AddClient(c *Client) error {
	if l.b.s.clients.has(c.ID) {
		return fmt.Errorf("client %d is there twice", c.ID)
	}
	c.gen = l.b.s.gen
	c.hash = l.b.hashClient(c)
	l.b.s.hash += c.hash
	l.b.s.clients.set(l.b.s.gen, c.ID, c)
	return nil
}

// AddResult adds one stored result of a client.
func (l *Loader) AddResult(id ClientID, seq uint64, r Result) error {
	c, ok := l.b.s.clients.get(id)
	if !ok {
		return fmt.Errorf("client %d of a stored result is missing", id)
	}
	if c.results.has(seq) {
		return fmt.Errorf("result %d of client %d is there twice", seq, id)
	}
	l.b.record(c, seq, r)
	return nil
}

// Finish returns the state at a revision after Check found nothing.
func (l *Loader) Finish(rev Revision) (*State, error) {
	l.b.s.revision = rev
	l.b.changes = nil
	s := l.b.Publish()
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("check of revision %d: %w", rev, err)
	}
	return s, nil
}
