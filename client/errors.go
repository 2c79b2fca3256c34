package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// ErrClosed is returned by calls on a client or watcher that was closed. It
// comes together with catalog.ErrUnavailable or catalog.ErrOutcomeUnknown, which
// tell whether a write may have been executed.
var ErrClosed = errors.New("the client is closed")

// CallError is the end of a call that was tried and not answered. It unwraps to
// the code that describes it, to the context's error if that ended it, and to
// the last answer.
type CallError struct {
	// Method is the full gRPC method, or the name of a command.
	Method string
	// Code is catalog.ErrOutcomeUnknown for a write that may have been executed,
	// catalog.ErrUnavailable if no node answered, else the code of the last answer.
	Code catalog.Code
	// Attempts counts the tries, Addresses where they went, in order of first use.
	Attempts  int
	Addresses []string
	// Client and Sequence identify a write of a registered client, for
	// Client.Outcome; 0 otherwise.
	Client   catalog.ClientID
	Sequence uint64
	// Last is the last answer or failure; nil if there was none.
	Last error
	// Answers are the last answer or failure of each address that gave one, in
	// order of first use.
	Answers []AddressError
	// Cause is why the call ended: a context's error, ErrClosed, or nil.
	Cause error
}

// Error tells the code, what was tried and what was last heard.
func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Code, e.Method)
	switch {
	case e.Code == catalog.ErrOutcomeUnknown:
		b.WriteString(" may or may not have been executed")
	case e.Attempts == 0:
		b.WriteString(" was not sent")
	default:
		b.WriteString(" was not answered")
	}
	fmt.Fprintf(&b, " after %d attempts", e.Attempts)
	if len(e.Addresses) > 0 {
		fmt.Fprintf(&b, " at %s", strings.Join(e.Addresses, ", "))
	}
	if e.Sequence != 0 {
		fmt.Fprintf(&b, " (client %d, sequence %d)", e.Client, e.Sequence)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %s", e.Cause)
	}
	if e.Last != nil {
		fmt.Fprintf(&b, "; last: %s", e.Last)
	}
	for _, a := range e.Answers {
		if e.Last == nil || a.Err.Error() != e.Last.Error() {
			fmt.Fprintf(&b, "; %s said: %s", a.Addr, a.Err)
		}
	}
	return b.String()
}

// Unwrap returns the errors that errors.Is finds, the code first.
func (e *CallError) Unwrap() []error {
	out := []error{e.Code}
	if e.Cause != nil {
		out = append(out, e.Cause)
	}
	// The last answer must not add a second meaning to a write of unknown fate.
	if e.Last != nil && e.Code != catalog.ErrOutcomeUnknown {
		out = append(out, e.Last)
	}
	return out
}

// AddressError is what was last heard from one address.
type AddressError struct {
	Addr string
	Err  error
}

// trace collects what a call tried.
type trace struct {
	method   string
	attempts int
	addrs    []string
	at       string // of the last attempt
	last     error
	answers  []AddressError
	// heard, if there is one, is told every answer that made a call go on.
	heard func(error)
}

// answer notes what the last attempt came to.
func (t *trace) answer(err error) {
	t.last = err
	if t.at == "" {
		return // no node was asked
	}
	i := slices.IndexFunc(t.answers, func(a AddressError) bool { return a.Addr == t.at })
	if i < 0 {
		t.answers = append(t.answers, AddressError{Addr: t.at, Err: err})
	} else {
		t.answers[i].Err = err
	}
	if t.heard != nil {
		t.heard(fmt.Errorf("%s: %w", t.at, err))
	}
}

func (t *trace) attempt(addr string) {
	t.attempts++
	t.at = addr
	for _, a := range t.addrs {
		if a == addr {
			return
		}
	}
	t.addrs = append(t.addrs, addr)
}

// fail makes the final error of a call that changed nothing.
func (t *trace) fail(cause error) error {
	e := &CallError{Method: t.method, Code: catalog.ErrUnavailable, Attempts: t.attempts, Addresses: slices.Clone(t.addrs), Last: t.last, Answers: slices.Clone(t.answers), Cause: cause}
	var rpc *api.RPCError
	if t.last != nil && !errors.As(t.last, &rpc) {
		if code := api.CodeOf(t.last); code != catalog.ErrUnknownServerError && code != catalog.ErrOutcomeUnknown {
			e.Code = code
		}
	}
	return e
}

// unknown makes the final error of a write that may have been executed.
func (t *trace) unknown(tk ticket, cause error) error {
	return &CallError{
		Method: t.method, Code: catalog.ErrOutcomeUnknown, Attempts: t.attempts, Addresses: slices.Clone(t.addrs), Last: t.last, Answers: slices.Clone(t.answers), Cause: cause,
		Client: tk.client(), Sequence: tk.seq,
	}
}
