package routing

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os"
	"strconv"
	"testing"
)

// vectorFile is a file of conformance vectors, produced by running the original implementation.
type vectorFile[Row any] struct {
	NumBuckets []int32          `json:"num_buckets"`
	Rows       []Row            `json:"rows"`
	EdgeCases  []bucketEdgeCase `json:"edge_cases"`
}

// readVectors parses a file of vectors and checks that none of its rows went missing.
func readVectors[Row any](t *testing.T, name string, wantRows int) vectorFile[Row] {
	t.Helper()
	data, err := os.ReadFile("../testdata/vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file vectorFile[Row]
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(file.Rows) != wantRows {
		t.Fatalf("%s has %d rows, want %d", name, len(file.Rows), wantRows)
	}
	return file
}

func mustHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustType(t testing.TB, s string) Type {
	t.Helper()
	typ, err := ParseType(s)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// typedJSON is the object form of a value in the vectors.
type typedJSON struct {
	I64      *string `json:"i64"`
	F32      *string `json:"f32"`
	F64      *string `json:"f64"`
	Hex      *string `json:"hex"`
	Unscaled *string `json:"unscaled"`
	Millis   *string `json:"millis"`
	Nano     int32   `json:"nano_of_milli"`
	Java     string  `json:"java"`
}

func mustInt(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustBits(t testing.TB, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// vectorValue converts a value of the vectors to the kind its column holds.
func vectorValue(t testing.TB, typ Type, raw json.RawMessage) Value {
	t.Helper()
	if bytes.Equal(raw, []byte("null")) {
		return Null()
	}
	var obj typedJSON
	var num int64
	var text string
	var err error
	switch typ.Kind {
	case KindBoolean:
		return Boolean(string(raw) == "true")
	case KindTinyInt, KindSmallInt, KindInt, KindDate, KindTime:
		err = json.Unmarshal(raw, &num)
	case KindChar, KindString:
		err = json.Unmarshal(raw, &text)
	default:
		err = json.Unmarshal(raw, &obj)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", typ, raw, err)
	}
	switch typ.Kind {
	case KindTinyInt:
		return TinyInt(int8(num))
	case KindSmallInt:
		return SmallInt(int16(num))
	case KindInt:
		return Int(int32(num))
	case KindDate:
		return Date(int32(num))
	case KindTime:
		return TimeOfDay(int32(num))
	case KindChar, KindString:
		return String(text)
	case KindBigInt:
		return BigInt(mustInt(t, *obj.I64))
	case KindFloat:
		return Float(math.Float32frombits(uint32(mustBits(t, *obj.F32))))
	case KindDouble:
		return Double(math.Float64frombits(mustBits(t, *obj.F64)))
	case KindBinary, KindBytes:
		return Bytes(mustHex(t, *obj.Hex))
	case KindDecimal:
		n, ok := new(big.Int).SetString(*obj.Unscaled, 10)
		if !ok {
			t.Fatalf("decimal %s", *obj.Unscaled)
		}
		v, err := BigDecimal(n)
		if err != nil {
			t.Fatal(err)
		}
		return v
	case KindTimestamp:
		return Timestamp(mustInt(t, *obj.Millis), obj.Nano)
	case KindTimestampLTZ:
		return TimestampLTZ(mustInt(t, *obj.Millis), obj.Nano)
	default:
		t.Fatalf("no value for type %s", typ)
		return Value{}
	}
}

// wantError fails the test unless err is want, which may be nil.
func wantError(t *testing.T, err, want error) bool {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
		return false
	}
	return true
}
