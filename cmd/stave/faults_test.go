package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/raftnode"
)

// TestMain is also the main function of nodes that a cluster under test starts:
// the server of this program, with seams through which its disk and its clock
// fail.
func TestMain(m *testing.M) {
	seams, isNode, err := testcluster.NodeSeams()
	if !isNode {
		os.Exit(m.Run())
	}
	if err == nil {
		err = runSeamed(seams, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runSeamed is "stave server" with seams.
func runSeamed(seams testcluster.Seams, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a := &app{errs: os.Stderr, env: os.LookupEnv}
	var f serverFlags
	flags := pflag.NewFlagSet("node", pflag.ContinueOnError)
	f.define(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	cfg, err := f.nodeConfig(a)
	if err != nil {
		return err
	}
	cfg.raft.Network, cfg.raft.Faults, cfg.raft.Clock = seams.Network, seams.Disk, seams.Clock
	a.tuneMemory()
	var open atomic.Pointer[raftnode.Node]
	go func() {
		_ = seams.Obey(os.Stdin, os.Stdout, open.Load) //nolint:errcheck // the end of the parent is the end of orders
		stop()
	}()
	n, err := openNode(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // asked to stop while it waited
		}
		return err
	}
	open.Store(n.node)
	return errors.Join(n.wait(ctx), n.close())
}

// nodeProcess makes the process of a node: this test binary again.
func nodeProcess(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return exec.Command(self, args...)
}

// inProcess runs a command line for scripts.
func inProcess(ctx context.Context, in io.Reader, out, errs io.Writer, env map[string]string, dial func(context.Context, string) (net.Conn, error), args []string) int {
	a := &app{in: in, out: out, errs: errs, dial: dial, env: func(k string) (string, bool) {
		v, ok := env[k]
		return v, ok || k == "GOGC" // the collector is the test's own
	}}
	return a.run(ctx, args)
}
