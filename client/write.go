package client

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// write sends one unary write under a sequence of the client's own.
func (c *Client) write(ctx context.Context, method string, req api.Request, reply proto.Message, opts []grpc.CallOption) error {
	if req.GetClient().GetClientId() != 0 { // the caller keeps sequences of its own
		a := attempts{c: c, tr: trace{method: method}, r: route{c: c, leader: true}}
		ref := req.GetClient()
		err, _ := a.run(ctx, func() proto.Message { return withRef(req, ref) }, reply, opts, ticket{})
		return err
	}
	if !c.cfg.sessions {
		return c.onceOnly(ctx, method, req, reply, opts)
	}
	tr := trace{method: method}
	for {
		t, err := c.session.begin(ctx)
		if err != nil {
			return c.notBegun(ctx, tr, err)
		}
		a := attempts{c: c, tr: tr, r: route{c: c, leader: true}}
		err, again := a.run(ctx, func() proto.Message { return withRef(req, t.ref()) }, reply, opts, t)
		if !again {
			if errors.Is(err, catalog.ErrOutcomeUnknown) && !t.lost() {
				c.chase(req, t)
			}
			return err
		}
		tr = a.tr
	}
}

// notBegun ends a write that got no sequence.
func (c *Client) notBegun(ctx context.Context, tr trace, err error) error {
	var refusal *catalog.Error
	var call *CallError
	switch {
	case errors.As(err, &call):
		return err
	case errors.As(err, &refusal) && !errors.Is(err, catalog.ErrBusy):
		return err
	case errors.Is(err, ErrClosed):
		return tr.fail(ErrClosed)
	}
	tr.answer(err)
	return tr.fail(c.closedCause(ctx))
}

// attempts is one sequence on its way to an answer.
type attempts struct {
	c  *Client
	tr trace
	r  route
	// sent says that a copy may have been executed, or may still be.
	sent bool
}

// run repeats a write until its outcome is known or ctx ends. again says that
// the registration is gone and the write was never executed under it, so that it
// may begin anew.
func (a *attempts) run(ctx context.Context, msg func() proto.Message, reply proto.Message, opts []grpc.CallOption, t ticket) (err error, again bool) { //nolint:revive,staticcheck // the error decides first
	unexpected := 0
	for {
		l, err := a.r.next(ctx)
		if err != nil {
			return a.end(ctx, t, err), false
		}
		if t.lost() {
			return a.lost(t, nil)
		}
		a.tr.attempt(l.addr)
		err = a.c.try(ctx, l, a.tr.method, msg(), reply, opts)
		s := judge(ctx, err)
		if err != nil && s != stepDone {
			a.tr.answer(err)
		}
		switch s {
		case stepDone:
			if err != nil && a.sent && neverRan(err) {
				return a.end(ctx, t, err), false
			}
			t.settle()
			return err, false
		case stepLost:
			return a.lost(t, err)
		case stepRestored:
			a.sent = true
			return a.lost(t, err)
		case stepUnclear, stepBroken:
			a.sent = true
			if unclassified(err) && s == stepUnclear {
				if unexpected++; unexpected == maxUnexpected {
					return a.tr.unknown(t, nil), false
				}
			}
		case stepAgain, stepElsewhere: // not executed: the same sequence goes out again
		}
		if !a.r.after(ctx, l, s) || a.c.pool.ctx.Err() != nil {
			return a.end(ctx, t, nil), false
		}
	}
}

// neverRan reports whether an error came from below the handlers, so that it
// says nothing about copies sent before.
func neverRan(err error) bool {
	var rpc *api.RPCError
	return errors.As(err, &rpc)
}

// end is the error of a write that time or the client left.
func (a *attempts) end(ctx context.Context, t ticket, err error) error {
	if a.tr.last == nil {
		a.tr.answer(err)
	}
	cause := a.c.closedCause(ctx)
	if a.sent {
		return a.tr.unknown(t, cause)
	}
	t.settle()
	return a.tr.fail(cause)
}

// lost ends a write whose registration is gone.
func (a *attempts) lost(t ticket, err error) (error, bool) { //nolint:revive,staticcheck // the error decides first
	if t.reg == nil {
		if a.sent {
			return a.tr.unknown(t, nil), false
		}
		return err, false
	}
	a.c.session.drop(t.reg)
	if a.sent {
		return a.tr.unknown(t, nil), false
	}
	return nil, true
}

// chase asks for the outcome of a write whose caller gave up, until it is known:
// only then may the watermark pass its sequence.
func (c *Client) chase(req api.Request, t ticket) {
	c.results.open(t)
	c.spawn(func(ctx context.Context) {
		res, err := c.unaryUnder(ctx, req, t, true)
		if errors.Is(err, catalog.ErrOutcomeUnknown) {
			c.results.lose(t)
		} else {
			c.results.close(t, res)
		}
	})
}

type resulted interface{ GetResult() *pb.Result }

// resultOf is what the answer to a write says about the command.
func resultOf(reply proto.Message, err error) catalog.Result {
	if r, ok := reply.(resulted); ok && err == nil {
		return api.ResultFromProto(r.GetResult())
	}
	var refusal *catalog.Error
	if errors.As(err, &refusal) {
		return catalog.Result{
			Code: refusal.Code, Message: refusal.Message, Current: refusal.Current, Limit: refusal.Limit, Size: refusal.Size,
		}
	}
	return catalog.Result{Code: api.CodeOf(err)}
}

// unaryUnder sends a command as a call of its own, under a sequence it may have
// already, until its outcome is known, its registration is gone, or the client is
// closed.
func (c *Client) unaryUnder(ctx context.Context, req api.Request, t ticket, sent bool) (catalog.Result, error) {
	method, reply, err := unaryOf(req)
	if err != nil {
		t.settle()
		return catalog.Result{}, err
	}
	for {
		if t.reg == nil {
			if t, err = c.session.begin(ctx); err != nil {
				return catalog.Result{}, c.notBegun(ctx, trace{method: method}, err)
			}
		}
		a := attempts{c: c, tr: trace{method: method}, r: route{c: c, leader: true}, sent: sent}
		err, again := a.run(ctx, func() proto.Message { return withRef(req, t.ref()) }, reply, nil, t)
		switch {
		case again:
			t = ticket{}
		case errors.Is(err, catalog.ErrOutcomeUnknown) && !t.lost() && ctx.Err() == nil && pause(ctx, maxBackoff):
			sent = true
		default:
			return resultOf(reply, err), err
		}
	}
}
