package watch

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// ErrClosed is returned by Next and Subscribe when the subscription or the
// history was closed.
var ErrClosed = errors.New("watch: closed")

// CompactedError is returned when the history no longer holds everything after
// the position asked for or reached. The caller reads a state and follows from
// its revision. It unwraps to catalog.ErrCompacted.
type CompactedError struct {
	// Oldest is the first revision that can still be delivered: From may be
	// Oldest-1 or more.
	Oldest catalog.Revision
}

// Error names the oldest revision kept.
func (e *CompactedError) Error() string {
	return fmt.Sprintf("%s: the oldest revision kept is %d", catalog.ErrCompacted, e.Oldest)
}

// Unwrap returns catalog.ErrCompacted.
func (e *CompactedError) Unwrap() error { return catalog.ErrCompacted }

// SlowError is returned when a reader fell out of the history, and by
// Subscription.Err when it is too many bytes behind. Nothing after Last was delivered or
// skipped: if Last >= Oldest-1 a new subscription From Last goes on without a
// gap, else the caller reads a state. It unwraps to catalog.ErrCompacted.
type SlowError struct {
	// Last is the last revision up to which everything was told.
	Last catalog.Revision
	// Oldest is the first revision that can still be delivered.
	Oldest catalog.Revision
}

// Error names the position of the reader and the oldest revision kept.
func (e *SlowError) Error() string {
	return fmt.Sprintf("%s: the reader is too slow, at revision %d; the oldest revision kept is %d",
		catalog.ErrCompacted, e.Last, e.Oldest)
}

// Unwrap returns catalog.ErrCompacted.
func (e *SlowError) Unwrap() error { return catalog.ErrCompacted }

// RestoredError is returned when the history a subscription follows or names
// is not the current one. It unwraps to catalog.ErrRestored.
type RestoredError struct {
	// Incarnation is the current history.
	Incarnation catalog.Incarnation
}

// Error names the current incarnation.
func (e *RestoredError) Error() string {
	return fmt.Sprintf("%s: the current incarnation is %s", catalog.ErrRestored, e.Incarnation)
}

// Unwrap returns catalog.ErrRestored.
func (e *RestoredError) Unwrap() error { return catalog.ErrRestored }
