package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func (a *app) tabletCommand() *cobra.Command {
	return noun("tablet", "Register, show, tag and drain tablet servers",
		a.tabletRegister(), a.tabletList(), a.tabletTag(), a.tabletUntag(), a.tabletDrain(), a.tabletUnregister(),
		a.tabletReassign(), a.tabletElect(), a.tabletISR())
}

func (a *app) tabletRegister() *cobra.Command {
	var listeners []string
	var rack, directory string
	var ttl time.Duration
	var keep bool
	c := &cobra.Command{
		Use: "register ID --listener HOST:PORT", Short: "Register a tablet server", Args: exactArgs(1),
		Long: `Register a tablet server, or register it again. The record lives for --ttl unless it
is renewed; a second server with the same id and another directory id is refused
until then. With --keep it renews the record until an interrupt, and ends with
SESSION_EXPIRED if the record is lost or replaced.`,
		Example: `  stave tablet register 1 --listener 10.0.0.1:9123 --rack r1 --ttl 1m
  stave tablet register 2 --listener CLIENT://10.0.0.2:9124 --keep`,
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
			return a.stream(c.Context(), func(ctx context.Context, s *session) error {
				lease, err := a.register(ctx, s, req)
				if err != nil || !keep {
					return err
				}
				return a.keepLease(ctx, s, lease, ttl)
			})
		},
	}
	c.Flags().StringSliceVar(&listeners, "listener", nil, "HOST:PORT or NAME://HOST:PORT; may be repeated")
	c.Flags().StringVar(&rack, "rack", "", "where the server stands")
	c.Flags().DurationVar(&ttl, "ttl", 10*time.Second, "how long the record lives without renewal")
	c.Flags().BoolVar(&keep, "keep", false, "renew the record every third of --ttl until an interrupt")
	c.Flags().StringVar(&directory, "directory-id", "", "names the server's data; default: made from id and listeners")
	return c
}

// register sends a registration, prints the record and returns its lease.
func (a *app) register(ctx context.Context, s *session, req *pb.RegisterServerRequest) (*pb.Lease, error) {
	if a.timeout < 0 {
		return nil, usagef("--timeout %s: want 0 or more", a.timeout)
	}
	ctx, cancel := a.bound(ctx)
	defer cancel()
	r, err := s.placement.RegisterServer(ctx, req)
	if err != nil {
		return nil, err
	}
	ids := r.GetResult().GetIds()
	if len(ids) != 1 {
		return nil, &catalog.Error{Code: catalog.ErrUnknownServerError, Message: "the registration gave no incarnation"}
	}
	lease := &pb.Lease{ServerId: req.GetServerId(), Incarnation: ids[0].GetFirst()}
	if r.GetServer() == nil {
		return lease, a.showHeader(r.GetHeader())
	}
	v := tabletServer{Server: api.ServerJSON(r.GetServer())}
	return lease, a.showServers(v, v)
}

// keepLease renews a lease three times per ttl until ctx ends, with nil, or the
// lease is lost. While no leader answers it goes on: the lease clock stands
// still then, so that nothing expires.
func (a *app) keepLease(ctx context.Context, s *session, lease *pb.Lease, ttl time.Duration) error {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := renew(ctx, s, lease, ttl)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && exitCode(fault(err)) == exitRefused:
			return err
		case err != nil && !failing && !a.json():
			a.warn("warning: not renewed, trying on: %s", oneLine(fault(err).Error()))
		}
		failing = err != nil
	}
}

func renew(ctx context.Context, s *session, lease *pb.Lease, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	r, err := s.placement.KeepAlive(ctx, &pb.KeepAliveRequest{Leases: []*pb.Lease{lease}})
	if err != nil || len(r.GetLost()) == 0 {
		return err
	}
	return &catalog.Error{Code: catalog.ErrSessionExpired, Message: fmt.Sprintf(
		"the lease of tablet server %d, incarnation %d, is lost: it expired, or the server was registered anew", lease.GetServerId(), lease.GetIncarnation())}
}

// defaultDirectory is the same for the same id and listeners, so that a repeated
// registration replaces its own record.
func defaultDirectory(id int32, listeners []string) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\x00%s", id, strings.Join(listeners, "\x00")) //nolint:errcheck // a hash takes everything
	return fmt.Sprintf("cli-%016x", h.Sum64())
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
