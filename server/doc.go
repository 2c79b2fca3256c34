// Package server answers gRPC and HTTP calls from a raftnode.Node.
//
//	s, err := server.New(server.Config{Node: node, Logger: log})
//	go s.Serve(apiListener, httpListener)
//	s.Close(ctx)
//
// # What is promised
//
// A write is submitted once. Its answer carries the object as it is at or after
// the revision of the result, never before. A list, a layout, an export and a
// snapshot come from one state, whose incarnation and revision every chunk
// carries. A request that cannot be carried out gets a code and a sentence and
// changes nothing; no request takes the node down.
//
// # Ways in
//
// HTTP goes through the same gRPC server over a connection in memory, so that
// every limit, metric and log line holds for both. Streams are lines of JSON on
// HTTP. Before a node is open, a Front answers the probes.
//
// # How events are sent
//
// An event is encoded once, split into messages of a bounded size, and kept
// beside it in the history; every watch that gets all of it sends those bytes.
// Each watch has a goroutine that sends, and one that can end the call while
// the first is held up by a peer that does not read.
package server
