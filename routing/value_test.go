package routing

import (
	"math"
	"math/big"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// Decimals agree with math/big in their shortest bytes, their plain text and the digits they have.
func TestDecimal_AgainstBig(t *testing.T) {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	rapid.Check(t, func(t *rapid.T) {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "bytes"))
		n.Rem(n, limit)
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		v, err := BigDecimal(n)
		if err != nil {
			t.Fatal(err)
		}
		var buf [16]byte
		raw := v.int128().minimal(&buf)
		back := new(big.Int).SetBytes(raw)
		if raw[0] >= 0x80 {
			back.Sub(back, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
		}
		shortest := len(raw) == 1 || raw[0] != 0 && raw[0] != 0xff || raw[0] == 0 && raw[1] >= 0x80 || raw[0] == 0xff && raw[1] < 0x80
		if back.Cmp(n) != 0 || !shortest {
			t.Fatalf("%s has bytes %x", n, raw)
		}
		if got := string(v.int128().appendPlain(nil, 0)); got != n.String() {
			t.Fatalf("%s prints as %s", n, got)
		}
		digits := len(new(big.Int).Abs(n).String())
		for precision := 1; precision <= maxDecimalPrecision; precision++ {
			if got := v.int128().fits(precision); got != (precision >= digits) {
				t.Fatalf("%s in %d digits: %v", n, precision, got)
			}
		}
		scale := rapid.IntRange(0, 38).Draw(t, "scale")
		want := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)
		if got := string(v.int128().appendPlain(nil, scale)); got != want {
			t.Fatalf("%s with scale %d prints as %s, want %s", n, scale, got, want)
		}
	})
}

// Decimals no column can hold are refused when they are made.
func TestBigDecimal_Refusals(t *testing.T) {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	for _, n := range []*big.Int{limit, new(big.Int).Neg(limit), new(big.Int).Lsh(big.NewInt(1), 127), new(big.Int).Lsh(big.NewInt(-1), 4000)} {
		_, err := BigDecimal(n)
		wantError(t, err, ErrValueRange)
	}
	_, err := BigDecimal(nil)
	wantError(t, err, ErrNullKey)
	small, err := BigDecimal(big.NewInt(math.MinInt64))
	if err != nil || !small.Equal(Decimal(math.MinInt64)) {
		t.Errorf("%#v, %v", small, err)
	}
}

// Dates and clocks agree with package time over all years it can print.
func TestCivil_AgainstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.Int64Range(-62_167_219_200_000, 253_402_300_799_999).Draw(t, "millis") // years 0..9999
		nanos := rapid.Int64Range(0, 999_999).Draw(t, "nanos")
		want := time.UnixMilli(millis).UTC().Add(time.Duration(nanos))
		d, c := splitMillis(millis, nanos)
		got := time.Date(int(d.year), time.Month(d.month), d.day, c.hour, c.minute, c.second, int(c.nano), time.UTC)
		if !got.Equal(want) || d.day != want.Day() || d.month != int(want.Month()) {
			t.Fatalf("%d.%06d is %v %v, want %v", millis, nanos, d, c, want)
		}
		text := string(appendISODateTime(nil, millis, nanos, true))
		back, err := time.Parse("2006-01-02T15:04:05.999999999", text)
		if err != nil || !back.Equal(want) {
			t.Fatalf("%q reads back as %v, %v, want %v", text, back, err, want)
		}
	})
	for _, days := range []int64{math.MinInt32, math.MaxInt32} { // the ends of DATE
		d := civilFromDays(days)
		want := time.Unix(days*86_400, 0).UTC()
		if int(d.year) != want.Year() || d.month != int(want.Month()) || d.day != want.Day() {
			t.Errorf("day %d is %v, want %v", days, d, want)
		}
	}
}

// Java's forms beyond four digits and before year 1.
func TestAppendISODateTime_Forms(t *testing.T) {
	tests := []struct {
		millis, nanos int64
		seconds       bool
		want          string
	}{
		{0, 0, false, "1970-01-01T00:00"},
		{0, 0, true, "1970-01-01T00:00:00"},
		{1000, 0, false, "1970-01-01T00:00:01"},
		{0, 1, false, "1970-01-01T00:00:00.000000001"},
		{1, 0, false, "1970-01-01T00:00:00.001"},
		{0, 1000, false, "1970-01-01T00:00:00.000001"},
		{253402300800000, 0, false, "+10000-01-01T00:00"},
		{-62167219200001, 0, false, "-0001-12-31T23:59:59.999"},
		{-62167219200000, 0, false, "0000-01-01T00:00"},
	}
	for _, tt := range tests {
		if got := string(appendISODateTime(nil, tt.millis, tt.nanos, tt.seconds)); got != tt.want {
			t.Errorf("%d.%d: %s, want %s", tt.millis, tt.nanos, got, tt.want)
		}
	}
}

// The string hash runs over UTF-16 code units, as Java's does.
func TestJavaStringHash_AgainstUTF16(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		var want int32
		for _, unit := range utf16.Encode([]rune(s)) {
			want = 31*want + int32(unit)
		}
		if got := JavaStringHash(s); got != want {
			t.Fatalf("%q has hash %d, want %d", s, got, want)
		}
	})
}

// The zero Value is null, and values of different kinds are never equal.
func TestValue_Equal(t *testing.T) {
	var zero Value
	if !zero.IsNull() || !zero.Equal(Null()) || zero.Equal(Int(0)) || zero.Kind() != KindNull {
		t.Error("the zero Value is not null")
	}
	nan := math.Float64frombits(0x7ff8000000000001)
	if !Double(nan).Equal(Double(nan)) || Double(0).Equal(Double(math.Copysign(0, -1))) {
		t.Error("doubles are not compared by their bits")
	}
	if Int(1).Equal(BigInt(1)) || String("a").Equal(Bytes([]byte("a"))) || !Bytes([]byte("a")).Equal(Bytes([]byte("a"))) {
		t.Error("kinds are mixed up")
	}
}
