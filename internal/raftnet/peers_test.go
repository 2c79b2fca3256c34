package raftnet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/internal/memnet"
)

// Methods of the test handlers.
const (
	methodEcho uint8 = iota + 1
	methodFail
	methodWait // until its context ends; then says so on ended
	methodHuge
	methodUnknown
)

func newPeers(t testing.TB, m *Mux) *Peers {
	t.Helper()
	p := OpenPeers(m)
	p.Handle(methodEcho, func(_ context.Context, from string, req []byte) ([]byte, error) {
		return append([]byte(from+":"), req...), nil
	})
	p.Handle(methodFail, func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("went wrong") })
	p.Handle(methodHuge, func(context.Context, string, []byte) ([]byte, error) { return make([]byte, MaxPayload+1), nil })
	p.Handle(methodWait, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// A call returns the handler's response, its error, or why neither came.
func TestPeers_Call(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		got, err := a.Call(t.Context(), "b", methodEcho, []byte("hi"))
		if string(got) != "a:hi" || err != nil {
			t.Errorf("echo: %q, %v", got, err)
		}
		got, err = b.Call(t.Context(), "a", methodEcho, make([]byte, MaxPayload-2))
		if len(got) != MaxPayload || err != nil {
			t.Errorf("largest: %d bytes, %v", len(got), err)
		}
		if _, err = a.Call(t.Context(), "b", methodEcho, make([]byte, MaxPayload+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		for method, want := range map[uint8]RemoteError{
			methodFail:    {Node: "b", Status: StatusFailed, Message: "went wrong"},
			methodHuge:    {Node: "b", Status: StatusTooLarge},
			methodUnknown: {Node: "b", Status: StatusNoMethod},
		} {
			_, err := a.Call(t.Context(), "b", method, nil)
			var got *RemoteError
			if !errors.As(err, &got) || !cmp.Equal(*got, want) || errors.Is(err, ErrPeerUnavailable) {
				t.Errorf("method %d: %v, want %v", method, err, want)
			}
		}
		_, err = a.Call(t.Context(), "nowhere", methodEcho, nil)
		wantPeerError(t, err, false, nil)
	})
}

func wantPeerError(t *testing.T, err error, maybeSent bool, cause error) {
	t.Helper()
	var p *PeerError
	if !errors.As(err, &p) || !errors.Is(err, ErrPeerUnavailable) || p.MaybeSent != maybeSent {
		t.Errorf("error %v, want unavailable with MaybeSent=%v", err, maybeSent)
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Errorf("error %v, want cause %v", err, cause)
	}
}

// The end of the caller's time ends the call there and the handler here, also
// when the network has gone silent.
func TestPeers_Call_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		ended := make(chan time.Time, 1)
		b.Handle(methodWait, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			ended <- time.Now()
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n.Cut("b", "a")
		_, err := a.Call(ctx, "b", methodWait, nil)
		wantPeerError(t, err, false, context.DeadlineExceeded) // still dialling
		n.HealAll()
		if _, err := a.Call(t.Context(), "b", methodEcho, nil); err != nil {
			t.Fatal(err)
		}
		n.Cut("b", "a")
		start := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = a.Call(ctx, "b", methodWait, nil)
		wantPeerError(t, err, true, context.DeadlineExceeded)
		if d := time.Since(start); d != time.Second {
			t.Errorf("call ended after %v", d)
		}
		if d := (<-ended).Sub(start); d != time.Second {
			t.Errorf("handler ended after %v", d)
		}
		n.HealAll()
	})
}

// A request that takes long is not a broken connection; a silent network is,
// after five seconds, and the next call dials again.
func TestPeers_SilentNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		b.Handle(methodWait, func(context.Context, string, []byte) ([]byte, error) {
			time.Sleep(time.Minute)
			return []byte("late"), nil
		})
		if got, err := a.Call(t.Context(), "b", methodWait, nil); string(got) != "late" || err != nil {
			t.Errorf("long request: %q, %v", got, err)
		}
		time.Sleep(time.Hour)
		if _, err := a.Call(t.Context(), "b", methodEcho, nil); err != nil {
			t.Errorf("after an idle hour: %v", err)
		}
		n.CutBoth("a", "b")
		start := time.Now()
		_, err := a.Call(t.Context(), "b", methodEcho, nil)
		wantPeerError(t, err, true, ErrStalled)
		if d := time.Since(start); d < stallAfter || d > stallAfter+2*stallStep {
			t.Errorf("given up after %v", d)
		}
		n.HealAll()
		if _, err := a.Call(t.Context(), "b", methodEcho, nil); err != nil {
			t.Errorf("after the heal: %v", err)
		}
		time.Sleep(time.Minute)
	})
}

// A silent connection is also given up if no single call waits as long as that.
func TestPeers_SilentNetwork_ShortCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		call := func() (p *PeerError) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := a.Call(ctx, "b", methodEcho, nil)
			errors.As(err, &p)
			return p
		}
		if err := call(); err != nil {
			t.Fatal(err)
		}
		n.CutBoth("a", "b")
		start := time.Now()
		for err := call(); err == nil || err.MaybeSent; err = call() {
			if time.Since(start) > stallAfter+2*stallStep {
				t.Fatalf("still on the silent connection after %v: %v", time.Since(start), err)
			}
		}
		if d := time.Since(start); d < stallAfter {
			t.Errorf("given up after %v", d)
		}
		n.HealAll()
		for end := time.Now().Add(stallAfter); call() != nil; {
			if time.Now().After(end) {
				t.Fatal("no call gets through after the heal")
			}
		}
	})
}

// A connection that breaks fails every waiting call at once; calls to a node
// that is gone fail without having been sent; a restarted node is found again.
func TestPeers_Restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a := newPeers(t, newMux(t, n, "a", nil))
		mb := newMux(t, n, "b", nil)
		b := newPeers(t, mb)
		defer a.Close()
		errs := make(chan error)
		for range 20 {
			go func() {
				_, err := a.Call(t.Context(), "b", methodWait, nil)
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		n.Crash("b")
		for range 20 {
			wantPeerError(t, <-errs, true, nil)
		}
		if time.Since(start) != 0 {
			t.Errorf("took %v", time.Since(start))
		}
		_, err := a.Call(t.Context(), "b", methodEcho, nil)
		wantPeerError(t, err, false, nil)
		_ = b.Close()
		_ = mb.Close()
		b = newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		if _, err := a.Call(t.Context(), "b", methodEcho, nil); err != nil {
			t.Errorf("after the restart: %v", err)
		}
	})
}

// Close fails waiting calls and ends handlers' contexts.
func TestPeers_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		errs := make(chan error)
		for range 3 {
			go func() {
				_, err := a.Call(t.Context(), "b", methodWait, nil)
				errs <- err
			}()
		}
		synctest.Wait()
		_ = a.Close()
		for range 3 {
			wantPeerError(t, <-errs, true, ErrClosed)
		}
		_, err := a.Call(t.Context(), "b", methodEcho, nil)
		wantPeerError(t, err, false, ErrClosed)
		_ = b.Close()
		if k := n.Open(); k != 0 {
			t.Errorf("%d ends open", k)
		}
	})
}

// Disconnect closes connections both ways, so that a node with a new directory
// id is judged anew.
func TestMux_Disconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		var refuse atomic.Bool
		ma := newMux(t, n, "a", func(c *MuxConfig) {
			c.CheckPeer = func(string, string) error {
				if refuse.Load() {
					return errors.New("removed")
				}
				return nil
			}
		})
		a, b := newPeers(t, ma), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		for from, to := range map[*Peers]string{a: "b", b: "a"} {
			if _, err := from.Call(t.Context(), to, methodEcho, nil); err != nil {
				t.Fatal(err)
			}
		}
		refuse.Store(true)
		ma.Disconnect("b")
		if k := n.Open(); k > 2 { // b may not have closed its ends yet
			t.Errorf("%d ends open", k)
		}
		synctest.Wait()
		for from, to := range map[*Peers]string{a: "b", b: "a"} {
			var r *RefusedError
			if _, err := from.Call(t.Context(), to, methodEcho, nil); !errors.As(err, &r) || r.Code != RefusedDirectory {
				t.Errorf("call to %s: %v", to, err)
			}
		}
	})
}

// Responses reach their callers whatever happens to connections meanwhile: 64
// callers, cuts, resets and crashes. A call that says it was not sent was never
// seen by a handler.
func TestPeers_ManyCallersUnderFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		var seen sync.Map
		b.Handle(methodEcho, func(_ context.Context, _ string, req []byte) ([]byte, error) {
			seen.Store(string(req[:16]), true)
			return req, nil
		})
		n.Delay("a", "b", 200*time.Microsecond)
		n.Delay("b", "a", 200*time.Microsecond)
		var wg sync.WaitGroup
		var ok, unsent, unknown atomic.Int64
		for caller := range uint64(64) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				r := rand.New(rand.NewPCG(seed, caller))
				for i := range uint64(100) {
					req := make([]byte, 16+r.IntN(3000))
					binary.BigEndian.PutUint64(req, caller)
					binary.BigEndian.PutUint64(req[8:], i)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(50))*time.Millisecond)
					got, err := a.Call(ctx, "b", methodEcho, req)
					cancel()
					var p *PeerError
					switch {
					case err == nil && bytes.Equal(got, req):
						ok.Add(1)
					case err == nil:
						t.Error("another call's response")
					case errors.As(err, &p) && p.MaybeSent:
						unknown.Add(1)
					case p != nil:
						unsent.Add(1)
						if _, bad := seen.Load(string(req[:16])); bad {
							t.Errorf("call said not sent was served: %v", err)
						}
					default:
						t.Errorf("unexpected: %v", err)
					}
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
				}
			}()
		}
		stop := make(chan struct{})
		go func() { wg.Wait(); close(stop) }()
		r := rand.New(rand.NewPCG(seed, 1000))
		for faulty := true; faulty; {
			switch r.IntN(4) {
			case 0:
				n.Cut("a", "b")
			case 1:
				n.Cut("b", "a")
			case 2:
				n.Reset("a", "b")
			case 3:
				n.DropAfter("b", "a", int64(r.IntN(5000)))
			}
			select {
			case <-time.After(time.Duration(r.IntN(30)) * time.Millisecond):
			case <-stop:
				faulty = false
			}
			n.HealAll()
			if faulty {
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
			}
		}
		t.Logf("%d answered, %d not sent, %d unknown", ok.Load(), unsent.Load(), unknown.Load())
		if ok.Load() == 0 || unknown.Load() == 0 {
			t.Error("the faults tested nothing")
		}
	})
}

// More requests than one connection may have in progress are answered busy.
func TestPeers_Busy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := newPeers(t, newMux(t, n, "a", nil)), newPeers(t, newMux(t, n, "b", nil))
		defer b.Close()
		defer a.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range maxInProgressBytes / MaxPayload {
			wg.Add(1)
			go func() {
				defer wg.Done()
				_, _ = a.Call(ctx, "b", methodWait, make([]byte, MaxPayload))
			}()
		}
		synctest.Wait()
		var r *RemoteError
		if _, err := a.Call(t.Context(), "b", methodWait, []byte{1}); !errors.As(err, &r) || r.Status != StatusBusy {
			t.Errorf("got %v, want busy", err)
		}
		cancel()
		wg.Wait()
	})
}

func FuzzReadFrame(f *testing.F) {
	add := func(x frame) { f.Add(append(appendFrameHead(nil, &x), x.payload...)) }
	add(frame{typ: frameRequest, tag: 3, id: 9, budget: time.Second, payload: []byte("abc")})
	add(frame{typ: framePing})
	f.Add(bytes.Repeat([]byte{0, 31, 255, 255}, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := readFrame(bufio.NewReader(bytes.NewReader(b)), func(bool) {})
		if err != nil {
			return
		}
		again := append(appendFrameHead(nil, &x), x.payload...)
		if !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%+v encodes to %x, came from %x", x, again, b)
		}
	})
}

// A node behind a real socket answers as one in memory does.
func TestPeers_TCP(t *testing.T) {
	a, _ := tcpPair(t)
	for i := range 100 {
		got, err := a.Call(t.Context(), "b", methodEcho, fmt.Append(nil, i))
		if want := fmt.Sprint("a:", i); string(got) != want || err != nil {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	}
}

func tcpPair(t testing.TB) (a, b *Peers) {
	t.Helper()
	addrs := Static{}
	open := func(id string) *Peers {
		m, err := Listen(MuxConfig{Addr: "127.0.0.1:0", NodeID: id, Resolver: addrs})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		addrs[id] = m.Addr().(*net.TCPAddr).String()
		return newPeers(t, m)
	}
	a, b = open("a"), open("b")
	for _, p := range []*Peers{a, b} {
		p.m.SetIdentity(testCluster, dirOf(p.m.NodeID()))
	}
	return a, b
}

func BenchmarkPeers_Call(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			a, _ := tcpPair(b)
			req := make([]byte, 32)
			if _, err := a.Call(b.Context(), "b", methodEcho, req); err != nil {
				b.Fatal(err)
			}
			took := make([][]time.Duration, callers)
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i := range callers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range b.N/callers + 1 {
						start := time.Now()
						if _, err := a.Call(b.Context(), "b", methodEcho, req); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(start))
					}
				}()
			}
			wg.Wait()
			b.StopTimer()
			report(b, took)
		})
	}
}
