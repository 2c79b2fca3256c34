package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// DefaultRescaleAttempts is how often a rescale is tried against others.
const DefaultRescaleAttempts = 3

// Rescale changes the default bucket count of a partitioned table, and tells the
// lake first. It is the safe way for tables that are tiered to Paimon; for others
// it is catalog.RescaleTable with retries.
type Rescale struct {
	// Table is "database.table".
	Table   string
	Buckets int32
	// ExpectedEpoch, if set, must be the table's layout epoch: a conflict is then
	// the caller's to settle, and nothing is tried again.
	ExpectedEpoch catalog.Opt[catalog.Epoch]
	// Propagate tells the lake table the new count. It is called with the latest
	// state of the table before each attempt to commit, so it may be called several
	// times, also for a count that the table already has, and must be idempotent.
	// An error ends the rescale with nothing committed. The table must not be
	// changed. Nil: the lake is not told, and the cluster refuses a table that
	// wants it.
	Propagate func(ctx context.Context, table *catalog.Table) error
	// Attempts bounds the commits tried while others rescale the table at the same
	// time; default 3, at most 100.
	Attempts int
}

// paimonBucket are the properties by which Paimon itself knows the count.
var paimonBucket = [...]string{"paimon.bucket", "bucket"}

// Rescale reads the table, propagates and commits with the table id and the
// layout epoch it read, and again from the latest state after a conflict.
//
// Errors: catalog.ErrTableNotExist if the table is gone, or another one has its
// path by now; catalog.ErrVersionConflict if others were faster every time, or
// ExpectedEpoch is not met; catalog.ErrInvalidConfig for a table with a Paimon
// bucket property of its own; the refusals of catalog.RescaleTable; Propagate's;
// those of Client.Do. Unless it is catalog.ErrOutcomeUnknown, the table was not
// changed.
func (c *Client) Rescale(ctx context.Context, r Rescale) (catalog.Result, error) {
	if r.Attempts == 0 {
		r.Attempts = DefaultRescaleAttempts
	}
	if r.Attempts < 1 || r.Attempts > 100 {
		return catalog.Result{}, &catalog.Error{
			Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf("attempts is %d, want 1 to 100", r.Attempts),
		}
	}
	ctx, cancel := c.budget(ctx)
	defer cancel()
	var first catalog.Opt[catalog.TableID]
	for attempt := 1; ; attempt++ {
		t, _, err := c.Table(ctx, r.Table)
		if err != nil {
			return catalog.Result{}, err
		}
		if first.Set && first.V != t.ID {
			return catalog.Result{}, &catalog.Error{
				Code: catalog.ErrTableNotExist, Message: fmt.Sprintf("table %s with id %d was dropped; id %d has its name", r.Table, first.V, t.ID),
			}
		}
		first = catalog.Some(t.ID)
		res, err := c.rescaleOnce(ctx, r, t)
		if !errors.Is(err, catalog.ErrVersionConflict) || r.ExpectedEpoch.Set {
			return res, err
		}
		if attempt >= r.Attempts {
			return res, fmt.Errorf("rescale of %s: %d attempts: %w", r.Table, attempt, err)
		}
	}
}

// rescaleOnce propagates and commits from one state of the table.
func (c *Client) rescaleOnce(ctx context.Context, r Rescale, t *catalog.Table) (catalog.Result, error) {
	if r.ExpectedEpoch.Set && r.ExpectedEpoch.V != t.Epoch {
		return catalog.Result{}, &catalog.Error{
			Code: catalog.ErrVersionConflict, Current: uint64(t.Epoch),
			Message: fmt.Sprintf("table %s is at layout epoch %d, not %d", t.Path, t.Epoch, r.ExpectedEpoch.V),
		}
	}
	if err := rescalable(t, r.Buckets); err != nil {
		return catalog.Result{}, err
	}
	if r.Propagate != nil {
		if err := r.Propagate(ctx, t); err != nil {
			return catalog.Result{}, fmt.Errorf("propagate the bucket count of %s: %w", t.Path, err)
		}
	}
	return c.Do(ctx, catalog.RescaleTable{
		Table: t.Path, TableID: catalog.Some(t.ID), Buckets: r.Buckets, ExpectedEpoch: catalog.Some(t.Epoch), Propagated: r.Propagate != nil,
	})
}

// rescalable refuses what the cluster would refuse, before the lake is told of a
// count that never comes.
func rescalable(t *catalog.Table, buckets int32) error {
	refuse := func(code catalog.Code, format string, args ...any) error {
		return &catalog.Error{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if !t.Partitioned() {
		return refuse(catalog.ErrTableNotPartitioned, "table %s is not partitioned", t.Path)
	}
	if buckets < 1 {
		return refuse(catalog.ErrInvalidAlterTable, "bucket count %d is below 1", buckets)
	}
	if format := t.LakeFormat(); format == "iceberg" || format == "hudi" || format == "lance" {
		return refuse(catalog.ErrInvalidAlterTable, "table %s has lake format %s, which cannot be rescaled", t.Path, format)
	}
	for _, key := range paimonBucket {
		if v, ok := catalog.PropertyValue(t.CustomProperties, key); ok {
			return refuse(catalog.ErrInvalidConfig, "table %s has property '%s' = '%s', which only a rescale may set", t.Path, key, v)
		}
	}
	return nil
}
