package raftnet

import (
	"bufio"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// peerConn is the calling side of a peer connection.
type peerConn struct {
	conn *stallConn
	out  chan outgoing
	dead chan struct{} // closed when the connection is given up
	mu   struct {
		sync.Mutex
		waiting map[uint64]*peerCall
		next    uint64
		// asked is since when the other side owes a frame; zero: it owes none. A
		// call that gave up leaves it set, so that a silent network is noticed
		// also by callers who never wait long.
		asked time.Time
		err   error // why it was given up
	}
}

// peerCall is one call in flight. Exactly one result is sent to done, unless
// the caller gave up first.
type peerCall struct {
	state atomic.Uint32
	done  chan frame // closed without a frame: the connection broke
}

func newPeerConn(s *stallConn) *peerConn {
	c := &peerConn{conn: s, out: make(chan outgoing, frameQueue), dead: make(chan struct{})}
	c.mu.waiting = map[uint64]*peerCall{}
	return c
}

func (c *peerConn) broken() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// fail gives the connection up and fails every waiting call. Only the first
// cause counts.
func (c *peerConn) fail(err error) {
	if err == nil {
		err = ErrClosed
	}
	c.mu.Lock()
	first := c.mu.err == nil
	waiting := c.mu.waiting
	if first {
		c.mu.err, c.mu.waiting = err, nil
		close(c.dead)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	_ = c.conn.Close()
	for _, k := range waiting {
		close(k.done)
	}
}

// call sends a request and waits. sent says whether it may have left the node.
func (c *peerConn) call(ctx context.Context, method uint8, req []byte) (f frame, sent bool, err error) {
	k := &peerCall{done: make(chan frame, 1)}
	id, err := c.register(k)
	if err != nil {
		return frame{}, false, err
	}
	o := outgoing{frame: frame{typ: frameRequest, tag: method, id: id, payload: req}, state: &k.state}
	if d, ok := ctx.Deadline(); ok {
		o.budget = min(max(time.Until(d), time.Microsecond), maxBudget)
	}
	select {
	case c.out <- o:
	case <-ctx.Done():
		c.forget(id)
		return frame{}, false, context.Cause(ctx)
	case <-c.dead:
		return frame{}, false, c.cause()
	}
	select {
	case f, ok := <-k.done:
		if !ok {
			return frame{}, !k.state.CompareAndSwap(queued, givenUp), c.cause()
		}
		return f, true, nil
	case <-ctx.Done():
		c.forget(id)
		return frame{}, !k.state.CompareAndSwap(queued, givenUp), context.Cause(ctx)
	}
}

func (c *peerConn) register(k *peerCall) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return 0, c.mu.err
	}
	if c.mu.asked.IsZero() {
		c.mu.asked = time.Now()
	}
	c.mu.next++
	c.mu.waiting[c.mu.next] = k
	return c.mu.next, nil
}

func (c *peerConn) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.waiting, id)
}

func (c *peerConn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// readResponses hands each response to the call it belongs to. One that nobody
// waits for any more is dropped.
func (c *peerConn) readResponses() error {
	r := bufio.NewReaderSize(c.conn, 64<<10)
	for {
		f, err := readFrame(r, func(waiting bool) { c.conn.inside.Store(!waiting) })
		if err != nil {
			return fmt.Errorf("read response: %w", err)
		}
		if f.typ != frameResponse && f.typ != framePong {
			return fmt.Errorf("peer frame of type %d as a response: %w", f.typ, ErrMalformed)
		}
		if k := c.heard(f); k != nil {
			k.done <- f
		}
	}
}

// heard notes that a frame arrived and returns the call it answers, if any.
func (c *peerConn) heard(f frame) *peerCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	var k *peerCall
	if f.typ == frameResponse {
		k = c.mu.waiting[f.id]
		delete(c.mu.waiting, f.id)
	}
	c.mu.asked = time.Time{}
	if len(c.mu.waiting) > 0 {
		c.mu.asked = time.Now()
	}
	return k
}

// watch gives the connection up when the other side owes a frame and nothing
// arrives. A request may rightly take long, so a pong pays as well as a response.
func (c *peerConn) watch() {
	t := time.NewTicker(stallStep)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-c.dead:
			return
		}
		c.mu.Lock()
		asked, calls := c.mu.asked, len(c.mu.waiting)
		c.mu.Unlock()
		quiet := time.Since(asked)
		switch {
		case asked.IsZero() || quiet < stallStep:
		case quiet >= stallAfter:
			c.fail(fmt.Errorf("%d calls waiting: %w", calls, ErrStalled))
			return
		default:
			select {
			case c.out <- outgoing{frame: frame{typ: framePing}}:
			default: // the writer is behind and will stall by itself
			}
		}
	}
}
