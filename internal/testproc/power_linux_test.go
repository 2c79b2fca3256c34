package testproc

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// When the power of one node, or of all three at the same time, is lost at any
// moment, every acknowledged write is there when they come back. Their file
// systems are stopped without a flush, so that what was written and not synced is
// gone; what a disk itself keeps in a cache that it was told to flush is not
// tested.
func TestPowerLoss(t *testing.T) {
	long(t)
	rnd := seeded(t)
	prog := program(t, "")
	for _, size := range []int{1, 3} {
		for _, store := range []string{"wal", "boltdb"} {
			t.Run(fmt.Sprintf("%d nodes/%s", size, store), func(t *testing.T) {
				var disks []*disk
				var dirs []string
				for range size {
					d := newDisk(t, 96)
					disks, dirs = append(disks, d), append(dirs, d.dir)
				}
				c := newCluster(t, size, prog, dirs, append([]string{"--log-store", store}, small...)...)
				cl := c.client()
				l := &load{size: 300}
				l.run(cl, 8)
				defer l.stop()
				for range 10 { // and 10 on the other store
					c.start()
					c.ready()
					l.await(t, 20)
					time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
					var all sync.WaitGroup
					for _, d := range disks {
						all.Go(d.powerLoss)
					}
					all.Wait()
					for i, n := range c.nodes {
						n.kill()
						disks[i].unmount()
						disks[i].mount()
					}
				}
				c.start()
				c.ready()
				l.await(t, 20)
				l.stop()
				l.verify(t, cl)
				for _, n := range c.nodes {
					l.verify(t, c.client(n))
				}
			})
		}
	}
}

// A leader whose disk hangs, or is full, is replaced within 6 s and leads no more
// before its disk is well; then it follows within 10 s and has everything.
func TestSickLeaderDisk(t *testing.T) {
	long(t)
	prog := program(t, "")
	for _, store := range []string{"wal", "boltdb"} {
		for _, trouble := range []string{"hang", "full"} {
			t.Run(trouble+"/"+store, func(t *testing.T) {
				var disks []*disk
				var dirs []string
				for range 3 {
					d := newDisk(t, 64)
					disks, dirs = append(disks, d), append(dirs, d.dir)
				}
				c := newCluster(t, 3, prog, dirs, "--log-store", store)
				c.start()
				c.ready()
				l := &load{size: 2 << 10}
				l.run(c.client(), 8)
				defer l.stop()
				l.await(t, 100)
				lead := c.leader()
				d := disks[indexIn(c, lead)]
				var cure func()
				if trouble == "hang" {
					d.freeze()
					cure = sync.OnceFunc(d.thaw)
				} else {
					cure = sync.OnceFunc(d.fill())
				}
				defer cure()
				start := time.Now()
				other := c.leader(lead)
				took := time.Since(start)
				if trouble == "hang" && took > 6*time.Second {
					t.Errorf("another node leads after %s", took)
				}
				l.await(t, 50)
				sick := time.Now()
				for time.Since(sick) < 10*time.Second {
					if lead.leads() {
						t.Fatal("the sick node leads")
					}
					time.Sleep(50 * time.Millisecond)
				}
				cure()
				back := eventually(t, 10*time.Second, "sick node has caught up", func() error {
					if lead.leads() {
						t.Fatal("the node leads before it followed")
					}
					if lead.metric("stave_raft_gated") != 0 {
						return fmt.Errorf("stands back")
					}
					if a, b := lead.metric("stave_raft_applied_index"), other.metric("stave_raft_commit_index"); a < b-500 {
						return fmt.Errorf("applied %v of %v", a, b)
					}
					_, err := lead.get("/readyz")
					return err
				})
				t.Logf("another leader after %s, well after %s, longest time without a write %s", took, back, l.gap(start))
				l.await(t, 50)
				l.stop()
				l.verify(t, c.client(lead))
				if lead.metric("stave_raft_diverged") != 0 {
					t.Error("the node's state differs")
				}
			})
		}
	}
}
