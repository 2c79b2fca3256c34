package load

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A quantile is a value that occurred, and the share q of all values is at or
// below it.
func TestQuantile(t *testing.T) {
	var ten []time.Duration
	for i := range 10 {
		ten = append(ten, time.Duration(i+1))
	}
	for _, c := range []struct {
		in   []time.Duration
		q    float64
		want time.Duration
	}{
		{nil, 0.5, 0}, {ten[:1], 0.99, 1}, {ten, 0, 1}, {ten, 0.5, 5}, {ten, 0.51, 6}, {ten, 0.99, 10}, {ten, 1, 10},
	} {
		if got := Quantile(c.in, c.q); got != c.want {
			t.Errorf("quantile %g of %v is %d, want %d", c.q, c.in, got, c.want)
		}
	}
}

// Calls of the warm-up and calls that end too late are not counted.
func TestRun_Window(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Callers: 2, Warmup: time.Second, Duration: 2 * time.Second}
		r := Run(t.Context(), o, func(_ context.Context, caller, n int) error {
			time.Sleep(300 * time.Millisecond)
			if caller == 1 {
				return errors.New("refused")
			}
			return nil
		})
		// Calls begin every 300 ms from 0; those of 1.2 s to 2.7 s count.
		if len(r.Latencies) != 6 || r.Errors != 6 || r.First == nil {
			t.Errorf("%d calls and %d errors, want 6 and 6", len(r.Latencies), r.Errors)
		}
		if got := r.PerSecond(); got != 3 {
			t.Errorf("rate is %g, want 3", got)
		}
	})
}

// A duration without a success is prolonged until there is one, but not for ever.
func TestRun_Prolonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Callers: 2, Warmup: time.Second, Duration: 2 * time.Second, Timeout: 10 * time.Second}
		r := Run(t.Context(), o, func(_ context.Context, _, n int) error {
			if n == 0 {
				time.Sleep(5 * time.Second) // from the warm-up to behind the end
				return nil
			}
			time.Sleep(2 * time.Second)
			return nil
		})
		if len(r.Latencies) == 0 || r.Elapsed != 6*time.Second {
			t.Errorf("%d calls in %s, want one or two in 6 s", len(r.Latencies), r.Elapsed)
		}
		begin, refused := time.Now(), errors.New("refused")
		r = Run(t.Context(), o, func(context.Context, int, int) error {
			time.Sleep(time.Second)
			return refused
		})
		if len(r.Latencies) != 0 || !errors.Is(r.First, refused) || time.Since(begin) != 13*time.Second {
			t.Errorf("%d calls, first error %v, after %s", len(r.Latencies), r.First, time.Since(begin))
		}
	})
}

// The first error ends the rest and is returned.
func TestEach_Error(t *testing.T) {
	var calls atomic.Int64
	stop := errors.New("stop")
	err := Each(t.Context(), 4, 1_000_000, func(context.Context, int) error {
		calls.Add(1)
		return stop
	})
	if !errors.Is(err, stop) || calls.Load() > 4 {
		t.Errorf("%d calls, error %v; want at most 4 and %v", calls.Load(), err, stop)
	}
	if err := Each(t.Context(), 3, 10, func(context.Context, int) error { return nil }); err != nil {
		t.Errorf("error without one of a call: %v", err)
	}
}
