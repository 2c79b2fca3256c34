package testtorture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/internal/testhistory"
)

// Config says how to torture.
type Config struct {
	// Duration of the faults; what comes before and after is extra.
	Duration time.Duration
	Seed     uint64
	// Callers of each workload, and how long they rest between calls.
	Callers map[string]int
	Pause   time.Duration
	// Every is how long a pair of faults lasts at least; at most two thirds more.
	Every time.Duration
	// PowerLoss says that the cluster's disks can lose power.
	PowerLoss bool
	// Log gets a line per fault; default: none.
	Log func(format string, args ...any)
}

// Callers is a mix of all workloads, n of the common ones.
func Callers(n int) map[string]int {
	return map[string]int{
		"kv": n, "layout": n, "ids": n, "echo": n, "bank": max(2, n/4), "partitions": max(1, n/2), "big": 1, "servers": max(2, n/4), "isr": max(1, n/4),
		"watch": max(2, n/2),
	}
}

// torturer is one run.
type torturer struct {
	Config
	c *testcluster.Cluster
	r *rand.Rand
}

// Run tortures an open cluster, heals it, and judges. It finishes the cluster.
func Run(ctx context.Context, c *testcluster.Cluster, cfg Config) (*testhistory.Report, *testhistory.History, error) {
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	t := &torturer{Config: cfg, c: c, r: rand.New(rand.NewPCG(cfg.Seed, 2))}
	h := testhistory.New(c.Began())
	load := testhistory.NewLoad(c, h, cfg.Seed)
	load.Pause = cfg.Pause
	loadCtx, endLoad := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, kind := range testhistory.KindNames {
		if n := cfg.Callers[kind]; n > 0 {
			wg.Go(func() {
				if err := load.Run(loadCtx, kind, n); err != nil {
					cfg.Log("workload %s: %v", kind, err)
				}
			})
		}
	}
	observed, endObserving := context.WithCancel(ctx)
	var seen sync.WaitGroup
	seen.Go(func() { load.Observe(observed, 50*time.Millisecond) })
	err := t.harm(ctx)
	endLoad()
	wg.Wait()
	if err == nil {
		err = testhistory.Settle(ctx, c)
	}
	endObserving()
	seen.Wait()
	report, checkErr := testhistory.Check(c, h)
	if checkErr != nil {
		return nil, h, checkErr
	}
	if err != nil {
		report.Problems = append(report.Problems, err.Error())
	}
	return report, h, nil
}

// harm gives one pair of faults after the other until the time is over.
func (t *torturer) harm(ctx context.Context) error {
	rest(ctx, time.Second)
	var recent []string
	for end := time.Now().Add(t.Duration); time.Now().Before(end) && ctx.Err() == nil; {
		// Two classes at once, none of the two that came just before.
		var picked []string
		for len(picked) < 2 {
			f := faults[t.r.IntN(len(faults))]
			if f.power && !t.PowerLoss || slices.Contains(recent, f.name) || slices.Contains(picked, f.name) {
				continue
			}
			if err := f.do(ctx, t); err != nil {
				return fmt.Errorf("%s: %w; %s", f.name, err, t.state(ctx))
			}
			picked = append(picked, f.name)
		}
		recent = picked
		t.Log("%6.1f s: %s", time.Since(t.c.Began()).Seconds(), strings.Join(picked, " + "))
		rest(ctx, t.Every+time.Duration(t.r.Int64N(int64(t.Every)*2/3+1)))
		if err := t.heal(ctx); err != nil {
			return err
		}
	}
	return nil
}

// heal ends the faults of one round, demands that writes work again, and every
// now and then that all nodes are equal.
func (t *torturer) heal(ctx context.Context) error {
	if t.r.IntN(4) == 0 {
		if err := testhistory.Settle(ctx, t.c); err != nil {
			return fmt.Errorf("after a heal: %w", err)
		}
		return nil
	}
	if err := t.c.Heal(); err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	down, err := t.c.Select(ctx, "down")
	if err != nil {
		return err
	}
	if err := t.c.Start(down...); err != nil {
		return err
	}
	if _, err := t.c.AwaitLeader(ctx, ""); err != nil {
		return fmt.Errorf("after a heal: %w", err)
	}
	return nil
}

func (t *torturer) state(ctx context.Context) string {
	var lines []string
	for id, st := range t.c.Statuses(ctx) {
		lines = append(lines, fmt.Sprintf("%s: %+v", id, st))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// any picks a running node, "" if none runs.
func (t *torturer) any() string {
	if ids := t.c.Running(); len(ids) > 0 {
		return ids[t.r.IntN(len(ids))]
	}
	return ""
}

// leader is who leads, or any node while nobody does.
func (t *torturer) leader(ctx context.Context) string {
	if l := t.c.Leader(ctx); l != "" {
		return l
	}
	return t.any()
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
