package testcluster

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// proxy stands between one host that dials and one that listens.
type proxy struct {
	l      net.Listener
	target string
	out    *gate // dialler to listener
	in     *gate // listener to dialler

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	shut  bool
	wg    sync.WaitGroup
}

// gate lets the bytes of one direction pass, late or not at all. Both proxies of
// a pair share the gate of a direction.
type gate struct {
	mu      sync.Mutex
	cut     bool
	delay   time.Duration
	changed chan struct{} // closed by the next set
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

func (g *gate) set(cut bool, delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cut == cut && g.delay == delay {
		return
	}
	g.cut, g.delay = cut, delay
	close(g.changed)
	g.changed = make(chan struct{})
}

// wait returns once the gate is open and what arrived then may pass.
func (g *gate) wait(arrived time.Time) {
	for {
		g.mu.Lock()
		cut, delay, changed := g.cut, g.delay, g.changed
		g.mu.Unlock()
		left := time.Until(arrived.Add(delay))
		switch {
		case cut:
			<-changed
		case left > 0:
			time.Sleep(left)
		default:
			return
		}
	}
}

func newProxy(addr, target string, out, in *gate) (*proxy, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, target: target, out: out, in: in, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if p.keep(c) {
			p.wg.Go(func() { p.serve(c) })
		}
	}
}

func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) serve(c net.Conn) {
	defer p.drop(c)
	p.out.wait(time.Now())
	p.in.wait(time.Now())
	t, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		abort(c)
		return
	}
	if !p.keep(t) {
		return
	}
	defer p.drop(t)
	var wg sync.WaitGroup
	wg.Go(func() { pump(t, c, p.out) })
	wg.Go(func() { pump(c, t, p.in) })
	wg.Wait()
}

// pump copies until either end is gone, and then ends both. Bytes wait for the
// gate one buffer at a time, so that a cut holds back what was sent before it.
func pump(to, from net.Conn, g *gate) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			g.wait(time.Now())
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				abort(to)
			}
			g.wait(time.Now())
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// abort makes the other end see a reset instead of an end.
func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// reset breaks every connection.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		abort(c)
	}
}

// close ends everything; both gates must be open.
func (p *proxy) close() error {
	err := p.l.Close()
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.reset()
	p.wg.Wait()
	return err
}
