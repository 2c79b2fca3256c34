package client

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// step is what a call does about one answer.
type step uint8

const (
	// stepDone: the answer is final.
	stepDone step = iota
	// stepAgain: nothing was changed; again after a pause.
	stepAgain
	// stepElsewhere: nothing was changed; another node at once.
	stepElsewhere
	// stepUnclear: it may have been executed; the same sequence again after a pause.
	stepUnclear
	// stepBroken: as stepUnclear, on another node at once.
	stepBroken
	// stepLost: the client's record is gone; this copy was not executed.
	stepLost
	// stepRestored: the client's record is gone, and this copy may have been
	// executed in a history that was given up.
	stepRestored
)

// judge says what follows from the error of one attempt. own is the context of
// the attempt: an error of it is the caller's, not the network's.
func judge(own context.Context, err error) step {
	var rpc *api.RPCError
	if errors.As(err, &rpc) {
		return judgeRPC(own, rpc.Status)
	}
	code := api.CodeOf(err)
	switch code {
	case catalog.Done:
		return stepDone
	case catalog.ErrSessionExpired:
		return stepLost
	case catalog.ErrRestored, catalog.ErrAlreadyAcknowledged:
		return stepRestored
	case catalog.ErrTableImporting: // a result of the command, kept for this sequence
		return stepDone
	case catalog.ErrUnknownServerError: // an error that the server itself did not expect
		return stepUnclear
	}
	switch api.LookupError(code).Retry {
	case api.RetryBackoff:
		return stepAgain
	case api.RetryElsewhere:
		return stepElsewhere
	case api.RetrySameSequence:
		return stepUnclear
	default:
		return stepDone
	}
}

func judgeRPC(own context.Context, c codes.Code) step {
	switch c {
	case codes.OK:
		return stepDone
	case codes.Unimplemented, codes.InvalidArgument, codes.ResourceExhausted, codes.Unauthenticated, codes.PermissionDenied:
		return stepDone // refused before any handler ran
	case codes.Canceled, codes.DeadlineExceeded:
		if own.Err() != nil {
			return stepUnclear
		}
		return stepBroken
	case codes.Unavailable:
		return stepBroken
	default:
		return stepUnclear
	}
}

// callKind says what may be repeated.
type callKind uint8

const (
	// kindOnce may be repeated only if it was not executed.
	kindOnce callKind = iota
	// kindRead may always be repeated.
	kindRead
	// kindWrite is repeated under its sequence.
	kindWrite
)

type reader interface{ GetConsistency() *pb.Consistency }

func kindOf(req any) callKind {
	switch req.(type) {
	case api.Request:
		return kindWrite
	case reader, *pb.RegisterClientRequest, *pb.KeepAliveRequest, *pb.WatchRequest:
		return kindRead
	}
	return kindOnce
}

// linearizable reports whether a read is one that the leader answers with the
// least work: another node would have to ask it first. It is a preference only;
// any node answers.
func linearizable(req any) bool {
	if _, register := req.(*pb.RegisterClientRequest); register {
		return true // a write by its nature: another node would have to hand it on
	}
	r, ok := req.(reader)
	if !ok {
		return false
	}
	if _, status := req.(*pb.StatusRequest); status {
		return false
	}
	switch r.GetConsistency().GetLevel() {
	case pb.ConsistencyLevel_CONSISTENCY_LEVEL_UNSPECIFIED, pb.ConsistencyLevel_CONSISTENCY_LEVEL_LINEARIZABLE:
		return true
	default:
		return false
	}
}

// errorOf converts the error of a generated stub.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	return api.ErrorFromStatus(st)
}

// withRef returns a copy of a write that carries ref. The rest is shared.
func withRef(req api.Request, ref *pb.ClientRef) proto.Message {
	from := req.ProtoReflect()
	to := from.New()
	from.Range(func(fd fieldDescriptor, v fieldValue) bool {
		to.Set(fd, v)
		return true
	})
	fd := to.Descriptor().Fields().ByName("client")
	if ref == nil {
		to.Clear(fd)
	} else {
		to.Set(fd, valueOf(ref))
	}
	return to.Interface()
}
