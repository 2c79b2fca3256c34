package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// workersPerClient is how many workers share one client, and with it one
// connection to each node.
const workersPerClient = 64

// benchFlags say what to measure.
type benchFlags struct {
	kinds     []string
	workers   int
	duration  time.Duration
	valueSize int
	batch     bool
}

// benchKinds are the operations that can be measured, in the order they run.
var benchKinds = []string{"kv", "partition", "rescale", "read"}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use: "bench", Short: "Measure writes, reads and rescales", Args: exactArgs(0),
		Long: `Measure how many operations a second the cluster answers and how long they take, one
gRPC call each; with --batch all callers share one client, which sends what is waiting
together. It works in a database and keys of its own, and removes them.

kv puts a key, partition creates a partition, rescale sets a table's bucket count,
read gets a database at the level of --consistency.`,
		Example: "  stave bench --clients 64 --duration 10s --kind kv,read",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.bench(c.Context(), f)
		},
	}
	c.Flags().StringSliceVar(&f.kinds, "kind", benchKinds, "what to measure: kv, partition, rescale, read")
	c.Flags().IntVar(&f.workers, "clients", 16, "how many callers work at once")
	c.Flags().DurationVar(&f.duration, "duration", 5*time.Second, "how long to measure each kind")
	c.Flags().BoolVar(&f.batch, "batch", false, "share one client that batches kv, partition and linearizable read")
	c.Flags().IntVar(&f.valueSize, "value-size", 128, "bytes of a value, with kv")
	return c
}

func (f *benchFlags) check() error {
	for _, k := range f.kinds {
		if !slices.Contains(benchKinds, k) {
			return usagef("--kind %q: want %s", k, strings.Join(benchKinds, ", "))
		}
	}
	switch {
	case f.workers < 1 || f.workers > 10_000:
		return usagef("--clients %d: want 1 to 10000", f.workers)
	case f.duration < 100*time.Millisecond || f.duration > time.Hour:
		return usagef("--duration %s: want 100ms to 1h", f.duration)
	case f.valueSize < 0 || f.valueSize > catalog.MaxValueBytes:
		return usagef("--value-size %d: want 0 to %d", f.valueSize, catalog.MaxValueBytes)
	}
	return nil
}

// benchResult is the JSON of one kind.
type benchResult struct {
	Kind       string  `json:"kind"`
	Clients    int     `json:"clients"`
	DurationMS int64   `json:"duration_ms"`
	Operations int     `json:"operations"`
	Errors     int     `json:"errors"`
	PerSecond  float64 `json:"per_second"`
	P50US      int64   `json:"p50_us"`
	P90US      int64   `json:"p90_us"`
	P99US      int64   `json:"p99_us"`
	MaxUS      int64   `json:"max_us"`
	FirstError string  `json:"first_error,omitempty"`
}

func (a *app) bench(ctx context.Context, f benchFlags) (err error) {
	b := &bencher{app: a, flags: f, database: fmt.Sprintf("bench_%d", time.Now().UnixMicro())}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove(context.WithoutCancel(ctx))) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	results := []benchResult{}
	var failed error
	for _, kind := range benchKinds {
		if !slices.Contains(f.kinds, kind) {
			continue
		}
		r, err := b.measure(ctx, kind)
		if ctx.Err() != nil {
			return &localError{err: errors.New("interrupted")}
		}
		if r.Operations == 0 && failed == nil {
			failed = err
		}
		results = append(results, r)
	}
	return errors.Join(a.show(results, benchGrid(results)), failed)
}

func benchGrid(results []benchResult) *grid {
	g := newGrid("KIND", "CLIENTS", "OPERATIONS", "ERRORS", "PER SECOND", "P50", "P90", "P99", "MAX")
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, r := range results {
		g.add(r.Kind, r.Clients, r.Operations, r.Errors, fmt.Sprintf("%.0f", r.PerSecond), us(r.P50US), us(r.P90US), us(r.P99US), us(r.MaxUS))
	}
	return g
}

// bencher holds what a run works with.
type bencher struct {
	app      *app
	flags    benchFlags
	database string
	sessions []*session
}

func (b *bencher) open(context.Context) error {
	if b.flags.batch {
		s, err := b.app.connectWith()
		if err == nil {
			b.sessions = append(b.sessions, s)
		}
		return err
	}
	for range (b.flags.workers + workersPerClient - 1) / workersPerClient {
		s, err := b.app.connect()
		if err != nil {
			return err
		}
		b.sessions = append(b.sessions, s)
	}
	return nil
}

func (b *bencher) close() error {
	var errs []error
	for _, s := range b.sessions {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

func (b *bencher) table() string { return b.database + ".t" }

// prepare makes the database and a table that may have any number of
// partitions.
func (b *bencher) prepare(ctx context.Context) error {
	ctx, cancel := b.app.bound(ctx)
	defer cancel()
	s, buckets := b.sessions[0], int32(4)
	_, err := s.catalog.CreateDatabase(ctx, &pb.CreateDatabaseRequest{Name: b.database})
	if err != nil {
		return err
	}
	_, err = s.cluster.SetLimits(ctx, &pb.SetLimitsRequest{Database: b.database, Limits: &pb.Limits{Partitions: catalog.MaxLimits.Partitions}})
	if err != nil {
		return err
	}
	_, err = s.catalog.CreateTable(ctx, &pb.CreateTableRequest{
		Table: b.table(), Columns: []*pb.NewColumn{{Name: "id", Type: "INT"}, {Name: "p", Type: "STRING"}},
		PartitionKeys: []string{"p"}, BucketKeys: []string{"id"}, Buckets: &buckets,
	})
	return err
}

// remove takes away what the run made.
func (b *bencher) remove(ctx context.Context) error {
	ctx, cancel := b.app.bound(ctx)
	defer cancel()
	s := b.sessions[0]
	_, err := s.catalog.DropDatabase(ctx, &pb.DropDatabaseRequest{Name: b.database, Cascade: true, IfExists: true})
	errs := []error{err}
	if slices.Contains(b.flags.kinds, "kv") && err == nil {
		for w := range b.flags.workers {
			_, err := s.kv.Delete(ctx, &pb.DeleteRequest{Key: b.key(w), IfExists: true})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
