package client

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// NewStream opens a stream; it is what generated stubs use. A stream of a read
// is opened again on another node as long as nothing of it arrived, within the
// budget of a call; the stream itself lives as long as ctx. Errors are those of
// Invoke. As with any stream of gRPC, ctx must end or the stream be read to its
// end.
func (c *Client) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	sctx, cancel := context.WithCancelCause(ctx)
	s := &stream{
		c: c, ctx: sctx, cancel: cancel, desc: desc, opts: opts, tr: trace{method: method}, r: route{c: c, leader: desc.ClientStreams},
	}
	limit := remaining(ctx, c.cfg.timeout)
	s.opening = time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	if err := s.open(); err != nil {
		s.finish()
		return nil, err
	}
	if desc.ClientStreams { // its messages are not kept, so it cannot begin again
		s.opening.Stop()
	}
	return s, nil
}

// stream is one stream of a stub.
type stream struct {
	c       *Client
	ctx     context.Context //nolint:containedctx // a stream lives as long as its context
	cancel  context.CancelCauseFunc
	desc    *grpc.StreamDesc
	opts    []grpc.CallOption
	tr      trace
	r       route
	opening *time.Timer // ends a stream of which nothing arrives
	done    sync.Once

	cur     grpc.ClientStream
	link    *link
	release func() // says that the attempt is over; may be called again
	req     any    // of a stream with one request
	started bool
}

var _ grpc.ClientStream = (*stream)(nil)

func (s *stream) open() error {
	for {
		l, err := s.r.next(s.ctx)
		if err != nil {
			return s.tr.noNode(s.ctx, s.c, err)
		}
		s.tr.attempt(l.addr)
		s.c.metrics.attempts.Inc()
		cur, err := l.conn.NewStream(s.ctx, s.desc, s.tr.method, s.opts...)
		if err == nil {
			l.calls.Add(1)
			s.cur, s.link, s.release = cur, l, sync.OnceFunc(func() { l.calls.Add(-1) })
			context.AfterFunc(s.ctx, s.release)
			return nil
		}
		if err = errorOf(err); judge(s.ctx, err) == stepDone {
			return err
		}
		s.tr.answer(err)
		if !s.r.elsewhere(s.ctx, l) {
			return s.tr.fail(s.c.closedCause(s.ctx))
		}
	}
}

func (s *stream) finish() {
	s.done.Do(func() {
		s.opening.Stop()
		s.cancel(nil)
	})
}

// again opens the stream on another node after err, if that is allowed.
func (s *stream) again(err error) error {
	for {
		if s.started || s.desc.ClientStreams || s.req == nil || kindOf(s.req) != kindRead {
			return err
		}
		step := judge(s.ctx, err)
		if step == stepDone || step == stepLost || step == stepRestored {
			return err
		}
		s.tr.answer(err)
		s.release()
		if !s.r.after(s.ctx, s.link, step) {
			return s.tr.fail(s.c.closedCause(s.ctx))
		}
		if err := s.open(); err != nil {
			return err
		}
		if err = s.request(); err == nil {
			return nil
		}
	}
}

func (s *stream) request() error {
	err := s.cur.SendMsg(s.req)
	if err == nil {
		err = s.cur.CloseSend()
	}
	if errors.Is(err, io.EOF) { // the reason is found by receiving
		return nil
	}
	return errorOf(err)
}

// RecvMsg receives the next message, or io.EOF at the end.
func (s *stream) RecvMsg(m any) error {
	for {
		err := s.cur.RecvMsg(m)
		if err == nil {
			if !s.started {
				s.started = true
				s.opening.Stop()
			}
			if h, ok := m.(headed); ok {
				s.c.pool.learnLeader(h.GetHeader().GetLeader())
			}
			if !s.desc.ServerStreams {
				s.finish()
			}
			return nil
		}
		if errors.Is(err, io.EOF) {
			s.finish()
			return io.EOF
		}
		if err = s.again(errorOf(err)); err != nil {
			s.finish()
			return err
		}
	}
}

// SendMsg sends a message. io.EOF says that the stream ended; RecvMsg tells why.
func (s *stream) SendMsg(m any) error {
	if !s.desc.ClientStreams {
		s.req = m
	}
	err := s.cur.SendMsg(m)
	if err == nil || errors.Is(err, io.EOF) {
		if !s.desc.ClientStreams {
			return nil // RecvMsg opens it again if it broke
		}
		return err
	}
	return errorOf(err)
}

// CloseSend says that no message follows.
func (s *stream) CloseSend() error { return s.cur.CloseSend() }

// Header, Trailer and Context are those of the current attempt.
func (s *stream) Header() (metadata.MD, error) {
	md, err := s.cur.Header()
	return md, errorOf(err)
}

// Trailer implements grpc.ClientStream.
func (s *stream) Trailer() metadata.MD { return s.cur.Trailer() }

// Context implements grpc.ClientStream.
func (s *stream) Context() context.Context { return s.cur.Context() }
