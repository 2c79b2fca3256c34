package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// ResultToProto converts a result.
func ResultToProto(r *catalog.Result) *pb.Result {
	return &pb.Result{
		Code: int32(r.Code), Message: r.Message, Revision: uint64(r.Revision), Changed: r.Changed,
		Ids:         each(r.IDs, func(i catalog.IDRange) *pb.IDRange { return &pb.IDRange{First: i.First, Count: i.Count} }),
		BucketCount: r.Count, Epoch: r.Epoch, Version: r.Version, Current: r.Current, Limit: r.Limit, Size: r.Size, More: r.More,
		BucketCodes: numbers[int32](r.Buckets),
	}
}

// ResultFromProto converts a result; nil becomes an empty one.
func ResultFromProto(p *pb.Result) catalog.Result {
	return catalog.Result{
		Code: catalog.Code(p.GetCode()), Message: p.GetMessage(), Revision: catalog.Revision(p.GetRevision()), Changed: p.GetChanged(),
		IDs: each(p.GetIds(), func(i *pb.IDRange) catalog.IDRange {
			return catalog.IDRange{First: i.GetFirst(), Count: i.GetCount()}
		}),
		Count: p.GetBucketCount(), Epoch: p.GetEpoch(), Version: p.GetVersion(), Current: p.GetCurrent(), Limit: p.GetLimit(), Size: p.GetSize(),
		More: p.GetMore(), Buckets: numbers[catalog.Code](p.GetBucketCodes()),
	}
}

// EventToProto converts an event into one batch. Without before, the rows before
// an update are left out. tables is as in ObjectToProto.
func EventToProto(e *catalog.Event, before bool, tables func(catalog.TableID) *catalog.Table) (*pb.EventBatch, error) {
	out := &pb.EventBatch{
		Revision: uint64(e.Revision), Command: e.Kind.String(), CommandKind: uint32(e.Kind), WallMs: int64(e.Wall), Actor: e.Actor,
	}
	changes, err := eachErr(e.Changes, "changes", func(c catalog.Change) (*pb.Change, error) { return changeTo(c, before, tables) })
	if err != nil {
		return nil, err
	}
	out.Changes = changes
	return out, nil
}

func changeTo(c catalog.Change, before bool, tables func(catalog.TableID) *catalog.Table) (*pb.Change, error) {
	out := &pb.Change{Type: pb.ChangeType_CHANGE_TYPE_UPDATED}
	switch {
	case c.Before == nil:
		out.Type = pb.ChangeType_CHANGE_TYPE_CREATED
	case c.After == nil:
		out.Type = pb.ChangeType_CHANGE_TYPE_DELETED
	}
	var err error
	if c.After != nil {
		if out.After, err = ObjectToProto(c.After, tables); err != nil {
			return nil, err
		}
	}
	if c.Before != nil && (before || c.After == nil) {
		if out.Before, err = ObjectToProto(c.Before, tables); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// EventFromProto checks and converts a whole batch: fragments are joined by the
// caller. An update without before-values has Before nil, as a creation; only
// the message tells them apart.
func EventFromProto(p *pb.EventBatch) (*catalog.Event, error) {
	kind, err := byteField("command_kind", p.GetCommandKind())
	if err != nil {
		return nil, err
	}
	changes, err := eachErr(p.GetChanges(), "changes", changeFrom)
	if err != nil {
		return nil, err
	}
	return &catalog.Event{
		Revision: catalog.Revision(p.GetRevision()), Kind: catalog.Kind(kind), Wall: catalog.Millis(p.GetWallMs()), Actor: p.GetActor(), Changes: changes,
	}, nil
}

func changeFrom(p *pb.Change) (c catalog.Change, err error) {
	if p.GetBefore() != nil {
		if c.Before, err = ObjectFromProto(p.GetBefore()); err != nil {
			return catalog.Change{}, err
		}
	}
	if p.GetAfter() != nil {
		if c.After, err = ObjectFromProto(p.GetAfter()); err != nil {
			return catalog.Change{}, err
		}
	}
	switch p.GetType() {
	case pb.ChangeType_CHANGE_TYPE_CREATED:
		if c.After == nil || c.Before != nil {
			return catalog.Change{}, invalid("change.type", "CREATED", "a change with only a row after")
		}
	case pb.ChangeType_CHANGE_TYPE_UPDATED:
		if c.After == nil {
			return catalog.Change{}, invalid("change.after", "not set", "the row after an update")
		}
	case pb.ChangeType_CHANGE_TYPE_DELETED:
		if c.Before == nil || c.After != nil {
			return catalog.Change{}, invalid("change.type", "DELETED", "a change with only a row before")
		}
	default:
		return catalog.Change{}, invalid("change.type", int32(p.GetType()), "a known type (1..3)")
	}
	return c, nil
}

// JoinFragments appends the changes of next to batch, which must be of the same
// revision, and reports whether the batch is whole. batch keeps next's memory.
func JoinFragments(batch, next *pb.EventBatch) (whole bool, err error) {
	if batch.GetRevision() != next.GetRevision() {
		return false, invalid("batch.revision", next.GetRevision(), "that of the fragment before")
	}
	batch.Changes = append(batch.Changes, next.GetChanges()...)
	batch.More = next.GetMore()
	return !batch.More, nil
}
