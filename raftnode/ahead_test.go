package raftnode

import (
	"errors"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
)

// A leader sends a command while its own disk still writes it. As long as that
// lasts nobody has applied it and nobody was told that it is committed, although
// both followers have it on their disks; when the disk is quick again it is done
// once, as if nothing had been.
func TestNode_LeaderSyncsBesideFollowers(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c, disks := newSickCluster(t, store)
		l := c.leader()
		c.propose(l, catalog.CreateDatabase{Name: "shop"})
		c.converge()
		before := l.fsm.State().Revision()
		cure := disks[l.cfg.ID].makeHang()
		defer cure()
		done := make(chan error, 1)
		go func() {
			_, err := l.Propose(c.timeout(20*time.Second), catalog.CreateDatabase{Name: "ahead"})
			done <- err
		}()
		time.Sleep(time.Second) // below the limit at which the node stands back
		for id, n := range c.nodes {
			last, err := n.stores.Log().LastIndex()
			if err != nil || last != uint64(before)+1 {
				t.Errorf("the log of %s ends at %d (%v), want %d", id, last, err, before+1)
			}
			if got := n.fsm.State().Revision(); got != before {
				t.Errorf("%s has applied %d while the leader's disk hangs", id, got)
			}
			if got := n.engine.Load().raft.CommitIndex(); n != l && got > uint64(before) {
				t.Errorf("%s was told that %d is committed", id, got)
			}
		}
		if len(done) != 0 {
			t.Error("answered while the leader's disk hangs")
		}
		cure()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if c.leader() != l {
			t.Error("leadership was given up")
		}
		if got := l.fsm.State().Revision(); got != before+1 {
			t.Errorf("revision %d, want %d", got, before+1)
		}
		c.converge()
	})
}

// A leader alone with a vote does not answer what only its memory has.
func TestNode_SingleLeaderAnswersAfterSync(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		disk := &sickDisk{}
		c := newCluster(t, 1, store, func(c *Config) { c.Faults = disk })
		l := c.leader()
		c.propose(l, catalog.CreateDatabase{Name: "shop"})
		cure := disk.makeHang()
		defer cure()
		done := make(chan error, 1)
		go func() {
			_, err := l.Propose(c.timeout(20*time.Second), catalog.CreateDatabase{Name: "ahead"})
			done <- err
		}()
		time.Sleep(time.Second)
		if _, ok := l.fsm.State().Database("ahead"); ok || len(done) != 0 {
			t.Error("applied or answered while the disk hangs")
		}
		cure()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// A leader that ends before its disk has what it sent has promised nothing: the
// outcome is unknown to the caller, the others decide, and the node follows them.
func TestNode_LeaderEndsAheadOfItsDisk(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c, disks := newSickCluster(t, store)
		old := c.leader()
		id := old.cfg.ID
		c.propose(old, catalog.CreateDatabase{Name: "shop"})
		cure := disks[id].makeHang()
		done := make(chan error, 1)
		go func() {
			_, err := old.Propose(c.timeout(20*time.Second), catalog.CreateDatabase{Name: "ahead"})
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		delete(c.nodes, id)
		closed := make(chan error, 1)
		go func() { closed <- old.Close() }()
		if err := <-done; !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrClosed) {
			t.Errorf("propose at a leader that ends: %v", err)
		}
		next := c.leaderExcept(id)
		c.propose(next, catalog.CreateDatabase{Name: "after"})
		// Both followers had it, so whoever leads has.
		if _, ok := next.fsm.State().Database("ahead"); !ok {
			t.Error("what both followers have is gone")
		}
		cure()
		t.Logf("close while the disk hangs: %v", <-closed)
		c.start(id)
		c.converge()
		c.logsAgree()
	})
}
