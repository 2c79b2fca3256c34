// Package autopartition decides which partitions of a table are due by the
// clock: which ones to create ahead, which ones are too old, and whether one
// that somebody asks for by hand is in order.
//
// Everything is a function of a state of the catalog and a wall time; nothing
// here reads a clock, waits or keeps anything. The leader calls it and proposes
// what it says, so that time zones never reach the replicated state machine.
//
// The rules:
//
//   - The value of the auto key is the local time of the table's zone in the
//     table's format, cut to its unit. Years, quarters, months and days are
//     counted on the calendar, hours on the clock: an hour that daylight saving
//     skips has no partition, one that it repeats has one.
//   - Partitions at offsets 0 to num-precreate - 1 are created if absent. Tables
//     with several partition keys create none.
//   - A partition below offset -num-retention is dropped. A negative number
//     keeps all; a value that does not parse is never dropped.
//   - DAY tables with at least two partitions ahead create the new one up to
//     1,379 minutes late, by a delay derived from the table id, so that midnight
//     is not the busiest minute of the cluster. For a table that was created or
//     altered since then the time of that change counts.
//   - Nothing below the bound of the retention is ever created.
package autopartition

import _ "time/tzdata" // zones must work on a machine without a zone database
