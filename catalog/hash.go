package catalog

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// The state hash is the sum, modulo 2^64, of the hashes of all rows, so that a
// command updates it in time proportional to what it changes. A row's hash is
// XXH64 over the byte of its kind and its fields in a fixed order: numbers as
// uvarints, texts and lists with their length first. A placement takes part with
// the numbers of its lists and states and the sum of their hashes, each over the bucket's
// number, state and replicas, so that changing a few of many buckets costs
// little. Frozen: hash v1.

// Hash returns the rolling state hash. Equal states have equal hashes on every
// node; the revision is not part of it.
func (s *State) Hash() uint64 {
	return s.hash + hashCluster(&s.cluster)
}

type hasher []byte

func (h *hasher) u64(v uint64)  { *h = binary.AppendUvarint(*h, v) }
func (h *hasher) i64(v int64)   { *h = binary.AppendVarint(*h, v) }
func (h *hasher) text(v string) { h.u64(uint64(len(v))); *h = append(*h, v...) }

func (h *hasher) flag(v bool) {
	if v {
		*h = append(*h, 1)
	} else {
		*h = append(*h, 0)
	}
}

func (h *hasher) texts(v []string) {
	h.u64(uint64(len(v)))
	for _, s := range v {
		h.text(s)
	}
}

func (h *hasher) props(v []Property) {
	h.u64(uint64(len(v)))
	for _, p := range v {
		h.text(p.Key)
		h.text(p.Value)
	}
}

func (h *hasher) servers(v []ServerID) { *h = appendServers(*h, v) }

// appendInt is binary.AppendVarint, inlined for what fits in one byte: a
// placement has dozens of such numbers.
func appendInt(b []byte, v int64) []byte {
	if u := uint64(v)<<1 ^ uint64(v>>63); u < 0x80 {
		return append(b, byte(u))
	}
	return binary.AppendVarint(b, v)
}

// appendServers has the varints of up to two bytes inlined.
func appendServers(b []byte, v []ServerID) []byte {
	if len(v) < 0x80 {
		b = append(b, byte(len(v)))
	} else {
		b = binary.AppendUvarint(b, uint64(len(v)))
	}
	for _, s := range v {
		switch u := uint32(s)<<1 ^ uint32(s>>31); {
		case u < 0x80:
			b = append(b, byte(u))
		case u < 0x4000:
			b = append(b, byte(u)|0x80, byte(u>>7))
		default:
			b = binary.AppendVarint(b, int64(s))
		}
	}
	return b
}

func (h *hasher) optPartition(v Opt[PartitionID]) {
	h.flag(v.Set)
	h.u64(uint64(v.V))
}

func (h *hasher) limits(l Limits) {
	h.u64(uint64(l.Buckets))
	h.u64(uint64(l.Partitions))
	h.u64(uint64(l.Replicas))
}

func (h *hasher) incarnation(i Incarnation) {
	h.u64(i.Number)
	h.u64(i.Random)
}

// placementSum is the sum of the hashes of the buckets of one placement. It holds
// for that placement alone: in a row with another one it is not known.
type placementSum struct {
	of   *Placement
	hash uint64
}

// sumOf computes the sum from all buckets.
func (b *Batch) sumOf(p *Placement) placementSum {
	s := placementSum{of: p}
	if p != nil {
		for i := range max(len(p.Buckets), len(p.Replicas)) {
			s.hash += b.hashBucket(p, i)
		}
	}
	return s
}

// known returns the sum of a placement, computed only if it is not known.
func (b *Batch) known(s placementSum, p *Placement) placementSum {
	if s.of == p {
		return s
	}
	return b.sumOf(p)
}

// sumAfter returns the sum of q, which differs from p in some buckets.
func (b *Batch) sumAfter(s placementSum, p, q *Placement, buckets []int) placementSum {
	s = b.known(s, p)
	s.of = q
	for _, i := range buckets {
		s.hash += b.hashBucket(q, i) - b.hashBucket(p, i)
	}
	return s
}

// hashBucket does not trust that a placement has as many states as lists: Check
// says so, of a state that has one.
func (b *Batch) hashBucket(p *Placement, i int) uint64 {
	s, replicas := &BucketState{}, []ServerID(nil)
	if i < len(p.Buckets) {
		s = &p.Buckets[i]
	}
	if i < len(p.Replicas) {
		replicas = p.Replicas[i]
	}
	h := binary.AppendUvarint(b.bucket[:0], uint64(i))
	h = appendInt(h, int64(s.Leader))
	h = appendInt(h, int64(s.LeaderEpoch))
	h = appendInt(h, int64(s.BucketEpoch))
	h = appendInt(h, int64(s.CoordinatorEpoch))
	ready := byte(0)
	if s.Ready {
		ready = 1
	}
	h = append(h, ready)
	h = appendServers(h, replicas)
	h = appendServers(h, s.ISR)
	h = appendServers(h, s.Standby)
	b.bucket = h
	return xxhash.Sum64(h)
}

func (h *hasher) placement(p *Placement, sum placementSum) {
	h.flag(p != nil)
	if p != nil {
		h.u64(uint64(len(p.Replicas)))
		h.u64(uint64(len(p.Buckets)))
		*h = binary.LittleEndian.AppendUint64(*h, sum.hash)
	}
}

// row begins a row's bytes in the batch's scratch buffer.
func (b *Batch) row(k ObjectKind) *hasher {
	b.buf = append(b.buf[:0], byte(k))
	return (*hasher)(&b.buf)
}

func (h *hasher) sum() uint64 { return xxhash.Sum64(*h) }

func hashCluster(c *Cluster) uint64 {
	h := hasher{byte(ObjectCluster)}
	h.text(c.ID)
	h.incarnation(c.Incarnation)
	h.u64(c.Term)
	h.i64(int64(c.Coordinator))
	h.text(c.Leader)
	h.u64(uint64(c.Level))
	h.limits(c.Limits)
	h.i64(int64(c.Lease))
	h.i64(int64(c.Wall))
	h.u64(uint64(c.NextTable))
	h.u64(uint64(c.NextPartition))
	h.u64(uint64(c.NextClient))
	return h.sum()
}

func (b *Batch) hashDatabase(d *Database) uint64 {
	h := b.row(ObjectDatabase)
	h.text(d.Name)
	h.text(d.Comment)
	h.props(d.Properties)
	h.i64(int64(d.Created))
	h.i64(int64(d.Wall))
	h.u64(uint64(d.CreatedAt))
	h.u64(uint64(d.Revision))
	h.limits(d.Limits)
	return h.sum()
}

func (b *Batch) hashTable(t *Table) uint64 {
	sum := b.known(t.sum, t.Placement)
	h := b.row(ObjectTable)
	h.u64(uint64(t.ID))
	h.text(t.Path)
	h.text(t.Comment)
	h.u64(uint64(len(t.Schemas)))
	for _, s := range t.Schemas {
		h.u64(uint64(s.ID))
		h.u64(uint64(len(s.Columns)))
		for _, c := range s.Columns {
			h.u64(uint64(c.ID))
			h.text(c.Name)
			h.text(string(c.Type))
			h.text(c.Comment)
		}
	}
	h.u64(uint64(t.NextColumn))
	h.texts(t.PrimaryKey)
	h.texts(t.PartitionKeys)
	h.texts(t.BucketKeys)
	h.i64(int64(t.Buckets))
	h.u64(uint64(t.Epoch))
	h.flag(t.LegacyCount.Set)
	h.i64(int64(t.LegacyCount.V))
	h.u64(uint64(len(t.History)))
	for _, e := range t.History {
		h.u64(uint64(e.Epoch))
		h.i64(int64(e.Buckets))
		h.u64(uint64(e.Revision))
		h.i64(int64(e.Wall))
	}
	h.i64(int64(t.Replication))
	h.props(t.Properties)
	h.props(t.CustomProperties)
	h.incarnation(t.Import.Incarnation)
	h.u64(uint64(t.Import.Revision))
	h.flag(t.Dropped)
	h.i64(int64(t.Created))
	h.i64(int64(t.Wall))
	h.u64(uint64(t.CreatedAt))
	h.u64(uint64(t.Revision))
	h.placement(t.Placement, sum)
	return h.sum()
}

func (b *Batch) hashPartition(p *Partition) uint64 {
	sum := b.known(p.sum, p.Placement)
	h := b.row(ObjectPartition)
	h.u64(uint64(p.ID))
	h.u64(uint64(p.Table))
	h.text(p.Name)
	h.i64(int64(p.Buckets))
	h.flag(p.Legacy)
	h.flag(p.Imported)
	h.u64(uint64(p.Epoch))
	h.i64(int64(p.Created))
	h.u64(uint64(p.CreatedAt))
	h.u64(uint64(p.Revision))
	h.placement(p.Placement, sum)
	return h.sum()
}

func (b *Batch) hashServer(v *Server) uint64 {
	h := b.row(ObjectServer)
	h.i64(int64(v.ID))
	h.u64(uint64(v.Incarnation))
	h.text(v.DirectoryID)
	h.texts(v.Listeners)
	h.text(v.Rack)
	h.i64(int64(v.TTL))
	h.i64(int64(v.Renewed))
	h.u64(uint64(v.RenewedAt))
	h.flag(v.Live)
	h.flag(v.ShuttingDown)
	h.u64(uint64(v.Tag))
	h.i64(int64(v.Registered))
	h.u64(uint64(v.Revision))
	return h.sum()
}

func (b *Batch) hashMember(m *Member) uint64 {
	h := b.row(ObjectMember)
	h.text(m.NodeID)
	h.text(m.DirectoryID)
	h.text(m.RaftAddr)
	h.text(m.APIAddr)
	h.text(m.HTTPAddr)
	h.u64(uint64(m.Level))
	h.text(m.Build)
	h.u64(uint64(m.Revision))
	return h.sum()
}

func (b *Batch) hashKeyValue(v *KeyValue) uint64 {
	h := b.row(ObjectKeyValue)
	h.text(v.Key)
	h.u64(uint64(len(v.Value)))
	*h = append(*h, v.Value...)
	h.u64(v.Version)
	h.u64(uint64(v.CreatedAt))
	h.u64(uint64(v.Revision))
	h.i64(int64(v.Wall))
	return h.sum()
}

func (b *Batch) hashCounter(c *Counter) uint64 {
	h := b.row(ObjectCounter)
	h.text(c.Name)
	h.u64(c.Next)
	h.u64(uint64(c.Revision))
	return h.sum()
}

func (b *Batch) hashImport(i *Import) uint64 {
	h := b.row(ObjectImport)
	h.incarnation(i.ID.Incarnation)
	h.u64(uint64(i.ID.Revision))
	h.u64(i.Rows)
	h.u64(uint64(i.BaseTable))
	h.u64(uint64(i.BasePartition))
	h.u64(uint64(len(i.Tables)))
	for _, t := range i.Tables {
		h.u64(uint64(t))
	}
	h.u64(uint64(i.Revision))
	return h.sum()
}

func (b *Batch) hashRebalance(r *Rebalance) uint64 {
	h := b.row(ObjectRebalance)
	h.text(r.ID)
	h.u64(uint64(r.Status))
	h.u64(uint64(len(r.Moves)))
	for _, m := range r.Moves {
		h.u64(uint64(m.Bucket.Table))
		h.optPartition(m.Bucket.Partition)
		h.i64(int64(m.Bucket.Bucket))
		h.servers(m.From)
		h.servers(m.To)
		h.flag(m.Done)
	}
	h.u64(uint64(r.InFlight))
	h.i64(int64(r.Started))
	h.u64(uint64(r.Revision))
	return h.sum()
}

func (b *Batch) hashDropped(d *DroppedObject) uint64 {
	h := b.row(ObjectDropped)
	h.u64(uint64(d.Table))
	h.optPartition(d.Partition)
	h.flag(d.Bucket.Set)
	h.i64(int64(d.Bucket.V))
	h.text(d.Path)
	h.text(d.Name)
	h.i64(int64(d.Buckets))
	h.u64(uint64(d.Epoch))
	h.i64(int64(d.Dropped))
	h.u64(uint64(d.Revision))
	h.u64(uint64(len(d.Pending)))
	for _, p := range d.Pending {
		h.i64(int64(p.Server))
		h.u64(uint64(p.Tries))
	}
	return h.sum()
}

func (b *Batch) hashClient(c *Client) uint64 {
	h := b.row(ObjectClient)
	h.u64(uint64(c.ID))
	h.u64(c.Watermark)
	h.i64(int64(c.Active))
	h.u64(uint64(c.ActiveAt))
	h.text(c.Name)
	h.i64(int64(c.TTL))
	return h.sum()
}

// hashResult hashes one stored result of a client.
func (b *Batch) hashResult(id ClientID, seq uint64, r *Result) uint64 {
	h := b.row(0)
	h.u64(uint64(id))
	h.u64(seq)
	h.i64(int64(r.Code))
	h.text(r.Message)
	h.u64(uint64(r.Revision))
	h.flag(r.Changed)
	h.u64(uint64(len(r.IDs)))
	for _, i := range r.IDs {
		h.u64(i.First)
		h.u64(i.Count)
	}
	h.i64(int64(r.Count))
	h.u64(r.Epoch)
	h.u64(r.Version)
	h.u64(r.Current)
	h.u64(r.Limit)
	h.u64(r.Size)
	h.flag(r.More)
	h.u64(uint64(len(r.Buckets)))
	for _, c := range r.Buckets {
		h.i64(int64(c))
	}
	return h.sum()
}
