package raftnode

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

const (
	// renewInterval is how long the leader gathers keepalives for one log entry,
	// however many servers there are. It is far below the shortest TTL.
	renewInterval = 250 * time.Millisecond
	// expireInterval is how often leases are looked at.
	expireInterval = 500 * time.Millisecond
	// maxLeases bounds the leases of one keepalive and of one log entry.
	maxLeases = 20_000
)

// LostLease is a lease that a keepalive could not renew: ErrSessionExpired when
// it has ended, ErrFenced when the server was registered anew.
type LostLease struct {
	Lease catalog.Lease
	Err   error
}

// KeepAlive renews leases of tablet servers. It may be called on any node and
// returns when the renewal is applied, within a fraction of a second. The holder
// must count its time to live from when it called. An error says that nothing is
// known to be renewed: the holder tries again until its time is over.
func (n *Node) KeepAlive(ctx context.Context, leases []catalog.Lease) ([]LostLease, error) {
	if err := n.usable(); err != nil {
		return nil, err
	}
	if len(leases) > maxLeases {
		return nil, &catalog.Error{
			Code: catalog.ErrTooLarge, Limit: maxLeases, Size: uint64(len(leases)),
			Message: fmt.Sprintf("%d leases in one keepalive are above %d", len(leases), maxLeases),
		}
	}
	if n.lead.Load() != nil {
		return n.keepalives.renew(ctx, leases)
	}
	if n.cfg.NoForward {
		return nil, n.notLeader()
	}
	return n.forwardKeepAlive(ctx, leases)
}

// keepalives gathers the keepalives of one interval into one log entry.
type keepalives struct {
	n  *Node
	mu struct {
		sync.Mutex
		next *renewal // being gathered; nil: nothing waits
	}
}

// renewal is one log entry's worth of keepalives.
type renewal struct {
	leases map[catalog.ServerID]catalog.Lease
	done   chan struct{} // closed when rev or err is set
	rev    catalog.Revision
	err    error
}

// renew waits for the entry that holds the leases, and then looks at the state.
func (k *keepalives) renew(ctx context.Context, leases []catalog.Lease) ([]LostLease, error) {
	r, err := k.join(leases)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, outcomeUnknown("keepalive", context.Cause(ctx))
	}
	if r.err != nil {
		return nil, r.err
	}
	st := k.n.fsm.State()
	var lost []LostLease
	for _, l := range leases {
		if err := st.RenewalError(l, r.rev); err != nil {
			lost = append(lost, LostLease{l, err})
		}
	}
	return lost, nil
}

func (k *keepalives) join(leases []catalog.Lease) (*renewal, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.mu.next
	if r == nil {
		r = &renewal{leases: map[catalog.ServerID]catalog.Lease{}, done: make(chan struct{})}
		if !k.n.goFunc(func() { k.send(r) }) {
			return nil, ErrClosed
		}
		k.mu.next = r
	}
	for _, l := range leases {
		// Of two incarnations of a server the newer one counts.
		if old, ok := r.leases[l.ID]; !ok || old.Incarnation < l.Incarnation {
			r.leases[l.ID] = l
		}
	}
	return r, nil
}

// send proposes the renewal at the end of the interval.
func (k *keepalives) send(r *renewal) {
	defer close(r.done)
	open := k.n.sleep(renewInterval)
	k.mu.Lock()
	k.mu.next = nil
	k.mu.Unlock()
	if !open {
		r.err = ErrClosed
		return
	}
	l := k.n.lead.Load()
	if l == nil {
		r.err = k.n.notLeader()
		return
	}
	cmd := catalog.RenewLeases{Leases: make([]catalog.Lease, 0, len(r.leases))}
	for _, id := range slices.Sorted(maps.Keys(r.leases)) {
		cmd.Leases = append(cmd.Leases, r.leases[id])
	}
	res, err := k.n.ordered(k.n.ctx, l, cmd)
	r.rev, r.err = res.Revision, err
}

// dutyExpire ends the leases whose time is over on the lease clock. Each expiry
// names the renewal that was seen, so that a later one wins.
func (n *Node) dutyExpire(ctx context.Context, l *leadership) error {
	now := n.envelope(l, catalog.Envelope{}).Lease
	var due []catalog.Expiry
	n.fsm.State().Servers(func(v *catalog.Server) bool {
		if v.Live && now-v.Renewed >= v.TTL {
			due = append(due, catalog.Expiry{ID: v.ID, Incarnation: v.Incarnation, RenewedAt: v.RenewedAt})
		}
		return len(due) < maxLeases
	})
	if len(due) == 0 {
		return nil
	}
	return n.order(ctx, l, catalog.ExpireServers{Servers: due})
}

func leaseRecord(c *msgpack.Codec, l *catalog.Lease) {
	c.Record(2)
	msgpack.Int(c, &l.ID)
	msgpack.Uint(c, &l.Incarnation)
}

// lostRecord is a LostLease on the way between nodes.
type lostRecord struct {
	lease   catalog.Lease
	code    catalog.Code
	message string
}

func (l *lostRecord) record(c *msgpack.Codec) {
	c.Record(3)
	leaseRecord(c, &l.lease)
	msgpack.Int(c, &l.code)
	c.String(&l.message)
}

func lostRecords(c *msgpack.Codec, v *[]lostRecord) {
	msgpack.Slice(c, v, maxLeases, func(c *msgpack.Codec, l *lostRecord) { l.record(c) })
}

// serveKeepAlive renews leases for another node.
func (n *Node) serveKeepAlive(ctx context.Context, _ string, req []byte) ([]byte, error) {
	var leases []catalog.Lease
	in := msgpack.NewDecoder(req)
	msgpack.Slice(in, &leases, maxLeases, leaseRecord)
	if err := in.Finish(); err != nil {
		return nil, fmt.Errorf("leases: %w", err)
	}
	if n.lead.Load() == nil {
		return nil, n.notLeader()
	}
	lost, err := n.keepalives.renew(ctx, leases)
	if err != nil {
		return nil, err
	}
	records := make([]lostRecord, len(lost))
	for i, l := range lost {
		records[i] = lostRecord{lease: l.Lease, code: codeOf(l.Err), message: l.Err.Error()}
	}
	out := msgpack.NewEncoder(nil)
	lostRecords(out, &records)
	return out.Bytes(), out.Finish()
}

// forwardKeepAlive hands a keepalive to the leader once.
func (n *Node) forwardKeepAlive(ctx context.Context, leases []catalog.Lease) ([]LostLease, error) {
	leader := n.Leader()
	if leader == "" || leader == n.cfg.ID {
		return nil, n.notLeader()
	}
	c := msgpack.NewEncoder(nil)
	msgpack.Slice(c, &leases, maxLeases, leaseRecord)
	if err := c.Finish(); err != nil {
		return nil, unavailable("keepalive: %s", err)
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	data, err := n.peers.Call(ctx, leader, methodKeepAlive, c.Bytes())
	if err != nil {
		return nil, forwardError(leader, err)
	}
	var records []lostRecord
	in := msgpack.NewDecoder(data)
	lostRecords(in, &records)
	if err := in.Finish(); err != nil {
		return nil, outcomeUnknown("keepalive answer of "+leader, err)
	}
	var lost []LostLease
	for _, r := range records {
		lost = append(lost, LostLease{r.lease, &catalog.Error{Code: r.code, Message: r.message}})
	}
	return lost, nil
}
