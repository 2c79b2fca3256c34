package catalog

import (
	"fmt"
	"strings"
)

// TimeValue is the time an automatic partition stands for, down to its unit;
// the fields below the unit are 0. Year is 1..9999, Quarter 1..4, Month 1..12,
// Day 1..31, Hour 0..23. Quarter is set for UnitQuarter only.
type TimeValue struct{ Year, Quarter, Month, Day, Hour int }

// Years that a partition value can hold.
const (
	MinTimeYear = 1
	MaxTimeYear = 9999
)

// TimePattern writes and reads the partition values of one unit in one format.
// It is immutable and may be used concurrently.
//
// Values of one pattern have one length and order as strings as they do in time.
type TimePattern struct {
	unit   TimeUnit
	format string
	tokens []timeToken
}

// NewTimePattern checks a format as ValidateTimeFormat does; an empty one is the
// unit's default.
func NewTimePattern(unit TimeUnit, format string) (TimePattern, error) {
	if format == "" {
		format = defaultFormats[unit]
	}
	if err := ValidateTimeFormat(unit, format); err != nil {
		return TimePattern{}, err
	}
	tokens, err := scanTimeFormat(format)
	return TimePattern{unit, format, tokens}, err
}

// Unit returns the pattern's unit.
func (p TimePattern) Unit() TimeUnit { return p.unit }

// String returns the format.
func (p TimePattern) String() string { return p.format }

// Format returns the partition value of a time; false if the year does not fit.
func (p TimePattern) Format(v TimeValue) (string, bool) {
	if v.Year < MinTimeYear || v.Year > MaxTimeYear {
		return "", false
	}
	return formatTokens(p.tokens, [...]int{v.Year, v.Quarter, v.Month, v.Day, v.Hour}), true
}

// Parse reads a value that Format can have written, and no other: every digit
// and literal in its place, and a quarter, month, day and hour that exist.
func (p TimePattern) Parse(value string) (TimeValue, error) {
	rest := value
	n := [...]int{0, 1, 1, 1, 0}
	for _, t := range p.tokens {
		if t.text != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(rest, t.text); !ok {
				return TimeValue{}, p.mismatch(value)
			}
			continue
		}
		num, ok := digits(rest, fieldWidths[t.field])
		if !ok {
			return TimeValue{}, p.mismatch(value)
		}
		n[t.field], rest = num, rest[fieldWidths[t.field]:]
	}
	if rest != "" {
		return TimeValue{}, p.mismatch(value)
	}
	last := [...]int{MaxTimeYear, 4, 12, daysIn(n[fieldYear], n[fieldMonth]), 23}
	var v TimeValue
	for _, f := range unitFields[p.unit] {
		if first := [...]int{MinTimeYear, 1, 1, 1, 0}[f]; n[f] < first || n[f] > last[f] {
			return TimeValue{}, fmt.Errorf("value '%s' has the %s %d, which is not in %d..%d", value, fieldNames[f], n[f], first, last[f])
		}
		*v.field(f) = n[f]
	}
	return v, nil
}

func (p TimePattern) mismatch(value string) error {
	return fmt.Errorf("value '%s' does not match the time format '%s' of time unit '%s'", value, p.format, p.unit)
}

// field returns where a field is kept.
func (v *TimeValue) field(f timeField) *int {
	return [...]*int{&v.Year, &v.Quarter, &v.Month, &v.Day, &v.Hour}[f]
}

// digits reads exactly n ASCII digits at the beginning of s.
func digits(s string, n int) (int, bool) {
	if len(s) < n {
		return 0, false
	}
	out := 0
	for i := range n {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		out = out*10 + int(s[i]-'0')
	}
	return out, true
}

// daysIn returns the days of a month of the Gregorian calendar; 31 if there is
// no such month, which its own check refuses.
func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// ParseTimeValue reads a partition value of a unit in a format, empty for the
// unit's default. It is strict; see TimePattern.Parse.
func ParseTimeValue(unit TimeUnit, format, value string) (TimeValue, error) {
	p, err := NewTimePattern(unit, format)
	if err != nil {
		return TimeValue{}, err
	}
	return p.Parse(value)
}

// AutoPrecreate returns how many partitions are kept ready, the current one
// included: 2 if unset, and 0 for a table with several partition keys.
func (t *Table) AutoPrecreate() int {
	if len(t.PartitionKeys) != 1 {
		return 0
	}
	return t.propertyInt(PropAutoPrecreate, 2)
}

// AutoRetention returns how many past partitions are kept, 7 if unset. A
// negative number keeps all of them.
func (t *Table) AutoRetention() int { return t.propertyInt(PropAutoRetention, 7) }
