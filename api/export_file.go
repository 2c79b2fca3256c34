package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stavedb/stave/catalog"
)

// MaxLineBytes bounds one line of an export file.
const MaxLineBytes = 8 << 20

// WriteExportRow writes one line. A row with no field set is refused.
func WriteExportRow(w io.Writer, r ExportRow) error {
	line := lineOf(r)
	if line == nil {
		return invalid("export row", "not set", "one of the known rows")
	}
	return WriteJSON(w, line)
}

// LineError says which line of which file is wrong. It unwraps to the cause and
// to its catalog.Code.
type LineError struct {
	File string
	Line int
	Err  error
}

// Error returns "file:line: cause".
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// ExportReader reads the lines of an export file one by one. It is used by one
// goroutine.
type ExportReader struct {
	name string
	in   *bufio.Reader
	line int
}

// NewExportReader returns a reader; name stands in errors.
func NewExportReader(name string, r io.Reader) *ExportReader {
	return &ExportReader{name: name, in: bufio.NewReaderSize(r, 64<<10)}
}

// Line returns the number of the last line read, from 1.
func (r *ExportReader) Line() int { return r.line }

// Next returns the next row, or io.EOF. Anything else is a *LineError: a field
// that is unknown, missing, null, there twice or of another case; a number that
// is not exact; text after the object; an empty line; the cluster's row missing
// or not first. The last line may lack its line feed.
func (r *ExportReader) Next() (ExportRow, error) {
	text, err := r.read()
	if errors.Is(err, io.EOF) {
		return ExportRow{}, io.EOF
	}
	var row ExportRow
	if err == nil {
		row, err = ParseExportLine(text)
	}
	if err == nil && (row.Cluster != nil) != (r.line == 1) {
		err = invalid("kind", row.Kind(), "cluster in the first line, and only there")
	}
	if err != nil {
		return ExportRow{}, &LineError{File: r.name, Line: r.line, Err: err}
	}
	return row, nil
}

func (r *ExportReader) read() ([]byte, error) {
	var text []byte
	r.line++
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > MaxLineBytes:
			return nil, &catalog.Error{
				Code: catalog.ErrTooLarge, Limit: MaxLineBytes, Size: uint64(len(text)),
				Message: fmt.Sprintf("the line is longer than %d bytes", MaxLineBytes),
			}
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(text) > 0, err == nil:
			return text, nil
		default:
			return nil, err
		}
	}
}

// exportRecord is a record of a line with the fields it must have.
type exportRecord struct {
	line     interface{ row() (ExportRow, error) }
	required []string
}

func recordOf(kind string) (exportRecord, bool) {
	switch kind {
	case "cluster":
		return exportRecord{&clusterLine{}, []string{"format", "incarnation", "revision", "next_table_id", "next_partition_id"}}, true
	case "database":
		return exportRecord{&databaseLine{}, []string{"name"}}, true
	case "table":
		return exportRecord{&tableLine{}, []string{"table", "table_id", "bucket_count", "layout_epoch", "history", "schemas", "next_column_id"}}, true
	case "partition":
		return exportRecord{&partitionLine{}, []string{"table_id", "partition_id", "name", "legacy"}}, true
	case "kv":
		return exportRecord{&kvLine{}, []string{"key", "version"}}, true
	case "counter":
		return exportRecord{&counterLine{}, []string{"name", "next"}}, true
	}
	return exportRecord{}, false
}

// ParseExportLine reads one line, strictly. Errors are catalog.ErrInvalidArgument
// (ErrUnsupportedVersion for a format of another build) and name the field.
func ParseExportLine(text []byte) (ExportRow, error) {
	if !utf8.Valid(text) {
		return ExportRow{}, invalid("line", "not valid UTF-8", "UTF-8")
	}
	kind, keys, err := scanLine(text)
	if err != nil {
		return ExportRow{}, err
	}
	rec, ok := recordOf(kind)
	if !ok {
		return ExportRow{}, invalid("kind", fmt.Sprintf("%q", kind), "cluster, database, table, partition, kv or counter")
	}
	for _, k := range rec.required {
		if !slices.Contains(keys, k) {
			return ExportRow{}, invalid(k, "missing", "a value in every line of kind "+kind)
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(rec.line); err != nil {
		return ExportRow{}, lineRefusal(err)
	}
	row, err := rec.line.row()
	if err != nil {
		return ExportRow{}, lineRefusal(err)
	}
	return row, nil
}

// lineRefusal gives every error of a line a code.
func lineRefusal(err error) error {
	var c catalog.Code
	if errors.As(err, &c) {
		return err
	}
	return &catalog.Error{Code: catalog.ErrInvalidArgument, Message: strings.TrimPrefix(err.Error(), "json: ")}
}

func invalidText(field string, value any, bound string) string {
	return fmt.Sprintf("%s is %v, want %s", field, value, bound)
}

// scanLine checks what the standard decoder lets through and returns the kind
// and the keys of the object.
func scanLine(text []byte) (kind string, keys []string, err error) {
	s := lineScan{d: json.NewDecoder(bytes.NewReader(text))}
	s.d.UseNumber()
	t, err := s.d.Token()
	if err != nil || t != json.Delim('{') {
		return "", nil, invalid("line", "not an object", `one JSON object, as {"kind":"database","name":"shop"}`)
	}
	if keys, err = s.object("", true); err != nil {
		return "", nil, lineRefusal(err)
	}
	if _, err := s.d.Token(); !errors.Is(err, io.EOF) {
		return "", nil, invalid("line", "longer than one object", "one JSON object per line")
	}
	return s.kind, keys, nil
}

// maxLineDepth bounds nesting: a table's line has columns in schemas in a list.
const maxLineDepth = 16

type lineScan struct {
	d     *json.Decoder
	kind  string
	depth int
}

// object reads the rest of an object. Keys below properties are free.
func (s *lineScan) object(path string, named bool) (keys []string, err error) {
	seen := map[string]bool{}
	for s.d.More() {
		t, err := s.d.Token()
		if err != nil {
			return nil, err
		}
		k, ok := t.(string)
		if !ok || seen[k] {
			return nil, invalid(path+fmt.Sprint(t), "there twice", "each field once")
		}
		if named && strings.Trim(k, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, invalid("field", fmt.Sprintf("%q", path+k), "a name in lower case")
		}
		seen[k] = true
		keys = append(keys, k)
		if err := s.value(path+k, !strings.HasSuffix(k, "properties") || !named); err != nil {
			return nil, err
		}
	}
	_, err = s.d.Token()
	return keys, err
}

func (s *lineScan) value(path string, named bool) error {
	t, err := s.d.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case nil:
		return invalid(path, "null", "a value, or no such field")
	case string:
		if path == "kind" {
			s.kind = v
		}
	case json.Delim:
		if s.depth++; s.depth > maxLineDepth {
			return invalid(path, "nested too deep", fmt.Sprintf("at most %d levels", maxLineDepth))
		}
		defer func() { s.depth-- }()
		if v == '{' {
			_, err := s.object(path+".", named)
			return err
		}
		for i := 0; s.d.More(); i++ {
			if err := s.value(fmt.Sprintf("%s[%d]", path, i), named); err != nil {
				return err
			}
		}
		_, err := s.d.Token()
		return err
	}
	return nil
}
