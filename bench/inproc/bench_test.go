// Package inproc measures three nodes in one process, over loopback and with
// synced writes: what an embedder gets without the gRPC of a server.
package inproc

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stavedb/stave/bench/load"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// openNodes opens a cluster and returns its nodes, the leader first.
func openNodes(b *testing.B, store raftnode.LogStore) []*raftnode.Node {
	b.Helper()
	members := map[string]string{}
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		members[fmt.Sprintf("n%d", i+1)] = l.Addr().String()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	var nodes []*raftnode.Node
	dir := b.TempDir()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for id, addr := range members {
		group.Go(func() {
			n, err := raftnode.Open(ctx, raftnode.Config{ID: id, Dir: filepath.Join(dir, id), RaftAddr: addr, InitialCluster: members, LogStore: store})
			if err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, n)
		})
	}
	group.Wait()
	b.Cleanup(func() {
		for _, n := range nodes {
			if err := n.Close(); err != nil {
				b.Error(err)
			}
		}
	})
	if len(nodes) != 3 {
		b.FailNow()
	}
	if _, err := nodes[0].Read(ctx, raftnode.Linearizable); err != nil {
		b.Fatal(err)
	}
	leader := nodes[0].Leader()
	slices.SortFunc(nodes, func(x, y *raftnode.Node) int {
		switch {
		case x.Status().ID == leader:
			return -1
		case y.Status().ID == leader:
			return 1
		}
		return 0
	})
	return nodes
}

// calls runs b.N calls from a number of callers and reports their median.
func calls(b *testing.B, callers int, op func(ctx context.Context, caller int) error) {
	b.Helper()
	took := make([][]time.Duration, callers)
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	for c := range callers {
		group.Go(func() {
			for next.Add(1) <= int64(b.N) {
				begin := time.Now()
				if err := op(b.Context(), c); err != nil {
					b.Error(err)
					return
				}
				took[c] = append(took[c], time.Since(begin))
			}
		})
	}
	group.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(load.Quantile(all, 0.5).Nanoseconds())/1000, "p50-us")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkRead reads linearizably on the leader and on a follower.
func BenchmarkRead(b *testing.B) {
	nodes := openNodes(b, raftnode.LogStoreWAL)
	for i, role := range []string{"leader", "follower"} {
		for _, callers := range []int{1, 256} {
			b.Run(fmt.Sprintf("%s/callers=%d", role, callers), func(b *testing.B) {
				calls(b, callers, func(ctx context.Context, _ int) error {
					_, err := nodes[i].Read(ctx, raftnode.Linearizable)
					return err
				})
			})
		}
	}
}

// BenchmarkPropose writes 200 bytes on the leader.
func BenchmarkPropose(b *testing.B) {
	for _, store := range []raftnode.LogStore{raftnode.LogStoreWAL, raftnode.LogStoreBolt} {
		b.Run(string(store), func(b *testing.B) {
			nodes := openNodes(b, store)
			value := make([]byte, 200)
			for _, callers := range []int{1, 256} {
				b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
					calls(b, callers, func(ctx context.Context, c int) error {
						_, err := nodes[0].Propose(ctx, catalog.PutKV{Key: fmt.Sprintf("k%d", c), Value: value})
						return err
					})
				})
			}
		})
	}
}
