package raftnet

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// RaftLayer is raft's stream layer over a Mux. Its addresses are node ids.
//
// A layer lives as long as one raft instance; opening the next one closes it.
// Closing it closes its connections and leaves the Mux as it is.
type RaftLayer struct {
	m      *Mux
	limit  int64
	accept chan net.Conn
	done   chan struct{}

	mu struct {
		sync.Mutex
		conns  map[*chunkConn]struct{} // dialled and accepted, open
		gated  bool
		closed bool
		dial   context.Context // of dials in progress; ends with the gate or the layer
		cancel context.CancelFunc
	}
}

// RaftLayer makes the Mux take raft connections and returns where they come
// out. An earlier layer is closed. maxMessage bounds one received message in
// bytes, the body of a snapshot excepted; 0 means 32 MiB.
func (m *Mux) RaftLayer(maxMessage int64) *RaftLayer {
	if maxMessage <= 0 {
		maxMessage = 32 << 20
	}
	l := &RaftLayer{m: m, limit: maxMessage, accept: make(chan net.Conn), done: make(chan struct{})}
	l.mu.conns = map[*chunkConn]struct{}{}
	l.mu.dial, l.mu.cancel = context.WithCancel(context.Background())
	m.mu.Lock()
	before := m.mu.raft
	m.mu.raft = l
	m.mu.Unlock()
	if before != nil {
		_ = before.Close()
	}
	return l
}

// Accept returns the next verified connection from another node.
func (l *RaftLayer) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.done:
		return nil, ErrClosed
	}
}

// Dial connects to a node by its id; see Mux for what is verified. While the
// gate is closed it fails with ErrGated.
func (l *RaftLayer) Dial(node raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	l.mu.Lock()
	ctx, gated := l.mu.dial, l.mu.gated
	l.mu.Unlock()
	if gated {
		return nil, ErrGated
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	s, err := l.m.dial(ctx, KindRaft, string(node))
	if err != nil {
		return nil, err
	}
	c, err := l.adopt(s, false)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Addr returns this node's id as an address.
func (l *RaftLayer) Addr() net.Addr { return nodeAddr(l.m.cfg.NodeID) }

// Close ends Accept and closes every connection of this layer.
func (l *RaftLayer) Close() error {
	l.mu.Lock()
	was := l.mu.closed
	l.mu.closed = true
	l.mu.cancel()
	l.mu.Unlock()
	if was {
		return nil
	}
	close(l.done)
	l.m.mu.Lock()
	if l.m.mu.raft == l {
		l.m.mu.raft = nil
	}
	l.m.mu.Unlock()
	l.closeConns(func(*chunkConn) bool { return true })
	return nil
}

// deliver hands an accepted connection to Accept.
func (l *RaftLayer) deliver(s *stallConn) {
	c, err := l.adopt(s, true)
	if err != nil {
		return
	}
	select {
	case l.accept <- c:
	case <-l.done:
		_ = c.Close()
	case <-l.m.ctx.Done():
		_ = c.Close()
	}
}

// adopt registers a connection, or closes it if it may not exist.
func (l *RaftLayer) adopt(s *stallConn, accepted bool) (*chunkConn, error) {
	c := newChunkConn(s, accepted, l.limit)
	l.mu.Lock()
	var err error
	switch {
	case l.mu.closed:
		err = ErrClosed
	case l.mu.gated && !accepted:
		err = ErrGated
	default:
		l.mu.conns[c] = struct{}{}
	}
	l.mu.Unlock()
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	s.atClose(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.mu.conns, c)
	})
	return c, nil
}

// setGate closes or opens the way out. Closing it closes every dialled
// connection, so that when it returns nothing more is written.
func (l *RaftLayer) setGate(closed bool) {
	l.mu.Lock()
	l.mu.cancel()
	if l.mu.gated = closed; !closed && !l.mu.closed {
		l.mu.dial, l.mu.cancel = context.WithCancel(context.Background())
	}
	l.mu.Unlock()
	if closed {
		l.closeConns(func(c *chunkConn) bool { return !c.accepted })
	}
}

func (l *RaftLayer) closeConns(match func(*chunkConn) bool) {
	l.mu.Lock()
	var cs []*chunkConn
	for c := range l.mu.conns {
		if match(c) {
			cs = append(cs, c)
		}
	}
	l.mu.Unlock()
	for _, c := range cs {
		_ = c.Close()
	}
}

// nodeAddr is a node id as a net.Addr.
type nodeAddr string

func (nodeAddr) Network() string  { return "stave" }
func (a nodeAddr) String() string { return string(a) }
