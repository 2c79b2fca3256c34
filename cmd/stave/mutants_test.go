package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var plantMutants = flag.Bool("mutants", false, "plant the bugs of testdata/mutants and run the suite on each")

// mutant is a planted bug: a change of one file. A bug that the whole system hides
// behind a second defence names the package whose tests must find it.
type mutant struct{ name, why, file, unit, old, new string }

func readMutant(file string) (mutant, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
	head, rest, ok := strings.Cut(string(text), "--- old\n")
	m.old, m.new, _ = strings.Cut(rest, "\n--- new\n")
	m.new = strings.TrimSuffix(m.new, "\n")
	if !ok || m.old == "" {
		return m, fmt.Errorf("%s: want '# why', 'file: NAME', perhaps 'unit: PACKAGE', '--- old' and '--- new'", file)
	}
	for line := range strings.Lines(head) {
		if f, ok := strings.CutPrefix(line, "file: "); ok {
			m.file = strings.TrimSpace(f)
		} else if u, ok := strings.CutPrefix(line, "unit: "); ok {
			m.unit = strings.TrimSpace(u)
		} else if w, ok := strings.CutPrefix(line, "# "); ok {
			m.why = strings.TrimSpace(w)
		}
	}
	return m, nil
}

// plant writes the changed file and an overlay that puts it in place.
func (m mutant) plant(dir string) (overlay string, err error) {
	path, err := filepath.Abs(filepath.Join("../..", m.file))
	if err != nil {
		return "", err
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(src), m.old); n != 1 {
		return "", fmt.Errorf("mutant %s: its old text is %d times in %s, want once", m.name, n, m.file)
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(src), m.old, m.new, 1)), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o644)
}

func mutants(t *testing.T) []mutant {
	t.Helper()
	files, err := filepath.Glob("../../testdata/mutants/*.txt")
	if err != nil || len(files) < 24 {
		t.Fatalf("%d mutants, %v", len(files), err)
	}
	var out []mutant
	for _, f := range files {
		m, err := readMutant(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// mutantBudget is how long the suite may take to find one planted bug, its build
// included.
const mutantBudget = 10 * time.Minute

// The suite finds planted bugs: a torture in virtual time and a few scripts fail
// on most, and all scripts on the others.
func TestMutants(t *testing.T) {
	if !*plantMutants {
		t.Skip("takes a minute for each bug: make mutants, or -mutants")
	}
	for _, m := range mutants(t) { // each still fits the code it is planted in
		if _, err := m.plant(t.TempDir()); err != nil || m.why == "" {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	for _, m := range mutants(t) {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			overlay, err := m.plant(dir)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if m.unit != "" {
				out, err := exec.Command("go", "test", "-overlay", overlay, "../../"+m.unit).CombinedOutput()
				if err == nil || !strings.Contains(string(out), "--- FAIL: ") {
					t.Fatalf("%s\nnot found by the tests of %s: %v\n%s", m.why, m.unit, err, out)
				}
				t.Logf("%s\nfound in %s by the tests of %s: %s", m.why, time.Since(began).Round(time.Second), m.unit, firstProblem(string(out)))
				return
			}
			bin := filepath.Join(dir, "mutant.test")
			if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", bin, ".").CombinedOutput(); err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), mutantBudget)
			defer cancel()
			for round := range 6 {
				args := []string{"-test.run", "TestTorture_Sim|TestScripts", "-test.v", fmt.Sprintf("-seed=%d", 1+round/2), "-keep", dir}
				if round%2 == 1 {
					args = append(args, "-runner", "sim") // all scripts
				}
				out, err := exec.CommandContext(ctx, bin, args...).CombinedOutput()
				if ctx.Err() != nil {
					break
				}
				if err != nil {
					t.Logf("%s\nfound in %s in round %d: %s", m.why, time.Since(began).Round(time.Second), round+1, firstProblem(string(out)))
					return
				}
			}
			t.Errorf("%s\nnot found in %s", m.why, time.Since(began).Round(time.Second))
		})
	}
}

// firstProblem is the line of a run that says what was wrong.
func firstProblem(out string) string {
	lines := strings.Split(out, "\n")
	for i, l := range lines {
		if strings.Contains(l, "problems: ") && !strings.Contains(l, "problems: 0") && i+1 < len(lines) {
			return strings.TrimSpace(lines[i+1])
		}
	}
	for _, l := range lines {
		if strings.Contains(l, "_test.go:") || strings.HasPrefix(l, "panic:") {
			return strings.TrimSpace(l)
		}
	}
	return "?"
}
