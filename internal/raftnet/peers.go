package raftnet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Status is how a request ended at the other node.
type Status uint8

// Frozen: protocol version 1.
const (
	StatusOK       Status = 0
	StatusFailed   Status = 1 // the handler returned an error
	StatusNoMethod Status = 2 // no handler for the method; it did nothing
	StatusBusy     Status = 3 // too many requests in progress; it did nothing
	StatusTooLarge Status = 4 // the handler's response exceeds MaxPayload
)

// String returns the status's name.
func (s Status) String() string {
	names := [...]string{"ok", "failed", "no such method", "busy", "response too large"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Handler serves one request from a verified node and owns req. ctx ends when
// the caller's time is up, when the connection breaks and at Close. Handlers run
// concurrently, each on its own goroutine. An error reaches the caller as a *RemoteError with its text, cut to
// 1,024 bytes.
type Handler func(ctx context.Context, from string, req []byte) ([]byte, error)

// Peers carries requests between nodes over peer connections: one connection to
// each node it calls, with any number of calls in flight, and one from each node
// that calls it. All methods may be called concurrently.
type Peers struct {
	m        *Mux
	handlers [256]atomic.Pointer[Handler]
	ctx      context.Context // ends at Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // every goroutine of this side

	mu struct {
		sync.Mutex
		nodes   map[string]*peerDial
		serving map[*stallConn]struct{}
		closed  bool
	}
}

// peerDial is a connection to a node, being made or made.
type peerDial struct {
	ready chan struct{} // closed when conn or err is set
	conn  *peerConn
	err   error
}

// OpenPeers makes the Mux take peer connections, in place of an earlier Peers.
// The caller must Close it.
func OpenPeers(m *Mux) *Peers {
	p := &Peers{m: m}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.mu.nodes = map[string]*peerDial{}
	p.mu.serving = map[*stallConn]struct{}{}
	m.mu.Lock()
	m.mu.peers = p
	m.mu.Unlock()
	return p
}

// Handle sets who serves a method, from the next request on; nil: nobody.
func (p *Peers) Handle(method uint8, h Handler) {
	if h == nil {
		p.handlers[method].Store(nil)
		return
	}
	p.handlers[method].Store(&h)
}

// Call sends a request to a node and waits for its response, which the caller
// owns. req is not kept after Call returned, unless the error says that it may
// have been sent; do not write to it then. Without a connection it dials,
// sharing the attempt with other callers.
//
// Errors: ErrTooLarge; *RemoteError if the node answered so; otherwise
// *PeerError, which matches ErrPeerUnavailable, says whether the request may
// have been sent, and wraps the cause, such as the end of ctx. A connection that
// carries nothing for five seconds while calls wait is given up.
func (p *Peers) Call(ctx context.Context, nodeID string, method uint8, req []byte) ([]byte, error) {
	if len(req) > MaxPayload {
		return nil, fmt.Errorf("request of %d bytes, limit %d: %w", len(req), MaxPayload, ErrTooLarge)
	}
	c, err := p.connection(ctx, nodeID)
	if err != nil {
		return nil, &PeerError{Node: nodeID, Err: err}
	}
	f, sent, err := c.call(ctx, method, req)
	if err != nil {
		return nil, &PeerError{Node: nodeID, MaybeSent: sent, Err: err}
	}
	if s := Status(f.tag); s != StatusOK {
		return nil, &RemoteError{Node: nodeID, Status: s, Message: string(f.payload)}
	}
	return f.payload, nil
}

// Close fails every waiting call, ends every handler's context, closes all peer
// connections and waits for the handlers to return.
func (p *Peers) Close() error {
	p.m.mu.Lock()
	if p.m.mu.peers == p {
		p.m.mu.peers = nil
	}
	p.m.mu.Unlock()
	p.mu.Lock()
	p.mu.closed = true
	var dials []*peerDial
	for _, d := range p.mu.nodes {
		dials = append(dials, d)
	}
	var serving []*stallConn
	for c := range p.mu.serving {
		serving = append(serving, c)
	}
	p.mu.Unlock()
	p.cancel()
	for _, c := range serving {
		_ = c.Close()
	}
	for _, d := range dials {
		<-d.ready
		if d.conn != nil {
			d.conn.fail(ErrClosed)
		}
	}
	p.wg.Wait()
	return nil
}

// connection returns a live connection to a node.
func (p *Peers) connection(ctx context.Context, node string) (*peerConn, error) {
	p.mu.Lock()
	if p.mu.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	d := p.mu.nodes[node]
	if d == nil || d.failed() {
		d = &peerDial{ready: make(chan struct{})}
		p.mu.nodes[node] = d
		p.wg.Add(1)
		go p.dial(node, d)
	}
	p.mu.Unlock()
	select {
	case <-d.ready:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// failed reports whether the attempt or the connection it led to has ended.
func (d *peerDial) failed() bool {
	select {
	case <-d.ready:
		return d.err != nil || d.conn.broken()
	default:
		return false
	}
}

// dial makes a connection and then serves it until it breaks.
func (p *Peers) dial(node string, d *peerDial) {
	defer p.wg.Done()
	s, err := p.m.dial(p.ctx, KindPeer, node)
	if err != nil {
		d.err = err
		close(d.ready)
		return
	}
	c := newPeerConn(s)
	d.conn = c
	p.wg.Add(2)
	go func() {
		defer p.wg.Done()
		c.fail(writeFrames(c.conn, c.out, c.dead))
	}()
	go func() {
		defer p.wg.Done()
		c.watch()
	}()
	close(d.ready)
	c.fail(c.readResponses())
}
