package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// ours is the system the ratios are of, and peers are those it is compared with.
const ours = "stave"

var peers = []string{"etcd", "zookeeper"}

// ratio writes ours divided by the peer's.
func ratio(r Row, peer string) string {
	a, ok := r.Cells[ours]
	b, ok2 := r.Cells[peer]
	if !ok || !ok2 || a.Refused != "" || b.Refused != "" || b.Median == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a.Median/b.Median)
}

func (c Cell) String() string {
	switch {
	case c.N == 0:
		return "-"
	case c.Refused != "":
		return "refused"
	}
	return figure(c.Median)
}

// spread is half the distance of the extremes, in percent of the median.
func (c Cell) spread() string {
	if c.N < 2 || c.Median == 0 || c.Refused != "" {
		return ""
	}
	return fmt.Sprintf(" ±%.0f%%", math.Ceil((c.Max-c.Min)/2/c.Median*100))
}

// grid returns the header and the lines of the table.
func (r *Run) grid() [][]string {
	head := append([]string{"", "work", "at", "figure"}, r.Systems...)
	for _, p := range peers {
		head = append(head, "stave / "+p)
	}
	out := [][]string{head}
	for _, row := range r.Rows() {
		line := []string{row.Workload, row.Work, row.Point, row.Metric}
		for _, s := range r.Systems {
			c := row.Cells[s]
			line = append(line, c.String()+c.spread())
		}
		for _, p := range peers {
			line = append(line, ratio(row, p))
		}
		out = append(out, line)
	}
	return out
}

// WriteTable prints all figures with the ratios of Stave to its peers.
func (r *Run) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range r.grid() {
		if _, err := fmt.Fprintln(t, strings.Join(line, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// markdownTable writes lines with a header as a table of Markdown.
func markdownTable(w io.Writer, lines [][]string) {
	for i, line := range lines {
		fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat(" --- |", len(line)))
		}
	}
}
