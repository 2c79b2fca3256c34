package api

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// ErrorDomain is the domain of every ErrorInfo.
const ErrorDomain = "stave"

// metadataCode is the key of the numeric code in ErrorInfo: two codes share the
// name UNSUPPORTED_VERSION.
const metadataCode = "code"

// StatusFromError returns the status that carries err, with ErrorInfo and
// pb.ErrorDetail. nil is OK. An error without a code is UNKNOWN_SERVER_ERROR; a
// context's error keeps its own status, without details.
func StatusFromError(err error) *status.Status {
	if err == nil {
		return status.New(codes.OK, "")
	}
	if st := foreignStatus(err); st != nil {
		return st
	}
	e := ErrorToProto(err)
	code := catalog.Code(e.GetDetail().GetCode())
	st := status.New(LookupError(code).Status, e.GetMessage())
	full, derr := st.WithDetails(&errdetails.ErrorInfo{
		Reason: e.GetName(), Domain: ErrorDomain, Metadata: map[string]string{metadataCode: strconv.Itoa(int(code))},
	}, e.GetDetail())
	if derr != nil { // only for a status OK, which no refusal has
		return status.New(codes.Unknown, err.Error())
	}
	return full
}

// foreignStatus returns the status of an error that has no code of ours, if it
// is one of gRPC or of a context.
func foreignStatus(err error) *status.Status {
	var rpc *RPCError
	if errors.As(err, &rpc) {
		return status.New(rpc.Status, rpc.Message)
	}
	var c catalog.Code
	if errors.As(err, &c) && c != catalog.Done {
		return nil
	}
	var s interface{ GRPCStatus() *status.Status }
	switch {
	case errors.As(err, &s) && s.GRPCStatus().Code() != codes.OK:
		return s.GRPCStatus()
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, err.Error())
	}
	return nil
}

// ErrorToProto returns the message that carries a non-nil err inside a stream.
func ErrorToProto(err error) *pb.Error {
	code := CodeOf(err)
	if code == catalog.Done {
		code = catalog.ErrUnknownServerError
	}
	d := &pb.ErrorDetail{Code: int32(code)}
	message := err.Error()
	var (
		refusal   *catalog.Error
		notLeader *NotLeaderError
		stale     *StaleMetadataError
		compacted *CompactedError
		restored  *RestoredError
	)
	switch {
	case errors.As(err, &notLeader):
		message = plain(err, notLeader, notLeader.Message)
		if notLeader.Leader != "" || notLeader.Addr != "" {
			d.Leader = &pb.LeaderHint{NodeId: notLeader.Leader, Address: notLeader.Addr}
		}
	case errors.As(err, &stale):
		message = plain(err, stale, stale.Message)
		d.Layout = LayoutToProto(stale.Layout)
	case errors.As(err, &compacted):
		message = plain(err, compacted, compacted.Message)
		oldest := uint64(compacted.Oldest)
		d.Oldest = &oldest
	case errors.As(err, &restored):
		message = plain(err, restored, restored.Message)
		d.Incarnation = &pb.Incarnation{Number: restored.Incarnation.Number, Random: restored.Incarnation.Random}
	case errors.As(err, &refusal):
		message = plain(err, refusal, refusal.Message)
		d.Limit, d.Size, d.Current = refusal.Limit, refusal.Size, refusal.Current
	}
	return &pb.Error{Name: code.String(), Message: message, Detail: d}
}

// plain returns the bare sentence of an error that was not wrapped, so that the
// code is not said twice, else the whole chain.
func plain(err, inner error, sentence string) string {
	if err == inner { //nolint:errorlint // identity is the question
		return sentence
	}
	return err.Error()
}

// ErrorFromStatus returns the error that st carries: *NotLeaderError,
// *StaleMetadataError, *CompactedError, *RestoredError or *catalog.Error, each
// unwrapping to its catalog.Code; *RPCError if no Stave node made it. OK is nil.
func ErrorFromStatus(st *status.Status) error {
	if st.Code() == codes.OK {
		return nil
	}
	e := &pb.Error{Message: st.Message()}
	ours := false
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == ErrorDomain {
				ours = true
				e.Name = d.GetReason()
				if n, err := strconv.ParseInt(d.GetMetadata()[metadataCode], 10, 32); err == nil && e.Detail == nil {
					e.Detail = &pb.ErrorDetail{Code: int32(n)}
				}
			}
		case *pb.ErrorDetail:
			e.Detail = d
		}
	}
	if !ours {
		return &RPCError{Status: st.Code(), Message: st.Message()}
	}
	return ErrorFromProto(e)
}

// ErrorFromProto returns the error that e carries, as ErrorFromStatus does. It
// is never nil: an error without a code is catalog.ErrUnknownServerError.
func ErrorFromProto(e *pb.Error) error {
	d := e.GetDetail()
	code := catalog.Code(d.GetCode())
	if code == catalog.Done {
		code = codeByName(e.GetName())
	}
	switch {
	case code == catalog.ErrNotLeader:
		return &NotLeaderError{Leader: d.GetLeader().GetNodeId(), Addr: d.GetLeader().GetAddress(), Message: e.GetMessage()}
	case code == catalog.ErrStaleMetadata && d.GetLayout() != nil:
		return &StaleMetadataError{Layout: LayoutFromProto(d.GetLayout()), Message: e.GetMessage()}
	case code == catalog.ErrCompacted && d != nil && d.Oldest != nil:
		return &CompactedError{Oldest: catalog.Revision(d.GetOldest()), Message: e.GetMessage()}
	case code == catalog.ErrRestored && d.GetIncarnation() != nil:
		return &RestoredError{Incarnation: IncarnationFromProto(d.GetIncarnation()), Message: e.GetMessage()}
	default:
		return &catalog.Error{Code: code, Message: e.GetMessage(), Limit: d.GetLimit(), Size: d.GetSize(), Current: d.GetCurrent()}
	}
}

// codeByName finds a code by its reason where the number was lost on the way.
func codeByName(name string) catalog.Code {
	for _, r := range errorRows {
		if r.Code != catalog.Done && r.Name() == name {
			return r.Code
		}
	}
	return catalog.ErrUnknownServerError
}

// LayoutToProto converts a layout.
func LayoutToProto(l Layout) *pb.Layout {
	return &pb.Layout{
		Incarnation: IncarnationToProto(l.Incarnation), Revision: uint64(l.Revision), TableId: uint64(l.TableID), Table: l.Table,
		PartitionId: optTo[uint64](l.PartitionID), Partition: l.Partition, BucketCount: l.Buckets, LayoutEpoch: uint64(l.Epoch),
	}
}

// LayoutFromProto converts a layout; nil becomes an empty one.
func LayoutFromProto(p *pb.Layout) Layout {
	l := Layout{
		Incarnation: IncarnationFromProto(p.GetIncarnation()), Revision: catalog.Revision(p.GetRevision()), TableID: catalog.TableID(p.GetTableId()),
		Table: p.GetTable(), Partition: p.GetPartition(), Buckets: p.GetBucketCount(), Epoch: catalog.Epoch(p.GetLayoutEpoch()),
	}
	if p != nil {
		l.PartitionID = optFrom[catalog.PartitionID](p.PartitionId)
	}
	return l
}
