package testproc

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/failpoint"
)

// small makes snapshots, removals of old ones and short logs frequent.
var small = []string{"--snapshot-threshold", "40", "--snapshot-interval", "20ms", "--trailing-logs", "80"}

// A step is met in the first start of a directory, under load, when a directory
// with snapshots is opened again, or by a follower that lags.
var (
	firstStart = []string{
		failpoint.IdentityWritten, failpoint.IdentityDone, failpoint.PairWritten, failpoint.BootstrapBegin, failpoint.BootstrapDone,
		failpoint.StableBegin, failpoint.StableDone, failpoint.SegmentWritten, failpoint.MetaBegin, failpoint.MetaDone,
	}
	underLoad = []string{
		failpoint.AppendBegin, failpoint.AppendDone, failpoint.DeleteBegin, failpoint.DeleteDone, failpoint.MetaBegin, failpoint.MetaDone,
		failpoint.SegmentWritten, failpoint.SnapshotCreated, failpoint.SnapshotSum, failpoint.SnapshotWritten, failpoint.SnapshotDone,
		failpoint.SnapshotReap, failpoint.StableBegin, failpoint.StableDone,
	}
	openAgain = []string{failpoint.RestoreBegin, failpoint.RestoreDone, failpoint.SnapshotAside}
	lagging   = []string{
		failpoint.InstallBegin, failpoint.InstallDone, failpoint.RestoreDone, failpoint.EmptyBegin, failpoint.EmptyDone, failpoint.SnapshotWritten,
	}
	byLeader = []string{failpoint.UserRestoreBegin, failpoint.UserRestoreDone}
)

func arm(n *node, name string, nth int) {
	n.env = []string{fmt.Sprintf("STAVE_FAILPOINT=%s:%d", name, nth)}
}

// died waits until the armed process has killed itself.
func died(t *testing.T, n *node) {
	t.Helper()
	st, err := n.ended(30 * time.Second)
	if err != nil {
		t.Fatalf("the step was not reached: %v", err)
	}
	if w, ok := st.Sys().(syscall.WaitStatus); !ok || !w.Signaled() || w.Signal() != syscall.SIGKILL {
		t.Fatalf("%s ended with %s: %s", n.id, st, n.tail(5))
	}
	n.env = nil
}

// Every failpoint belongs to a test.
func TestFailpoints_AllCovered(t *testing.T) {
	all := slices.Concat(firstStart, underLoad, openAgain, lagging, byLeader)
	for _, name := range failpoint.Names() {
		if !slices.Contains(all, name) {
			t.Errorf("%s is in no test", name)
		}
	}
}

func eachLogStore(t *testing.T, f func(t *testing.T, flags []string)) {
	t.Helper()
	for _, store := range []string{"wal", "boltdb"} {
		t.Run(store, func(t *testing.T) { f(t, append(slices.Clone(small), "--log-store", store)) })
	}
}

// onlyWAL reports steps that boltdb does not have.
func onlyWAL(name string, flags []string) bool {
	switch name {
	case failpoint.MetaBegin, failpoint.MetaDone, failpoint.SegmentWritten:
		return slices.Contains(flags, "boltdb")
	}
	return false
}

// A single node that is killed at any step of its first start, of writing, of
// taking and removing snapshots, or of opening, has every acknowledged write when
// it is started again.
func TestFailpoints_SingleNode(t *testing.T) {
	long(t)
	prog := program(t, "stave_failpoints")
	rnd := seeded(t)
	eachLogStore(t, func(t *testing.T, flags []string) {
		run := func(name, phase string, prepare func(c *cluster, n *node, l *load), nth int) {
			if onlyWAL(name, flags) {
				return
			}
			t.Run(phase+"/"+name, func(t *testing.T) {
				c := newCluster(t, 1, prog, nil, flags...)
				n := c.nodes[0]
				l := &load{size: 40 << 10}
				cl := c.client()
				l.run(cl, 3)
				defer l.stop()
				if prepare != nil {
					c.start()
					prepare(c, n, l)
				}
				arm(n, name, nth)
				c.start()
				died(t, n)
				c.start()
				c.ready()
				l.await(t, 20)
				l.stop()
				l.verify(t, cl)
			})
		}
		for _, name := range firstStart {
			run(name, "first start", nil, 1)
		}
		written := func(_ *cluster, n *node, l *load) {
			l.await(t, 120)
			eventually(t, 20*time.Second, "two snapshots", func() error {
				if got := len(stateFiles(n)); got < 2 {
					return fmt.Errorf("%d", got)
				}
				return nil
			})
			n.kill()
		}
		for _, name := range underLoad {
			nth := 1 + rnd.IntN(3)
			if name == failpoint.StableBegin || name == failpoint.StableDone || name == failpoint.SegmentWritten {
				nth = 1
			}
			run(name, "under load", written, nth)
		}
		for _, name := range openAgain {
			run(name, "open again", func(c *cluster, n *node, l *load) {
				written(c, n, l)
				if name == failpoint.SnapshotAside {
					damageNewest(t, n)
				}
			}, 1)
		}
	})
}

// damageNewest makes the newest snapshot of a node that does not run unreadable.
func damageNewest(t *testing.T, n *node) {
	t.Helper()
	list := stateFiles(n)
	slices.SortFunc(list, func(a, b string) int { return indexOf(a) - indexOf(b) })
	if err := exec.Command("truncate", "-s", "10", list[len(list)-1]).Run(); err != nil {
		t.Fatal(err)
	}
}

// stateFiles are the contents of a node's whole snapshots.
func stateFiles(n *node) []string {
	list, _ := filepath.Glob(filepath.Join(n.dir, "snapshots", "snapshots", "*[0-9]", "state.bin"))
	return list
}

func indexOf(stateFile string) int {
	var term, index int
	_, _ = fmt.Sscanf(filepath.Base(filepath.Dir(stateFile)), "%d-%d-", &term, &index)
	return index
}

// A follower that is killed at any step of catching up by a snapshot has
// everything when it is started again.
func TestFailpoints_Lagging(t *testing.T) {
	long(t)
	prog := program(t, "stave_failpoints")
	eachLogStore(t, func(t *testing.T, flags []string) {
		for _, name := range lagging {
			t.Run(name, func(t *testing.T) {
				c := newCluster(t, 3, prog, nil, flags...)
				c.start()
				c.ready()
				l := &load{size: 1 << 10}
				l.run(c.client(), 4)
				defer l.stop()
				l.await(t, 30)
				lead := c.leader()
				var n *node
				for _, m := range c.nodes {
					if m != lead {
						n = m
					}
				}
				n.kill()
				l.await(t, 400)
				arm(n, name, 1)
				c.start(n)
				died(t, n)
				c.start(n)
				c.ready(n)
				l.await(t, 20)
				l.stop()
				l.verify(t, c.client(n))
			})
		}
	})
}

// A leader that is killed in the midst of a restore leaves a cluster that has the
// state before or the restored one, whole.
func TestFailpoints_UserRestore(t *testing.T) {
	long(t)
	prog := program(t, "stave_failpoints")
	for _, name := range byLeader {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, prog, nil, small...)
			for _, n := range c.nodes {
				arm(n, name, 1)
			}
			c.start()
			c.ready()
			cl := c.client()
			l := &load{size: 100}
			l.run(cl, 2)
			l.await(t, 100)
			l.stop()
			file := filepath.Join(t.TempDir(), "x.stave")
			if out, err := exec.Command(prog, "--endpoints", c.nodes[0].api, "snapshot", "save", file).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if _, err := cl.Do(t.Context(), catalog.PutKV{Key: "after"}); err != nil {
				t.Fatal(err)
			}
			lead := c.leader()
			out, err := exec.Command(prog, "--endpoints", lead.api, "snapshot", "restore", file, "--yes").CombinedOutput()
			if err == nil {
				t.Fatalf("restore went through: %s", out)
			}
			died(t, lead)
			c.start(lead)
			c.ready()
			l.verify(t, c.client())
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			fresh := c.client()
			if _, err := fresh.Do(ctx, catalog.PutKV{Key: "again"}); err != nil {
				t.Errorf("write after the restore: %v", err)
			}
		})
	}
}
