// Package fsm binds catalog to raft: it encodes commands into log entries,
// applies committed entries in batches, publishes immutable states, and takes
// and restores snapshots.
//
// A log entry is, frozen as log format v1:
//
//	+--------+------+---------+-----------------+----------------+---------+
//	| format | kind | version | envelope        | body           | CRC-32C |
//	| 01     | u8   | u8      | msgpack record  | msgpack record | u32 BE  |
//	+--------+------+---------+-----------------+----------------+---------+
//
// The CRC covers everything before it. The encoding is canonical: decoding an
// entry and encoding the result gives the same bytes, and anything else is
// refused. Kinds are numbered in package catalog; version counts the layouts of
// the body of one kind.
//
// One goroutine, raft's, calls Apply, ApplyBatch, Snapshot and Restore. All
// other methods may be called by any number of goroutines.
//
// An entry that cannot be applied (checksum, unknown kind or version, a panic)
// stops the machine in front of it: what came before is published, the owner is
// told once, and the calling goroutine is held until Close and then ends. The
// entry is never skipped, so that replicas cannot drift apart.
package fsm
