package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestParseTimeValue: only what a format can have written is read.
func TestParseTimeValue(t *testing.T) {
	for _, c := range []struct {
		unit          TimeUnit
		format, value string
		want          TimeValue
		text          string // of the refusal; empty: it is read
	}{
		{UnitYear, "", "2024", TimeValue{Year: 2024}, ""},
		{UnitYear, "", "0000", TimeValue{}, "year 0, which is not in 1..9999"},
		{UnitYear, "", "02024", TimeValue{}, "does not match the time format 'yyyy' of time unit 'YEAR'"},
		{UnitQuarter, "", "20243", TimeValue{Year: 2024, Quarter: 3}, ""},
		{UnitQuarter, "", "20245", TimeValue{}, "quarter 5"},
		{UnitQuarter, "yyyy-'Q'Q", "2024-Q1", TimeValue{Year: 2024, Quarter: 1}, ""},
		{UnitQuarter, "yyyy-'Q'Q", "2024-q1", TimeValue{}, "does not match"},
		{UnitMonth, "", "202412", TimeValue{Year: 2024, Month: 12}, ""},
		{UnitMonth, "", "202413", TimeValue{}, "month 13, which is not in 1..12"},
		{UnitMonth, "", "202400", TimeValue{}, "month 0"},
		{UnitDay, "", "20240229", TimeValue{Year: 2024, Month: 2, Day: 29}, ""},
		{UnitDay, "", "20000229", TimeValue{Year: 2000, Month: 2, Day: 29}, ""},
		{UnitDay, "", "19000229", TimeValue{}, "day 29, which is not in 1..28"},
		{UnitDay, "", "20240230", TimeValue{}, "day 30, which is not in 1..29"},
		{UnitDay, "", "20240431", TimeValue{}, "day 31, which is not in 1..30"},
		{UnitDay, "yyyy-MM-dd", "2024-1-01", TimeValue{}, "does not match"},
		{UnitHour, "", "2024010123", TimeValue{Year: 2024, Month: 1, Day: 1, Hour: 23}, ""},
		{UnitHour, "", "2024010124", TimeValue{}, "hour 24, which is not in 0..23"},
		{UnitHour, "yyyyMMdd'T'HH", "20240101T00", TimeValue{Year: 2024, Month: 1, Day: 1}, ""},
		{UnitHour, "", "", TimeValue{}, "does not match"},
		{UnitDay, "yyyyMM", "202401", TimeValue{}, "must contain fields"},
	} {
		got, err := ParseTimeValue(c.unit, c.format, c.value)
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s '%s' %s: %v, want %q", c.unit, c.format, c.value, err, c.text)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s '%s' %s: -want +got\n%s", c.unit, c.format, c.value, d)
		}
	}
}

var timeFormatsOf = map[TimeUnit][]string{
	UnitYear: {"", "'y'uuuu"}, UnitQuarter: {"", "yyyy-'Q'Q", "yyyy_q"}, UnitMonth: {"", "yyyy-MM", "yyyyLL"},
	UnitDay: {"", "yyyy-MM-dd", "'d'yyyyMMdd"}, UnitHour: {"", "yyyyMMdd'T'HH"},
}

// TestTimePattern_Orders: what is written is read back, and values order as
// strings as they do in time, which the retention relies on.
func TestTimePattern_Orders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := TimeUnit(rapid.IntRange(0, int(UnitHour)).Draw(t, "unit"))
		p, err := NewTimePattern(unit, rapid.SampledFrom(timeFormatsOf[unit]).Draw(t, "format"))
		if err != nil {
			t.Fatal(err)
		}
		draw := func(name string) (TimeValue, int, string) {
			v := TimeValue{Year: rapid.IntRange(MinTimeYear, MaxTimeYear).Draw(t, name)}
			switch unit {
			case UnitQuarter:
				v.Quarter = rapid.IntRange(1, 4).Draw(t, "quarter")
			case UnitHour:
				v.Hour = rapid.IntRange(0, 23).Draw(t, "hour")
				fallthrough
			case UnitDay:
				v.Month = rapid.IntRange(1, 12).Draw(t, "month")
				v.Day = rapid.IntRange(1, daysIn(v.Year, v.Month)).Draw(t, "day")
			case UnitMonth:
				v.Month = rapid.IntRange(1, 12).Draw(t, "month")
			case UnitYear:
			}
			s, ok := p.Format(v)
			back, err := p.Parse(s)
			if !ok || err != nil || back != v {
				t.Fatalf("%+v is written as %q (%v) and read as %+v, %v", v, s, ok, back, err)
			}
			return v, (((v.Year*5+v.Quarter)*13+v.Month)*32+v.Day)*24 + v.Hour, s
		}
		a, ta, sa := draw("a")
		b, tb, sb := draw("b")
		if (ta < tb) != (sa < sb) || len(sa) != len(sb) {
			t.Fatalf("%+v %q and %+v %q order differently", a, sa, b, sb)
		}
	})
}

// FuzzParseTimeValue: whatever is read is written back as it was.
func FuzzParseTimeValue(f *testing.F) {
	f.Add(uint8(3), "", "20240229")
	f.Add(uint8(1), "yyyy-'Q'Q", "2024-Q4")
	f.Add(uint8(4), "yyyyMMdd'T'HH", "20240101T23")
	f.Fuzz(func(t *testing.T, unit uint8, format, value string) {
		p, err := NewTimePattern(TimeUnit(unit%5), format)
		if err != nil {
			return
		}
		v, err := p.Parse(value)
		if err != nil {
			return
		}
		if s, ok := p.Format(v); !ok || s != value {
			t.Fatalf("%q in %q is read as %+v and written as %q", value, p, v, s)
		}
	})
}
