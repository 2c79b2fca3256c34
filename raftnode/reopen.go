package raftnode

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/failpoint"
)

// answerLeaves is how long the answer to an installed snapshot is given to leave
// the node before the instance that gives it closes. If it does not, the leader
// sends the snapshot once more.
const answerLeaves = 50 * time.Millisecond

// covers reports whether raft has applied everything up to an index and has the
// entry of that term there.
func (e *engine) covers(index, term uint64) bool {
	if e.raft.AppliedIndex() < index {
		return false
	}
	if i, t, err := e.snaps.newest(); err == nil && i == index {
		return t == term
	}
	l, err := e.stores.Get(index)
	return err == nil && l.Term == term
}

// beforeInstall notes whether raft has a log of its own when it is given a
// snapshot.
func (e *engine) beforeInstall(uint64, uint64) {
	last, err := e.stores.Log().LastIndex()
	e.tail.Store(err != nil || last > 0)
	failpoint.Hit(failpoint.InstallBegin)
}

// afterInstall runs when raft has installed a snapshot from the leader, or not.
// Over a log of its own, raft keeps the last index of what it threw away and
// refuses every append from then on: the instance is opened anew. Until then it
// is given nothing more, because its refusals would make the leader send the
// snapshot again.
func (n *Node) afterInstall(e *engine, index, term uint64, installed bool) {
	if !installed {
		return
	}
	n.snaps.installs.Add(1)
	failpoint.Hit(failpoint.InstallDone)
	if !e.tail.Load() {
		return
	}
	e.trans.Hold()
	n.goFunc(func() {
		if n.sleep(answerLeaves) {
			n.log.Info("snapshot installed over a log, opening raft anew", "index", index, "term", term)
			n.replace(e)
		}
	})
}

// replace opens the next raft instance in place of one, or ends the node.
func (n *Node) replace(old *engine) {
	if err := n.reopen(old); err != nil {
		n.fail(err)
	}
}

// reopen closes a raft instance and opens the next one on the same stores. It
// waits for the old one to end, however long the disk holds it: two instances
// must not write the same log.
func (n *Node) reopen(old *engine) error {
	n.openMu.Lock()
	defer n.openMu.Unlock()
	if n.engine.Load() != old || n.usable() != nil {
		return nil
	}
	old.close()
	select {
	case <-old.down:
	case <-n.stop:
		return nil
	case <-n.done:
		return nil
	}
	e, err := n.openEngine()
	if err != nil {
		return err
	}
	n.run(e)
	return nil
}

// run makes a raft instance the node's.
func (n *Node) run(e *engine) {
	n.adoptGate(e)
	n.goFunc(func() { n.watchLeadership(e) })
}

// transferStuck is called when raft refuses a command because leadership is
// being transferred. A transfer that a step-down interrupts may leave its flag
// behind: when the node leads again it refuses every command for ever, and
// nobody else is elected because it sends heartbeats. A true transfer ends
// within two election timeouts; when raft refuses for more than three as the
// leader of one term, the instance is opened anew.
func (n *Node) transferStuck(e *engine) {
	if !e.watchdog.CompareAndSwap(false, true) {
		return
	}
	n.goFunc(func() {
		defer e.watchdog.Store(false)
		term, since := e.raft.CurrentTerm(), time.Now()
		for time.Since(since) <= 3*n.cfg.ElectionTimeout {
			if !n.sleep(n.cfg.ElectionTimeout/4) || !n.stillStuck(e, term) {
				return
			}
		}
		n.log.Warn("raft refuses commands for a transfer of leadership that has ended, opening it anew", "term", term)
		n.replace(e)
	})
}

// stillStuck asks raft with a marker, which changes nothing if it is taken.
func (n *Node) stillStuck(e *engine, term uint64) bool {
	if e.raft.State() != raft.Leader || e.raft.CurrentTerm() != term {
		return false
	}
	ctx, cancel := n.withTimeout(n.cfg.ElectionTimeout)
	defer cancel()
	_, err := n.proposeOwn(e, ctx.Done(), n.fsm.State().Cluster().Lease, catalog.Checksum{})
	return errors.Is(err, raft.ErrLeadershipTransferInProgress)
}
