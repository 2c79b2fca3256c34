package routing

import (
	"strconv"
	"strings"
)

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

// Type is a column's data type. A Type from ParseType is complete: defaults are filled in and parameters are within
// their bounds. Types are immutable by convention and may be shared.
type Type struct {
	Kind      Kind
	NotNull   bool
	Length    int // CHAR and BINARY: 1..2147483647
	Precision int // DECIMAL 1..38; TIME, TIMESTAMP, TIMESTAMP_LTZ 0..9
	Scale     int // DECIMAL: 0..Precision

	Key    *Type   // MAP: type of the keys
	Elem   *Type   // ARRAY: type of the elements; MAP: type of the values
	Fields []Field // ROW
}

// Field is a named member of a ROW type.
type Field struct {
	Name string
	Type Type
}

// String returns the canonical form, with the parameters spelled out: "DECIMAL(5, 2) NOT NULL", "TIMESTAMP(6)".
// ParseType(t.String()) equals t for every t that came from ParseType.
func (t Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t Type) write(b *strings.Builder) {
	b.WriteString(t.Kind.String())
	switch t.Kind {
	case KindDecimal:
		b.WriteString("(" + strconv.Itoa(t.Precision) + ", " + strconv.Itoa(t.Scale) + ")")
	case KindChar, KindBinary:
		b.WriteString("(" + strconv.Itoa(t.Length) + ")")
	case KindTime, KindTimestamp, KindTimestampLTZ:
		b.WriteString("(" + strconv.Itoa(t.Precision) + ")")
	case KindArray:
		b.WriteByte('<')
		writeElem(b, t.Elem)
		b.WriteByte('>')
	case KindMap:
		b.WriteByte('<')
		writeElem(b, t.Key)
		b.WriteString(", ")
		writeElem(b, t.Elem)
		b.WriteByte('>')
	case KindRow:
		b.WriteByte('<')
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString("`" + strings.ReplaceAll(f.Name, "`", "``") + "` ")
			f.Type.write(b)
		}
		b.WriteByte('>')
	default: // the other kinds have no parameters
	}
	if t.NotNull {
		b.WriteString(" NOT NULL")
	}
}

func writeElem(b *strings.Builder, t *Type) {
	if t == nil { // a hand-made Type; printing must not panic inside an error message
		b.WriteByte('?')
		return
	}
	t.write(b)
}

// Column is a named, typed column.
type Column struct {
	Name string
	Type Type
}
