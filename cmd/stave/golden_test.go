package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A transcript under testdata holds command lines, "$ stave ...", each followed
// by what it prints: standard output, then errors, then the exit code if it is
// not 0. Revisions, times and ports differ between runs and are masked.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := newDev(t, 1)
			got := replay(t, r, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("transcript (-want +got):\n%s", d)
			}
		})
	}
}

// replay runs the command lines of a transcript and returns it with what they
// print now. Comments stay.
func replay(t *testing.T, r runner, transcript string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(transcript) {
		switch {
		case strings.HasPrefix(line, "# "):
			fmt.Fprintf(&b, "\n%s", line)
		case strings.HasPrefix(line, "$ stave"):
			o := r.run(t.Context(), words(t, strings.TrimPrefix(line, "$ stave"))...)
			fmt.Fprintf(&b, "\n%s%s%s", line, mask(o.out), mask(o.errs))
			if o.code != 0 {
				fmt.Fprintf(&b, "[exit %d]\n", o.code)
			}
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

var masks = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\b\d{13}-[0-9a-f]{16}\b`), "INCARNATION"},
	{regexp.MustCompile(`("(?:\w+_ms|(?:\w+_)?revision|\w+_index)"):\d+`), "$1:0"},
	{regexp.MustCompile(`("incarnation":|has incarnation )\d+`), "${1}N"},
	{regexp.MustCompile(`(since revision|, revision) \d+`), "$1 R"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`"build":"[^"]*"`), `"build":"BUILD"`},
	{regexp.MustCompile(`"directory_id":"[0-9a-f]{16}"`), `"directory_id":"DIRECTORY"`},
	{regexp.MustCompile(`"cluster_id":"[0-9a-f]{16}"`), `"cluster_id":"CLUSTER"`},
	{regexp.MustCompile(`\breassign-\d+`), "reassign-R"},
	{regexp.MustCompile(`another \d+ ms`), "another N ms"},
	{regexp.MustCompile(`at revision \d+`), "at revision R"},
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m)^revision  \d+$`), "revision  R"},
}

// mask hides what differs between runs, the REVISION column included, and with
// it the width of columns.
func mask(s string) string {
	for _, m := range masks {
		s = m.find.ReplaceAllString(s, m.with)
	}
	column := -1
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "  ")
		for j, c := range cells {
			if c == "REVISION" {
				column = j
			}
		}
		if column >= 0 && column < len(cells) && cells[column] != "REVISION" {
			cells[column] = "R"
			lines[i] = strings.Join(cells, "  ")
		}
	}
	return strings.Join(lines, "\n")
}

// words splits a command line as a shell does with single quotes.
func words(t *testing.T, line string) []string {
	t.Helper()
	var out []string
	for i, part := range strings.Split(strings.TrimSpace(line), "'") {
		if i%2 == 1 {
			if prev := strings.Split(strings.TrimSpace(line), "'")[i-1]; prev != "" && !strings.HasSuffix(prev, " ") {
				t.Fatalf("a quote inside of a word: %s", line)
			}
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}
