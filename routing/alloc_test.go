package routing

import "testing"

// Routing a row into a buffer with room allocates nothing, in any format, for numbers, text, decimals and timestamps.
func TestKeyEncoder_Bucket_NoAllocations(t *testing.T) {
	rows := []struct {
		types string
		row   []Value
	}{
		{"INT", []Value{Int(42)}},
		{"STRING", []Value{String("a longer piece of text, über")}},
		{"DECIMAL(38, 10)", []Value{mustDecimal(t, "-123456789012345678901234567890")}},
		{"TIMESTAMP(9)", []Value{Timestamp(1698235273182, 999999)}},
	}
	for _, r := range rows {
		for f := FormatFluss; f <= FormatLance; f++ {
			e, err := NewKeyEncoder(f, []Column{{Name: "k", Type: mustType(t, r.types)}})
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 0, 128)
			allocs := testing.AllocsPerRun(100, func() {
				if _, buf, err = e.Bucket(buf[:0], r.row, 7); err != nil {
					t.Fatal(err)
				}
			})
			if allocs != 0 {
				t.Errorf("%s %s: %v allocations", f, r.types, allocs)
			}
		}
	}
}
