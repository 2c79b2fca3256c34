package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

const (
	// stagger is how long an address may take before the next one is tried beside it.
	stagger = 200 * time.Millisecond
	// leaderGrace is how long a call waits for a connection to the leader while
	// another node could be asked.
	leaderGrace = 300 * time.Millisecond

	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// peer is one address.
type peer struct {
	addr       string
	link       *link // of the node behind the address; two addresses may share it
	connecting bool
	failures   int
	notBefore  time.Time
	err        error
}

// pool knows the addresses and connections of one cluster.
type pool struct {
	cfg       *config
	endpoints []endpoint
	ctx       context.Context //nolint:containedctx // the life of the pool's goroutines
	stop      context.CancelCauseFunc
	wg        sync.WaitGroup

	mu struct {
		sync.Mutex
		closed  bool
		peers   []*peer
		cluster string
		// resolved are the addresses of dns endpoints, members those announced in the
		// state of membersAt.
		resolved, members []string
		membersAt         position
		leader            hint
		current           *link
		resolving         bool
		resolveAfter      time.Time
		changed           chan struct{} // closed and replaced at every change
	}
}

// position orders states.
type position struct {
	inc catalog.Incarnation
	rev catalog.Revision
}

func (p position) compare(o position) int {
	if c := p.inc.Compare(o.inc); c != 0 {
		return c
	}
	switch {
	case p.rev < o.rev:
		return -1
	case p.rev > o.rev:
		return 1
	}
	return 0
}

// hint is who leads, as far as known.
type hint struct{ node, addr string }

func newPool(cfg *config, endpoints []endpoint) *pool {
	p := &pool{cfg: cfg, endpoints: endpoints}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	p.mu.changed = make(chan struct{})
	p.mu.Lock()
	p.rebuild()
	p.mu.Unlock()
	return p
}

// goFunc starts a goroutine that close waits for, unless the pool is closed.
func (p *pool) goFunc(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.goLocked(f)
}

func (p *pool) goLocked(f func()) bool {
	if p.mu.closed {
		return false
	}
	p.wg.Go(f)
	return true
}

func (p *pool) close() {
	p.mu.Lock()
	p.mu.closed = true
	var links []*link
	for _, q := range p.mu.peers {
		if q.link != nil && !slices.Contains(links, q.link) {
			links = append(links, q.link)
		}
	}
	p.signal()
	p.mu.Unlock()
	p.stop(ErrClosed)
	for _, l := range links {
		l.close()
	}
	p.wg.Wait()
}

// signal wakes everyone who waits in acquire. The lock is held.
func (p *pool) signal() {
	close(p.mu.changed)
	p.mu.changed = make(chan struct{})
}

// rebuild makes the list of peers from all sources, keeping what is known of
// each. The lock is held.
func (p *pool) rebuild() {
	var addrs []string
	for _, e := range p.endpoints {
		if !e.dns {
			addrs = append(addrs, e.String())
		}
	}
	addrs = append(append(addrs, p.mu.resolved...), p.mu.members...)
	if p.mu.leader.addr != "" {
		addrs = append(addrs, p.mu.leader.addr)
	}
	var peers []*peer
	for _, a := range addrs {
		if slices.ContainsFunc(peers, func(q *peer) bool { return q.addr == a }) {
			continue
		}
		i := slices.IndexFunc(p.mu.peers, func(q *peer) bool { return q.addr == a })
		if i >= 0 {
			peers = append(peers, p.mu.peers[i])
		} else {
			peers = append(peers, &peer{addr: a})
		}
	}
	for _, q := range p.mu.peers { // a connection outlives the name it was found by
		if (q.link != nil || q.connecting) && !slices.Contains(peers, q) {
			peers = append(peers, q)
		}
	}
	p.mu.peers = peers
}

// acquire returns a link to a node that is not in avoid, connecting as needed;
// an avoided one if there is no other. With leader it prefers the leader.
func (p *pool) acquire(ctx context.Context, leader bool, avoid map[string]bool) (*link, error) {
	var start time.Time
	for {
		p.mu.Lock()
		if p.mu.closed {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		now := time.Now()
		if start.IsZero() {
			start = now
		}
		l, wait := p.choose(now, now.Sub(start), leader, avoid)
		changed, known := p.mu.changed, p.problems()
		p.mu.Unlock()
		if l != nil {
			return l, nil
		}
		t := time.NewTimer(wait)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, &noNodeError{cause: context.Cause(ctx), known: known}
		}
		t.Stop()
	}
}

// noNodeError says why no node could be asked.
type noNodeError struct {
	cause error
	known error
}

func (e *noNodeError) Error() string {
	if e.known == nil {
		return "no node is connected"
	}
	return "no node is connected: " + e.known.Error()
}

// stuck says why no node could be asked now, nil if one could.
func (p *pool) stuck() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.mu.peers {
		if q.link != nil && q.link.ready() {
			return nil
		}
	}
	return &noNodeError{known: p.problems()}
}

// problems is what is wrong with each address. The lock is held.
func (p *pool) problems() error {
	var errs []error
	for _, q := range p.mu.peers {
		if q.err != nil && q.link == nil {
			errs = append(errs, q.err)
		}
	}
	return errors.Join(errs...)
}

// choose picks a link, or starts connecting and says how long to wait before it
// is asked again. The lock is held.
func (p *pool) choose(now time.Time, waited time.Duration, leader bool, avoid map[string]bool) (*link, time.Duration) {
	if leader {
		if l, pending := p.leaderLink(now, avoid); l != nil {
			return l, 0
		} else if pending && waited < leaderGrace {
			return nil, leaderGrace - waited
		}
	}
	if l := p.liveLink(avoid); l != nil {
		return l, 0
	}
	next := time.Duration(-1)
	connecting := 0
	var candidates []*peer
	for _, q := range p.mu.peers {
		switch {
		case q.connecting:
			connecting++
		case q.link != nil || avoid[q.addr]:
		case now.Before(q.notBefore):
			if d := q.notBefore.Sub(now); next < 0 || d < next {
				next = d
			}
		default:
			candidates = append(candidates, q)
		}
	}
	p.resolve(now)
	if len(candidates) > 0 && (connecting == 0 || waited >= stagger*time.Duration(connecting)) {
		p.connect(candidates[rand.IntN(len(candidates))])
		return nil, stagger
	}
	if connecting > 0 {
		return nil, stagger
	}
	if l := p.liveLink(nil); l != nil { // better one that was tried than none
		return l, 0
	}
	for _, q := range p.mu.peers {
		if q.link == nil && !now.Before(q.notBefore) { // avoided, but there is no other
			p.connect(q)
			return nil, stagger
		}
	}
	if next < 0 || next > stagger {
		next = stagger
	}
	return nil, next
}

// leaderLink returns the link to the leader, or starts connecting to it.
func (p *pool) leaderLink(now time.Time, avoid map[string]bool) (l *link, pending bool) {
	h := p.mu.leader
	if h == (hint{}) {
		return nil, false
	}
	for _, q := range p.mu.peers {
		if q.link != nil && q.link.ready() && h.node != "" && q.link.id.node == h.node && !avoid[q.link.addr] {
			return q.link, false
		}
	}
	for _, q := range p.mu.peers {
		if q.addr != h.addr || avoid[q.addr] {
			continue
		}
		if q.connecting {
			return nil, true
		}
		if q.link == nil && !now.Before(q.notBefore) {
			p.connect(q)
			return nil, true
		}
	}
	return nil, false
}

func (p *pool) liveLink(avoid map[string]bool) *link {
	if l := p.mu.current; l != nil && !avoid[l.addr] && l.ready() {
		return l
	}
	for _, q := range p.mu.peers {
		if q.link != nil && !avoid[q.link.addr] && q.link.ready() {
			p.mu.current = q.link
			return q.link
		}
	}
	return nil
}

// connect opens a link in the background. The lock is held.
func (p *pool) connect(q *peer) {
	q.connecting = p.goLocked(func() {
		l, st, err := openLink(p.ctx, q.addr, p.cfg.dial, p.cfg.tracing)
		p.connected(q, l, st, err)
	})
}

func (p *pool) connected(q *peer, l *link, st *pb.StatusResponse, err error) {
	var unused *link
	defer func() {
		if unused != nil {
			unused.close()
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	q.connecting = false
	defer p.signal()
	if err == nil && p.mu.cluster != "" && l.id.cluster != p.mu.cluster {
		err = fmt.Errorf("identify %s: node %s belongs to cluster %s, want %s", q.addr, l.id.node, l.id.cluster, p.mu.cluster)
	}
	if err == nil && p.mu.closed {
		err = ErrClosed
	}
	if err != nil {
		unused = l
		q.failures++
		q.err = err
		q.notBefore = time.Now().Add(backoff(q.failures))
		if q.failures == 1 {
			p.cfg.logger.Info("no connection", slog.String("addr", q.addr), slog.Any("error", err))
		}
		p.rebuild()
		return
	}
	p.mu.cluster = l.id.cluster
	q.failures, q.err = 0, nil
	if same := p.linkOf(l.id); same != nil { // one node by two names
		q.link, unused = same, l
	} else {
		q.link = l
		p.cfg.logger.Debug("connected", slog.String("addr", q.addr), slog.String("node", l.id.node))
		p.goLocked(func() { p.attend(l) })
	}
	p.observeStatus(st)
}

func (p *pool) linkOf(id identity) *link {
	for _, q := range p.mu.peers {
		if q.link != nil && q.link.id == id && q.link.ready() {
			return q.link
		}
	}
	return nil
}

// attend stays with a link until it takes no more calls, takes it out of the
// pool, and closes it once the calls in flight have ended.
func (p *pool) attend(l *link) {
	p.wg.Go(func() {
		if cause := l.probe(p.ctx, func(st *pb.StatusResponse) {
			p.mu.Lock()
			p.observeStatus(st)
			p.mu.Unlock()
		}); cause != nil {
			p.cfg.logger.Warn("connection is silent", slog.String("addr", l.addr), slog.String("node", l.id.node), slog.Any("cause", cause))
			p.forget(l, cause)
		}
	})
	l.watch(p.ctx)
	p.forget(l, nil)
	select {
	case <-l.raw.closed:
	case <-p.ctx.Done():
	}
	l.close()
}

// forget takes a link out of the pool. A silent node is not tried again at once.
func (p *pool) forget(l *link, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.mu.peers {
		if q.link != l {
			continue
		}
		q.link = nil
		if cause != nil {
			q.failures++
			q.err, q.notBefore = cause, time.Now().Add(backoff(q.failures))
		}
	}
	if p.mu.current == l {
		p.mu.current = nil
	}
	if p.mu.leader.node == l.id.node {
		p.mu.leader = hint{} // it will be named again if it still leads
	}
	p.rebuild()
	p.signal()
}

// backoff is a random pause that grows with the number of failures in a row.
func backoff(failures int) time.Duration {
	d := minBackoff << min(failures-1, 10)
	d = min(max(d, minBackoff), maxBackoff)
	return d/2 + rand.N(d/2+1)
}

// untried reports whether some node may exist that is not in done, which holds
// node ids.
func (p *pool) untried(done map[string]bool) bool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.mu.peers {
		switch {
		case q.link != nil && q.link.ready():
			if !done[q.link.id.node] {
				return true
			}
		case q.connecting || q.failures == 0 || !now.Before(q.notBefore) && q.failures < 3:
			return true
		}
	}
	return false
}
