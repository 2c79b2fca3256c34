package routing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Which encoder a primary key gets, by lake format, key-value format version and bucket key.
func TestPrimaryKeyFormat(t *testing.T) {
	tests := []struct {
		name    string
		lake    Format
		version int
		def     bool
		want    Format
		err     error
	}{
		{"no lake", FormatFluss, KVFormatV2, true, FormatFluss, nil},
		{"lance", FormatLance, KVFormatV1, false, FormatFluss, nil},
		{"hudi is never a primary key", FormatHudi, KVFormatV1, true, FormatFluss, nil},
		{"unset is version 1", FormatPaimon, 0, false, FormatPaimon, nil},
		{"version 1", FormatIceberg, KVFormatV1, false, FormatIceberg, nil},
		{"version 2, default bucket key", FormatPaimon, KVFormatV2, true, FormatPaimon, nil},
		{"version 2, own bucket key", FormatPaimon, KVFormatV2, false, FormatFluss, nil},
		{"version 3", FormatPaimon, 3, true, 0, ErrFormat},
		{"version -1 of hudi", FormatHudi, -1, true, 0, ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := PrimaryKeyFormat(tt.lake, tt.version, tt.def)
			if !wantError(t, err, tt.err) || got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// The default bucket key is the primary key without the partition keys, in the same order.
func TestIsDefaultBucketKey(t *testing.T) {
	pk, partition := []string{"a", "dt", "b"}, []string{"dt"}
	for _, tt := range []struct {
		bucket []string
		want   bool
	}{{[]string{"a", "b"}, true}, {[]string{"b", "a"}, false}, {[]string{"a"}, false}, {nil, false}} {
		if got := IsDefaultBucketKey(pk, partition, tt.bucket); got != tt.want {
			t.Errorf("%v: %v", tt.bucket, got)
		}
	}
}

// Lake formats are named in any case; an absent property is Fluss's own.
func TestParseFormat(t *testing.T) {
	for text, want := range map[string]Format{
		"": FormatFluss, "fluss": FormatFluss, "PAIMON": FormatPaimon, "Iceberg": FormatIceberg, "hudi": FormatHudi, "lance": FormatLance,
	} {
		if got, err := ParseFormat(text); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	_, err := ParseFormat("delta")
	wantError(t, err, ErrFormat)
}

func ordersShape() TableShape {
	return TableShape{
		Columns: []Column{
			{Name: "note", Type: Type{Kind: KindString}},
			{Name: "dt", Type: Type{Kind: KindString, NotNull: true}},
			{Name: "a", Type: Type{Kind: KindInt, NotNull: true}},
			{Name: "b", Type: Type{Kind: KindBigInt, NotNull: true}},
		},
		PrimaryKey: []string{"a", "dt", "b"}, PartitionKeys: []string{"dt"}, KVFormat: KVFormatV2,
	}
}

// A table's encoders read full rows, whatever the order of the columns: the bucket key in bucket key order, the
// primary key without the partition keys.
func TestTableKeys_FullRows(t *testing.T) {
	row := []Value{Null(), String("2024-01-05"), Int(1), BigInt(2)}
	tests := []struct {
		name                  string
		change                func(*TableShape)
		bucket, primary, part string
	}{
		{"defaults", func(*TableShape) {}, "0102", "0102", "2024-01-05"},
		{"own bucket key", func(s *TableShape) { s.BucketKeys = []string{"b"} }, "02", "0102", "2024-01-05"},
		{"bucket key order", func(s *TableShape) { s.BucketKeys = []string{"b", "a"} }, "0201", "0102", "2024-01-05"},
		{"paimon, own bucket key", func(s *TableShape) { s.BucketKeys, s.Lake = []string{"a"}, FormatPaimon }, "00000000000000000100000000000000", "0102", "2024-01-05"},
		{"hudi", func(s *TableShape) { s.Lake = FormatHudi }, "000009e2", "0102", "2024-01-05"},
		{"log table", func(s *TableShape) { s.PrimaryKey, s.PartitionKeys = nil, nil }, "", "", ""},
		{"log table with bucket key", func(s *TableShape) { s.PrimaryKey, s.BucketKeys = nil, []string{"a"} }, "01", "", "2024-01-05"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shape := ordersShape()
			tt.change(&shape)
			k, err := NewTableKeys(shape)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range []struct {
				name string
				enc  *KeyEncoder
				want string
			}{{"bucket", k.BucketKey(), tt.bucket}, {"primary", k.PrimaryKey(), tt.primary}} {
				if e.want == "" {
					if e.enc != nil {
						t.Errorf("there is a %s key", e.name)
					}
					continue
				}
				key, err := e.enc.Append(nil, row)
				if diff := cmp.Diff(mustHex(t, e.want), key); err != nil || diff != "" {
					t.Errorf("%s key: %v, (-want +got):\n%s", e.name, err, diff)
				}
			}
			if tt.part == "" {
				if k.Partition() != nil {
					t.Error("there is a namer")
				}
				return
			}
			if name, err := k.Partition().Name(row); err != nil || name != tt.part {
				t.Errorf("partition %q, %v", name, err)
			}
		})
	}
}

// Keys that do not fit the table are refused by name.
func TestNewTableKeys_Refusals(t *testing.T) {
	tests := []struct {
		name   string
		change func(*TableShape)
		want   error
		says   string
	}{
		{"unknown column", func(s *TableShape) { s.BucketKeys = []string{"x"} }, ErrKeyColumns, `the bucket key names no column: "x"`},
		{"column twice", func(s *TableShape) { s.BucketKeys = []string{"a", "a"} }, ErrKeyColumns, `twice: "a"`},
		{"unknown partition column", func(s *TableShape) { s.PartitionKeys = []string{"y"} }, ErrKeyColumns, `partition key names no column: "y"`},
		{"only partition keys", func(s *TableShape) { s.PrimaryKey, s.BucketKeys = []string{"dt"}, []string{"a"} }, ErrKeyColumns, "only partition keys"},
		{"iceberg with two", func(s *TableShape) { s.Lake = FormatIceberg }, ErrKeyColumns, "bucket key: "},
		{"version", func(s *TableShape) { s.KVFormat = 9 }, ErrFormat, "version 9"},
		{"nested", func(s *TableShape) { s.Columns[2].Type = Type{Kind: KindArray} }, ErrUnsupportedType, "ARRAY"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shape := ordersShape()
			tt.change(&shape)
			_, err := NewTableKeys(shape)
			if wantError(t, err, tt.want) && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not say %q", err, tt.says)
			}
		})
	}
}

// S70: keys 1..12 of a partition created with 2, 3 or 4 buckets go where the bucket table says; a rescaled table has
// all three kinds at once, so each count must come from the partition.
func TestS70_KeysByPartitionCount(t *testing.T) {
	tests := []struct {
		lake  Format
		count int32
		want  []int32
	}{
		{FormatFluss, 2, []int32{0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1}},
		{FormatFluss, 3, []int32{0, 0, 1, 1, 0, 0, 0, 1, 2, 1, 2, 1}},
		{FormatFluss, 4, []int32{0, 2, 3, 0, 2, 1, 2, 0, 3, 2, 0, 1}},
		{FormatFluss, 6, []int32{0, 0, 1, 4, 0, 3, 0, 4, 5, 4, 2, 1}},
		{FormatPaimon, 2, []int32{0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0}},
		{FormatPaimon, 4, []int32{2, 0, 1, 2, 0, 0, 3, 0, 3, 0, 1, 0}},
		{FormatPaimon, 6, []int32{4, 2, 1, 0, 2, 0, 1, 0, 5, 4, 1, 0}},
	}
	for _, tt := range tests {
		shape := ordersShape()
		shape.Lake, shape.BucketKeys = tt.lake, []string{"a"}
		k, err := NewTableKeys(shape)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int32, len(tt.want))
		for i := range got {
			row := []Value{Null(), String("p"), Int(int32(i + 1)), BigInt(0)}
			if got[i], _, err = k.BucketKey().Bucket(nil, row, tt.count); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s of %d (-want +got):\n%s", tt.lake, tt.count, diff)
		}
	}
}
