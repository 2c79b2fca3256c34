package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// benchRescales is how many different counts rescales go through.
const benchRescales = 16

// tally is what one worker saw.
type tally struct {
	latencies []time.Duration
	errors    int
	first     error
}

// measure runs one kind for its duration. Calls that have begun are waited for.
func (b *bencher) measure(ctx context.Context, kind string) (benchResult, error) {
	tallies := make([]tally, b.flags.workers)
	begin := time.Now()
	var group sync.WaitGroup
	for w := range tallies {
		group.Go(func() {
			op := b.operation(kind, w)
			for n := 0; ctx.Err() == nil && time.Since(begin) < b.flags.duration; n++ {
				tallies[w].call(ctx, b.app, op, n)
			}
		})
	}
	group.Wait()
	return sum(kind, time.Since(begin), tallies)
}

// call makes one call and notes how it went.
func (t *tally) call(ctx context.Context, a *app, op func(context.Context, int) error, n int) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	begin := time.Now()
	if err := op(ctx, n); err != nil {
		t.errors++
		if t.first == nil {
			t.first = err
		}
		return
	}
	t.latencies = append(t.latencies, time.Since(begin))
}

func sum(kind string, took time.Duration, tallies []tally) (benchResult, error) {
	r := benchResult{Kind: kind, Clients: len(tallies), DurationMS: took.Milliseconds()}
	var all []time.Duration
	var first error
	for _, t := range tallies {
		all = append(all, t.latencies...)
		r.Errors += t.errors
		if first == nil {
			first = t.first
		}
	}
	if first != nil {
		r.FirstError = first.Error()
	}
	r.Operations = len(all)
	r.PerSecond = float64(len(all)) / took.Seconds()
	slices.Sort(all)
	r.P50US, r.P90US, r.P99US, r.MaxUS = percentile(all, 50), percentile(all, 90), percentile(all, 99), percentile(all, 100)
	return r, first
}

// percentile returns the smallest latency that p percent of the calls did not
// exceed, in microseconds; 0 without calls.
func percentile(sorted []time.Duration, p int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	i := (len(sorted)*p+99)/100 - 1
	return sorted[max(i, 0)].Microseconds()
}

func (b *bencher) key(worker int) string { return fmt.Sprintf("%s/%d", b.database, worker) }

// operation returns what one worker does for the nth time.
func (b *bencher) operation(kind string, worker int) func(context.Context, int) error {
	s := b.sessions[worker%len(b.sessions)]
	switch kind {
	case "kv":
		value := make([]byte, b.flags.valueSize)
		if b.flags.batch {
			return func(ctx context.Context, _ int) error {
				_, err := s.Do(ctx, catalog.PutKV{Key: b.key(worker), Value: value})
				return err
			}
		}
		return func(ctx context.Context, _ int) error {
			_, err := s.kv.Put(ctx, &pb.PutRequest{Key: b.key(worker), Value: value})
			return err
		}
	case "partition":
		if b.flags.batch {
			return func(ctx context.Context, n int) error {
				spec := catalog.PartitionSpec{{Key: "p", Value: fmt.Sprintf("w%d_%d", worker, n)}}
				_, err := s.Do(ctx, catalog.CreatePartitions{Table: b.table(), Specs: []catalog.PartitionSpec{spec}})
				return err
			}
		}
		return func(ctx context.Context, n int) error {
			spec := &pb.PartitionSpec{Values: []*pb.Property{{Key: "p", Value: fmt.Sprintf("w%d_%d", worker, n)}}}
			_, err := s.catalog.CreatePartitions(ctx, &pb.CreatePartitionsRequest{Table: b.table(), Specs: []*pb.PartitionSpec{spec}})
			return err
		}
	case "rescale":
		return func(ctx context.Context, n int) error {
			_, err := s.catalog.RescaleTable(ctx, &pb.RescaleTableRequest{Table: b.table(), Buckets: int32(1 + (worker+n)%benchRescales)})
			return err
		}
	default: // read
		return func(ctx context.Context, _ int) error {
			_, err := s.catalog.GetDatabase(ctx, &pb.GetDatabaseRequest{Consistency: b.app.read(), Name: b.database})
			return err
		}
	}
}
