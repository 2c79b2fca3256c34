package api

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/stavedb/stave/catalog"
)

// Retry says what a caller may do about an error.
type Retry uint8

// Classes of retries.
const (
	// RetryNone: asking again gives the same answer, or must not be done.
	RetryNone Retry = iota
	// RetryBackoff: the same node, after a pause. Nothing was changed.
	RetryBackoff
	// RetryElsewhere: the leader named, or another node, at once. Nothing was
	// changed.
	RetryElsewhere
	// RetryRefresh: read the metadata again and compute the route anew. The same
	// bucket must never be asked again.
	RetryRefresh
	// RetrySession: open a new session (client or server registration). Only what
	// was never sent may move to it.
	RetrySession
	// RetryResync: read a state anew and go on from there.
	RetryResync
	// RetrySameSequence: a registered client sends the same sequence again; anyone
	// else must not.
	RetrySameSequence
)

var retryNames = [...]string{"none", "backoff", "elsewhere", "refresh", "session", "resync", "same-sequence"}

// String returns the name used in documents and metrics.
func (r Retry) String() string {
	if int(r) < len(retryNames) {
		return retryNames[r]
	}
	return "unknown"
}

// ErrorRow says how one code travels. The sentinel is Code itself:
// errors.Is(err, row.Code).
type ErrorRow struct {
	Code   catalog.Code
	Status codes.Code
	Retry  Retry
}

// Name returns the reason sent in ErrorInfo.
func (r ErrorRow) Name() string { return r.Code.String() }

// ErrorTable returns the one table of all codes, in ascending order. The slice
// is the caller's.
func ErrorTable() []ErrorRow { return slices.Clone(errorRows[:]) }

// LookupError returns the row of a code. An unknown one, of a newer peer, gets
// gRPC UNKNOWN and no retry.
func LookupError(c catalog.Code) ErrorRow {
	i, ok := slices.BinarySearchFunc(errorRows[:], c, func(r ErrorRow, c catalog.Code) int { return int(r.Code) - int(c) })
	if !ok {
		return ErrorRow{c, codes.Unknown, RetryNone}
	}
	return errorRows[i]
}

// errorRows is sorted by code. OUTCOME_UNKNOWN is never UNAVAILABLE: generic
// middleware sends UNAVAILABLE again.
var errorRows = [...]ErrorRow{
	{catalog.ErrUnknownServerError, codes.Unknown, RetryNone},
	{catalog.Done, codes.OK, RetryNone},
	{catalog.ErrNetwork, codes.Unavailable, RetryRefresh},
	{catalog.ErrUnsupportedVersion, codes.Unimplemented, RetryNone},
	{catalog.ErrCorruptMessage, codes.DataLoss, RetryBackoff},
	{catalog.ErrDatabaseNotExist, codes.NotFound, RetryNone},
	{catalog.ErrDatabaseNotEmpty, codes.FailedPrecondition, RetryNone},
	{catalog.ErrDatabaseAlreadyExist, codes.AlreadyExists, RetryNone},
	{catalog.ErrTableNotExist, codes.NotFound, RetryNone},
	{catalog.ErrTableAlreadyExist, codes.AlreadyExists, RetryNone},
	{catalog.ErrSchemaNotExist, codes.NotFound, RetryBackoff},
	{catalog.ErrLogStorage, codes.Internal, RetryBackoff},
	{catalog.ErrKVStorage, codes.Internal, RetryBackoff},
	{catalog.ErrNotLeaderOrFollower, codes.FailedPrecondition, RetryRefresh},
	{catalog.ErrRecordTooLarge, codes.InvalidArgument, RetryNone},
	{catalog.ErrCorruptRecord, codes.DataLoss, RetryBackoff},
	{catalog.ErrInvalidTable, codes.InvalidArgument, RetryNone},
	{catalog.ErrInvalidDatabase, codes.InvalidArgument, RetryNone},
	{catalog.ErrInvalidReplicationFactor, codes.FailedPrecondition, RetryNone},
	{catalog.ErrInvalidRequiredAcks, codes.InvalidArgument, RetryNone},
	{catalog.ErrLogOffsetOutOfRange, codes.OutOfRange, RetryNone},
	{catalog.ErrNonPrimaryKeyTable, codes.FailedPrecondition, RetryNone},
	{catalog.ErrUnknownTableOrBucket, codes.NotFound, RetryRefresh},
	{catalog.ErrInvalidUpdateVersion, codes.FailedPrecondition, RetryNone},
	{catalog.ErrInvalidCoordinator, codes.FailedPrecondition, RetryNone},
	{catalog.ErrFencedLeaderEpoch, codes.FailedPrecondition, RetryNone},
	{catalog.ErrRequestTimeOut, codes.DeadlineExceeded, RetryBackoff},
	{catalog.ErrStorage, codes.Internal, RetryBackoff},
	{catalog.ErrOperationNotAttempted, codes.Aborted, RetryNone},
	{catalog.ErrNotEnoughReplicasAfterAppend, codes.Unavailable, RetryBackoff},
	{catalog.ErrNotEnoughReplicas, codes.Unavailable, RetryBackoff},
	{catalog.ErrSecurityToken, codes.Unauthenticated, RetryNone},
	{catalog.ErrOutOfOrderSequence, codes.FailedPrecondition, RetryNone},
	{catalog.ErrDuplicateSequence, codes.AlreadyExists, RetryNone},
	{catalog.ErrUnknownWriterID, codes.NotFound, RetryNone},
	{catalog.ErrInvalidColumnProjection, codes.InvalidArgument, RetryNone},
	{catalog.ErrInvalidTargetColumn, codes.InvalidArgument, RetryNone},
	{catalog.ErrPartitionNotExists, codes.NotFound, RetryNone},
	{catalog.ErrTableNotPartitioned, codes.FailedPrecondition, RetryNone},
	{catalog.ErrInvalidTimestamp, codes.InvalidArgument, RetryNone},
	{catalog.ErrInvalidConfig, codes.InvalidArgument, RetryNone},
	{catalog.ErrLakeStorageNotConfigured, codes.FailedPrecondition, RetryNone},
	{catalog.ErrKVSnapshotNotExist, codes.NotFound, RetryNone},
	{catalog.ErrPartitionAlreadyExists, codes.AlreadyExists, RetryNone},
	{catalog.ErrPartitionSpecInvalid, codes.InvalidArgument, RetryNone},
	{catalog.ErrLeaderNotAvailable, codes.Unavailable, RetryRefresh},
	{catalog.ErrPartitionMaxNum, codes.ResourceExhausted, RetryNone},
	{catalog.ErrAuthenticate, codes.Unauthenticated, RetryNone},
	{catalog.ErrSecurityDisabled, codes.FailedPrecondition, RetryNone},
	{catalog.ErrAuthorization, codes.PermissionDenied, RetryNone},
	{catalog.ErrBucketMaxNum, codes.ResourceExhausted, RetryNone},
	{catalog.ErrFencedTieringEpoch, codes.FailedPrecondition, RetryNone},
	{catalog.ErrRetriableAuthenticate, codes.Unauthenticated, RetryNone},
	{catalog.ErrInvalidServerRackInfo, codes.InvalidArgument, RetryNone},
	{catalog.ErrLakeSnapshotNotExist, codes.NotFound, RetryNone},
	{catalog.ErrLakeTableAlreadyExist, codes.AlreadyExists, RetryNone},
	{catalog.ErrIneligibleReplica, codes.FailedPrecondition, RetryNone},
	{catalog.ErrInvalidAlterTable, codes.InvalidArgument, RetryNone},
	{catalog.ErrDeletionDisabled, codes.FailedPrecondition, RetryNone},
	{catalog.ErrServerNotExist, codes.NotFound, RetryNone},
	{catalog.ErrServerTagAlreadyExist, codes.AlreadyExists, RetryNone},
	{catalog.ErrServerTagNotExist, codes.NotFound, RetryNone},
	{catalog.ErrRebalanceFailure, codes.Internal, RetryNone},
	{catalog.ErrNoRebalanceInProgress, codes.FailedPrecondition, RetryNone},
	{catalog.ErrInvalidProducerID, codes.InvalidArgument, RetryNone},
	{catalog.ErrConfig, codes.InvalidArgument, RetryNone},
	{catalog.ErrNotCoordinatorLeader, codes.FailedPrecondition, RetryNone},
	{catalog.ErrScannerExpired, codes.NotFound, RetryNone},
	{catalog.ErrUnknownScannerID, codes.NotFound, RetryNone},
	{catalog.ErrInvalidScanRequest, codes.InvalidArgument, RetryNone},
	{catalog.ErrTooManyScanners, codes.ResourceExhausted, RetryNone},
	{catalog.ErrDiskWriteLocked, codes.Unavailable, RetryBackoff},
	{catalog.ErrInsufficientKVLeaderReplicaCapacity, codes.ResourceExhausted, RetryNone},
	{catalog.ErrStorageBackpressure, codes.ResourceExhausted, RetryBackoff},
	{catalog.ErrHistoricalPartitionThrottled, codes.ResourceExhausted, RetryBackoff},
	{catalog.ErrStaleMetadata, codes.FailedPrecondition, RetryRefresh},
	{catalog.ErrNotLeader, codes.Unavailable, RetryElsewhere},
	{catalog.ErrOutcomeUnknown, codes.Unknown, RetrySameSequence},
	{catalog.ErrCompacted, codes.OutOfRange, RetryResync},
	{catalog.ErrRestored, codes.Aborted, RetrySession},
	{catalog.ErrFenced, codes.FailedPrecondition, RetryNone},
	{catalog.ErrNoSpace, codes.ResourceExhausted, RetryElsewhere},
	{catalog.ErrDiskStalled, codes.Unavailable, RetryElsewhere},
	{catalog.ErrCorruptLog, codes.DataLoss, RetryElsewhere},
	{catalog.ErrDiverged, codes.DataLoss, RetryElsewhere},
	{catalog.ErrTooLarge, codes.InvalidArgument, RetryNone},
	{catalog.ErrUnknownCommand, codes.Unimplemented, RetryNone},
	{catalog.ErrUnsupportedCommandVersion, codes.Unimplemented, RetryNone},
	{catalog.ErrUnavailable, codes.Unavailable, RetryElsewhere},
	{catalog.ErrSessionExpired, codes.FailedPrecondition, RetrySession},
	{catalog.ErrBusy, codes.ResourceExhausted, RetryBackoff},
	{catalog.ErrVersionConflict, codes.Aborted, RetryNone},
	{catalog.ErrServerIDInUse, codes.AlreadyExists, RetryNone},
	{catalog.ErrClockJump, codes.FailedPrecondition, RetryNone},
	{catalog.ErrAlreadyAcknowledged, codes.FailedPrecondition, RetryNone},
	{catalog.ErrTableImporting, codes.FailedPrecondition, RetryBackoff},
	{catalog.ErrInvalidArgument, codes.InvalidArgument, RetryNone},
	{catalog.ErrKeyNotExist, codes.NotFound, RetryNone},
}
