// Package catalog is the domain of Stave: an immutable state, the commands that
// change it, and the rules they keep. It does no I/O, reads no clock, draws no
// random numbers and knows nothing of raft, time zones or the wire.
//
// One goroutine applies commands through a Batch; any number of others read the
// states it publishes, without locks:
//
//	b := state.Begin()
//	res, event := b.Apply(index, envelope, catalog.RescaleTable{Table: "shop.orders", Buckets: 8})
//	state = b.Publish()
//
// A command is validated completely before it changes anything. A refusal is a
// Result with a Code, the same on every node. What Apply does depends on the
// state and the entry alone.
//
// # Invariants
//
// Check verifies them by a full scan, CheckStep those that speak of a step:
//
//	I1   the effective bucket count of a partition never changes
//	I2   an assignment is absent or has the effective count's length
//	I3   a table's layout epoch rises by exactly 1 per effective rescale
//	I4   unless imported, (epoch, count) of a partition is in its table's history
//	I5   a partition has no count of its own if and only if it is legacy
//	I6   ids are below counters that never fall, and are never reused
//	I7   a partition's table exists, and a table's database
//	I8   a bucket's leader is in the ISR or there is none; the ISR is within the
//	     replicas and never empty once set
//	I9   the coordinator epoch never falls within an incarnation and rises by 1
//	     per raft term that led; revision and clocks never fall
//	I10  counters and secondary indexes agree with a full scan
//	I11  the rolling hash equals the hash of a full scan
//	I12  the moves of a plan are sorted and name a bucket once; while it runs a
//	     bucket has the replicas from before its move, those after it, or both
//	I13  the record of a replica that was moved away names a bucket that is there
//	     and servers that hold no replica of it; it is gone when they are done
package catalog
