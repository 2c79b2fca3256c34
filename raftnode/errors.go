package raftnode

import (
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// Errors of Open.
var (
	// ErrDirInUse is returned when another process runs on the directory.
	ErrDirInUse = errors.New("data directory is in use")
	// ErrForeignDir is returned for the directory of another node or cluster.
	ErrForeignDir = errors.New("data directory belongs to another node or cluster")
	// ErrForgotten is returned when the cluster knows this node as a voter with
	// another directory: a voter that forgot what it acknowledged loses data.
	ErrForgotten = errors.New("the cluster knows this node with another data directory")
	// ErrOldBuild is returned when the cluster uses a feature level that this build
	// does not have.
	ErrOldBuild = errors.New("build is too old for the cluster")
	// ErrCorrupt is returned when what is on disk is not what was written.
	ErrCorrupt = errors.New("data directory is corrupt")
)

// Errors of a running node.
var (
	// ErrDirGone is what Err unwraps to when the data directory was removed or
	// replaced while the node ran.
	ErrDirGone = errors.New("data directory is gone")
	// ErrClosed is returned by everything after Close, and by Err.
	ErrClosed = errors.New("node is closed")
	// ErrNotLeader is catalog.ErrNotLeader: this node does not lead, and the
	// command never entered the log. NotLeaderError carries the leader.
	ErrNotLeader = catalog.ErrNotLeader
	// ErrOutcomeUnknown is catalog.ErrOutcomeUnknown: a command may or may not
	// take effect.
	ErrOutcomeUnknown = catalog.ErrOutcomeUnknown
	// ErrUnavailable is catalog.ErrUnavailable: no leader or no quorum answered
	// in time; nothing was changed.
	ErrUnavailable = catalog.ErrUnavailable
	// ErrBusy is catalog.ErrBusy: a bounded queue is full; nothing was changed.
	ErrBusy = catalog.ErrBusy
)

// NotLeaderError says who leads, as far as the node knows. It unwraps to
// ErrNotLeader.
type NotLeaderError struct {
	// Leader is the node id, APIAddr its advertised API address; empty: unknown.
	Leader, APIAddr string
}

// Error names the leader.
func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return "NOT_LEADER: no leader is known"
	}
	return fmt.Sprintf("NOT_LEADER: %s leads", e.Leader)
}

// Unwrap returns ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return ErrNotLeader }

// RestoredError says that the incarnation a caller named is over. It unwraps to
// catalog.ErrRestored.
type RestoredError struct{ Current catalog.Incarnation }

// Error names the current incarnation.
func (e *RestoredError) Error() string {
	return "RESTORED: the cluster's incarnation is " + e.Current.String()
}

// Unwrap returns catalog.ErrRestored.
func (e *RestoredError) Unwrap() error { return catalog.ErrRestored }

func unavailable(format string, args ...any) error {
	return &catalog.Error{Code: catalog.ErrUnavailable, Message: fmt.Sprintf(format, args...)}
}

func outcomeUnknown(what string, cause error) error {
	return fmt.Errorf("%s: %w: %w", what, ErrOutcomeUnknown, cause)
}
