package memnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// queueSize is how many bytes one direction of a connection holds before a
// write blocks.
const queueSize = 256 << 10

// backlog is how many connections may wait for Accept before a dial blocks.
const backlog = 128

// Network is a set of hosts and the links between them. All methods of a
// Network and of everything made from it may be called concurrently. A Network
// used inside a synctest bubble must be created inside it.
type Network struct {
	mu        sync.Mutex
	changed   *sync.Cond // broadcast when a dial that waits should look again
	links     map[[2]string]*link
	listeners map[string]*listener
	conns     map[*conn]struct{}
	nextPort  int
}

// link is one direction between two hosts. Its fields are guarded by Network.mu.
type link struct {
	delay  time.Duration
	cut    bool
	budget int64 // bytes until the link cuts itself; negative: no such limit
}

// New returns a network without hosts, delays or faults.
func New() *Network {
	n := &Network{
		links:     map[[2]string]*link{},
		listeners: map[string]*listener{},
		conns:     map[*conn]struct{}{},
		nextPort:  40000,
	}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// Host returns the network as the host of that name sees it. Calling it again
// with the same name gives the same host.
func (n *Network) Host(name string) *Host { return &Host{n: n, name: name} }

// Cut stops every byte that travels from one host to another, also those
// already on their way. The opposite direction is not touched.
func (n *Network) Cut(from, to string) {
	n.change(func() { n.link(from, to).cut = true })
}

// CutBoth cuts both directions between two hosts.
func (n *Network) CutBoth(a, b string) {
	n.change(func() { n.link(a, b).cut, n.link(b, a).cut = true, true })
}

// Heal undoes Cut and DropAfter in both directions between two hosts; what was
// queued arrives.
func (n *Network) Heal(a, b string) {
	n.change(func() {
		for _, l := range []*link{n.link(a, b), n.link(b, a)} {
			l.cut, l.budget = false, -1
		}
	})
}

// HealAll heals every link.
func (n *Network) HealAll() {
	n.change(func() {
		for _, l := range n.links {
			l.cut, l.budget = false, -1
		}
	})
}

// Delay sets how long a byte travels from one host to another. It holds for
// bytes written from now on; bytes never overtake each other.
func (n *Network) Delay(from, to string, d time.Duration) {
	n.change(func() { n.link(from, to).delay = d })
}

// DropAfter lets the given number of further bytes arrive from one host at
// another, over all their connections together, and then cuts that direction.
func (n *Network) DropAfter(from, to string, bytes int64) {
	n.change(func() {
		l := n.link(from, to)
		l.budget, l.cut = bytes, bytes <= 0
	})
}

// Reset breaks every connection between two hosts: pending and later reads and
// writes on both sides fail with ECONNRESET.
func (n *Network) Reset(a, b string) {
	n.change(func() {
		for c := range n.conns {
			if (c.local == a && c.remote == b) || (c.local == b && c.remote == a) {
				c.reset()
			}
		}
	})
}

// Crash resets every connection of a host and closes its listeners, as the end
// of its process would.
func (n *Network) Crash(host string) {
	n.change(func() {
		for _, l := range n.listeners {
			if l.host == host {
				l.shut()
			}
		}
		for c := range n.conns {
			if c.local == host || c.remote == host {
				c.reset()
			}
		}
	})
}

// Open returns how many ends of connections are open; a test that closed
// everything expects 0.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// change runs f under the lock and then wakes everything that waits.
func (n *Network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.changed.Broadcast()
	for c := range n.conns {
		c.in.ready.Broadcast()
		c.out.ready.Broadcast()
	}
}

// link returns the link between two hosts. The lock is held.
func (n *Network) link(from, to string) *link {
	k := [2]string{from, to}
	l := n.links[k]
	if l == nil {
		l = &link{budget: -1}
		n.links[k] = l
	}
	return l
}

// Host is a network as seen from one host.
type Host struct {
	n    *Network
	name string
}

// Listen starts to accept connections for an address, which is any string not
// yet listened on. An address that ends in ":0" gets a free port.
func (h *Host) Listen(addr string) (net.Listener, error) {
	n := h.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := cutZeroPort(addr); ok {
		n.nextPort++
		addr = fmt.Sprintf("%s:%d", name, n.nextPort)
	}
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "mem", Addr: Addr(addr), Err: syscall.EADDRINUSE}
	}
	l := &listener{n: n, host: h.name, addr: addr, ready: sync.NewCond(&n.mu)}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to an address. Without a listener it fails with ECONNREFUSED;
// over a cut link, or while the listener's backlog is full, it waits until ctx
// ends.
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) {
	n := h.n
	stop := context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.changed.Broadcast()
	})
	defer stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: Addr(addr), Err: err}
	}
	travelled := false
	for {
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
		l := n.listeners[addr]
		switch {
		case l != nil && (n.link(h.name, l.host).cut || n.link(l.host, h.name).cut):
			n.changed.Wait()
		case l != nil && !travelled:
			travelled = true
			d := n.link(h.name, l.host).delay + n.link(l.host, h.name).delay
			n.sleep(ctx, d)
		case l == nil:
			return fail(syscall.ECONNREFUSED)
		case len(l.waiting) >= backlog:
			n.changed.Wait()
		default:
			c := n.connect(h.name, l)
			return c, nil
		}
	}
}

// sleep waits for d or the end of ctx. The lock is held on entry and return.
func (n *Network) sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	n.mu.Unlock()
	defer n.mu.Lock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// connect makes the two ends of a connection and queues one at the listener.
// The lock is held.
func (n *Network) connect(from string, l *listener) *conn {
	there, back := newQueue(n, n.link(from, l.host)), newQueue(n, n.link(l.host, from))
	n.nextPort++
	port := Addr(fmt.Sprintf("%s:%d", from, n.nextPort))
	c := &conn{n: n, local: from, remote: l.host, localAddr: port, remoteAddr: Addr(l.addr), in: back, out: there}
	s := &conn{n: n, local: l.host, remote: from, localAddr: Addr(l.addr), remoteAddr: port, in: there, out: back}
	n.conns[c], n.conns[s] = struct{}{}, struct{}{}
	l.waiting = append(l.waiting, s)
	l.ready.Signal()
	return c
}

func cutZeroPort(addr string) (string, bool) {
	host, port, err := net.SplitHostPort(addr)
	return host, err == nil && port == "0"
}

// listener is an address that is listened on. Its fields are guarded by
// Network.mu.
type listener struct {
	n       *Network
	host    string
	addr    string
	ready   *sync.Cond
	waiting []*conn
	closed  bool
}

// Accept returns the next connection. It fails with net.ErrClosed after Close.
func (l *listener) Accept() (net.Conn, error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.ready.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "mem", Addr: Addr(l.addr), Err: net.ErrClosed}
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.n.changed.Broadcast()
	return c, nil
}

// Close stops listening and resets the connections nobody has accepted.
// Accepted ones live on.
func (l *listener) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	l.shut()
	l.n.changed.Broadcast()
	return nil
}

func (l *listener) shut() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.n.listeners, l.addr)
	for _, c := range l.waiting {
		c.reset()
	}
	l.waiting = nil
	l.ready.Broadcast()
}

func (l *listener) Addr() net.Addr { return Addr(l.addr) }

// Addr is an address of a Network.
type Addr string

// Network returns "mem".
func (Addr) Network() string { return "mem" }

// String returns the address as it was given to Listen.
func (a Addr) String() string { return string(a) }
