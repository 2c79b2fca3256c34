package stave_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/stavedb/stave"

// arrows says which of our packages each package may import, test files aside.
// A new package needs a row here; ARCHITECTURE.md explains the table.
var arrows = map[string][]string{
	"catalog":            {},
	"autopartition":      {"catalog"},
	"snapshots":          {"catalog", "internal/msgpack"},
	"watch":              {"catalog"},
	"feed":               {"catalog"},
	"fsm":                {"catalog", "snapshots", "watch", "internal/msgpack"},
	"raftnode":           {"autopartition", "catalog", "fsm", "snapshots", "watch", "internal/failpoint", "internal/msgpack", "internal/raftlog", "internal/raftnet"},
	"routing":            {"catalog"},
	"api":                {"catalog", "api/stave/v1"},
	"api/stave/v1":       {},
	"server":             {"api", "api/stave/v1", "autopartition", "catalog", "feed", "raftnode", "watch", "routing"},
	"client":             {"api", "api/stave/v1", "catalog", "routing"},
	"internal/msgpack":   {},
	"internal/failpoint": {},
	"internal/raftlog":   {"internal/failpoint"},
	"internal/raftnet":   {},
	"internal/memnet":    {"internal/raftnet"},
}

// free are the trees that may import anything: the program, the examples and
// what only tests use.
var free = []string{"cmd/", "examples/", "internal/test"}

// banned are packages, with everything below them, that a package must not
// import because its results have to be the same on every node.
var banned = map[string][]string{
	"catalog": {
		"crypto/rand", "github.com/hashicorp", "google.golang.org", "log", "math/rand",
		"net", "os", "path/filepath", "reflect", "syscall", "unsafe",
	},
}

// The packages of this module import each other only as the table allows.
func TestImports(t *testing.T) {
	problems, err := checkImports(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// checkImports returns one line per import that breaks a rule and per package
// without a row, sorted.
func checkImports(tree fs.FS) ([]string, error) {
	found := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipForeign(tree, name)
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), isFree(name):
			return nil
		}
		imports, err := importsOf(tree, name)
		if err != nil {
			return err
		}
		pkg := path.Dir(name)
		if _, known := arrows[pkg]; !known {
			found[fmt.Sprintf("%s: package has no row in the table of imports_test.go", pkg)] = true
			return nil
		}
		for _, imported := range imports {
			if !allowed(pkg, imported) {
				found[fmt.Sprintf("%s: must not import %s", name, imported)] = true
			}
		}
		return nil
	})
	return slices.Sorted(maps.Keys(found)), err
}

// skipForeign skips what is not part of this module: other modules, test data
// and what the go command ignores.
func skipForeign(tree fs.FS, dir string) error {
	base := path.Base(dir)
	if dir == "." {
		return nil
	}
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func isFree(name string) bool {
	return slices.ContainsFunc(free, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func importsOf(tree fs.FS, name string) ([]string, error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), src, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("parse imports: %w", err)
	}
	var out []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("import path of %s: %w", name, err)
		}
		out = append(out, imported)
	}
	return out, nil
}

func allowed(pkg, imported string) bool {
	if imported == module {
		return false
	}
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		return slices.Contains(arrows[pkg], ours)
	}
	return !slices.ContainsFunc(banned[pkg], func(b string) bool {
		return imported == b || strings.HasPrefix(imported, b+"/")
	})
}

// The check sees wrong arrows, banned packages and missing rows, and nothing
// else. It runs on a tree that breaks each rule once.
func TestImports_FindsViolations(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"catalog/state.go":      `package catalog; import ("fmt"; "time"; "github.com/tidwall/btree")`,
		"catalog/noise.go":      `package catalog; import ("log/slog"; "math/rand/v2"; "network"; "net")`,
		"catalog/apply.go":      `package catalog; import "github.com/stavedb/stave/watch"`,
		"catalog/state_test.go": `package catalog; import ("os"; "github.com/stavedb/stave/raftnode")`,
		"fsm/fsm.go":            `package fsm; import ("os"; "github.com/stavedb/stave/catalog"; "github.com/stavedb/stave/server")`,
		"common/common.go":      `package common; import "github.com/stavedb/stave/catalog"`,
		"cmd/stave/main.go":     `package main; import "github.com/stavedb/stave/fsm"`,
		"internal/testkit/a.go": `package testkit; import "github.com/stavedb/stave/raftnode"`,
		"internal/new/a.go":     `package new`,
		"watch/testdata/a.go":   `package broken; import "github.com/stavedb/stave/fsm"`,
		"bench/go.mod":          "module bench",
		"bench/main.go":         `package main; import "github.com/stavedb/stave/fsm"`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(src+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := checkImports(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"catalog/apply.go: must not import github.com/stavedb/stave/watch",
		"catalog/noise.go: must not import log/slog",
		"catalog/noise.go: must not import math/rand/v2",
		"catalog/noise.go: must not import net",
		"common: package has no row in the table of imports_test.go",
		"fsm/fsm.go: must not import github.com/stavedb/stave/server",
		"internal/new: package has no row in the table of imports_test.go",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// Rows name only packages that have a row, so that a typing error in the table
// cannot allow what nobody meant.
func TestImports_TableIsClosed(t *testing.T) {
	for pkg, may := range arrows {
		for _, ours := range may {
			if _, ok := arrows[ours]; !ok || ours == pkg {
				t.Errorf("row %s names %s", pkg, ours)
			}
		}
	}
}
