package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// layoutWidth is how many buckets are drawn one by one.
const layoutWidth = 64

func (a *app) layoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "layout DB.T", Short: "Draw a table's partitions with their bucket counts and epochs", Args: exactArgs(1),
		Example: "  stave layout shop.orders",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				v, err := s.partitions(ctx, &pb.ListPartitionsRequest{Consistency: a.read(), Table: args[0]})
				if isCode(err, catalog.ErrTableNotPartitioned) {
					r, err := s.catalog.GetTable(ctx, &pb.GetTableRequest{Consistency: a.read(), Table: args[0]})
					if err != nil {
						return err
					}
					v = api.PartitionListJSON(r.GetHeader(), r.GetTable(), nil)
				} else if err != nil {
					return err
				}
				if a.json() {
					return a.show(v, nil)
				}
				return a.drawLayout(v)
			})
		},
	}
}

func (a *app) drawLayout(v api.PartitionList) error {
	t := v.Table
	head := fmt.Sprintf("%s.%s  table %d, %d buckets at layout epoch %d", t.Database, t.Name, t.TableID, t.BucketCount, t.LayoutEpoch)
	if t.LegacyCount != nil {
		head += fmt.Sprintf(", legacy count %d", *t.LegacyCount)
	}
	head += fmt.Sprintf(", revision %d\n", v.Revision)
	steps := make([]string, len(t.History))
	for i, h := range t.History {
		steps[i] = fmt.Sprintf("epoch %d: %d", h.Epoch, h.Count)
	}
	if err := a.print(head + "history  " + strings.Join(steps, " > ") + "\n\n"); err != nil {
		return err
	}
	widest := t.BucketCount
	for _, p := range v.Partitions {
		if p.BucketCount != nil {
			widest = max(widest, *p.BucketCount)
		}
	}
	scale := (widest + layoutWidth - 1) / layoutWidth
	g := newGrid("PARTITION", "ID", "EPOCH", "COUNT", drawHead(scale))
	for _, p := range v.Partitions {
		epoch, count, bar := "legacy", "?", "?"
		if p.LayoutEpoch != nil {
			epoch = fmt.Sprint(*p.LayoutEpoch)
		}
		if p.BucketCount != nil {
			count, bar = number(*p.BucketCount), drawBuckets(*p.BucketCount, scale)
		}
		g.add(specText(p), p.PartitionID, epoch, count, bar)
	}
	next := "(next partition)"
	if len(t.PartitionKeys) == 0 {
		next = "(whole table)"
	}
	g.add(next, "-", t.LayoutEpoch, t.BucketCount, drawBuckets(t.BucketCount, scale))
	return g.write(a.out)
}

func drawHead(scale int32) string {
	if scale == 1 {
		return "BUCKETS"
	}
	return fmt.Sprintf("BUCKETS (one # per %d)", scale)
}

// drawBuckets draws n buckets, scale to a mark, at least one.
func drawBuckets(n, scale int32) string {
	return strings.Repeat("#", int((n+scale-1)/scale))
}
