package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/raftnode"
)

const (
	devHost = "127.0.0.1"
	// maxDevNodes keeps the port ranges of a base port apart.
	maxDevNodes = 9
	// devReady bounds the wait for a leader.
	devReady = 60 * time.Second
)

// devFlags are the flags of a cluster in this process.
type devFlags struct {
	nodes, basePort    int
	dir                string
	logLevel, logStore string
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	c := &cobra.Command{
		Use: "dev", Short: "Run a cluster of several nodes on this machine", Args: exactArgs(0),
		Long: `Run a cluster in this process, on loopback: API ports from the base port + 1, HTTP
ports from + 101, raft ports from + 201. It prints a line that begins with "ready:"
once a leader serves, and stops cleanly on an interrupt. Without --data-dir nothing
is kept.`,
		Example: "  stave dev --data-dir ./stave-data",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runDev(c.Context(), f)
		},
	}
	c.Flags().IntVar(&f.nodes, "nodes", 3, "how many nodes")
	c.Flags().StringVar(&f.dir, "data-dir", "", "where to keep data; default: a temporary directory, deleted at exit")
	c.Flags().IntVar(&f.basePort, "base-port", 7400, "ports are counted from here")
	c.Flags().StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	c.Flags().StringVar(&f.logStore, "log-store", string(raftnode.LogStoreWAL), "store of the raft log: wal or boltdb")
	return c
}

func (a *app) runDev(ctx context.Context, f devFlags) (err error) {
	level, err := parseLevel(f.logLevel)
	if err != nil {
		return err
	}
	log, err := a.newLogger(level, "text")
	if err != nil {
		return err
	}
	a.tuneMemory()
	if f.dir == "" {
		if f.dir, err = os.MkdirTemp("", "stave-dev-*"); err != nil {
			return local("temporary directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(f.dir)) }()
	}
	d, err := openDev(ctx, f, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.awaitLeader(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if _, err := fmt.Fprintf(a.out, "ready: export STAVE_ENDPOINTS=%s\n", strings.Join(d.endpoints, ",")); err != nil {
		return local("write output: %w", err)
	}
	return d.wait(ctx)
}

// devCluster are the nodes of a cluster in this process.
type devCluster struct {
	nodes     []*runningNode
	endpoints []string
}

// openDev opens all nodes together: each of them waits for the others.
func openDev(ctx context.Context, f devFlags, log *slog.Logger) (*devCluster, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if err := f.checkDir(); err != nil {
		return nil, err
	}
	configs := f.configs(log)
	for _, c := range configs {
		if err := portFree(c.raft.RaftAddr, "--base-port"); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &devCluster{nodes: make([]*runningNode, len(configs))}
	errs := make([]error, len(configs))
	var group sync.WaitGroup
	for i, c := range configs {
		d.endpoints = append(d.endpoints, c.apiListen)
		group.Go(func() {
			if d.nodes[i], errs[i] = openNode(ctx, c); errs[i] != nil {
				cancel() // the others would wait for it
			}
		})
	}
	group.Wait()
	if err := firstCause(errs); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// firstCause prefers an error that is not only a consequence of another one.
func firstCause(errs []error) error {
	var first error
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (f devFlags) check() error {
	switch {
	case f.nodes < 1 || f.nodes > maxDevNodes:
		return usagef("--nodes %d: want 1 to %d", f.nodes, maxDevNodes)
	case f.basePort < 1 || f.basePort+201+f.nodes > 65535:
		return usagef("--base-port %d: want 1 to %d", f.basePort, 65535-201-f.nodes)
	case f.logStore != string(raftnode.LogStoreWAL) && f.logStore != string(raftnode.LogStoreBolt):
		return usagef("--log-store %q: want wal or boltdb", f.logStore)
	}
	return nil
}

func devID(i int) string { return fmt.Sprintf("n%d", i+1) }

func (f devFlags) configs(log *slog.Logger) []nodeConfig {
	addr := func(offset, i int) string { return net.JoinHostPort(devHost, fmt.Sprint(f.basePort+offset+i)) }
	cluster := map[string]string{}
	for i := range f.nodes {
		cluster[devID(i)] = addr(201, i)
	}
	out := make([]nodeConfig, f.nodes)
	for i := range f.nodes {
		out[i] = nodeConfig{apiListen: addr(1, i), httpListen: addr(101, i), raft: raftnode.Config{
			ID: devID(i), Dir: filepath.Join(f.dir, devID(i)), RaftAddr: addr(201, i), APIAddr: addr(1, i), HTTPAddr: addr(101, i),
			InitialCluster: cluster, Logger: log, LogStore: raftnode.LogStore(f.logStore),
		}}
	}
	return out
}

// checkDir refuses a directory that is not that of this many whole nodes. A node
// whose directory is gone must not come back empty: as a voter it would have
// forgotten what it acknowledged.
func (f devFlags) checkDir() error {
	var begun, missing []string
	for i := range f.nodes {
		bound, err := isBound(filepath.Join(f.dir, devID(i)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, devID(i))
		case err != nil:
			return err
		case bound:
			begun = append(begun, devID(i))
		}
	}
	if len(begun) == 0 {
		return nil
	}
	if len(missing) > 0 {
		return local("%s holds the data of %s, but that of %s is gone. Put %s back, or delete %s to begin a new cluster",
			f.dir, strings.Join(begun, ", "), strings.Join(missing, ", "), filepath.Join(f.dir, missing[0]), f.dir)
	}
	if _, err := os.Stat(filepath.Join(f.dir, devID(f.nodes))); err == nil {
		return local("%s holds the data of more than %d nodes: start it with the --nodes it was made with", f.dir, f.nodes)
	}
	return nil
}

// isBound reports whether a node's directory belongs to a cluster already.
func isBound(dir string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(dir, "identity.json"))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return false, local("read %s: %w", dir, err)
	}
	var id struct {
		Cluster string `json:"cluster_id"`
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return true, nil //nolint:nilerr // the node itself refuses it, and says more
	}
	return id.Cluster != "", nil
}

// awaitLeader returns when a node answers a linearizable read.
func (d *devCluster) awaitLeader(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, devReady)
	defer cancel()
	for {
		_, err := d.nodes[0].node.Read(ctx, raftnode.Linearizable)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no leader within %s: %w", devReady, err)
		case <-d.nodes[0].node.Done():
			return local("node stopped: %w", d.nodes[0].node.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wait returns when ctx ends, or with the error of the first node that ends by
// itself.
func (d *devCluster) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, len(d.nodes))
	for i, n := range d.nodes {
		go func() {
			err := n.wait(ctx)
			if err != nil {
				err = local("%s: %w", devID(i), err)
			}
			ends <- err
		}()
	}
	return <-ends
}

// close stops the nodes one after the other, so that leadership is handed on.
func (d *devCluster) close() error {
	var errs []error
	for _, n := range d.nodes {
		if n != nil {
			errs = append(errs, n.close())
		}
	}
	return errors.Join(errs...)
}
