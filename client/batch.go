package client

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

type batcher struct{ c *Client }

func newBatcher(c *Client) *batcher { return &batcher{c} }

// Do executes a command exactly once and returns its result.
func (c *Client) Do(ctx context.Context, cmd catalog.Command) (catalog.Result, error) {
	req, err := api.RequestFromCommand(cmd, api.Ref{})
	if err != nil {
		return catalog.Result{}, err
	}
	return c.doUnary(ctx, req)
}

// doUnary sends a command as the unary call of its own.
func (c *Client) doUnary(ctx context.Context, req api.Request) (catalog.Result, error) {
	method, reply, err := unaryOf(req)
	if err != nil {
		return catalog.Result{}, err
	}
	err = c.Invoke(ctx, method, req, reply)
	return resultOf(reply, err), err
}

var _ proto.Message

func (b *batcher) counts() (queued, sent int) { return 0, 0 }
