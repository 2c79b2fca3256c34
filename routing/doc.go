// Package routing turns a row into the partition, the bucket and the writer it belongs to. It has no I/O, no clock and
// no goroutines. Encoders, layouts and routes are functions of their arguments, immutable once built, and safe for
// concurrent use; what keeps state (Guard, LayoutCache, Assigners, Channels) says so.
//
// # The way of a row
//
//	row ([]Value) --PartitionNamer--> "2024$01" --the partition's own bucket count--+
//	row ([]Value) --KeyEncoder------> key bytes --Format.Bucket(key, count)---------+--> bucket --Shuffle--> channel
//
// TableKeys chooses the encoders of a table. The count always is that of the very partition the row goes to: a
// partition keeps the count it was created with, whatever becomes of the table's default, so each function that needs
// a count takes it as an argument and none takes a table.
//
// # Compatibility
//
// The byte layouts, hashes, names and channels are those of Apache Fluss and of the lake formats it writes to, bit for
// bit; rows are found again only because both sides agree. They are frozen. The vectors in testdata/vectors come from
// running the original implementation, and every row about keys, buckets, partition values and channels is a test here.
// Four things differ on purpose:
//
//   - A Hudi bucket key of FLOAT or DOUBLE is refused, because its bytes depend on the version of the JVM.
//   - A partition name whose hash is the smallest int32 gets a channel in range instead of a negative one.
//   - A bucket count below one is an error in every format, not a division by zero or a negative bucket.
//   - Values two readers would not agree on are refused: text that is not UTF-8, times outside the day, nanoseconds
//     outside the millisecond, decimals of more digits than their column.
//
// # Fluss and Lance keys ("compacted")
//
// The columns follow each other without header or null bits; a null is an error.
//
//	BOOLEAN, TINYINT          1 byte
//	SMALLINT                  2 bytes, little-endian
//	INT, DATE, TIME           unsigned LEB128 of the 32-bit pattern, 1..5 bytes
//	BIGINT                    unsigned LEB128 of the 64-bit pattern, 1..10 bytes
//	FLOAT, DOUBLE             4 or 8 bytes, little-endian, of the raw bits
//	CHAR, STRING              LEB128 length in bytes, UTF-8; CHAR is not padded
//	BINARY, BYTES             LEB128 length, bytes
//	DECIMAL to 18 digits      LEB128 of the unscaled 64-bit pattern
//	DECIMAL above             LEB128 length, shortest big-endian two's complement of the unscaled value
//	TIMESTAMP(_LTZ) to 3      LEB128 of the milliseconds
//	TIMESTAMP(_LTZ) above     LEB128 of the milliseconds, LEB128 of the nanoseconds above them
//
// # Paimon keys
//
// A BinaryRow without its arity, little-endian, with zeros wherever nothing is said:
//
//	+----------+------------------------+---------------------+------------------------+
//	| row kind | null bits, to 8n bytes | 8-byte slot, column | variable part          |
//	| 1 byte=0 | bit i+8 for column i   | by column           | in units of 8 bytes    |
//	+----------+------------------------+---------------------+------------------------+
//	slot of a number:                 the number, from byte 0
//	slot of up to 7 bytes of text:    the bytes, from byte 0; byte 7 = 0x80 | length
//	slot of anything longer:          offset from the start of the row << 32 | length
//	slot of DECIMAL above 18:         the same; 16 bytes are reserved, shortest big-endian two's complement in front
//	slot of TIMESTAMP(_LTZ) above 3:  offset << 32 | nanoseconds; 8 bytes of milliseconds at the offset
//
// A null sets its bit and leaves the slot zero. In a NOT NULL column it is an error, except that wide decimals and
// timestamps set the bit and still reserve their room, as the original does.
//
// # Iceberg keys
//
// One column, the bytes that Iceberg's bucket transform hashes: INT, DATE and BIGINT as a little-endian int64, TIME and
// TIMESTAMP as int64 microseconds, FLOAT and DOUBLE as raw bits of their own width, DECIMAL as shortest big-endian
// two's complement, text and bytes as they are.
//
// # Hudi keys
//
// Four bytes: the big-endian int32 that Java's List<String>.hashCode gives for the texts of the columns, h = 31*h +
// hash(text) from h = 1. A null is the text "__null__" as the only column and hash 0 among several. It is a hash, hence
// a bucket key but never a primary key.
//
// # Sources of the formulas
//
// Murmur3 is Austin Appleby's, with the tail of Fluss and Paimon described at murmur42. The Iceberg transform is in
// the appendix on hashing of the Iceberg table specification, BinaryRow in the Paimon file format documentation,
// String.hashCode, List.hashCode and the toString forms in the Java API documentation. Days become dates by counting in
// eras of 400 years from March. What no document says was read off the outputs of the original.
package routing
