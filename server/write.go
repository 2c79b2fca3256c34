package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// written is a write that was carried out, with a state that holds it.
type written struct {
	view
	cmd    catalog.Command
	result *pb.Result
	ids    []catalog.IDRange
}

// write submits the command of a unary call once. A refusal is the error.
func (s *Server) write(ctx context.Context, req api.Request) (written, error) {
	cmd, ref, err := api.CommandFromRequest(req)
	if err != nil {
		return written{}, err
	}
	return s.submit(ctx, envelope(ref), cmd)
}

func envelope(r api.Ref) catalog.Envelope {
	return catalog.Envelope{Client: r.Client, Sequence: r.Sequence, Ack: r.Ack}
}

// submit submits a command once and reads the state it made, or a later one.
func (s *Server) submit(ctx context.Context, env catalog.Envelope, cmd catalog.Command) (written, error) {
	res, err := s.node.Submit(ctx, env, cmd)
	if err != nil {
		return written{}, s.fresh(ctx, cmd, res, err)
	}
	v, err := s.after(ctx, res.Revision)
	if err != nil {
		return written{}, fmt.Errorf("%s took effect at revision %d, which this node does not have: %w: %w", cmd.Kind(), res.Revision, catalog.ErrOutcomeUnknown, err)
	}
	return written{view: v, cmd: cmd, result: api.ResultToProto(&res), ids: res.IDs}, nil
}

// after returns a state at or above a revision.
func (s *Server) after(ctx context.Context, rev catalog.Revision) (view, error) {
	st, err := s.node.Read(ctx, raftnode.AtLeast(rev))
	if err != nil {
		return view{}, err
	}
	return view{State: st, header: s.header(st)}, nil
}

// fresh adds to STALE_METADATA the layout that holds now, so that the caller
// needs no second call. Other errors stay as they are.
func (s *Server) fresh(ctx context.Context, cmd catalog.Command, res catalog.Result, err error) error {
	var refusal *catalog.Error
	if !errors.As(err, &refusal) || refusal.Code != catalog.ErrStaleMetadata {
		return err
	}
	c, ok := cmd.(catalog.CreatePartitions)
	if !ok {
		return err
	}
	v, rerr := s.after(ctx, res.Revision)
	if rerr != nil {
		return err
	}
	t, found := v.Table(c.Table)
	if !found {
		return err
	}
	return &api.StaleMetadataError{Layout: tableLayout(v.State, t), Message: refusal.Message}
}

// tableLayout is the layout of a table as a whole.
func tableLayout(st *catalog.State, t *catalog.Table) api.Layout {
	return api.Layout{
		Incarnation: st.Incarnation(), Revision: st.Revision(), TableID: t.ID, Table: t.Path, Buckets: t.Buckets, Epoch: t.Epoch,
	}
}

// done is the answer to a write that gives back no object.
func (w written) done() *pb.WriteResponse {
	return &pb.WriteResponse{Header: w.header, Result: w.result}
}

// firstID is the first id of the result, or false.
func (w written) firstID() (uint64, bool) {
	if len(w.ids) == 0 {
		return 0, false
	}
	return w.ids[0].First, true
}

// plainWrite answers a write that gives back no object.
func (s *Server) plainWrite(ctx context.Context, req api.Request) (*pb.WriteResponse, error) {
	w, err := s.write(ctx, req)
	if err != nil {
		return nil, err
	}
	return w.done(), nil
}
