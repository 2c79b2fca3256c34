package testproc

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
)

func indexIn(c *cluster, n *node) int { return slices.Index(c.nodes, n) }

// rounds is how often a test repeats its fault: STAVE_ROUNDS or what it says.
func rounds(t *testing.T, n int) int {
	t.Helper()
	if s := os.Getenv("STAVE_ROUNDS"); s != "" {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			t.Fatalf("STAVE_ROUNDS %q: want a number above 0", s)
		}
		return v
	}
	return n
}

// register is one key that is written with growing numbers, and what was
// acknowledged of them.
type register struct{ acked atomic.Int64 }

func (r *register) write(ctx context.Context, c interface {
	Do(context.Context, catalog.Command) (catalog.Result, error)
}, v int64,
) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := c.Do(ctx, catalog.PutKV{Key: "register", Value: strconv.AppendInt(nil, v, 10)}); err != nil {
		return err
	}
	r.acked.Store(v)
	return nil
}

// No linearizable read that began after a write was acknowledged returns an older
// value: not at a leader that was paused while another one was elected, with reads
// waiting in its sockets, and at no other node.
func TestPausedLeader(t *testing.T) {
	long(t)
	pausedLeader(t, rounds(t, 50))
}

// The same, once, whenever the tests run.
func TestPausedLeader_Once(t *testing.T) {
	if os.Getenv("STAVE_FAULTS") != "" {
		t.Skip("TestPausedLeader does more")
	}
	pausedLeader(t, 1)
}

func pausedLeader(t *testing.T, times int) {
	rnd := seeded(t)
	c := newCluster(t, 3, program(t, ""), nil)
	c.start()
	c.ready()
	var r register
	writer := c.client()
	if err := r.write(t.Context(), writer, 1); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var reads, stale atomic.Int64
	var group sync.WaitGroup
	for _, n := range c.nodes {
		cl := c.client(n)
		for range 8 {
			group.Go(func() {
				for ctx.Err() == nil {
					least := r.acked.Load()
					one, cancel := context.WithTimeout(ctx, 10*time.Second)
					kv, _, err := cl.KeyValue(one, "register")
					cancel()
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					reads.Add(1)
					if v, _ := strconv.ParseInt(string(kv.Value), 10, 64); v < least {
						stale.Add(1)
						t.Errorf("%s read %d, %d was acknowledged before it began", n.id, v, least)
					}
				}
			})
		}
	}
	next := int64(1)
	for round := range times {
		lead := c.leader()
		lead.signal(syscall.SIGSTOP)
		others := slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n == lead })
		other := c.client(others...)
		for range 5 {
			next++
			if err := r.write(t.Context(), other, next); err != nil {
				lead.signal(syscall.SIGCONT)
				t.Fatalf("round %d: write while %s is paused: %v", round, lead.id, err)
			}
		}
		time.Sleep(time.Duration(rnd.IntN(600)) * time.Millisecond)
		lead.signal(syscall.SIGCONT)
		for range 5 {
			next++
			if err := r.write(t.Context(), other, next); err != nil {
				t.Fatalf("round %d: write after %s was paused: %v", round, lead.id, err)
			}
		}
		_ = other.Close()
	}
	stop()
	group.Wait()
	t.Logf("%d rounds, %d reads, %d stale", times, reads.Load(), stale.Load())
	if reads.Load() == 0 {
		t.Error("nothing was read")
	}
}

// A leader that is killed is replaced, and no acknowledged write is lost.
func TestLeaderKills(t *testing.T) {
	long(t)
	c := newCluster(t, 3, program(t, ""), nil, "--snapshot-threshold", "2000", "--trailing-logs", "4000", "--snapshot-interval", "1s")
	c.start()
	c.ready()
	cl := c.client()
	l := &load{size: 200}
	l.run(cl, 16)
	defer l.stop()
	var gaps []time.Duration
	for range rounds(t, 30) {
		l.await(t, 100)
		lead := c.leader()
		at := time.Now()
		lead.kill()
		l.await(t, 200)
		gaps = append(gaps, l.gap(at))
		c.start(lead)
		c.ready(lead)
	}
	l.stop()
	slices.Sort(gaps)
	t.Logf("%d kills: time without a write p50 %s, max %s", len(gaps), gaps[len(gaps)/2], gaps[len(gaps)-1])
	l.verify(t, cl)
}

// Builds of two versions: the level rises when the last node runs the newer one,
// whose own commands come only then; an older one does not start any more; and
// when a newer build breaks the rule, an older one stops in front of the entry,
// again after a restart, while the others go on.
func TestRollingUpgrade(t *testing.T) {
	long(t)
	old, next := program(t, ""), program(t, "stave_next")
	c := newCluster(t, 3, old, nil)
	c.start()
	c.ready()
	cl := c.client()
	l := &load{size: 100}
	l.run(cl, 4)
	defer l.stop()
	marker := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _, err := cl.KeyValue(ctx, "next")
		return err
	}
	for i, n := range c.nodes {
		l.await(t, 50)
		if err := marker(); !errors.Is(err, catalog.ErrKeyNotExist) {
			t.Fatalf("with %d of 3 nodes upgraded the new command is there: %v", i, err)
		}
		n.kill()
		n.program = next
		c.start(n)
		c.ready(n)
	}
	eventually(t, 30*time.Second, "command of the newer build", marker)
	l.await(t, 50)
	n := c.nodes[0]
	time.Sleep(time.Second) // the level is in every directory
	n.kill()
	n.program = old
	c.start(n)
	st, err := n.ended(20 * time.Second)
	if err != nil || st.ExitCode() == 0 {
		t.Fatalf("an older build runs: %v %v", st, err)
	}
	if text := n.tail(3); !contains(text, "feature level 2", "this build has 1") {
		t.Errorf("the older build says: %s", text)
	}
	n.program = next
	c.start(n)
	c.ready(n)
	l.stop()
	l.verify(t, c.client(n))
}

func TestMixedCluster_UnknownEntry(t *testing.T) {
	long(t)
	old, next := program(t, ""), program(t, "stave_next")
	c := newCluster(t, 3, next, nil)
	c.nodes[2].program = old
	for _, n := range c.nodes[:2] {
		n.env = []string{"STAVE_NEXT_UNGATED=1"}
	}
	c.start()
	cl := c.client(c.nodes[:2]...)
	n := c.nodes[2]
	for round := range 2 {
		st, err := n.ended(60 * time.Second)
		if err != nil || st.ExitCode() == 0 {
			t.Fatalf("round %d: the older build goes on: %v %v", round, st, err)
		}
		if text := n.tail(3); !contains(text, "unknown kind", "Kind95") || contains(text, "goroutine ") {
			t.Errorf("round %d: the older build says: %s", round, text)
		}
		l := &load{size: 100}
		l.run(cl, 2)
		l.await(t, 20)
		l.stop()
		if round == 0 {
			c.start(n)
		}
	}
	for _, n := range c.nodes[:2] {
		if !n.running() {
			t.Errorf("%s ended: %s", n.id, n.tail(3))
		}
	}
}

func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
