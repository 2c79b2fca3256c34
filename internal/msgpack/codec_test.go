package msgpack_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/internal/msgpack"
)

// field makes a case that has the same meaning in both directions.
func field[T any](v T, each func(*msgpack.Codec, *T)) func(*testing.T, string) {
	return func(t *testing.T, wire string) {
		t.Helper()
		enc := msgpack.NewEncoder([]byte("head"))
		each(enc, &v)
		if err := enc.Finish(); err != nil {
			t.Fatalf("encode %v: %v", v, err)
		}
		if got := hex.EncodeToString(enc.Bytes()[4:]); got != wire {
			t.Errorf("encode %v = %s, want %s", v, got, wire)
		}
		var back T
		dec := msgpack.NewDecoder(mustHex(t, wire))
		each(dec, &back)
		if err := dec.Finish(); err != nil {
			t.Fatalf("decode %s: %v", wire, err)
		}
		if diff := cmp.Diff(v, back); diff != "" {
			t.Errorf("decode %s (-want +got):\n%s", wire, diff)
		}
		if dec.Values() != 1 || enc.Values() != 1 || dec.Offset() != enc.Offset() {
			t.Errorf("values %d and %d, offsets %d and %d", enc.Values(), dec.Values(), enc.Offset(), dec.Offset())
		}
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatalf("hex %q: %v", s, err)
	}
	return b
}

// Every value has the encoding the MessagePack specification gives as shortest.
func TestCodec_WireForm(t *testing.T) {
	u64, i64 := msgpack.Uint[uint64], msgpack.Int[int64]
	text, blob := msgpack.Str[string], (*msgpack.Codec).Blob
	pairs := func(c *msgpack.Codec, v *[]bool) { msgpack.Slice(c, v, math.MaxInt, (*msgpack.Codec).Bool) }
	for _, tc := range []struct {
		name, wire string
		check      func(*testing.T, string)
	}{
		{"false", "c2", field(false, (*msgpack.Codec).Bool)},
		{"true", "c3", field(true, (*msgpack.Codec).Bool)},
		{"uint 0", "00", field(uint64(0), u64)},
		{"uint 127", "7f", field(uint64(127), u64)},
		{"uint 128", "cc80", field(uint64(128), u64)},
		{"uint 255", "ccff", field(uint64(255), u64)},
		{"uint 256", "cd0100", field(uint64(256), u64)},
		{"uint 65535", "cdffff", field(uint64(65535), u64)},
		{"uint 65536", "ce00010000", field(uint64(65536), u64)},
		{"uint max 32", "ceffffffff", field(uint64(math.MaxUint32), u64)},
		{"uint above 32", "cf0000000100000000", field(uint64(1<<32), u64)},
		{"uint max 64", "cfffffffffffffffff", field(uint64(math.MaxUint64), u64)},
		{"uint8 max", "ccff", field(uint8(255), (*msgpack.Codec).Uint8)},
		{"uint32 max", "ceffffffff", field(uint32(math.MaxUint32), (*msgpack.Codec).Uint32)},
		{"int 1", "01", field(int64(1), i64)},
		{"int -1", "ff", field(int64(-1), i64)},
		{"int -32", "e0", field(int64(-32), i64)},
		{"int -33", "d0df", field(int64(-33), i64)},
		{"int -128", "d080", field(int64(-128), i64)},
		{"int -129", "d1ff7f", field(int64(-129), i64)},
		{"int -32768", "d18000", field(int64(-32768), i64)},
		{"int -32769", "d2ffff7fff", field(int64(-32769), i64)},
		{"int min 32", "d280000000", field(int32(math.MinInt32), (*msgpack.Codec).Int32)},
		{"int below 32", "d3ffffffff7fffffff", field(int64(math.MinInt32-1), i64)},
		{"int min 64", "d38000000000000000", field(int64(math.MinInt64), i64)},
		{"int max 64", "cf7fffffffffffffff", field(int64(math.MaxInt64), i64)},
		{"string 0", "a0", field("", text)},
		{"string 31", "bf" + strings.Repeat("61", 31), field(strings.Repeat("a", 31), text)},
		{"string 32", "d920" + strings.Repeat("61", 32), field(strings.Repeat("a", 32), text)},
		{"string 256", "da0100" + strings.Repeat("61", 256), field(strings.Repeat("a", 256), text)},
		{"string 65536", "db00010000" + strings.Repeat("61", 65536), field(strings.Repeat("a", 65536), text)},
		{"string utf8", "a6c3a4e282ac31", field("ä€1", text)},
		{"bytes 0", "c400", field([]byte(nil), blob)},
		{"bytes 255", "c4ff" + strings.Repeat("07", 255), field(bytes.Repeat([]byte{7}, 255), blob)},
		{"bytes 256", "c50100" + strings.Repeat("07", 256), field(bytes.Repeat([]byte{7}, 256), blob)},
		{"bytes 65536", "c600010000" + strings.Repeat("07", 65536), field(bytes.Repeat([]byte{7}, 65536), blob)},
		{"array 0", "90", field([]bool(nil), pairs)},
		{"array 15", "9f" + strings.Repeat("c3", 15), field(trues(15), pairs)},
		{"array 16", "dc0010" + strings.Repeat("c3", 16), field(trues(16), pairs)},
		{"array 65535", "dcffff" + strings.Repeat("c3", 65535), field(trues(65535), pairs)},
		{"array 65536", "dd00010000" + strings.Repeat("c3", 65536), field(trues(65536), pairs)},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.check(t, tc.wire) })
	}
}

func trues(n int) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = true
	}
	return out
}

// Whatever has another encoding, another type or another length is refused,
// and the error names the place.
func TestCodec_Decode_Refuses(t *testing.T) {
	u64 := func(c *msgpack.Codec) { c.Uint64(new(uint64)) }
	u8 := func(c *msgpack.Codec) { c.Uint8(new(uint8)) }
	i64 := func(c *msgpack.Codec) { c.Int64(new(int64)) }
	i32 := func(c *msgpack.Codec) { c.Int32(new(int32)) }
	str := func(c *msgpack.Codec) { c.String(new(string)) }
	bin := func(c *msgpack.Codec) { c.Blob(new([]byte)) }
	flag := func(c *msgpack.Codec) { c.Bool(new(bool)) }
	pair := func(c *msgpack.Codec) { c.Record(2); c.Bool(new(bool)); c.Bool(new(bool)) }
	many := func(c *msgpack.Codec) { msgpack.Slice(c, new([]bool), 40, (*msgpack.Codec).Bool) }
	for _, tc := range []struct {
		name, wire string
		read       func(*msgpack.Codec)
		want       error
		text       string
	}{
		{"empty", "", u64, msgpack.ErrTruncated, "offset 0: input ends early: want unsigned integer, got end of input"},
		{"uint8 form of 127", "cc7f", u64, msgpack.ErrNotMinimal, "127 in 1 bytes"},
		{"uint16 form of 255", "cd00ff", u64, msgpack.ErrNotMinimal, "255 in 2 bytes"},
		{"uint32 form of 65535", "ce0000ffff", u64, msgpack.ErrNotMinimal, "65535 in 4 bytes"},
		{"uint64 form of max 32", "cf00000000ffffffff", u64, msgpack.ErrNotMinimal, "in 8 bytes"},
		{"signed form of 5", "d005", i64, msgpack.ErrNotMinimal, "5 in 1 signed bytes"},
		{"int8 form of -32", "d0e0", i64, msgpack.ErrNotMinimal, "-32 in 1 signed"},
		{"int16 form of -128", "d1ff80", i64, msgpack.ErrNotMinimal, "-128 in 2 signed"},
		{"int32 form of -32768", "d2ffff8000", i64, msgpack.ErrNotMinimal, "-32768 in 4 signed"},
		{"int64 form of min 32", "d3ffffffff80000000", i64, msgpack.ErrNotMinimal, "in 8 signed"},
		{"int64 form of max", "d37fffffffffffffff", i64, msgpack.ErrNotMinimal, "in 8 signed"},
		{"cut uint64", "cf00000000ffffff", u64, msgpack.ErrTruncated, "end of input"},
		{"cut int16", "d1ff", i64, msgpack.ErrTruncated, "want integer, got end of input"},
		{"negative for unsigned", "ff", u64, msgpack.ErrRange, "want unsigned integer, got signed integer"},
		{"too big for int64", "cf8000000000000000", i64, msgpack.ErrRange, "9223372036854775808"},
		{"too big for int32", "ce80000000", i32, msgpack.ErrRange, "want int32, got 2147483648"},
		{"too small for int32", "d3ffffffff7fffffff", i32, msgpack.ErrRange, "want int32, got -2147483649"},
		{"too big for uint8", "cd0100", u8, msgpack.ErrRange, "want uint8, got 256"},
		{"float", "ca00000000", u64, msgpack.ErrType, "got float"},
		{"double", "cb0000000000000000", i64, msgpack.ErrType, "got float"},
		{"ext", "d40101", bin, msgpack.ErrType, "want bytes, got extension"},
		{"ext8", "c70001", bin, msgpack.ErrType, "want bytes, got extension"},
		{"map", "80", many, msgpack.ErrType, "want array, got map"},
		{"map16", "de0000", many, msgpack.ErrType, "want array, got map"},
		{"reserved", "c1", flag, msgpack.ErrType, "reserved byte c1"},
		{"string for bytes", "a161", bin, msgpack.ErrType, "want bytes, got string"},
		{"bytes for string", "c40161", str, msgpack.ErrType, "want string, got bytes"},
		{"integer for bool", "01", flag, msgpack.ErrType, "want bool, got integer"},
		{"nil for bool", "c0", flag, msgpack.ErrType, "want bool, got nil"},
		{"bool for string", "c3", str, msgpack.ErrType, "want string, got bool"},
		{"array for string", "90", str, msgpack.ErrType, "want string, got array"},
		{"str8 form of 31", "d91f" + strings.Repeat("61", 31), str, msgpack.ErrNotMinimal, "length 31 in 1 bytes"},
		{"str16 form of 255", "da00ff" + strings.Repeat("61", 255), str, msgpack.ErrNotMinimal, "length 255 in 2 bytes"},
		{"str32 form of 65535", "db0000ffff", str, msgpack.ErrNotMinimal, "length 65535 in 4 bytes"},
		{"bin16 form of 1", "c5000161", bin, msgpack.ErrNotMinimal, "length 1 in 2 bytes"},
		{"bin32 form of 0", "c600000000", bin, msgpack.ErrNotMinimal, "length 0 in 4 bytes"},
		{"array16 form of 15", "dc000f" + strings.Repeat("c3", 15), many, msgpack.ErrNotMinimal, "length 15 in 2 bytes"},
		{"array32 form of 16", "dd00000010" + strings.Repeat("c3", 16), many, msgpack.ErrNotMinimal, "length 16 in 4 bytes"},
		{"cut string", "a36161", str, msgpack.ErrTruncated, "want string of 3 bytes, got 2 bytes left"},
		{"cut bytes", "c6ffffffff", bin, msgpack.ErrTruncated, "want bytes of 4294967295"},
		{"invalid utf8", "a2c328", str, msgpack.ErrInvalidUTF8, "offset 0"},
		{"utf8 surrogate", "a3eda080", str, msgpack.ErrInvalidUTF8, "offset 0"},
		{"record too short", "91c3", pair, msgpack.ErrRange, "want array of 2, got array of 1"},
		{"record too long", "93c3c3c3", pair, msgpack.ErrRange, "want array of 2, got array of 3"},
		{"second field", "92c301", pair, msgpack.ErrType, "offset 2: wrong type: want bool, got integer"},
		{"array above its bound", "dc0029" + strings.Repeat("c3", 41), many, msgpack.ErrRange, "want array of 0 to 40, got array of 41"},
		{"array above the input", "9fc3c3", many, msgpack.ErrTruncated, "want array of 15, got 2 bytes left"},
		{"array of 2^31", "dd80000000", many, msgpack.ErrTruncated, "want array of 2147483648"},
		{"trailing bytes", "c3c3", flag, msgpack.ErrTrailing, "offset 1: trailing bytes: want end, got 1 more bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := msgpack.NewDecoder(mustHex(t, tc.wire))
			tc.read(c)
			wantError(t, c.Finish(), tc.want, tc.text)
		})
	}
}

func wantError(t *testing.T, err, want error, text string) {
	t.Helper()
	var typed *msgpack.Error
	if !errors.Is(err, want) || !errors.As(err, &typed) || !strings.Contains(err.Error(), text) {
		t.Fatalf("error %v, want %v with %q", err, want, text)
	}
}

// An encoder refuses what its decoder would refuse.
func TestCodec_Encode_Refuses(t *testing.T) {
	bad, list, unset, set := "\xff", []bool{true, false}, false, true
	for _, tc := range []struct {
		name  string
		write func(*msgpack.Codec)
		want  error
		text  string
	}{
		{"invalid utf8", func(c *msgpack.Codec) { c.String(&bad) }, msgpack.ErrInvalidUTF8, `"\xff"`},
		{"slice above its bound", func(c *msgpack.Codec) { msgpack.Slice(c, &list, 1, (*msgpack.Codec).Bool) }, msgpack.ErrRange, "want array of 0 to 1, got array of 2"},
		{"negative length", func(c *msgpack.Codec) { n := -1; c.ArrayLen(&n, -5, 5) }, msgpack.ErrRange, "array of -1"},
		{"missing field", func(c *msgpack.Codec) { c.Record(2); c.Bool(&set) }, msgpack.ErrIncomplete, "1 more elements"},
		{"optional of nil", func(c *msgpack.Codec) {
			msgpack.Optional(c, &set, &unset, func(c *msgpack.Codec, b *bool) { msgpack.Optional(c, &unset, b, (*msgpack.Codec).Bool) })
		}, msgpack.ErrNestedNil, "offset 0"},
		{"optional of nothing", func(c *msgpack.Codec) {
			msgpack.Optional(c, &set, &unset, func(*msgpack.Codec, *bool) {})
		}, msgpack.ErrNestedNil, "offset 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := msgpack.NewEncoder(nil)
			tc.write(c)
			wantError(t, c.Finish(), tc.want, tc.text)
		})
	}
}

// The first error stays, later calls touch neither the buffer nor the values.
func TestCodec_StickyError(t *testing.T) {
	cause := errors.New("unknown kind 9")
	c := msgpack.NewDecoder(mustHex(t, "01 02 03"))
	n, m := uint64(0), uint64(77)
	c.Uint64(&n)
	c.Fail(nil)
	c.Fail(cause)
	c.Fail(errors.New("later"))
	c.Uint64(&m)
	flag, text, list := true, "kept", []string{"kept"}
	c.Bool(&flag)
	c.String(&text)
	msgpack.Slice(c, &list, 3, (*msgpack.Codec).String)
	msgpack.Optional(c, &flag, &text, (*msgpack.Codec).String)
	if !errors.Is(c.Err(), cause) || c.Err().Error() != "msgpack offset 1: unknown kind 9" {
		t.Errorf("error %v", c.Err())
	}
	if n != 1 || m != 77 || !flag || text != "kept" || len(list) != 1 || c.Offset() != 1 {
		t.Errorf("values after the error: %d %d %v %q %v at %d", n, m, flag, text, list, c.Offset())
	}
	c.Reset([]byte{5})
	if c.Uint64(&m); c.Finish() != nil || m != 5 || !c.Decoding() {
		t.Errorf("after Reset: %d, %v", m, c.Err())
	}
}

// Optional clears the value when it is unset.
func TestOptional_Unset(t *testing.T) {
	c := msgpack.NewDecoder([]byte{0xc0})
	set, v := true, int64(9)
	msgpack.Optional(c, &set, &v, (*msgpack.Codec).Int64)
	if err := c.Finish(); err != nil || set || v != 0 || c.Values() != 1 {
		t.Errorf("set %v, value %d, error %v", set, v, err)
	}
}

// A hostile length costs no more memory than the input that carries it.
func TestSlice_HostileLength(t *testing.T) {
	type wide [1 << 10]uint64
	data := append([]byte{0xdd, 0, 0x10, 0, 0}, make([]byte, 1<<20)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := msgpack.NewDecoder(data)
	msgpack.Slice(c, new([]wide), math.MaxInt, func(c *msgpack.Codec, _ *wide) { c.Bool(new(bool)) })
	runtime.ReadMemStats(&after)
	wantError(t, c.Err(), msgpack.ErrType, "offset 5")
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(4<<20); got > limit {
		t.Errorf("%d bytes for an array whose first element is wrong, limit %d", got, limit)
	}
}

// Whatever is encoded decodes to the same value, and decoded values do not
// alias the input.
func TestCodec_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawOrder(t)
		enc := msgpack.NewEncoder(nil)
		orderFields(enc, &in)
		if err := enc.Finish(); err != nil || enc.Values() != 1 {
			t.Fatalf("encode: %v, %d values", err, enc.Values())
		}
		var out order
		dec := msgpack.NewDecoder(enc.Bytes())
		orderFields(dec, &out)
		if err := dec.Finish(); err != nil || dec.Values() != 1 {
			t.Fatalf("decode: %v, %d values", err, dec.Values())
		}
		clear(enc.Bytes())
		if diff := cmp.Diff(in, out); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

// Every prefix of a record and every single flipped bit is either refused or a
// different record with its own canonical bytes.
func TestCodec_CutsAndFlips(t *testing.T) {
	in := sampleOrder()
	enc := msgpack.NewEncoder(nil)
	orderFields(enc, &in)
	good := enc.Bytes()
	for n := range good {
		if _, err := decodeOrder(good[:n]); err == nil {
			t.Errorf("prefix of %d bytes accepted", n)
		}
	}
	for bit := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		checkCanonical(t, bad)
	}
}

func decodeOrder(data []byte) (order, error) {
	var o order
	c := msgpack.NewDecoder(data)
	orderFields(c, &o)
	return o, c.Finish()
}

// checkCanonical fails when data decodes but does not re-encode to itself, or
// when what it decoded to changes with data.
func checkCanonical(t *testing.T, data []byte) {
	t.Helper()
	want := bytes.Clone(data)
	o, err := decodeOrder(data)
	if err != nil {
		return
	}
	for i := range data {
		data[i] = 0xa5
	}
	enc := msgpack.NewEncoder(nil)
	orderFields(enc, &o)
	if err := enc.Finish(); err != nil {
		t.Fatalf("decoded %x and cannot encode it: %v", want, err)
	}
	if !bytes.Equal(enc.Bytes(), want) {
		t.Fatalf("decoded %x, encoded %x", want, enc.Bytes())
	}
}

// Whatever decodes is canonical: it encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	for _, o := range []order{{}, sampleOrder()} {
		enc := msgpack.NewEncoder(nil)
		orderFields(enc, &o)
		f.Add(enc.Bytes())
	}
	f.Add([]byte{0x9c, 0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) { checkCanonical(t, bytes.Clone(data)) })
}

// Repeated decodes like String, refuses what String refuses, and gives the same
// text again without allocating.
func TestRepeated(t *testing.T) {
	enc := msgpack.NewEncoder(nil)
	text := "shop.orders"
	enc.Repeated(&text)
	data := enc.Bytes()
	d := msgpack.NewDecoder(data)
	var got string
	d.Repeated(&got)
	if err := d.Finish(); err != nil || got != text {
		t.Fatalf("got %q, %v", got, err)
	}
	if n := testing.AllocsPerRun(100, func() {
		d.Reset(data)
		d.Repeated(&got)
	}); n != 0 || got != text || d.Finish() != nil {
		t.Errorf("again: %v allocations, %q", n, got)
	}
	for i := range data {
		bad := append([]byte(nil), data...)
		bad[i] = 0xFF
		var a, b string
		d.Reset(bad)
		d.Repeated(&a)
		plain := msgpack.NewDecoder(bad)
		plain.String(&b)
		if a != b || (d.Finish() == nil) != (plain.Finish() == nil) {
			t.Errorf("byte %d: Repeated %q %v, String %q %v", i, a, d.Err(), b, plain.Err())
		}
	}
}
