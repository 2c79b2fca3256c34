package routing

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// fuzzTypes are all kinds of key columns, with parameters around the bounds at which encodings change.
var fuzzTypes = []string{
	"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT NOT NULL", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(18, 18)",
	"DECIMAL(19, 0)", "DECIMAL(38, 10) NOT NULL", "CHAR(3)", "STRING", "STRING NOT NULL", "BINARY(3)", "BYTES", "DATE",
	"TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(4) NOT NULL", "TIMESTAMP_LTZ(0)", "TIMESTAMP_LTZ(9)",
}

// fuzzRow cuts data into columns and values of arbitrary, also impossible, content.
func fuzzRow(t *testing.T, data []byte) (cols []Column, row []Value) {
	t.Helper()
	for len(data) >= 19 && len(cols) < 80 {
		typ := mustType(t, fuzzTypes[int(data[0])%len(fuzzTypes)])
		v := Value{kind: typ.Kind.valueKind(), i: int64(binary.LittleEndian.Uint64(data[3:])), x: int64(binary.LittleEndian.Uint64(data[11:]))}
		switch data[1] % 8 {
		case 0:
			v = Null()
		case 1:
			v.kind = Kind(data[2])
		case 2, 3:
			v.i, v.x = int64(int16(v.i)), 0 // within the bounds of most types
		default:
			if v.kind == KindDecimal {
				v.x >>= 8 // about the size of 38 digits and below
			} else {
				v.x &= 0xfffff
			}
		}
		n := min(int(data[2])%24, len(data)-19)
		switch v.kind {
		case KindString:
			v = String(string(data[19 : 19+n]))
		case KindBytes:
			v = Bytes(data[19 : 19+n])
		default:
			n = 0
		}
		cols, row = append(cols, Column{Name: "c", Type: typ}), append(row, v)
		data = data[19+n:]
	}
	return cols, row
}

// No row makes an encoder or a namer panic, write into what was in the buffer, depend on it, or place a key outside
// its partition.
func FuzzKeyEncoder(f *testing.F) {
	seed := func(types ...byte) []byte {
		var b []byte
		for _, typ := range types {
			b = append(b, typ, 4, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 0, 0, 0, 0, 0, 0)
			if typ >= 11 && typ <= 15 {
				b = append(b, "text text"...)
			}
		}
		return b
	}
	all := make([]byte, len(fuzzTypes))
	for i := range all {
		all[i] = byte(i)
		f.Add(seed(byte(i)), int32(i+1))
	}
	f.Add(seed(all...), int32(16))
	f.Add(seed(12, 10, 19), int32(0))
	f.Fuzz(func(t *testing.T, data []byte, count int32) {
		cols, row := fuzzRow(t, data)
		for format := FormatFluss; format <= FormatLance; format++ {
			e, err := NewKeyEncoder(format, cols)
			if err != nil {
				continue
			}
			fuzzEncode(t, e, row, count)
		}
		n, err := NewPartitionNamer(cols)
		if err != nil {
			return
		}
		if name, err := n.Name(row); err == nil {
			values := strings.Split(name, "$")
			if len(values) != len(cols) {
				t.Errorf("name %q of %#v has %d values", name, row, len(values))
			}
			for _, v := range values {
				if err := catalog.CheckPartitionValue(v, false); err != nil {
					t.Errorf("name %q of %#v: %v", name, row, err)
				}
			}
		}
	})
}

func fuzzEncode(t *testing.T, e *KeyEncoder, row []Value, count int32) {
	t.Helper()
	plain, err := e.Append(nil, row)
	prefix := []byte("prefix")
	// The spare capacity is dirty, as that of a reused buffer is.
	dirty := bytes.Repeat([]byte{0xaa}, 512)
	behind, errBehind := e.Append(append(dirty[:0], prefix...), row)
	if (err == nil) != (errBehind == nil) || !bytes.HasPrefix(behind, prefix) || !bytes.Equal(behind[len(prefix):], plain) {
		t.Errorf("%s %#v: %x, %v alone and %x, %v behind a prefix", e.Format(), row, plain, err, behind, errBehind)
	}
	bucket, _, err := e.Bucket(nil, row, count)
	if err == nil && (bucket < 0 || bucket >= count) {
		t.Errorf("%s %#v of %d: bucket %d", e.Format(), row, count, bucket)
	}
}
