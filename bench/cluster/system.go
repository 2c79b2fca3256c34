package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Kind names a system.
type Kind string

// The systems. StaveBolt is Stave with its other log store.
const (
	Stave     Kind = "stave"
	StaveBolt Kind = "stave-boltdb"
	Etcd      Kind = "etcd"
	ZooKeeper Kind = "zookeeper"
)

// Kinds are all systems, in the order they are shown.
var Kinds = []Kind{Stave, StaveBolt, Etcd, ZooKeeper}

// Programs says where the servers are.
type Programs struct {
	Stave, Etcd string
	// Java runs ZooKeeper's main class from ZooKeeperClasses, a class path.
	Java, ZooKeeperClasses string
}

// portsPerNode is how many ports a node of any system needs at most.
const portsPerNode = 3

// node is one server and where it listens.
type node struct {
	name  string
	dir   string
	ports [portsPerNode]int // client, peer, and a third one
	proc  *process
}

// system is how servers of one kind are started and asked.
type system interface {
	// command returns the arguments that start node i, after writing what files
	// it needs.
	command(nodes []*node, i int) ([]string, error)
	// ready reports why a node does not serve yet.
	ready(ctx context.Context, n *node) error
}

func newSystem(k Kind, p Programs) (system, error) {
	switch k {
	case Stave:
		return staveSystem{program: p.Stave, store: "wal"}, nil
	case StaveBolt:
		return staveSystem{program: p.Stave, store: "boltdb"}, nil
	case Etcd:
		return etcdSystem{program: p.Etcd}, nil
	case ZooKeeper:
		return zooKeeperSystem{java: p.Java, classes: p.ZooKeeperClasses}, nil
	}
	return nil, fmt.Errorf("system %q is not known, want one of %v", k, Kinds)
}

type staveSystem struct{ program, store string }

func (s staveSystem) command(nodes []*node, i int) ([]string, error) {
	var members []string
	for _, n := range nodes {
		members = append(members, n.name+"="+loopback(n.ports[1]))
	}
	n := nodes[i]
	return []string{
		s.program, "server", "--id", n.name, "--data-dir", filepath.Join(n.dir, "data"),
		"--api-addr", loopback(n.ports[0]), "--raft-addr", loopback(n.ports[1]), "--http-addr", loopback(n.ports[2]),
		"--initial-cluster", strings.Join(members, ","), "--log-store", s.store, "--log-level", "warn", "--pprof",
	}, nil
}

func (staveSystem) ready(ctx context.Context, n *node) error {
	return probe(ctx, "http://"+loopback(n.ports[2])+"/readyz")
}

type etcdSystem struct{ program string }

func (e etcdSystem) command(nodes []*node, i int) ([]string, error) {
	var members []string
	for _, n := range nodes {
		members = append(members, n.name+"=http://"+loopback(n.ports[1]))
	}
	n := nodes[i]
	client, peer := "http://"+loopback(n.ports[0]), "http://"+loopback(n.ports[1])
	return []string{
		e.program, "--name", n.name, "--data-dir", filepath.Join(n.dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new", "--log-level", "warn",
	}, nil
}

func (etcdSystem) ready(ctx context.Context, n *node) error {
	return probe(ctx, "http://"+loopback(n.ports[0])+"/health")
}

// zooKeeperSystem runs the distribution's jars with the values of its example
// configuration. Two bounds that only the number of loopback connections hits
// are lifted.
type zooKeeperSystem struct{ java, classes string }

func (z zooKeeperSystem) command(nodes []*node, i int) ([]string, error) {
	var b bytes.Buffer
	n := nodes[i]
	data := filepath.Join(n.dir, "data")
	fmt.Fprintf(&b, "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=%s\nclientPort=%d\n", data, n.ports[0])
	fmt.Fprintln(&b, "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0")
	for j, m := range nodes {
		fmt.Fprintf(&b, "server.%d=127.0.0.1:%d:%d\n", j+1, m.ports[1], m.ports[2])
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, fmt.Errorf("directory of %s: %w", n.name, err)
	}
	cfg := filepath.Join(n.dir, "zoo.cfg")
	if err := os.WriteFile(cfg, b.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", n.name, err)
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), fmt.Appendln(nil, i+1), 0o644); err != nil {
		return nil, fmt.Errorf("identity of %s: %w", n.name, err)
	}
	return []string{z.java, "-cp", z.classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg}, nil
}

// ready asks with the four-letter command "srvr", which a server that does not
// serve yet answers without a mode.
func (zooKeeperSystem) ready(ctx context.Context, n *node) error {
	answer, err := fourLetters(ctx, loopback(n.ports[0]), "srvr")
	if err != nil {
		return err
	}
	if !strings.Contains(answer, "Mode: ") {
		return fmt.Errorf("answer of %s: %s", n.name, strings.TrimSpace(answer))
	}
	return nil
}

func fourLetters(ctx context.Context, addr, command string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close() //nolint:errcheck // the answer is all that counts
	if at, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(at); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(c, command); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

func probe(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, res.Status, bytes.TrimSpace(b))
	}
	return nil
}

// probeTimeout bounds one question whether a node is ready.
const probeTimeout = 2 * time.Second
