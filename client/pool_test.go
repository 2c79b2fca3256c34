package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

func mustRead(t *testing.T, c *Client) {
	t.Helper()
	if _, _, err := c.KeyValue(t.Context(), "k"); err != nil {
		t.Fatalf("read: %v\n%s", err, c.State())
	}
}

func withKey(f *fake) *fake {
	f.apply(api.Ref{}, catalog.PutKV{Key: "k", Value: []byte("v")})
	return f
}

// The client follows the leader that answers name, without being told its
// address, and knows the members beside the endpoints.
func TestPool_FollowsLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 3))
		c, err := New([]string{"n2:7401"}, WithDialer(f.net.Host("client").Dial))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mustRead(t, c)
		var at []string
		f.hook(func(n *fakeNode, _ any) error {
			at = append(at, n.id)
			return nil
		}, nil)
		for range 3 {
			if _, err := allocate(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if s := c.State(); s.Leader != "n1" || s.LeaderAddr != "n1:7401" || len(s.Nodes) != 3 || s.ClusterID != "c1" {
			t.Errorf("state %s", s)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if slices.Contains(at, "n3") || at[len(at)-1] != "n1" {
			t.Errorf("writes went to %v", at)
		}
	})
}

// A node that stops reading and writing without closing is found in under five
// seconds, and the call in flight is answered by another.
func TestPool_BlackHole(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 3))
		c := f.client()
		mustRead(t, c)
		time.Sleep(time.Hour)         // it is idle when it happens
		f.net.CutBoth("client", "n1") // the leader, which answers reads
		start := time.Now()
		mustRead(t, c)
		if d := time.Since(start); d >= 5*time.Second || d == 0 {
			t.Errorf("took %s", d)
		}
		f.net.HealAll()
	})
}

// The same for a batch and for a watch that stands still.
func TestPool_BlackHole_Streams(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 3))
		c := f.client()
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w, err := c.Watch(t.Context(), WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		synctest.Wait()
		c.pool.mu.Lock()
		hosts := map[string]bool{c.pool.mu.current.id.node: true, "n1": true}
		c.pool.mu.Unlock()
		for h := range hosts {
			f.net.CutBoth("client", h)
		}
		start := time.Now()
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatalf("%v\n%s", err, c.State())
		}
		b, err := w.Next(t.Context())
		if err != nil || b.Event == nil {
			t.Fatalf("watch: %v", err)
		}
		if d := time.Since(start); d >= 5*time.Second {
			t.Errorf("took %s", d)
		}
		f.net.HealAll()
	})
}

// Nodes that swap addresses while they are down are told apart again, and a
// node of another cluster at a reused address is never asked anything.
func TestPool_SwappedAddresses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 3))
		c := f.client()
		for range 3 {
			mustRead(t, c)
		}
		for _, n := range f.nodes {
			n.stop()
		}
		time.Sleep(3 * time.Second)
		f.locked(func() {
			f.nodes = []*fakeNode{f.start("n1", "n2:7401"), f.start("n2", "n3:7401"), f.start("n3", "n1:7401")}
			f.nodes[2].cluster = "other"
		})
		f.hook(func(n *fakeNode, _ any) error {
			if n.cluster != "c1" {
				t.Error("a node of another cluster was asked")
			}
			return nil
		}, nil)
		start := time.Now()
		for range 20 {
			mustRead(t, c)
			if _, err := allocate(t.Context(), c); err != nil {
				t.Fatalf("%v\n%s", err, c.State())
			}
			time.Sleep(time.Second / 4)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("took %s", d)
		}
		s := c.State()
		for _, n := range s.Nodes {
			want := map[string]string{"n2:7401": "n1", "n3:7401": "n2"}[n.Addr]
			if n.Connected && n.Node != want {
				t.Errorf("%s is %q, want %q", n.Addr, n.Node, want)
			}
		}
	})
}

// A node of another cluster is refused, even if nobody else answers.
func TestPool_OtherCluster(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 1))
		c := f.client(WithTimeout(3 * time.Second))
		mustRead(t, c)
		f.nodes[0].stop()
		f.locked(func() {
			f.nodes[0] = f.start("n1", "n1:7401")
			f.nodes[0].cluster = "other"
		})
		_, _, err := c.KeyValue(t.Context(), "k")
		if !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "belongs to cluster other") {
			t.Errorf("got %v", err)
		}
	})
}

// When every address changes at once the client is back within ten seconds
// through the name.
func TestPool_AllAddressesChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 3))
		hosts := []string{"n1", "n2", "n3"}
		c, err := New([]string{"dns:///stave:7401"}, WithDialer(f.net.Host("client").Dial),
			WithResolver(func(context.Context, string) ([]string, error) { return hosts, nil }))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mustRead(t, c)
		f.locked(func() {
			hosts = []string{"m1", "m2", "m3"}
			for i, n := range f.nodes {
				n.stop()
				f.nodes[i] = f.start(n.id, hosts[i]+":7401")
			}
		})
		start := time.Now()
		mustRead(t, c)
		if d := time.Since(start); d >= 10*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// A node that two addresses lead to gets one connection.
func TestPool_OneNodeByTwoNames(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 1))
		dial := f.net.Host("client").Dial
		c, err := New([]string{"alias:7401", "n1:7401"}, WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dial(ctx, strings.Replace(addr, "alias", "n1", 1))
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f.hook(func(*fakeNode, any) error { return nil }, nil)
		for range 5 {
			mustRead(t, c)
			if _, err := allocate(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		var links []*link
		for _, q := range c.pool.mu.peers {
			if q.link != nil && !slices.Contains(links, q.link) {
				links = append(links, q.link)
			}
		}
		if len(links) != 1 {
			t.Errorf("%d connections to one node", len(links))
		}
	})
}

// The final error tells what each node said last, for reads, batched or not, and
// for a write whose client could not even be registered.
func TestCallError_TellsEachNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2)
		f.hook(func(n *fakeNode, _ any) error {
			return &catalog.Error{Code: catalog.ErrUnavailable, Message: "the disk of " + n.id + " hangs"}
		}, nil)
		batched, plain := f.client(WithTimeout(3*time.Second)), f.client(WithTimeout(3*time.Second), WithBatching(false))
		for name, call := range map[string]func() error{
			"batched read": func() error { _, _, err := batched.KeyValue(t.Context(), "k"); return err },
			"read":         func() error { _, _, err := plain.KeyValue(t.Context(), "k"); return err },
		} {
			err := call()
			for _, n := range f.nodes {
				if err == nil || !strings.Contains(err.Error(), "the disk of "+n.id+" hangs") {
					t.Errorf("%s: %v, want what %s said", name, err, n.id)
				}
			}
		}
		for name, c := range map[string]*Client{"batched write": batched, "write": plain} {
			_, err := allocate(t.Context(), c)
			if !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "not registered yet") || !strings.Contains(err.Error(), "hangs") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The final error tells what was tried, and where.
func TestCallError_TellsAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2)
		reg := prometheus.NewRegistry()
		c := f.client(WithTimeout(time.Second), WithRegisterer(reg))
		if _, err := New([]string{"x:1"}, WithRegisterer(reg)); err != nil {
			t.Errorf("a second client on one registerer: %v", err)
		}
		f.hook(func(*fakeNode, any) error { return &catalog.Error{Code: catalog.ErrBusy, Message: "full"} }, nil)
		_, _, err := c.KeyValue(t.Context(), "k")
		var call *CallError
		if !errors.As(err, &call) || call.Attempts < 3 || len(call.Addresses) == 0 || !errors.Is(err, catalog.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counted := map[string]float64{}
		for _, m := range families {
			for _, s := range m.GetMetric() {
				counted[m.GetName()] += s.GetCounter().GetValue()
			}
		}
		if n := counted["stave_client_attempts_total"]; int(n) != call.Attempts || counted["stave_client_retries_total"] == 0 {
			t.Errorf("counted %v, %d told", counted, call.Attempts)
		}
		for _, n := range f.nodes {
			n.stop()
		}
		_, _, err = c.KeyValue(t.Context(), "k")
		if !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "n1:7401") {
			t.Errorf("without any node: %v", err)
		}
	})
}

// The HTTP address of a node, given as an endpoint, is told as what it is.
func TestPool_HTTPAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	c, err := New([]string{l.Addr().String()}, WithTimeout(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = c.KeyValue(t.Context(), "k")
	if !errors.Is(err, catalog.ErrUnavailable) || !strings.Contains(err.Error(), "not its HTTP address") {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(c.Close(), srv.Close()); err != nil {
		t.Error(err)
	}
	<-done
}
