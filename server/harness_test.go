package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/memnet"
	"github.com/stavedb/stave/raftnode"
)

// served is one node with its server and a client that reaches it in memory.
type served struct {
	t    *testing.T
	id   string
	node *raftnode.Node
	srv  *Server
	conn *grpc.ClientConn

	catalog   pb.CatalogClient
	placement pb.PlacementClient
	kv        pb.KVClient
	watch     pb.WatchClient
	cluster   pb.ClusterClient
	ended     chan error
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// newCluster opens nodes in one process and serves each of them.
func newCluster(t *testing.T, size int, tune func(*Config)) []*served {
	t.Helper()
	net := memnet.New()
	peers := map[string]string{}
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		peers[id] = id + ":7001"
	}
	dir := t.TempDir()
	type opened struct {
		id  string
		n   *raftnode.Node
		err error
	}
	ch := make(chan opened, size)
	for id := range peers {
		go func() {
			n, err := raftnode.Open(timeout(t, time.Minute), raftnode.Config{
				ID: id, Dir: filepath.Join(dir, id), RaftAddr: id + ":7001", InitialCluster: peers, Network: net.Host(id), APIAddr: id + ":7401",
				Logger: testLog(),
			})
			ch <- opened{id, n, err}
		}()
	}
	var out []*served
	for range size {
		o := <-ch
		if o.err != nil {
			t.Fatalf("open %s: %v", o.id, o.err)
		}
		out = append(out, serveNode(t, o.id, o.n, tune))
	}
	for _, n := range out {
		n.await(30*time.Second, "ready", func() error { return n.srv.ready(t.Context()) })
		n.await(30*time.Second, "announcements", n.announced)
	}
	return out
}

// announced wants every member's API address in the node's state.
func (s *served) announced() error {
	for _, m := range s.node.Status().Members {
		if m.APIAddr == "" {
			return fmt.Errorf("%s did not announce itself", m.ID)
		}
	}
	return nil
}

func testLog() *slog.Logger {
	if os.Getenv("STAVE_TEST_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func serveNode(t *testing.T, id string, n *raftnode.Node, tune func(*Config)) *served {
	t.Helper()
	cfg := Config{Node: n, Logger: testLog(), SpoolDir: t.TempDir()}
	if tune != nil {
		tune(&cfg)
	}
	srv, err := New(cfg)
	if err != nil {
		t.Fatalf("new server: %v", err)
	}
	l := bufconn.Listen(1 << 20)
	s := &served{t: t, id: id, node: n, srv: srv, ended: make(chan error, 1)}
	go func() { s.ended <- srv.Serve(l, nil) }()
	s.conn, err = grpc.NewClient("passthrough:///"+id,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	s.catalog, s.placement, s.kv = pb.NewCatalogClient(s.conn), pb.NewPlacementClient(s.conn), pb.NewKVClient(s.conn)
	s.watch, s.cluster = pb.NewWatchClient(s.conn), pb.NewClusterClient(s.conn)
	t.Cleanup(s.close)
	return s
}

func (s *served) close() {
	if err := s.conn.Close(); err != nil {
		s.t.Errorf("close client of %s: %v", s.id, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.srv.Close(ctx); err != nil {
		s.t.Errorf("close server of %s: %v", s.id, err)
	}
	if err := <-s.ended; err != nil {
		s.t.Errorf("serve %s: %v", s.id, err)
	}
	if err := s.node.Close(); err != nil {
		s.t.Errorf("close node %s: %v", s.id, err)
	}
}

// newServed opens a cluster of one node.
func newServed(t *testing.T, tune func(*Config)) *served {
	t.Helper()
	return newCluster(t, 1, tune)[0]
}

func timeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func (s *served) ctx() context.Context { return timeout(s.t, 20*time.Second) }

// await asks again and again until there is no error.
func (s *served) await(d time.Duration, what string, f func() error) {
	s.t.Helper()
	deadline := time.Now().Add(d)
	var err error
	for time.Now().Before(deadline) {
		if err = f(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("%s of %s: %v; %+v", what, s.id, err, s.node.Status())
}

// leaderOf splits a cluster into its leader and the others.
func leaderOf(t *testing.T, nodes []*served) (leader *served, followers []*served) {
	t.Helper()
	nodes[0].await(30*time.Second, "leader", func() error {
		leader, followers = nil, nil
		for _, n := range nodes {
			if n.node.Status().Role == "leader" {
				leader = n
			} else {
				followers = append(followers, n)
			}
		}
		if leader == nil {
			return errors.New("none")
		}
		return nil
	})
	return leader, followers
}

// must fails the test on an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refusedAs wants an error with a code and returns it as callers see it.
func refusedAs(t *testing.T, err error, code catalog.Code) error {
	t.Helper()
	out := api.ErrorFromStatus(status.Convert(err))
	if api.CodeOf(out) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return out
}

// all receives a whole stream.
func all[M any](t *testing.T, s grpc.ServerStreamingClient[M], err error) []*M {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out []*M
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
}

// ordersTable makes a database and a partitioned table "shop.orders".
func (s *served) ordersTable(buckets int32) *pb.Table {
	s.t.Helper()
	must(s.catalog.CreateDatabase(s.ctx(), &pb.CreateDatabaseRequest{Name: "shop", IfNotExists: true}))(s.t)
	r := must(s.catalog.CreateTable(s.ctx(), &pb.CreateTableRequest{
		Table: "shop.orders", Columns: []*pb.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: &buckets,
	}))(s.t)
	return r.GetTable()
}

func dts(values ...string) []*pb.PartitionSpec {
	var out []*pb.PartitionSpec
	for _, v := range values {
		out = append(out, &pb.PartitionSpec{Values: []*pb.Property{{Key: "dt", Value: v}}})
	}
	return out
}
