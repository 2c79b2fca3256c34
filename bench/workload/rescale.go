package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stavedb/stave/bench/report"
	"github.com/stavedb/stave/bench/target"
)

// rescaledBuckets is the count that tables are rescaled to.
const rescaledBuckets = 16

// rescale measures one rescale of tables of rising size. Beyond the first size
// that a system refuses nothing larger is tried.
func rescale(ctx context.Context, r *Run) error {
	ss, err := r.open(ctx, 1)
	if err != nil {
		return err
	}
	s := ss[0]
	var refusal error
	for _, n := range r.Scale.RescaleSizes {
		sample := report.Sample{Work: report.Rescale, Point: report.Number(n) + " partitions", X: float64(n), Metric: report.Millis}
		if refusal != nil {
			sample.Refused = "refused already at a smaller size"
			r.add(sample)
			continue
		}
		table := fmt.Sprintf("r%d", n)
		if err := s.Import(ctx, table, n); err != nil {
			return fmt.Errorf("import of %d partitions: %w", n, err)
		}
		// A first read makes connections and fills caches, as a client that has
		// worked with the table before.
		if err := s.Partition(ctx, table, target.PartitionName(n-1)); err != nil {
			return err
		}
		begin := time.Now()
		err := s.RescaleImported(ctx, table, rescaledBuckets)
		sample.Value = report.Micros(time.Since(begin)) / 1000
		if errors.Is(err, target.ErrRefused) {
			refusal = err
			sample.Refused = err.Error()
		} else if err != nil {
			return fmt.Errorf("rescale of %d partitions: %w", n, err)
		}
		r.add(sample)
	}
	return nil
}
