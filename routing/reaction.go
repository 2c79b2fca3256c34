package routing

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Returned when a request may not be sent again.
var (
	// ErrSameRoute is returned for a second attempt that would repeat a refused route.
	ErrSameRoute = errors.New("routing: the new route is the refused one")
	// ErrAttempts is returned when a request was refused as often as it may be.
	ErrAttempts = errors.New("routing: out of attempts")
)

// Reaction says what a client does about the code that a request for one bucket was answered with.
type Reaction struct {
	// Fail hands the error to the caller at once; the rows are routed anew or not at all.
	Fail bool
	// Retry sends the same request again. With Refresh it does so only if AfterRefresh allows.
	Retry bool
	// Refresh reads the layout of the partition again first.
	Refresh bool
	// DropPartition forgets layout and assigner of the partition, DropTable those of the whole table.
	DropPartition, DropTable bool
}

// React returns the reaction to a code:
//
//	Done                                    nothing
//	STALE_METADATA, PARTITION_NOT_EXISTS    Fail, DropPartition
//	TABLE_NOT_EXIST                         Fail, DropTable
//	1, 12, 21, 44                           Refresh, Retry
//	other codes that pass by themselves     Retry
//	everything else                         Fail
//
// A stale route is never retried: it names a bucket that is another one by the partition's own count.
func React(c catalog.Code) Reaction {
	switch c {
	case catalog.Done:
		return Reaction{}
	case catalog.ErrStaleMetadata, catalog.ErrPartitionNotExists:
		return Reaction{Fail: true, DropPartition: true}
	case catalog.ErrTableNotExist:
		return Reaction{Fail: true, DropTable: true}
	case catalog.ErrNetwork, catalog.ErrNotLeaderOrFollower, catalog.ErrUnknownTableOrBucket, catalog.ErrLeaderNotAvailable:
		return Reaction{Refresh: true, Retry: true}
	case catalog.ErrCorruptMessage, catalog.ErrSchemaNotExist, catalog.ErrLogStorage, catalog.ErrKVStorage,
		catalog.ErrCorruptRecord, catalog.ErrRequestTimeOut, catalog.ErrStorage,
		catalog.ErrNotEnoughReplicasAfterAppend, catalog.ErrNotEnoughReplicas, catalog.ErrDiskWriteLocked,
		catalog.ErrStorageBackpressure, catalog.ErrHistoricalPartitionThrottled:
		return Reaction{Retry: true}
	default:
		return Reaction{Fail: true}
	}
}

// AfterRefresh decides whether a request may be sent again once its layout was read again: nil if so. attempt counts
// the attempts made, from 1; limit is how many there may be, at least 1.
//
// A count that was too large names a bucket that does not exist, which servers answer like a bucket that is not there
// yet; so every refresh compares. Errors: *StaleError if the partition has another count than the pinned one;
// catalog.ErrTableNotExist or catalog.ErrPartitionNotExists if it is another table, or the partition is gone;
// catalog.ErrStaleMetadata if its count is not known; ErrAttempts.
func AfterRefresh(pinned Route, fresh *Layout, attempt, limit int) error {
	b := pinned.TableBucket()
	if fresh.incarnation != pinned.Incarnation || fresh.table.ID != pinned.Table {
		return &catalog.Error{Code: catalog.ErrTableNotExist, Message: b.String() + " is not one of table " + fresh.table.Path + " any more"}
	}
	p, ok := fresh.PartitionByID(pinned.Partition)
	switch {
	case !ok:
		return &catalog.Error{Code: catalog.ErrPartitionNotExists, Message: b.String() + " is not one of table " + fresh.table.Path + " any more"}
	case p.Err != nil:
		return p.Err
	case p.Count != pinned.Count:
		return &StaleError{
			Incarnation: fresh.incarnation, Revision: p.Revision, Bucket: b, Table: fresh.table.Path, Partition: p.Name,
			Sent: pinned.Count, Count: p.Count, Epoch: fresh.table.Epoch,
		}
	case attempt >= limit:
		return fmt.Errorf("%w: %s after %d", ErrAttempts, b, attempt)
	}
	return nil
}

// CheckReroute refuses a route that repeats a stale one: the same partition id with the same count gives the same bucket
// and the same refusal. The error is ErrSameRoute.
func CheckReroute(stale, next Route) error {
	if stale.Incarnation == next.Incarnation && stale.Table == next.Table && stale.Partition == next.Partition && stale.Count == next.Count {
		return fmt.Errorf("%w: %s with %d buckets", ErrSameRoute, next.TableBucket(), next.Count)
	}
	return nil
}
