// Package msgpack is the strict, canonical MessagePack subset every byte
// format of this module is made of: log entry bodies and snapshot records.
//
// One value has exactly one encoding, so equal states are equal bytes and a
// decoder can refuse everything else:
//
//	nil      c0
//	bool     c2 | c3
//	integer  the shortest form; values >= 0 always in an unsigned form
//	         00-7f | cc u8 | cd u16 | ce u32 | cf u64
//	         e0-ff | d0 i8 | d1 i16 | d2 i32 | d3 i64   (negative only)
//	string   a0-bf | d9 u8 | da u16 | db u32, shortest, valid UTF-8
//	bytes    c4 u8 | c5 u16 | c6 u32, shortest
//	array    90-9f | dc u16 | dd u32, shortest
//
// Floats, extensions and maps do not exist. A record is an array of a fixed
// number of fields; there are no field names, so renaming a Go field changes
// no byte, and a new field is a new version of the record.
//
// The codec is bidirectional: one function states the fields of a record once
// and serves for encoding and decoding, which can therefore not drift apart.
//
//	func order(c *msgpack.Codec, o *Order) {
//		c.Record(3)
//		msgpack.Uint(c, &o.ID) // a named type
//		c.String(&o.Customer)
//		msgpack.Slice(c, &o.Lines, maxLines, line)
//	}
//
// Errors are sticky: after the first one every call does nothing, so a record
// function needs no checks. It must not loop on a decoded count without
// looking at Err; Slice takes care of that.
package msgpack
