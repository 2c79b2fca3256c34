// Package raftnode is one running node: a replicated catalog on hashicorp/raft
// that can be embedded into any Go server.
//
//	node, err := raftnode.Open(ctx, raftnode.Config{ID: "n1", Dir: dir, RaftAddr: addr, InitialCluster: peers})
//	res, err := node.Propose(ctx, catalog.RescaleTable{Table: "shop.orders", Buckets: 8})
//	st, err := node.Read(ctx, raftnode.Linearizable)
//	sub, err := node.Watch(ctx, st.Revision())
//	<-node.Done()
//
// # What is promised
//
// A command that Propose acknowledged is durable on a majority and took effect
// exactly once, whatever was retried on the way. A Linearizable read on any node
// sees every command acknowledged before it began. A node never exits its host:
// what it cannot go on from, a damaged log or a command of a newer build, ends
// it through Done and Err with its files as they are.
//
// # How reads are made linearizable
//
// raft has no read index. The leader of term T, once its NewTerm of T is
// applied, takes the commit index for all readers that wait, then asks every
// voter of the latest configuration for its current term over the peer protocol.
// When more than half of the voters answered exactly T, nobody can have led a
// later term before the index was taken. Readers then wait until the state
// machine's own index is there. A follower gets the index from the leader. A
// paused leader that wakes up asks again and finds the voters in a later term.
//
// # What is repaired around raft
//
// The log stores hold what raft would panic on (internal/raftlog), the transport
// keeps heartbeats on raft's main goroutine and clamps commit indexes
// (internal/raftnet), and the node opens raft anew in place after a snapshot
// install over a log of its own.
package raftnode
