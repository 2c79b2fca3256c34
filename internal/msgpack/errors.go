package msgpack

import (
	"errors"
	"fmt"
)

// Returned while decoding.
var (
	// ErrTruncated is returned when the input ends inside a value, or announces
	// more elements or bytes than are left.
	ErrTruncated = errors.New("input ends early")
	// ErrType is returned when a value of another type is found, including
	// types outside the subset (floats, extensions, maps).
	ErrType = errors.New("wrong type")
	// ErrNotMinimal is returned when an integer or a length is not in its
	// shortest form.
	ErrNotMinimal = errors.New("not the shortest form")
	// ErrTrailing is returned by Finish when bytes are left over.
	ErrTrailing = errors.New("trailing bytes")
)

// Returned in both directions.
var (
	// ErrRange is returned when a number does not fit the Go type, or a length
	// is outside its bounds.
	ErrRange = errors.New("out of range")
	// ErrInvalidUTF8 is returned when a string is not valid UTF-8.
	ErrInvalidUTF8 = errors.New("invalid UTF-8")
	// ErrIncomplete is returned by Finish when an array or record announced
	// more elements than followed.
	ErrIncomplete = errors.New("missing elements")
	// ErrNestedNil is returned when the value of an Optional is itself nil,
	// which could not be told from an unset one.
	ErrNestedNil = errors.New("optional value encodes as nil")
)

// Error is the type of every error of a Codec. It unwraps to one of the
// sentinels of this package or to the error handed to Fail.
type Error struct {
	// Offset of the value at fault, in bytes from where the codec began.
	Offset int
	// Want says what was expected there, Got what was found.
	Want, Got string
	// Err is the kind of fault.
	Err error
}

// Error names the offset, the expectation and the finding.
func (e *Error) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("msgpack offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("msgpack offset %d: %v: want %s, got %s", e.Offset, e.Err, e.Want, e.Got)
}

// Unwrap returns the kind of fault.
func (e *Error) Unwrap() error { return e.Err }

// formatName describes the value that starts with byte b.
func formatName(b byte) string {
	switch {
	case b <= 0x7f, b >= 0xe0, b >= 0xcc && b <= 0xd3:
		return "integer"
	case b <= 0x8f, b == 0xde, b == 0xdf:
		return "map"
	case b <= 0x9f, b == fmtArray16, b == fmtArray32:
		return "array"
	case b <= 0xbf, b >= fmtStr8 && b <= fmtStr32:
		return "string"
	case b == fmtNil:
		return "nil"
	case b == fmtFalse, b == fmtTrue:
		return "bool"
	case b >= fmtBin8 && b <= fmtBin32:
		return "bytes"
	case b == 0xca, b == 0xcb:
		return "float"
	case b == 0xc1:
		return "reserved byte c1"
	default:
		return "extension"
	}
}
