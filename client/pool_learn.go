package client

import (
	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// observeStatus learns from what a node says. The lock is held.
func (p *pool) observeStatus(st *pb.StatusResponse) {
	h := st.GetHeader()
	at := position{api.IncarnationFromProto(h.GetIncarnation()), catalog.Revision(h.GetRevision())}
	if at.compare(p.mu.membersAt) >= 0 {
		p.mu.membersAt = at
		p.mu.members = p.mu.members[:0]
		for _, m := range st.GetMembers() {
			if a := m.GetMember().GetApiAddress(); a != "" {
				p.mu.members = append(p.mu.members, a)
			}
		}
		p.rebuild()
	}
	p.observeLeader(h.GetLeader())
}

// observeLeader notes who leads. The lock is held.
func (p *pool) observeLeader(l *pb.LeaderHint) {
	h := hint{l.GetNodeId(), l.GetAddress()}
	if h == (hint{}) || h == p.mu.leader {
		return
	}
	p.mu.leader = h
	p.rebuild()
}

func (p *pool) learnLeader(l *pb.LeaderHint) {
	if l == nil {
		return
	}
	p.mu.Lock()
	p.observeLeader(l)
	p.mu.Unlock()
}
