package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// syncBuffer is a buffer that a running command writes and a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// runner runs command lines against one cluster.
type runner struct {
	endpoints []string
	in        string
	env       map[string]string
}

// output is what one command line left behind.
type output struct {
	code      int
	out, errs string
}

func (r runner) run(ctx context.Context, args ...string) output {
	var out, errs syncBuffer
	code := r.start(ctx, &out, &errs, args...)
	return output{code, out.String(), errs.String()}
}

func (r runner) start(ctx context.Context, out, errs io.Writer, args ...string) int {
	a := &app{in: strings.NewReader(r.in), out: out, errs: errs, env: func(k string) (string, bool) {
		if k == "STAVE_ENDPOINTS" && len(r.endpoints) > 0 {
			return strings.Join(r.endpoints, ","), true
		}
		v, ok := r.env[k]
		return v, ok || k == "GOGC" // the collector is the test's own
	}}
	return a.run(ctx, args)
}

// must runs a command line that succeeds and returns its output.
func (r runner) must(t testing.TB, args ...string) string {
	t.Helper()
	o := r.run(t.Context(), args...)
	if o.code != exitDone {
		t.Fatalf("stave %s: exit code %d: %s", strings.Join(args, " "), o.code, o.errs)
	}
	return o.out
}

// fails runs a command line that ends with a code and an error that contains
// every text.
func (r runner) fails(t testing.TB, code int, texts []string, args ...string) {
	t.Helper()
	o := r.run(t.Context(), args...)
	if o.code != code {
		t.Errorf("stave %s: exit code %d, want %d: %s", strings.Join(args, " "), o.code, code, o.errs)
	}
	for _, s := range texts {
		if !strings.Contains(o.errs, s) {
			t.Errorf("stave %s: error %q does not contain %q", strings.Join(args, " "), o.errs, s)
		}
	}
	if strings.Contains(o.errs, "goroutine ") {
		t.Errorf("stave %s: the error holds a stack trace: %s", strings.Join(args, " "), o.errs)
	}
}

// freeBase finds a base port whose ports for so many nodes are free. It looks
// below the range that the system takes ports of outgoing connections from.
func freeBase(t testing.TB, nodes int) int {
	t.Helper()
	for range 500 {
		base := 10_000 + rand.IntN(20_000)
		free := true
		for _, off := range []int{1, 101, 201} {
			for i := range nodes {
				free = free && portFree(fmt.Sprintf("%s:%d", devHost, base+off+i), "") == nil
			}
		}
		if free {
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}

// newDev starts a cluster in this process and returns a runner for it.
func newDev(t testing.TB, nodes int) (runner, *devCluster) {
	t.Helper()
	f := devFlags{nodes: nodes, basePort: freeBase(t, nodes), dir: t.TempDir(), logStore: "wal"}
	d, err := openDev(t.Context(), f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := d.awaitLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	return runner{endpoints: d.endpoints}, d
}

// await waits until f is true, and fails with what it says after 30 s.
func await(t testing.TB, what string, f func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ok, state := f()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s: %s", what, state)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// decode reads one JSON document.
func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}
