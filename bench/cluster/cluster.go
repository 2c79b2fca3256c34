package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Size is the number of nodes of every cluster.
const Size = 3

// readyTimeout bounds how long nodes may take until they serve, and pollEvery is
// how often they are asked.
const (
	readyTimeout = 3 * time.Minute
	pollEvery    = 10 * time.Millisecond
)

// Cluster is three running servers of one system, with a directory of their own.
// One goroutine at a time.
type Cluster struct {
	// Kind is the system.
	Kind  Kind
	sys   system
	dir   string
	nodes []*node
}

// Start makes a new cluster below parent and returns once every node serves.
func Start(ctx context.Context, k Kind, p Programs, parent string) (*Cluster, error) {
	sys, err := newSystem(k, p)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "bench-"+string(k)+"-")
	if err != nil {
		return nil, fmt.Errorf("directory of %s: %w", k, err)
	}
	c := &Cluster{Kind: k, sys: sys, dir: dir}
	ports, err := freePorts(Size * portsPerNode)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for i := range Size {
		n := &node{name: fmt.Sprintf("n%d", i+1), ports: [portsPerNode]int(ports[i*portsPerNode:])}
		n.dir = filepath.Join(dir, n.name)
		if err := os.Mkdir(n.dir, 0o755); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		c.nodes = append(c.nodes, n)
	}
	if err := c.Run(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Endpoints are the addresses for clients, in node order.
func (c *Cluster) Endpoints() []string {
	out := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = loopback(n.ports[0])
	}
	return out
}

// HTTP is the address of a Stave node's HTTP port, where its profiles are.
func (c *Cluster) HTTP(i int) string { return loopback(c.nodes[i].ports[2]) }

// Run starts the nodes that do not run and returns once every node serves.
func (c *Cluster) Run(ctx context.Context) error {
	for i := range c.nodes {
		if err := c.launch(i); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

func (c *Cluster) launch(i int) error {
	n := c.nodes[i]
	if n.proc != nil && n.proc.running() {
		return nil
	}
	args, err := c.sys.command(c.nodes, i)
	if err != nil {
		return err
	}
	n.proc, err = startProcess(n.dir, "server.log", args)
	return err
}

// Ready returns once every node serves. A node that ends meanwhile is an error
// with the last lines of its log.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	errs := make([]error, len(c.nodes))
	var group sync.WaitGroup
	for i, n := range c.nodes {
		group.Go(func() { errs[i] = c.awaitNode(ctx, n) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func (c *Cluster) awaitNode(ctx context.Context, n *node) error {
	for {
		try, cancel := context.WithTimeout(ctx, probeTimeout)
		err := c.sys.ready(try, n)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-n.proc.done:
			return fmt.Errorf("%s node %s ended: %s", c.Kind, n.name, tail(filepath.Join(n.dir, "server.log"), 5))
		case <-ctx.Done():
			return fmt.Errorf("%s node %s is not ready: %w", c.Kind, n.name, err)
		}
	}
}

// Kill ends one node without warning.
func (c *Cluster) Kill(i int) { c.nodes[i].proc.kill() }

// Stop ends all nodes in order; their data stays for Run.
func (c *Cluster) Stop() {
	var group sync.WaitGroup
	for _, n := range c.nodes {
		if n.proc != nil {
			group.Go(n.proc.stop)
		}
	}
	group.Wait()
}

// Close ends all nodes and removes their data.
func (c *Cluster) Close() error {
	var group sync.WaitGroup
	for _, n := range c.nodes {
		if n.proc != nil {
			group.Go(n.proc.kill)
		}
	}
	group.Wait()
	return os.RemoveAll(c.dir)
}

// Resident returns the resident memory of every node in bytes.
func (c *Cluster) Resident() ([]int64, error) {
	var out []int64
	for _, n := range c.nodes {
		b, err := n.proc.resident()
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// ZooKeeperLeader asks every node of a ZooKeeper cluster for its mode and
// returns the one that leads.
func (c *Cluster) ZooKeeperLeader(ctx context.Context) (int, error) {
	for i, n := range c.nodes {
		answer, err := fourLetters(ctx, loopback(n.ports[0]), "srvr")
		if err == nil && strings.Contains(answer, "Mode: leader") {
			return i, nil
		}
	}
	return 0, errors.New("no ZooKeeper node leads")
}
