// Package load calls an operation from many goroutines and measures it.
package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Op is one call: the nth of a caller. It may be called by all callers at once.
type Op func(ctx context.Context, caller, n int) error

// Options say how to call.
type Options struct {
	Callers int
	// Warmup is not measured.
	Warmup, Duration time.Duration
	// Timeout bounds one call, and how long Run goes on behind Duration while no
	// call succeeded; 0: no bound of ours, and not at all.
	Timeout time.Duration
}

// Result is what was measured.
type Result struct {
	Elapsed time.Duration
	// Latencies are those of the successful calls, sorted.
	Latencies []time.Duration
	Errors    int
	// First is one of the errors.
	First error
}

// PerSecond is the rate of successful calls.
func (r *Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(len(r.Latencies)) / r.Elapsed.Seconds()
}

// Quantile returns the smallest latency that a share q of the calls did not
// exceed; 0 without calls.
func (r *Result) Quantile(q float64) time.Duration { return Quantile(r.Latencies, q) }

// Quantile returns the smallest of sorted values that a share q of them does not
// exceed; 0 if there are none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// run is one measurement.
type run struct {
	Options
	op         Op
	begin, end time.Time
	// some: a call was counted as a success.
	some atomic.Bool
}

// tally is what one caller saw.
type tally struct {
	latencies []time.Duration
	last      time.Time // when the last of them ended
	errors    int
	first     error
}

// Run calls op from o.Callers goroutines, each as soon as its last call
// returned. Calls are counted that begin after the warm-up and end within the
// duration; all have returned when Run returns. A duration in which no call
// succeeded, on a machine that stood still, is prolonged until one does.
func Run(ctx context.Context, o Options, op Op) Result {
	m := &run{Options: o, op: op, begin: time.Now().Add(o.Warmup)}
	m.end = m.begin.Add(o.Duration)
	tallies := make([]tally, o.Callers)
	var group sync.WaitGroup
	for c := range tallies {
		group.Go(func() { tallies[c].loop(ctx, m, c) })
	}
	group.Wait()
	r := Result{Elapsed: min(o.Duration, max(time.Since(m.begin), 0))}
	for _, t := range tallies {
		r.Latencies = append(r.Latencies, t.latencies...)
		r.Elapsed = max(r.Elapsed, t.last.Sub(m.begin))
		r.Errors += t.errors
		if r.First == nil {
			r.First = t.first
		}
	}
	slices.Sort(r.Latencies)
	return r
}

func (t *tally) loop(ctx context.Context, m *run, caller int) {
	for n := 0; ctx.Err() == nil; n++ {
		start := time.Now()
		if !start.Before(m.end) && (m.some.Load() || start.Sub(m.end) >= m.Timeout) {
			return
		}
		err := call(ctx, m.Timeout, m.op, caller, n)
		now := time.Now()
		if start.Before(m.begin) || now.After(m.end) && m.some.Load() {
			continue
		}
		if err != nil {
			t.errors++
			if t.first == nil {
				t.first = err
			}
			continue
		}
		m.some.Store(true)
		t.latencies, t.last = append(t.latencies, now.Sub(start)), now
	}
}

func call(ctx context.Context, timeout time.Duration, op Op, caller, n int) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return op(ctx, caller, n)
}

// Each calls f for 0..n-1 from a bounded number of goroutines and returns the
// first error, after which no further call begins.
func Each(ctx context.Context, workers, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan int)
	var group sync.WaitGroup
	for range min(workers, n) {
		group.Go(func() {
			for i := range work {
				if err := f(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case work <- i:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(work)
	group.Wait()
	return context.Cause(ctx)
}
