package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/internal/memnet"
	"github.com/stavedb/stave/raftnode"
	"github.com/stavedb/stave/server"
)

// member is one real node with its server.
type member struct {
	id    string
	node  *raftnode.Node
	srv   *server.Server
	ended chan error
}

// cluster is three real nodes over a network in memory.
type cluster struct {
	t       *testing.T
	net     *memnet.Network
	dir     string
	peers   map[string]string
	members map[string]*member
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, net: memnet.New(), dir: t.TempDir(), peers: map[string]string{}, members: map[string]*member{}}
	for _, id := range []string{"n1", "n2", "n3"} {
		c.peers[id] = id + ":7001"
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for id := range c.peers {
		wg.Go(func() {
			m := c.open(id)
			mu.Lock()
			defer mu.Unlock()
			c.members[id] = m
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, m := range c.members {
			m.stop()
		}
	})
	return c
}

func (c *cluster) open(id string) *member {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	n, err := raftnode.Open(ctx, raftnode.Config{
		ID: id, Dir: filepath.Join(c.dir, id), RaftAddr: id + ":7001", InitialCluster: c.peers, Network: c.net.Host(id), APIAddr: id + ":7401",
	})
	if err != nil {
		c.t.Errorf("open %s: %v", id, err)
		return nil
	}
	srv, err := server.New(server.Config{Node: n, SpoolDir: c.dir})
	if err != nil {
		c.t.Errorf("server of %s: %v", id, err)
		return nil
	}
	l, err := c.net.Host(id).Listen(id + ":7401")
	if err != nil {
		c.t.Errorf("listen of %s: %v", id, err)
		return nil
	}
	m := &member{id: id, node: n, srv: srv, ended: make(chan error, 1)}
	go func() { m.ended <- srv.Serve(l, nil) }()
	return m
}

// stop ends a node at once: calls in flight get no time.
func (m *member) stop() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.srv.Close(ctx)
	<-m.ended
	_ = m.node.Close()
}

func (c *cluster) client(opts ...client.Option) *client.Client {
	c.t.Helper()
	cl, err := client.New([]string{"n1:7401", "n2:7401", "n3:7401"}, append([]client.Option{client.WithDialer(c.net.Host("client").Dial)}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cl.Close() })
	return cl
}

// While leaders are killed under load, every acknowledged command took effect
// exactly once, a watch sees each of them once, and no call fails for good.
func TestCluster_LeadersKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		cl := c.client(client.WithTimeout(2 * time.Minute))
		w, err := cl.Watch(t.Context(), client.WatchOptions{Snapshot: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		const callers, each = 16, 40
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids := map[uint64]bool{}
		for caller := range callers {
			wg.Go(func() {
				for i := range each {
					res, err := cl.Do(t.Context(), catalog.AllocateIDs{Counter: "jobs", Count: 1})
					if err != nil {
						t.Errorf("allocate: %v", err)
						return
					}
					id, _ := res.FirstID()
					if _, err := cl.Do(t.Context(), catalog.PutKV{
						Key: fmt.Sprintf("job/%d/%d", caller, i), ExpectedVersion: catalog.Some[uint64](0),
					}); err != nil {
						t.Errorf("put: %v", err)
						return
					}
					mu.Lock()
					if ids[id] {
						t.Errorf("id %d was given twice", id)
					}
					ids[id] = true
					mu.Unlock()
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		for range 2 {
			time.Sleep(300 * time.Millisecond)
			lead := c.members[cl.State().Leader]
			if lead == nil {
				continue
			}
			lead.stop()
			time.Sleep(3 * time.Second)
			c.members[lead.id] = c.open(lead.id)
		}
		wg.Wait()
		rows, meta, err := cl.KeyValues(t.Context(), "job/")
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != callers*each || len(ids) != callers*each {
			t.Errorf("%d rows and %d ids for %d jobs", len(rows), len(ids), callers*each)
		}
		for _, r := range rows {
			if r.Version != 1 {
				t.Errorf("%s was written %d times", r.Key, r.Version)
			}
		}
		res, err := cl.Do(t.Context(), catalog.AllocateIDs{Counter: "jobs", Count: 1})
		if id, _ := res.FirstID(); err != nil || id != callers*each {
			t.Errorf("the next id is %d, want %d: %v", id, callers*each, err)
		}
		checkSeen(t, w, rows, meta.Revision)
		t.Log(cl.State())
	})
}

// checkSeen reads a watch up to a revision and compares what it told with the
// rows of that revision.
func checkSeen(t *testing.T, w *client.Watcher, rows []*catalog.KeyValue, until catalog.Revision) {
	t.Helper()
	seen := map[string]int{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for last := catalog.Revision(0); last < until; {
		b, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("watch at %d of %d: %v", last, until, err)
		}
		if b.Revision < last {
			t.Errorf("revision %d after %d", b.Revision, last)
		}
		last = b.Revision
		if b.Snapshot {
			clear(seen)
		}
		for _, o := range b.Rows {
			if kv, ok := o.(*catalog.KeyValue); ok {
				seen[kv.Key]++
			}
		}
		if b.Event != nil {
			for _, c := range b.Event.Changes {
				if kv, ok := c.After.(*catalog.KeyValue); ok {
					seen[kv.Key]++
				}
			}
		}
	}
	for _, r := range rows {
		if seen[r.Key] != 1 {
			t.Errorf("the watch told %s %d times", r.Key, seen[r.Key])
		}
	}
}

// The typed reads see what the commands made, each list from one state.
func TestCluster_Reads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t).client()
		ctx := t.Context()
		for _, cmd := range []catalog.Command{
			catalog.CreateDatabase{Name: "shop"},
			catalog.CreateTable{
				Table: "shop.orders", Columns: []catalog.NewColumn{{Name: "a", Type: "INT NOT NULL"}, {Name: "dt", Type: "STRING NOT NULL"}},
				PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: catalog.Some[int32](4),
			},
			catalog.CreatePartitions{Table: "shop.orders", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "2026"}}}},
			catalog.RescaleTable{Table: "shop.orders", Buckets: 8},
			catalog.CreatePartitions{Table: "shop.orders", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "2027"}}}},
		} {
			if _, err := cl.Do(ctx, cmd); err != nil {
				t.Fatalf("%s: %v", cmd.Kind(), err)
			}
		}
		all, meta, err := cl.Partitions(ctx, "shop.orders")
		if err != nil || len(all.Partitions) != 2 || all.Table.Buckets != 8 {
			t.Fatalf("partitions: %+v, %v", all, err)
		}
		for i, want := range []int32{4, 8} {
			row, m, err := cl.Partition(ctx, "shop.orders", all.Partitions[i].Name, client.AtLeast(meta.Revision), client.In(meta.Incarnation))
			if n, cerr := row.Buckets(); err != nil || cerr != nil || n != want || m.Revision < meta.Revision {
				t.Errorf("partition %d has %d buckets, want %d: %v, %v", i, n, want, err, cerr)
			}
		}
		tables, _, err := cl.Tables(ctx, "shop")
		if err != nil || len(tables) != 1 {
			t.Errorf("tables: %v, %v", tables, err)
		}
		dbs, m, err := cl.Databases(ctx, client.Stale())
		if err != nil || m.Age < 0 || len(dbs) > 1 {
			t.Errorf("databases: %v, %+v, %v", dbs, m, err)
		}
		lay, _, err := cl.Layout(ctx, "shop.orders", []string{"2027", "none"})
		if err != nil || len(lay.Partitions) != 1 {
			t.Errorf("layout: %+v, %v", lay, err)
		}
		if _, _, err := cl.Table(ctx, "shop.none"); !errors.Is(err, catalog.ErrTableNotExist) {
			t.Errorf("table: %v", err)
		}
		if _, err := cl.Do(ctx, catalog.RescaleTable{Table: "shop.orders", Buckets: 2, ExpectedEpoch: catalog.Some[catalog.Epoch](9)}); !errors.Is(err, catalog.ErrVersionConflict) {
			t.Errorf("rescale: %v", err)
		}
		if _, _, err := cl.Table(ctx, "shop.orders", client.In(catalog.Incarnation{Number: 1, Random: 1})); !errors.Is(err, catalog.ErrRestored) {
			t.Errorf("another incarnation: %v", err)
		}
		w, err := cl.Watch(ctx, client.WatchOptions{
			From: catalog.Some[catalog.Revision](0), Until: catalog.Some(meta.Revision), Filter: client.WatchFilter{Table: "shop.orders"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		events := 0
		for {
			b, err := w.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if !b.Bookmark() {
				events++
			}
		}
		if events != 4 {
			t.Errorf("%d events of the table, want 4", events)
		}
	})
}
