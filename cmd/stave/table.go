package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

func (a *app) tableCommand() *cobra.Command {
	return noun("table", "Create, show, rescale and drop tables",
		a.tableCreate(), a.tableList(), a.tableGet(), a.tableAlter(), a.tableRescale(), a.tableDrop())
}

func (a *app) showTables(v any, list ...api.Table) error {
	g := newGrid("TABLE", "ID", "BUCKETS", "EPOCH", "LEGACY COUNT", "PARTITION KEYS", "BUCKET KEYS", "REPLICATION", "REVISION")
	for _, t := range list {
		name := t.Database + "." + t.Name
		if t.Importing {
			name += " (importing)"
		}
		g.add(name, t.TableID, t.BucketCount, t.LayoutEpoch, orDash(t.LegacyCount), join(t.PartitionKeys), join(t.BucketKeys), t.ReplicationFactor, t.Revision)
	}
	return a.show(v, g)
}

func (a *app) showTable(r *pb.TableResponse) error {
	if r.GetTable() == nil {
		return a.showHeader(r.GetHeader())
	}
	t := api.TableJSON(r.GetTable())
	return a.showTables(t, t)
}

// describeTable prints everything about a table, one fact a line.
func (a *app) describeTable(r *pb.TableResponse) error {
	t := api.TableJSON(r.GetTable())
	g := newGrid()
	g.add("table", t.Database+"."+t.Name)
	g.add("table id", t.TableID)
	g.add("bucket count", t.BucketCount)
	g.add("layout epoch", t.LayoutEpoch)
	g.add("legacy count", orDash(t.LegacyCount))
	for _, c := range t.Columns {
		g.add("column "+c.Name, c.Type)
	}
	g.add("primary key", join(t.PrimaryKey))
	g.add("bucket keys", join(t.BucketKeys))
	g.add("partition keys", join(t.PartitionKeys))
	g.add("replication factor", t.ReplicationFactor)
	for _, h := range t.History {
		g.add("history", historyText(h))
	}
	for _, p := range append(t.Properties, t.CustomProperties...) {
		g.add("property "+p.Key, p.Value)
	}
	if t.Assignment != nil {
		for _, b := range *t.Assignment {
			g.add("bucket "+number(b.Bucket), replicasText(b))
		}
	}
	g.add("comment", t.Comment)
	g.add("importing", t.Importing)
	g.add("revision", t.Revision)
	return a.show(t, g)
}

// tableFlags are the flags of create.
type tableFlags struct {
	columns, properties                   []string
	primaryKey, partitionKeys, bucketKeys []string
	buckets, replication                  int32
	comment                               string
	ifNotExists                           bool
}

func (a *app) tableCreate() *cobra.Command {
	var f tableFlags
	c := &cobra.Command{
		Use: "create DB.T", Short: "Create a table", Args: exactArgs(1),
		Long: `Create a table at layout epoch 0. Properties that begin with "table." are Stave's,
all others are kept as custom properties.`,
		Example: `  stave table create shop.orders --column 'id INT' --column 'dt STRING' \
    --primary-key id,dt --partition-key dt --bucket-key id --buckets 4`,
		RunE: func(c *cobra.Command, args []string) error {
			req, err := f.request(c, args[0])
			if err != nil {
				return err
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.CreateTable(ctx, req)
				if err != nil {
					return err
				}
				return a.showTable(r)
			})
		},
	}
	c.Flags().StringArrayVar(&f.columns, "column", nil, "'NAME TYPE [NOT NULL] [-- COMMENT]'; repeated, in order")
	c.Flags().StringSliceVar(&f.primaryKey, "primary-key", nil, "columns of the primary key, comma-separated")
	c.Flags().StringSliceVar(&f.partitionKeys, "partition-key", nil, "columns that name a partition, comma-separated")
	c.Flags().StringSliceVar(&f.bucketKeys, "bucket-key", nil, "columns that choose a bucket; default: the primary key without partition keys")
	c.Flags().Int32Var(&f.buckets, "buckets", 1, "buckets of the table, or of its next partitions")
	c.Flags().Int32Var(&f.replication, "replication-factor", 1, "replicas of each bucket")
	c.Flags().StringArrayVar(&f.properties, "property", nil, "KEY=VALUE; may be repeated")
	c.Flags().StringVar(&f.comment, "comment", "", "text for people")
	c.Flags().BoolVar(&f.ifNotExists, "if-not-exists", false, "succeed if the table is there")
	return c
}

func (f *tableFlags) request(c *cobra.Command, name string) (*pb.CreateTableRequest, error) {
	if len(f.columns) == 0 {
		return nil, usagef("a table wants at least one --column 'NAME TYPE'")
	}
	columns, err := parseColumns(f.columns)
	if err != nil {
		return nil, err
	}
	props, err := parseProperties("property", f.properties)
	if err != nil {
		return nil, err
	}
	own, custom := splitProperties(props)
	if c.Flags().Changed("replication-factor") {
		for _, p := range own {
			if p.GetKey() == replicationProperty {
				return nil, usagef("--replication-factor and --property %s exclude each other", replicationProperty)
			}
		}
		own = append(own, &pb.Property{Key: replicationProperty, Value: number(f.replication)})
	}
	return &pb.CreateTableRequest{
		Table: name, Comment: f.comment, Columns: columns, PrimaryKey: f.primaryKey, PartitionKeys: f.partitionKeys, BucketKeys: f.bucketKeys,
		Buckets: given(c.Flags(), "buckets", f.buckets), Properties: own, CustomProperties: custom, IfNotExists: f.ifNotExists,
	}, nil
}

func (a *app) tableList() *cobra.Command {
	return &cobra.Command{
		Use: "list [DB]", Short: "List the tables of a database, or all", Args: rangeArgs(0, 1),
		Example: "  stave table list shop",
		RunE: func(c *cobra.Command, args []string) error {
			req := &pb.ListTablesRequest{Consistency: a.read()}
			if len(args) == 1 {
				req.Database = args[0]
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListTablesResponse], error) {
					return s.catalog.ListTables(ctx, req)
				})
				if err != nil {
					return err
				}
				list := []api.Table{}
				for _, r := range chunks {
					for _, t := range r.GetTables() {
						list = append(list, api.TableJSON(t))
					}
				}
				return a.showTables(list, list...)
			})
		},
	}
}

func (a *app) tableGet() *cobra.Command {
	return &cobra.Command{
		Use: "get DB.T", Short: "Show a table with columns, layout history and properties", Args: exactArgs(1),
		Example: "  stave table get shop.orders",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.GetTable(ctx, &pb.GetTableRequest{Consistency: a.read(), Table: args[0]})
				if err != nil {
					return err
				}
				return a.describeTable(r)
			})
		},
	}
}
