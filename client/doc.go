// Package client talks to a Stave cluster.
//
// A Client keeps one connection to each node it uses, knows every node by
// (cluster id, node id) and not by address, follows the leader, and repeats what
// may be repeated: reads on other nodes, and writes because each of them carries
// the client's id and a sequence, so that the cluster executes it once however
// often it arrives. A Client is a grpc.ClientConnInterface: every generated stub
// works on it and gets all of this.
//
//	c, err := client.New([]string{"127.0.0.1:7401", "dns:///stave.internal:7401"})
//	tables := stavev1.NewCatalogClient(c)
//	res, err := c.Do(ctx, catalog.RescaleTable{Table: "shop.orders", Buckets: 8})
//
// # Errors
//
// An error is a refusal of the cluster, as *catalog.Error or one of the types of
// package api, or a *CallError that tells what was tried and unwraps to the last
// answer. errors.Is(err, catalog.ErrX) works on all of them. A write ends with
// catalog.ErrOutcomeUnknown if it was sent and its fate is not known: its
// deadline ended, the client's record expired, or the cluster was restored. Any
// other error of a write says that nothing was changed.
//
// # Batching
//
// Commands of Do that are issued while others are on their way leave together on
// one stream, and so do linearizable reads of one object (a key, database, table,
// partition or layout) on another; those of a batch are answered from one state.
// No timer holds one back. 8,192 of each may wait or be on their way; more callers
// wait for their turn. State and the metrics show how many there are.
//
// # Exactly once
//
// The client registers with the first write. The watermark that the cluster is
// told passes a sequence only when its outcome is known, so that a write whose
// caller gave up is asked for in the background; Outcome tells what became of it.
package client
