package catalog

import "slices"

// placement checks the buckets of one table or partition.
func (c *checker) placement(kind ObjectKind, id uint64, p *Placement, count int) {
	if p == nil {
		return
	}
	if len(p.Replicas) != count || len(p.Buckets) != count {
		c.failf("I2: %s %d has %d buckets, %d replica lists and %d bucket states", kind, id, count, len(p.Replicas), len(p.Buckets))
		return
	}
	for i := range p.Buckets {
		b, replicas := &p.Buckets[i], p.Replicas[i]
		if len(replicas) == 0 {
			c.failf("I2: bucket %d of %s %d has no replicas", i, kind, id)
		}
		if b.Ready && len(b.ISR) == 0 || !b.Ready && (len(b.ISR) > 0 || b.Leader != NoServer) {
			c.failf("I8: bucket %d of %s %d: ready %v with leader %d and ISR %v", i, kind, id, b.Ready, b.Leader, b.ISR)
		}
		if b.Leader != NoServer && !slices.Contains(b.ISR, b.Leader) {
			c.failf("I8: leader %d of bucket %d of %s %d is not in ISR %v", b.Leader, i, kind, id, b.ISR)
		}
		for _, member := range b.ISR {
			if !slices.Contains(replicas, member) {
				c.failf("I8: ISR member %d of bucket %d of %s %d is not in %v", member, i, kind, id, replicas)
			}
		}
	}
}

// rows scans what no other rule looks at, for the hash and the keys.
func (c *checker) rows() {
	s, b := c.s, c.b
	s.databases.all(func(n string, d *Database) bool {
		c.row(ObjectDatabase, n, d.hash, b.hashDatabase(d))
		c.key(ObjectDatabase, n, d.Name)
		return true
	})
	s.servers.all(func(id ServerID, v *Server) bool {
		c.row(ObjectServer, id, v.hash, b.hashServer(v))
		c.key(ObjectServer, id, v.ID)
		return true
	})
	s.members.all(func(id string, m *Member) bool {
		c.row(ObjectMember, id, m.hash, b.hashMember(m))
		c.key(ObjectMember, id, m.NodeID)
		return true
	})
	s.kv.all(func(k string, v *KeyValue) bool {
		c.row(ObjectKeyValue, k, v.hash, b.hashKeyValue(v))
		c.key(ObjectKeyValue, k, v.Key)
		return true
	})
	s.counters.all(func(n string, v *Counter) bool {
		c.row(ObjectCounter, n, v.hash, b.hashCounter(v))
		c.key(ObjectCounter, n, v.Name)
		return true
	})
	if s.rebal != nil {
		c.row(ObjectRebalance, s.rebal.ID, s.rebal.hash, b.hashRebalance(s.rebal))
		c.plan(s.rebal)
	}
	c.imports()
	c.dropped()
	c.movedAway()
	c.clients()
}

// key wants a row under its own key.
func (c *checker) key(kind ObjectKind, indexed, own any) {
	if indexed != own {
		c.failf("I10: %s %v is indexed under %v", kind, own, indexed)
	}
}

func (c *checker) imports() {
	s := c.s
	s.imports.all(func(n string, i *Import) bool {
		c.row(ObjectImport, n, i.hash, c.b.hashImport(i))
		c.key(ObjectImport, n, i.ID.String())
		for _, id := range i.Tables {
			if t, ok := s.tableIDs.get(id); !ok || t.Import != i.ID {
				c.failf("I10: import %s lists table %d, which it is not creating", n, id)
			}
		}
		return true
	})
}

func (c *checker) dropped() {
	s := c.s
	s.droppedTables.all(func(id TableID, d *DroppedObject) bool {
		c.row(ObjectDropped, d.Path, d.hash, c.b.hashDropped(d))
		if d.Partition.Set || d.Bucket.Set || d.Table != id {
			c.failf("I10: the drop record of table %d is indexed under %d", d.Table, id)
		}
		if id >= s.cluster.NextTable {
			c.failf("I6: dropped table %s had id %d, the counter is at %d", d.Path, id, s.cluster.NextTable)
		}
		return true
	})
	s.droppedParts.all(func(id PartitionID, d *DroppedObject) bool {
		c.row(ObjectDropped, d.Name, d.hash, c.b.hashDropped(d))
		if d.Partition != Some(id) || d.Bucket.Set {
			c.failf("I10: the drop record of partition %d is indexed under %d", d.Partition.V, id)
		}
		if id >= s.cluster.NextPartition {
			c.failf("I6: dropped partition '%s' had id %d, the counter is at %d", d.Name, id, s.cluster.NextPartition)
		}
		return true
	})
}

// plan checks the moves of a plan, and that nothing but it moves its buckets.
func (c *checker) plan(r *Rebalance) {
	for i := range r.Moves {
		m := &r.Moves[i]
		if i > 0 && r.Moves[i-1].Bucket.Compare(m.Bucket) >= 0 {
			c.failf("I12: %s of rebalance %s is not after %s", m.Bucket, r.ID, r.Moves[i-1].Bucket)
		}
		if len(m.To) == 0 || len(m.From) == 0 || slices.Equal(m.From, m.To) {
			c.failf("I12: the move of %s from %v to %v moves nothing", m.Bucket, m.From, m.To)
		}
		_, replicas, ok := c.s.Bucket(m.Bucket)
		if r.Status != RebalanceRunning || !ok {
			continue
		}
		if !slices.Equal(replicas, m.From) && !m.begunWith(replicas) && !slices.Equal(replicas, m.To) {
			c.failf("I12: %s has replicas %v during its move from %v to %v", m.Bucket, replicas, m.From, m.To)
		}
	}
}

// movedAway checks the records of replicas that are still to be deleted.
func (c *checker) movedAway() {
	s := c.s
	s.droppedBuckets.all(func(k string, d *DroppedObject) bool {
		ref := d.bucket()
		c.row(ObjectDropped, ref, d.hash, c.b.hashDropped(d))
		c.key(ObjectDropped, k, ref.Key())
		_, replicas, ok := s.Bucket(ref)
		if !d.Bucket.Set || !ok || len(d.Pending) == 0 {
			c.failf("I13: replicas moved away from %s, which is there: %v, are to be deleted by %v", ref, ok, d.Pending)
		}
		for _, p := range d.Pending {
			if slices.Contains(replicas, p.Server) {
				c.failf("I13: server %d is to delete its replica of %s and has one in %v", p.Server, ref, replicas)
			}
		}
		return true
	})
}

func (c *checker) clients() {
	s := c.s
	s.clients.all(func(id ClientID, v *Client) bool {
		c.row(ObjectClient, id, v.hash, c.b.hashClient(v))
		if id != v.ID || id == 0 || id >= s.cluster.NextClient {
			c.failf("I6: client %d is indexed under %d, the counter is at %d", v.ID, id, s.cluster.NextClient)
		}
		if v.TTL < MinClientTTL || v.TTL > ClientTTL {
			c.failf("I6: client %d has a ttl of %d ms, want %d to %d", id, v.TTL, MinClientTTL, ClientTTL)
		}
		v.results.all(func(seq uint64, r *storedResult) bool {
			scanned := c.b.hashResult(id, seq, &r.Result)
			if c.hash += scanned; r.hash != scanned {
				c.failf("I11: hash of result %d of client %d is %016x, scanned %016x", seq, id, r.hash, scanned)
			}
			if seq <= v.Watermark || seq-v.Watermark > ClientWindow {
				c.failf("I10: client %d keeps the result of sequence %d, its watermark is %d", id, seq, v.Watermark)
			}
			return true
		})
		return true
	})
}
