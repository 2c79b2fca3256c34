package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// view is a state to answer from, with the header of the answer.
type view struct {
	*catalog.State
	header *pb.ResponseHeader
}

// read returns the state that a caller asks for.
func (s *Server) read(ctx context.Context, want *pb.Consistency) (view, error) {
	c, err := api.ConsistencyFromProto(want)
	if err != nil {
		return view{}, err
	}
	ctx, cancel := timely(ctx)
	defer cancel()
	st, err := s.node.Read(ctx, level(c))
	if err != nil {
		return view{}, err
	}
	v := view{State: st, header: s.header(st)}
	if c.Level == api.Stale {
		v.header.AgeMs = s.age()
	}
	return v, nil
}

// consistent is a request that says which state it wants.
type consistent interface{ GetConsistency() *pb.Consistency }

// answer answers a unary read from the state that it asks for. What no state can
// answer is refused before one is waited for.
func answer[R consistent, A any](ctx context.Context, s *Server, r R, check func(R) error, from func(view, R) (A, error)) (A, error) {
	var none A
	if err := check(r); err != nil {
		return none, err
	}
	v, err := s.read(ctx, r.GetConsistency())
	if err != nil {
		return none, err
	}
	return from(v, r)
}

// timely ends a wait a little before its caller stops waiting, so that the caller
// hears what was waited for.
func timely(ctx context.Context) (context.Context, context.CancelFunc) {
	d, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, d.Add(-min(time.Until(d)/10, 200*time.Millisecond)))
}

// open is read for the beginning of a stream, which has no deadline of its own.
func (s *Server) open(ctx context.Context, want *pb.Consistency) (view, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return s.read(ctx, want)
}

func level(c api.Consistency) raftnode.Level {
	l := raftnode.Linearizable
	switch c.Level {
	case api.AtLeast:
		l = raftnode.AtLeast(c.Revision)
	case api.Stale:
		l = raftnode.Stale
	case api.Linearizable:
	}
	if !c.Incarnation.IsZero() {
		l = l.In(c.Incarnation)
	}
	return l
}

// header names a state and, as far as it is known, the leader.
func (s *Server) header(st *catalog.State) *pb.ResponseHeader {
	h := api.Header(st.Incarnation(), st.Revision())
	if id := s.node.Leader(); id != "" {
		h.Leader = &pb.LeaderHint{NodeId: id}
		if m, ok := st.Member(id); ok {
			h.Leader.Address = m.APIAddr
		}
	}
	return h
}

// apiAddr is what a node announced, empty if it did not.
func (s *Server) apiAddr(id string) string {
	st, err := s.node.Read(context.Background(), raftnode.Stale) // never waits
	if err != nil {
		return ""
	}
	m, ok := st.Member(id)
	if !ok {
		return ""
	}
	return m.APIAddr
}

// age is how long ago this node last heard of the leader, in milliseconds; nil
// if it never did.
func (s *Server) age() *uint64 {
	st := s.node.Status()
	switch {
	case st.Role == "leader":
		return proto.Uint64(0)
	case st.LastContact.IsZero():
		return nil
	}
	return proto.Uint64(uint64(max(0, time.Since(st.LastContact).Milliseconds())))
}

// checkTable refuses what names no table in any state.
func checkTable(path string, id *uint64) error {
	switch {
	case path == "" && id == nil:
		return refuse(catalog.ErrInvalidArgument, "table is empty and table_id is not set, want one of them")
	case path == "":
		return nil
	}
	_, _, err := catalog.SplitPath(path)
	return err
}

// findTable finds a table by path, by id, or by both.
func findTable(st *catalog.State, path string, id *uint64) (*catalog.Table, error) {
	if err := checkTable(path, id); err != nil {
		return nil, err
	}
	if path == "" {
		t, ok := st.TableByID(catalog.TableID(*id))
		if !ok || t.Dropped {
			return nil, refuse(catalog.ErrTableNotExist, "table with id %d does not exist", *id)
		}
		return t, nil
	}
	t, ok := st.Table(path)
	switch {
	case !ok:
		return nil, refuse(catalog.ErrTableNotExist, "table %s does not exist", path)
	case id != nil && uint64(t.ID) != *id:
		return nil, refuse(catalog.ErrTableNotExist, "table %s with id %d does not exist, its id is %d", path, *id, t.ID)
	}
	return t, nil
}
