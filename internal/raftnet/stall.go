package raftnet

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stallAfter is how long a connection may carry no byte inside a message, and
// how long a handshake may take altogether.
const stallAfter = 5 * time.Second

// stallStep is how often a blocked write looks whether anything moved.
const stallStep = stallAfter / 5

// stallConn makes reads and writes inside a message fail with ErrStalled after
// stallAfter without a byte, whatever longer deadline the user has set, and then
// closes the connection. A read between messages waits as long as the user
// allows.
//
// One goroutine may read while another writes; deadlines may be set and Close
// called at any time.
type stallConn struct {
	net.Conn
	inside atomic.Bool // the reading side stands in the middle of a message

	mu struct {
		sync.Mutex
		read, write time.Time // deadlines the user asked for
		readStall   time.Time // deadline of the read in progress, if inside
		armed       time.Time // read deadline the connection has
		closed      bool
		atClose     []func() // called once, by Close
	}
}

func newStallConn(c net.Conn) *stallConn { return &stallConn{Conn: c} }

// atClose makes Close call f, or calls it now if Close was called.
func (c *stallConn) atClose(f func()) {
	c.mu.Lock()
	closed := c.mu.closed
	if !closed {
		c.mu.atClose = append(c.mu.atClose, f)
	}
	c.mu.Unlock()
	if closed {
		f()
	}
}

// Read waits for the next bytes.
func (c *stallConn) Read(p []byte) (int, error) {
	inside := c.inside.Load()
	c.mu.Lock()
	if inside {
		c.mu.readStall = time.Now().Add(stallAfter)
	}
	err := c.arm()
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	k, err := c.Conn.Read(p)
	if inside {
		c.mu.Lock()
		c.mu.readStall = time.Time{}
		user := c.mu.read
		c.mu.Unlock()
		if errors.Is(err, os.ErrDeadlineExceeded) && !passed(user) {
			// A second read must not wait once more.
			_ = c.Close()
			err = fmt.Errorf("read: %w: %w", ErrStalled, err)
		}
	}
	return k, err
}

// arm gives the connection the earlier of the two read deadlines. The lock is
// held.
func (c *stallConn) arm() error {
	d := earlier(c.mu.read, c.mu.readStall)
	if d.Equal(c.mu.armed) {
		return nil
	}
	c.mu.armed = d
	return c.Conn.SetReadDeadline(d)
}

// Write sends all of p. A write is always inside a message.
func (c *stallConn) Write(p []byte) (int, error) {
	total := 0
	last := time.Now() // when a byte was last accepted
	for {
		c.mu.Lock()
		user := c.mu.write
		err := c.Conn.SetWriteDeadline(earlier(user, time.Now().Add(stallStep)))
		c.mu.Unlock()
		if err != nil {
			return total, err
		}
		k, err := c.Conn.Write(p)
		p, total = p[k:], total+k
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return total, err
		}
		c.mu.Lock()
		user = c.mu.write
		c.mu.Unlock()
		now := time.Now()
		if k > 0 {
			last = now
		}
		switch {
		case passed(user):
			return total, err
		case now.Sub(last) >= stallAfter:
			_ = c.Close()
			return total, fmt.Errorf("write: %w: %w", ErrStalled, err)
		}
	}
}

// SetDeadline sets both deadlines of the user.
func (c *stallConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets the user's read deadline; it holds for a read in
// progress too, and never extends it beyond the stall.
func (c *stallConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.read = t
	return c.arm()
}

// SetWriteDeadline sets the user's write deadline.
func (c *stallConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.write = t
	return c.Conn.SetWriteDeadline(earlier(t, time.Now().Add(stallStep)))
}

// Close ends pending reads and writes.
func (c *stallConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	fs := c.mu.atClose
	c.mu.closed, c.mu.atClose = true, nil
	c.mu.Unlock()
	for _, f := range fs {
		f()
	}
	return err
}

// earlier returns the earlier of two times; a zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// passed reports whether a time that is set has come.
func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }
