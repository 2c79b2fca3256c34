package raftnet

import (
	"context"
	"errors"
	"fmt"
)

// dial connects to a node and shakes hands; the connection is verified when it
// returns. It ends with ctx, at Close and after five seconds.
func (m *Mux) dial(ctx context.Context, kind Kind, node string) (*stallConn, error) {
	me := m.welcome()
	if me.Cluster == "" {
		return nil, &RefusedError{Code: RefusedNotReady, Reason: "this node has no identity yet", Node: node}
	}
	if m.cfg.Resolver == nil {
		return nil, fmt.Errorf("dial %q: %w", node, ErrUnknownNode)
	}
	addr, ok := m.cfg.Resolver.Resolve(node)
	if !ok {
		return nil, fmt.Errorf("dial %q: %w", node, ErrUnknownNode)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stallAfter, ErrStalled)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	raw, err := m.cfg.Network.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial %q at %s: %w", node, addr, err)
	}
	c, err := m.track(raw)
	if err != nil {
		return nil, err
	}
	m.name(c, node)
	h := Hello{Kind: kind, Cluster: me.Cluster, From: me.Node, To: node, Directory: me.Directory, Build: m.cfg.Build}
	if err := m.introduce(ctx, c, h); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("dial %q at %s: %w", node, addr, causeOf(ctx, err))
	}
	return c, nil
}

// introduce shakes hands on a dialled connection and judges the other side.
func (m *Mux) introduce(ctx context.Context, c *stallConn, h Hello) error {
	stop := closeOnEnd(ctx, c)
	w, err := greet(c, h)
	if !stop() {
		return fmt.Errorf("handshake: %w", context.Cause(ctx))
	}
	if r := (*RefusedError)(nil); errors.As(err, &r) && r.Code == RefusedBuild && m.cfg.OnOldBuild != nil {
		m.cfg.OnOldBuild(r)
	}
	if err != nil {
		return err
	}
	switch {
	case w.Node != h.To:
		return &RefusedError{Code: RefusedNode, Reason: fmt.Sprintf("node %q answered instead of %q", w.Node, h.To), Node: w.Node}
	case w.Cluster != h.Cluster:
		reason := fmt.Sprintf("cluster id is %q here and %q there", h.Cluster, w.Cluster)
		return &RefusedError{Code: RefusedCluster, Reason: reason, Node: w.Node}
	}
	if r := m.checkPeer(w.Node, w.Directory, w.Build); r != nil {
		return r
	}
	return nil
}
