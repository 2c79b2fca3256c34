package fsm

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Returned while decoding an entry.
var (
	// ErrCorruptEntry is returned when the bytes of an entry are not what an
	// encoder wrote: length, checksum or encoding are wrong.
	ErrCorruptEntry = errors.New("log entry is corrupt")
	// ErrUnknownKind is what every *UnknownKindError unwraps to.
	ErrUnknownKind = errors.New("log entry of an unknown kind")
)

// Returned by a machine that no longer applies.
var (
	// ErrClosed is returned by Wait after Close.
	ErrClosed = errors.New("state machine is closed")
	// ErrStopped is what every *StopError unwraps to.
	ErrStopped = errors.New("state machine stopped")
	// ErrRestoreAhead is returned by Restore when the content of a snapshot is
	// newer than its owner says.
	ErrRestoreAhead = errors.New("snapshot content is ahead of its index")
	// ErrRepeating is returned by Snapshot while raft hands over entries that the
	// state has already.
	ErrRepeating = errors.New("state machine is ahead of its raft instance")
)

// UnknownKindError is returned for an undamaged entry that a newer build wrote.
type UnknownKindError struct {
	Format  uint8
	Kind    catalog.Kind
	Version uint8
}

// Error names format, kind and version.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("%v: format %d, kind %s, version %d", ErrUnknownKind, e.Format, e.Kind, e.Version)
}

// Unwrap returns ErrUnknownKind.
func (e *UnknownKindError) Unwrap() error { return ErrUnknownKind }

// LevelError is returned for an undamaged entry of a cluster whose feature level
// is above that of this machine.
type LevelError struct{ Have, Need catalog.FeatureLevel }

// Error names both levels.
func (e *LevelError) Error() string {
	return fmt.Sprintf("the cluster is at feature level %d, this build has %d; start a build of level %d or above", e.Need, e.Have, e.Need)
}

// StopError says at which entry the machine stopped and why. It unwraps to
// ErrStopped and to the cause.
type StopError struct {
	// Index is the raft index of the entry, Kind its second byte (0 if it has
	// none).
	Index uint64
	Kind  catalog.Kind
	Cause error
}

// Error names index, kind and cause.
func (e *StopError) Error() string {
	return fmt.Sprintf("%v at index %d, kind %s: %v", ErrStopped, e.Index, e.Kind, e.Cause)
}

// Unwrap returns ErrStopped and the cause.
func (e *StopError) Unwrap() []error { return []error{ErrStopped, e.Cause} }

// PanicError is the cause of a stop when applying an entry panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }
