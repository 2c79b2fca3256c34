package snapshots

import (
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// Version is the format version this build writes.
const Version = 1

const (
	magic = "STAVSNAP"
	// maxHeader bounds the header record of a head.
	maxHeader = 4096
	// headFixed is what precedes the header record.
	headFixed = len(magic) + 1 + 4
)

// Header says what a snapshot holds.
type Header struct {
	// Version of the format.
	Version uint8
	// Level is the feature level of the cluster that wrote it.
	Level catalog.FeatureLevel
	// Revision and Incarnation of the state.
	Revision    catalog.Revision
	Incarnation catalog.Incarnation
	ClusterID   string
	// Wall is the state's wall clock.
	Wall catalog.Millis
	// Hash is the state hash; it does not cover the history.
	Hash uint64
	Rows RowCounts
}

// RowCounts are the rows of each kind in a snapshot. The cluster's row is
// always there and not counted.
type RowCounts struct {
	Databases, Tables, Partitions, Servers, Members, Keys, Counters uint64
	// Dropped are the records of dropped tables and partitions and of replicas
	// moved away, Rebalances 0 or 1.
	Imports, Dropped, Rebalances uint64
	Clients, Results             uint64
	// Events of the watch history.
	Events uint64
}

func headerRecord(c *msgpack.Codec, h *Header) {
	c.Record(7)
	msgpack.Uint(c, &h.Level)
	msgpack.Uint(c, &h.Revision)
	incarnation(c, &h.Incarnation)
	c.String(&h.ClusterID)
	msgpack.Int(c, &h.Wall)
	c.Uint64(&h.Hash)
	rowCounts(c, &h.Rows)
}

func (n *RowCounts) each() []*uint64 {
	return []*uint64{
		&n.Databases, &n.Tables, &n.Partitions, &n.Servers, &n.Members, &n.Keys, &n.Counters,
		&n.Imports, &n.Dropped, &n.Rebalances, &n.Clients, &n.Results, &n.Events,
	}
}

func rowCounts(c *msgpack.Codec, n *RowCounts) {
	fields := n.each()
	c.Record(len(fields))
	for _, f := range fields {
		c.Uint64(f)
	}
}

// total is the number of row records, the cluster's included.
func (n *RowCounts) total() uint64 {
	sum := uint64(1)
	for _, f := range n.each() {
		sum += *f
	}
	return sum
}

// trailer ends a snapshot.
type trailer struct {
	rows, blocks, hash uint64
}

func trailerRecord(c *msgpack.Codec, t *trailer) {
	c.Record(3)
	c.Uint64(&t.rows)
	c.Uint64(&t.blocks)
	c.Uint64(&t.hash)
}

func headerOf(s *catalog.State, history []*catalog.Event) Header {
	cl := s.Cluster()
	return Header{
		Version: Version, Level: cl.Level, Revision: s.Revision(), Incarnation: cl.Incarnation,
		ClusterID: cl.ID, Wall: cl.Wall, Hash: s.Hash(), Rows: countRows(s, history),
	}
}

func countRows(s *catalog.State, history []*catalog.Event) RowCounts {
	known := s.Counts()
	n := RowCounts{
		Databases: uint64(known.Databases), Partitions: uint64(known.Partitions), Servers: uint64(known.Servers),
		Keys: uint64(known.Keys), Clients: uint64(known.Clients), Events: uint64(len(history)),
	}
	s.TablesByID(func(*catalog.Table) bool { n.Tables++; return true })
	s.Members(func(*catalog.Member) bool { n.Members++; return true })
	s.Counters(func(*catalog.Counter) bool { n.Counters++; return true })
	s.Imports(func(*catalog.Import) bool { n.Imports++; return true })
	s.DroppedTables(func(*catalog.DroppedObject) bool { n.Dropped++; return true })
	s.DroppedPartitions(0, func(*catalog.DroppedObject) bool { n.Dropped++; return true })
	s.DroppedBuckets(func(*catalog.DroppedObject) bool { n.Dropped++; return true })
	if s.Rebalance() != nil {
		n.Rebalances = 1
	}
	s.Clients(func(c *catalog.Client) bool {
		c.Results(func(uint64, catalog.Result) bool { n.Results++; return true })
		return true
	})
	return n
}
