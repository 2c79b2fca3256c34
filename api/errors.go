package api

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/stavedb/stave/catalog"
)

// NotLeaderError is returned when a node that does not lead was asked for what
// only a leader does. The command never entered the log. It unwraps to
// catalog.ErrNotLeader.
type NotLeaderError struct {
	// Leader is the node id and Addr the API address of the leader, where known.
	Leader, Addr string
	// Message is a sentence, or empty.
	Message string
}

// Error returns "NOT_LEADER: sentence".
func (e *NotLeaderError) Error() string {
	msg := "this node does not lead and knows no leader"
	if e.Leader != "" {
		msg = fmt.Sprintf("this node does not lead; the leader is %s at %s", e.Leader, e.Addr)
	}
	return sentence(catalog.ErrNotLeader, e.Message, msg)
}

// Unwrap returns catalog.ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return catalog.ErrNotLeader }

// Layout is how the rows of one table or partition spread over buckets, at one
// revision of one incarnation.
type Layout struct {
	Incarnation catalog.Incarnation
	Revision    catalog.Revision
	TableID     catalog.TableID
	// Table is "database.table".
	Table string
	// PartitionID is unset for the table as a whole.
	PartitionID catalog.Opt[catalog.PartitionID]
	Partition   string
	// Buckets is the effective count.
	Buckets int32
	Epoch   catalog.Epoch
}

// StaleMetadataError is returned when a bucket was computed with a count that is
// not the object's. It unwraps to catalog.ErrStaleMetadata.
type StaleMetadataError struct {
	// Layout is the fresh one: route again with it, never with the same bucket.
	Layout  Layout
	Message string
}

// Error returns "STALE_METADATA: sentence".
func (e *StaleMetadataError) Error() string {
	l := &e.Layout
	return sentence(catalog.ErrStaleMetadata, e.Message,
		fmt.Sprintf("%s has %d buckets at layout epoch %d", l.Table, l.Buckets, l.Epoch))
}

// Unwrap returns catalog.ErrStaleMetadata.
func (e *StaleMetadataError) Unwrap() error { return catalog.ErrStaleMetadata }

// CompactedError is returned when a watch would start before the history kept.
// It unwraps to catalog.ErrCompacted.
type CompactedError struct {
	// Oldest is the lowest revision that a watch can start from.
	Oldest  catalog.Revision
	Message string
}

// Error returns "COMPACTED: sentence".
func (e *CompactedError) Error() string {
	return sentence(catalog.ErrCompacted, e.Message, fmt.Sprintf("the history begins after revision %d", e.Oldest))
}

// Unwrap returns catalog.ErrCompacted.
func (e *CompactedError) Unwrap() error { return catalog.ErrCompacted }

// RestoredError is returned when the history that the caller refers to is not
// the current one. It unwraps to catalog.ErrRestored.
type RestoredError struct {
	// Incarnation is the current one.
	Incarnation catalog.Incarnation
	Message     string
}

// Error returns "RESTORED: sentence".
func (e *RestoredError) Error() string {
	return sentence(catalog.ErrRestored, e.Message, "the cluster's history is now "+e.Incarnation.String())
}

// Unwrap returns catalog.ErrRestored.
func (e *RestoredError) Unwrap() error { return catalog.ErrRestored }

// RPCError is an error that no Stave node made: the transport, a proxy or the
// caller's own context. Whether a write arrived is unknown. It unwraps to a
// catalog.Code and, where it was one, to the context's error.
type RPCError struct {
	Status  codes.Code
	Message string
}

// Error returns the status and its message.
func (e *RPCError) Error() string {
	return e.Code().String() + ": rpc " + e.Status.String() + ": " + e.Message
}

// Unwrap returns the errors that errors.Is finds.
func (e *RPCError) Unwrap() []error {
	switch e.Status {
	case codes.Canceled:
		return []error{e.Code(), context.Canceled}
	case codes.DeadlineExceeded:
		return []error{e.Code(), context.DeadlineExceeded}
	default:
		return []error{e.Code()}
	}
}

// Code returns the code nearest to the status.
func (e *RPCError) Code() catalog.Code {
	switch e.Status {
	case codes.DeadlineExceeded, codes.Canceled:
		return catalog.ErrRequestTimeOut
	case codes.Unavailable:
		return catalog.ErrNetwork
	case codes.InvalidArgument:
		return catalog.ErrInvalidArgument
	case codes.ResourceExhausted:
		return catalog.ErrTooLarge
	case codes.Unimplemented:
		return catalog.ErrUnknownCommand
	case codes.Unauthenticated:
		return catalog.ErrAuthenticate
	case codes.PermissionDenied:
		return catalog.ErrAuthorization
	default:
		return catalog.ErrUnknownServerError
	}
}

func sentence(c catalog.Code, message, fallback string) string {
	if message == "" {
		message = fallback
	}
	return c.String() + ": " + message
}

// CodeOf returns the code of an error: the first catalog.Code in its chain, Done
// for nil, and ErrUnknownServerError for an error that has none.
func CodeOf(err error) catalog.Code {
	if err == nil {
		return catalog.Done
	}
	var c catalog.Code
	if errors.As(err, &c) {
		return c
	}
	return catalog.ErrUnknownServerError
}

// RetryOf returns the retry class of an error. An error of the transport tells
// nothing of a write's fate; for it the class holds for reads only.
func RetryOf(err error) Retry {
	var rpc *RPCError
	if errors.As(err, &rpc) && rpc.Status == codes.Unavailable {
		return RetryElsewhere
	}
	return LookupError(CodeOf(err)).Retry
}
