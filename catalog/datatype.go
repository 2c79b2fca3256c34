package catalog

import (
	"fmt"
	"strconv"
	"strings"
)

// DataType is the canonical text of a column type, as "DECIMAL(10,2) NOT NULL".
// Only ParseDataType makes one, so that equal types have equal text.
type DataType string

// TypeRoot is a type without its parameters.
type TypeRoot uint8

// Roots of the column types.
const (
	InvalidType TypeRoot = iota
	BooleanType
	TinyIntType
	SmallIntType
	IntType
	BigIntType
	FloatType
	DoubleType
	DecimalType
	CharType
	StringType
	BinaryType
	BytesType
	DateType
	TimeType
	TimestampType
	TimestampLTZType
	ArrayType
	MapType
	RowType
)

var typeNames = [...]string{
	"INVALID", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "CHAR", "STRING",
	"BINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "ARRAY", "MAP", "ROW",
}

// String returns the name used in type texts.
func (r TypeRoot) String() string { return typeNames[r] }

var typeAliases = map[string]string{"INTEGER": "INT", "TIMESTAMP_NTZ": "TIMESTAMP"}

func rootOf(name string) TypeRoot {
	if a, ok := typeAliases[name]; ok {
		name = a
	}
	for i := 1; i < len(typeNames); i++ {
		if typeNames[i] == name {
			return TypeRoot(i)
		}
	}
	return InvalidType
}

const (
	notNull      = " NOT NULL"
	maxTypeBytes = 4096
	maxTypeDepth = 16
	maxLength    = 1<<31 - 1
)

// Root returns the type without parameters and nullability.
func (t DataType) Root() TypeRoot {
	s := string(t)
	if i := strings.IndexAny(s, "(< "); i >= 0 {
		s = s[:i]
	}
	return rootOf(s)
}

// Nullable reports whether a column of the type may hold null.
func (t DataType) Nullable() bool { return !strings.HasSuffix(string(t), notNull) }

// NotNull returns the type that does not allow null.
func (t DataType) NotNull() DataType {
	if !t.Nullable() {
		return t
	}
	return t + notNull
}

// Params returns the numbers in parentheses: length, or precision and scale.
// Absent ones are 0.
func (t DataType) Params() (first, second int) {
	s := string(t)
	open := strings.IndexByte(s, '(')
	if lt := strings.IndexByte(s, '<'); open < 0 || lt >= 0 && lt < open {
		return 0, 0
	}
	inner, _, _ := strings.Cut(s[open+1:], ")")
	a, b, _ := strings.Cut(inner, ",")
	first, _ = strconv.Atoi(a) //nolint:errcheck // canonical text holds numbers here; a foreign one yields 0
	second, _ = strconv.Atoi(b)
	return first, second
}

// ParseDataType reads a type in any case and spacing and returns its canonical
// text. Missing parameters take the defaults of SQL: DECIMAL(10,0), CHAR(1),
// BINARY(1), TIME(0), TIMESTAMP(6), TIMESTAMP_LTZ(6).
func ParseDataType(text string) (DataType, error) {
	if len(text) > maxTypeBytes {
		return "", fmt.Errorf("type of %d bytes is longer than %d", len(text), maxTypeBytes)
	}
	p := typeParser{in: text}
	out, err := p.parse(0)
	if err == nil {
		if p.peek(); p.at < len(text) {
			err = p.errorf("end of the type")
		}
	}
	if err != nil {
		return "", err
	}
	// Defaults make the canonical text longer; it must be readable itself, also
	// as a key's.
	if len(out)+len(notNull) > maxTypeBytes {
		return "", fmt.Errorf("type of %d bytes with its defaults is longer than %d", len(out), maxTypeBytes-len(notNull))
	}
	return DataType(out), nil
}

type typeParser struct {
	in string
	at int
}

func (p *typeParser) errorf(want string) error {
	return fmt.Errorf("type %q: at byte %d: want %s", p.in, p.at, want)
}

func (p *typeParser) peek() byte {
	for p.at < len(p.in) && (p.in[p.at] == ' ' || p.in[p.at] == '\t') {
		p.at++
	}
	if p.at == len(p.in) {
		return 0
	}
	return p.in[p.at]
}

func (p *typeParser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *typeParser) word() string {
	p.peek()
	from := p.at
	for p.at < len(p.in) && wordByte(p.in[p.at]) {
		p.at++
	}
	return p.in[from:p.at]
}

func (p *typeParser) parse(depth int) (string, error) {
	if depth > maxTypeDepth {
		return "", fmt.Errorf("type %q: nested deeper than %d", p.in, maxTypeDepth)
	}
	at := p.at
	root := rootOf(strings.ToUpper(p.word()))
	if root == InvalidType {
		p.at = at
		return "", p.errorf("a type name such as INT, STRING or DECIMAL(10,2)")
	}
	args, err := p.args(root, depth)
	if err != nil {
		return "", err
	}
	out := root.String() + args
	at = p.at
	switch strings.ToUpper(p.word()) {
	case "NOT":
		if strings.ToUpper(p.word()) != "NULL" {
			return "", p.errorf("NULL after NOT")
		}
		return out + notNull, nil
	case "NULL":
	default:
		p.at = at
	}
	return out, nil
}

func (p *typeParser) args(root TypeRoot, depth int) (string, error) {
	switch root {
	case DecimalType:
		return p.decimal()
	case CharType, BinaryType:
		n, err := p.number(1, 1, maxLength)
		return fmt.Sprintf("(%d)", n), err
	case TimeType:
		n, err := p.number(0, 0, 9)
		return fmt.Sprintf("(%d)", n), err
	case TimestampType, TimestampLTZType:
		n, err := p.number(6, 0, 9)
		return fmt.Sprintf("(%d)", n), err
	case ArrayType:
		return p.nested(1, false, depth)
	case MapType:
		return p.nested(2, false, depth)
	case RowType:
		return p.nested(-1, true, depth)
	default:
		return "", nil
	}
}

// number reads an optional "(n)" within the bounds.
func (p *typeParser) number(def, low, high int) (int, error) {
	if !p.accept('(') {
		return def, nil
	}
	n, err := p.bounded(low, high)
	if err == nil && !p.accept(')') {
		err = p.errorf("')'")
	}
	return n, err
}

func (p *typeParser) bounded(low, high int) (int, error) {
	p.peek()
	at := p.at
	n, err := strconv.Atoi(p.word())
	if err != nil || n < low || n > high {
		p.at = at
		return 0, p.errorf(fmt.Sprintf("a number in %d..%d", low, high))
	}
	return n, nil
}

func (p *typeParser) decimal() (string, error) {
	precision, scale := 10, 0
	if p.accept('(') {
		var err error
		if precision, err = p.bounded(1, 38); err != nil {
			return "", err
		}
		if p.accept(',') {
			if scale, err = p.bounded(0, precision); err != nil {
				return "", err
			}
		}
		if !p.accept(')') {
			return "", p.errorf("')'")
		}
	}
	return fmt.Sprintf("(%d,%d)", precision, scale), nil
}

// nested reads "<T, ...>" with the wanted number of types, or any number of
// "name T" fields when want is negative.
func (p *typeParser) nested(want int, named bool, depth int) (string, error) {
	if !p.accept('<') {
		return "", p.errorf("'<'")
	}
	var parts []string
	for {
		name := ""
		if named {
			quoted := p.accept('`')
			name = p.word()
			if name == "" || quoted && !p.accept('`') {
				return "", p.errorf("a field name")
			}
			name += " "
		}
		t, err := p.parse(depth + 1)
		if err != nil {
			return "", err
		}
		parts = append(parts, name+t)
		if !p.accept(',') {
			break
		}
	}
	if !p.accept('>') {
		return "", p.errorf("'>'")
	}
	if want > 0 && len(parts) != want {
		return "", p.errorf(fmt.Sprintf("%d types between '<' and '>'", want))
	}
	return "<" + strings.Join(parts, ", ") + ">", nil
}
