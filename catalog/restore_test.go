package catalog

import (
	"errors"
	"testing"
)

// TestRestored: a new history above the old one, in which no id comes back.
func TestRestored(t *testing.T) {
	h := newHistory(t)
	h.must(NewTerm{Term: 4, Leader: "n1"})
	h.must(ActivateIncarnation{ClusterID: "old", Incarnation: Incarnation{100, 1}, Level: 1})
	h.must(AnnounceMember{NodeID: "n1", Level: 1})
	h.orders(2)
	h.create("shop.orders", "a", "b")
	h.must(AllocateIDs{Counter: "n", Count: 5})
	id := h.client()
	h.as(id, 1, 0).must(PutKV{Key: "k"})
	was := h.last
	o := RestoreOptions{
		ClusterID: "new", Incarnation: Incarnation{200, 2}, Level: 1, Members: []Member{{NodeID: "m1", Level: 1}}, Revision: was.Revision() + 10, Wall: 5_000,
	}
	s, err := was.Restored(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	reload(t, s)
	c := s.Cluster()
	if c.ID != "new" || c.Incarnation != o.Incarnation || c.Term != 0 || c.Coordinator != NoCoordinator || c.Wall != 5_000 || s.Revision() != o.Revision {
		t.Errorf("cluster %+v at %d", c, s.Revision())
	}
	if c.NextTable != 1+RestoreGap || c.NextPartition != 2+RestoreGap || c.NextClient != 2+RestoreGap {
		t.Errorf("counters %d %d %d", c.NextTable, c.NextPartition, c.NextClient)
	}
	if n, _ := s.Counter("n"); n.Next != 5+RestoreGap {
		t.Errorf("counter %+v", n)
	}
	_, oldMember := s.Member("n1")
	_, newMember := s.Member("m1")
	if n := s.Counts(); n.Clients != 0 || oldMember || !newMember || n.Partitions != 2 || n.Keys != 1 {
		t.Errorf("rows %+v, members %v %v", n, oldMember, newMember)
	}
	if err := was.Check(); err != nil || was.Counts().Clients != 1 {
		t.Errorf("the source was touched: %v, %+v", err, was.Counts())
	}
	// A leader of any raft term begins the new incarnation's epochs.
	b := s.Begin()
	if r, _ := b.Apply(o.Revision+1, Envelope{}, NewTerm{Term: 1, Leader: "m1"}); r.Epoch != 0 || !r.Changed {
		t.Errorf("first term of the new incarnation: %+v", r)
	}
	if r, _ := b.Apply(o.Revision+2, Envelope{Client: id, Sequence: 1}, PutKV{Key: "k"}); r.Code != ErrSessionExpired {
		t.Errorf("old client: %v", r.Err())
	}

	for name, bad := range map[string]func(*RestoreOptions){
		"incarnation": func(o *RestoreOptions) { o.Incarnation.Number = 100 },
		"level":       func(o *RestoreOptions) { o.Level = 0 },
		"revision":    func(o *RestoreOptions) { o.Revision = was.Revision() },
	} {
		x := o
		bad(&x)
		if _, err := was.Restored(x); !errors.Is(err, ErrRestoreOrder) {
			t.Errorf("%s not above: %v", name, err)
		}
	}
}

// TestActivateIncarnation: histories only begin above the current one.
func TestActivateIncarnation(t *testing.T) {
	h := newHistory(t)
	h.refused(ErrVersionConflict, ActivateIncarnation{ClusterID: "c"}, "incarnation number 0")
	first := ActivateIncarnation{ClusterID: "c", Incarnation: Incarnation{10, 1}, Level: 1}
	h.must(first)
	h.unchanged(first)
	h.refused(ErrVersionConflict, ActivateIncarnation{ClusterID: "c", Incarnation: Incarnation{10, 2}})
	h.refused(ErrInvalidArgument, ActivateIncarnation{ClusterID: "x", Incarnation: Incarnation{11, 2}}, "cluster id")
	h.must(ActivateIncarnation{Incarnation: Incarnation{11, 2}})
	if c := h.last.Cluster(); c.ID != "c" || c.Level != 1 {
		t.Errorf("cluster %+v", c)
	}
}

// TestMembersAndLevel: the level rises only when everybody announced it.
func TestMembersAndLevel(t *testing.T) {
	h := newHistory(t)
	n1, n2 := AnnounceMember{NodeID: "n1", Level: 2, APIAddr: "a"}, AnnounceMember{NodeID: "n2", Level: 1}
	h.must(n1)
	h.must(n2)
	h.unchanged(n1)
	h.must(SetFeatureLevel{Level: 1})
	h.refused(ErrUnsupportedCommandVersion, SetFeatureLevel{Level: 2}, "member n2", "level 1")
	n2.Level = 2
	h.must(n2)
	h.must(SetFeatureLevel{Level: 2})
	h.unchanged(SetFeatureLevel{Level: 1})
	h.refused(ErrUnsupportedCommandVersion, AnnounceMember{NodeID: "n3", Level: 1}, "n3")
	h.refused(ErrInvalidArgument, AnnounceMember{Level: 2}, "node id")
	h.must(ForgetMember{NodeID: "n2"})
	h.unchanged(ForgetMember{NodeID: "n2"})
	h.unchanged(Checksum{})
	h.refused(ErrUnknownCommand, strange{}, "Kind255")
}

// strange is a command that no build knows.
type strange struct{}

func (strange) Kind() Kind { return 255 }
