package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/bench/report"
	"github.com/stavedb/stave/bench/target"
)

// startUp fills a table, stops all nodes and measures how long they take until
// every one serves again, and what memory they hold before and after.
func startUp(ctx context.Context, r *Run) error {
	empty, err := r.memory(ctx)
	if err != nil {
		return err
	}
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	n := r.Scale.Objects
	if err := ss[0].CreateTable(ctx, theTable, target.LegacyBuckets); err != nil {
		return err
	}
	if err := ss[0].Fill(ctx, theTable, 0, n); err != nil {
		return err
	}
	filled, err := r.memory(ctx)
	if err != nil {
		return err
	}
	if err := r.close(); err != nil {
		return err
	}
	r.Cluster.Stop()
	begin := time.Now()
	if err := r.Cluster.Run(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	if ss, err = r.open(ctx, 1); err != nil {
		return err
	}
	if err := ss[0].Partition(ctx, theTable, target.PartitionName(n-1)); err != nil {
		return err
	}
	started, err := r.memory(ctx)
	if err != nil {
		return err
	}
	point := report.Number(n) + " objects"
	r.add(report.Sample{Work: report.StartUp, Point: point, X: float64(n), Metric: report.Millis, Value: report.Micros(took) / 1000})
	r.add(report.Sample{Work: report.MemoryEmpty, Point: "no objects", Metric: report.Megabytes, Value: empty})
	r.add(report.Sample{Work: report.MemoryFilled, Point: point, X: float64(n), Metric: report.Megabytes, Value: filled})
	r.add(report.Sample{Work: report.MemoryStarted, Point: point, X: float64(n), Metric: report.Megabytes, Value: started})
	return nil
}

// memory returns the median resident memory of the nodes in MB.
func (r *Run) memory(ctx context.Context) (float64, error) {
	select {
	case <-time.After(r.Scale.Settle):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	b, err := r.Cluster.Resident()
	if err != nil {
		return 0, err
	}
	slices.Sort(b)
	return float64(b[len(b)/2]) / 1e6, nil
}

// The pace of failover: writes begin at a fixed rate whatever becomes of earlier
// ones, so that calls that hang hide nothing.
const (
	writeEvery   = 5 * time.Millisecond
	writeTimeout = 2 * time.Second
	beforeKill   = time.Second
	afterKill    = time.Second
	failoverMax  = 30 * time.Second
)

// acks holds when writes were acknowledged.
type acks struct {
	mu    sync.Mutex
	times []time.Time
}

func (a *acks) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, time.Now())
}

// after counts the acknowledgements since t.
func (a *acks) after(t time.Time) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range slices.Backward(a.times) {
		if at.Before(t) {
			break
		}
		n++
	}
	return n
}

// gap returns the longest time without an acknowledgement that ended after t.
func (a *acks) gap(t time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var longest time.Duration
	for i := 1; i < len(a.times); i++ {
		if a.times[i].After(t) {
			longest = max(longest, a.times[i].Sub(a.times[i-1]))
		}
	}
	return longest
}

func failover(ctx context.Context, r *Run) error {
	ss, err := r.open(ctx, 4)
	if err != nil {
		return err
	}
	ks := keys()[:64]
	for round := range r.Scale.KillRounds {
		gap, err := r.killLeader(ctx, ss, ks)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		r.add(report.Sample{Work: report.Failover, Point: "kill -9", Metric: report.Millis, Value: report.Micros(gap) / 1000})
		if err := r.Cluster.Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// killLeader kills the leader under a steady stream of writes.
func (r *Run) killLeader(ctx context.Context, ss []target.Session, ks []string) (time.Duration, error) {
	life, stop := context.WithTimeout(ctx, failoverMax)
	defer stop()
	var a acks
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { write(life, &group, ss, ks, &a) })
	if !rest(life, beforeKill) {
		return 0, ctx.Err()
	}
	leader, err := ss[0].Leader(life)
	if err != nil {
		return 0, err
	}
	killed := time.Now()
	r.Cluster.Kill(leader)
	// What was acknowledged before but arrives late is no sign of a new leader:
	// only a steady stream of acknowledgements is.
	steady := int(afterKill / writeEvery / 2)
	for rest(life, 100*time.Millisecond) {
		if a.after(time.Now().Add(-afterKill)) >= steady && time.Since(killed) > 2*afterKill {
			return a.gap(killed), nil
		}
	}
	return 0, errors.Join(errors.New("writes did not come back after the leader was killed"), ctx.Err())
}

func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// write begins a write every writeEvery until ctx ends.
func write(ctx context.Context, group *sync.WaitGroup, ss []target.Session, ks []string, a *acks) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	v := value()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			if err := ss[n%len(ss)].Put(ctx, ks[n%len(ks)], v); err == nil {
				a.add()
			}
		})
	}
}
