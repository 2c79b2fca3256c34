package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/raftnode"
)

// completeTimeout bounds the look at the cluster for one press of the tab key.
const completeTimeout = time.Second

type completion = cobra.CompletionFunc

// firstOf completes the first argument from a fixed list.
func firstOf(words ...string) completion {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// firstFrom completes the first argument with names from the cluster, and says
// nothing when no node answers at once.
func (a *app) firstFrom(names func(context.Context, *session) ([]string, error)) completion {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completeTimeout)
		defer cancel()
		var out []string
		err := a.stream(ctx, func(ctx context.Context, s *session) (err error) {
			out, err = names(ctx, s)
			return err
		})
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// staleRead is fresh enough for a completion, and needs no leader.
func staleRead() *pb.Consistency {
	return &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE}
}

func databaseNames(ctx context.Context, s *session) ([]string, error) {
	chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListDatabasesResponse], error) {
		return s.catalog.ListDatabases(ctx, &pb.ListDatabasesRequest{Consistency: staleRead()})
	})
	var out []string
	for _, r := range chunks {
		for _, d := range r.GetDatabases() {
			out = append(out, d.GetName())
		}
	}
	return out, err
}

func tableNames(ctx context.Context, s *session) ([]string, error) {
	chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListTablesResponse], error) {
		return s.catalog.ListTables(ctx, &pb.ListTablesRequest{Consistency: staleRead()})
	})
	var out []string
	for _, r := range chunks {
		for _, t := range r.GetTables() {
			out = append(out, t.GetPath())
		}
	}
	return out, err
}

func scopeNames(ctx context.Context, s *session) ([]string, error) {
	databases, err := databaseNames(ctx, s)
	if err != nil {
		return nil, err
	}
	tables, err := tableNames(ctx, s)
	return slices.Concat(databases, tables), err
}

func serverIDs(ctx context.Context, s *session) ([]string, error) {
	list, err := s.plainServers(ctx, staleRead())
	var out []string
	for _, v := range list {
		out = append(out, number(v.ServerID))
	}
	return out, err
}

func nodeIDs(ctx context.Context, s *session) ([]string, error) {
	r, err := s.cluster.Status(ctx, &pb.StatusRequest{Consistency: staleRead()})
	var out []string
	for _, m := range r.GetMembers() {
		out = append(out, m.GetMember().GetNodeId())
	}
	return out, err
}

// completeVerbs gives every verb that takes a name of the cluster its
// completion, and the flags with a fixed set of values theirs.
func (a *app) completeVerbs(root *cobra.Command) {
	for _, group := range []struct {
		names func(context.Context, *session) ([]string, error)
		verbs []string
	}{
		{databaseNames, []string{"database get", "database alter", "database drop", "table list"}},
		{tableNames, []string{
			"table get", "table alter", "table rescale", "table drop", "layout", "route",
			"partition create", "partition list", "partition get", "partition drop",
		}},
		{scopeNames, []string{"watch"}},
		{serverIDs, []string{"tablet drain", "tablet unregister"}},
		{nodeIDs, []string{"cluster promote", "cluster remove", "cluster transfer"}},
	} {
		for _, verb := range group.verbs {
			verbOf(root, verb).ValidArgsFunction = a.firstFrom(group.names)
		}
	}
	completeFlag(root.PersistentFlags(), root, "output", string(outputTable), string(outputJSON))
	completeFlag(root.PersistentFlags(), root, "consistency", "linearizable", "stale", "at-least:")
	for _, verb := range []string{"dev", "server"} {
		c := verbOf(root, verb)
		completeFlag(c.Flags(), c, "log-level", "debug", "info", "warn", "error")
		completeFlag(c.Flags(), c, "log-store", string(raftnode.LogStoreWAL), string(raftnode.LogStoreBolt))
		completeFlag(c.Flags(), c, "log-format", "text", "json")
	}
}

// verbOf finds a command by its words below the root.
func verbOf(root *cobra.Command, words string) *cobra.Command {
	c, rest, err := root.Find(strings.Fields(words))
	if err != nil || len(rest) > 0 {
		panic("no command " + words) // a mistake in this file, which every start would show
	}
	return c
}

// completeFlag completes a flag from a fixed list, where c has it.
func completeFlag(f *pflag.FlagSet, c *cobra.Command, name string, values ...string) {
	if f.Lookup(name) == nil {
		return
	}
	if err := c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // only for a flag that is not there, or twice
	}
}
