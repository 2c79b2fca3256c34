package routing

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stavedb/stave/catalog"
)

// S24: the partition value of every vector, and whether it may be used in a name.
func TestS24_PartitionValueVectors(t *testing.T) {
	type row struct {
		Type     string          `json:"type"`
		Value    json.RawMessage `json:"value"`
		Text     string          `json:"partition_value"`
		Invalid  *string         `json:"invalid_reason"`
		Reserved bool            `json:"reserved_prefix"`
	}
	for _, r := range readVectors[row](t, "partition_values.json", 58).Rows {
		c := Column{Name: "dt", Type: mustType(t, r.Type)}
		v := vectorValue(t, c.Type, r.Value)
		text, err := PartitionValue(c, v)
		if err != nil || text != r.Text {
			t.Errorf("%s %#v: %q, %v, want %q", r.Type, v, text, err, r.Text)
		}
		err = catalog.CheckPartitionValue(text, false)
		if r.Invalid == nil {
			wantError(t, err, nil)
		} else if wantError(t, err, catalog.ErrPartitionSpecInvalid) && !strings.HasSuffix(err.Error(), *r.Invalid) {
			t.Errorf("error %q does not say %q", err, *r.Invalid)
		}
		if refused := catalog.CheckPartitionValue(text, true) != nil; refused != (r.Invalid != nil || r.Reserved) {
			t.Errorf("create %q: refused %v", text, refused)
		}
		n, err := NewPartitionNamer([]Column{c})
		if err != nil {
			t.Fatal(err)
		}
		name, err := n.Name([]Value{v})
		if r.Invalid == nil && (err != nil || name != text) || r.Invalid != nil && err == nil {
			t.Errorf("name %q, %v of %q", name, err, text)
		}
	}
}

// S24: the literal examples, and an empty BYTES value that no name can hold.
func TestS24_PartitionValueLiterals(t *testing.T) {
	tests := []struct {
		name  string
		typ   string
		value Value
		want  string
	}{
		{"date", "DATE", Date(19727), "2024-01-05"},
		{"time", "TIME(3)", TimeOfDay(12_345_678), "03-25-45_678"},
		{"bytes", "BYTES", Bytes([]byte{0x10, 0x20, 0x30, 0x40, 0x50, 0xff}), "1020304050ff"},
		{"float", "FLOAT", Float(5.73), "5_73"},
		{"float exponent", "FLOAT", Float(1e10), "1_0E10"},
		{"nan", "DOUBLE", Double(math.NaN()), "NaN"},
		{"whole second", "TIMESTAMP(6)", Timestamp(1748662955000, 0), "2025-05-31-03-42-35_"},
		{"fraction", "TIMESTAMP_LTZ(3)", TimestampLTZ(1748662955400, 0), "2025-05-31-03-42-35_4"},
		{"year 10000", "TIMESTAMP(0)", Timestamp(253402300800000, 0), "+10000-01-01-00-00-00_"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := PartitionValue(Column{Name: "k", Type: mustType(t, tt.typ)}, tt.value)
			if err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
	n, err := NewPartitionNamer([]Column{{Name: "k", Type: Type{Kind: KindBytes}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Name([]Value{Bytes(nil)})
	wantError(t, err, ErrPartitionValue)
}

// Values are joined in key order; a null, a wrong kind or a separator within a value gives no name at all, since
// (a$b, c) and (a, b$c) would share it.
func TestPartitionNamer_Append(t *testing.T) {
	n, err := NewPartitionNamer([]Column{
		{Name: "region", Type: Type{Kind: KindString}}, {Name: "hour", Type: Type{Kind: KindInt}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		row  []Value
		want string
		err  error
	}{
		{"two keys", []Value{String("us-east"), Int(7)}, "us-east$7", nil},
		{"reserved", []Value{String("__historical__"), Int(-7)}, "__historical__$-7", nil},
		{"null", []Value{String("a"), Null()}, "", ErrNullKey},
		{"kind", []Value{String("a"), BigInt(1)}, "", ErrValueKind},
		{"separator", []Value{String("a$b"), Int(1)}, "", ErrPartitionValue},
		{"dots", []Value{String(".."), Int(1)}, "", ErrPartitionValue},
		{"long", []Value{String(strings.Repeat("a", 201)), Int(1)}, "", ErrPartitionValue},
		{"arity", []Value{String("a")}, "", ErrArity},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := n.Append([]byte("p:"), tt.row)
			if !wantError(t, err, tt.err) || string(got) != "p:"+tt.want {
				t.Errorf("name %q, want %q", got, tt.want)
			}
		})
	}
	_, err = NewPartitionNamer([]Column{{Name: "d", Type: Type{Kind: KindDecimal, Precision: 5}}})
	wantError(t, err, ErrUnsupportedType)
	_, err = NewPartitionNamer(nil)
	wantError(t, err, ErrKeyColumns)
}

// A partial spec selects by the values of its own keys; a foreign key is an error instead of an empty selection.
func TestPartitionMatches(t *testing.T) {
	spec := func(kv ...string) (s catalog.PartitionSpec) {
		for i := 0; i < len(kv); i += 2 {
			s = append(s, catalog.Property{Key: kv[i], Value: kv[i+1]})
		}
		return s
	}
	for _, tt := range []struct {
		name    string
		partial catalog.PartitionSpec
		want    bool
		err     error
	}{
		{"2025$11", nil, true, nil},
		{"2025$11", spec("pt", "2025"), true, nil},
		{"2025$11", spec("hour", "11", "pt", "2025"), true, nil},
		{"2025$11", spec("hour", "1"), false, nil},
		{"2025", spec("hour", "1"), false, nil},
		{"2025$11", spec("pt1", "2025"), false, catalog.ErrPartitionSpecInvalid},
	} {
		got, err := PartitionMatches([]string{"pt", "hour"}, tt.name, tt.partial)
		if !wantError(t, err, tt.err) || got != tt.want {
			t.Errorf("%v of %s: %v, want %v", tt.partial, tt.name, got, tt.want)
		}
	}
}

// A value that has no partition text says which column and why.
func TestPartitionValue_Refusals(t *testing.T) {
	tests := []struct {
		name  string
		typ   string
		value Value
		want  error
	}{
		{"decimal", "DECIMAL(5, 2)", Decimal(1), ErrUnsupportedType},
		{"array", "ARRAY<INT>", Null(), ErrUnsupportedType},
		{"null", "DATE", Null(), ErrNullKey},
		{"kind", "DATE", Int(1), ErrValueKind},
		{"range", "TIME", TimeOfDay(-1), ErrValueRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := PartitionValue(Column{Name: "dt", Type: mustType(t, tt.typ)}, tt.value)
			if wantError(t, err, tt.want) && (text != "" || !strings.Contains(err.Error(), `partition key column "dt"`)) {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
