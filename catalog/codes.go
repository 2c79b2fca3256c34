package catalog

import (
	"maps"
	"slices"
)

// Done is the code of a command that was carried out.
const Done Code = 0

// Codes of Fluss, with its names and numbers. The wire knows them as Code.String.
const (
	ErrUnknownServerError                  Code = -1
	ErrNetwork                             Code = 1
	ErrUnsupportedVersion                  Code = 2
	ErrCorruptMessage                      Code = 3
	ErrDatabaseNotExist                    Code = 4
	ErrDatabaseNotEmpty                    Code = 5
	ErrDatabaseAlreadyExist                Code = 6
	ErrTableNotExist                       Code = 7
	ErrTableAlreadyExist                   Code = 8
	ErrSchemaNotExist                      Code = 9
	ErrLogStorage                          Code = 10
	ErrKVStorage                           Code = 11
	ErrNotLeaderOrFollower                 Code = 12
	ErrRecordTooLarge                      Code = 13
	ErrCorruptRecord                       Code = 14
	ErrInvalidTable                        Code = 15
	ErrInvalidDatabase                     Code = 16
	ErrInvalidReplicationFactor            Code = 17
	ErrInvalidRequiredAcks                 Code = 18
	ErrLogOffsetOutOfRange                 Code = 19
	ErrNonPrimaryKeyTable                  Code = 20
	ErrUnknownTableOrBucket                Code = 21
	ErrInvalidUpdateVersion                Code = 22
	ErrInvalidCoordinator                  Code = 23
	ErrFencedLeaderEpoch                   Code = 24
	ErrRequestTimeOut                      Code = 25
	ErrStorage                             Code = 26
	ErrOperationNotAttempted               Code = 27
	ErrNotEnoughReplicasAfterAppend        Code = 28
	ErrNotEnoughReplicas                   Code = 29
	ErrSecurityToken                       Code = 30
	ErrOutOfOrderSequence                  Code = 31
	ErrDuplicateSequence                   Code = 32
	ErrUnknownWriterID                     Code = 33
	ErrInvalidColumnProjection             Code = 34
	ErrInvalidTargetColumn                 Code = 35
	ErrPartitionNotExists                  Code = 36
	ErrTableNotPartitioned                 Code = 37
	ErrInvalidTimestamp                    Code = 38
	ErrInvalidConfig                       Code = 39
	ErrLakeStorageNotConfigured            Code = 40
	ErrKVSnapshotNotExist                  Code = 41
	ErrPartitionAlreadyExists              Code = 42
	ErrPartitionSpecInvalid                Code = 43
	ErrLeaderNotAvailable                  Code = 44
	ErrPartitionMaxNum                     Code = 45
	ErrAuthenticate                        Code = 46
	ErrSecurityDisabled                    Code = 47
	ErrAuthorization                       Code = 48
	ErrBucketMaxNum                        Code = 49
	ErrFencedTieringEpoch                  Code = 50
	ErrRetriableAuthenticate               Code = 51
	ErrInvalidServerRackInfo               Code = 52
	ErrLakeSnapshotNotExist                Code = 53
	ErrLakeTableAlreadyExist               Code = 54
	ErrIneligibleReplica                   Code = 55
	ErrInvalidAlterTable                   Code = 56
	ErrDeletionDisabled                    Code = 57
	ErrServerNotExist                      Code = 58
	ErrServerTagAlreadyExist               Code = 59
	ErrServerTagNotExist                   Code = 60
	ErrRebalanceFailure                    Code = 61
	ErrNoRebalanceInProgress               Code = 62
	ErrInvalidProducerID                   Code = 63
	ErrConfig                              Code = 64
	ErrNotCoordinatorLeader                Code = 65
	ErrScannerExpired                      Code = 66
	ErrUnknownScannerID                    Code = 67
	ErrInvalidScanRequest                  Code = 68
	ErrTooManyScanners                     Code = 69
	ErrDiskWriteLocked                     Code = 70
	ErrInsufficientKVLeaderReplicaCapacity Code = 71
	ErrStorageBackpressure                 Code = 72
	ErrHistoricalPartitionThrottled        Code = 73
)

// Codes of Stave: the code that upstream has no number for yet, and those from 1000.
const (
	// ErrStaleMetadata is returned when a route was computed with a bucket count that is not the partition's, or the count is unknown; never retried with the same bucket.
	ErrStaleMetadata Code = 74
	// ErrNotLeader is returned when this node does not lead; the command never entered the log.
	ErrNotLeader Code = 1000
	// ErrOutcomeUnknown is returned when a write may or may not have taken effect and cannot be asked for any more.
	ErrOutcomeUnknown Code = 1001
	// ErrCompacted is returned when a watch starts before the oldest revision kept.
	ErrCompacted Code = 1002
	// ErrRestored is returned when the incarnation named by the caller is not the current one.
	ErrRestored Code = 1003
	// ErrFenced is returned when the caller acts under an epoch or server incarnation that was replaced.
	ErrFenced      Code = 1004
	ErrNoSpace     Code = 1005
	ErrDiskStalled Code = 1006
	ErrCorruptLog  Code = 1007
	ErrDiverged    Code = 1008
	// ErrTooLarge is returned when an object or request is above a limit; Error carries Limit and Size.
	ErrTooLarge                  Code = 1009
	ErrUnknownCommand            Code = 1010
	ErrUnsupportedCommandVersion Code = 1011
	// ErrUnavailable is returned when no quorum or no leader answered in time; nothing was changed.
	ErrUnavailable Code = 1012
	// ErrSessionExpired is returned when the client or tablet server record is unknown or expired.
	ErrSessionExpired Code = 1013
	// ErrBusy is returned when a bounded queue or window is full; nothing was changed.
	ErrBusy Code = 1014
	// ErrVersionConflict is returned when an expected epoch or version is not the current one; Error carries Current.
	ErrVersionConflict Code = 1015
	ErrServerIDInUse   Code = 1016
	ErrClockJump       Code = 1017
	// ErrAlreadyAcknowledged is returned when the sequence is at or below the watermark the client sent; it is not executed again.
	ErrAlreadyAcknowledged Code = 1018
	// ErrTableImporting is returned when the table is being imported: readable, but neither altered nor routed.
	ErrTableImporting Code = 1019
	// ErrInvalidArgument is returned when a request is malformed in a way no other code names.
	ErrInvalidArgument Code = 1020
	// ErrKeyNotExist is returned when a key of the key-value group is not there.
	ErrKeyNotExist Code = 1021
)

var codeNames = map[Code]string{
	ErrUnknownServerError:                  "UNKNOWN_SERVER_ERROR",
	Done:                                   "NONE",
	ErrNetwork:                             "NETWORK_EXCEPTION",
	ErrUnsupportedVersion:                  "UNSUPPORTED_VERSION",
	ErrCorruptMessage:                      "CORRUPT_MESSAGE",
	ErrDatabaseNotExist:                    "DATABASE_NOT_EXIST",
	ErrDatabaseNotEmpty:                    "DATABASE_NOT_EMPTY",
	ErrDatabaseAlreadyExist:                "DATABASE_ALREADY_EXIST",
	ErrTableNotExist:                       "TABLE_NOT_EXIST",
	ErrTableAlreadyExist:                   "TABLE_ALREADY_EXIST",
	ErrSchemaNotExist:                      "SCHEMA_NOT_EXIST",
	ErrLogStorage:                          "LOG_STORAGE_EXCEPTION",
	ErrKVStorage:                           "KV_STORAGE_EXCEPTION",
	ErrNotLeaderOrFollower:                 "NOT_LEADER_OR_FOLLOWER",
	ErrRecordTooLarge:                      "RECORD_TOO_LARGE_EXCEPTION",
	ErrCorruptRecord:                       "CORRUPT_RECORD_EXCEPTION",
	ErrInvalidTable:                        "INVALID_TABLE_EXCEPTION",
	ErrInvalidDatabase:                     "INVALID_DATABASE_EXCEPTION",
	ErrInvalidReplicationFactor:            "INVALID_REPLICATION_FACTOR",
	ErrInvalidRequiredAcks:                 "INVALID_REQUIRED_ACKS",
	ErrLogOffsetOutOfRange:                 "LOG_OFFSET_OUT_OF_RANGE_EXCEPTION",
	ErrNonPrimaryKeyTable:                  "NON_PRIMARY_KEY_TABLE_EXCEPTION",
	ErrUnknownTableOrBucket:                "UNKNOWN_TABLE_OR_BUCKET_EXCEPTION",
	ErrInvalidUpdateVersion:                "INVALID_UPDATE_VERSION_EXCEPTION",
	ErrInvalidCoordinator:                  "INVALID_COORDINATOR_EXCEPTION",
	ErrFencedLeaderEpoch:                   "FENCED_LEADER_EPOCH_EXCEPTION",
	ErrRequestTimeOut:                      "REQUEST_TIME_OUT",
	ErrStorage:                             "STORAGE_EXCEPTION",
	ErrOperationNotAttempted:               "OPERATION_NOT_ATTEMPTED_EXCEPTION",
	ErrNotEnoughReplicasAfterAppend:        "NOT_ENOUGH_REPLICAS_AFTER_APPEND_EXCEPTION",
	ErrNotEnoughReplicas:                   "NOT_ENOUGH_REPLICAS_EXCEPTION",
	ErrSecurityToken:                       "SECURITY_TOKEN_EXCEPTION",
	ErrOutOfOrderSequence:                  "OUT_OF_ORDER_SEQUENCE_EXCEPTION",
	ErrDuplicateSequence:                   "DUPLICATE_SEQUENCE_EXCEPTION",
	ErrUnknownWriterID:                     "UNKNOWN_WRITER_ID_EXCEPTION",
	ErrInvalidColumnProjection:             "INVALID_COLUMN_PROJECTION",
	ErrInvalidTargetColumn:                 "INVALID_TARGET_COLUMN",
	ErrPartitionNotExists:                  "PARTITION_NOT_EXISTS",
	ErrTableNotPartitioned:                 "TABLE_NOT_PARTITIONED_EXCEPTION",
	ErrInvalidTimestamp:                    "INVALID_TIMESTAMP_EXCEPTION",
	ErrInvalidConfig:                       "INVALID_CONFIG_EXCEPTION",
	ErrLakeStorageNotConfigured:            "LAKE_STORAGE_NOT_CONFIGURED_EXCEPTION",
	ErrKVSnapshotNotExist:                  "KV_SNAPSHOT_NOT_EXIST",
	ErrPartitionAlreadyExists:              "PARTITION_ALREADY_EXISTS",
	ErrPartitionSpecInvalid:                "PARTITION_SPEC_INVALID_EXCEPTION",
	ErrLeaderNotAvailable:                  "LEADER_NOT_AVAILABLE_EXCEPTION",
	ErrPartitionMaxNum:                     "PARTITION_MAX_NUM_EXCEPTION",
	ErrAuthenticate:                        "AUTHENTICATE_EXCEPTION",
	ErrSecurityDisabled:                    "SECURITY_DISABLED_EXCEPTION",
	ErrAuthorization:                       "AUTHORIZATION_EXCEPTION",
	ErrBucketMaxNum:                        "BUCKET_MAX_NUM_EXCEPTION",
	ErrFencedTieringEpoch:                  "FENCED_TIERING_EPOCH_EXCEPTION",
	ErrRetriableAuthenticate:               "RETRIABLE_AUTHENTICATE_EXCEPTION",
	ErrInvalidServerRackInfo:               "INVALID_SERVER_RACK_INFO_EXCEPTION",
	ErrLakeSnapshotNotExist:                "LAKE_SNAPSHOT_NOT_EXIST",
	ErrLakeTableAlreadyExist:               "LAKE_TABLE_ALREADY_EXIST",
	ErrIneligibleReplica:                   "INELIGIBLE_REPLICA_EXCEPTION",
	ErrInvalidAlterTable:                   "INVALID_ALTER_TABLE_EXCEPTION",
	ErrDeletionDisabled:                    "DELETION_DISABLED_EXCEPTION",
	ErrServerNotExist:                      "SERVER_NOT_EXIST_EXCEPTION",
	ErrServerTagAlreadyExist:               "SEVER_TAG_ALREADY_EXIST_EXCEPTION",
	ErrServerTagNotExist:                   "SEVER_TAG_NOT_EXIST_EXCEPTION",
	ErrRebalanceFailure:                    "REBALANCE_FAILURE_EXCEPTION",
	ErrNoRebalanceInProgress:               "NO_REBALANCE_IN_PROGRESS_EXCEPTION",
	ErrInvalidProducerID:                   "INVALID_PRODUCER_ID_EXCEPTION",
	ErrConfig:                              "CONFIG_EXCEPTION",
	ErrNotCoordinatorLeader:                "NOT_COORDINATOR_LEADER_EXCEPTION",
	ErrScannerExpired:                      "SCANNER_EXPIRED",
	ErrUnknownScannerID:                    "UNKNOWN_SCANNER_ID",
	ErrInvalidScanRequest:                  "INVALID_SCAN_REQUEST",
	ErrTooManyScanners:                     "TOO_MANY_SCANNERS",
	ErrDiskWriteLocked:                     "DISK_WRITE_LOCKED",
	ErrInsufficientKVLeaderReplicaCapacity: "INSUFFICIENT_KV_LEADER_REPLICA_CAPACITY",
	ErrStorageBackpressure:                 "STORAGE_BACKPRESSURE_EXCEPTION",
	ErrHistoricalPartitionThrottled:        "HISTORICAL_PARTITION_THROTTLED",
	ErrStaleMetadata:                       "STALE_METADATA",
	ErrNotLeader:                           "NOT_LEADER",
	ErrOutcomeUnknown:                      "OUTCOME_UNKNOWN",
	ErrCompacted:                           "COMPACTED",
	ErrRestored:                            "RESTORED",
	ErrFenced:                              "FENCED",
	ErrNoSpace:                             "NO_SPACE",
	ErrDiskStalled:                         "DISK_STALLED",
	ErrCorruptLog:                          "CORRUPT_LOG",
	ErrDiverged:                            "DIVERGED",
	ErrTooLarge:                            "TOO_LARGE",
	ErrUnknownCommand:                      "UNKNOWN_COMMAND",
	ErrUnsupportedCommandVersion:           "UNSUPPORTED_VERSION",
	ErrUnavailable:                         "UNAVAILABLE",
	ErrSessionExpired:                      "SESSION_EXPIRED",
	ErrBusy:                                "BUSY",
	ErrVersionConflict:                     "VERSION_CONFLICT",
	ErrServerIDInUse:                       "SERVER_ID_IN_USE",
	ErrClockJump:                           "CLOCK_JUMP",
	ErrAlreadyAcknowledged:                 "ALREADY_ACKNOWLEDGED",
	ErrTableImporting:                      "TABLE_IMPORTING",
	ErrInvalidArgument:                     "INVALID_ARGUMENT",
	ErrKeyNotExist:                         "KEY_NOT_EXIST",
}

// Codes returns every known code in ascending order. The slice is the caller's.
func Codes() []Code {
	return slices.Sorted(maps.Keys(codeNames))
}
