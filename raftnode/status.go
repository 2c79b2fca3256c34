package raftnode

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/raftlog"
)

// Status is what a node knows about itself and its cluster at a moment, without
// asking anyone.
type Status struct {
	ID, ClusterID, DirectoryID string
	// Role is "leader", "follower", "candidate", "waiting" for a new directory
	// that is not bound to a cluster yet, or "stopped".
	Role string
	// Leader is the id of the leader, empty if unknown.
	Leader string
	Term   uint64
	// CommitIndex and LastIndex are raft's; AppliedIndex is the FSM's own.
	CommitIndex, LastIndex, AppliedIndex uint64
	Revision                             catalog.Revision
	Incarnation                          catalog.Incarnation
	Coordinator                          catalog.CoordinatorEpoch
	Level                                catalog.FeatureLevel
	// LastContact is when the leader was last heard of; zero at the leader and
	// while none was.
	LastContact time.Time
	Members     []MemberStatus
	// Health is empty when all is well, else what is not, for a human.
	Health []HealthIssue
	// SnapshotsInstalled counts snapshots taken over from a leader since start.
	SnapshotsInstalled int64
}

// MemberStatus is a node of the latest configuration.
type MemberStatus struct {
	ID       string
	Suffrage string // "voter" or "non-voter"
	Leader   bool
	RaftAddr string
	APIAddr  string
	HTTPAddr string
	Level    catalog.FeatureLevel
	Build    string
	// Agreed is the last checksum marker at which the member's state was the one
	// of a majority of all voters, as far as this node compared it while it led;
	// 0 if it did not.
	Agreed catalog.Revision
}

// HealthIssue is one thing that is not well.
type HealthIssue struct {
	// Code is a name of the error table, such as NO_SPACE or DISK_STALLED, or
	// STOPPED, DUTY_FAILED or SNAPSHOT_DAMAGED.
	Code    string
	Message string
}

func suffrage(s raft.ServerSuffrage) string {
	if s == raft.Voter {
		return "voter"
	}
	return "non-voter"
}

// Status returns the node's status. It never blocks on a disk or a peer.
func (n *Node) Status() Status {
	n.mu.Lock()
	s := Status{ID: n.cfg.ID, ClusterID: n.id.Cluster, DirectoryID: n.id.Directory, Role: "waiting"}
	n.mu.Unlock()
	st := n.fsm.State()
	c := st.Cluster()
	s.Revision, s.Incarnation, s.Coordinator, s.Level = st.Revision(), c.Incarnation, c.Coordinator, c.Level
	s.AppliedIndex = n.fsm.Index()
	s.Health = n.health()
	e := n.engine.Load()
	if e == nil {
		return s
	}
	s.Leader, s.Term = n.Leader(), e.raft.CurrentTerm()
	s.CommitIndex, s.LastIndex = e.raft.CommitIndex(), e.raft.LastIndex()
	s.SnapshotsInstalled = n.snaps.installs.Load()
	s.Role = n.role(e)
	if s.Role != "leader" {
		s.LastContact = e.raft.LastContact()
	}
	for _, v := range e.raft.GetConfiguration().Configuration().Servers {
		m := MemberStatus{ID: string(v.ID), Suffrage: suffrage(v.Suffrage), Leader: string(v.ID) == s.Leader}
		m.Agreed = n.compared.agreedAt(m.ID)
		m.RaftAddr, _ = n.Resolve(m.ID)
		if row, ok := st.Member(m.ID); ok {
			m.APIAddr, m.HTTPAddr, m.Level, m.Build = row.APIAddr, row.HTTPAddr, row.Level, row.Build
		}
		s.Members = append(s.Members, m)
	}
	return s
}

// role is decided above raft: behind a closed gate raft may still call itself
// leader.
func (n *Node) role(e *engine) string {
	select {
	case <-n.done:
		return "stopped"
	default:
	}
	switch {
	case n.lead.Load() != nil && !n.standsBack():
		return "leader"
	case e.raft.State() == raft.Candidate:
		return "candidate"
	case e.raft.State() == raft.Shutdown:
		return "stopped"
	default:
		return "follower"
	}
}

// health collects what is not well.
func (n *Node) health() []HealthIssue {
	var out []HealthIssue
	if err := n.Err(); err != nil {
		out = append(out, HealthIssue{Code: "STOPPED", Message: err.Error()})
	}
	if w := n.waiting.Load(); w != nil && n.engine.Load() == nil {
		out = append(out, HealthIssue{Code: catalog.ErrUnavailable.String(), Message: "waiting for " + *w})
	}
	if n.engine.Load() != nil {
		if h := n.stores.Health(); h.Trouble != nil {
			code := catalog.ErrDiskStalled
			if h.Trouble.Kind != raftlog.TroubleStalled {
				code = catalog.ErrNoSpace
			}
			out = append(out, HealthIssue{Code: code.String(), Message: "writes are held: " + h.Trouble.String()})
		}
	}
	if n.removed() {
		out = append(out, HealthIssue{Code: "REMOVED", Message: "node " + n.cfg.ID + " is not a member of the cluster any more and gets nothing new; stop it, " +
			"or bring it back with 'stave cluster add " + n.cfg.ID + "=" + n.cfg.AdvertiseRaft + "'"})
	}
	out = append(out, n.snapshotHealth()...)
	if d := n.diverged.Load(); d != nil {
		out = append(out, HealthIssue{Code: catalog.ErrDiverged.String(), Message: d.String()})
	}
	if split := n.compared.openSplit(); split != "" && n.lead.Load() != nil {
		out = append(out, HealthIssue{Code: catalog.ErrDiverged.String(), Message: split})
	}
	if l := n.lead.Load(); l != nil {
		if what := l.clock.jumped(); what != "" {
			out = append(out, HealthIssue{Code: catalog.ErrClockJump.String(), Message: what})
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(n.dutyErrs)) {
		out = append(out, HealthIssue{Code: "DUTY_FAILED", Message: name + ": " + n.dutyErrs[name]})
	}
	return out
}

func (n *Node) snapshotHealth() []HealthIssue {
	var out []HealthIssue
	if list := n.aside.Load(); list != nil {
		for _, path := range *list {
			out = append(out, HealthIssue{Code: "SNAPSHOT_DAMAGED", Message: path + " is damaged and was set aside; the node went on from an " +
				"older snapshot and its log. Check the disk, then delete that directory"})
		}
	}
	if n.engine.Load() != nil {
		if what := n.snaps.broken.Load(); what != nil {
			out = append(out, HealthIssue{Code: "SNAPSHOT_DAMAGED", Message: *what})
		}
	}
	return out
}

func (n *Node) setDutyError(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		delete(n.dutyErrs, name)
	} else {
		n.dutyErrs[name] = err.Error()
	}
}

// Ready reports whether the node has applied everything that was committed, as
// far as it knows, knows a leader and does not stand back because of its disk.
func (n *Node) Ready() bool {
	e := n.engine.Load()
	if e == nil || n.usable() != nil || n.Leader() == "" || n.gated.Load() {
		return false
	}
	return n.fsm.Index() >= n.lastRelevant(e)
}

// lastRelevant is the commit index, minus entries that never reach the FSM.
func (n *Node) lastRelevant(e *engine) uint64 {
	return min(e.raft.CommitIndex(), e.raft.AppliedIndex())
}

// buildVersion is what the binary says of itself.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}
