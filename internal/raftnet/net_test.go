package raftnet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stavedb/stave/internal/memnet"
)

const (
	testCluster = "cluster-1"
	testBuild   = 7
)

func dirOf(node string) string  { return "dir-of-" + node }
func addrOf(node string) string { return node + ":7400" }

// anyNode resolves every node id to its usual address.
type anyNode struct{}

func (anyNode) Resolve(node string) (string, bool) { return addrOf(node), true }

// newMux returns the raft port of a node with an identity. change may alter its
// configuration.
func newMux(t testing.TB, n *memnet.Network, node string, change func(*MuxConfig)) *Mux {
	t.Helper()
	cfg := MuxConfig{Network: n.Host(node), Addr: addrOf(node), NodeID: node, Build: testBuild, Resolver: anyNode{}}
	if change != nil {
		change(&cfg)
	}
	m, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.SetIdentity(testCluster, dirOf(node))
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// await waits until ok holds, in a bubble.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func nodeNames(k int) []string {
	var names []string
	for i := range k {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	return names
}
