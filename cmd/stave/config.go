package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// configFlag is the flag that names a configuration file; the file cannot set it.
const configFlag = "config"

// fillFlags sets every flag that is not on the command line from its variable,
// STAVE_ and its name in capitals with _ for -, or else from the TOML file that
// --config or STAVE_CONFIG names. A file has one key per flag, with - or _, and
// no tables; an unknown key is refused with its line.
func fillFlags(f *pflag.FlagSet, env func(string) (string, bool)) error {
	path := f.Lookup(configFlag).Value.String()
	if !f.Changed(configFlag) {
		if v, ok := env(variable(configFlag)); ok {
			path = v
		}
	}
	file := configFile{}
	if path != "" {
		var err error
		if file, err = readConfig(path); err != nil {
			return err
		}
	}
	var errs []error
	f.VisitAll(func(flag *pflag.Flag) {
		errs = append(errs, fillFlag(f, flag, env, file))
	})
	for _, key := range file.order {
		if f.Lookup(key) == nil || key == configFlag || key == "help" {
			errs = append(errs, usagef("%s: unknown key %q", file.at(key), file.entries[key].spelled))
		}
	}
	return firstUsage(errors.Join(errs...))
}

// firstUsage makes one error of usage of many.
func firstUsage(err error) error {
	if err == nil {
		return nil
	}
	return usagef("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

func fillFlag(f *pflag.FlagSet, flag *pflag.Flag, env func(string) (string, bool), file configFile) error {
	if flag.Changed || flag.Name == configFlag || flag.Name == "help" {
		return nil
	}
	if v, ok := env(variable(flag.Name)); ok {
		if err := f.Set(flag.Name, v); err != nil {
			return fmt.Errorf("variable %s: %w", variable(flag.Name), err)
		}
		return nil
	}
	if e, ok := file.entries[flag.Name]; ok {
		if err := f.Set(flag.Name, e.value); err != nil {
			return fmt.Errorf("%s: %w", file.at(flag.Name), err)
		}
	}
	return nil
}

// variable is the name of the environment variable that mirrors a flag.
func variable(flag string) string {
	return "STAVE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// configFile holds the keys of a file by the flag they set.
type configFile struct {
	path    string
	entries map[string]configEntry
	order   []string
}

type configEntry struct {
	spelled, value string
	line           int
}

func (c configFile) at(key string) string { return fmt.Sprintf("%s:%d", c.path, c.entries[key].line) }

// readConfig parses a flat TOML file.
func readConfig(path string) (configFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return configFile{}, usagef("configuration: %s", err)
	}
	var values map[string]any
	meta, err := toml.Decode(string(data), &values)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		return configFile{}, usagef("%s:%d: %s", path, parse.Position.Line, parse.Message)
	case err != nil:
		return configFile{}, usagef("%s: %s", path, err)
	}
	c := configFile{path: path, entries: map[string]configEntry{}}
	lines := keyLines(string(data))
	for _, key := range meta.Keys() {
		if len(key) > 1 { // below a table, or a dotted key that makes one
			return c, usagef("%s:%d: %s: is a table, want one key per flag and no tables", path, lines[key[0]], key[0])
		}
		e := configEntry{spelled: key[0], line: lines[key[0]]}
		name := strings.ReplaceAll(key[0], "_", "-")
		if old, ok := c.entries[name]; ok {
			return c, usagef("%s:%d: %q is set twice, also in line %d", path, e.line, e.spelled, old.line)
		}
		if e.value, err = tomlText(values[key[0]]); err != nil {
			return c, usagef("%s:%d: %s: %s", path, e.line, e.spelled, err)
		}
		c.entries[name] = e
		c.order = append(c.order, name)
	}
	return c, nil
}

// tomlText gives a value the form it has as a flag.
func tomlText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				return "", fmt.Errorf("want a list of strings")
			}
			parts[i] = s
		}
		return strings.Join(parts, ","), nil
	case map[string]any:
		return "", fmt.Errorf("is a table, want one key per flag and no tables")
	default:
		return "", fmt.Errorf("want a string, a whole number, true, false or a list of strings")
	}
}

// keyLines finds the line of every top-level key or table in a document that is
// known to parse.
func keyLines(text string) map[string]int {
	out := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "["), "=")
		name, _, _ = strings.Cut(name, "]")
		name, _, _ = strings.Cut(name, ".")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if _, ok := out[name]; !ok && name != "" && name[0] != '#' {
			out[name] = i + 1
		}
	}
	return out
}
