package raftnet

import (
	"errors"
	"fmt"
)

// Errors of connections.
var (
	// ErrClosed is returned by everything that was closed by its owner.
	ErrClosed = errors.New("raftnet: closed")
	// ErrUnknownNode is returned when the Resolver has no address for a node.
	ErrUnknownNode = errors.New("raftnet: unknown node")
	// ErrStalled is returned when a connection carried no byte for five seconds
	// in the middle of a message. The connection is of no further use.
	ErrStalled = errors.New("raftnet: no byte for too long inside a message")
	// ErrMalformed is returned when what was received is not a frame of this
	// protocol, or not one that may stand there.
	ErrMalformed = errors.New("raftnet: malformed frame")
	// ErrTooLarge is returned when a message exceeds its bound; nothing of it
	// was sent, or it was not read to its end.
	ErrTooLarge = errors.New("raftnet: message too large")
	// ErrRefused is matched by every *RefusedError.
	ErrRefused = errors.New("raftnet: connection refused by handshake")
)

// Errors of calls.
var (
	// ErrGated is returned for every raft message that the closed gate held
	// back. Nothing of it left the node, or it was cut off half way.
	ErrGated = errors.New("raftnet: gate is closed")
	// ErrNoCandidate is returned for requests for votes of a node that must not
	// stand for election, and for the call to start one.
	ErrNoCandidate = errors.New("raftnet: node is no candidate")
	// ErrPeerUnavailable is matched by every *PeerError.
	ErrPeerUnavailable = errors.New("raftnet: peer unavailable")
)

// RefusedError says why a handshake failed, on either side of it.
type RefusedError struct {
	Code   Code   // which rule
	Reason string // a sentence for a human, naming both values
	Node   string // the other node as it named itself; may be empty
}

// Error names the other node and its reason.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("handshake with %q refused (%s): %s", e.Node, e.Code, e.Reason)
}

// Unwrap returns ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// PeerError is a call that got no answer. It matches ErrPeerUnavailable and
// its cause, which may be the end of the caller's context.
type PeerError struct {
	Node string
	// MaybeSent is false only if no byte of the request was handed to the
	// network, so that the other node cannot have acted on it.
	MaybeSent bool
	Err       error
}

// Error names the node, the cause and whether the request may have arrived.
func (e *PeerError) Error() string {
	sent := "not sent"
	if e.MaybeSent {
		sent = "maybe sent"
	}
	return fmt.Sprintf("peer %q unavailable, request %s: %v", e.Node, sent, e.Err)
}

// Unwrap returns ErrPeerUnavailable and the cause.
func (e *PeerError) Unwrap() []error { return []error{ErrPeerUnavailable, e.Err} }

// RemoteError is an answer that says the request was not carried out normally.
type RemoteError struct {
	Node    string
	Status  Status
	Message string
}

// Error names the node and what it said.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("peer %q: %s: %s", e.Node, e.Status, e.Message)
}
