package raftnode

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/memnet"
)

// emptyCluster has no nodes yet.
func emptyCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, dir: t.TempDir(), net: memnet.New(), store: LogStoreWAL, nodes: map[string]*Node{},
		peers: map[string]string{"n1": "n1:7001", "n2": "n2:7001", "n3": "n3:7001"},
	}
	t.Cleanup(c.close)
	return c
}

// In whatever order and however late the initial members come, they begin one
// cluster, and not before all of them are there.
func TestOpen_AllOrders(t *testing.T) {
	for _, order := range [][]string{{"n1", "n2", "n3"}, {"n1", "n3", "n2"}, {"n2", "n1", "n3"}, {"n2", "n3", "n1"}, {"n3", "n1", "n2"}, {"n3", "n2", "n1"}} {
		synctest.Test(t, func(t *testing.T) {
			c := emptyCluster(t)
			var opening []<-chan opened
			for i, id := range order {
				if i > 0 {
					time.Sleep(10 * time.Second)
				}
				if i == 2 {
					synctest.Wait()
					for _, ch := range opening {
						if len(ch) > 0 {
							t.Errorf("%v: a cluster began without %s", order, id)
						}
					}
				}
				opening = append(opening, c.opening(id))
			}
			for _, ch := range opening {
				c.take(ch)
			}
			c.propose(c.leader(), catalog.CreateDatabase{Name: "shop"})
			c.converge()
		})
	}
}

// A voter whose directory was emptied is refused, with the commands that help;
// removed, added and promoted it takes part again.
func TestOpen_WipedVoter(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		c.propose(c.leader(), catalog.CreateDatabase{Name: "shop"})
		time.Sleep(2 * time.Second)
		id := c.followers()[0].cfg.ID
		c.stop(id)
		if err := os.RemoveAll(c.config(id).Dir); err != nil {
			t.Fatal(err)
		}
		_, err := Open(c.timeout(30*time.Second), c.config(id))
		if !errors.Is(err, ErrForgotten) || !strings.Contains(err.Error(), "cluster remove "+id) || !strings.Contains(err.Error(), "cluster add "+id) {
			t.Fatalf("open with an emptied directory: %v", err)
		}
		l := c.leader()
		if err := l.RemoveMember(c.timeout(10*time.Second), id); err != nil {
			t.Fatal(err)
		}
		n := c.join(id)
		time.Sleep(3 * time.Second)
		if err := c.leader().PromoteMember(c.timeout(10*time.Second), id); err != nil {
			t.Fatal(err)
		}
		c.converge()
		if err := c.leader().TransferLeadership(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if c.leader() != n {
			t.Error("the node that came back cannot lead")
		}
		c.propose(n, catalog.CreateDatabase{Name: "after"})
		// The others know its new directory also after they were opened anew.
		for other := range c.peers {
			if other != id {
				c.stop(other)
				c.start(other)
			}
		}
		c.propose(c.leader(), catalog.CreateDatabase{Name: "more"})
		c.converge()
	})
}

// Directories of another node, another cluster or another log store, and one in
// use, are refused.
func TestOpen_ForeignDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		c.leader()
		if _, err := Open(c.timeout(time.Second), c.config("n1")); !errors.Is(err, ErrDirInUse) {
			t.Errorf("directory in use: %v", err)
		}
		c.stop("n1")
		tests := []struct {
			name   string
			change func(*Config)
		}{
			{"other node", func(cfg *Config) { cfg.ID, cfg.RaftAddr = "n2", "n2:7001" }},
			{"other log store", func(cfg *Config) { cfg.LogStore = LogStoreBolt }},
			{"other token", func(cfg *Config) { cfg.ClusterToken = "x" }},
		}
		for _, tt := range tests {
			cfg := c.config("n1")
			tt.change(&cfg)
			if _, err := Open(c.timeout(time.Second), cfg); !errors.Is(err, ErrForeignDir) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		c.start("n1")
	})
}

// A node outside the initial cluster waits, saying for what, and never begins
// one.
func TestOpen_JoinWaitsForAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, LogStoreWAL, nil)
		c.leader()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := Open(ctx, c.config("n9")); err == nil || !strings.Contains(err.Error(), "cluster add n9") {
			t.Errorf("open before it was added: %v", err)
		}
		n := c.join("n9")
		c.propose(n, catalog.CreateDatabase{Name: "shop"})
		c.converge()
	})
}
