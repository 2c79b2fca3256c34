package client

import (
	"fmt"
	"strings"

	"github.com/stavedb/stave/catalog"
)

// NodeState is one address as the client sees it.
type NodeState struct {
	Addr string
	// Node is who answered there; empty while nobody is connected.
	Node      string
	Connected bool
	// Calls counts those in flight.
	Calls int64
	// Problem is the last failure, while there is no connection.
	Problem string
}

// State is what a client knows at one moment, for people to look at.
type State struct {
	// ClusterID, Leader and LeaderAddr are empty while not known.
	ClusterID, Leader, LeaderAddr string
	Nodes                         []NodeState
	// Client is the current registration, 0 for none, and Registrations how many
	// there were.
	Client        catalog.ClientID
	Registrations uint64
	// Open counts the sequences above the watermark; at 4,096 writes wait.
	Open, Watermark uint64
	// Queued commands wait for the batch stream, Sent ones for their outcome on it.
	Queued, Sent int
	// ReadsQueued wait for the stream of reads, ReadsSent for their answer on it;
	// at 8,192 together reads wait for their turn.
	ReadsQueued, ReadsSent int
	// Pending writes timed out and are asked for in the background.
	Pending int
}

// State returns what the client knows now.
func (c *Client) State() State {
	var s State
	p := c.pool
	p.mu.Lock()
	s.ClusterID, s.Leader, s.LeaderAddr = p.mu.cluster, p.mu.leader.node, p.mu.leader.addr
	for _, q := range p.mu.peers {
		n := NodeState{Addr: q.addr}
		if q.link != nil {
			n.Node, n.Connected, n.Calls = q.link.id.node, q.link.ready(), q.link.calls.Load()
		} else if q.err != nil {
			n.Problem = q.err.Error()
		}
		s.Nodes = append(s.Nodes, n)
	}
	p.mu.Unlock()
	c.session.mu.Lock()
	reg := c.session.current
	s.Registrations = c.session.count
	c.session.mu.Unlock()
	if reg != nil {
		s.Client = reg.id
		s.Open, s.Watermark = reg.open()
	}
	s.Queued, s.Sent = c.batch.counts()
	s.ReadsQueued, s.ReadsSent = c.reads.counts()
	s.Pending = c.results.pending()
	return s
}

// String returns a few lines of text.
func (s State) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster %q, leader %q at %q\n", s.ClusterID, s.Leader, s.LeaderAddr)
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "  %s: ", n.Addr)
		switch {
		case n.Connected:
			fmt.Fprintf(&b, "node %s, %d calls\n", n.Node, n.Calls)
		case n.Problem != "":
			fmt.Fprintf(&b, "not connected: %s\n", n.Problem)
		default:
			b.WriteString("not connected\n")
		}
	}
	fmt.Fprintf(&b, "client %d (registration %d): %d open above %d, %d queued, %d sent, %d pending, reads: %d queued, %d sent\n",
		s.Client, s.Registrations, s.Open, s.Watermark, s.Queued, s.Sent, s.Pending,
		s.ReadsQueued, s.ReadsSent)
	return b.String()
}
