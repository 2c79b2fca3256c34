package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// running is a command line that runs until it is interrupted.
type running struct {
	out, errs syncBuffer
	interrupt context.CancelFunc
	code      chan int
}

func (r runner) background(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := &running{interrupt: cancel, code: make(chan int, 1)}
	go func() { b.code <- r.start(ctx, &b.out, &b.errs, args...) }()
	t.Cleanup(cancel)
	return b
}

// end interrupts the command line and returns its exit code.
func (b *running) end(t *testing.T) int {
	t.Helper()
	b.interrupt()
	return b.wait(t)
}

// wait returns the exit code once the command line has ended.
func (b *running) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-b.code:
		return code
	case <-time.After(30 * time.Second):
		t.Fatalf("the command does not end; it printed %q and %q", b.out.String(), b.errs.String())
		return 0
	}
}

// awaitText waits until the output contains a text.
func (b *running) awaitText(t *testing.T, text string) {
	t.Helper()
	await(t, text, func() (bool, string) {
		return strings.Contains(b.out.String(), text), b.out.String() + b.errs.String()
	})
}

// devUp starts `stave dev` and returns it with a runner for its cluster.
func devUp(t *testing.T, args ...string) (*running, runner) {
	t.Helper()
	b := runner{}.background(t, append([]string{"dev"}, args...)...)
	b.awaitText(t, "ready: ")
	_, endpoints, ok := strings.Cut(strings.TrimSpace(b.out.String()), "ready: export STAVE_ENDPOINTS=")
	if !ok {
		t.Fatalf("dev printed %q", b.out.String())
	}
	return b, runner{endpoints: strings.Split(endpoints, ",")}
}

// A directory is kept across runs; with one node's folder gone it is refused; a
// directory that is gone is a new cluster with a new incarnation.
func TestDev_DataDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"--nodes", "3", "--data-dir", dir, "--base-port", fmt.Sprint(freeBase(t, 3))}
	incarnation := func(r runner) api.IncarnationText {
		return decode[api.ClusterStatus](t, r.must(t, "cluster", "status", "-o", "json")).Incarnation
	}
	b, r := devUp(t, args...)
	r.must(t, "kv", "put", "a", "kept")
	first := incarnation(r)
	if code := b.end(t); code != exitDone {
		t.Fatalf("dev ended with %d: %s", code, b.errs.String())
	}

	b, r = devUp(t, args...)
	if got := r.must(t, "kv", "get", "a", "--raw"); got != "kept" {
		t.Errorf("after a restart the key holds %q", got)
	}
	if again := incarnation(r); again != first {
		t.Errorf("incarnation %s after a restart, was %s", again, first)
	}
	runner{}.fails(t, exitRefused, []string{"in use by another program"}, append([]string{"dev"}, args...)...)
	b.end(t)
	runner{}.fails(t, exitRefused, []string{"more than 2 nodes", dir}, "dev", "--nodes", "2", "--data-dir", dir)

	if err := os.RemoveAll(filepath.Join(dir, "n2")); err != nil {
		t.Fatal(err)
	}
	runner{}.fails(t, exitRefused, []string{"n1, n3", "that of n2 is gone", "Put " + filepath.Join(dir, "n2"), "delete " + dir}, append([]string{"dev"}, args...)...)
	if _, err := os.Stat(filepath.Join(dir, "n2")); err == nil {
		t.Error("the refused start made the folder of n2")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b, r = devUp(t, args...)
	r.fails(t, exitRefused, []string{"KEY_NOT_EXIST"}, "kv", "get", "a")
	if again := incarnation(r); catalog.Incarnation(again).Number <= catalog.Incarnation(first).Number {
		t.Errorf("incarnation %s of a new directory is not above %s", again, first)
	}
	b.end(t)
}

// Without a directory nothing stays behind.
func TestDev_Temporary(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	b, r := devUp(t, "--nodes", "1", "--base-port", fmt.Sprint(freeBase(t, 1)))
	r.must(t, "database", "create", "shop")
	if code := b.end(t); code != exitDone {
		t.Errorf("dev ended with %d: %s", code, b.errs.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("dev left %v behind (%v)", left, err)
	}
}

// A command goes on when the leader goes away, and a watch misses nothing.
func TestWatch_LeaderStops(t *testing.T) {
	r, d := newDev(t, 3)
	w := r.background(t, "watch", "shop", "--from", "0", "-o", "json")
	r.must(t, "database", "create", "shop")
	r.must(t, "table", "create", "shop.t", "--column", "id INT", "--column", "p STRING", "--partition-key", "p", "--bucket-key", "id")
	w.awaitText(t, `"command":"CreateTable"`)
	leader := decode[api.ClusterStatus](t, r.must(t, "cluster", "status", "-o", "json")).Leader
	for i, n := range d.nodes {
		if n != nil && devID(i) == leader {
			if err := n.close(); err != nil {
				t.Fatal(err)
			}
			d.nodes[i] = nil
		}
	}
	for i := range 5 {
		r.must(t, "partition", "create", "shop.t", fmt.Sprintf("p=%d", i))
	}
	w.awaitText(t, `"name":"4"`)
	if code := w.end(t); code != exitDone {
		t.Errorf("an interrupted watch ended with %d: %s", code, w.errs.String())
	}
	last, names := uint64(0), ""
	for line := range strings.Lines(w.out.String()) {
		e := decode[api.Event](t, line)
		if e.Revision <= last {
			t.Errorf("revision %d after %d", e.Revision, last)
		}
		last = e.Revision
		names += e.Command + " "
	}
	if want := "CreateDatabase CreateTable " + strings.Repeat("CreatePartitions ", 5); names != want {
		t.Errorf("events: %s, want %s", names, want)
	}
}

// A node that waits for others answers probes, and stops when asked to.
func TestServer_Waiting(t *testing.T) {
	base := freeBase(t, 1)
	addr := func(off int) string { return net.JoinHostPort(devHost, fmt.Sprint(base+off)) }
	args := []string{
		"server", "--id", "n1", "--data-dir", t.TempDir(), "--raft-addr", addr(201), "--api-addr", addr(1), "--http-addr", addr(101),
		"--initial-cluster", "n1=" + addr(201) + ",n2=127.0.0.1:1", "--log-format", "json",
	}
	b := runner{}.background(t, args...)
	get := func(path string) (int, string, error) {
		resp, err := http.Get("http://" + addr(101) + path)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), err
	}
	await(t, "/livez", func() (bool, string) {
		code, _, err := get("/livez")
		return code == http.StatusOK, fmt.Sprint(code, err, b.errs.String())
	})
	if code, body, err := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "waits for the other initial members") {
		t.Errorf("readyz: %d %q %v", code, body, err)
	}
	runner{endpoints: []string{addr(1)}}.fails(t, exitUnavailable, []string{"UNAVAILABLE"}, "kv", "get", "a", "--timeout", "300ms")
	if code := b.end(t); code != exitDone {
		t.Errorf("an interrupted server ended with %d: %s", code, b.errs.String())
	}
}

// The exit code says what kind of failure it was.
func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&catalog.Error{Code: catalog.ErrTableNotExist}, exitRefused},
		{&catalog.Error{Code: catalog.ErrVersionConflict}, exitRefused},
		{errors.New("nobody knows"), exitRefused},
		{local("disk: %w", os.ErrPermission), exitRefused},
		{usagef("wrong"), exitUsage},
		{fmt.Errorf("flags: %w", usagef("wrong")), exitUsage},
		{&catalog.Error{Code: catalog.ErrUnavailable}, exitUnavailable},
		{&api.NotLeaderError{}, exitUnavailable},
		{&catalog.Error{Code: catalog.ErrBusy}, exitUnavailable},
		{context.DeadlineExceeded, exitUnavailable},
		{fmt.Errorf("put: %w: %w", catalog.ErrOutcomeUnknown, context.DeadlineExceeded), exitOutcomeUnknown},
	} {
		a := &app{errs: io.Discard}
		if got := a.report(c.err); got != c.want {
			t.Errorf("exit code of %v is %d, want %d", c.err, got, c.want)
		}
	}
}

// A run of bench is bounded, counts what it did and leaves nothing behind.
func TestBench(t *testing.T) {
	r, _ := newDev(t, 1)
	results := decode[[]benchResult](t, r.must(t, "bench", "--duration", "200ms", "--clients", "4", "-o", "json"))
	if len(results) != len(benchKinds) {
		t.Fatalf("%d kinds, want %d", len(results), len(benchKinds))
	}
	for _, b := range results {
		if b.Operations == 0 || b.Errors > 0 || b.P50US > b.P99US || b.P99US > b.MaxUS || b.DurationMS > 20_000 {
			t.Errorf("%+v", b)
		}
	}
	if out := r.must(t, "database", "list", "-o", "json") + r.must(t, "kv", "list", "-o", "json"); out != "[]\n[]\n" {
		t.Errorf("bench left behind: %s", out)
	}
}
