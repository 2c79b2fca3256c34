package routing

import (
	"fmt"
	"strconv"

	"github.com/stavedb/stave/catalog"
)

const maxDecimalPrecision = 38

// Kind is the root of a data type, without its parameters. The zero Kind belongs to null values and to no type.
type Kind uint8

// The kinds of column types. CHAR values are held as KindString and BINARY values as KindBytes.
const (
	KindNull Kind = iota
	KindBoolean
	KindTinyInt
	KindSmallInt
	KindInt
	KindBigInt
	KindFloat
	KindDouble
	KindDecimal
	KindChar
	KindString
	KindBinary
	KindBytes
	KindDate
	KindTime
	KindTimestamp
	KindTimestampLTZ
	KindArray
	KindMap
	KindRow
)

var kindNames = [...]string{
	KindNull: "NULL", KindBoolean: "BOOLEAN", KindTinyInt: "TINYINT", KindSmallInt: "SMALLINT", KindInt: "INT",
	KindBigInt: "BIGINT", KindFloat: "FLOAT", KindDouble: "DOUBLE", KindDecimal: "DECIMAL", KindChar: "CHAR",
	KindString: "STRING", KindBinary: "BINARY", KindBytes: "BYTES", KindDate: "DATE", KindTime: "TIME",
	KindTimestamp: "TIMESTAMP", KindTimestampLTZ: "TIMESTAMP_LTZ", KindArray: "ARRAY", KindMap: "MAP", KindRow: "ROW",
}

// String returns the SQL name of the kind, or "KIND(n)" for a value that is none.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "KIND(" + strconv.Itoa(int(k)) + ")"
}

// nested reports whether values of the kind hold other values; such columns can be no part of any key.
func (k Kind) nested() bool { return k == KindArray || k == KindMap || k == KindRow }

// valueKind is the kind of the Values a column of kind k holds.
func (k Kind) valueKind() Kind {
	switch k {
	case KindChar:
		return KindString
	case KindBinary:
		return KindBytes
	default:
		return k
	}
}

// kindOf is indexed by catalog.TypeRoot.
var kindOf = [...]Kind{
	catalog.BooleanType: KindBoolean, catalog.TinyIntType: KindTinyInt, catalog.SmallIntType: KindSmallInt,
	catalog.IntType: KindInt, catalog.BigIntType: KindBigInt, catalog.FloatType: KindFloat,
	catalog.DoubleType: KindDouble, catalog.DecimalType: KindDecimal, catalog.CharType: KindChar,
	catalog.StringType: KindString, catalog.BinaryType: KindBinary, catalog.BytesType: KindBytes,
	catalog.DateType: KindDate, catalog.TimeType: KindTime, catalog.TimestampType: KindTimestamp,
	catalog.TimestampLTZType: KindTimestampLTZ, catalog.ArrayType: KindArray, catalog.MapType: KindMap,
	catalog.RowType: KindRow,
}

// Type is a column's data type as far as keys need it: what is inside ARRAY, MAP and ROW, which can be no part of a
// key, is not kept. Types are comparable and immutable by convention.
type Type struct {
	Kind      Kind
	NotNull   bool
	Length    int // CHAR and BINARY: 1..2147483647
	Precision int // DECIMAL 1..38; TIME, TIMESTAMP, TIMESTAMP_LTZ 0..9
	Scale     int // DECIMAL: 0..Precision
}

// TypeOf returns the type of a stored column. Text that catalog.ParseDataType has not made may give KindNull, which no
// key accepts.
func TypeOf(d catalog.DataType) Type {
	t := Type{NotNull: !d.Nullable()}
	if root := d.Root(); int(root) < len(kindOf) {
		t.Kind = kindOf[root]
	}
	first, second := d.Params()
	switch t.Kind {
	case KindChar, KindBinary:
		t.Length = first
	case KindDecimal:
		t.Precision, t.Scale = first, second
	case KindTime, KindTimestamp, KindTimestampLTZ:
		t.Precision = first
	default: // the other kinds have no parameters
	}
	return t
}

// ParseType parses the text of a type as catalog.ParseDataType does, which is the one grammar of types. The error is
// ErrType with the place and the bound.
func ParseType(s string) (Type, error) {
	d, err := catalog.ParseDataType(s)
	if err != nil {
		return Type{}, fmt.Errorf("%w: %w", ErrType, err)
	}
	return TypeOf(d), nil
}

// String returns the canonical form: "DECIMAL(5,2) NOT NULL", "TIMESTAMP(6)"; of a nested type only its root, "ARRAY".
func (t Type) String() string {
	s := t.Kind.String()
	switch t.Kind {
	case KindDecimal:
		s += "(" + strconv.Itoa(t.Precision) + "," + strconv.Itoa(t.Scale) + ")"
	case KindChar, KindBinary:
		s += "(" + strconv.Itoa(t.Length) + ")"
	case KindTime, KindTimestamp, KindTimestampLTZ:
		s += "(" + strconv.Itoa(t.Precision) + ")"
	default: // the other kinds have no parameters
	}
	if t.NotNull {
		s += " NOT NULL"
	}
	return s
}

// Column is a named, typed column.
type Column struct {
	Name string
	Type Type
}
