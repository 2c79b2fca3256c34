package catalog

// What a leader looks at to know whether a command is due. All of it is cheap
// enough to be asked every second.

// Assignable reports whether a tablet server is there that may get replicas.
func (s *State) Assignable() bool {
	found := false
	s.servers.all(func(_ ServerID, v *Server) bool {
		found = v.assignable()
		return !found
	})
	return found
}

// Purgeable reports whether PurgeDropped with this bound would change anything:
// a dropped table has partitions left, or the oldest records are old enough.
func (s *State) Purgeable(before Millis) bool {
	due := false
	s.droppedTables.all(func(id TableID, _ *DroppedObject) bool {
		due = s.tableIDs.has(id)
		return !due
	})
	if due {
		return true
	}
	expired := func(d *DroppedObject) bool { return d.Dropped < before && len(d.Pending) == 0 }
	if _, d, ok := s.droppedParts.first(); ok && expired(d) {
		return true
	}
	_, d, ok := s.droppedTables.first()
	return ok && expired(d)
}
