package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stavedb/stave/catalog"
)

// The types of this file and of json_types.go are the JSON of the command line:
// snake_case, zero values present, absent means unknown or not applicable, and
// every number a JSON number, also of 64 bits. Optional fields are pointers.

// WriteJSON writes v as one document on one line.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("json of %T: %w", v, err)
	}
	return nil
}

// IncarnationText is an incarnation as text: "number-random", the random part
// in 16 hex digits, and "" for none.
type IncarnationText catalog.Incarnation

// String returns the text.
func (i IncarnationText) String() string {
	if catalog.Incarnation(i).IsZero() {
		return ""
	}
	return catalog.Incarnation(i).String()
}

// MarshalText implements encoding.TextMarshaler.
func (i IncarnationText) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *IncarnationText) UnmarshalText(b []byte) error {
	v, err := ParseIncarnation(string(b))
	*i = IncarnationText(v)
	return err
}

// ParseIncarnation reads the text of an incarnation, as catalog.Incarnation's
// String writes it; "" is the zero one. Errors are catalog.ErrInvalidArgument.
func ParseIncarnation(s string) (catalog.Incarnation, error) {
	if s == "" {
		return catalog.Incarnation{}, nil
	}
	number, random, ok := strings.Cut(s, "-")
	n, err1 := strconv.ParseUint(number, 10, 64)
	r, err2 := strconv.ParseUint(random, 16, 64)
	i := catalog.Incarnation{Number: n, Random: r}
	if !ok || err1 != nil || err2 != nil || i.String() != s {
		return catalog.Incarnation{}, invalid("incarnation", strconv.Quote(s), `"number-random" with 16 lower-case hex digits`)
	}
	return i, nil
}

// Properties is a list of keys and values: a JSON object in the list's order.
type Properties []catalog.Property

// MarshalJSON implements json.Marshaler.
func (p Properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, kv := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := appendText(&b, kv.Key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := appendText(&b, kv.Value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func appendText(b *bytes.Buffer, s string) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. It keeps the order, and refuses a
// key that is there twice and a value that is not a string.
func (p *Properties) UnmarshalJSON(in []byte) error {
	d := json.NewDecoder(bytes.NewReader(in))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("properties: want an object of strings")
	}
	*p = nil
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("properties: %w", err)
		}
		k, ok := key.(string)
		if !ok || seen[k] {
			return fmt.Errorf("properties: key %v is there twice", key)
		}
		seen[k] = true
		value, err := d.Token()
		if err != nil {
			return fmt.Errorf("properties: %w", err)
		}
		v, ok := value.(string)
		if !ok {
			return fmt.Errorf("properties: value of %q is not a string", k)
		}
		*p = append(*p, catalog.Property{Key: k, Value: v})
	}
	return nil
}

// splitValue gives a value as text if it is valid UTF-8, else as base64.
func splitValue(v []byte) (text, encoded *string) {
	if utf8.Valid(v) {
		s := string(v)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(v)
	return nil, &s
}

// joinValue is the reverse of splitValue; exactly one must be there.
func joinValue(text, encoded *string) ([]byte, error) {
	switch {
	case text != nil && encoded == nil:
		return []byte(*text), nil
	case text == nil && encoded != nil:
		b, err := base64.StdEncoding.DecodeString(*encoded)
		if err != nil {
			return nil, fmt.Errorf("value_base64: %w", err)
		}
		return b, nil
	default:
		return nil, fmt.Errorf("want exactly one of value and value_base64")
	}
}

// list makes an empty list out of nil, so that zero values are present.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}
