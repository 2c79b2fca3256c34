package snapshots

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Returned while reading.
var (
	// ErrCorrupt is what every *CorruptError unwraps to: a byte is not what the
	// writer wrote, or the rows break a rule of the catalog.
	ErrCorrupt = errors.New("snapshot is corrupt")
	// ErrTruncated is what a *CorruptError unwraps to as well when the input
	// ends before the trailer is complete.
	ErrTruncated = errors.New("snapshot ends early")
	// ErrLevel is what every *LevelError unwraps to.
	ErrLevel = errors.New("snapshot needs a newer build")
)

// CorruptError says where a snapshot is damaged. It unwraps to ErrCorrupt, or
// to ErrTruncated, and to its cause.
type CorruptError struct {
	// Offset is the first byte of the block, head or trailer at fault.
	Offset int64
	// Reason names what was expected.
	Reason string
	// Err is the cause, or nil.
	Err error
	// Truncated says that the input ended.
	Truncated bool
}

// Error names offset and reason.
func (e *CorruptError) Error() string {
	text := fmt.Sprintf("%v at offset %d: %s", e.kind(), e.Offset, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *CorruptError) kind() error {
	if e.Truncated {
		return ErrTruncated
	}
	return ErrCorrupt
}

// Unwrap returns the sentinel and the cause.
func (e *CorruptError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.kind()}
	}
	return []error{e.kind(), e.Err}
}

// LevelError is returned for an undamaged snapshot that this build must not
// read: its format version or its cluster's feature level is too high.
type LevelError struct {
	// Have is the highest level the reader accepts, Need the snapshot's.
	Have, Need catalog.FeatureLevel
	// Version is the format version of the snapshot.
	Version uint8
}

// Error names both levels.
func (e *LevelError) Error() string {
	return fmt.Sprintf("%v: format version %d at feature level %d, this build reads version %d up to level %d",
		ErrLevel, e.Version, e.Need, Version, e.Have)
}

// Unwrap returns ErrLevel.
func (e *LevelError) Unwrap() error { return ErrLevel }
