package routing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrRow is returned for text that is not one JSON object of columns.
var ErrRow = errors.New("routing: invalid row")

// RowError says which column of a JSON row does not fit and why. It unwraps to ErrValueKind or ErrValueRange.
type RowError struct {
	Column string
	Type   Type
	// Text is the JSON value, Want what would have been accepted.
	Text, Want string
	Err        error
}

// Error names the column, its type, the value and what was expected.
func (e *RowError) Error() string {
	return fmt.Sprintf("%v: column %q of type %s is %s: %s", e.Err, e.Column, e.Type, e.Text, e.Want)
}

// Unwrap returns the sentinel.
func (e *RowError) Unwrap() error { return e.Err }

// RowFromJSON reads a JSON object of column names and values as a row in the order of columns. Numbers are read
// exactly, never by way of a float. A column that is absent or null is null, and so is one of a nested type, which
// can be no key.
//
//	BOOLEAN                          true, false
//	TINYINT ... BIGINT               whole number; BIGINT also as string
//	FLOAT, DOUBLE                    number, or "NaN", "Infinity", "-Infinity"
//	DECIMAL                          number or string, without exponent
//	CHAR, STRING                     string
//	BINARY, BYTES                    string in standard base64
//	DATE                             "2024-01-05"
//	TIME                             "03:25:45.678"
//	TIMESTAMP                        "2024-01-05T03:25:45.123456", or with a space for the T
//	TIMESTAMP_LTZ                    "2024-01-05T03:25:45Z", or with another offset
//
// Errors: ErrRow for anything but one object, a key that is no column or comes twice, and text that is not UTF-8;
// *RowError.
func RowFromJSON(columns []Column, data []byte) ([]Value, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrRow)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%w: a JSON object is wanted", ErrRow)
	}
	row, seen := make([]Value, len(columns)), make([]bool, len(columns))
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, fmt.Errorf("%w: a column name is wanted at byte %d", ErrRow, d.InputOffset())
		}
		i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%w: no column is named %q", ErrRow, name)
		case seen[i]:
			return nil, fmt.Errorf("%w: column %q comes twice", ErrRow, name)
		}
		seen[i] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("%w: value of column %q: %w", ErrRow, name, err)
		}
		if row[i], err = valueFromJSON(&columns[i], raw); err != nil {
			return nil, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%w: the object does not end", ErrRow)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the object", ErrRow)
	}
	return row, nil
}

// jsonCell is one JSON value: a string, or the text of anything else.
type jsonCell struct {
	text   string
	quoted bool
}

func valueFromJSON(c *Column, raw json.RawMessage) (Value, error) {
	cell := jsonCell{text: string(raw)}
	if cell.text == "null" || c.Type.Kind.nested() {
		return Value{}, nil
	}
	if cell.quoted = raw[0] == '"'; cell.quoted {
		if err := json.Unmarshal(raw, &cell.text); err != nil {
			return Value{}, fmt.Errorf("%w: value of column %q: %w", ErrRow, c.Name, err)
		}
	}
	v, want, sentinel := cell.value(&c.Type)
	if want == "" {
		if want = v.fault(&c.Type); want == "" {
			return v, nil
		}
		sentinel = ErrValueRange
	}
	return Value{}, &RowError{Column: c.Name, Type: c.Type, Text: string(raw), Want: want, Err: sentinel}
}

// value returns the value, or what is wanted instead.
func (j jsonCell) value(t *Type) (Value, string, error) {
	switch t.Kind {
	case KindBoolean:
		if !j.quoted && (j.text == "true" || j.text == "false") {
			return Boolean(j.text == "true"), "", nil
		}
		return Value{}, "true or false is wanted", ErrValueKind
	case KindTinyInt, KindSmallInt, KindInt, KindBigInt:
		return j.whole(t.Kind)
	case KindFloat, KindDouble:
		return j.float(t.Kind)
	case KindDecimal:
		return j.decimal(t)
	case KindDate, KindTime, KindTimestamp, KindTimestampLTZ:
		return j.time(t)
	case KindChar, KindString:
		if j.quoted {
			return String(j.text), "", nil
		}
		return Value{}, "a string is wanted", ErrValueKind
	case KindBinary, KindBytes:
		if b, err := base64.StdEncoding.DecodeString(j.text); err == nil && j.quoted {
			return Bytes(b), "", nil
		}
		return Value{}, "a string in standard base64 is wanted", ErrValueKind
	default:
		return Value{}, "the column has no type", ErrUnsupportedType
	}
}

func (j jsonCell) whole(k Kind) (Value, string, error) {
	bits := map[Kind]int{KindTinyInt: 8, KindSmallInt: 16, KindInt: 32, KindBigInt: 64}[k]
	n, err := strconv.ParseInt(j.text, 10, bits)
	switch {
	case j.quoted && k != KindBigInt, err != nil && !errors.Is(err, strconv.ErrRange):
		return Value{}, "a whole number without fraction or exponent is wanted", ErrValueKind
	case err != nil:
		limit := int64(1)<<(bits-1) - 1
		return Value{}, fmt.Sprintf("a number in %d..%d is wanted", -limit-1, limit), ErrValueRange
	}
	return Value{kind: k, i: n}, "", nil
}

func (j jsonCell) float(k Kind) (Value, string, error) {
	special := j.text == "NaN" || j.text == "Infinity" || j.text == "-Infinity"
	bits := 64
	if k == KindFloat {
		bits = 32
	}
	f, err := strconv.ParseFloat(j.text, bits)
	switch {
	case j.quoted != special, err != nil && !errors.Is(err, strconv.ErrRange):
		return Value{}, `a number, "NaN", "Infinity" or "-Infinity" is wanted`, ErrValueKind
	case err != nil:
		return Value{}, fmt.Sprintf("a number that fits %d bits is wanted", bits), ErrValueRange
	case k == KindFloat:
		return Float(float32(f)), "", nil
	}
	return Double(f), "", nil
}

func (j jsonCell) decimal(t *Type) (Value, string, error) {
	whole, frac, _ := strings.Cut(j.text, ".")
	digits := strings.TrimPrefix(whole, "-")
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	if digits == "" || strings.ContainsFunc(digits+frac, notDigit) || strings.HasSuffix(j.text, ".") {
		return Value{}, "digits with at most one point and no exponent are wanted", ErrValueKind
	}
	if kept := strings.TrimRight(frac, "0"); len(kept) > t.Scale {
		return Value{}, fmt.Sprintf("at most %d digits behind the point are wanted", t.Scale), ErrValueRange
	}
	frac = (frac + strings.Repeat("0", t.Scale))[:t.Scale]
	tooLong := fmt.Sprintf("at most %d digits are wanted", t.Precision)
	if digits = strings.TrimLeft(digits+frac, "0"); len(digits) > t.Precision {
		return Value{}, tooLong, ErrValueRange
	}
	n, ok := new(big.Int).SetString("0"+digits, 10)
	if !ok {
		return Value{}, tooLong, ErrValueRange
	}
	if whole[0] == '-' {
		n.Neg(n)
	}
	v, err := BigDecimal(n)
	if err != nil {
		return Value{}, tooLong, ErrValueRange
	}
	return v, "", nil
}

// timeLayouts are the accepted forms; the parser takes a fraction of the second with each.
var timeLayouts = map[Kind][]string{
	KindDate: {"2006-01-02"}, KindTime: {"15:04:05"},
	KindTimestamp:    {"2006-01-02T15:04:05", "2006-01-02 15:04:05"},
	KindTimestampLTZ: {"2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05Z07:00"},
}

func (j jsonCell) time(t *Type) (Value, string, error) {
	layouts := timeLayouts[t.Kind]
	at, err := time.Time{}, errors.New("not a string")
	for i := 0; j.quoted && err != nil && i < len(layouts); i++ {
		at, err = time.Parse(layouts[i], j.text)
	}
	if err != nil {
		return Value{}, fmt.Sprintf("a string as %q is wanted", layouts[0]), ErrValueKind
	}
	precision := t.Precision
	if t.Kind == KindTime {
		precision = min(precision, 3) // values hold milliseconds
	}
	nano := at.Nanosecond()
	if unit := int(pow10[9-precision]); t.Kind != KindDate && nano%unit != 0 {
		return Value{}, fmt.Sprintf("at most %d digits of the second's fraction are wanted", precision), ErrValueRange
	}
	millis := at.UnixMilli()
	switch t.Kind {
	case KindDate:
		return Date(int32(floorDiv(millis, millisPerDay))), "", nil
	case KindTime:
		return TimeOfDay(int32(millis - floorDiv(millis, millisPerDay)*millisPerDay)), "", nil
	case KindTimestamp:
		return Timestamp(millis, int32(nano%nanosPerMilli)), "", nil
	default:
		return TimestampLTZ(millis, int32(nano%nanosPerMilli)), "", nil
	}
}
