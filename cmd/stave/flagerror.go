package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"
)

// flagRanges are the bounds of the numbers that flags take, by pflag's types.
var flagRanges = map[string]string{
	"int":    fmt.Sprintf("a whole number from %d to %d", math.MinInt, math.MaxInt),
	"int32":  fmt.Sprintf("a whole number from %d to %d", math.MinInt32, math.MaxInt32),
	"int64":  fmt.Sprintf("a whole number from %d to %d", math.MinInt64, math.MaxInt64),
	"uint32": fmt.Sprintf("a whole number from 0 to %d", math.MaxUint32),
	"uint64": fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)),
	"bool":   "true or false",
}

// flagError says what a flag wants when it was given something else.
func flagError(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	f := invalid.GetFlag()
	want, ok := flagRanges[f.Value.Type()]
	switch {
	case f.Value.Type() == "duration":
		want = "a duration as 10s, 1m30s or 500ms"
	case ok && (errors.Is(err, strconv.ErrRange) || errors.Is(err, strconv.ErrSyntax)):
	default:
		return err.Error()
	}
	return fmt.Sprintf("--%s is %q, want %s", f.Name, invalid.GetValue(), want)
}
