package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// routeAnswer is a route as it is shown.
type routeAnswer struct {
	Table       string       `json:"table"`
	TableID     uint64       `json:"table_id"`
	PartitionID *uint64      `json:"partition_id,omitempty"`
	Partition   string       `json:"partition"`
	Bucket      int32        `json:"bucket"`
	BucketCount int32        `json:"bucket_count"`
	LayoutEpoch uint64       `json:"layout_epoch"`
	Leader      *routeLeader `json:"leader"`
	Explain     *routeReason `json:"explain,omitempty"`
}

type routeLeader struct {
	ServerID    int32    `json:"server_id"`
	Listeners   []string `json:"listeners"`
	LeaderEpoch int32    `json:"leader_epoch"`
}

type routeReason struct {
	Format     string   `json:"format"`
	KeyColumns []string `json:"key_columns"`
	Key        string   `json:"key"`
	Function   string   `json:"function"`
	Hash       int32    `json:"hash"`
	Why        string   `json:"why"`
}

type routeFlags struct {
	row             string
	create, explain bool
}

func (a *app) routeCommand() *cobra.Command {
	var f routeFlags
	c := &cobra.Command{
		Use: "route DB.T", Short: "Tell the one bucket of a row", Args: exactArgs(1),
		Long: `Tell the partition and the bucket that a row belongs to, by the partition's own bucket
count, and who leads the bucket. With --create a missing partition is created.`,
		Example: `  stave route shop.orders --row '{"a":1,"dt":"2026-11-30"}' --explain`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.row == "" {
				return usagef("--row is not set: want the row as a JSON object of its columns")
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				v, err := f.route(ctx, s, args[0])
				if err != nil {
					return err
				}
				if a.json() {
					return a.show(v, nil)
				}
				if err := v.grid().write(a.out); err != nil || v.Explain == nil {
					return err
				}
				x := v.Explain
				return a.print(fmt.Sprintf("\nkey %s (%s of %s)\n%s = %d\n%s\n", x.Key, x.Format, strings.Join(x.KeyColumns, ", "), x.Function, x.Hash, x.Why))
			})
		},
	}
	c.Flags().StringVar(&f.row, "row", "", `the row as a JSON object, such as '{"a":1,"dt":"2026-11-30"}'; columns that are no key may be left out`)
	c.Flags().BoolVar(&f.create, "create", false, "create the partition if it does not exist")
	c.Flags().BoolVar(&f.explain, "explain", false, "show the encoded key, the function and where the count comes from")
	return c
}

// route resolves the partition first and then routes with the layout that holds
// it: id and count come from one state.
func (f *routeFlags) route(ctx context.Context, s *session, table string) (*routeAnswer, error) {
	l, err := layoutWith(ctx, s, table)
	if err != nil {
		return nil, err
	}
	row, err := routing.RowFromJSON(l.Columns(), []byte(f.row))
	if err != nil {
		return nil, usagef("--row: %s", err)
	}
	e, err := l.Explain(row)
	var unknown *routing.UnknownPartitionError
	for range 2 {
		if !errors.As(err, &unknown) {
			break
		}
		if l, err = layoutWith(ctx, s, table, unknown.Name); err != nil {
			return nil, err
		}
		if e, err = l.Explain(row); !errors.As(err, &unknown) || !f.create {
			break
		}
		spec := l.Table().Spec(&catalog.Partition{Name: unknown.Name})
		create := catalog.CreatePartitions{
			Table: table, TableID: catalog.Some(l.Table().ID), Specs: []catalog.PartitionSpec{spec}, IfNotExists: true,
		}
		if _, cerr := s.Do(ctx, create); cerr != nil {
			return nil, cerr
		}
	}
	if err != nil {
		return nil, routeError(err)
	}
	return f.answer(l, e), nil
}

// layoutWith reads a table's layout with the named partitions, from one state.
func layoutWith(ctx context.Context, s *session, table string, names ...string) (*routing.Layout, error) {
	v, meta, err := s.Layout(ctx, table, names)
	if err != nil {
		return nil, err
	}
	return routing.NewLayout(meta.Incarnation, meta.Revision, v.Table, v.Partitions, v.Servers)
}

// routeError gives a routing error the code of the error table.
func routeError(err error) error {
	switch {
	case errors.Is(err, catalog.ErrPartitionNotExists):
		return &catalog.Error{Code: catalog.ErrPartitionNotExists, Message: err.Error() + "; --create creates it"}
	case errors.Is(err, catalog.ErrStaleMetadata):
		return err
	default:
		return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: err.Error()}
	}
}

func (f *routeFlags) answer(l *routing.Layout, e routing.Explanation) *routeAnswer {
	r := e.Route
	out := &routeAnswer{
		Table: l.Table().Path, TableID: uint64(r.Table), Partition: e.PartitionName, Bucket: r.Bucket, BucketCount: r.Count, LayoutEpoch: uint64(r.Epoch),
	}
	if r.Partition != routing.NoPartition {
		id := uint64(r.Partition)
		out.PartitionID = &id
	}
	if v, ok := r.Leader(); ok {
		out.Leader = &routeLeader{ServerID: int32(v.Server), Listeners: v.Listeners, LeaderEpoch: int32(v.LeaderEpoch)}
	}
	if f.explain {
		out.Explain = &routeReason{Format: e.Format, KeyColumns: e.KeyColumns, Key: e.Key, Function: e.Function, Hash: e.Hash, Why: e.Why}
	}
	return out
}

func (r *routeAnswer) grid() *grid {
	g := newGrid("TABLE", "PARTITION", "ID", "BUCKET", "OF", "EPOCH", "LEADER")
	partition, id, leader := "-", "-", "-"
	if r.PartitionID != nil {
		partition, id = r.Partition, fmt.Sprint(*r.PartitionID)
	}
	if r.Leader != nil {
		leader = fmt.Sprintf("%d (%s)", r.Leader.ServerID, strings.Join(r.Leader.Listeners, ", "))
	}
	g.add(r.Table, partition, id, r.Bucket, r.BucketCount, r.LayoutEpoch, leader)
	return g
}
