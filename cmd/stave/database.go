package main

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

func (a *app) databaseCommand() *cobra.Command {
	return noun("database", "Create, show and drop databases",
		a.databaseCreate(), a.databaseList(), a.databaseGet(), a.databaseAlter(), a.databaseDrop())
}

func (a *app) showDatabases(v any, list ...api.Database) error {
	g := newGrid("NAME", "PROPERTIES", "COMMENT", "REVISION")
	for _, d := range list {
		g.add(d.Name, pairs(d.Properties), d.Comment, d.Revision)
	}
	return a.show(v, g)
}

func (a *app) showDatabase(r *pb.DatabaseResponse) error {
	if r.GetDatabase() == nil {
		return a.showHeader(r.GetHeader())
	}
	d := api.DatabaseJSON(r.GetDatabase())
	return a.showDatabases(d, d)
}

func (a *app) databaseCreate() *cobra.Command {
	var comment string
	var properties []string
	var ifNotExists bool
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a database", Args: exactArgs(1),
		Example: "  stave database create shop --comment 'orders and clicks' --property owner=web",
		RunE: func(c *cobra.Command, args []string) error {
			props, err := parseProperties("property", properties)
			if err != nil {
				return err
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.CreateDatabase(ctx, &pb.CreateDatabaseRequest{
					Name: args[0], Comment: comment, Properties: props, IfNotExists: ifNotExists,
				})
				if err != nil {
					return err
				}
				return a.showDatabase(r)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "text for people")
	c.Flags().StringArrayVar(&properties, "property", nil, "KEY=VALUE; may be repeated")
	c.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "succeed if the database is there")
	return c
}

func (a *app) databaseList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all databases", Args: exactArgs(0),
		Example: "  stave database list -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListDatabasesResponse], error) {
					return s.catalog.ListDatabases(ctx, &pb.ListDatabasesRequest{Consistency: a.read()})
				})
				if err != nil {
					return err
				}
				list := []api.Database{}
				for _, r := range chunks {
					for _, d := range r.GetDatabases() {
						list = append(list, api.DatabaseJSON(d))
					}
				}
				return a.showDatabases(list, list...)
			})
		},
	}
}

func (a *app) databaseGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a database", Args: exactArgs(1),
		Example: "  stave database get shop",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.GetDatabase(ctx, &pb.GetDatabaseRequest{Consistency: a.read(), Name: args[0]})
				if err != nil {
					return err
				}
				return a.showDatabase(r)
			})
		},
	}
}

func (a *app) databaseAlter() *cobra.Command {
	var comment string
	var set, reset []string
	var ifExists bool
	var expected uint64
	c := &cobra.Command{
		Use: "alter NAME", Short: "Change a database's comment and properties", Args: exactArgs(1),
		Example: "  stave database alter shop --property owner=data --reset tier",
		RunE: func(c *cobra.Command, args []string) error {
			props, err := parseProperties("property", set)
			if err != nil {
				return err
			}
			if len(props) == 0 && len(reset) == 0 && !c.Flags().Changed("comment") {
				return usagef("nothing to change: want --comment, --property or --reset")
			}
			req := &pb.AlterDatabaseRequest{
				Name: args[0], Comment: given(c.Flags(), "comment", comment), Set: props, Reset_: reset, IfExists: ifExists,
				ExpectedRevision: given(c.Flags(), "expect-revision", expected),
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.AlterDatabase(ctx, req)
				if err != nil {
					return err
				}
				return a.showDatabase(r)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "new comment")
	c.Flags().StringArrayVar(&set, "property", nil, "KEY=VALUE to set; may be repeated")
	c.Flags().StringArrayVar(&reset, "reset", nil, "KEY to remove; may be repeated")
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed if the database is not there")
	c.Flags().Uint64Var(&expected, "expect-revision", 0, "refuse unless the database is at this revision")
	return c
}

func (a *app) databaseDrop() *cobra.Command {
	var cascade, ifExists bool
	c := &cobra.Command{
		Use: "drop NAME", Short: "Drop a database", Args: exactArgs(1),
		Example: "  stave database drop shop --cascade",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.catalog.DropDatabase(ctx, &pb.DropDatabaseRequest{Name: args[0], Cascade: cascade, IfExists: ifExists})
				if err != nil {
					return err
				}
				return a.showResult(r)
			})
		},
	}
	c.Flags().BoolVar(&cascade, "cascade", false, "drop its tables, too")
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed if the database is not there")
	return c
}
