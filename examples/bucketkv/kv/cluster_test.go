package kv_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/examples/bucketkv/kv"
	"github.com/stavedb/stave/raftnode"
	"github.com/stavedb/stave/routing"
	"github.com/stavedb/stave/server"
)

const orders = "shop.orders"

// freePort returns a loopback address that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// newCluster starts a node and returns the address of its API.
func newCluster(t *testing.T) string {
	t.Helper()
	dir, raft := t.TempDir(), freePort(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, err := raftnode.Open(t.Context(), raftnode.Config{
		ID: "n1", Dir: filepath.Join(dir, "n1"), RaftAddr: raft, InitialCluster: map[string]string{"n1": raft}, APIAddr: l.Addr().String(),
	})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Config{Node: n, SpoolDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l, nil) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = srv.Close(ctx)
		<-done
		_ = n.Close()
	})
	return l.Addr().String()
}

func newClient(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.New([]string{addr}, client.WithTimeout(40*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// startKV starts a bucket server and returns what ends it.
func startKV(t *testing.T, api string, id catalog.ServerID, dir string) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := kv.New(kv.Config{ID: id, Dir: dir, TTL: 3 * time.Second, Client: newClient(t, api)})
	go func() { done <- s.Run(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server %d: %v", id, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func mustDo(t *testing.T, c *client.Client, cmds ...catalog.Command) {
	t.Helper()
	for _, cmd := range cmds {
		if _, err := c.Do(t.Context(), cmd); err != nil {
			t.Fatalf("%s: %v", cmd.Kind(), err)
		}
	}
}

func specs(name string) []catalog.PartitionSpec {
	return []catalog.PartitionSpec{{{Key: "dt", Value: name}}}
}

// S64 and the whole way: while a table is rescaled, a partition dropped and made
// again, and the server that leads buckets lost, every acknowledged row is
// readable, in the one bucket of its key.
func TestBucketKV_NothingLost(t *testing.T) {
	addr, dir := newCluster(t), t.TempDir()
	c := newClient(t, addr)
	stop := map[catalog.ServerID]func(){}
	for id := range catalog.ServerID(3) {
		stop[id] = startKV(t, addr, id, dir)
	}
	awaitServers(t, c, 3)
	mustDo(t, c, catalog.CreateDatabase{Name: "shop"}, catalog.CreateTable{
		Table: orders, Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: catalog.Some[int32](4),
		Properties: []catalog.Property{{Key: "table.replication.factor", Value: "2"}},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	table, err := kv.OpenTable(ctx, c, orders)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	h := history{rows: map[string]acked{}, home: map[string]int32{}}
	phase := func(name string, partitions ...string) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				p := partitions[i%len(partitions)]
				h.put(ctx, t, table, int32(i), p, fmt.Sprint(name, i))
			})
		}
		wg.Wait()
		h.check(ctx, t, table)
	}
	phase("first", "p1", "p2")
	mustDo(t, c, catalog.RescaleTable{Table: orders, Buckets: 6})
	phase("rescaled", "p1", "p3")
	mustDo(t, c, catalog.DropPartitions{Table: orders, Specs: specs("p1")}, catalog.CreatePartitions{Table: orders, Specs: specs("p1")})
	h.dropped("p1")
	phase("made again", "p1", "p2")
	stop[1]() // what it led goes to others once its lease is over
	phase("a server lost", "p1", "p2", "p3")
	stop[1] = startKV(t, addr, 1, dir)
	phase("back", "p1", "p2", "p3")
	if len(h.counts) != 2 || !h.counts[4] || !h.counts[6] {
		t.Errorf("counts seen: %v, want 4 and 6", h.counts)
	}
	if len(h.servers) != 3 {
		t.Errorf("rows written by servers %v, want three", h.servers)
	}
}

func awaitServers(t *testing.T, c *client.Client, n int) {
	t.Helper()
	w, err := c.Watch(t.Context(), client.WatchOptions{Snapshot: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	seen := map[catalog.ServerID]bool{}
	for len(seen) < n {
		b, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range b.Rows {
			if s, ok := o.(*catalog.Server); ok {
				seen[s.ID] = true
			}
		}
		if b.Event == nil {
			continue
		}
		for _, ch := range b.Event.Changes {
			if s, ok := ch.After.(*catalog.Server); ok {
				seen[s.ID] = true
			}
		}
	}
}

type acked struct {
	key       int32
	partition string
	value     string
}

// history is what was acknowledged, and where.
type history struct {
	mu      sync.Mutex
	rows    map[string]acked
	home    map[string]int32 // by partition id and key
	counts  map[int32]bool
	servers map[int32]bool
}

func rowOf(a int32, dt string) []routing.Value {
	return []routing.Value{routing.Int(a), routing.String(dt)}
}

// place checks that a key of a partition id has one bucket for ever.
func (h *history) place(t *testing.T, key int32, r routing.Route) {
	k := fmt.Sprint(r.Table, "/", r.Partition, "/", key)
	if b, ok := h.home[k]; ok && b != r.Bucket {
		t.Errorf("%s is in bucket %d and %d", k, b, r.Bucket)
	}
	h.home[k] = r.Bucket
	if h.counts == nil {
		h.counts, h.servers = map[int32]bool{}, map[int32]bool{}
	}
	h.counts[r.Count] = true
}

func (h *history) put(ctx context.Context, t *testing.T, table *kv.Table, key int32, partition, value string) {
	r, err := table.Put(ctx, rowOf(key, partition), []byte(value))
	if err != nil {
		t.Errorf("put %d into %s: %v", key, partition, err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.place(t, key, r)
	h.rows[fmt.Sprint(partition, "/", key)] = acked{key, partition, value}
}

func (h *history) dropped(partition string) {
	for k, a := range h.rows {
		if a.partition == partition {
			delete(h.rows, k)
		}
	}
}

func (h *history) check(ctx context.Context, t *testing.T, table *kv.Table) {
	t.Helper()
	for k, a := range h.rows {
		got, r, err := table.Get(ctx, rowOf(a.key, a.partition))
		if err != nil || string(got.GetValue()) != a.value {
			t.Errorf("%s: %q, %v, want %q", k, got.GetValue(), err, a.value)
			continue
		}
		h.place(t, a.key, r)
		h.servers[got.GetServerId()] = true
	}
}

// A second server with the id of a living one is refused, and says so.
func TestBucketKV_IDInUse(t *testing.T) {
	addr := newCluster(t)
	c := newClient(t, addr)
	startKV(t, addr, 1, t.TempDir())
	awaitServers(t, c, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = kv.New(kv.Config{ID: 1, Dir: t.TempDir(), TTL: time.Second, Client: c}).Run(ctx, l)
	if !errors.Is(err, catalog.ErrServerIDInUse) {
		t.Errorf("%v", err)
	}
}
