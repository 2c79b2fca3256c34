package raftnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// compacting makes snapshots frequent, and logs short after them.
func compacting(c *Config) {
	c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = 20, 40, 50*time.Millisecond
}

func (c *cluster) writeKeys(n *Node, prefix string, count int) {
	c.t.Helper()
	for i := range count {
		c.propose(n, catalog.PutKV{Key: fmt.Sprint(prefix, i), Value: []byte("v")})
		time.Sleep(time.Millisecond) // in a bubble writing takes no time; snapshots are taken by the clock
	}
}

// doomed makes a leader that is cut off take entries that nobody else gets.
func (c *cluster) doomed(l *Node, count int) {
	c.t.Helper()
	lead := l.lead.Load()
	for i := range count {
		if _, err := l.begin(lead, catalog.Envelope{}, catalog.PutKV{Key: fmt.Sprint("doomed", i)}); err != nil {
			c.t.Fatalf("doomed entry %d: %v", i, err)
		}
	}
	time.Sleep(10 * time.Millisecond)
}

// logsAgree compares the logs of all nodes index by index, where they overlap.
func (c *cluster) logsAgree() {
	c.t.Helper()
	type entry struct {
		node string
		log  raft.Log
	}
	seen := map[uint64]entry{}
	for id, n := range c.nodes {
		err := n.stores.Scan(0, func(l *raft.Log) error {
			if o, ok := seen[l.Index]; ok {
				if o.log.Term != l.Term || o.log.Type != l.Type || !bytes.Equal(o.log.Data, l.Data) {
					return fmt.Errorf("entry %d of term %d differs from that of %s, term %d", l.Index, l.Term, o.node, o.log.Term)
				}
				return nil
			}
			seen[l.Index] = entry{id, *l}
			return nil
		})
		if err != nil {
			c.t.Errorf("log of %s: %v", id, err)
		}
	}
}

// A leader that was cut off with a doomed tail comes back to a cluster that has
// compacted its log: it installs one snapshot, whether its tail ends beyond, at
// or below the snapshot, follows within 10 s, and nobody keeps anything of the
// tail, a node that is added later neither.
func TestNode_DoomedTailThenInstall(t *testing.T) {
	for _, tt := range []struct {
		name string
		tail int
	}{{"beyond", 400}, {"near", 100}, {"below", 5}} {
		t.Run(tt.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, store LogStore) {
				c := newCluster(t, 3, store, compacting)
				old := c.leader()
				id := old.cfg.ID
				c.writeKeys(old, "before", 10)
				sub, err := old.Watch(t.Context(), old.fsm.State().Revision())
				if err != nil {
					t.Fatal(err)
				}
				defer sub.Close()
				c.isolate(id)
				c.doomed(old, tt.tail)
				next := c.leaderExcept(id)
				c.writeKeys(next, "after", 200)
				time.Sleep(6 * time.Second) // what is on its way is given up
				before, first := old.snaps.installs.Load(), old.engine.Load()
				healed := time.Now()
				c.net.HealAll()
				c.caughtUp(old, next)
				if d := time.Since(healed); d > 10*time.Second {
					t.Errorf("caught up after %s", d)
				}
				c.converge()
				// Its state is there before raft has noted the installation.
				c.until("snapshot installed, raft opened anew", func() bool { return old.snaps.installs.Load() > before && old.engine.Load() != first })
				if got := old.snaps.installs.Load() - before; got != 1 {
					t.Errorf("%d snapshots installed, want 1", got)
				}
				c.writeKeys(c.leader(), "later", 50)
				c.converge()
				c.logsAgree()
				if _, ok := old.fsm.State().KeyValue("doomed0"); ok {
					t.Error("a doomed entry was applied")
				}
				c.join("n9")
				c.converge()
				c.logsAgree()
				c.checkWatch(sub)
			})
		})
	}
}

// checkWatch reads a subscription to the present: revisions rise, or it ends
// with an error that says that events are missing.
func (c *cluster) checkWatch(sub *watch.Subscription) {
	c.t.Helper()
	last := catalog.Revision(0)
	for {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		ev, err := sub.Next(ctx)
		cancel()
		switch {
		case errors.Is(err, catalog.ErrCompacted), errors.Is(err, context.DeadlineExceeded):
			return
		case err != nil:
			c.t.Errorf("watch: %v", err)
			return
		case ev.Revision <= last:
			c.t.Errorf("watch: revision %d after %d", ev.Revision, last)
		}
		last = ev.Revision
	}
}

// While nodes fall behind, install snapshots and open raft anew, no node's state
// ever goes back, and a read of at least a revision never sees less.
func TestNode_NothingGoesBack(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, compacting)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for id, n := range c.nodes {
			n.goFunc(func() {
				last := n.fsm.State()
				for ctx.Err() == nil {
					st, err := n.Read(ctx, AtLeast(last.Revision()))
					if err != nil {
						return
					}
					if st.Revision() < last.Revision() || st.Counts().Keys < last.Counts().Keys {
						t.Errorf("%s went from revision %d with %d keys to %d with %d", id, last.Revision(), last.Counts().Keys, st.Revision(), st.Counts().Keys)
						return
					}
					last = st
					time.Sleep(time.Millisecond)
				}
			})
		}
		for round := range 4 {
			l := c.leader()
			c.isolate(l.cfg.ID)
			c.doomed(l, 30*round)
			c.writeKeys(c.leaderExcept(l.cfg.ID), fmt.Sprint("r", round, "-"), 120)
			time.Sleep(time.Duration(round) * 3 * time.Second)
			c.net.HealAll()
			c.converge()
		}
		cancel()
	})
}

// A restore reaches every node, one that was cut off too; it is a new
// incarnation, and what was written before it is gone everywhere.
func TestNode_Restore(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, compacting)
		l := c.leader()
		c.propose(l, catalog.CreateDatabase{Name: "kept"})
		var file bytes.Buffer
		if _, err := l.Snapshot(c.timeout(5*time.Second), Linearizable, &file); err != nil {
			t.Fatal(err)
		}
		c.propose(l, catalog.CreateDatabase{Name: "gone"})
		cut := c.followers()[0]
		c.isolate(cut.cfg.ID)
		c.writeKeys(l, "x", 30)
		old := l.fsm.State()
		inc, err := l.Restore(c.timeout(30*time.Second), &file)
		if err != nil {
			t.Fatal(err)
		}
		if inc.Number <= old.Incarnation().Number {
			t.Errorf("incarnation %v after %v", inc, old.Incarnation())
		}
		c.net.HealAll()
		c.propose(c.leader(), catalog.CreateDatabase{Name: "after"})
		c.converge()
		for id, n := range c.nodes {
			st, err := n.Read(c.timeout(10*time.Second), Linearizable)
			if err != nil {
				t.Fatalf("read at %s: %v", id, err)
			}
			if st.Incarnation() != inc || st.Revision() <= old.Revision() || st.Counts().Databases != 2 || st.Counts().Keys != 0 {
				t.Errorf("%s: incarnation %v, revision %d, %d databases, %d keys", id, st.Incarnation(), st.Revision(), st.Counts().Databases, st.Counts().Keys)
			}
			if _, err := n.Read(c.timeout(time.Second), AtLeast(1).In(old.Incarnation())); !errors.Is(err, catalog.ErrRestored) {
				t.Errorf("read in the old incarnation at %s: %v", id, err)
			}
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			c.stop(id)
			c.start(id)
		}
		c.leader()
		c.converge()
		c.logsAgree()
		if _, err := c.leader().Restore(c.timeout(time.Second), bytes.NewReader([]byte("no snapshot"))); err == nil {
			t.Error("restored from something else")
		}
		c.propose(c.leader(), catalog.CreateDatabase{Name: "more"})
	})
}

// A sequence that was open when the cluster was restored is of unknown outcome;
// later commands get a new registration.
func TestNode_RestoreWithOpenSequences(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		l, f := c.leader(), c.followers()[0]
		c.propose(f, catalog.CreateDatabase{Name: "shop"})
		var file bytes.Buffer
		if _, err := l.Snapshot(c.timeout(5*time.Second), Linearizable, &file); err != nil {
			t.Fatal(err)
		}
		c.net.Cut(l.cfg.ID, f.cfg.ID) // commands arrive, answers do not
		open := make(chan error, 5)
		for i := range cap(open) {
			go func() {
				_, err := f.Propose(c.timeout(60*time.Second), catalog.PutKV{Key: fmt.Sprint("open", i)})
				open <- err
			}()
		}
		time.Sleep(100 * time.Millisecond)
		if n := l.fsm.State().Counts().Keys; n != cap(open) {
			t.Fatalf("%d of the open commands took effect", n)
		}
		if _, err := l.Restore(c.timeout(30*time.Second), &file); err != nil {
			t.Fatal(err)
		}
		c.net.Reset(l.cfg.ID, f.cfg.ID) // the answers are lost
		c.net.HealAll()
		for range cap(open) {
			if err := <-open; !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("open command: %v", err)
			}
		}
		c.propose(f, catalog.CreateDatabase{Name: "after"})
		c.converge()
		if n := l.fsm.State().Counts().Keys; n != 0 {
			t.Errorf("%d open commands took effect after the restore", n)
		}
	})
}
