package catalog

import (
	"errors"
	"fmt"
)

// RestoreOptions say what a restored state takes from the cluster that restores
// it instead of from the snapshot.
type RestoreOptions struct {
	ClusterID string
	// Incarnation must be above the snapshot's and the cluster's.
	Incarnation Incarnation
	Level       FeatureLevel
	// Members are the rows of the restoring cluster.
	Members []Member
	// Revision is what the restored state will be at: above the snapshot's.
	Revision Revision
	Wall     Millis
}

// ErrRestoreOrder is returned when incarnation, level or revision of a restore
// are not above the snapshot's.
var ErrRestoreOrder = errors.New("restore would go backwards")

// Restored returns the state that a snapshot becomes in the restoring cluster:
// a new incarnation, the cluster's own id, members and level, no client
// records, no term, and every id counter raised by RestoreGap so that no id
// given out after the snapshot was taken is given out again.
func (s *State) Restored(o RestoreOptions) (*State, error) {
	cl := &s.cluster
	switch {
	case o.Incarnation.Number <= cl.Incarnation.Number:
		return nil, fmt.Errorf("%w: incarnation number %d is not above the snapshot's %d", ErrRestoreOrder, o.Incarnation.Number, cl.Incarnation.Number)
	case o.Level < cl.Level:
		return nil, fmt.Errorf("%w: feature level %d is below the snapshot's %d", ErrRestoreOrder, o.Level, cl.Level)
	case o.Revision <= s.revision:
		return nil, fmt.Errorf("%w: revision %d is not above the snapshot's %d", ErrRestoreOrder, o.Revision, s.revision)
	}
	b := s.Begin()
	b.rev = o.Revision
	b.Advance(o.Revision)
	var clients []*Client
	s.Clients(func(c *Client) bool {
		clients = append(clients, c)
		return true
	})
	for _, c := range clients {
		b.deleteClient(c)
	}
	var members []*Member
	s.Members(func(m *Member) bool {
		members = append(members, m)
		return true
	})
	for _, m := range members {
		b.deleteMember(m)
	}
	for i := range o.Members {
		m := o.Members[i]
		m.Revision = o.Revision
		b.putMember(nil, &m)
	}
	b.raiseCounters()
	c := &b.s.cluster
	c.ID, c.Incarnation, c.Level = o.ClusterID, o.Incarnation, o.Level
	c.Term, c.Leader = 0, ""
	c.Coordinator = NoCoordinator
	c.Wall = max(c.Wall, o.Wall)
	return b.Publish(), nil
}

func (b *Batch) raiseCounters() {
	cl := &b.s.cluster
	cl.NextTable += RestoreGap
	cl.NextPartition += RestoreGap
	cl.NextClient += RestoreGap
	var counters []*Counter
	b.s.Counters(func(c *Counter) bool {
		counters = append(counters, c)
		return true
	})
	for _, c := range counters {
		n := *c
		n.Next += RestoreGap
		n.Revision = b.rev
		b.putCounter(c, &n)
	}
}
