package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"

	pb "github.com/stavedb/stave/api/stave/v1"
)

func (a *app) tabletCommand() *cobra.Command {
	return noun("tablet", "Register and show tablet servers", a.tabletRegister(), a.tabletList(), a.tabletUnregister())
}

func (a *app) showServers(v any, list ...api.Server) error {
	g := newGrid("SERVER", "LIVE", "INCARNATION", "LISTENERS", "RACK", "TTL", "TAG", "DIRECTORY", "REVISION")
	for _, s := range list {
		ttl := time.Duration(s.TTLMS) * time.Millisecond
		g.add(s.ServerID, s.Live, s.Incarnation, join(s.Listeners), s.Rack, ttl, s.Tag, s.DirectoryID, s.Revision)
	}
	return a.show(v, g)
}

func (a *app) tabletRegister() *cobra.Command {
	var listeners []string
	var rack, directory string
	var ttl time.Duration
	c := &cobra.Command{
		Use: "register ID --listener HOST:PORT", Short: "Register a tablet server", Args: exactArgs(1),
		Long: `Register a tablet server, or register it again. The record lives for --ttl unless it
is renewed; a second server with the same id and another directory id is refused
until then.`,
		Example: "  stave tablet register 1 --listener 10.0.0.1:9123 --rack r1 --ttl 1m",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseServerID(args[0])
			if err != nil {
				return err
			}
			if len(listeners) == 0 {
				return usagef("a tablet server wants at least one --listener HOST:PORT")
			}
			if ttl < time.Millisecond {
				return usagef("--ttl %s: want 1ms or more", ttl)
			}
			if directory == "" {
				directory = defaultDirectory(int32(id), listeners)
			}
			req := &pb.RegisterServerRequest{
				ServerId: int32(id), DirectoryId: directory, Listeners: listeners, Rack: rack, TtlMs: ttl.Milliseconds(),
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.placement.RegisterServer(ctx, req)
				if err != nil {
					return err
				}
				if r.GetServer() == nil {
					return a.showHeader(r.GetHeader())
				}
				v := api.ServerJSON(r.GetServer())
				return a.showServers(v, v)
			})
		},
	}
	c.Flags().StringSliceVar(&listeners, "listener", nil, "HOST:PORT or NAME://HOST:PORT; may be repeated")
	c.Flags().StringVar(&rack, "rack", "", "where the server stands")
	c.Flags().DurationVar(&ttl, "ttl", 10*time.Second, "how long the record lives without renewal")
	c.Flags().StringVar(&directory, "directory-id", "", "names the server's data; default: made from id and listeners")
	return c
}

// defaultDirectory is the same for the same id and listeners, so that a repeated
// registration replaces its own record.
func defaultDirectory(id int32, listeners []string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\x00%s", id, strings.Join(listeners, "\x00")) //nolint:errcheck // a hash takes everything
	return fmt.Sprintf("cli-%016x", h.Sum64())
}

func (a *app) tabletList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all tablet servers", Args: exactArgs(0),
		Example: "  stave tablet list",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				chunks, err := collect(ctx, func() (grpc.ServerStreamingClient[pb.ListServersResponse], error) {
					return s.placement.ListServers(ctx, &pb.ListServersRequest{Consistency: a.read()})
				})
				if err != nil {
					return err
				}
				list := []api.Server{}
				for _, r := range chunks {
					for _, v := range r.GetServers() {
						list = append(list, api.ServerJSON(v))
					}
				}
				return a.showServers(list, list...)
			})
		},
	}
}

func (a *app) tabletUnregister() *cobra.Command {
	var incarnation uint64
	c := &cobra.Command{
		Use: "unregister ID", Short: "Delete the record of a tablet server that holds no replica", Args: exactArgs(1),
		Example: "  stave tablet unregister 1",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseServerID(args[0])
			if err != nil {
				return err
			}
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.placement.UnregisterServer(ctx, &pb.UnregisterServerRequest{
					ServerId: int32(id), Incarnation: given(c.Flags(), "incarnation", incarnation),
				})
				if err != nil {
					return err
				}
				return a.showResult(r)
			})
		},
	}
	c.Flags().Uint64Var(&incarnation, "incarnation", 0, "refuse unless it is the current registration")
	return c
}
