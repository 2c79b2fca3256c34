package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

// pair returns both ends of a connection from host a to host b.
func pair(t *testing.T, n *Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Host("b").Listen("b:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = n.Host("a").Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// A connection keeps the contract of net.Conn: deadlines, concurrent use,
// close while blocked.
func TestConn_Contract(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, c2 = pair(t, New())
		return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, nil
	})
}

// Bytes arrive after the link's delay, not before, and in order.
func TestNetwork_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		c, s := pair(t, n)
		n.Delay("a", "b", 300*time.Millisecond)
		start := time.Now()
		mustWrite(t, c, "slow")
		n.Delay("a", "b", 0)
		mustWrite(t, c, "fast")
		if got := mustRead(t, s, 8); got != "slowfast" {
			t.Errorf("read %q: bytes overtook each other", got)
		}
		if d := time.Since(start); d != 300*time.Millisecond {
			t.Errorf("arrived after %v", d)
		}
		closeAll(t, n, c, s)
	})
}

// A cut holds back one direction only; healing delivers what was written.
func TestNetwork_Cut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		c, s := pair(t, n)
		n.Cut("a", "b")
		mustWrite(t, c, "held")
		mustWrite(t, s, "free")
		if got := mustRead(t, c, 4); got != "free" {
			t.Errorf("uncut direction gave %q", got)
		}
		_ = s.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read over a cut link: %v", err)
		}
		_ = s.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { n.Heal("a", "b") })
		if got := mustRead(t, s, 4); got != "held" {
			t.Errorf("after heal %q", got)
		}
		closeAll(t, n, c, s)
	})
}

// Over a cut link writes succeed until the buffer is full, then block; a close
// is not noticed.
func TestNetwork_CutFillsBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		c, s := pair(t, n)
		n.CutBoth("a", "b")
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		k, err := c.Write(make([]byte, 2*queueSize))
		if k != queueSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d: %v", k, err)
		}
		_ = c.Close()
		_ = s.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a close crossed a cut link: %v", err)
		}
		n.Heal("a", "b")
		_ = s.SetReadDeadline(time.Time{})
		all, err := io.ReadAll(s)
		if len(all) != queueSize || err != nil {
			t.Errorf("after heal %d bytes, %v", len(all), err)
		}
		closeAll(t, n, s)
	})
}

// DropAfter lets exactly that many bytes through.
func TestNetwork_DropAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		c, s := pair(t, n)
		n.DropAfter("a", "b", 5)
		mustWrite(t, c, "abc")
		mustWrite(t, c, "defgh")
		if got := mustRead(t, s, 5); got != "abcde" {
			t.Errorf("read %q", got)
		}
		_ = s.SetReadDeadline(time.Now().Add(time.Hour))
		if k, err := s.Read(make([]byte, 9)); k != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("byte 6 arrived: %d %v", k, err)
		}
		closeAll(t, n, c, s)
	})
}

// Reset fails both ends, blocked or not.
func TestNetwork_Reset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		c, s := pair(t, n)
		time.AfterFunc(time.Second, func() { n.Reset("b", "a") })
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("blocked read: %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v", err)
		}
		closeAll(t, n, c, s)
	})
}

// A dial waits over a cut link, is refused without a listener, and ends with
// its context.
func TestHost_Dial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		a, b := n.Host("a"), n.Host("b")
		if _, err := a.Dial(t.Context(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("no listener: %v", err)
		}
		l, err := b.Listen("b:1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Listen("b:1"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("second listener: %v", err)
		}
		n.Cut("b", "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Dial(ctx, "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut back path: %v", err)
		}
		time.AfterFunc(time.Minute, n.HealAll)
		c, err := a.Dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("never accepted: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
		if _, err := b.Listen("b:1"); err != nil {
			t.Errorf("listen again: %v", err)
		}
		n.Crash("b")
		_ = c.Close()
	})
}

func mustWrite(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

func mustRead(t *testing.T, c net.Conn, k int) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := io.CopyN(&b, c, int64(k)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func closeAll(t *testing.T, n *Network, cs ...net.Conn) {
	t.Helper()
	for _, c := range cs {
		_ = c.Close()
	}
	if k := n.Open(); k != 0 {
		t.Errorf("%d ends still open", k)
	}
}
