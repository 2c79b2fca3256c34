package client

import (
	"context"

	"google.golang.org/grpc"
)

// NewStream opens a stream; it is what generated stubs use.
func (c *Client) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	tr := trace{method: method}
	bctx, cancel := c.budget(ctx)
	defer cancel()
	l, err := c.pool.acquire(bctx, false, nil)
	if err != nil {
		return nil, tr.noNode(bctx, c, err)
	}
	return l.conn.NewStream(ctx, desc, method, opts...)
}
