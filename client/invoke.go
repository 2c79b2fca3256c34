package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// Invoke makes a unary call; it is what generated stubs use. A write gets the
// client's id and next sequence, unless it carries a client reference already,
// and is repeated under it until it is answered or the deadline ends; a read is
// repeated on other nodes. Linearizable reads of one object are batched, see
// WithBatching, unless opts or outgoing metadata are given; the header of their
// answers is shared and must not be changed. args is not changed by Invoke, and
// must not be by others before it returns.
func (c *Client) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, cancel := c.budget(ctx)
	defer cancel()
	switch kindOf(args) {
	case kindWrite:
		req, out, err := messages(args, reply)
		if err != nil {
			return err
		}
		return c.write(ctx, method, req, out, opts)
	case kindRead:
		if m := c.reads.batched(ctx, args, opts); m != nil {
			if err := c.reads.do(ctx, method, m, reply); !errors.Is(err, errPlain) {
				return err
			}
		}
		return c.read(ctx, method, args, reply, opts)
	default:
		return c.onceOnly(ctx, method, args, reply, opts)
	}
}

func messages(args, reply any) (api.Request, proto.Message, error) {
	req, ok := args.(api.Request)
	out, ok2 := reply.(proto.Message)
	if !ok || !ok2 {
		return nil, nil, &catalog.Error{Code: catalog.ErrInvalidArgument, Message: "args and reply must be protobuf messages"}
	}
	return req, out, nil
}

// route remembers where a call has been, and how long it waits between rounds.
type route struct {
	c        *Client
	leader   bool
	avoid    map[string]bool
	failures int
}

// next returns a link for the next attempt.
func (r *route) next(ctx context.Context) (*link, error) {
	return r.c.pool.acquire(ctx, r.leader, r.avoid)
}

// elsewhere notes that a node did not help, and pauses from the second time on.
func (r *route) elsewhere(ctx context.Context, l *link) bool {
	if r.avoid == nil {
		r.avoid = map[string]bool{}
	}
	if r.avoid[l.addr] { // a whole round failed
		clear(r.avoid)
	}
	r.avoid[l.addr] = true
	r.failures++
	if r.failures == 1 {
		return ctx.Err() == nil
	}
	return pause(ctx, backoff(r.failures-1))
}

// again pauses before the same node is asked again.
func (r *route) again(ctx context.Context) bool {
	r.failures++
	return pause(ctx, backoff(r.failures))
}

// after does what a step says about the next attempt of a call that may be
// repeated. It reports whether there is time for one.
func (r *route) after(ctx context.Context, l *link, s step) bool {
	r.c.metrics.retried(s)
	return r.follow(ctx, l, s)
}

// follow is after for calls that are counted elsewhere.
func (r *route) follow(ctx context.Context, l *link, s step) bool {
	switch s {
	case stepElsewhere, stepBroken:
		return r.elsewhere(ctx, l)
	default:
		return r.again(ctx)
	}
}

// closedCause tells why a call ended before its answer.
func (c *Client) closedCause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return context.Cause(c.pool.ctx)
}

// read repeats a call that changes nothing.
func (c *Client) read(ctx context.Context, method string, req, reply any, opts []grpc.CallOption) error {
	return c.readTraced(ctx, &trace{method: method}, req, reply, opts)
}

func (c *Client) readTraced(ctx context.Context, tr *trace, req, reply any, opts []grpc.CallOption) error {
	r := route{c: c, leader: linearizable(req)}
	unexpected := 0
	for {
		l, err := r.next(ctx)
		if err != nil {
			return tr.noNode(ctx, c, err)
		}
		tr.attempt(l.addr)
		err = c.try(ctx, l, tr.method, req, reply, opts)
		s := judge(ctx, err)
		if s == stepDone || s == stepLost || s == stepRestored {
			return err
		}
		tr.answer(err)
		if s == stepUnclear && unclassified(err) {
			if unexpected++; unexpected == maxUnexpected {
				return err
			}
			s = stepElsewhere
		}
		r.leader = false // a preference for the first attempt
		if !r.after(ctx, l, s) || c.pool.ctx.Err() != nil {
			return tr.fail(c.closedCause(ctx))
		}
	}
}

// maxUnexpected is how often an answer that no table explains is believed to be
// passing.
const maxUnexpected = 3

// unclassified reports whether an answer is a failure that the server itself did
// not expect.
func unclassified(err error) bool { return errors.Is(err, catalog.ErrUnknownServerError) }

// onceOnly makes a call that is not known to be harmless when repeated: it is
// sent again only after an answer that says nothing was changed.
func (c *Client) onceOnly(ctx context.Context, method string, req, reply any, opts []grpc.CallOption) error {
	r := route{c: c, leader: true}
	tr := trace{method: method}
	for {
		l, err := r.next(ctx)
		if err != nil {
			return tr.noNode(ctx, c, err)
		}
		tr.attempt(l.addr)
		err = c.try(ctx, l, method, req, reply, opts)
		s := judge(ctx, err)
		switch {
		case s == stepBroken, s == stepUnclear:
			tr.answer(err)
			return tr.unknown(ticket{}, c.closedCause(ctx))
		case s != stepAgain && s != stepElsewhere:
			return err
		}
		tr.answer(err)
		if !r.after(ctx, l, s) {
			return tr.fail(c.closedCause(ctx))
		}
	}
}

// noNode ends a call for which no node could be asked.
func (t *trace) noNode(ctx context.Context, c *Client, err error) error {
	if t.last == nil || t.attempts == 0 {
		t.last = err
	} else {
		t.last = fmt.Errorf("%w; %w", t.last, err)
	}
	if errors.Is(err, ErrClosed) {
		return t.fail(ErrClosed)
	}
	return t.fail(c.closedCause(ctx))
}

// remaining is the time until the deadline of ctx.
func remaining(ctx context.Context, def time.Duration) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return time.Until(d)
	}
	return def
}
