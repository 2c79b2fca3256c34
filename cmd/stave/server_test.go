package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stavedb/stave/raftnode"
)

// oneNode is the command line of a cluster of one node in dir; its id may be
// another than that of the initial cluster.
func oneNode(t *testing.T, id, dir string) []string {
	t.Helper()
	base := freeBase(t, 1)
	addr := func(off int) string { return fmt.Sprintf("%s:%d", devHost, base+off) }
	return []string{
		"server", "--id", id, "--data-dir", dir, "--raft-addr", addr(201), "--api-addr", addr(1), "--http-addr", addr(101),
		"--initial-cluster", id + "=" + addr(201), "--log-level", "error",
	}
}

// flagOf returns the value of a flag in a command line.
func flagOf(args []string, name string) string {
	for i, a := range args {
		if a == name {
			return args[i+1]
		}
	}
	return ""
}

// serve runs a server until the test interrupts it, which must be a clean end.
func serve(t *testing.T, args []string) (r runner, stop func()) {
	t.Helper()
	b := runner{}.background(t, args...)
	r = runner{endpoints: []string{flagOf(args, "--api-addr")}}
	await(t, "the server", func() (bool, string) {
		o := r.run(t.Context(), "database", "list", "--timeout", "1s")
		return o.code == exitDone, o.errs + b.errs.String()
	})
	return r, func() {
		if code := b.end(t); code != exitDone {
			t.Errorf("interrupted server: exit code %d: %s", code, b.errs.String())
		}
	}
}

// A server keeps what it was told across a restart, and its directory serves no
// second process, no other node and no other store meanwhile or later.
func TestServer_Directory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	args := oneNode(t, "n1", dir)
	r, stop := serve(t, args)
	r.must(t, "database", "create", "shop")
	runner{}.fails(t, exitRefused, []string{"LOCAL", dir, "stop it, or choose another --data-dir"}, oneNode(t, "n1", dir)...)
	stop()

	runner{}.fails(t, exitRefused, []string{dir + " belongs to node n1, not to n2"}, oneNode(t, "n2", dir)...)
	runner{}.fails(t, exitRefused, []string{`log store "wal", not "boltdb"`}, append(args, "--log-store", "boltdb")...)
	runner{}.fails(t, exitRefused, []string{"belongs to cluster"}, append(args, "--cluster-token", "another")...)

	r, stop = serve(t, args)
	if got := r.must(t, "database", "list"); !strings.Contains(got, "shop") {
		t.Errorf("databases after a restart: %s", got)
	}
	stop()

	if err := os.WriteFile(filepath.Join(dir, "identity.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	runner{}.fails(t, exitRefused, []string{"identity.json", "corrupt"}, args...)
}

// A port that another program has is named with the flag that chooses it.
func TestServer_PortInUse(t *testing.T) {
	for _, flag := range []string{"--raft-addr", "--api-addr", "--http-addr"} {
		t.Run(flag, func(t *testing.T) {
			args := oneNode(t, "n1", t.TempDir())
			l, err := net.Listen("tcp", flagOf(args, flag))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			runner{}.fails(t, exitRefused, []string{"LOCAL", "port " + flagOf(args, flag) + " is in use", flag}, args...)
		})
	}
}

// A data directory that cannot be made or written is refused in one sentence
// that names it.
func TestServer_BadDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, want string }{
		{"a file", file, "cannot be made; choose another --data-dir"},
		{"below a file", filepath.Join(file, "data"), "cannot be made"},
		{"where nothing can be made", "/proc/stave", "cannot be made"},
	} {
		t.Run(c.name, func(t *testing.T) {
			runner{}.fails(t, exitRefused, []string{"LOCAL", c.dir, c.want}, oneNode(t, "n1", c.dir)...)
		})
	}
}

// A full and a read-only file system are told apart, at the start.
func TestServer_BadFileSystem(t *testing.T) {
	for _, c := range []struct{ name, options, want string }{
		{"full", "size=4k,nr_inodes=3", "no space is left for data directory "},
		{"read-only", "ro", "is on a read-only file system"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := syscall.Mount("none", dir, "tmpfs", 0, strings.TrimSuffix(c.options, "ro")); err != nil {
				t.Skipf("this user may not mount a file system to try it on: %v", err)
			}
			defer func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			}()
			if c.options == "ro" {
				if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
					t.Skipf("this user may not make a file system read-only: %v", err)
				}
			}
			runner{}.fails(t, exitRefused, []string{"LOCAL", dir, c.want}, oneNode(t, "n1", filepath.Join(dir, "data"))...)
		})
	}
}

// Every way in which a node does not open has its own advice.
func TestNodeError(t *testing.T) {
	cfg := raftnode.Config{ID: "n1", Dir: "/data", RaftAddr: "h:1"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "stopped before the node was open"},
		{raftnode.ErrClosed, "stopped before the node was open"},
		{syscall.EADDRINUSE, "port h:1 is in use by another program: stop it, or choose another with --raft-addr"},
		{raftnode.ErrDirInUse, "another stave runs on /data"},
		{syscall.ENOSPC, "no space is left for data directory /data"},
		{syscall.EROFS, "data directory /data is on a read-only file system"},
		{fs.ErrPermission, "data directory /data cannot be written by this user"},
		{raftnode.ErrForgotten, raftnode.ErrForgotten.Error()},
	} {
		err := nodeError(cfg, fmt.Errorf("open: %w", c.err))
		var own *localError
		if !errors.As(err, &own) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v becomes %v, want a local error with %q", c.err, err, c.want)
		}
	}
}
