package raftnode

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
)

// Resolve returns the raft address of a node: what it announced, else the
// initial cluster's.
func (n *Node) Resolve(node string) (string, bool) {
	if m, ok := n.fsm.State().Member(node); ok && m.RaftAddr != "" {
		return m.RaftAddr, true
	}
	addr, ok := n.cfg.InitialCluster[node]
	return addr, ok
}

// directoryOf returns the directory id a node is known with: what it announced,
// else what it began the cluster with; empty if unknown.
func (n *Node) directoryOf(node string) string {
	if m, ok := n.fsm.State().Member(node); ok && m.DirectoryID != "" {
		return m.DirectoryID
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if node == n.cfg.ID {
		return n.id.Directory
	}
	return n.id.Initial[node]
}

// checkPeer refuses a node that shows another directory than it is known with:
// it forgot what it acknowledged.
func (n *Node) checkPeer(node, directory string) error {
	if known := n.directoryOf(node); known != "" && known != directory {
		return fmt.Errorf("node %s is known with directory %s, not %s", node, known, directory)
	}
	return nil
}

// minBuild is the feature level that the cluster uses.
func (n *Node) minBuild() uint32 { return uint32(n.fsm.State().Cluster().Level) }

// tooOld ends a node that another one turned away for its build: the cluster may
// have gone on to a level while this node was away.
func (n *Node) tooOld(err error) {
	n.fail(fmt.Errorf("%w: this build has feature level %d: %w", ErrOldBuild, n.cfg.level, err))
}

// announcement is what the node wants the cluster to know of it.
func (n *Node) announcement() catalog.AnnounceMember {
	n.mu.Lock()
	defer n.mu.Unlock()
	return catalog.AnnounceMember{
		NodeID: n.cfg.ID, DirectoryID: n.id.Directory, RaftAddr: n.cfg.AdvertiseRaft, APIAddr: n.cfg.APIAddr, HTTPAddr: n.cfg.HTTPAddr,
		Level: n.cfg.level, Build: buildVersion(),
	}
}

// announced reports whether the state has the node's announcement.
func (n *Node) announced(a catalog.AnnounceMember) bool {
	m, ok := n.fsm.State().Member(a.NodeID)
	return ok && m.DirectoryID == a.DirectoryID && m.RaftAddr == a.RaftAddr && m.APIAddr == a.APIAddr && m.HTTPAddr == a.HTTPAddr &&
		m.Level == a.Level && m.Build == a.Build
}

// commonLevel is the highest feature level that every member announced to
// support; the first one while not all have.
func (n *Node) commonLevel(e *engine) catalog.FeatureLevel {
	st := n.fsm.State()
	level := n.cfg.level
	for _, s := range e.raft.GetConfiguration().Configuration().Servers {
		m, ok := st.Member(string(s.ID))
		if !ok {
			return catalog.FirstLevel
		}
		level = min(level, m.Level)
	}
	return level
}

// voters returns the ids of the voters of the latest configuration.
func voters(c raft.Configuration) []string {
	out := make([]string, 0, len(c.Servers))
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	return out
}

// keepAnnounced announces the node whenever the state says something else of it,
// as after its addresses changed, or after a restore.
func (n *Node) keepAnnounced() {
	a := n.announcement()
	for {
		n.noteLevel()
		if n.announced(a) {
			n.markStarted()
		} else if n.isMember() {
			ctx, cancel := n.withTimeout(announceTimeout)
			_, err := n.Submit(ctx, catalog.Envelope{}, a)
			cancel()
			if err != nil {
				n.log.Debug("announcement not taken yet", "error", err)
			}
		}
		if !n.sleep(announceInterval) {
			return
		}
	}
}

// isMember reports whether the latest configuration has the node.
func (n *Node) isMember() bool {
	e := n.engine.Load()
	if e == nil {
		return false
	}
	for _, s := range e.raft.GetConfiguration().Configuration().Servers {
		if string(s.ID) == n.cfg.ID {
			return true
		}
	}
	return false
}

// removed reports whether the node took part and the latest configuration that it
// knows does not have it. A node that was cut off when it was removed does not
// learn of it.
func (n *Node) removed() bool {
	n.mu.Lock()
	started := n.id.Started
	n.mu.Unlock()
	return started && n.engine.Load() != nil && !n.isMember()
}

// markStarted records once that the directory holds a log.
func (n *Node) markStarted() {
	n.amend(func(id *identity) bool {
		had := id.Started
		id.Started = true
		return !had
	})
}

// noteLevel records the feature level that the cluster uses, so that an older
// build does not open the directory.
func (n *Node) noteLevel() {
	level := n.fsm.State().Cluster().Level
	n.amend(func(id *identity) bool {
		had := id.Level
		id.Level = max(had, level)
		return id.Level != had
	})
}

// amend saves the identity if change says that it changed.
func (n *Node) amend(change func(*identity) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := n.id
	if !change(&id) {
		return
	}
	if err := id.save(n.cfg.Dir); err != nil {
		n.log.Warn("identity not written, trying again", "error", err)
		return
	}
	n.id = id
}
