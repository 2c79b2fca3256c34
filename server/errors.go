package server

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
	"github.com/stavedb/stave/watch"
)

// refuse is the refusal of a request that says what is wrong with it.
func refuse(code catalog.Code, format string, args ...any) error {
	return &catalog.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// closingError ends streams of a server that closes.
func closingError() error { return refuse(catalog.ErrUnavailable, "this node is being closed") }

// public turns an error of the node or the history into the one that callers
// get: with a leader's address, and always with a code.
func (s *Server) public(err error) error {
	var (
		notLeader *raftnode.NotLeaderError
		restored  *raftnode.RestoredError
		compacted *watch.CompactedError
		slow      *watch.SlowError
		replaced  *watch.RestoredError
		code      catalog.Code
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrOutcomeUnknown):
		return err
	case errors.As(err, &notLeader):
		return s.notLeader(notLeader)
	case errors.As(err, &restored):
		return &api.RestoredError{Incarnation: restored.Current}
	case errors.As(err, &replaced):
		return &api.RestoredError{Incarnation: replaced.Incarnation}
	case errors.As(err, &slow):
		return refuse(catalog.ErrBusy, "the watch reads too slowly: resume from revision %d", slow.Last)
	case errors.As(err, &compacted):
		return &api.CompactedError{Oldest: startable(compacted.Oldest)}
	case errors.As(err, &code), isForeign(err):
		return err
	case errors.Is(err, raftnode.ErrClosed), errors.Is(err, watch.ErrClosed), s.node.Err() != nil:
		return refuse(catalog.ErrUnavailable, "this node has ended: %s", err)
	}
	return err
}

// startable is the lowest revision a watch can start from when the first one
// that can be delivered is known: the start is exclusive.
func startable(oldest catalog.Revision) catalog.Revision {
	if oldest == 0 {
		return 0
	}
	return oldest - 1
}

// isForeign reports whether an error has a status of its own.
func isForeign(err error) bool {
	var st interface{ GRPCStatus() *status.Status }
	return errors.As(err, &st) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (s *Server) notLeader(e *raftnode.NotLeaderError) error {
	out := &api.NotLeaderError{Leader: e.Leader, Addr: e.APIAddr}
	if out.Leader == "" {
		if id := s.node.Leader(); id != s.id {
			out.Leader = id
		}
	}
	if out.Leader != "" && out.Addr == "" {
		out.Addr = s.apiAddr(out.Leader)
	}
	return out
}
