package routing

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// FLOAT and DOUBLE are printed as JDK 17 prints them, in the corner cases too where that is not the shortest form.
func TestJavaFloat_Vectors(t *testing.T) {
	type row struct {
		F32  string `json:"f32"`
		F64  string `json:"f64"`
		Java string `json:"java"`
	}
	for _, r := range readVectors[row](t, "java_floats.json", 934).Rows {
		var got []byte
		if r.F32 != "" {
			got = appendJavaFloat(nil, math.Float32frombits(uint32(mustBits(t, r.F32))))
		} else {
			got = appendJavaDouble(nil, math.Float64frombits(mustBits(t, r.F64)))
		}
		if string(got) != r.Java {
			t.Errorf("%s%s: %s, want %s", r.F32, r.F64, got, r.Java)
		}
	}
}

// Whatever the digits, the text reads back as the same number. Beyond the range of machine arithmetic the original is
// off by one unit in the last digit now and then, so FLOAT is checked for whole numbers and fractions of common size.
func TestJavaFloat_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Float64().Draw(t, "double")
		if got, err := strconv.ParseFloat(string(appendJavaDouble(nil, d)), 64); err != nil || got != d {
			t.Errorf("double %x reads back as %x, %v", d, got, err)
		}
		f := rapid.Float32Range(-1e15, 1e15).Draw(t, "float")
		if got, err := strconv.ParseFloat(string(appendJavaFloat(nil, f)), 32); err != nil || float32(got) != f {
			t.Errorf("float %x reads back as %x, %v", f, got, err)
		}
	})
}
