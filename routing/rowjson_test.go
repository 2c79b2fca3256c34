package routing

import (
	"errors"
	"math"
	"testing"
)

// Each type reads its JSON form exactly and refuses what it would have to change.
func TestRowFromJSON_Values(t *testing.T) {
	for _, tt := range []struct {
		kind, text string
		want       Value
		err        error
	}{
		{"BOOLEAN", `true`, Boolean(true), nil},
		{"BOOLEAN", `"true"`, Value{}, ErrValueKind},
		{"TINYINT", `-128`, TinyInt(-128), nil},
		{"TINYINT", `128`, Value{}, ErrValueRange},
		{"INT", `2147483648`, Value{}, ErrValueRange},
		{"INT", `1.0`, Value{}, ErrValueKind},
		{"INT", `1e3`, Value{}, ErrValueKind},
		{"INT", `"1"`, Value{}, ErrValueKind},
		{"BIGINT", `9223372036854775807`, BigInt(math.MaxInt64), nil},
		{"BIGINT", `"9007199254740993"`, BigInt(9007199254740993), nil},
		{"BIGINT", `9223372036854775808`, Value{}, ErrValueRange},
		{"FLOAT", `0.1`, Float(0.1), nil},
		{"FLOAT", `1e39`, Value{}, ErrValueRange},
		{"DOUBLE", `"-Infinity"`, Double(math.Inf(-1)), nil},
		{"DOUBLE", `"1"`, Value{}, ErrValueKind},
		{"DECIMAL(5,2)", `14.2`, Decimal(1420), nil},
		{"DECIMAL(5,2)", `"-0.05"`, Decimal(-5), nil},
		{"DECIMAL(5,2)", `14.200`, Decimal(1420), nil},
		{"DECIMAL(5,2)", `14.201`, Value{}, ErrValueRange},
		{"DECIMAL(5,2)", `1000`, Value{}, ErrValueRange},
		{"DECIMAL(5,2)", `1e2`, Value{}, ErrValueKind},
		{"DECIMAL(5,2)", `"--1"`, Value{}, ErrValueKind},
		{"STRING", `"ü\u0041"`, String("üA"), nil},
		{"STRING", `1`, Value{}, ErrValueKind},
		{"BYTES", `"AQI="`, Bytes([]byte{1, 2}), nil},
		{"BYTES", `"x"`, Value{}, ErrValueKind},
		{"DATE", `"1969-12-31"`, Date(-1), nil},
		{"DATE", `"2023-02-29"`, Value{}, ErrValueKind},
		{"TIME(3)", `"03:25:45.678"`, TimeOfDay(12_345_678), nil},
		{"TIME(9)", `"03:25:45.6789"`, Value{}, ErrValueRange},
		{"TIMESTAMP(6)", `"1969-12-31T23:59:59.999999"`, Timestamp(-1, 999_000), nil},
		{"TIMESTAMP(3)", `"1970-01-01 00:00:00.0001"`, Value{}, ErrValueRange},
		{"TIMESTAMP(3)", `"1970-01-01T00:00:00Z"`, Value{}, ErrValueKind},
		{"TIMESTAMP_LTZ(3)", `"1970-01-01T01:00:00.5+01:00"`, TimestampLTZ(500, 0), nil},
		{"TIMESTAMP_LTZ(3)", `"1970-01-01T01:00:00"`, Value{}, ErrValueKind},
		{"ARRAY<INT>", `[1, {"a": 2}]`, Null(), nil},
		{"INT", `null`, Null(), nil},
		{"INT", `[1]`, Value{}, ErrValueKind},
	} {
		cols := []Column{{Name: "c", Type: mustType(t, tt.kind)}}
		row, err := RowFromJSON(cols, []byte(`{"c": `+tt.text+`}`))
		if !errors.Is(err, tt.err) || err == nil && !row[0].Equal(tt.want) {
			t.Errorf("%s %s: %#v, %v, want %#v, %v", tt.kind, tt.text, row, err, tt.want, tt.err)
		}
	}
}

// Only one whole object of known columns, each once, is a row; columns may come in any order or be absent.
func TestRowFromJSON_Objects(t *testing.T) {
	cols := []Column{{Name: "a", Type: mustType(t, "INT")}, {Name: "dt", Type: mustType(t, "STRING")}}
	row, err := RowFromJSON(cols, []byte(` {"dt":"x","a":1} `))
	if err != nil || !row[0].Equal(Int(1)) || !row[1].Equal(String("x")) {
		t.Errorf("%#v, %v", row, err)
	}
	if row, err = RowFromJSON(cols, []byte(`{}`)); err != nil || !row[0].IsNull() || len(row) != 2 {
		t.Errorf("%#v, %v", row, err)
	}
	for _, text := range []string{
		``, `1`, `[]`, `null`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1}x`, `{"a":1}{}`, `{"a":1,"a":1}`, `{"b":1}`, `{"A":1}`, "{\"dt\":\"\xff\"}", `{"a":1,}`,
	} {
		if row, err := RowFromJSON(cols, []byte(text)); !errors.Is(err, ErrRow) {
			t.Errorf("%s: %#v, %v", text, row, err)
		}
	}
	_, err = RowFromJSON(cols, []byte(`{"a":"x"}`))
	if want := `routing: value does not fit the column type: column "a" of type INT is "x": a whole number without fraction or exponent is wanted`; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// No text breaks the reader, and what it accepts has a value for each column.
func FuzzRowFromJSON(f *testing.F) {
	var cols []Column
	for _, k := range []string{"INT", "DECIMAL(38,10)", "TIMESTAMP(9)", "BYTES", "DOUBLE", "DATE", "STRING"} {
		cols = append(cols, Column{Name: string(rune('a' + len(cols))), Type: mustType(f, k)})
	}
	f.Add([]byte(`{"a":1,"b":-1.5,"c":"2024-01-05T03:25:45","d":"AQI=","e":1e9,"f":"2024-01-05","g":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		row, err := RowFromJSON(cols, data)
		if err == nil && len(row) != len(cols) {
			t.Fatalf("%d values", len(row))
		}
		for i := range row {
			if !row[i].IsNull() && (row[i].kind != cols[i].Type.Kind.valueKind() || row[i].fault(&cols[i].Type) != "") {
				t.Fatalf("column %d: %#v", i, row[i])
			}
		}
	})
}
