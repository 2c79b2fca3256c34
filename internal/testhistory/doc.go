// Package testhistory puts load on a cluster under test, notes everything that
// callers, watchers and observers saw, and judges it.
//
// # The judges
//
// The log of the archive, which no fault touches and nothing compacts, is the
// order in which things happened. Everything else is held against it:
//
//   - replay: the log goes through package catalog; every answer a caller got
//     must be the one its entry gives, every read the state at its revision,
//     every state hash a node reported the hash at that revision;
//   - naive: the log goes through a second model of the commands, made of maps
//     and written without a look at the first; it must give the same answers;
//   - real time: what was answered before something began has the lower
//     revision, whoever the callers are; with the replay this is
//     linearizability of the whole history, not only per object;
//   - porcupine: per object, without the log's help but for outcomes that were
//     unknown: entries in the log took effect, others did not;
//   - logs: every node's log holds the archive's entries, byte for byte, and
//     terms never fall;
//   - watches: each watcher saw exactly the events after where it began, once
//     and in order;
//   - exactly once: a (client, sequence) has one effect and one answer, however
//     often it is in the log; no id is given twice;
//   - leases: nobody renewed in time was expired;
//   - invariants: Check during and after the replay.
//
// And a run must have been harmed as planned, see Bites.
package testhistory
