package routing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Types parse in any case and with any spacing, defaults are filled in, and the canonical form parses back.
func TestParseType(t *testing.T) {
	intType, stringType := Type{Kind: KindInt}, Type{Kind: KindString}
	tests := []struct {
		text string
		want Type
		form string
	}{
		{"INT", intType, "INT"},
		{" integer ", intType, "INT"},
		{"int not  null", Type{Kind: KindInt, NotNull: true}, "INT NOT NULL"},
		{"INT NULL", intType, "INT"},
		{"double precision", Type{Kind: KindDouble}, "DOUBLE"},
		{"CHAR", Type{Kind: KindChar, Length: 1}, "CHAR(1)"},
		{"char ( 12 )", Type{Kind: KindChar, Length: 12}, "CHAR(12)"},
		{"BINARY(2147483647)", Type{Kind: KindBinary, Length: 2147483647}, "BINARY(2147483647)"},
		{"DECIMAL", Type{Kind: KindDecimal, Precision: 10}, "DECIMAL(10, 0)"},
		{"DEC(5)", Type{Kind: KindDecimal, Precision: 5}, "DECIMAL(5, 0)"},
		{"numeric(38,38)", Type{Kind: KindDecimal, Precision: 38, Scale: 38}, "DECIMAL(38, 38)"},
		{"TIME", Type{Kind: KindTime}, "TIME(0)"},
		{"TIMESTAMP", Type{Kind: KindTimestamp, Precision: 6}, "TIMESTAMP(6)"},
		{"TIMESTAMP_NTZ(3)", Type{Kind: KindTimestamp, Precision: 3}, "TIMESTAMP(3)"},
		{"Timestamp_Ltz(9)", Type{Kind: KindTimestampLTZ, Precision: 9}, "TIMESTAMP_LTZ(9)"},
		{"TIMESTAMP(0) WITH LOCAL TIME ZONE NOT NULL", Type{Kind: KindTimestampLTZ, NotNull: true}, "TIMESTAMP_LTZ(0) NOT NULL"},
		{"TIMESTAMP WITHOUT TIME ZONE", Type{Kind: KindTimestamp, Precision: 6}, "TIMESTAMP(6)"},
		{"ARRAY<INT>", Type{Kind: KindArray, Elem: &intType}, "ARRAY<INT>"},
		{"map<string,array<int>> not null", Type{Kind: KindMap, NotNull: true, Key: &stringType, Elem: &Type{Kind: KindArray, Elem: &intType}}, "MAP<STRING, ARRAY<INT>> NOT NULL"},
		{"ROW<a INT, `b``c d` STRING>", Type{Kind: KindRow, Fields: []Field{{"a", intType}, {"b`c d", stringType}}}, "ROW<`a` INT, `b``c d` STRING>"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseType(tt.text)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Fatalf("%v, (-want +got):\n%s", err, diff)
			}
			if got.String() != tt.form {
				t.Errorf("form %q, want %q", got, tt.form)
			}
			back, err := ParseType(got.String())
			if diff := cmp.Diff(got, back); err != nil || diff != "" {
				t.Errorf("the form: %v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What is no type is refused, saying where and what is allowed.
func TestParseType_Refusals(t *testing.T) {
	tests := []struct{ text, says string }{
		{"", "a type name is missing"},
		{"VARCHAR(3)", `unknown type "VARCHAR"`},
		{"INT(3)", "unexpected"},
		{"INT NOT", "NOT without NULL"},
		{"CHAR(0)", "length 0 is not in 1..2147483647"},
		{"CHAR(2147483648)", "0..2147483647"},
		{"CHAR(-1)", "a number"},
		{"CHAR(1", "closing parenthesis"},
		{"CHAR(1,2)", "closing parenthesis"},
		{"CHAR()", "a number"},
		{"DECIMAL(0)", "precision 0 is not in 1..38"},
		{"DECIMAL(39, 0)", "precision 39 is not in 1..38"},
		{"DECIMAL(5, 6)", "scale 6 is not in 0..5"},
		{"TIME(10)", "precision 10 is not in 0..9"},
		{"TIMESTAMP WITH TIME ZONE", "LOCAL"},
		{"TIMESTAMP WITHOUT ZONE", "TIME ZONE is missing"},
		{"ARRAY", "ARRAY without <"},
		{"ARRAY<INT", "ARRAY without >"},
		{"MAP<INT>", "without a value type"},
		{"ROW<>", "a field name is missing"},
		{"ROW<`a INT>", "not closed"},
		{"INT x", `unexpected "x"`},
		{strings.Repeat("ARRAY<", 40) + "INT" + strings.Repeat(">", 40), "nested deeper than 32"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := ParseType(tt.text)
			if wantError(t, err, ErrType) && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not say %q", err, tt.says)
			}
		})
	}
}

// A text that parses has a form that parses to the same type, and has the same form again.
func FuzzParseType(f *testing.F) {
	for _, s := range []string{"INT NOT NULL", "DECIMAL(5, 2)", "MAP<STRING, ROW<a ARRAY<INT>, `b` TIME(3)>>", "TIMESTAMP(3) WITH LOCAL TIME ZONE"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		typ, err := ParseType(s)
		if err != nil {
			wantError(t, err, ErrType)
			return
		}
		back, err := ParseType(typ.String())
		if err != nil || !cmp.Equal(typ, back) {
			t.Errorf("%q has form %q, which parses to %v, %v", s, typ, back, err)
		}
	})
}
