package raftnet

import (
	"context"
	"net"
	"time"
)

// Network is how this package reaches the outside: a real one is TCP, tests use
// one in memory. Connections must honour deadlines.
type Network interface {
	// Listen accepts connections on an address.
	Listen(addr string) (net.Listener, error)
	// Dial connects to an address and gives up when ctx ends.
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// TCP is the network of the operating system. A connection whose host has
// vanished without a word is noticed by keepalives after about 11 seconds.
type TCP struct{}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// Listen listens on a TCP address, "host:port".
func (TCP) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	return lc.Listen(context.Background(), "tcp", addr)
}

// Dial connects to a TCP address, "host:port".
func (TCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, "tcp", addr)
}

// Resolver turns a node id into the address its raft port is reached at. It is
// called for every new connection, from any goroutine, and must not block.
type Resolver interface {
	// Resolve reports false for a node it does not know.
	Resolve(nodeID string) (addr string, ok bool)
}

// Static is a Resolver over a fixed map from node id to address.
type Static map[string]string

// Resolve looks the node up.
func (s Static) Resolve(nodeID string) (string, bool) {
	a, ok := s[nodeID]
	return a, ok
}
