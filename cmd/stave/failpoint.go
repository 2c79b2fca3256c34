//go:build stave_failpoints

package main

import (
	"os"
	"strconv"
	"strings"

	"github.com/stavedb/stave/internal/failpoint"
)

// STAVE_FAILPOINT=NAME:N kills this program at the Nth time it reaches a step.
var _ = func() bool {
	name, nth, ok := strings.Cut(os.Getenv("STAVE_FAILPOINT"), ":")
	n, err := strconv.ParseInt(nth, 10, 64)
	if ok && err == nil {
		failpoint.Arm(name, n)
	}
	return ok
}()
