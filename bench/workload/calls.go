package workload

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/bench/load"
	"github.com/stavedb/stave/bench/report"
	"github.com/stavedb/stave/bench/target"
)

// keyCount is how many keys are written and read.
const keyCount = 4096

// theTable is the table that callers share, heatTable that of the warm-up.
const (
	theTable  = "t"
	heatTable = "warm"
)

func keys() []string {
	out := make([]string, keyCount)
	for i := range out {
		out[i] = fmt.Sprintf("k%04d", i)
	}
	return out
}

func value() []byte { return bytes.Repeat([]byte("v"), target.RecordBytes) }

// pick spreads the nth call of a caller over the keys.
func pick(ks []string, caller, n int) string { return ks[(caller*61+n)%len(ks)] }

// writes measures one durable write a call, then, where a client has it, the
// same through a batching client, and the creation of partitions.
func writes(ctx context.Context, r *Run) error {
	ks, v := keys(), value()
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	for _, callers := range r.Scale.WriteCallers {
		of, err := r.forCallers(ctx, callers)
		if err != nil {
			return err
		}
		err = r.measure(ctx, report.Write, callers, func(ctx context.Context, c, n int) error { return of(c).Put(ctx, pick(ks, c, n), v) })
		if err != nil {
			return err
		}
	}
	if err := ss[0].CreateTable(ctx, theTable, target.LegacyBuckets); err != nil {
		return err
	}
	callers := r.Scale.CreateCallers
	of, err := r.forCallers(ctx, callers)
	if err != nil {
		return err
	}
	err = r.measure(ctx, report.Create, callers, func(ctx context.Context, c, n int) error {
		_, err := of(c).CreatePartition(ctx, theTable, fmt.Sprintf("w%d_%d", c, n))
		return err
	})
	if b, ok := ss[0].(target.Batcher); ok && err == nil {
		err = r.batched(ctx, b, ks, v)
	}
	return err
}

func (r *Run) batched(ctx context.Context, b target.Batcher, ks []string, v []byte) error {
	for _, callers := range r.Scale.BatchCallers {
		err := r.measure(ctx, report.WriteBatched, callers, func(ctx context.Context, c, n int) error {
			return b.PutBatched(ctx, pick(ks, c, n), v)
		})
		if err != nil {
			return err
		}
		err = r.measure(ctx, report.CreateBatched, callers, func(ctx context.Context, c, n int) error {
			return b.CreatePartitionBatched(ctx, theTable, fmt.Sprintf("b%d_%d_%d", callers, c, n))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func reads(ctx context.Context, r *Run) error {
	ks, v := keys(), value()
	for _, callers := range r.Scale.ReadCallers {
		of, err := r.forCallers(ctx, callers)
		if err != nil {
			return err
		}
		err = r.measure(ctx, report.Get, callers, func(ctx context.Context, c, n int) error {
			got, err := of(c).Get(ctx, pick(ks, c, n))
			if err == nil && len(got) != len(v) {
				err = fmt.Errorf("value has %d bytes, want %d", len(got), len(v))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rescaleEvery is the pace of the client that rescales.
const rescaleEvery = 100 * time.Millisecond

func createUnderRescale(ctx context.Context, r *Run) error {
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	if err := ss[0].CreateTable(ctx, theTable, target.LegacyBuckets); err != nil {
		return err
	}
	of, err := r.forCallers(ctx, r.Scale.CreateCallers)
	if err != nil {
		return err
	}
	other, err := target.Open(ctx, r.Cluster)
	if err != nil {
		return err
	}
	r.sessions = append(r.sessions, other)
	life, stop := context.WithCancel(ctx)
	var rescaled error
	var group sync.WaitGroup
	group.Go(func() { rescaled = rescaleSteadily(life, other) })
	var retries atomic.Int64
	err = r.measure(ctx, report.CreateUnderRescale, r.Scale.CreateCallers, func(ctx context.Context, c, n int) error {
		again, err := of(c).CreatePartition(ctx, theTable, fmt.Sprintf("c%d_%d", c, n))
		retries.Add(int64(again))
		return err
	})
	stop()
	group.Wait()
	if err == nil {
		err = rescaled
	}
	if err != nil {
		return err
	}
	r.add(report.Sample{
		Work: report.CreateUnderRescale, Point: callersPoint(r.Scale.CreateCallers), Metric: report.Retries,
		Value: float64(retries.Load()) / (r.Scale.Warmup + r.Scale.Duration).Seconds(),
	})
	return nil
}

func rescaleSteadily(ctx context.Context, s target.Session) error {
	tick := time.NewTicker(rescaleEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := s.Rescale(ctx, theTable, int32(2+n%64)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("rescale beside the creations: %w", err)
		}
	}
}

// mixedCallers is the number of callers of the mixed day.
const mixedCallers = 64

func mixed(ctx context.Context, r *Run) error {
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	if err := ss[0].CreateTable(ctx, theTable, target.LegacyBuckets); err != nil {
		return err
	}
	if err := ss[0].Fill(ctx, theTable, 0, r.Scale.MixedSize); err != nil {
		return err
	}
	of, err := r.forCallers(ctx, mixedCallers)
	if err != nil {
		return err
	}
	random := make([]*rand.Rand, mixedCallers)
	for i := range random {
		random[i] = rand.New(rand.NewPCG(uint64(i), uint64(r.Rep)))
	}
	return r.measure(ctx, report.Mixed, mixedCallers, func(ctx context.Context, c, n int) (err error) {
		switch dice := random[c].IntN(100); {
		case dice < 90:
			err = of(c).Partition(ctx, theTable, target.PartitionName(random[c].IntN(r.Scale.MixedSize)))
		case dice < 99:
			_, err = of(c).CreatePartition(ctx, theTable, fmt.Sprintf("m%d_%d", c, n))
		default:
			_, err = of(c).Rescale(ctx, theTable, int32(1+random[c].IntN(64)))
		}
		return err
	})
}

// listTimeout bounds one list.
const listTimeout = time.Minute

// list reads a table again and again from one caller.
func list(ctx context.Context, r *Run) error {
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	s, n := ss[0], r.Scale.ListSize
	if err := s.CreateTable(ctx, theTable, target.LegacyBuckets); err != nil {
		return err
	}
	if err := s.Fill(ctx, theTable, 0, n); err != nil {
		return err
	}
	once := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		got, err := s.List(ctx, theTable)
		if err == nil && got != n {
			err = fmt.Errorf("list has %d partitions, want %d", got, n)
		}
		return err
	}
	if err := once(ctx); err != nil { // connections are made, buffers are grown
		return err
	}
	var took []time.Duration
	for begin := time.Now(); len(took) == 0 || time.Since(begin) < r.Scale.ListTime; {
		start := time.Now()
		if err := once(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	r.add(report.Sample{Work: report.List, Point: report.Number(n) + " partitions", X: float64(n), Metric: report.Millis, Value: report.Micros(load.Quantile(took, 0.5)) / 1000})
	return nil
}
