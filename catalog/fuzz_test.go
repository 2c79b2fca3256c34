package catalog

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParseDataType: no input panics, and canonical text reads as itself.
func FuzzParseDataType(f *testing.F) {
	for _, s := range []string{
		"int", "DECIMAL ( 5 , 2 ) not null", "ARRAY<MAP<STRING, ROW<a INT, `b` BYTES NOT NULL>>>", "CHAR(2147483647)", "TIMESTAMP_LTZ(9) NULL", "INT\x00", "ROW<", "MAP<INT>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		typ, err := ParseDataType(in)
		if err != nil {
			return
		}
		for _, canonical := range []DataType{typ, typ.NotNull()} {
			if again, err := ParseDataType(string(canonical)); err != nil || again != canonical {
				t.Errorf("%q gives %q, which reads as %q, %v", in, canonical, again, err)
			}
		}
		if typ.Root() == InvalidType || typ.NotNull().Nullable() {
			t.Errorf("%q: root %v, nullable %v", typ, typ.Root(), typ.NotNull().Nullable())
		}
		if a, b := typ.Params(); a < 0 || b < 0 {
			t.Errorf("%q: params %d, %d", typ, a, b)
		}
	})
}

// FuzzSplitPath: what is accepted has two valid names and joins to the input.
func FuzzSplitPath(f *testing.F) {
	for _, s := range []string{"a.b", "a", "a.b.c", "__a.b", ".", "a.", "\xff.b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		d, n, err := splitPath(in)
		if err != nil {
			if err.Code != ErrInvalidDatabase && err.Code != ErrInvalidTable {
				t.Errorf("%q: code %v", in, err.Code)
			}
			return
		}
		table := &Table{Path: in}
		if d+"."+n != in || table.Database() != d || table.Name() != n || CheckDatabaseName(d) != nil || !utf8.ValidString(in) {
			t.Errorf("%q: %q and %q", in, d, n)
		}
	})
}

// FuzzTimeFormat: no format panics, and a valid one writes valid values.
func FuzzTimeFormat(f *testing.F) {
	for _, s := range []string{"yyyyMMdd", "yyyy-'Q'Q", "'", "''", "yyyy''MM", "'it''s'yyyy", "uuuuLLddHH", "é", "[yyyy]"} {
		f.Add(uint8(3), s)
	}
	f.Fuzz(func(t *testing.T, unit uint8, format string) {
		tokens, err := scanTimeFormat(format)
		if u := TimeUnit(unit % uint8(len(unitNames))); ValidateTimeFormat(u, format) == nil {
			if err != nil {
				t.Fatalf("%q is valid and does not scan: %v", format, err)
			}
			a, b := formatTokens(tokens, [5]int{2023, 1, 2, 3, 4}), formatTokens(tokens, [5]int{2024, 1, 2, 3, 4})
			if invalidIdentifier(a) != "" || len(a) != len(b) || a >= b {
				t.Errorf("format %q gives %q and %q", format, a, b)
			}
		}
	})
}

// FuzzPartitionName: an accepted name splits into the spec it was made from.
func FuzzPartitionName(f *testing.F) {
	f.Add("2025", "11", false, true)
	f.Add("__historical__", "a$b", true, false)
	f.Add("", "\xff", true, true)
	f.Fuzz(func(t *testing.T, a, b string, swap, create bool) {
		table := &Table{Path: "d.t", PartitionKeys: []string{"k1", "k2"}}
		spec := PartitionSpec{{"k1", a}, {"k2", b}}
		if swap {
			spec[0], spec[1] = spec[1], spec[0]
		}
		name, err := partitionName(table, spec, create)
		if err != nil {
			if err.Code != ErrPartitionSpecInvalid {
				t.Errorf("%q, %q: code %v", a, b, err.Code)
			}
			return
		}
		back := table.Spec(&Partition{Name: name})
		again, err := partitionName(table, back, create)
		if err != nil || again != name || back[0].Value != a || back[1].Value != b || strings.Count(name, "$") != 1 {
			t.Errorf("%q, %q give %q, which is %v, %v", a, b, name, back, err)
		}
	})
}
