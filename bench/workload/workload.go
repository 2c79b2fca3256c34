// Package workload holds what is measured: each piece of work runs on a fresh
// cluster of one system and adds its figures to a run.
package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stavedb/stave/bench/cluster"
	"github.com/stavedb/stave/bench/load"
	"github.com/stavedb/stave/bench/report"
	"github.com/stavedb/stave/bench/target"
)

// Scale says how long and how large.
type Scale struct {
	Warmup, Duration time.Duration
	// Heat is how long a fresh cluster is used before anything is measured:
	// ZooKeeper's machine code is made while it runs.
	Heat time.Duration
	// WriteCallers, ReadCallers and BatchCallers are the numbers of callers.
	WriteCallers, ReadCallers, BatchCallers []int
	// CreateCallers is the number of callers of the work that is measured at one
	// number only.
	CreateCallers int
	// RescaleSizes are the partitions of tables that are rescaled, rising.
	RescaleSizes []int
	// ListSize, Objects and MixedSize are numbers of partitions.
	ListSize, Objects, MixedSize int
	Watchers                     []int
	KillRounds                   int
	// ListTime is how long a list is repeated; one must fit into it.
	ListTime time.Duration
	// Settle is how long servers are left alone before their memory is looked at.
	Settle time.Duration
}

// Full is what figures are reported of.
func Full(duration time.Duration) Scale {
	return Scale{
		Warmup: time.Second, Duration: duration, Heat: 5 * time.Second,
		WriteCallers: []int{1, 16, 64, 256, 1024}, ReadCallers: []int{1, 64, 256}, BatchCallers: []int{256, 1024},
		CreateCallers: 256, RescaleSizes: []int{100, 1_000, 10_000, 100_000, 1_000_000},
		ListSize: 100_000, Objects: 1_000_000, MixedSize: 10_000, Watchers: []int{1, 100, 1000}, KillRounds: 20,
		ListTime: 2 * max(duration, 5*time.Second), Settle: 3 * time.Second,
	}
}

// Smoke is as small as shows that everything still works.
func Smoke() Scale {
	return Scale{
		Warmup: 100 * time.Millisecond, Duration: 300 * time.Millisecond, Heat: 200 * time.Millisecond,
		WriteCallers: []int{1, 16}, ReadCallers: []int{1, 16}, BatchCallers: []int{16},
		CreateCallers: 16, RescaleSizes: []int{100, 1_000},
		ListSize: 1_000, Objects: 5_000, MixedSize: 100, Watchers: []int{1, 10}, KillRounds: 1,
		ListTime: 500 * time.Millisecond, Settle: 200 * time.Millisecond,
	}
}

// Workload is one piece of work.
type Workload struct {
	// ID is the letter it is chosen by.
	ID    string
	Title string
	run   func(ctx context.Context, r *Run) error
}

// All are the workloads in the order they run.
var All = []Workload{
	{"a", "durable write of 200 bytes", writes},
	{"b", "linearizable get", reads},
	{"c", "create a partition with the table's current count, while another client rescales 10 times a second", createUnderRescale},
	{"d", "rescale a table none of whose partitions has a count, all or nothing", rescale},
	{"e", "list all partitions from one state", list},
	{"f", "watch fan-out", fanOut},
	{"g", "start-up and memory with many objects", startUp},
	{"h", "time without a write when the leader is killed", failover},
	{"j", "mixed day: 90 % reads, 9 % creates, 1 % rescales", mixed},
}

// callersPerSession is how many callers share one client process of a system,
// and with it one connection to each node.
const callersPerSession = 64

// callTimeout bounds one call, so that a system that hangs shows as errors.
const callTimeout = 20 * time.Second

// Run is one repetition of a workload on one system.
type Run struct {
	Cluster *cluster.Cluster
	Scale   Scale
	Rep     int
	// Samples is what was measured.
	Samples  []report.Sample
	sessions []target.Session
}

// Do runs the workload and closes the sessions it opened.
func (w Workload) Do(ctx context.Context, r *Run) error {
	err := r.heat(ctx)
	if err == nil {
		err = w.run(ctx, r)
	}
	for i := range r.Samples {
		r.Samples[i].Workload = w.ID
	}
	if err != nil {
		err = fmt.Errorf("%s on %s: %w", w.Title, r.Cluster.Kind, err)
	}
	return errors.Join(err, r.close())
}

// heatCallers is how many callers use a fresh cluster before the measurement.
const heatCallers = 32

// heat writes and reads for a while.
func (r *Run) heat(ctx context.Context) error {
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	s, ks, v := ss[0], keys(), value()
	if err := s.Prepare(ctx, ks, v); err != nil {
		return err
	}
	if err := s.CreateTable(ctx, heatTable, target.LegacyBuckets); err != nil {
		return err
	}
	res := load.Run(ctx, load.Options{Callers: heatCallers, Duration: r.Scale.Heat, Timeout: callTimeout}, func(ctx context.Context, c, n int) error {
		switch n % 4 {
		case 0:
			_, err := s.Get(ctx, pick(ks, c, n))
			return err
		case 1:
			_, err := s.CreatePartition(ctx, heatTable, fmt.Sprintf("h%d_%d", c, n))
			return err
		}
		return s.Put(ctx, pick(ks, c, n), v)
	})
	if len(res.Latencies) == 0 {
		return fmt.Errorf("warm-up: no call succeeded: %w", errors.Join(res.First, context.Cause(ctx)))
	}
	return nil
}

func (r *Run) close() error {
	errs := make([]error, len(r.sessions))
	for i, s := range r.sessions {
		errs[i] = s.Close()
	}
	r.sessions = nil
	return errors.Join(errs...)
}

// open makes sure that there are n sessions and returns them.
func (r *Run) open(ctx context.Context, n int) ([]target.Session, error) {
	for len(r.sessions) < n {
		s, err := target.Open(ctx, r.Cluster)
		if err != nil {
			return nil, err
		}
		r.sessions = append(r.sessions, s)
	}
	return r.sessions[:n], nil
}

// forCallers opens as many sessions as callers need, and returns the session of
// each.
func (r *Run) forCallers(ctx context.Context, callers int) (func(caller int) target.Session, error) {
	ss, err := r.open(ctx, (callers+callersPerSession-1)/callersPerSession)
	return func(caller int) target.Session { return ss[caller%len(ss)] }, err
}

func (r *Run) add(s report.Sample) {
	s.System, s.Rep = string(r.Cluster.Kind), r.Rep
	r.Samples = append(r.Samples, s)
}

// quantiles are the shares of calls whose latencies are kept for the chart of
// the distribution.
var quantiles = report.Quantiles

// measure runs calls and adds their rate and latencies.
func (r *Run) measure(ctx context.Context, work string, callers int, op load.Op) error {
	res := load.Run(ctx, load.Options{Callers: callers, Warmup: r.Scale.Warmup, Duration: r.Scale.Duration, Timeout: callTimeout}, op)
	if len(res.Latencies) == 0 {
		return fmt.Errorf("%s, %d callers: no call succeeded: %w", work, callers, errors.Join(res.First, context.Cause(ctx)))
	}
	point := callersPoint(callers)
	var q []float64
	for _, share := range quantiles {
		q = append(q, report.Micros(res.Quantile(share)))
	}
	r.add(report.Sample{Work: work, Point: point, X: float64(callers), Metric: report.Rate, Value: res.PerSecond(), Quantiles: q})
	r.add(report.Sample{Work: work, Point: point, X: float64(callers), Metric: report.P50, Value: report.Micros(res.Quantile(0.5))})
	r.add(report.Sample{Work: work, Point: point, X: float64(callers), Metric: report.P99, Value: report.Micros(res.Quantile(0.99))})
	if res.Errors > 0 {
		r.add(report.Sample{Work: work, Point: point, X: float64(callers), Metric: report.Failures, Value: float64(res.Errors)})
	}
	return ctx.Err()
}

func callersPoint(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return report.Number(n) + " callers"
}
