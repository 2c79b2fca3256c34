package raftnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/internal/memnet"
)

func goodHello() Hello {
	return Hello{Kind: KindPeer, Cluster: testCluster, From: "n2", To: "n1", Directory: dirOf("n2"), Build: testBuild}
}

// Every mismatch is answered with its code and a reason, and the connection is
// closed; a good hello is accepted.
func TestMux_Handshake(t *testing.T) {
	refuseDir := func(c *MuxConfig) {
		c.CheckPeer = func(node, dir string) error {
			if dir != dirOf(node) {
				return errors.New("directory of " + node + " is known as " + dirOf(node))
			}
			return nil
		}
	}
	tests := []struct {
		name   string
		mux    func(*MuxConfig)
		setup  func(*Mux)
		change func(*Hello)
		code   Code
		reason string
	}{
		{name: "good"},
		{name: "known directory", mux: refuseDir},
		{name: "kind", change: func(h *Hello) { h.Kind = 9 }, code: RefusedKind, reason: "kind 9"},
		{name: "no kind", change: func(h *Hello) { h.Kind = 0 }, code: RefusedKind, reason: "kind 0"},
		{name: "cluster", change: func(h *Hello) { h.Cluster = "other" }, code: RefusedCluster, reason: `"cluster-1" here and "other" there`},
		{name: "empty cluster", change: func(h *Hello) { h.Cluster = "" }, code: RefusedCluster, reason: `""`},
		{name: "wanted another node", change: func(h *Hello) { h.To = "n3" }, code: RefusedNode, reason: `this is node "n1", not "n3"`},
		{name: "wanted nobody", change: func(h *Hello) { h.To = "" }, code: RefusedNode, reason: `not ""`},
		{name: "own id", change: func(h *Hello) { h.From = "n1" }, code: RefusedNode, reason: "own"},
		{name: "no id", change: func(h *Hello) { h.From = "" }, code: RefusedMalformed, reason: "empty"},
		{name: "no directory", change: func(h *Hello) { h.Directory = "" }, code: RefusedMalformed, reason: "empty"},
		{name: "directory", mux: refuseDir, change: func(h *Hello) { h.Directory = "wiped" }, code: RefusedDirectory, reason: "known as dir-of-n2"},
		{
			name: "build", mux: func(c *MuxConfig) { c.MinBuild = func() uint32 { return testBuild + 1 } },
			code: RefusedBuild, reason: "build level 7",
		},
		{name: "raft not open", change: func(h *Hello) { h.Kind = KindRaft }, code: RefusedNotReady, reason: "raft"},
		{name: "no identity here", setup: func(m *Mux) { m.SetIdentity("", "") }, code: RefusedNotReady, reason: "no identity"},
		{name: "identity without handler", change: func(h *Hello) { h.Kind = KindIdentity }, code: RefusedNotReady, reason: "identity"},
		{name: "identity of another node", change: func(h *Hello) { h.Kind, h.To = KindIdentity, "n3" }, code: RefusedNode, reason: "n3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				m := newMux(t, n, "n1", tt.mux)
				p := OpenPeers(m)
				defer p.Close()
				if tt.setup != nil {
					tt.setup(m)
				}
				h := goodHello()
				if tt.change != nil {
					tt.change(&h)
				}
				c, err := n.Host("n2").Dial(t.Context(), addrOf("n1"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, err = greet(c, h)
				var refused *RefusedError
				switch {
				case tt.code == Accepted && err == nil:
				case !errors.As(err, &refused):
					t.Errorf("error %v, want code %v", err, tt.code)
				case refused.Code != tt.code || !strings.Contains(refused.Reason, tt.reason) || refused.Node != "n1":
					t.Errorf("refused %+v, want %v with %q", refused, tt.code, tt.reason)
				default:
					if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
						t.Errorf("after refusal: %v, want closed", err)
					}
				}
			})
		})
	}
}

// What is not a handshake is refused or dropped, at the latest after five
// seconds, and leaves no goroutine (the bubble would fail).
func TestMux_Handshake_Garbage(t *testing.T) {
	good, err := encodeHello(goodHello())
	if err != nil {
		t.Fatal(err)
	}
	edit := func(f func(b []byte)) []byte {
		b := bytes.Clone(good)
		f(b)
		return b
	}
	tests := []struct {
		name string
		send []byte
		code Code // Accepted: no answer at all
	}{
		{name: "nothing"},
		{name: "half a head", send: good[:5]},
		{name: "half a body", send: good[:len(good)-1]},
		{name: "http", send: []byte("GET / HTTP/1.1\r\nHost: n1\r\n\r\n"), code: RefusedMalformed},
		{name: "zeros", send: make([]byte, 4096), code: RefusedMalformed},
		{name: "welcome magic", send: edit(func(b []byte) { b[3] = 'w' }), code: RefusedMalformed},
		{name: "other version", send: edit(func(b []byte) { b[4] = 2 }), code: RefusedVersion},
		{name: "flipped bit", send: edit(func(b []byte) { b[20] ^= 4 }), code: RefusedMalformed},
		{name: "longest length", send: edit(func(b []byte) { b[6], b[7] = 255, 255 }), code: RefusedMalformed},
		{name: "trailing byte in body", send: sealHandshake(append(bytes.Clone(good[:len(good)-4]), 0)), code: RefusedMalformed},
		{name: "string beyond body", send: sealHandshake(append(bytes.Clone(good[:handshakeHead]), 200)), code: RefusedMalformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				newMux(t, n, "n1", nil)
				c, err := n.Host("n2").Dial(t.Context(), addrOf("n1"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				start := time.Now()
				if _, err := c.Write(tt.send); err != nil {
					t.Fatal(err)
				}
				w, err := readWelcome(c)
				if tt.code == Accepted {
					if !errors.Is(err, io.EOF) || time.Since(start) != stallAfter {
						t.Errorf("got %+v, %v after %v", w, err, time.Since(start))
					}
				} else if err != nil || w.Code != tt.code || time.Since(start) > time.Second {
					t.Errorf("got %+v, %v, want code %v", w, err, tt.code)
				}
			})
		})
	}
}

// The dialling side judges the answer by the same rules.
func TestMux_Dial_Mismatch(t *testing.T) {
	tests := []struct {
		name  string
		other string // the node that really listens at n2's address
		here  func(*MuxConfig)
		setup func(*Mux)
		code  Code
	}{
		{name: "another node answers", other: "n3", code: RefusedNode},
		{name: "another cluster", other: "n2", setup: func(m *Mux) { m.SetIdentity("other", "d") }, code: RefusedCluster},
		{
			name: "wiped voter", other: "n2", code: RefusedDirectory,
			here: func(c *MuxConfig) { c.CheckPeer = func(string, string) error { return errors.New("wiped") } },
		},
		{
			name: "old build", other: "n2", code: RefusedBuild,
			here: func(c *MuxConfig) { c.MinBuild = func() uint32 { return testBuild + 1 } },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				here := newMux(t, n, "n1", tt.here)
				other := newMux(t, n, tt.other, func(c *MuxConfig) { c.Addr = addrOf("n2") })
				p := OpenPeers(other)
				defer p.Close()
				if tt.setup != nil {
					tt.setup(other)
				}
				_, err := here.dial(t.Context(), KindPeer, "n2")
				var refused *RefusedError
				if !errors.As(err, &refused) || refused.Code != tt.code {
					t.Errorf("error %v, want code %v", err, tt.code)
				}
			})
		})
	}
}

// Identity questions are answered without an identity on either side, with what
// the owner knows, and end in time when the other node is mute or unreachable.
func TestAskIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		want := Answer{Node: "n1", HasLog: true, Members: []Member{
			{Node: "n1", Addr: "10.0.0.1:7601", Directory: "d1", Voter: true}, {Node: "n2", Addr: "x:1"},
		}}
		var got Question
		m := newMux(t, n, "n1", func(c *MuxConfig) {
			c.Identity = func(q Question) Answer { got = q; return want }
		})
		m.SetIdentity("", "")
		q := Question{From: "n2", Build: 3}
		for _, to := range []string{"n1", ""} {
			a, err := AskIdentity(t.Context(), n.Host("n2"), addrOf("n1"), to, q)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, a); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(q, got); d != "" {
				t.Error(d)
			}
		}
		if _, err := AskIdentity(t.Context(), n.Host("n2"), addrOf("n1"), "n7", q); !errors.Is(err, ErrRefused) {
			t.Errorf("another node: %v", err)
		}
		start := time.Now()
		n.Cut("n1", "n2")
		if _, err := AskIdentity(t.Context(), n.Host("n2"), addrOf("n1"), "", q); err == nil || time.Since(start) != stallAfter {
			t.Errorf("unreachable: %v after %v", err, time.Since(start))
		}
		n.HealAll()
		mute, err := n.Host("n9").Listen("n9:1")
		if err != nil {
			t.Fatal(err)
		}
		defer mute.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := AskIdentity(ctx, n.Host("n2"), "n9:1", "", q); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("mute: %v", err)
		}
	})
}

func FuzzReadHello(f *testing.F) {
	b, _ := encodeHello(goodHello())
	f.Add(b)
	f.Add(b[:9])
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHello(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := encodeHello(h)
		if err != nil || !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%+v encodes to %x (%v), came from %x", h, again, err, b)
		}
	})
}

func FuzzReadWelcome(f *testing.F) {
	b, _ := encodeWelcome(Welcome{Code: RefusedNode, Reason: "no", Cluster: "c", Node: "n1", Directory: "d", Build: 9})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := readWelcome(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := encodeWelcome(w)
		if err != nil || !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%+v encodes to %x (%v), came from %x", w, again, err, b)
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	b, _ := encodeAnswer(Answer{Node: "n1", Cluster: "c", HasLog: true, Members: []Member{{Node: "n1", Addr: "a:1", Voter: true}}})
	f.Add(b)
	f.Add([]byte{0, 15, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readAnswer(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := encodeAnswer(a)
		if err != nil || !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%+v encodes to %x (%v), came from %x", a, again, err, b)
		}
	})
}

// A refused node that tries again and again is logged once a minute.
func TestMux_Handshake_LogsSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		var log bytes.Buffer
		m := newMux(t, n, "n1", func(c *MuxConfig) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		other := newMux(t, n, "n2", nil)
		other.SetIdentity("other", "d")
		for range 1200 {
			if _, err := other.dial(t.Context(), KindRaft, "n1"); !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		_ = m.Close()
		if k := strings.Count(log.String(), "handshake refused"); k != 2 {
			t.Errorf("%d lines in two minutes:\n%s", k, log.String())
		}
	})
}
