package catalog

import (
	"strconv"
	"strings"
)

// Bounds of a tablet server's registration.
const (
	MinServerTTL Millis = 1_000
	MaxServerTTL Millis = 600_000
	maxListeners        = 16
)

func (b *Batch) registerServer(c RegisterServer) (Result, *Error) {
	if err := checkServer(c); err != nil {
		return Result{}, err
	}
	cl := &b.s.cluster
	old, _ := b.s.servers.get(c.ID)
	if old != nil && old.Live && old.DirectoryID != c.DirectoryID && cl.Lease-old.Renewed < old.TTL {
		return Result{}, refuse(ErrServerIDInUse, "tablet server %d is registered with directory id %s for another %d ms",
			c.ID, old.DirectoryID, old.TTL-(cl.Lease-old.Renewed))
	}
	v := &Server{
		ID: c.ID, Incarnation: ServerIncarnation(b.rev), DirectoryID: c.DirectoryID, Listeners: c.Listeners, Rack: c.Rack, TTL: c.TTL,
		Renewed: cl.Lease, RenewedAt: b.rev, Live: true, Registered: cl.Wall, Revision: b.rev,
	}
	if old != nil {
		v.Incarnation, v.Tag = old.Incarnation+1, old.Tag
	}
	b.putServer(old, v, false)
	if old != nil { // a server without a record holds no replica
		if old.Live { // the process that held the old incarnation is gone, whatever its lease says
			b.serversReplaced(v.ID)
		}
		b.serverBack(v.ID)
	}
	return Result{Changed: true, IDs: []IDRange{{uint64(v.Incarnation), 1}}}, nil
}

// serversReplaced takes leadership away from a server that was restarted: to
// another replica if one is in sync, else to itself under a new leader epoch,
// so that nothing of its old incarnation is accepted any more.
func (b *Batch) serversReplaced(id ServerID) {
	alive := b.aliveSet()
	self := serverSet([]ServerID{id})
	b.eachPlaced(self, func(standby bool, s BucketState, replicas []ServerID) (BucketState, bool) {
		return withoutServers(s, replicas, standby, self, func(s ServerID) bool { return s != id && alive(s) })
	})
}

func checkServer(c RegisterServer) *Error {
	switch {
	case c.ID < 0:
		return refuse(ErrInvalidArgument, "tablet server id %d is below 0", c.ID)
	case c.TTL < MinServerTTL || c.TTL > MaxServerTTL:
		return refuse(ErrInvalidArgument, "ttl %d ms is not in %d..%d ms", c.TTL, MinServerTTL, MaxServerTTL)
	case c.DirectoryID == "":
		return refuse(ErrInvalidArgument, "directory id of tablet server %d is empty", c.ID)
	case len(c.Listeners) < 1 || len(c.Listeners) > maxListeners:
		return refuse(ErrInvalidArgument, "tablet server %d has %d listeners, want 1..%d", c.ID, len(c.Listeners), maxListeners)
	}
	for _, l := range c.Listeners {
		if err := checkListener(l); err != nil {
			return err
		}
	}
	if err := checkText("rack", c.Rack, maxNameBytes); err != nil {
		return err
	}
	return checkText("directory id", c.DirectoryID, maxNameBytes)
}

// checkListener wants "host:port" or "NAME://host:port".
func checkListener(l string) *Error {
	if err := checkText("listener", l, maxNameBytes); err != nil {
		return err
	}
	addr := l
	if _, rest, ok := strings.Cut(l, "://"); ok {
		addr = rest
	}
	i := strings.LastIndexByte(addr, ':')
	host, port := addr[:max(i, 0)], addr[i+1:]
	if strings.Contains(host, ":") && (host[0] != '[' || host[len(host)-1] != ']') {
		host = "" // an IPv6 address needs brackets
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" || strings.ContainsAny(host, " /") {
		return refuse(ErrInvalidArgument, "listener %q is not host:port or NAME://host:port with a port in 1..65535", l)
	}
	return nil
}

func (b *Batch) unregisterServer(c UnregisterServer) (Result, *Error) {
	v, ok := b.s.servers.get(c.ID)
	if !ok {
		return Result{}, refuse(ErrServerNotExist, "tablet server %d is not registered", c.ID)
	}
	if c.Incarnation.Set && c.Incarnation.V != v.Incarnation {
		return Result{}, &Error{
			Code: ErrFenced, Current: uint64(v.Incarnation),
			Message: "tablet server " + itoa(int64(c.ID)) + " has incarnation " + utoa(uint64(v.Incarnation)) + ", not " + utoa(uint64(c.Incarnation.V)),
		}
	}
	if n := b.s.ReplicasOn(c.ID); n > 0 {
		return Result{}, refuseLimit(ErrInvalidArgument, 0, uint64(n), "tablet server %d still holds %d bucket replicas; tag it permanent-offline and rebalance first", c.ID, n)
	}
	b.serverForgotten(c.ID)
	b.deleteServer(v)
	return Result{Changed: true}, nil
}

// ReplicasOn counts the bucket replicas assigned to a server. It scans all
// placements.
func (s *State) ReplicasOn(id ServerID) int {
	n := 0
	count := func(p *Placement) {
		if p == nil {
			return
		}
		for _, list := range p.Replicas {
			for _, r := range list {
				if r == id {
					n++
				}
			}
		}
	}
	s.tableIDs.all(func(_ TableID, t *Table) bool {
		count(t.Placement)
		return true
	})
	s.partIDs.all(func(_ PartitionID, p *Partition) bool {
		count(p.Placement)
		return true
	})
	return n
}
