// Package raftlog holds the log and stable stores that raft writes to: either
// hashicorp/raft-wal or raft-boltdb for the log, always raft-boltdb for term
// and vote. Both libraries keep bytes; this package adds what they do not do,
// in layers, so that each closes one kind of fault:
//
//	raft
//	 |            \
//	checks         stableStore      what raft sees
//	 |              |
//	raft.LogCache   |
//	 |              |
//	diskLogStore    |               bounds, chunks, checksums, rewind
//	 |              |
//	disk           disk             one goroutine each; hold, re-open, retry
//	 |              |
//	raft-wal or    raft-boltdb
//	raft-boltdb
//
// # checks
//
// A store that admits gaps makes raft keep the old log of a follower after a
// snapshot install; the follower's own entry at the snapshot's index then
// contradicts every append, and it downloads snapshots for ever. Every store
// is therefore monotonic towards raft, which empties the log instead. (A node
// whose own log had reached beyond the snapshot still needs to re-open raft
// once: raft keeps the old last index in memory.)
//
// Neither library checks an entry: a flipped bit comes back as another
// command. Every entry read, from the cache too, is checked. raft panics when
// a read fails while it applies or starts, so the failure is reported and the
// call is held until Close, which ends it with runtime.Goexit.
//
// # diskLogStore
//
// Each stored entry carries a CRC-32C over index, term, type, data and
// extensions, behind its data. Frozen: log format 1.
//
// bbolt deletes a large range in one transaction that stalls everything for
// seconds; deletions go in chunks, in an order that leaves the log contiguous
// after a kill. raft-wal keeps offsets in 32 bits; one append is bounded.
//
// After a failed append the file is re-opened, compared with the last entry
// that was acknowledged, and whatever of the failed append it holds is removed
// and written again: after a failed fsync the kernel calls pages clean that
// never reached the disk.
//
// A leader's small append may return before it is synced, see ahead; Synced and
// AwaitSynced tell the owner what to hold back.
//
// # disk
//
// raft panics when the stable store returns an error, and its idea of the
// last index is wrong when an append fails after a truncation. So a failing
// write is not returned: it is held and retried, Config.OnTrouble tells the
// node to step aside, Config.OnRecovered that it may come back. ENOSPC and
// EROFS are retried for ever. EIO, and any unknown error, is retried once in
// the life of Stores; the second ends in Config.OnFatal. A write that hangs
// hangs only its own goroutine, and Close does not wait for it.
//
// # walMeta
//
// raft-wal seals a full segment and adds its successor to a list in two
// steps. A kill or a full disk between them leaves a tail that refuses every
// append; so does a stale index frame in a write that was cut. Both are
// repaired when the log is opened, and it is re-opened when a rotation fails
// at run time. raft-wal also takes the end of what it can parse for the end of
// the log: the segment is read first, and when acknowledged bytes may follow
// damage, Open fails with a CorruptError instead of dropping them. One case
// cannot be told from a write cut by power loss: damage in the very last batch
// when its payload contains an empty disk sector.
//
// # AlignWithSnapshot
//
// A kill between the end of a snapshot install and the removal of the old log
// leaves a log that a monotonic store can never continue. It is emptied before
// raft opens.
package raftlog
