package routing

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	maxDecimalPrecision = 38
	maxTimePrecision    = 9
	maxTypeDepth        = 32 // nested types deeper than this are refused; bounds the parser's stack
)

// ParseType parses a data type as Fluss and Flink SQL write it. It ignores case and white space and knows
//
//	BOOLEAN, TINYINT, SMALLINT, INT|INTEGER, BIGINT, FLOAT, DOUBLE [PRECISION], STRING, BYTES, DATE,
//	DECIMAL|DEC|NUMERIC [(p [, s])]              default (10, 0)
//	CHAR|BINARY [(n)]                            default 1
//	TIME [(p)]                                   default 0
//	TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ [(p)]  default 6
//	TIMESTAMP [(p)] WITH LOCAL TIME ZONE | WITHOUT TIME ZONE
//	ARRAY<t>, MAP<t, t>, ROW<name t, ...>
//
// each followed by an optional NULL or NOT NULL. Errors are ErrType with the place and the bound.
func ParseType(s string) (Type, error) {
	p := typeParser{text: s}
	t, err := p.parse(0)
	if err == nil {
		p.space()
		if p.pos < len(p.text) {
			err = p.fail("unexpected %q", p.text[p.pos:])
		}
	}
	if err != nil {
		return Type{}, err
	}
	return t, nil
}

type typeParser struct {
	text string
	pos  int
}

func (p *typeParser) fail(format string, args ...any) error {
	return fmt.Errorf("%w: %q at %d: %s", ErrType, p.text, p.pos, fmt.Sprintf(format, args...))
}

func (p *typeParser) parse(depth int) (Type, error) {
	if depth > maxTypeDepth {
		return Type{}, p.fail("nested deeper than %d", maxTypeDepth)
	}
	t, err := p.root(depth)
	if err != nil {
		return Type{}, err
	}
	if p.word("NOT") {
		if !p.word("NULL") {
			return Type{}, p.fail("NOT without NULL")
		}
		t.NotNull = true
	} else {
		p.word("NULL")
	}
	return t, nil
}

func (p *typeParser) root(depth int) (Type, error) {
	name := strings.ToUpper(p.ident())
	switch name {
	case "BOOLEAN":
		return Type{Kind: KindBoolean}, nil
	case "TINYINT":
		return Type{Kind: KindTinyInt}, nil
	case "SMALLINT":
		return Type{Kind: KindSmallInt}, nil
	case "INT", "INTEGER":
		return Type{Kind: KindInt}, nil
	case "BIGINT":
		return Type{Kind: KindBigInt}, nil
	case "FLOAT":
		return Type{Kind: KindFloat}, nil
	case "DOUBLE":
		p.word("PRECISION")
		return Type{Kind: KindDouble}, nil
	case "STRING":
		return Type{Kind: KindString}, nil
	case "BYTES":
		return Type{Kind: KindBytes}, nil
	case "DATE":
		return Type{Kind: KindDate}, nil
	case "CHAR":
		return p.sized(KindChar)
	case "BINARY":
		return p.sized(KindBinary)
	case "DECIMAL", "DEC", "NUMERIC":
		return p.decimal()
	case "TIME":
		return p.timed(KindTime, 0)
	case "TIMESTAMP":
		return p.timestamp()
	case "TIMESTAMP_NTZ":
		return p.timed(KindTimestamp, 6)
	case "TIMESTAMP_LTZ":
		return p.timed(KindTimestampLTZ, 6)
	case "ARRAY", "MAP", "ROW":
		return p.nested(name, depth)
	case "":
		return Type{}, p.fail("a type name is missing")
	default:
		return Type{}, p.fail("unknown type %q", name)
	}
}

func (p *typeParser) sized(k Kind) (Type, error) {
	args, err := p.args(1)
	if err != nil {
		return Type{}, err
	}
	t := Type{Kind: k, Length: 1}
	if len(args) == 1 {
		t.Length = args[0]
	}
	if t.Length < 1 {
		return Type{}, p.fail("length %d is not in 1..%d", t.Length, math.MaxInt32)
	}
	return t, nil
}

func (p *typeParser) decimal() (Type, error) {
	args, err := p.args(2)
	if err != nil {
		return Type{}, err
	}
	t := Type{Kind: KindDecimal, Precision: 10}
	if len(args) > 0 {
		t.Precision = args[0]
	}
	if len(args) > 1 {
		t.Scale = args[1]
	}
	if t.Precision < 1 || t.Precision > maxDecimalPrecision {
		return Type{}, p.fail("precision %d is not in 1..%d", t.Precision, maxDecimalPrecision)
	}
	if t.Scale > t.Precision {
		return Type{}, p.fail("scale %d is not in 0..%d", t.Scale, t.Precision)
	}
	return t, nil
}

func (p *typeParser) timed(k Kind, precision int) (Type, error) {
	args, err := p.args(1)
	if err != nil {
		return Type{}, err
	}
	if len(args) == 1 {
		precision = args[0]
	}
	if precision > maxTimePrecision {
		return Type{}, p.fail("precision %d is not in 0..%d", precision, maxTimePrecision)
	}
	return Type{Kind: k, Precision: precision}, nil
}

func (p *typeParser) timestamp() (Type, error) {
	t, err := p.timed(KindTimestamp, 6)
	if err != nil {
		return Type{}, err
	}
	local := p.word("WITH")
	if !local && !p.word("WITHOUT") {
		return t, nil
	}
	if local {
		t.Kind = KindTimestampLTZ
		if !p.word("LOCAL") {
			return Type{}, p.fail("WITH must be followed by LOCAL TIME ZONE")
		}
	}
	if !p.word("TIME") || !p.word("ZONE") {
		return Type{}, p.fail("TIME ZONE is missing")
	}
	return t, nil
}

func (p *typeParser) nested(name string, depth int) (Type, error) {
	if !p.symbol('<') {
		return Type{}, p.fail("%s without <", name)
	}
	var t Type
	var err error
	switch name {
	case "ARRAY":
		t.Kind = KindArray
		t.Elem, err = p.elem(depth)
	case "MAP":
		t.Kind = KindMap
		if t.Key, err = p.elem(depth); err != nil {
			return Type{}, err
		}
		if !p.symbol(',') {
			return Type{}, p.fail("MAP without a value type")
		}
		t.Elem, err = p.elem(depth)
	default:
		t.Kind = KindRow
		t.Fields, err = p.fields(depth)
	}
	if err != nil {
		return Type{}, err
	}
	if !p.symbol('>') {
		return Type{}, p.fail("%s without >", name)
	}
	return t, nil
}

func (p *typeParser) elem(depth int) (*Type, error) {
	t, err := p.parse(depth + 1)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

func (p *typeParser) fields(depth int) ([]Field, error) {
	var fields []Field
	for {
		name, err := p.fieldName()
		if err != nil {
			return nil, err
		}
		t, err := p.parse(depth + 1)
		if err != nil {
			return nil, err
		}
		fields = append(fields, Field{Name: name, Type: t})
		if !p.symbol(',') {
			return fields, nil
		}
	}
}

// fieldName reads a plain identifier or one in back-quotes, where a doubled back-quote stands for one.
func (p *typeParser) fieldName() (string, error) {
	if !p.symbol('`') {
		if name := p.ident(); name != "" {
			return name, nil
		}
		return "", p.fail("a field name is missing")
	}
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		if c == '`' {
			if p.pos >= len(p.text) || p.text[p.pos] != '`' {
				return b.String(), nil
			}
			p.pos++
		}
		b.WriteByte(c)
	}
	return "", p.fail("a field name is not closed")
}

// args reads "(n [, n])" with at most limit numbers; no parenthesis is no numbers.
func (p *typeParser) args(limit int) ([]int, error) {
	if !p.symbol('(') {
		return nil, nil
	}
	var args []int
	for {
		p.space()
		start := p.pos
		for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
			p.pos++
		}
		n, err := strconv.ParseInt(p.text[start:p.pos], 10, 32)
		if err != nil {
			return nil, p.fail("a number in 0..%d is missing", math.MaxInt32)
		}
		args = append(args, int(n))
		if p.symbol(')') {
			return args, nil
		}
		if len(args) == limit || !p.symbol(',') {
			return nil, p.fail("a closing parenthesis is missing")
		}
	}
}

func (p *typeParser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *typeParser) symbol(c byte) bool {
	p.space()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *typeParser) ident() string {
	p.space()
	start := p.pos
	for p.pos < len(p.text) && isIdentByte(p.text[p.pos]) {
		p.pos++
	}
	return p.text[start:p.pos]
}

// word consumes the given upper-case word, in any case, and reports whether it was there.
func (p *typeParser) word(w string) bool {
	start := p.pos
	if strings.EqualFold(p.ident(), w) {
		return true
	}
	p.pos = start
	return false
}

func isIdentByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
