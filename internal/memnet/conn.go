package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// queue is one direction of a connection: bytes with the time at which they
// arrive. All fields are guarded by Network.mu.
type queue struct {
	n     *Network
	link  *link
	ready *sync.Cond // broadcast whenever a reader or writer should look again
	segs  []segment
	size  int // Invariant: the sum of len(segs[i].data); <= queueSize

	finished  bool      // the writer closed; the reader gets EOF after the bytes
	finishAt  time.Time // when the close arrives
	abandoned bool      // the reader closed; writes fail
	broken    bool      // reset: both sides fail at once
}

// segment is what one write added. Times never decrease along a queue.
type segment struct {
	at   time.Time
	data []byte
}

func newQueue(n *Network, l *link) *queue {
	return &queue{n: n, link: l, ready: sync.NewCond(&n.mu)}
}

// arrival is when a byte written now reaches the other side.
func (q *queue) arrival() time.Time {
	at := time.Now().Add(q.link.delay)
	if k := len(q.segs); k > 0 && q.segs[k-1].at.After(at) {
		return q.segs[k-1].at
	}
	return at
}

// wait blocks until something changes or the earliest of the given times that
// is set has come. The lock is held on entry and return.
func (q *queue) wait(times ...time.Time) {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		timer := time.AfterFunc(time.Until(first), func() {
			q.n.mu.Lock()
			defer q.n.mu.Unlock()
			q.ready.Broadcast()
		})
		defer timer.Stop()
	}
	q.ready.Wait()
}

// take moves bytes that have arrived into p.
func (q *queue) take(p []byte) int {
	now := time.Now()
	total := 0
	for len(q.segs) > 0 && len(p) > 0 && !q.link.cut && !q.segs[0].at.After(now) {
		want := p
		if b := q.link.budget; b >= 0 && int64(len(want)) > b {
			want = want[:b]
		}
		k := copy(want, q.segs[0].data)
		p, total, q.size = p[k:], total+k, q.size-k
		if q.segs[0].data = q.segs[0].data[k:]; len(q.segs[0].data) == 0 {
			q.segs = q.segs[1:]
		}
		if q.link.budget >= 0 {
			q.link.budget -= int64(k)
			q.link.cut = q.link.budget == 0
		}
	}
	return total
}

// conn is one end of a connection. Fields without another note are guarded by
// Network.mu.
type conn struct {
	n                     *Network
	local, remote         string // hosts; never change
	localAddr, remoteAddr Addr   // never change
	in, out               *queue // never change

	closed                bool
	readUntil, writeUntil time.Time
}

// Read returns the bytes that have arrived, waiting for the first.
func (c *conn) Read(p []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		q := c.in
		switch {
		case c.closed:
			return 0, c.fail("read", net.ErrClosed)
		case q.broken:
			return 0, c.fail("read", syscall.ECONNRESET)
		case passed(c.readUntil):
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		}
		if k := q.take(p); k > 0 {
			q.ready.Broadcast() // there is room for a writer
			return k, nil
		}
		var next time.Time
		switch {
		case q.link.cut:
		case len(q.segs) > 0:
			next = q.segs[0].at
		case q.finished && passed(q.finishAt):
			return 0, io.EOF
		case q.finished:
			next = q.finishAt
		}
		q.wait(next, c.readUntil)
	}
}

// Write queues all of p, waiting for room. It returns how much it queued when
// it fails.
func (c *conn) Write(p []byte) (int, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	total := 0
	for {
		q := c.out
		switch {
		case c.closed:
			return total, c.fail("write", net.ErrClosed)
		case q.broken:
			return total, c.fail("write", syscall.ECONNRESET)
		case q.abandoned && !q.link.cut:
			return total, c.fail("write", syscall.EPIPE)
		case passed(c.writeUntil):
			return total, c.fail("write", os.ErrDeadlineExceeded)
		}
		if k := min(len(p), queueSize-q.size); k > 0 {
			q.segs = append(q.segs, segment{at: q.arrival(), data: append([]byte(nil), p[:k]...)})
			q.size += k
			p, total = p[k:], total+k
			q.ready.Broadcast()
		}
		if len(p) == 0 {
			return total, nil
		}
		q.wait(c.writeUntil)
	}
}

// Close ends this side. What was written still arrives, then the other side
// reads EOF; what was not read is lost.
func (c *conn) Close() error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.shut()
	return nil
}

func (c *conn) shut() {
	c.closed = true
	delete(c.n.conns, c)
	c.out.finished, c.out.finishAt = true, c.out.arrival()
	c.in.abandoned = true
	c.in.ready.Broadcast()
	c.out.ready.Broadcast()
}

// reset breaks both directions. The lock is held.
func (c *conn) reset() {
	c.in.broken, c.out.broken = true, true
	c.in.ready.Broadcast()
	c.out.ready.Broadcast()
}

func (c *conn) LocalAddr() net.Addr  { return c.localAddr }
func (c *conn) RemoteAddr() net.Addr { return c.remoteAddr }

func (c *conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.readUntil, c.writeUntil = t, t })
}

func (c *conn) SetReadDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.readUntil = t })
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadlines(func() { c.writeUntil = t })
}

func (c *conn) setDeadlines(set func()) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.closed {
		return c.fail("set", net.ErrClosed)
	}
	set()
	c.in.ready.Broadcast()
	c.out.ready.Broadcast()
	return nil
}

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "mem", Source: c.localAddr, Addr: c.remoteAddr, Err: err}
}

// passed reports whether a time that is set has come.
func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }
