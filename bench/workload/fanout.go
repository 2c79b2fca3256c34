package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stavedb/stave/bench/load"
	"github.com/stavedb/stave/bench/report"
	"github.com/stavedb/stave/bench/target"
)

// watchKey is the key that everybody watches, and waitSeen how long a change may
// take to reach all of them.
const (
	watchKey = "watched"
	waitSeen = 30 * time.Second
)

// crowd counts how many watchers saw the current change.
type crowd struct {
	mu   sync.Mutex
	left int
	all  chan struct{}
}

// expect begins a change that n watchers are to see; the channel is closed when
// they did.
func (c *crowd) expect(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.all = n, make(chan struct{})
	return c.all
}

func (c *crowd) seen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.all)
	}
}

// fanOut writes one key, waits until all watchers saw the change, and goes on.
// Each watcher is a client with connections of its own.
func fanOut(ctx context.Context, r *Run) error {
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	if err := ss[0].Prepare(ctx, []string{watchKey}, value()); err != nil {
		return err
	}
	for _, n := range r.Scale.Watchers {
		if err := r.watched(ctx, ss[0], n); err != nil {
			return fmt.Errorf("%d watchers: %w", n, err)
		}
	}
	return nil
}

func (r *Run) watched(ctx context.Context, writer target.Session, n int) (err error) {
	watchers := make([]target.Session, n)
	defer func() {
		for _, s := range watchers {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
	}()
	err = load.Each(ctx, 32, n, func(ctx context.Context, i int) (err error) {
		watchers[i], err = target.Open(ctx, r.Cluster)
		return err
	})
	if err != nil {
		return err
	}
	life, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var c crowd
	var group sync.WaitGroup
	defer group.Wait()
	defer stop(nil)
	all := c.expect(n)
	for _, s := range watchers {
		group.Go(func() {
			if err := s.Watch(life, watchKey, c.seen); err != nil {
				stop(fmt.Errorf("watch: %w", err))
			}
		})
	}
	if err := await(life, all); err != nil {
		return err
	}
	res := load.Run(life, load.Options{Callers: 1, Warmup: r.Scale.Warmup, Duration: r.Scale.Duration}, func(ctx context.Context, _, _ int) error {
		all := c.expect(n)
		if err := writer.Put(ctx, watchKey, value()); err != nil {
			return err
		}
		return await(ctx, all)
	})
	if len(res.Latencies) == 0 {
		return fmt.Errorf("no change reached all watchers: %w", errors.Join(res.First, context.Cause(life)))
	}
	point := report.Number(n) + " watchers"
	r.add(report.Sample{Work: report.FanOut, Point: point, X: float64(n), Metric: report.Deliveries, Value: res.PerSecond() * float64(n)})
	r.add(report.Sample{Work: report.FanOut, Point: point, X: float64(n), Metric: report.P50, Value: report.Micros(res.Quantile(0.5))})
	return context.Cause(life)
}

func await(ctx context.Context, all <-chan struct{}) error {
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(waitSeen):
		return errors.New("some watchers saw nothing for " + waitSeen.String())
	}
}
