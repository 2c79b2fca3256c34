package routing

import (
	"fmt"
	"strings"
)

// KeyEncoder turns the key columns of a row into the bytes of one Format. It is immutable and may be used by any
// number of goroutines at once.
type KeyEncoder struct {
	format Format
	cols   []keyColumn
	width  int   // number of values a row must have
	fixed  int   // Paimon: bytes of null bits and slots
	bound  int   // Fluss: no key is longer than this and its texts and bytes together; 0: not short
	text   []int // indexes in the row of texts and bytes
}

// shortKey is how long keys may be that are made without a buffer of the caller.
const shortKey = 64

// keyColumn is a column compiled for encoding: the fields the inner loops read come first.
type keyColumn struct {
	kind  Kind // of the column
	value Kind // of the values it holds
	wide  bool // DECIMAL above 18 digits, TIMESTAMP above milliseconds
	src   int  // index of the value in the row
	Column
}

// NewKeyEncoder returns an encoder for rows that hold exactly the key columns in key order: bucket key order, not
// column order.
//
// A key has at least one column, no nested type and, for Iceberg, exactly one column: otherwise ErrKeyColumns or a
// *ColumnError with ErrUnsupportedType. Iceberg has no form for BOOLEAN, TINYINT, SMALLINT and TIMESTAMP_LTZ. Hudi has
// none for BINARY and BYTES; its text form of FLOAT and DOUBLE depends on the version of the JVM, so these are refused
// as well.
func NewKeyEncoder(f Format, key []Column) (*KeyEncoder, error) {
	src := make([]int, len(key))
	for i := range src {
		src[i] = i
	}
	return newKeyEncoder(f, key, src, len(key))
}

// newKeyEncoder returns an encoder that reads key column i from row[src[i]] of rows with width values.
func newKeyEncoder(f Format, key []Column, src []int, width int) (*KeyEncoder, error) {
	if int(f) >= len(formatNames) {
		return nil, fmt.Errorf("%w: %s", ErrFormat, f)
	}
	if len(key) == 0 {
		return nil, fmt.Errorf("%w: a %s key needs at least one column", ErrKeyColumns, f)
	}
	if f == FormatIceberg && len(key) != 1 {
		names := make([]string, len(key))
		for i, c := range key {
			names[i] = c.Name
		}
		return nil, fmt.Errorf("%w: an iceberg key has exactly one column, not %d: %s",
			ErrKeyColumns, len(key), strings.Join(names, ", "))
	}
	e := &KeyEncoder{format: f, cols: make([]keyColumn, len(key)), width: width}
	e.fixed = paimonNullBytes(len(key)) + paimonSlot*len(key)
	for i, c := range key {
		if !f.supports(c.Type.Kind) {
			return nil, &ColumnError{
				Format: f.String(), Column: c.Name, Position: i, Type: c.Type, Err: ErrUnsupportedType,
				Bound: f.unsupportedReason(c.Type.Kind),
			}
		}
		e.cols[i] = compileColumn(c, src[i])
	}
	if f == FormatFluss {
		e.bound, e.text = compactedBound(e.cols)
	}
	return e, nil
}

func compileColumn(c Column, src int) keyColumn {
	k := keyColumn{kind: c.Type.Kind, value: c.Type.Kind.valueKind(), src: src, Column: c}
	switch k.kind {
	case KindDecimal:
		k.wide = c.Type.Precision > compactDecimalPrecision
	case KindTimestamp, KindTimestampLTZ:
		k.wide = c.Type.Precision > 3
	default:
	}
	return k
}

func (f Format) supports(k Kind) bool {
	if k == KindNull || k >= KindArray {
		return false
	}
	switch f {
	case FormatIceberg:
		return k != KindBoolean && k != KindTinyInt && k != KindSmallInt && k != KindTimestampLTZ
	case FormatHudi:
		return k != KindBinary && k != KindBytes && k != KindFloat && k != KindDouble
	default:
		return true
	}
}

func (f Format) unsupportedReason(k Kind) string {
	switch {
	case k == KindNull || k > KindRow:
		return "the column has no type"
	case k.nested():
		return "nested types cannot be keys"
	case f == FormatHudi && (k == KindFloat || k == KindDouble):
		return "its text depends on the version of the JVM"
	case f == FormatHudi:
		return "it has no reproducible text"
	default:
		return "the format has no form for it"
	}
}

// Format returns the format of the bytes; its Bucket method places them.
func (e *KeyEncoder) Format() Format { return e.format }

// Columns returns the key columns in key order. The caller owns the slice.
func (e *KeyEncoder) Columns() []Column {
	cols := make([]Column, len(e.cols))
	for i := range e.cols {
		cols[i] = e.cols[i].Column
	}
	return cols
}

// Append appends the key of row to dst and returns the longer slice, as append does. It neither keeps row or dst nor
// changes row; with enough capacity in dst it does not allocate unless it fails. On an error dst is returned with its
// old length.
//
// Errors: ErrArity; otherwise a *ColumnError with ErrNullKey (fluss, lance, iceberg; paimon if the column is NOT NULL),
// ErrValueKind, ErrValueRange, or ErrReservedValue (hudi).
func (e *KeyEncoder) Append(dst []byte, row []Value) ([]byte, error) {
	if len(row) != e.width {
		return dst, fmt.Errorf("%w: %d values for %d columns", ErrArity, len(row), e.width)
	}
	switch e.format {
	case FormatPaimon:
		return e.appendPaimon(dst, row)
	case FormatIceberg:
		return e.appendIceberg(dst, row)
	case FormatHudi:
		return e.appendHudi(dst, row)
	default:
		return e.appendCompacted(dst, row)
	}
}

// Bucket appends the key of row to dst, which may be nil or a scratch buffer, and returns the bucket of that key among
// count buckets together with the longer slice. It fails as Append and Format.Bucket do.
func (e *KeyEncoder) Bucket(dst []byte, row []Value, count int32) (int32, []byte, error) {
	start := len(dst)
	dst, err := e.Append(dst, row)
	if err != nil {
		return 0, dst, err
	}
	bucket, err := e.format.Bucket(dst[start:], count)
	return bucket, dst, err
}

// reject explains why v cannot be the value of the key column in position i. It is called off the fast path, once a
// value was found to be null, of a wrong kind or out of range.
func (e *KeyEncoder) reject(i int, v *Value) error {
	return rejectValue(e.format.String(), i, &e.cols[i].Column, v)
}

func rejectValue(format string, i int, c *Column, v *Value) error {
	err := &ColumnError{Format: format, Column: c.Name, Position: i, Type: c.Type}
	switch {
	case v.kind == KindNull:
		err.Err = ErrNullKey
	case v.kind != c.Type.Kind.valueKind():
		err.Err = ErrValueKind
		err.Bound = "a value of kind " + v.kind.String() + " was given"
	default:
		err.Err = ErrValueRange
		err.Bound = v.fault(&c.Type)
	}
	return err
}
