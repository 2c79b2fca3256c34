package catalog

import (
	"fmt"
	"strings"
)

// TimeUnit is the length of an automatic partition.
type TimeUnit uint8

// Units of automatic partitions.
const (
	UnitYear TimeUnit = iota
	UnitQuarter
	UnitMonth
	UnitDay
	UnitHour
)

var unitNames = [...]string{"YEAR", "QUARTER", "MONTH", "DAY", "HOUR"}

// String returns the unit as in properties.
func (u TimeUnit) String() string { return unitNames[u] }

// ParseTimeUnit reads a unit in any case.
func ParseTimeUnit(s string) (TimeUnit, bool) {
	for i, n := range unitNames {
		if strings.EqualFold(s, n) {
			return TimeUnit(i), true
		}
	}
	return 0, false
}

// timeField is one number in a time format.
type timeField uint8

const (
	fieldYear timeField = iota
	fieldQuarter
	fieldMonth
	fieldDay
	fieldHour
)

var fieldNames = [...]string{"year", "quarter", "month", "day", "hour"}

var fieldWidths = [...]int{4, 1, 2, 2, 2}

var unitFields = [...][]timeField{
	{fieldYear},
	{fieldYear, fieldQuarter},
	{fieldYear, fieldMonth},
	{fieldYear, fieldMonth, fieldDay},
	{fieldYear, fieldMonth, fieldDay, fieldHour},
}

var defaultFormats = [...]string{"yyyy", "yyyyQ", "yyyyMM", "yyyyMMdd", "yyyyMMddHH"}

var fieldLetters = map[byte]timeField{
	'y': fieldYear, 'u': fieldYear, 'Q': fieldQuarter, 'q': fieldQuarter, 'M': fieldMonth, 'L': fieldMonth,
	'd': fieldDay, 'H': fieldHour,
}

// timeToken is a field, or a literal if text is set.
type timeToken struct {
	field timeField
	width int
	text  string
}

// scanTimeFormat splits a pattern into fields and literals.
func scanTimeFormat(format string) ([]timeToken, error) {
	var out []timeToken
	literal := func(s string) {
		if n := len(out); n > 0 && out[n-1].text != "" {
			out[n-1].text += s
			return
		}
		out = append(out, timeToken{text: s})
	}
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case c == '\'':
			text, n, err := quotedLiteral(format, i)
			if err != nil {
				return nil, err
			}
			literal(text)
			i += n
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			f, ok := fieldLetters[c]
			if !ok {
				return nil, fmt.Errorf("time format '%s' has the unsupported pattern letter '%c'", format, c)
			}
			n := 1
			for i+n < len(format) && format[i+n] == c {
				n++
			}
			out = append(out, timeToken{field: f, width: n})
			i += n
		case strings.IndexByte("[]{}#", c) >= 0:
			return nil, fmt.Errorf("time format '%s' has the reserved character '%c'", format, c)
		default:
			literal(string(c))
			i++
		}
	}
	return out, nil
}

// quotedLiteral reads a literal in single quotes; two quotes are one.
func quotedLiteral(format string, at int) (text string, n int, err error) {
	if strings.HasPrefix(format[at:], "''") {
		return "'", 2, nil
	}
	var b strings.Builder
	for i := at + 1; i < len(format); i++ {
		if format[i] != '\'' {
			b.WriteByte(format[i])
			continue
		}
		if i+1 < len(format) && format[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		return b.String(), i + 1 - at, nil
	}
	return "", 0, fmt.Errorf("time format '%s' has an unterminated quote", format)
}

// ValidateTimeFormat checks that a format has exactly the unit's fields, in
// order and of fixed width, and yields valid partition values.
func ValidateTimeFormat(unit TimeUnit, format string) error {
	if len(format) > maxNameBytes {
		return fmt.Errorf("time format of %d bytes is longer than %d", len(format), maxNameBytes)
	}
	tokens, err := scanTimeFormat(format)
	if err != nil {
		return err
	}
	var found []timeField
	for _, t := range tokens {
		if t.text != "" {
			continue
		}
		if t.width != fieldWidths[t.field] {
			return fmt.Errorf("time field '%s' in format '%s' must have fixed width %d, but found %d",
				fieldNames[t.field], format, fieldWidths[t.field], t.width)
		}
		found = append(found, t.field)
	}
	if want := unitFields[unit]; !equalFields(found, want) {
		return fmt.Errorf("time format '%s' must contain fields [%s] in this order for time unit '%s', but found [%s]",
			format, fieldList(want), unit, fieldList(found))
	}
	value := formatTokens(tokens, [...]int{2024, 4, 11, 11, 11})
	if why := invalidObjectName(value); why != "" {
		return fmt.Errorf("time format '%s' makes invalid partition values such as '%s': %s", format, value, why)
	}
	return nil
}

func equalFields(a, b []timeField) bool { return string(fieldBytes(a)) == string(fieldBytes(b)) }

func fieldBytes(f []timeField) []byte {
	out := make([]byte, len(f))
	for i, v := range f {
		out[i] = byte(v)
	}
	return out
}

func fieldList(f []timeField) string {
	names := make([]string, len(f))
	for i, v := range f {
		names[i] = fieldNames[v]
	}
	return strings.Join(names, ", ")
}

// formatTokens writes the numbers, indexed by field.
func formatTokens(tokens []timeToken, v [5]int) string {
	var b strings.Builder
	for _, t := range tokens {
		if t.text != "" {
			b.WriteString(t.text)
		} else {
			fmt.Fprintf(&b, "%0*d", fieldWidths[t.field], v[t.field])
		}
	}
	return b.String()
}

// TimeFormat returns the format of the table's automatic partitions.
func (t *Table) TimeFormat() string {
	if f := t.property(PropAutoFormat); f != "" {
		return f
	}
	return defaultFormats[t.AutoUnit()]
}
