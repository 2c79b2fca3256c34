package testproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/client"
)

// long skips what takes minutes.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("STAVE_FAULTS") == "" {
		t.Skip("takes minutes: make faults runs it")
	}
}

// seeded returns randomness whose seed the log names; STAVE_SEED repeats one.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("STAVE_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatalf("STAVE_SEED %q: %v", s, err)
		}
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var programs struct {
	sync.Mutex
	dir  string
	path map[string]string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

// program builds the stave program with build tags, once.
func program(t *testing.T, tags string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if p := programs.path[tags]; p != "" {
		return p
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "stave-testproc-") //nolint:usetesting // outlives the test that builds first
		if err != nil {
			t.Fatal(err)
		}
		programs.dir, programs.path = dir, map[string]string{}
	}
	p := filepath.Join(programs.dir, "stave"+tags)
	out, err := exec.Command("go", "build", "-tags", tags, "-o", p, "../../cmd/stave").CombinedOutput()
	if err != nil {
		t.Fatalf("build with tags %q: %v\n%s", tags, err, out)
	}
	programs.path[tags] = p
	return p
}

// freePorts finds ports below the range that outgoing connections come from.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var out []int
	for port := 11_000 + rand.IntN(10_000); port < 32_000 && len(out) < n; port++ {
		if l, err := net.Listen("tcp", loopback(port)); err == nil {
			_ = l.Close()
			out = append(out, port)
		}
	}
	if len(out) < n {
		t.Fatal("no free ports")
	}
	return out
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// node is one process.
type node struct {
	id, dir, program  string
	api, raft, httpAt string
	env               []string
	cmd               *exec.Cmd
	done              chan struct{} // closed once the process was reaped
	logPath           string
}

type cluster struct {
	t     *testing.T
	flags []string
	nodes []*node
}

// newCluster lays out processes without starting them. Node i keeps its data
// below dirs[i], or below a temporary directory.
func newCluster(t *testing.T, size int, prog string, dirs []string, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, flags: flags}
	ports := freePorts(t, 3*size)
	tmp := t.TempDir()
	for i := range size {
		n := &node{
			id: fmt.Sprintf("n%d", i+1), program: prog,
			api: loopback(ports[3*i]), raft: loopback(ports[3*i+1]), httpAt: loopback(ports[3*i+2]),
		}
		n.dir, n.logPath = filepath.Join(tmp, n.id), filepath.Join(tmp, n.id+".log")
		if dirs != nil {
			n.dir = filepath.Join(dirs[i], "data")
		}
		c.nodes = append(c.nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.kill()
		}
		if t.Failed() {
			for _, n := range c.nodes {
				t.Logf("log of %s:\n%s", n.id, n.tail(30))
			}
		}
	})
	return c
}

func (c *cluster) start(nodes ...*node) {
	c.t.Helper()
	if len(nodes) == 0 {
		nodes = c.nodes
	}
	var members []string
	for _, n := range c.nodes {
		members = append(members, n.id+"="+n.raft)
	}
	for _, n := range nodes {
		args := append([]string{
			"server", "--id", n.id, "--data-dir", n.dir, "--api-addr", n.api, "--raft-addr", n.raft, "--http-addr", n.httpAt,
			"--initial-cluster", strings.Join(members, ","),
		}, c.flags...)
		log, err := os.OpenFile(n.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			c.t.Fatal(err)
		}
		n.cmd = exec.Command(n.program, args...)
		n.cmd.Stdout, n.cmd.Stderr, n.cmd.Env = log, log, append(os.Environ(), n.env...)
		n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := n.cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		_ = log.Close()
		n.done = make(chan struct{})
		go func(cmd *exec.Cmd, done chan struct{}) {
			_ = cmd.Wait() // how it ended is in ProcessState
			close(done)
		}(n.cmd, n.done)
	}
}

func (n *node) running() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

func (n *node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) }

// kill ends the process as by kill -9, also a paused one, and reaps it.
func (n *node) kill() {
	if n.running() {
		n.signal(syscall.SIGKILL)
		<-n.done
	}
}

// ended waits until the process has ended by itself and returns its state.
func (n *node) ended(d time.Duration) (*os.ProcessState, error) {
	select {
	case <-n.done:
		return n.cmd.ProcessState, nil
	case <-time.After(d):
		return nil, fmt.Errorf("%s still runs after %s", n.id, d)
	}
}

// tail returns the last lines of the process's output.
func (n *node) tail(lines int) string {
	data, err := os.ReadFile(n.logPath)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// get asks the HTTP port.
func (n *node) get(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.httpAt+path, nil)
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer r.Body.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", r.StatusCode, b)
	}
	return string(b), err
}

// metric returns the figure of one name, -1 if the node does not answer.
func (n *node) metric(name string) float64 {
	text, err := n.get("/metrics")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(text) {
		var v float64
		if rest, ok := strings.CutPrefix(line, name); ok && strings.HasPrefix(rest, "{") {
			if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' '):], &v); err == nil {
				return v
			}
		}
	}
	return -1
}

func (n *node) leads() bool { return n.metric("stave_raft_leading") == 1 }

// eventually waits until f returns nil.
func eventually(t *testing.T, d time.Duration, what string, f func() error) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		err := f()
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > d {
			t.Fatalf("%s: not within %s: %v", what, d, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ready waits until nodes serve.
func (c *cluster) ready(nodes ...*node) {
	c.t.Helper()
	if len(nodes) == 0 {
		nodes = c.nodes
	}
	for _, n := range nodes {
		eventually(c.t, time.Minute, n.id+" ready", func() error {
			if !n.running() {
				c.t.Fatalf("%s ended: %s", n.id, n.tail(10))
			}
			_, err := n.get("/readyz")
			return err
		})
	}
}

// leader waits for a node, other than one of those given, that leads.
func (c *cluster) leader(except ...*node) *node {
	c.t.Helper()
	var found *node
	eventually(c.t, time.Minute, "leader", func() error {
		for _, n := range c.nodes {
			skip := !n.running()
			for _, e := range except {
				skip = skip || e == n
			}
			if !skip && n.leads() {
				found = n
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return found
}

// client makes a client of some nodes, or all.
func (c *cluster) client(nodes ...*node) *client.Client {
	c.t.Helper()
	if len(nodes) == 0 {
		nodes = c.nodes
	}
	var eps []string
	for _, n := range nodes {
		eps = append(eps, n.api)
	}
	cl, err := client.New(eps)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cl.Close() })
	return cl
}
