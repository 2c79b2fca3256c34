package catalog

func (b *Batch) newTerm(c NewTerm) (Result, *Error) {
	cl := &b.s.cluster
	if c.Term <= cl.Term {
		return Result{Epoch: uint64(max(cl.Coordinator, 0))}, nil
	}
	if err := checkText("leader", c.Leader, maxNameBytes); err != nil {
		return Result{}, err
	}
	before := b.clusterRow()
	cl.Term, cl.Leader = c.Term, c.Leader
	cl.Coordinator++
	b.change(before, b.clusterRow())
	return Result{Changed: true, Epoch: uint64(cl.Coordinator)}, nil
}

func (b *Batch) activateIncarnation(c ActivateIncarnation) (Result, *Error) {
	cl := &b.s.cluster
	if c.Incarnation == cl.Incarnation && !c.Incarnation.IsZero() {
		return Result{}, nil
	}
	if c.Incarnation.Number <= cl.Incarnation.Number {
		return Result{}, conflict(cl.Incarnation.Number, "incarnation number %d is not above the current %d", c.Incarnation.Number, cl.Incarnation.Number)
	}
	if cl.ID != "" && c.ClusterID != "" && c.ClusterID != cl.ID {
		return Result{}, refuse(ErrInvalidArgument, "cluster id %q differs from the current %q", c.ClusterID, cl.ID)
	}
	if err := checkText("cluster id", c.ClusterID, maxNameBytes); err != nil {
		return Result{}, err
	}
	before := b.clusterRow()
	cl.Incarnation = c.Incarnation
	if cl.ID == "" {
		cl.ID = c.ClusterID
	}
	cl.Level = max(cl.Level, c.Level)
	b.change(before, b.clusterRow())
	return Result{Changed: true}, nil
}

func (b *Batch) setLimits(c SetLimits) (Result, *Error) {
	if err := checkLimits(c.Limits); err != nil {
		return Result{}, err
	}
	if c.Database != "" {
		d, ok := b.s.databases.get(c.Database)
		if !ok {
			return Result{}, refuse(ErrDatabaseNotExist, "database %s does not exist", c.Database)
		}
		l := mergeLimits(d.Limits, c.Limits)
		if l == d.Limits {
			return Result{}, nil
		}
		n := *d
		n.Limits, n.Revision, n.Wall = l, b.rev, b.s.cluster.Wall
		b.putDatabase(d, &n)
		return Result{Changed: true}, nil
	}
	l := mergeLimits(b.s.cluster.Limits, c.Limits)
	if l == b.s.cluster.Limits {
		return Result{}, nil
	}
	before := b.clusterRow()
	b.s.cluster.Limits = l
	b.change(before, b.clusterRow())
	return Result{Changed: true}, nil
}

func checkLimits(l Limits) *Error {
	for _, f := range []struct {
		name       string
		value, max uint32
	}{
		{"buckets", l.Buckets, MaxLimits.Buckets},
		{"partitions", l.Partitions, MaxLimits.Partitions},
		{"replicas", l.Replicas, MaxLimits.Replicas},
	} {
		if f.value > f.max {
			return refuseLimit(ErrTooLarge, uint64(f.max), uint64(f.value), "limit %s %d is above %d", f.name, f.value, f.max)
		}
	}
	return nil
}

// FirstLevel is the feature level every cluster begins at.
const FirstLevel FeatureLevel = 1

// Allows returns nil if commands of a kind may enter the log, else
// ErrUnsupportedCommandVersion naming both levels: a member that does not know
// the kind would stop at the entry. The level is never lowered, so that what was
// allowed once stays allowed.
func (s *State) Allows(k Kind) *Error {
	if low := k.Level(); low > max(s.cluster.Level, FirstLevel) {
		return refuse(ErrUnsupportedCommandVersion, "command %s needs feature level %d, the cluster is at %d; it rises when every member runs a build of that level",
			k, low, s.cluster.Level)
	}
	return nil
}

func (b *Batch) setFeatureLevel(c SetFeatureLevel) (Result, *Error) {
	cl := &b.s.cluster
	if c.Level <= cl.Level {
		return Result{}, nil
	}
	var behind *Member
	b.s.members.all(func(_ string, m *Member) bool {
		if m.Level < c.Level {
			behind = m
		}
		return behind == nil
	})
	if behind != nil {
		return Result{}, refuse(ErrUnsupportedCommandVersion, "member %s announced feature level %d, below %d", behind.NodeID, behind.Level, c.Level)
	}
	before := b.clusterRow()
	cl.Level = c.Level
	b.change(before, b.clusterRow())
	return Result{Changed: true}, nil
}

func (b *Batch) announceMember(c AnnounceMember) (Result, *Error) {
	for _, f := range []struct{ name, value string }{
		{"node id", c.NodeID},
		{"directory id", c.DirectoryID},
		{"raft address", c.RaftAddr},
		{"API address", c.APIAddr},
		{"HTTP address", c.HTTPAddr},
		{"build", c.Build},
	} {
		if err := checkText(f.name, f.value, maxNameBytes); err != nil {
			return Result{}, err
		}
	}
	if c.NodeID == "" {
		return Result{}, refuse(ErrInvalidArgument, "node id is empty")
	}
	if c.Level < b.s.cluster.Level {
		return Result{}, refuse(ErrUnsupportedCommandVersion, "member %s supports feature level %d, the cluster is at %d", c.NodeID, c.Level, b.s.cluster.Level)
	}
	m := &Member{
		NodeID: c.NodeID, DirectoryID: c.DirectoryID, RaftAddr: c.RaftAddr, APIAddr: c.APIAddr, HTTPAddr: c.HTTPAddr,
		Level: c.Level, Build: c.Build,
	}
	old, ok := b.s.members.get(c.NodeID)
	if ok {
		m.Revision, m.hash = old.Revision, old.hash
		if *m == *old {
			return Result{}, nil
		}
	}
	m.Revision = b.rev
	b.putMember(old, m)
	return Result{Changed: true}, nil
}

func (b *Batch) forgetMember(c ForgetMember) (Result, *Error) {
	m, ok := b.s.members.get(c.NodeID)
	if !ok {
		return Result{}, nil
	}
	b.deleteMember(m)
	return Result{Changed: true}, nil
}
