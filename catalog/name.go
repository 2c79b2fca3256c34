package catalog

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxIdentifier = 200
	maxNameBytes  = 256
	maxComment    = 4096
	// MaxProperties and MaxPropertyBytes bound the properties of one object.
	MaxProperties = 256
	// MaxPropertyBytes bounds the value of a property.
	MaxPropertyBytes = 4096
)

// invalidIdentifier says why a name cannot be an identifier; "" if it can. The
// rule is Fluss's: 1..200 ASCII letters, digits, '_' and '-', not "." or "..".
func invalidIdentifier(name string) string {
	switch {
	case name == "":
		return "the empty string is not allowed"
	case name == ".":
		return "'.' is not allowed"
	case name == "..":
		return "'..' is not allowed"
	case utf16Len(name) > maxIdentifier:
		return "the length of '" + name + "' is longer than the max allowed length " + itoa(maxIdentifier)
	}
	if !identifierBytes(name) {
		return "'" + name + "' contains one or more characters other than ASCII alphanumerics, '_' and '-'"
	}
	return ""
}

func identifierBytes[T string | []byte](name T) bool {
	for i := range len(name) {
		if c := name[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// IsIdentifier reports whether name obeys the rule that databases, tables and
// partition values share: 1..200 ASCII letters, digits, '_' and '-'. It
// allocates nothing.
func IsIdentifier[T string | []byte](name T) bool {
	return len(name) > 0 && len(name) <= maxIdentifier && identifierBytes(name)
}

// utf16Len counts as the upstream rule does.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 {
			n++
		}
	}
	return n
}

const reservedPrefix = "__"

const reservedReason = "'__' is not allowed as prefix, since it is reserved for internal databases/internal tables/internal partitions"

func invalidObjectName(name string) string {
	if why := invalidIdentifier(name); why != "" {
		return why
	}
	if strings.HasPrefix(name, reservedPrefix) {
		return reservedReason
	}
	return ""
}

// CheckDatabaseName returns nil or an *Error with ErrInvalidDatabase.
func CheckDatabaseName(name string) error {
	if err := checkDatabaseName(name); err != nil {
		return err
	}
	return nil
}

func checkDatabaseName(name string) *Error {
	if why := invalidObjectName(name); why != "" {
		return refuse(ErrInvalidDatabase, "database name %q is invalid: %s", name, why)
	}
	return nil
}

// SplitPath splits "database.table". Both are checked: the error is an *Error
// with ErrInvalidDatabase or ErrInvalidTable.
func SplitPath(path string) (database, table string, err error) {
	d, t, e := splitPath(path)
	if e != nil {
		return "", "", e
	}
	return d, t, nil
}

func splitPath(path string) (database, table string, err *Error) {
	database, table, ok := strings.Cut(path, ".")
	if !ok {
		return "", "", refuse(ErrInvalidTable, "table path %q is invalid: want database.table", path)
	}
	if err := checkDatabaseName(database); err != nil {
		return "", "", err
	}
	if why := invalidObjectName(table); why != "" {
		return "", "", refuse(ErrInvalidTable, "table name %q is invalid: %s", table, why)
	}
	return database, table, nil
}

// databaseOf returns the database of a path that is known to be valid.
func databaseOf(path string) string {
	d, _, _ := strings.Cut(path, ".")
	return d
}

// Name returns the table's name without its database.
func (t *Table) Name() string {
	_, n, _ := strings.Cut(t.Path, ".")
	return n
}

// Database returns the name of the table's database.
func (t *Table) Database() string { return databaseOf(t.Path) }

func checkText(field, v string, limit int) *Error {
	if len(v) > limit {
		return refuseLimit(ErrTooLarge, uint64(limit), uint64(len(v)), "%s of %d bytes is above %d", field, len(v), limit)
	}
	if !utf8.ValidString(v) {
		return refuse(ErrInvalidArgument, "%s %q is not valid UTF-8", field, v)
	}
	return nil
}

// sortedProperties checks a list and returns it sorted by key, a new slice.
func sortedProperties(field string, in []Property) ([]Property, *Error) {
	if len(in) > MaxProperties {
		return nil, refuseLimit(ErrTooLarge, MaxProperties, uint64(len(in)), "%d %s are above %d", len(in), field, MaxProperties)
	}
	var out []Property
	for _, p := range in {
		if err := checkProperty(field, p); err != nil {
			return nil, err
		}
		i, found := findProperty(out, p.Key)
		if found {
			return nil, refuse(ErrInvalidConfig, "%s: key %q is given twice", field, p.Key)
		}
		out = slices.Insert(out, i, p)
	}
	return out, nil
}

func checkProperty(field string, p Property) *Error {
	if p.Key == "" {
		return refuse(ErrInvalidConfig, "%s: a key is empty", field)
	}
	if err := checkText(field+": key", p.Key, maxNameBytes); err != nil {
		return err
	}
	return checkText(field+": value of "+p.Key, p.Value, MaxPropertyBytes)
}
