package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/raftnode"
)

// Cluster is a cluster under test. Orders may be given concurrently.
type Cluster struct {
	b       backend
	cfg     Config
	ids     []string
	spares  []string
	began   time.Time
	archive *raftnode.Node

	mu      sync.Mutex
	running map[string]bool
	paused  map[string]bool
	cuts    map[[2]string]bool
	delays  map[[2]string]time.Duration
	drops   context.CancelFunc // ends the loop that drops; nil: none
	dropped chan struct{}      // closed when that loop has ended
	last    []string           // what the last order named
	leader  string             // the last leader seen
	counts  map[string]int
	meters  map[string]*meter
	events  []Event
	applied uint64 // of the archive when it was closed
	once    sync.Once
}

// Event is one order as it was carried out.
type Event struct {
	At   time.Duration
	Kind string
	Text string
}

// NewSim makes a cluster in virtual time; call it inside a bubble.
func NewSim(cfg Config) *Cluster {
	cfg = cfg.withDefaults()
	c := newCluster(cfg)
	c.b = newSim(cfg, c.ids, c.spares)
	return c
}

// NewProc makes a cluster of processes.
func NewProc(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	c := newCluster(cfg)
	b, err := newProc(cfg, c.ids, c.spares)
	if err != nil {
		return nil, err
	}
	c.b = b
	return c, nil
}

func nodeID(i int) string { return fmt.Sprintf("n%d", i+1) }

func newCluster(cfg Config) *Cluster {
	c := &Cluster{
		cfg: cfg, began: time.Now(), running: map[string]bool{}, paused: map[string]bool{}, cuts: map[[2]string]bool{},
		delays: map[[2]string]time.Duration{}, counts: map[string]int{}, meters: map[string]*meter{},
	}
	for i := range cfg.Nodes {
		c.ids = append(c.ids, nodeID(i))
	}
	for i := range cfg.Spares {
		c.spares = append(c.spares, nodeID(cfg.Nodes+i))
	}
	return c
}

// Kind is "sim" or "proc".
func (c *Cluster) Kind() string { return c.b.kind() }

// Began is when the cluster was made; Event.At counts from it.
func (c *Cluster) Began() time.Time { return c.began }

// Dir is where everything of the cluster is kept.
func (c *Cluster) Dir() string { return c.cfg.Dir }

// Nodes are the ids of the nodes that began, without spares.
func (c *Cluster) Nodes() []string { return slices.Clone(c.ids) }

// Running are the nodes that were started and neither stopped nor killed.
func (c *Cluster) Running() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, id := range slices.Concat(c.ids, c.spares) {
		if c.running[id] {
			out = append(out, id)
		}
	}
	return out
}

// Paused are the nodes that stand still.
func (c *Cluster) Paused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for id, on := range c.paused {
		if on {
			out = append(out, id)
		}
	}
	return out
}

// Endpoints are the API addresses of the nodes that began.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, id := range c.ids {
		out = append(out, c.b.apiAddr(id))
	}
	return out
}

// APIAddr is where a node's API is.
func (c *Cluster) APIAddr(id string) string { return c.b.apiAddr(id) }

// RaftAddr is where other nodes reach a node.
func (c *Cluster) RaftAddr(id string) string { return c.b.raftAddr(id) }

// Dial connects a client to an API address.
func (c *Cluster) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return c.b.dial(ctx, addr)
}

// Client makes a client that begins at the given nodes, or at all of them. The
// caller closes it.
func (c *Cluster) Client(nodes []string, opts ...client.Option) (*client.Client, error) {
	addrs := c.Endpoints()
	if len(nodes) > 0 {
		addrs = nil
		for _, id := range nodes {
			addrs = append(addrs, c.b.apiAddr(id))
		}
	}
	return client.New(addrs, append([]client.Option{client.WithDialer(c.b.dial)}, opts...)...)
}

// initial is the cluster as its nodes are told it begins.
func (c *Cluster) initial() map[string]string {
	out := map[string]string{}
	for _, id := range c.ids {
		out[id] = c.b.raftAddr(id)
	}
	return out
}

// Open starts all nodes and the archive, and returns when a leader serves.
func (c *Cluster) Open(ctx context.Context) error {
	for _, id := range c.ids {
		if err := c.b.start(id); err != nil {
			return err
		}
		c.mu.Lock()
		c.running[id] = true
		c.mu.Unlock()
	}
	if _, err := c.AwaitLeader(ctx, ""); err != nil {
		return err
	}
	return c.openArchive(ctx)
}

// Status asks a node.
func (c *Cluster) Status(ctx context.Context, id string) (Status, error) {
	if id == ArchiveHost {
		return statusOf(ctx, c.archive, NewDisk())
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.b.status(ctx, id)
}

// Statuses asks all running nodes; those that do not answer are left out.
func (c *Cluster) Statuses(ctx context.Context) map[string]Status {
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[string]Status{}
	for _, id := range c.Running() {
		c.mu.Lock()
		paused := c.paused[id]
		c.mu.Unlock()
		if paused {
			continue
		}
		wg.Go(func() {
			if st, err := c.Status(ctx, id); err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[id] = st
				c.meter(id, st)
			}
		})
	}
	wg.Wait()
	return out
}

// Leader is the node that leads in the highest term, "" if none says so.
func (c *Cluster) Leader(ctx context.Context) string {
	leader, term := "", uint64(0)
	for id, st := range c.Statuses(ctx) {
		if st.Role == "leader" && st.Term >= term {
			leader, term = id, st.Term
		}
	}
	if leader != "" {
		c.mu.Lock()
		if c.leader != "" && c.leader != leader {
			c.counts["leader-change"]++
		}
		c.leader = leader
		c.mu.Unlock()
	}
	return leader
}

// AwaitLeader waits for a leader that is not the given node.
func (c *Cluster) AwaitLeader(ctx context.Context, except string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if l := c.Leader(ctx); l != "" && l != except {
			return l, nil
		}
		pause(ctx, 20*time.Millisecond)
	}
	return "", fmt.Errorf("no leader: %v", c.Statuses(context.WithoutCancel(ctx)))
}

// Difference says how running nodes and the archive differ; "" when all have
// the same state.
func (c *Cluster) Difference(ctx context.Context) string {
	all := c.Statuses(ctx)
	for _, id := range c.Running() {
		if _, ok := all[id]; !ok {
			return id + " does not answer"
		}
	}
	if c.archive != nil {
		st, err := c.Status(ctx, ArchiveHost)
		if err != nil {
			return err.Error()
		}
		all[ArchiveHost] = st
	}
	var lines []string
	distinct := map[string]bool{}
	for id, st := range all {
		what := fmt.Sprintf("revision %d hash %016x", st.Revision, st.Hash)
		distinct[what] = true
		lines = append(lines, id+": "+what)
	}
	if len(distinct) <= 1 {
		return ""
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// AwaitEqual waits until all running nodes have the same state.
func (c *Cluster) AwaitEqual(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	diff := "never asked"
	for ctx.Err() == nil {
		if diff = c.Difference(ctx); diff == "" {
			return nil
		}
		pause(ctx, 50*time.Millisecond)
	}
	return fmt.Errorf("nodes are not equal after %s: %s", within, diff)
}

// Conn calls one node directly, without retries; the caller closes it.
func (c *Cluster) Conn(id string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+c.b.apiAddr(id), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(c.b.dial))
}

func (c *Cluster) addMember(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	leader := c.Leader(ctx)
	if leader == "" {
		return errors.New("no leader")
	}
	conn, err := c.Conn(leader)
	if err != nil {
		return err
	}
	_, err = pb.NewClusterClient(conn).AddMember(ctx, &pb.AddMemberRequest{NodeId: id, RaftAddress: c.b.raftAddr(id)})
	return errors.Join(err, conn.Close())
}

// LogDir is where a node's raft log is.
func (c *Cluster) LogDir(id string) string { return filepath.Join(c.b.dir(id), "raft") }

// SnapshotDir is where a node's snapshots are.
func (c *Cluster) SnapshotDir(id string) string {
	return filepath.Join(c.b.dir(id), "snapshots", "snapshots")
}

// LogStore is the log store of every node.
func (c *Cluster) LogStore() raftnode.LogStore { return c.cfg.LogStore }

// Complaints are lines that no node should ever write, as those of a panic.
func (c *Cluster) Complaints() []string { return c.b.complaints() }

// Applied is the last entry the archive had executed when Finish closed it.
func (c *Cluster) Applied() uint64 { return c.applied }

// meter adds up what the processes of one node count from 0.
type meter struct {
	last                     Status
	installed, full, stalled int64 // of processes that have ended
	goroutines, files        int   // the most seen
}

func (c *Cluster) meter(id string, st Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.meters[id]
	if m == nil {
		m = &meter{}
		c.meters[id] = m
	}
	if st.Installed < m.last.Installed || st.Full < m.last.Full || st.Stalled < m.last.Stalled {
		m.installed += m.last.Installed
		m.full += m.last.Full
		m.stalled += m.last.Stalled
	}
	m.last = st
	m.goroutines, m.files = max(m.goroutines, st.Goroutines), max(m.files, st.Files)
}

// Meters are what nodes counted so far, over all their processes, as far as
// their status was asked for.
type Meters struct {
	// Installed counts snapshots taken over, Full and Stalled writes that met such
	// a disk.
	Installed, Full, Stalled int64
	// Goroutines and Files are the most that one process had; 0 in sim.
	Goroutines, Files int
}

// Meters adds up all nodes.
func (c *Cluster) Meters() Meters {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out Meters
	for _, m := range c.meters {
		out.Installed += m.installed + m.last.Installed
		out.Full += m.full + m.last.Full
		out.Stalled += m.stalled + m.last.Stalled
		out.Goroutines, out.Files = max(out.Goroutines, m.goroutines), max(out.Files, m.files)
	}
	return out
}

// Finish ends every fault, node and the archive; what they wrote stays. It may
// be called again.
func (c *Cluster) Finish() error {
	var err error
	c.once.Do(func() {
		c.endDrops()
		err = c.b.close()
		if c.archive != nil {
			c.applied = c.archive.Status().AppliedIndex
			err = errors.Join(err, c.archive.Close())
			c.archive = nil
		}
	})
	return err
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
