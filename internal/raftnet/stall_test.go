package raftnet

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/memnet"
)

// report adds the median and the 99th percentile of all calls.
func report(b *testing.B, took [][]time.Duration) {
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}

// raftPair returns the two ends of a raft connection, from b to a.
func raftPair(t *testing.T, limit int64) (n *memnet.Network, dialled, accepted *chunkConn, stop func()) {
	t.Helper()
	n = memnet.New()
	la, lb := newMux(t, n, "a", nil).RaftLayer(limit), newMux(t, n, "b", nil).RaftLayer(limit)
	d, err := lb.Dial("a", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	s, err := la.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return n, d.(*chunkConn), s.(*chunkConn), func() { _ = la.Close(); _ = lb.Close() }
}

// Between messages a raft connection idles for ever; inside one, on either side
// and also in a snapshot's body, five seconds without a byte end it.
func TestRaftLayer_Stall(t *testing.T) {
	big := make([]byte, 3*maxChunk)
	head := snapshotHead(t, 1<<30)
	tests := []struct {
		name  string
		send  []byte // what arrives of a request at the accepting side
		cut   int64  // bytes that get through; 0: all
		read  int    // bytes the accepting side reads before it waits for more
		stall bool
	}{
		{name: "idle at first"},
		{name: "inside a chunk's head", send: []byte("abcdef"), cut: 2, stall: true},
		{name: "inside a chunk", send: []byte("abcdef"), cut: 7, read: 3, stall: true},
		{name: "between chunks of a message", send: big, cut: maxChunk + chunkHead, read: maxChunk, stall: true},
		{name: "after a snapshot's head", send: head, read: len(head), stall: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, d, s, stop := raftPair(t, 0)
				defer stop()
				if tt.cut > 0 {
					n.DropAfter("b", "a", tt.cut)
				}
				if _, err := d.Write(tt.send); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(s, make([]byte, tt.read)); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_ = s.SetReadDeadline(start.Add(time.Hour)) // longer than a stall: has no say inside
				_, err := s.Read(make([]byte, 1))
				want := time.Hour
				if tt.stall {
					want = stallAfter
				}
				if d := time.Since(start); err == nil || errors.Is(err, ErrStalled) != tt.stall || d != want {
					t.Errorf("read ended with %v after %v, want after %v", err, d, want)
				}
			})
		})
	}
}

// After a response the next message may take its time, even if part of it, or
// all of it, has been sent before the response; but not once it has begun.
func TestRaftLayer_Stall_Pipelined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d, s, stop := raftPair(t, 0)
		defer stop()
		n.DropAfter("b", "a", chunkHead+3+chunkHead+2)
		for _, m := range []string{"one", "two"} {
			if _, err := d.Write([]byte(m)); err != nil {
				t.Fatal(err)
			}
		}
		one := make([]byte, 100)
		if k, err := s.Read(one); string(one[:k]) != "one" || err != nil {
			t.Errorf("read %q, %v: want one message only", one[:k], err)
		}
		if _, err := s.Write([]byte("ok")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, one[:2]); string(one[:2]) != "tw" || err != nil {
			t.Errorf("read %q, %v", one[:2], err)
		}
		start := time.Now()
		if _, err := s.Read(one); !errors.Is(err, ErrStalled) || time.Since(start) != stallAfter {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A writer whose bytes are not taken fails within six seconds, and one that
// makes slow progress does not.
func TestRaftLayer_Stall_Write(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, d, s, stop := raftPair(t, 0)
		defer stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := s.br.Discard(maxChunk); err != nil {
					return
				}
				time.Sleep(4 * time.Second)
			}
		}()
		if _, err := d.Write(make([]byte, 2<<20)); err != nil {
			t.Errorf("slow but steady: %v", err)
		}
		n.CutBoth("a", "b")
		start := time.Now()
		if _, err := d.Write(make([]byte, 2<<20)); !errors.Is(err, ErrStalled) || time.Since(start) > stallAfter+stallStep {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		_ = s.Close()
		<-done
	})
}

// A snapshot whose sender falls silent half way ends after five seconds at the
// receiver, whose main goroutine is then free, and at the sender.
func TestTransport_Snapshot_Stall(t *testing.T) {
	for name, through := range map[string]int64{"after the head": 700, "in the body": 300 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free := make(chan time.Time, 1)
				c := newCluster(t, 1, clusterOptions{transport: func(_ *node, tc *TransportConfig) {
					tc.AfterSnapshot = func(_, _ uint64, ok bool) {
						if ok {
							t.Error("half a snapshot was installed")
						}
						free <- time.Now()
					}
				}})
				c.leader()
				l := c.sender("l")
				servers := raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1"}}}
				const size = 64 << 20
				req := &raft.InstallSnapshotRequest{
					RPCHeader: from("l"), SnapshotVersion: 1, Term: 99, LastLogIndex: 900, LastLogTerm: 9,
					Configuration: raft.EncodeConfiguration(servers), ConfigurationIndex: 1, Size: size,
				}
				start := time.Now()
				c.net.DropAfter("l", "n1", through)
				err := l.InstallSnapshot("n1", "n1", req, &raft.InstallSnapshotResponse{}, io.LimitReader(zeros{}, size))
				if !errors.Is(err, ErrStalled) || time.Since(start) > stallAfter+2*stallStep {
					t.Errorf("sender: %v after %v", err, time.Since(start))
				}
				if d := (<-free).Sub(start); d > stallAfter+time.Second {
					t.Errorf("receiver free after %v", d)
				}
				c.net.HealAll()
				_ = l.Close()
				c.close()
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A half-received peer frame ends the connection after five seconds, on the
// serving and on the calling side.
func TestPeers_Stall(t *testing.T) {
	for _, side := range []string{"request", "response"} {
		t.Run(side, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
				defer b.Close()
				defer a.Close()
				if _, err := a.Call(t.Context(), "b", methodEcho, nil); err != nil {
					t.Fatal(err)
				}
				if side == "request" {
					n.DropAfter("a", "b", 40)
				} else {
					n.DropAfter("b", "a", 40)
				}
				start := time.Now()
				_, err := a.Call(t.Context(), "b", methodEcho, make([]byte, 1000))
				wantPeerError(t, err, true, nil)
				if d := time.Since(start); d < stallAfter || d > stallAfter+2*stallStep {
					t.Errorf("%v after %v", err, d)
				}
				time.Sleep(2 * stallAfter)
				b.mu.Lock()
				open := len(b.mu.serving)
				b.mu.Unlock()
				if open != 0 {
					t.Errorf("serving side still holds %d connections", open)
				}
				n.HealAll()
			})
		})
	}
}

// One message cannot be longer than the bound, a snapshot's body excepted.
func TestRaftLayer_BoundsMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d, s, stop := raftPair(t, 100<<10)
		defer stop()
		go func() { _, _ = d.Write(make([]byte, 200<<10)) }()
		if k, err := io.Copy(io.Discard, s); !errors.Is(err, ErrTooLarge) || k > 100<<10 {
			t.Errorf("%d bytes, then %v", k, err)
		}
		_ = d.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		_, d, s, stop := raftPair(t, 100<<10)
		defer stop()
		head := snapshotHead(t, 1<<20)
		go func() {
			_, _ = d.Write(head)
			_, _ = d.Write(make([]byte, 1<<20))
			_ = d.Close()
		}()
		if k, err := io.Copy(io.Discard, s); err != nil || k != int64(len(head)+1<<20) {
			t.Errorf("snapshot: %d bytes, then %v", k, err)
		}
	})
}

// snapshotHead returns the head of an install-snapshot message.
func snapshotHead(t testing.TB, size int64) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{installSnapshot})
	err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(&raft.InstallSnapshotRequest{RPCHeader: from("l"), Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Whatever arrives on a raft connection, reading it neither panics nor hands out
// bytes beyond the bound.
func FuzzChunkConn(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 1, 'd'})
	head := snapshotHead(f, 100)
	f.Add(append([]byte{0, 0, 0, byte(len(head))}, head...))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := memnet.New()
		l, err := n.Host("b").Listen("b:1")
		if err != nil {
			t.Fatal(err)
		}
		c, err := n.Host("a").Dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(b[:min(len(b), 200<<10)]); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		got, err := io.ReadAll(newChunkConn(newStallConn(s), true, 1000))
		if err == nil && len(got) > len(b) {
			t.Errorf("%d bytes out of %d", len(got), len(b))
		}
		_ = s.Close()
	})
}
