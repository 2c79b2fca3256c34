package raftlog

import (
	"errors"
	"fmt"
)

// Errors of Open.
var (
	// ErrLocked is returned when another process (or another Stores of this
	// one) holds the directory. It comes within one second.
	ErrLocked = errors.New("log directory is in use")
	// ErrLost is returned when a file that held, or may have held, acknowledged
	// entries, the term or the vote is gone. Nothing was changed.
	ErrLost = errors.New("a file that raft wrote is gone")
	// ErrSnapshotGap is returned by AlignWithSnapshot when entries between
	// the newest snapshot and the first stored entry are missing. Nothing
	// was changed; raft must not be started on such a log.
	ErrSnapshotGap = errors.New("entries between snapshot and log are missing")
)

// Errors that can occur at any time.
var (
	// ErrCorruptLog is matched by every CorruptError: bytes on disk are not
	// what was written. The files are left as they are.
	ErrCorruptLog = errors.New("log is corrupt")
	// ErrClosed is returned by calls that begin or wait after Close.
	ErrClosed = errors.New("log stores are closed")
	// ErrStillWriting is returned by Close when a hanging write kept it from
	// closing the files. They are closed, and their locks dropped, when that
	// write comes back.
	ErrStillWriting = errors.New("a write still hangs")
)

// Refusals: the caller broke the contract of the store, nothing was written.
var (
	// ErrGap is returned for entries that do not follow the last stored one.
	ErrGap = errors.New("entries do not follow the log")
	// ErrTooLarge is returned for an entry above 32 MiB.
	ErrTooLarge = errors.New("entry is too large for the log")
	// ErrMiddle is returned for a deletion that is neither a prefix nor a
	// suffix of the log.
	ErrMiddle = errors.New("only a prefix or a suffix of the log can be deleted")
)

// CorruptError says which bytes are damaged. It unwraps to ErrCorruptLog and
// to Err.
type CorruptError struct {
	// Kind is the store the damage was found in.
	Kind Kind
	// Index is the log index of the entry, 0 when the damage is not in one
	// known entry.
	Index uint64
	// File and Offset name the place when the damage was found in a file
	// rather than in an entry; File is empty otherwise.
	File   string
	Offset int64
	// Err is what was found; never nil.
	Err error
}

// Error names the store and the place.
func (e *CorruptError) Error() string {
	if e.File != "" {
		return fmt.Sprintf("%s: %s at offset %d: %v", ErrCorruptLog, e.File, e.Offset, e.Err)
	}
	if e.Index == 0 {
		return fmt.Sprintf("%s: %s: %v", ErrCorruptLog, e.Kind, e.Err)
	}
	return fmt.Sprintf("%s: %s entry %d: %v", ErrCorruptLog, e.Kind, e.Index, e.Err)
}

// Unwrap returns ErrCorruptLog and the cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorruptLog, e.Err} }

// refused reports whether err is a broken contract, which no retry can cure.
func refused(err error) bool {
	return errors.Is(err, ErrGap) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrMiddle)
}
