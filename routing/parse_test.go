package routing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/catalog"
)

// A stored column's type keeps root, parameters and nullability, and prints as the catalog stores it.
func TestParseType(t *testing.T) {
	tests := []struct {
		text string
		want Type
		form string
	}{
		{"INT", Type{Kind: KindInt}, "INT"},
		{" integer ", Type{Kind: KindInt}, "INT"},
		{"int not  null", Type{Kind: KindInt, NotNull: true}, "INT NOT NULL"},
		{"CHAR", Type{Kind: KindChar, Length: 1}, "CHAR(1)"},
		{"BINARY(2147483647)", Type{Kind: KindBinary, Length: 2147483647}, "BINARY(2147483647)"},
		{"DECIMAL", Type{Kind: KindDecimal, Precision: 10}, "DECIMAL(10,0)"},
		{"decimal(38,38)", Type{Kind: KindDecimal, Precision: 38, Scale: 38}, "DECIMAL(38,38)"},
		{"TIME", Type{Kind: KindTime}, "TIME(0)"},
		{"TIMESTAMP", Type{Kind: KindTimestamp, Precision: 6}, "TIMESTAMP(6)"},
		{"TIMESTAMP_NTZ(3)", Type{Kind: KindTimestamp, Precision: 3}, "TIMESTAMP(3)"},
		{"Timestamp_Ltz(9)", Type{Kind: KindTimestampLTZ, Precision: 9}, "TIMESTAMP_LTZ(9)"},
		{"ARRAY<DECIMAL(5,2)>", Type{Kind: KindArray}, "ARRAY"},
		{"map<string,array<int>> not null", Type{Kind: KindMap, NotNull: true}, "MAP NOT NULL"},
		{"ROW<a INT, b CHAR(3) NOT NULL>", Type{Kind: KindRow}, "ROW"},
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
			stored, err := catalog.ParseDataType(tt.text)
			if err != nil || TypeOf(stored) != got || !got.Kind.nested() && string(stored) != got.String() {
				t.Errorf("stored as %q, which is %v, not %v: %v", stored, TypeOf(stored), got, err)
			}
		})
	}
	_, err := ParseType("DECIMAL(39,0)")
	wantError(t, err, ErrType)
	for root := catalog.BooleanType; root <= catalog.RowType; root++ {
		if kindOf[root].String() != root.String() {
			t.Errorf("%s is kind %s", root, kindOf[root])
		}
	}
	if got := TypeOf("nonsense"); got.Kind != KindNull {
		t.Errorf("nonsense has kind %s", got.Kind)
	}
}
