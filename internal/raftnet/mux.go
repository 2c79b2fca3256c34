package raftnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// maxHandshakes is how many connections may be in their handshake at once;
// further ones are closed without a word.
const maxHandshakes = 256

// MuxConfig says who this node is and whom it speaks to.
type MuxConfig struct {
	// Network carries the connections. Default: TCP{}.
	Network Network
	// Addr is the address of the raft port to listen on. Required.
	Addr string
	// NodeID is the id of this node, 1 to 255 bytes. Required.
	NodeID string
	// Build is the build level of this binary.
	Build uint32
	// Resolver gives the address of a node. Required to dial.
	Resolver Resolver
	// CheckPeer says whether a node may show this directory id; an error refuses
	// the connection in both directions and its text is told to the other side.
	// It may be called from many goroutines and must not block. Default: every
	// directory id is accepted.
	CheckPeer func(nodeID, directoryID string) error
	// MinBuild is the lowest build level that may take part. Default: 0.
	MinBuild func() uint32
	// OnOldBuild is called when another node refuses this one because its build
	// level is too low, with that node's words. It must not block. Default: none.
	OnOldBuild func(err error)
	// Identity answers identity questions, from many goroutines at once. The
	// answer's Node must be NodeID. Default: questions are refused.
	Identity func(Question) Answer
	// Logger gets refused handshakes at level Warn. Default: nothing is logged.
	Logger *slog.Logger
}

// Mux is the raft port of a node: one listener, on which each connection says by
// a handshake who it is from and what it is for. It also dials other nodes.
//
// A Mux starts without an identity; until SetIdentity it only answers identity
// questions and refuses everything else. All methods may be called concurrently.
type Mux struct {
	cfg      MuxConfig
	listener net.Listener
	ctx      context.Context // ends at Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup // accept loop and every connection in a handshake or served by Peers
	slots    chan struct{}

	mu struct {
		sync.Mutex
		cluster, directory string
		conns              map[*stallConn]string // every connection and its node
		warned             map[refusal]time.Time
		raft               *RaftLayer
		peers              *Peers
		closed             bool
	}
}

// Listen opens the raft port. The caller must Close it, after the Peers and the
// transports that use it.
func Listen(cfg MuxConfig) (*Mux, error) {
	if cfg.Network == nil {
		cfg.Network = TCP{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if n := len(cfg.NodeID); n == 0 || n > maxString {
		return nil, fmt.Errorf("raft port: node id of %d bytes, want 1 to %d", n, maxString)
	}
	l, err := cfg.Network.Listen(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen on raft port %s: %w", cfg.Addr, err)
	}
	m := &Mux{cfg: cfg, listener: l, slots: make(chan struct{}, maxHandshakes)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.mu.conns = map[*stallConn]string{}
	m.mu.warned = map[refusal]time.Time{}
	m.wg.Add(1)
	go m.acceptLoop()
	return m, nil
}

// SetIdentity tells the cluster id and the directory id once they are known;
// from then on connections of every kind are taken and made.
func (m *Mux) SetIdentity(cluster, directory string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.cluster, m.mu.directory = cluster, directory
}

// Addr returns the address the port listens on.
func (m *Mux) Addr() net.Addr { return m.listener.Addr() }

// NodeID returns the id of this node.
func (m *Mux) NodeID() string { return m.cfg.NodeID }

// Disconnect closes every connection with a node, in both directions. A node
// that CheckPeer has come to refuse cannot come back.
func (m *Mux) Disconnect(nodeID string) {
	for _, c := range m.connsOf(func(n string) bool { return n == nodeID }) {
		_ = c.Close()
	}
}

// Close stops listening, closes every connection and waits for what served them.
func (m *Mux) Close() error {
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.cancel()
	err := m.listener.Close()
	for _, c := range m.connsOf(func(string) bool { return true }) {
		_ = c.Close()
	}
	m.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (m *Mux) connsOf(match func(string) bool) []*stallConn {
	m.mu.Lock()
	defer m.mu.Unlock()
	var cs []*stallConn
	for c, n := range m.mu.conns {
		if match(n) {
			cs = append(cs, c)
		}
	}
	return cs
}

// track wraps a connection so that Close and Disconnect reach it.
func (m *Mux) track(c net.Conn) (*stallConn, error) {
	s := newStallConn(c)
	m.mu.Lock()
	closed := m.mu.closed
	if !closed {
		m.mu.conns[s] = ""
	}
	m.mu.Unlock()
	if closed {
		_ = c.Close()
		return nil, ErrClosed
	}
	s.atClose(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.mu.conns, s)
	})
	return s, nil
}

// name says which node a tracked connection leads to.
func (m *Mux) name(c *stallConn, node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.mu.conns[c]; ok {
		m.mu.conns[c] = node
	}
}

func (m *Mux) acceptLoop() {
	defer m.wg.Done()
	pause := time.Duration(0)
	for {
		c, err := m.listener.Accept()
		if err != nil {
			if m.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			m.cfg.Logger.Warn("raft port cannot accept", "error", err, "pause_ms", pause.Milliseconds())
			select {
			case <-m.ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		pause = 0
		select {
		case m.slots <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		m.wg.Add(1)
		go m.handle(c)
	}
}

// handle takes one accepted connection through its handshake and passes it on.
func (m *Mux) handle(raw net.Conn) {
	defer m.wg.Done()
	c, err := m.track(raw)
	if err != nil {
		<-m.slots
		return
	}
	next, err := m.receive(c)
	<-m.slots
	if err != nil {
		_ = c.Close()
		if m.worthAWarning(err) {
			m.cfg.Logger.Warn("handshake refused", "remote_addr", raw.RemoteAddr().String(), "error", err)
		}
		return
	}
	next()
}

// warnEvery is how often the same refusal of the same node is logged: it tries
// again many times a second.
const warnEvery = time.Minute

// worthAWarning reports whether a failed handshake should be logged. A node that
// is not ready is part of every start.
func (m *Mux) worthAWarning(err error) bool {
	key := refusal{}
	var r *RefusedError
	if errors.As(err, &r) {
		key = refusal{r.Node, r.Code}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	last, known := m.mu.warned[key]
	if m.mu.closed || key.code == RefusedNotReady || (known && now.Sub(last) < warnEvery) {
		return false
	}
	if len(m.mu.warned) >= maxHandshakes {
		clear(m.mu.warned)
	}
	m.mu.warned[key] = now
	return true
}

// refusal is what a failed handshake is remembered by.
type refusal struct {
	node string
	code Code
}

// receive reads and answers a handshake. It returns what to do with the
// connection then.
func (m *Mux) receive(c *stallConn) (next func(), err error) {
	if err := c.SetDeadline(time.Now().Add(stallAfter)); err != nil {
		return nil, err
	}
	h, err := readHello(c)
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if err == nil {
		next, refused = m.judge(c, h)
	}
	w := m.welcome()
	if refused != nil {
		w.Code, w.Reason = refused.Code, refused.Reason
	}
	b, err := encodeWelcome(w)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(b); err != nil {
		return nil, fmt.Errorf("answer handshake: %w", err)
	}
	if refused != nil {
		refused.Node = h.From
		return nil, refused
	}
	m.name(c, h.From)
	if h.Kind == KindIdentity {
		return next, nil
	}
	return next, c.SetDeadline(time.Time{})
}

func (m *Mux) welcome() Welcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Welcome{Cluster: m.mu.cluster, Node: m.cfg.NodeID, Directory: m.mu.directory, Build: m.cfg.Build}
}

// judge applies the rules to a hello and finds who takes the connection.
func (m *Mux) judge(c *stallConn, h Hello) (next func(), _ *RefusedError) {
	refuse := func(code Code, format string, args ...any) (func(), *RefusedError) {
		return nil, &RefusedError{Code: code, Reason: fmt.Sprintf(format, args...)}
	}
	me := m.welcome()
	switch {
	case h.Kind < KindRaft || h.Kind > KindIdentity:
		return refuse(RefusedKind, "%s is not known here", h.Kind)
	case h.From == me.Node:
		return refuse(RefusedNode, "node id %q is this node's own", h.From)
	case h.Kind == KindIdentity && (h.To == "" || h.To == me.Node):
		if m.cfg.Identity == nil {
			return refuse(RefusedNotReady, "identity questions are not answered here")
		}
		if r := m.checkBuild(h.From, h.Build); r != nil {
			return nil, r
		}
		return func() { m.answer(c, h) }, nil
	case h.To != me.Node:
		return refuse(RefusedNode, "this is node %q, not %q", me.Node, h.To)
	case me.Cluster == "":
		return refuse(RefusedNotReady, "node %q has no identity yet", me.Node)
	case h.From == "" || h.Directory == "":
		return refuse(RefusedMalformed, "node id or directory id is empty")
	case h.Cluster != me.Cluster:
		return refuse(RefusedCluster, "cluster id is %q here and %q there", me.Cluster, h.Cluster)
	}
	if r := m.checkPeer(h.From, h.Directory, h.Build); r != nil {
		return nil, r
	}
	m.mu.Lock()
	layer, peers := m.mu.raft, m.mu.peers
	m.mu.Unlock()
	switch {
	case h.Kind == KindRaft && layer != nil:
		return func() { layer.deliver(c) }, nil
	case h.Kind == KindPeer && peers != nil:
		return func() { peers.serve(h.From, c) }, nil
	}
	return refuse(RefusedNotReady, "node %q takes no %s connections now", me.Node, h.Kind)
}

// checkPeer applies the owner's rules to the other side of a connection.
func (m *Mux) checkPeer(node, directory string, build uint32) *RefusedError {
	if r := m.checkBuild(node, build); r != nil {
		return r
	}
	if m.cfg.CheckPeer != nil {
		if err := m.cfg.CheckPeer(node, directory); err != nil {
			return &RefusedError{Code: RefusedDirectory, Reason: err.Error(), Node: node}
		}
	}
	return nil
}

func (m *Mux) checkBuild(node string, build uint32) *RefusedError {
	if m.cfg.MinBuild == nil {
		return nil
	}
	low := m.cfg.MinBuild()
	if build >= low {
		return nil
	}
	reason := fmt.Sprintf("build level %d of node %q is below %d, which the cluster uses", build, node, low)
	return &RefusedError{Code: RefusedBuild, Reason: reason, Node: node}
}

// answer serves one identity question, within the handshake's deadline.
func (m *Mux) answer(c *stallConn, h Hello) {
	defer c.Close() //nolint:errcheck // nothing is sent any more
	a := m.cfg.Identity(Question{From: h.From, Cluster: h.Cluster, Directory: h.Directory, Build: h.Build})
	b, err := encodeAnswer(a)
	if err == nil {
		_, err = c.Write(b)
	}
	if err != nil && m.ctx.Err() == nil {
		m.cfg.Logger.Warn("identity question not answered", "from", h.From, "error", err)
	}
}
