package catalog

import (
	"fmt"
	"strconv"
)

// Code is the stable number of a refusal: Fluss's numbers below 1000, Stave's
// own from 1000. A Code is an error by itself, so that every code is a
// sentinel: errors.Is(err, catalog.ErrTableNotExist).
type Code int32

// String returns the wire name, as TABLE_NOT_EXIST.
func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	return "CODE_" + strconv.Itoa(int(c))
}

// Error makes a Code a sentinel error.
func (c Code) Error() string { return c.String() }

// Error is a refusal: a result of a command, the same on every node. It is
// immutable once returned and unwraps to its Code.
type Error struct {
	Code Code
	// Message is one sentence that names field, value and bound.
	Message string
	// Current is the epoch or version found, for ErrVersionConflict; the id of
	// the object that is there, for ErrTableAlreadyExist and
	// ErrPartitionAlreadyExists; the epoch or incarnation that replaced the
	// caller's, for ErrFenced; the watermark, for ErrAlreadyAcknowledged.
	Current uint64
	// Limit and Size are set for ErrTooLarge and for the limits that have a
	// code of their own.
	Limit, Size uint64
}

// Error returns "CODE: sentence".
func (e *Error) Error() string { return e.Code.String() + ": " + e.Message }

// Unwrap makes errors.Is(err, code) work.
func (e *Error) Unwrap() error { return e.Code }

func refuse(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

func refuseLimit(c Code, limit, size uint64, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...), Limit: limit, Size: size}
}

// exists is the refusal of a creation that names the id of the object that is
// there, so that the loser of a race needs no second call.
func exists(c Code, id uint64, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...), Current: id}
}

func conflict(current uint64, format string, args ...any) *Error {
	return &Error{Code: ErrVersionConflict, Message: fmt.Sprintf(format, args...), Current: current}
}
