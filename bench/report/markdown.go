package report

import (
	"fmt"
	"io"
	"strings"
)

// The measured part of RESULTS.md stands between these lines; everything else in
// the file is written by hand and kept.
const (
	BeginMark = "<!-- measured: begin -->"
	EndMark   = "<!-- measured: end -->"
)

// WriteMarkdown writes the measured part of RESULTS.md.
func (r *Run) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s, %s in all: up to %d repetitions, %s for each figure of a rate.\n\n",
		r.Begin.UTC().Format("2006-01-02 15:04 MST"), r.Took, r.Reps, r.Duration)
	markdownTable(&b, r.Machine.lines())
	b.WriteString("\n### Goals\n\n")
	rows := r.Rows()
	goals := [][]string{{"goal", "measured", ""}}
	for _, g := range Goals {
		goals = append(goals, g.Judge(rows).cells())
	}
	markdownTable(&b, goals)
	b.WriteString("\n### All figures\n\nMedians, with half the distance of the extremes in percent of the median.\n" +
		"Of calls/s and deliveries/s more is better, of all others less.\n\n")
	markdownTable(&b, r.grid())
	if refused := refusals(rows); len(refused) > 0 {
		b.WriteString("\nWhat a system refused:\n\n" + strings.Join(refused, "\n") + "\n")
	}
	if len(r.Failed) > 0 {
		b.WriteString("\nRepetitions that ended with an error and are not in the table:\n\n")
		for _, f := range r.Failed {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(f, "\n", " "))
		}
	}
	b.WriteString("\n")
	for _, c := range r.Charts() {
		fmt.Fprintf(&b, "![%s](%s)\n\n", c.Chart.Title, "charts/"+c.File)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func refusals(rows []Row) []string {
	var out []string
	for _, row := range rows {
		for _, s := range append([]string{ours}, peers...) {
			if c := row.Cells[s]; c.Refused != "" {
				out = append(out, fmt.Sprintf("- %s, %s, %s: %s", s, row.Work, row.Point, strings.ReplaceAll(c.Refused, "\n", " ")))
			}
		}
	}
	return out
}

// Insert replaces the measured part of a document, or appends it.
func Insert(document, measured string) string {
	part := BeginMark + "\n\n" + strings.TrimSpace(measured) + "\n\n" + EndMark
	before, rest, ok := strings.Cut(document, BeginMark)
	if ok {
		if _, after, ok := strings.Cut(rest, EndMark); ok {
			return before + part + after
		}
	}
	return strings.TrimRight(document, "\n") + "\n\n" + part + "\n"
}
