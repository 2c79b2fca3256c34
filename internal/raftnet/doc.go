// Package raftnet is everything between raft and the network: one port on which
// nodes verify each other, raft's transport with the repairs raft needs, and a
// small request protocol between nodes.
//
//	raft                       raftnode
//	  |                           |
//	Transport (feed, gate)      Peers          AskIdentity
//	  |                           |                |
//	raft.NetworkTransport         |                |
//	  |                           |                |
//	RaftLayer (chunkConn)         |                |
//	  +-------------+-------------+----------------+
//	               Mux: handshake, one port, both directions
//	                |
//	            stallConn: no byte for 5 s inside a message ends a connection
//	                |
//	             Network: TCP, or one in memory
//
// All kinds of traffic share the port, so that whatever cuts one cuts all: a
// leader that can still answer term probes can also still replicate.
//
// # Handshake
//
// The dialling side speaks first, the accepting side answers every hello it can
// read and closes the connection unless the code is 0. Integers are big endian;
// a string is a length byte and UTF-8; the sum is CRC-32C of all before it. The
// whole exchange takes at most five seconds.
//
//	hello    "STVh" version:1 kind:1 length:2 | cluster from to directory build:4 | sum:4
//	welcome  "STVw" version:1 code:1 length:2 | cluster node directory build:4 reason(2+n) | sum:4
//
// Both sides judge the other: protocol version, cluster id, node ids, build
// level, and through CheckPeer the directory id, which tells a voter that lost
// its directory from one that kept it.
//
// An identity connection carries one answer after the welcome and ends; it needs
// no identity on either side:
//
//	answer   length:4 | version:1 node cluster directory hasLog:1 members:2
//	                  | members x (node addr directory voter:1) | sum:4
//
// # Raft connections
//
// Raft's own messages travel as they are, in chunks:
//
//	chunk    length:4 payload          1 <= length <= 64 KiB
//
// A chunk never holds bytes of two messages. That is what makes "inside a
// message" decidable without decoding, also for a snapshot's body, for which
// raft sets deadlines that grow with its size; see chunkConn.
//
// # Peer connections
//
//	frame    length:4 sum:4 type:1 tag:1 id:8 budget:8 | payload of length bytes
//	         type 1 request   tag: method, budget: what is left of the caller's time, in us
//	              2 response  tag: status, id: the request's
//	              3 ping      4 pong
//
// A connection carries requests one way and responses the other, in any order.
// The sum covers the frame without itself. The writer flushes when nothing more
// waits: a lone request leaves at once, those of many callers leave together. A
// connection over which calls wait is pinged each second and given up after five
// without an answer, so that a silent network is told from a slow handler.
//
// # What Transport repairs
//
//   - Heartbeats. The library handles them on the connection's goroutine, where
//     one of a higher term changes term and role while the main goroutine is
//     still storing a client's entry as leader: it stores it under a term it never
//     won. Here every message goes through the main goroutine. The price is that a
//     heartbeat waits behind a slow disk or a snapshot; therefore the feed answers
//     for a follower whose main goroutine has been busy with one message for
//     BusyAfter, if the heartbeat comes from the leader it follows in the term it
//     is in. It changes nothing in raft. The follower cannot start an election
//     while it is busy; when the work has succeeded raft renews its last contact,
//     and when it has failed the follower's pre-votes are refused as long as the
//     others hear the leader.
//   - Commit index. A follower commits up to min(leader's commit, own last index),
//     which may be beyond what the append verified; see vetAppend.
//   - Pipelines. A refusal in a pipeline under load can block its sender for
//     ever; see pipeline.
//   - Messages that stop the process: missing entries, configurations that do not
//     decode. They are refused.
//   - Size. Appends are cut to MaxAppend bytes when sent, received messages are
//     bounded by MaxMessage.
//   - The gate. A leader whose disk hangs goes on sending heartbeats and is never
//     replaced; with the gate closed it is.
//   - Snapshots. The owner hears of each, because raft keeps a diverging entry at
//     the snapshot's index and has to be opened again after some installs.
package raftnet
