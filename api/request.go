package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Level says how fresh the state of a read is.
type Level uint8

// Levels of reads.
const (
	Linearizable Level = iota
	AtLeast
	Stale
)

// String returns the name used by flags: linearizable, at-least or stale.
func (l Level) String() string {
	switch l {
	case Linearizable:
		return "linearizable"
	case AtLeast:
		return "at-least"
	case Stale:
		return "stale"
	}
	return "unknown"
}

// Consistency is what a read asks for. The zero value is linearizable.
type Consistency struct {
	Level Level
	// Revision that the state must have reached, with AtLeast.
	Revision catalog.Revision
	// Incarnation, if not zero, must be the cluster's.
	Incarnation catalog.Incarnation
}

// ConsistencyToProto converts c; the zero value becomes nil.
func ConsistencyToProto(c Consistency) *pb.Consistency {
	if c == (Consistency{}) {
		return nil
	}
	levels := [...]pb.ConsistencyLevel{
		Linearizable: pb.ConsistencyLevel_CONSISTENCY_LEVEL_LINEARIZABLE,
		AtLeast:      pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST,
		Stale:        pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE,
	}
	out := &pb.Consistency{AtLeast: uint64(c.Revision), Incarnation: IncarnationToProto(c.Incarnation)}
	if int(c.Level) < len(levels) {
		out.Level = levels[c.Level]
	}
	return out
}

// ConsistencyFromProto checks and converts p; nil is linearizable. An unknown
// level, and a revision without the level that uses it, are refused.
func ConsistencyFromProto(p *pb.Consistency) (Consistency, error) {
	c := Consistency{Revision: catalog.Revision(p.GetAtLeast()), Incarnation: IncarnationFromProto(p.GetIncarnation())}
	switch p.GetLevel() {
	case pb.ConsistencyLevel_CONSISTENCY_LEVEL_UNSPECIFIED, pb.ConsistencyLevel_CONSISTENCY_LEVEL_LINEARIZABLE:
		c.Level = Linearizable
	case pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST:
		c.Level = AtLeast
		return c, nil
	case pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE:
		c.Level = Stale
	default:
		return Consistency{}, invalid("consistency.level", int32(p.GetLevel()), "a known level (1..3)")
	}
	if c.Revision != 0 {
		return Consistency{}, invalid("consistency.at_least", uint64(c.Revision), "0 unless the level is AT_LEAST")
	}
	return c, nil
}

// Ref identifies a write for exactly-once. The zero Ref is not deduplicated.
type Ref struct {
	Client        catalog.ClientID
	Sequence, Ack uint64
}

// RefToProto converts r; the zero Ref becomes nil.
func RefToProto(r Ref) *pb.ClientRef {
	if r == (Ref{}) {
		return nil
	}
	return &pb.ClientRef{ClientId: uint64(r.Client), Sequence: r.Sequence, Ack: r.Ack}
}

// RefFromProto checks and converts p. Without a client there is no sequence and
// no watermark; a client's sequences begin at 1.
func RefFromProto(p *pb.ClientRef) (Ref, error) {
	r := Ref{Client: catalog.ClientID(p.GetClientId()), Sequence: p.GetSequence(), Ack: p.GetAck()}
	switch {
	case r.Client == 0 && r.Sequence != 0:
		return Ref{}, invalid("client.sequence", r.Sequence, "0 while client.client_id is 0")
	case r.Client == 0 && r.Ack != 0:
		return Ref{}, invalid("client.ack", r.Ack, "0 while client.client_id is 0")
	case r.Client != 0 && r.Sequence == 0:
		return Ref{}, invalid("client.sequence", 0, "1 or above")
	}
	return r, nil
}

// Header returns the header of an answer made from a state.
func Header(i catalog.Incarnation, r catalog.Revision) *pb.ResponseHeader {
	return &pb.ResponseHeader{Incarnation: IncarnationToProto(i), Revision: uint64(r)}
}

// WatchRequestCheck refuses a watch that contradicts itself.
func WatchRequestCheck(r *pb.WatchRequest) error {
	f := r.GetFilter()
	switch {
	case f.GetDatabase() != "" && f.GetTable() != "":
		return invalid("filter.table", f.GetTable(), "empty while filter.database is set")
	case r.UntilRevision != nil && r.FromRevision != nil && r.GetUntilRevision() < r.GetFromRevision():
		return invalid("until_revision", r.GetUntilRevision(), "from_revision or above")
	case r.Incarnation != nil && r.FromRevision == nil:
		return invalid("incarnation", IncarnationFromProto(r.Incarnation), "none without from_revision")
	}
	for _, k := range f.GetKinds() {
		if k < pb.ObjectKind_OBJECT_KIND_CLUSTER || k > pb.ObjectKind_OBJECT_KIND_CLIENT {
			return invalid("filter.kinds", int32(k), "a known kind (1..12)")
		}
	}
	return nil
}
