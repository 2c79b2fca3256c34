package api

import (
	"fmt"
	"math"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// invalid is the refusal of a field that the catalog cannot hold.
func invalid(field string, value any, bound string) error {
	return &catalog.Error{
		Code:    catalog.ErrInvalidArgument,
		Message: fmt.Sprintf("%s is %v, want %s", field, value, bound),
	}
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// optTo and optFrom convert between an optional value and a proto pointer of
// the same width.
func optTo[P, T integer](o catalog.Opt[T]) *P {
	if !o.Set {
		return nil
	}
	v := P(o.V)
	return &v
}

func optFrom[T, P integer](p *P) catalog.Opt[T] {
	if p == nil {
		return catalog.Opt[T]{}
	}
	return catalog.Some(T(*p))
}

func textTo(o catalog.Opt[string]) *string {
	if !o.Set {
		return nil
	}
	return &o.V
}

func textFrom(p *string) catalog.Opt[string] {
	if p == nil {
		return catalog.Opt[string]{}
	}
	return catalog.Some(*p)
}

// numbers converts a list between types of the same width.
func numbers[To, From integer](in []From) []To {
	if len(in) == 0 {
		return nil
	}
	out := make([]To, len(in))
	for i, v := range in {
		out[i] = To(v)
	}
	return out
}

// each converts a list; an empty one becomes nil.
func each[To, From any](in []From, f func(From) To) []To {
	if len(in) == 0 {
		return nil
	}
	out := make([]To, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// eachErr converts a list and stops at the first error.
func eachErr[To, From any](in []From, field string, f func(From) (To, error)) ([]To, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]To, len(in))
	for i, v := range in {
		var err error
		if out[i], err = f(v); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
	}
	return out, nil
}

func copyTexts(in []string) []string {
	return each(in, func(s string) string { return s })
}

func copyBytes(in []byte) []byte {
	if len(in) == 0 {
		return nil
	}
	return append([]byte(nil), in...)
}

func propertiesToProto(in []catalog.Property) []*pb.Property {
	return each(in, func(p catalog.Property) *pb.Property { return &pb.Property{Key: p.Key, Value: p.Value} })
}

func propertiesFromProto(in []*pb.Property) []catalog.Property {
	return each(in, func(p *pb.Property) catalog.Property {
		return catalog.Property{Key: p.GetKey(), Value: p.GetValue()}
	})
}

// IncarnationToProto converts an incarnation; the zero one becomes nil.
func IncarnationToProto(i catalog.Incarnation) *pb.Incarnation {
	if i.IsZero() {
		return nil
	}
	return &pb.Incarnation{Number: i.Number, Random: i.Random}
}

// IncarnationFromProto converts an incarnation; nil becomes the zero one.
func IncarnationFromProto(p *pb.Incarnation) catalog.Incarnation {
	return catalog.Incarnation{Number: p.GetNumber(), Random: p.GetRandom()}
}

func importIDToProto(id catalog.ImportID) *pb.ImportID {
	if id == (catalog.ImportID{}) {
		return nil
	}
	return &pb.ImportID{Incarnation: IncarnationToProto(id.Incarnation), Revision: uint64(id.Revision)}
}

func importIDFromProto(p *pb.ImportID) catalog.ImportID {
	return catalog.ImportID{
		Incarnation: IncarnationFromProto(p.GetIncarnation()),
		Revision:    catalog.Revision(p.GetRevision()),
	}
}

func limitsToProto(l catalog.Limits) *pb.Limits {
	if l == (catalog.Limits{}) {
		return nil
	}
	return &pb.Limits{Buckets: l.Buckets, Partitions: l.Partitions, Replicas: l.Replicas}
}

func limitsFromProto(p *pb.Limits) catalog.Limits {
	return catalog.Limits{Buckets: p.GetBuckets(), Partitions: p.GetPartitions(), Replicas: p.GetReplicas()}
}

// byteField narrows a number to what one byte holds.
func byteField(field string, v uint32) (uint8, error) {
	if v > math.MaxUint8 {
		return 0, invalid(field, v, "0..255")
	}
	return uint8(v), nil
}
