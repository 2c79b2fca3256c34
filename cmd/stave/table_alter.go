package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

const replicationProperty = catalog.PropReplication

func number(n int32) string { return strconv.FormatInt(int64(n), 10) }

func historyText(h api.LayoutStep) string {
	return fmt.Sprintf("epoch %d: %d buckets since revision %d", h.Epoch, h.Count, h.Revision)
}

func replicasText(b api.Bucket) string {
	leader := "no leader"
	if b.Leader != nil {
		leader = "leader " + number(*b.Leader)
	}
	return fmt.Sprintf("replicas %v, %s", b.Replicas, leader)
}

func (a *app) tableAlter() *cobra.Command {
	var columns, set, reset []string
	var comment string
	var ifExists bool
	var expected uint64
	c := &cobra.Command{
		Use: "alter DB.T", Short: "Add columns, or change properties and comment", Args: exactArgs(1),
		Long: "Add columns at the end of the schema, or change properties and comment; not both in one command.",
		Example: `  stave table alter shop.orders --add-column 'note STRING'
  stave table alter shop.orders --property owner=web --reset tier`,
		RunE: func(c *cobra.Command, args []string) error {
			cols, err := parseColumns(columns)
			if err != nil {
				return err
			}
			props, err := parseProperties("property", set)
			if err != nil {
				return err
			}
			if len(cols)+len(props)+len(reset) == 0 && !c.Flags().Changed("comment") {
				return usagef("nothing to change: want --add-column, --property, --reset or --comment")
			}
			req := &pb.AlterTableRequest{
				Table: args[0], AddColumns: cols, Set: props, Reset_: reset, Comment: given(c.Flags(), "comment", comment), IfExists: ifExists,
				ExpectedRevision: given(c.Flags(), "expect-revision", expected),
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.AlterTable(ctx, req)
				if err != nil {
					return err
				}
				return a.showTable(r)
			})
		},
	}
	c.Flags().StringArrayVar(&columns, "add-column", nil, "'NAME TYPE [-- COMMENT]'; may be repeated")
	c.Flags().StringArrayVar(&set, "property", nil, "KEY=VALUE to set; may be repeated")
	c.Flags().StringArrayVar(&reset, "reset", nil, "KEY to remove; may be repeated")
	c.Flags().StringVar(&comment, "comment", "", "new comment")
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed if the table is not there")
	c.Flags().Uint64Var(&expected, "expect-revision", 0, "refuse unless the table is at this revision")
	return c
}

func (a *app) tableRescale() *cobra.Command {
	var buckets int32
	var epoch uint64
	var noPropagate bool
	c := &cobra.Command{
		Use: "rescale DB.T --buckets N", Short: "Set the bucket count of partitions created from now on", Args: exactArgs(1),
		Long: `Set the bucket count of partitions created from now on and raise the layout epoch by
one, in one atomic command. Existing partitions keep their count, legacy ones the
count the table had before its first rescale. The current count changes nothing.

A table whose lake storage has format paimon must be told first; --no-propagate
says that this was done, or is not wanted.`,
		Example: "  stave table rescale shop.orders --buckets 8 --expect-epoch 0",
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("buckets") {
				return usagef("a rescale wants --buckets N")
			}
			req := &pb.RescaleTableRequest{
				Table: args[0], Buckets: buckets, ExpectedEpoch: given(c.Flags(), "expect-epoch", epoch), Propagated: noPropagate,
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.RescaleTable(ctx, req)
				if err != nil {
					return err
				}
				return a.showTable(r)
			})
		},
	}
	c.Flags().Int32Var(&buckets, "buckets", 0, "new bucket count")
	c.Flags().Uint64Var(&epoch, "expect-epoch", 0, "refuse unless the table is at this layout epoch")
	c.Flags().BoolVar(&noPropagate, "no-propagate", false, "do not wait for a lake table to be told")
	return c
}

func (a *app) tableDrop() *cobra.Command {
	var ifExists bool
	c := &cobra.Command{
		Use: "drop DB.T", Short: "Drop a table with its partitions", Args: exactArgs(1),
		Example: "  stave table drop shop.orders --if-exists",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.DropTable(ctx, &pb.DropTableRequest{Table: args[0], IfExists: ifExists})
				if err != nil {
					return err
				}
				return a.showResult(r)
			})
		},
	}
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed if the table is not there")
	return c
}
