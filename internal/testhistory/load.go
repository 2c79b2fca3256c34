package testhistory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/internal/testcluster"
)

// Load puts callers on a cluster. Kinds of callers can be run together and at
// different times; all of them write to one History.
type Load struct {
	C *testcluster.Cluster
	H *History
	// Timeout bounds each call. NewLoad sets 3 s.
	Timeout time.Duration
	// Pause is how long a caller rests between calls.
	Pause time.Duration
	Seed  uint64

	mu      sync.Mutex
	callers int
	setup   map[string]bool
	// gate is held, by what is in it, over calls of setup: a bubble's clock stands
	// still while somebody waits for a mutex.
	gate chan struct{}
}

// NewLoad returns a load without callers.
func NewLoad(c *testcluster.Cluster, h *History, seed uint64) *Load {
	return &Load{C: c, H: h, Seed: seed, Timeout: 3 * time.Second, setup: map[string]bool{}, gate: make(chan struct{}, 1)}
}

// caller is one goroutine that calls.
type caller struct {
	l   *Load
	id  int
	c   *client.Client
	r   *rand.Rand
	seq int
}

// kinds are the workloads by name.
var kinds = map[string]func(*caller, context.Context){
	"kv":         (*caller).kv,
	"layout":     (*caller).layout,
	"ids":        (*caller).ids,
	"partitions": (*caller).partitions,
	"bank":       (*caller).bank,
	"big":        (*caller).big,
	"echo":       (*caller).echo,
	"servers":    (*caller).servers,
	"isr":        (*caller).isr,
	"watch":      (*caller).watch,
}

// KindNames are the names of the workloads.
var KindNames = []string{"kv", "layout", "ids", "partitions", "bank", "big", "echo", "servers", "isr", "watch"}

// Run runs n callers of a kind until ctx ends, and returns when all have ended.
// At most 8 callers share a client.
func (l *Load) Run(ctx context.Context, kind string, n int) error {
	do := kinds[kind]
	if do == nil {
		return fmt.Errorf("no workload %q, want one of %v", kind, KindNames)
	}
	var wg sync.WaitGroup
	for i := 0; i < n; i += 8 {
		l.mu.Lock()
		first := l.callers
		l.callers += min(8, n-i)
		l.mu.Unlock()
		// Every third client knows one node at the start, so that each node is
		// somebody's only way in for a while.
		var nodes []string
		if ids := l.C.Nodes(); first/8%3 == 2 {
			nodes = []string{ids[first/24%len(ids)]}
		}
		cl, err := l.C.Client(nodes, client.WithName("load-"+kind), client.WithTimeout(l.Timeout))
		if err != nil {
			return err
		}
		var group sync.WaitGroup
		for k := range min(8, n-i) {
			c := &caller{l: l, id: first + k, c: cl, r: rand.New(rand.NewPCG(l.Seed, uint64(first+k)))}
			group.Go(func() { do(c, ctx) })
		}
		wg.Go(func() {
			group.Wait()
			_ = cl.Close() //nolint:errcheck // nothing is left to lose
		})
	}
	wg.Wait()
	return nil
}

// Observe samples every node's state hash until ctx ends.
func (l *Load) Observe(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		l.C.Leader(ctx)
		for id, st := range l.C.Statuses(ctx) {
			if st.Revision > 0 {
				l.H.sample(Sample{id, st.Revision, st.Hash, st.Term})
			}
		}
		rest(ctx, every)
	}
}

// once does what a workload needs to have once, until it succeeds.
func (c *caller) once(ctx context.Context, name string, cmds ...catalog.Command) bool {
	select {
	case c.l.gate <- struct{}{}:
		defer func() { <-c.l.gate }()
	case <-ctx.Done():
		return false
	}
	c.l.mu.Lock()
	done := c.l.setup[name]
	c.l.mu.Unlock()
	if done {
		return true
	}
	for _, cmd := range cmds {
		for {
			if ctx.Err() != nil {
				return false
			}
			if op := c.write(ctx, "", cmd); op.Fate == Acked {
				break
			}
		}
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.setup[name] = true
	return true
}

// next says whether to make another call, after the caller's rest.
func (c *caller) next(ctx context.Context) bool {
	c.seq++
	if c.l.Pause > 0 {
		rest(ctx, c.l.Pause)
	}
	return ctx.Err() == nil
}

// write has a command executed and notes how that went. It does not end with
// ctx, so that a load that ends leaves no unknown outcomes.
func (c *caller) write(_ context.Context, object string, cmd catalog.Command) Op {
	ctx, cancel := context.WithTimeout(context.Background(), c.l.Timeout)
	defer cancel()
	op := Op{Caller: c.id, Object: object, Command: cmd, Call: c.l.H.now()}
	res, err := c.c.Do(ctx, cmd)
	op.Return = c.l.H.now()
	var refusal *catalog.Error
	var call *client.CallError
	switch {
	case err == nil, errors.As(err, &refusal) && !errors.As(err, &call):
		op.Result = res
	case errors.Is(err, catalog.ErrOutcomeUnknown):
		op.Fate = Unknown
		if errors.As(err, &call) {
			op.Client, op.Sequence = call.Client, call.Sequence
		}
	default:
		op.Fate = Failed
	}
	c.l.H.add(op)
	if op.Fate != Acked {
		rest(ctx, 20*time.Millisecond)
	}
	return op
}

// read notes a linearizable read. see turns err into what an absent object is.
func (c *caller) read(object string, see func(context.Context) (Seen, client.Meta, error)) (Seen, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), c.l.Timeout)
	defer cancel()
	op := Op{Caller: c.id, Object: object, Call: c.l.H.now(), Fate: Failed}
	seen, meta, err := see(ctx)
	op.Return = c.l.H.now()
	if err == nil {
		op.Fate, op.Read, op.Revision = Acked, &seen, meta.Revision
	}
	c.l.H.add(op)
	if err != nil {
		rest(ctx, 20*time.Millisecond)
	}
	return seen, err == nil
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
