package routing

import "testing"

// benchmarkRow routes one row over and over: key bytes into a reused buffer, then the bucket.
func benchmarkRow(b *testing.B, f Format, types []string, row []Value) {
	b.Helper()
	cols := make([]Column, len(types))
	for i, s := range types {
		cols[i] = Column{Name: string(rune('a' + i)), Type: mustType(b, s)}
	}
	e, err := NewKeyEncoder(f, cols)
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, buf, err = e.Bucket(buf[:0], row, 16); err != nil {
			b.Fatal(err)
		}
	}
}

var benchmarkFormats = []Format{FormatFluss, FormatPaimon, FormatHudi}

func BenchmarkKeyEncoder_Int(b *testing.B) {
	for _, f := range append(benchmarkFormats, FormatIceberg) {
		b.Run(f.String(), func(b *testing.B) {
			benchmarkRow(b, f, []string{"INT"}, []Value{Int(123_456)})
		})
	}
}

func BenchmarkKeyEncoder_ThreeColumns(b *testing.B) {
	for _, f := range benchmarkFormats {
		b.Run(f.String(), func(b *testing.B) {
			benchmarkRow(b, f, []string{"INT", "STRING", "BIGINT"},
				[]Value{Int(123_456), String("customer-0042"), BigInt(1_698_235_273_182)})
		})
	}
}

func BenchmarkKeyEncoder_DecimalAndTimestamp(b *testing.B) {
	for _, f := range benchmarkFormats {
		b.Run(f.String(), func(b *testing.B) {
			benchmarkRow(b, f, []string{"DECIMAL(38, 10)", "TIMESTAMP(9)", "DATE"},
				[]Value{mustDecimal(b, "-123456789012345678901234567890"), Timestamp(1_698_235_273_182, 999_999), Date(19_000)})
		})
	}
}

func BenchmarkPartitionNamer(b *testing.B) {
	n, err := NewPartitionNamer([]Column{{Name: "dt", Type: mustType(b, "DATE")}, {Name: "hour", Type: mustType(b, "INT")}})
	if err != nil {
		b.Fatal(err)
	}
	row := []Value{Date(20_000), Int(7)}
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = n.Append(buf[:0], row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkShuffle_Channel(b *testing.B) {
	s := mustShuffle(b, 5)
	ref := NamedPartition("2024-09-10$07")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Channel(ref, 3, 6); err != nil {
			b.Fatal(err)
		}
	}
}
