package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/stavedb/stave/raftnode"
	"github.com/stavedb/stave/server"
)

// closeTimeout is how long running calls may take once a node is to stop.
const closeTimeout = 5 * time.Second

// nodeConfig says how to run one node with its servers.
type nodeConfig struct {
	raft raftnode.Config
	// apiListen and httpListen are where to listen; raft.APIAddr and
	// raft.HTTPAddr are what clients are told.
	apiListen, httpListen string
	pprof                 bool
}

// runningNode is an open node that serves.
type runningNode struct {
	node   *raftnode.Node
	server *server.Server
	served chan error
}

// openNode starts a node and serves its API. The HTTP port answers probes from
// the beginning, while a new directory waits for the other initial members.
func openNode(ctx context.Context, cfg nodeConfig) (*runningNode, error) {
	if err := cfg.raft.Validate(); err != nil {
		return nil, firstUsage(err)
	}
	if err := portFree(cfg.apiListen, "--api-addr"); err != nil {
		return nil, err
	}
	http, err := listen(cfg.httpListen, "--http-addr")
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	cfg.raft.Registerer = registry
	front := server.NewFront(func() string { return "the node is opening its data directory, or waits for the other initial members" })
	fronted := make(chan error, 1)
	go func() { fronted <- front.Serve(http) }()
	n := &runningNode{served: make(chan error, 1)}
	n.node, err = raftnode.Open(ctx, cfg.raft)
	if err != nil {
		err = nodeError(cfg.raft, err)
		return nil, errors.Join(err, front.Close(ctx), <-fronted)
	}
	n.server, err = server.New(server.Config{
		Node: n.node, Logger: cfg.raft.Logger, Registerer: registry, Gatherer: registry, PProf: cfg.pprof, Front: front, SpoolDir: cfg.raft.Dir,
	})
	if err != nil {
		return nil, errors.Join(local("server: %w", err), n.node.Close(), front.Close(ctx), <-fronted)
	}
	api, err := listen(cfg.apiListen, "--api-addr")
	if err != nil {
		return nil, errors.Join(err, n.close(), <-fronted)
	}
	go func() { n.served <- errors.Join(n.server.Serve(api, nil), <-fronted) }()
	return n, nil
}

// wait returns when ctx ends, with nil, or when the node or its server has ended
// by itself.
func (n *runningNode) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.node.Done():
		return local("node stopped: %w", n.node.Err())
	case err := <-n.served:
		return local("serve: %w", err)
	}
}

// close ends calls, hands leadership over and releases the directory.
func (n *runningNode) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := n.server.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // calls were cut, as they may be
	}
	return errors.Join(err, n.node.Close())
}

func listen(addr, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(addr, flag, err)
	}
	return l, nil
}

func listenError(addr, flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return local("port %s is in use by another program: stop it, or choose another with %s", addr, flag)
	}
	return local("listen on %s (%s): %w", addr, flag, err)
}

// portFree finds a port in use before the node waits for others. Nothing listens
// on it until the node is open, so that clients are turned away at once.
func portFree(addr, flag string) error {
	l, err := listen(addr, flag)
	if err != nil {
		return err
	}
	return l.Close()
}

// nodeError says what to do about a node that does not open.
func nodeError(cfg raftnode.Config, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, raftnode.ErrClosed):
		return local("stopped before the node was open: %w", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return listenError(cfg.RaftAddr, "--raft-addr", err)
	case errors.Is(err, raftnode.ErrDirInUse):
		return local("%w: another stave runs on %s; stop it, or choose another --data-dir", err, cfg.Dir)
	case errors.Is(err, syscall.ENOSPC):
		return local("no space is left for data directory %s: %w", cfg.Dir, err)
	case errors.Is(err, syscall.EROFS):
		return local("data directory %s is on a read-only file system: %w", cfg.Dir, err)
	case errors.Is(err, fs.ErrPermission):
		return local("data directory %s cannot be written by this user: %w", cfg.Dir, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return local("data directory %s cannot be made; choose another --data-dir: %w", cfg.Dir, err)
	}
	return &localError{err: err}
}

// newLogger logs to the program's error output.
func (a *app) newLogger(level slog.Level, format string) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(a.errs, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.errs, o)), nil
	}
	return nil, usagef("--log-format %q: want text or json", format)
}

func parseLevel(s string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return 0, usagef("--log-level %q: want debug, info, warn or error", s)
	}
	return l, nil
}

// advertised is the address clients are told: the one given, else the one
// listened on, which must then not be a wildcard.
func advertised(given, listened, flag string) (string, error) {
	addr := given
	if addr == "" {
		addr = listened
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return "", fmt.Errorf("%s %q: want HOST:PORT", flag, addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", fmt.Errorf("%s %q: others cannot connect to a wildcard address; give one with %s", flag, addr, flag)
	}
	return addr, nil
}
