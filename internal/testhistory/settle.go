package testhistory

import (
	"context"
	"fmt"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/internal/testcluster"
)

// Bounds of what a healed cluster may take.
const (
	writeWithin = 10 * time.Second
	equalWithin = 30 * time.Second
)

// Touch makes one write.
func Touch(ctx context.Context, cl *client.Client) error {
	_, err := cl.Do(ctx, catalog.PutKV{Key: "touch"})
	return err
}

// Settle ends all faults, starts what is down, and wants a write within 10 s and
// equal nodes within 30 s.
func Settle(ctx context.Context, c *testcluster.Cluster) error {
	if err := c.Heal(); err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	down, err := c.Select(ctx, "down")
	if err != nil {
		return err
	}
	if err := c.Start(down...); err != nil {
		return err
	}
	cl, err := c.Client(nil)
	if err != nil {
		return err
	}
	defer func() { _ = cl.Close() }()
	began := time.Now()
	write, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := Touch(write, cl); err != nil {
		return fmt.Errorf("no write within %s of the heal: %w; %v", time.Since(began).Round(time.Millisecond), err, c.Statuses(ctx))
	}
	return c.AwaitEqual(ctx, equalWithin)
}

// Bites wants that the named faults really did something: each must have been
// carried out, and what follows from it must have been seen.
func (r *Report) Bites(faults ...string) error {
	for _, f := range faults {
		n := r.Counts[f]
		switch f {
		case "installed":
			n = int(r.Meters.Installed)
		case "enospc":
			n = int(r.Meters.Full)
		case "stalled":
			n = int(r.Meters.Stalled)
		case "duplicate":
			n = r.Repeats
		case "compacted":
			n = r.Compacted
		case "unknown":
			n = r.Unknown
		case "events":
			n = r.WatchSteps
		case "refused":
			n = r.Refused
		}
		if n == 0 {
			return fmt.Errorf("the run did not have what it planned: no %s", f)
		}
	}
	return nil
}
