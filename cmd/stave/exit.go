package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// Exit codes.
const (
	exitDone           = 0
	exitRefused        = 1
	exitUsage          = 2
	exitUnavailable    = 3
	exitOutcomeUnknown = 4
)

// usageError is a command line or configuration that cannot be carried out.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

// report prints err and returns the exit code for it.
func (a *app) report(err error) int {
	var usage *usageError
	if errors.As(err, &usage) {
		a.printError(api.UsageErrorJSON(usage.message))
		return exitUsage
	}
	var own *localError
	if errors.As(err, &own) {
		a.printError(api.Error{Error: api.ErrorBody{Code: "LOCAL", Message: err.Error()}})
		return exitRefused
	}
	err = fault(err)
	body := api.ErrorJSON(err)
	// The code of a line's error stands behind the line.
	body.Error.Message = strings.Replace(body.Error.Message, ": "+body.Error.Code+": ", ": ", 1)
	a.printError(body)
	return exitCode(err)
}

func (a *app) printError(e api.Error) {
	if a.json() {
		_ = api.WriteJSON(a.errs, e) //nolint:errcheck // nowhere left to tell
		return
	}
	a.warn("error: %s: %s", e.Error.Code, e.Error.Message)
}

// localError is a failure of this program's own machine, such as a file that
// cannot be written: none of the cluster's codes fits it.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

func local(format string, args ...any) error {
	return &localError{err: fmt.Errorf(format, args...)}
}

// fault gives an error of a call its code: a status becomes the error it
// carries.
func fault(err error) error {
	var c catalog.Code
	var rpc *api.RPCError
	if errors.As(err, &rpc) || errors.As(err, &c) {
		return err
	}
	if st, ok := status.FromError(err); ok && st != nil {
		return api.ErrorFromStatus(st)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return api.ErrorFromStatus(status.FromContextError(err))
	}
	return err
}

// exitCode tells refusals, unavailability and unknown outcomes apart.
func exitCode(err error) int {
	switch api.CodeOf(err) {
	case catalog.ErrOutcomeUnknown:
		return exitOutcomeUnknown
	case catalog.ErrUnavailable, catalog.ErrNotLeader, catalog.ErrBusy, catalog.ErrNetwork, catalog.ErrRequestTimeOut,
		catalog.ErrDiskStalled, catalog.ErrNoSpace:
		return exitUnavailable
	default:
		return exitRefused
	}
}

// isCode reports whether err is a refusal with a code.
func isCode(err error, c catalog.Code) bool { return err != nil && errors.Is(fault(err), c) }

// oneLine makes a text fit a table cell.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(s)
}
