package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

func (a *app) partitionCommand() *cobra.Command {
	return noun("partition", "Create, show and drop partitions",
		a.partitionCreate(), a.partitionList(), a.partitionGet(), a.partitionDrop())
}

// specText shows the spec of a partition as PARTITION KEY=VALUE/...
func specText(p api.Partition) string {
	if p.Spec == nil {
		return p.Name
	}
	return strings.ReplaceAll(pairs(*p.Spec), ",", "/")
}

func (a *app) showPartitions(v any, list ...api.Partition) error {
	g := newGrid("PARTITION", "ID", "BUCKETS", "EPOCH", "LEGACY", "ASSIGNED", "REVISION")
	for _, p := range list {
		g.add(specText(p), p.PartitionID, orDash(p.BucketCount), orDash(p.LayoutEpoch), p.Legacy, len(p.Assignment) > 0, p.Revision)
	}
	return a.show(v, g)
}

func (a *app) partitionCreate() *cobra.Command {
	var ifNotExists bool
	var more []string
	c := &cobra.Command{
		Use: "create DB.T KEY=VALUE ...", Short: "Create a partition with the table's current bucket count", Args: minArgs(2),
		Long: `Create a partition with the bucket count the table has at that moment; it never
changes afterwards. --and adds further partitions to the same atomic command.`,
		Example: `  stave partition create shop.orders dt=2026-11-30
  stave partition create shop.clicks dt=2026-11-30 hour=11 --and dt=2026-11-30,hour=12`,
		RunE: func(c *cobra.Command, args []string) error {
			specs, err := specsOf(args[1:], more)
			if err != nil {
				return err
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.CreatePartitions(ctx, &pb.CreatePartitionsRequest{Table: args[0], Specs: specs, IfNotExists: ifNotExists})
				if err != nil {
					return err
				}
				return a.showCreated(r, len(specs) > 1)
			})
		},
	}
	c.Flags().StringArrayVar(&more, "and", nil, "another partition, KEY=VALUE,...; all or none are created")
	c.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "succeed if the partition is there")
	return c
}

// specsOf reads the spec given as arguments and those given by --and.
func specsOf(first, more []string) ([]*pb.PartitionSpec, error) {
	var out []*pb.PartitionSpec
	for _, args := range append([][]string{first}, splitEach(more)...) {
		spec, err := parseSpec(args)
		if err != nil {
			return nil, err
		}
		out = append(out, spec)
	}
	return out, nil
}

func splitEach(in []string) [][]string {
	out := make([][]string, len(in))
	for i, s := range in {
		out[i] = strings.Split(s, ",")
	}
	return out
}

// showCreated prints one partition as an object, several as a list with their
// table.
func (a *app) showCreated(r *pb.PartitionsResponse, several bool) error {
	v := api.PartitionListJSON(r.GetHeader(), r.GetTable(), r.GetPartitions())
	switch {
	case len(v.Partitions) == 0:
		return a.showHeader(r.GetHeader())
	case several:
		return a.showPartitions(v, v.Partitions...)
	default:
		return a.showPartitions(v.Partitions[0], v.Partitions[0])
	}
}

func (a *app) partitionList() *cobra.Command {
	var from string
	var limit uint64
	c := &cobra.Command{
		Use: "list DB.T [KEY=VALUE ...]", Short: "List the partitions of a table, from one state", Args: minArgs(1),
		Example: "  stave partition list shop.clicks dt=2026-11-30",
		RunE: func(c *cobra.Command, args []string) error {
			spec, err := parseSpec(args[1:])
			if err != nil {
				return err
			}
			req := &pb.ListPartitionsRequest{Consistency: a.read(), Table: args[0], From: from, Limit: limit}
			if len(spec.GetValues()) > 0 {
				req.Filter = spec
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				v, err := s.partitions(ctx, req)
				if err != nil {
					return err
				}
				return a.showPartitions(v, v.Partitions...)
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "first partition name wanted")
	c.Flags().Uint64Var(&limit, "limit", 0, "how many at most; 0: all")
	return c
}

// partitions reads a whole list.
func (s *session) partitions(ctx context.Context, req *pb.ListPartitionsRequest) (api.PartitionList, error) {
	var header *pb.ResponseHeader
	var table *pb.Table
	var rows []*pb.Partition
	chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListPartitionsResponse], error) {
		return s.catalog.ListPartitions(ctx, req)
	})
	for _, r := range chunks {
		if header == nil {
			header, table = r.GetHeader(), r.GetTable()
		}
		rows = append(rows, r.GetPartitions()...)
	}
	return api.PartitionListJSON(header, table, rows), err
}

func (a *app) partitionGet() *cobra.Command {
	return &cobra.Command{
		Use: "get DB.T KEY=VALUE ...", Short: "Show a partition", Args: minArgs(2),
		Example: "  stave partition get shop.orders dt=2026-11-30",
		RunE: func(c *cobra.Command, args []string) error {
			spec, err := parseSpec(args[1:])
			if err != nil {
				return err
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.GetPartition(ctx, &pb.GetPartitionRequest{Consistency: a.read(), Table: args[0], Spec: spec})
				if err != nil {
					return err
				}
				p := api.PartitionJSON(r.GetPartition())
				return a.showPartitions(p, p)
			})
		},
	}
}

func (a *app) partitionDrop() *cobra.Command {
	var ifExists bool
	var more []string
	c := &cobra.Command{
		Use: "drop DB.T KEY=VALUE ...", Short: "Drop a partition", Args: minArgs(2),
		Example: "  stave partition drop shop.orders dt=2026-11-30",
		RunE: func(c *cobra.Command, args []string) error {
			specs, err := specsOf(args[1:], more)
			if err != nil {
				return err
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.DropPartitions(ctx, &pb.DropPartitionsRequest{Table: args[0], Specs: specs, IfExists: ifExists})
				if err != nil {
					return err
				}
				return a.showResult(r)
			})
		},
	}
	c.Flags().StringArrayVar(&more, "and", nil, "another partition, KEY=VALUE,...; all or none are dropped")
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed if the partition is not there")
	return c
}
