// Package snapshots turns a catalog state into bytes and back: versioned,
// checksummed, streamed, and the same bytes for the same state on every node.
//
// A file is a head, blocks of rows, and a trailer. Numbers outside the
// MessagePack parts are big-endian. Frozen: snapshot format v1.
//
//	head     +----------+---------+----------+-----------------+---------+
//	         | magic    | version | length   | header          | CRC-32C |
//	         | STAVSNAP | 01      | u32      | msgpack record  | u32     |
//	         +----------+---------+----------+-----------------+---------+
//	block    +----------+---------+----------------------------+---------+
//	(many)   | 42 'B'   | u32     | whole rows, about 64 KiB   | CRC-32C |
//	         +----------+---------+----------------------------+---------+
//	trailer  +----------+---------+----------------------------+---------+
//	         | 54 'T'   | u32     | msgpack record             | CRC-32C |
//	         +----------+---------+----------------------------+---------+
//	         | XXH64 of everything before it, u64              |
//	         +-------------------------------------------------+
//
// A CRC covers everything since the previous one. The header says what the rows
// must come to: feature level, revision, incarnation, cluster id, wall clock,
// state hash and the number of rows of each kind; the trailer repeats the hash
// and counts rows and blocks. A row is a tag byte and one record; rows come in a
// fixed order (see the tags in records.go), each kind in ascending order of its
// key. The watch history comes last and is not part of the state hash.
//
// Capturing a state is holding its pointer: Write may run while later commands
// are applied. Read returns nothing before everything was verified.
package snapshots
