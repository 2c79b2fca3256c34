package raftnet

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of what one connection may keep in progress; beyond them a request is
// answered StatusBusy.
const (
	maxInProgress      = 4096
	maxInProgressBytes = 64 << 20
)

// peerServer is the serving side of a peer connection.
type peerServer struct {
	p     *Peers
	from  string
	conn  *stallConn
	ctx   context.Context // ends with the connection
	out   chan outgoing
	dead  chan struct{} // closed with the connection
	calls sync.WaitGroup
	count atomic.Int64
	bytes atomic.Int64
}

// serve answers the requests of a verified connection until it breaks. It runs
// on the Mux's goroutine and returns when every handler has.
func (p *Peers) serve(from string, c *stallConn) {
	defer c.Close() //nolint:errcheck // nothing is sent any more
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return
	}
	p.mu.serving[c] = struct{}{}
	p.wg.Add(2)
	p.mu.Unlock()
	defer p.wg.Done()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.mu.serving, c)
	}()
	ctx, cancel := context.WithCancel(p.ctx)
	s := &peerServer{p: p, from: from, conn: c, ctx: ctx, out: make(chan outgoing, frameQueue), dead: make(chan struct{})}
	go func() {
		defer p.wg.Done()
		_ = writeFrames(c, s.out, s.dead)
		_ = c.Close()
	}()
	err := s.readRequests()
	cancel()
	close(s.dead)
	_ = c.Close()
	s.calls.Wait()
	if p.ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		p.m.cfg.Logger.Info("peer connection broken", "from", from, "error", err)
	}
}

func (s *peerServer) readRequests() error {
	r := bufio.NewReaderSize(s.conn, 64<<10)
	for {
		f, err := readFrame(r, func(waiting bool) { s.conn.inside.Store(!waiting) })
		if err != nil {
			return err
		}
		switch f.typ {
		case framePing:
			s.send(frame{typ: framePong})
		case frameRequest:
			s.start(f)
		default:
			return ErrMalformed
		}
	}
}

// start runs the handler of a request, or refuses it.
func (s *peerServer) start(f frame) {
	h := s.p.handlers[f.tag].Load()
	size := int64(len(f.payload))
	switch {
	case h == nil:
		s.respond(f.id, StatusNoMethod, nil)
		return
	case s.count.Load() >= maxInProgress || s.bytes.Load()+size > maxInProgressBytes:
		s.respond(f.id, StatusBusy, nil)
		return
	}
	s.count.Add(1)
	s.bytes.Add(size)
	s.calls.Add(1)
	go func() {
		defer s.calls.Done()
		ctx := s.ctx
		if f.budget > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, f.budget)
			defer cancel()
		}
		resp, err := (*h)(ctx, s.from, f.payload)
		s.count.Add(-1)
		s.bytes.Add(-size)
		switch {
		case err != nil:
			s.respond(f.id, StatusFailed, reasonBytes(err))
		case len(resp) > MaxPayload:
			s.respond(f.id, StatusTooLarge, nil)
		default:
			s.respond(f.id, StatusOK, resp)
		}
	}()
}

func (s *peerServer) respond(id uint64, status Status, payload []byte) {
	s.send(frame{typ: frameResponse, tag: uint8(status), id: id, payload: payload})
}

func (s *peerServer) send(f frame) {
	select {
	case s.out <- outgoing{frame: f}:
	case <-s.dead:
	case <-s.ctx.Done():
	}
}

// reasonBytes returns an error's text as valid UTF-8 within bounds.
func reasonBytes(err error) []byte {
	t := err.Error()
	if len(t) > maxReason {
		t = t[:maxReason]
	}
	return []byte(strings.ToValidUTF8(t, "?"))
}
