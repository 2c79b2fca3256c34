package main

import (
	"context"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func (a *app) kvCommand() *cobra.Command {
	return noun("kv", "Read and write versioned keys", a.kvPut(), a.kvGet(), a.kvDelete(), a.kvList())
}

func (a *app) showKVs(v any, keysOnly bool, list ...api.KV) error {
	g := newGrid("KEY", "VERSION", "REVISION", "VALUE")
	if keysOnly {
		g.head = g.head[:3]
	}
	for _, r := range list {
		switch {
		case keysOnly:
			g.add(r.Key, r.Version, r.Revision)
		case r.Value != nil:
			g.add(r.Key, r.Version, r.Revision, *r.Value)
		default:
			g.add(r.Key, r.Version, r.Revision, "base64:"+*r.ValueBase64)
		}
	}
	return a.show(v, g)
}

func (a *app) kvPut() *cobra.Command {
	var expected uint64
	c := &cobra.Command{
		Use: "put KEY VALUE", Short: "Write a value; VALUE - reads it from standard input", Args: exactArgs(2),
		Example: `  stave kv put config/mode ready
  stave kv put config/mode ready --expect-version 0   # only if the key is not there`,
		RunE: func(c *cobra.Command, args []string) error {
			value := []byte(args[1])
			if args[1] == "-" {
				var err error
				if value, err = io.ReadAll(io.LimitReader(a.in, api.MaxCommandBytes+1)); err != nil {
					return local("read value: %w", err)
				}
			}
			if !utf8.ValidString(args[0]) {
				return usagef("key %q is not valid UTF-8", args[0])
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.kv.Put(ctx, &pb.PutRequest{Key: args[0], Value: value, ExpectedVersion: given(c.Flags(), "expect-version", expected)})
				if err != nil {
					return err
				}
				return a.showWritten(args[0], value, r)
			})
		},
	}
	c.Flags().Uint64Var(&expected, "expect-version", 0, "refuse unless the key has this version; 0: is not there")
	return c
}

// showWritten prints the key as the put left it.
func (a *app) showWritten(key string, value []byte, r *pb.WriteResponse) error {
	g := newGrid("KEY", "VERSION", "REVISION")
	g.add(key, r.GetResult().GetVersion(), r.GetResult().GetRevision())
	row := &pb.KeyValue{Key: key, Value: value, Version: r.GetResult().GetVersion(), Revision: r.GetResult().GetRevision()}
	return a.show(writtenKV{KV: api.KVJSON(row)}, g)
}

// writtenKV is the JSON of a key after a put: the time is the leader's and not
// part of the answer.
type writtenKV struct {
	api.KV
	ModifiedMS *int64 `json:"modified_ms,omitempty"`
}

func (a *app) kvGet() *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use: "get KEY", Short: "Show a key", Args: exactArgs(1),
		Example: "  stave kv get config/mode --raw",
		RunE: func(c *cobra.Command, args []string) error {
			if raw && a.json() {
				return usagef("--raw and -o json exclude each other")
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.kv.Get(ctx, &pb.GetRequest{Consistency: a.read(), Key: args[0]})
				if err != nil {
					return err
				}
				if raw {
					if _, err := a.out.Write(r.GetRow().GetValue()); err != nil {
						return local("write output: %w", err)
					}
					return nil
				}
				row := api.KVJSON(r.GetRow())
				return a.showKVs(row, false, row)
			})
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes of the value and nothing else")
	return c
}

func (a *app) kvDelete() *cobra.Command {
	var expected uint64
	var ifExists bool
	c := &cobra.Command{
		Use: "delete KEY", Short: "Remove a key", Args: exactArgs(1),
		Example: "  stave kv delete config/mode --if-exists",
		RunE: func(c *cobra.Command, args []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.kv.Delete(ctx, &pb.DeleteRequest{
					Key: args[0], ExpectedVersion: given(c.Flags(), "expect-version", expected), IfExists: ifExists,
				})
				if err != nil {
					return err
				}
				return a.showResult(r)
			})
		},
	}
	c.Flags().Uint64Var(&expected, "expect-version", 0, "refuse unless the key has this version")
	c.Flags().BoolVar(&ifExists, "if-exists", false, "succeed if the key is not there")
	return c
}

func (a *app) kvList() *cobra.Command {
	var from string
	var limit uint64
	var keysOnly bool
	c := &cobra.Command{
		Use: "list [PREFIX]", Short: "List keys in byte order, from one state", Args: rangeArgs(0, 1),
		Example: "  stave kv list config/ --limit 10",
		RunE: func(c *cobra.Command, args []string) error {
			req := &pb.ListRequest{Consistency: a.read(), From: from, Limit: limit, KeysOnly: keysOnly}
			if len(args) == 1 {
				req.Prefix = args[0]
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListResponse], error) { return s.kv.List(ctx, req) })
				if err != nil {
					return err
				}
				convert := api.KVJSON
				if keysOnly {
					convert = api.KeyJSON
				}
				list := []api.KV{}
				for _, r := range chunks {
					for _, row := range r.GetRows() {
						list = append(list, convert(row))
					}
				}
				return a.showKVs(list, keysOnly, list...)
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "first key wanted")
	c.Flags().Uint64Var(&limit, "limit", 0, "how many at most; 0: all")
	c.Flags().BoolVar(&keysOnly, "keys-only", false, "leave the values out")
	return c
}

// parseServerID reads the id of a tablet server.
func parseServerID(s string) (catalog.ServerID, error) {
	id, err := strconv.ParseInt(s, 10, 32)
	if err != nil || id < 0 {
		return 0, usagef("server id %q: want a number from 0 to 2147483647", s)
	}
	return catalog.ServerID(id), nil
}
