package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// crowd starts subscriptions that wait for events of a table nobody writes, or
// read all events, and one that stopped reading.
func crowd(b *testing.B, h *watch.History, n int, f watch.Filter) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	subscribe(b, h, watch.Options{})
	for range n {
		sub := subscribe(b, h, watch.Options{Filter: f})
		wg.Go(func() {
			for {
				if _, err := sub.Next(ctx); err != nil {
					return
				}
			}
		})
	}
}

// BenchmarkPublish is one event per batch beside subscriptions of which none
// reads: they are stopped. Its time must not depend on their number.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("stopped=%d", n), func(b *testing.B) {
			h := watch.New(watch.Config{})
			for range n {
				subscribe(b, h, watch.Options{})
			}
			batch := make([]*catalog.Event, 1)
			b.ReportAllocs()
			for rev := catalog.Revision(1); b.Loop(); rev++ {
				batch[0] = keyEvent(rev, 10)
				h.Publish(rev, batch)
			}
		})
	}
}

// BenchmarkPublish_Waiting is the time inside Publish at 1,000 batches a second
// beside subscriptions that all wait and are woken each time.
func BenchmarkPublish_Waiting(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			h := watch.New(watch.Config{})
			crowd(b, h, n, watch.Filter{Tables: []string{"shop.quiet"}})
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			batch := make([]*catalog.Event, 1)
			var inside, worst time.Duration
			for rev := catalog.Revision(1); b.Loop(); rev++ {
				<-tick.C
				batch[0] = keyEvent(rev, 10)
				start := time.Now()
				h.Publish(rev, batch)
				took := time.Since(start)
				inside += took
				worst = max(worst, took)
			}
			b.ReportMetric(float64(inside.Nanoseconds())/float64(b.N), "ns/publish")
			b.ReportMetric(float64(worst.Nanoseconds()), "ns-worst")
		})
	}
}

// BenchmarkNext is one event delivered to a subscription that does not wait.
func BenchmarkNext(b *testing.B) {
	h := watch.New(watch.Config{})
	put(h, 0, 10_000)
	ctx := context.Background()
	sub := subscribe(b, h, watch.Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%10_000 == 0 {
			sub = subscribe(b, h, watch.Options{})
		}
		if _, err := sub.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
