package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

// session is a connection to a cluster with the stubs of every service. Calls
// are retried, and writes are exactly-once, below the stubs.
type session struct {
	*client.Client
	catalog   pb.CatalogClient
	placement pb.PlacementClient
	kv        pb.KVClient
	cluster   pb.ClusterClient
}

// connect opens a session to the endpoints of the flag, else of
// STAVE_ENDPOINTS, else the default one. Each operation is a call of its own.
func (a *app) connect() (*session, error) { return a.connectWith(client.WithBatching(false)) }

func (a *app) connectWith(opts ...client.Option) (*session, error) {
	endpoints, from := a.addresses()
	opts = append(opts, client.WithRecordTTL(a.recordTTL()))
	if a.dial != nil {
		opts = append(opts, client.WithDialer(a.dial))
	}
	c, err := client.New(endpoints, opts...)
	if err != nil {
		return nil, usagef("%s: %s", from, err)
	}
	return &session{
		Client: c, catalog: pb.NewCatalogClient(c), placement: pb.NewPlacementClient(c), kv: pb.NewKVClient(c), cluster: pb.NewClusterClient(c),
	}, nil
}

// recordTTL is how long the cluster remembers a command line that is silent: as
// long as its calls may take and as much again, at least a minute. Most write once,
// and there may be thousands of them in an hour.
func (a *app) recordTTL() time.Duration {
	const most = time.Duration(catalog.ClientTTL) * time.Millisecond
	if a.timeout <= 0 {
		return most
	}
	return min(max(time.Minute, 2*a.timeout), most)
}

// addresses returns where to look for nodes, and which setting says so.
func (a *app) addresses() (endpoints []string, from string) {
	endpoints, from = a.endpoints, "--endpoints"
	if len(endpoints) == 0 {
		endpoints = []string{defaultEndpoint}
		if v, ok := a.env("STAVE_ENDPOINTS"); ok && v != "" {
			endpoints, from = strings.Split(v, ","), "STAVE_ENDPOINTS"
		}
	}
	for i, e := range endpoints {
		endpoints[i] = strings.TrimSpace(e)
	}
	return endpoints, from
}

// call runs f with a session and a context that ends with --timeout.
func (a *app) call(ctx context.Context, f func(context.Context, *session) error) error {
	if a.timeout < 0 {
		return usagef("--timeout %s: want 0 or more", a.timeout)
	}
	ctx, cancel := a.bound(ctx)
	defer cancel()
	return a.stream(ctx, f)
}

// bound gives one call its deadline.
func (a *app) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, a.timeout)
}

// stream runs f with a session and no bound in time.
func (a *app) stream(ctx context.Context, f func(context.Context, *session) error) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	err = f(ctx, s)
	return errors.Join(err, s.Close())
}

// receive hands every message of a stream to f.
func receive[T any](stream grpc.ServerStreamingClient[T], err error, f func(*T) error) error {
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
	}
}

// retryPause lies between two tries of a list.
const retryPause = 100 * time.Millisecond

// collect reads a whole stream. A list that another node can give is asked for
// again from its beginning, since its messages must be from one state.
func collect[T any](ctx context.Context, open func() (grpc.ServerStreamingClient[T], error)) ([]*T, error) {
	for {
		var out []*T
		stream, err := open()
		err = receive(stream, err, func(m *T) error {
			out = append(out, m)
			return nil
		})
		if err == nil {
			return out, nil
		}
		err = fault(err)
		if r := api.RetryOf(err); r != api.RetryElsewhere && r != api.RetryBackoff {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(retryPause):
		}
	}
}
