package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

// grid is a table of texts for people.
type grid struct {
	head []string
	rows [][]string
}

func newGrid(head ...string) *grid { return &grid{head: head} }

// add appends a row; values are formatted as fmt.Sprint does.
func (g *grid) add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		if row[i] = oneLine(fmt.Sprint(v)); row[i] == "" {
			row[i] = "-"
		}
	}
	g.rows = append(g.rows, row)
}

// write prints the grid with aligned columns and no trailing blanks.
func (g *grid) write(w io.Writer) error {
	var in, b strings.Builder
	if len(g.head) > 0 {
		in.WriteString(strings.Join(g.head, "\t") + "\n")
	}
	for _, row := range g.rows {
		in.WriteString(strings.Join(row, "\t") + "\n")
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(t, in.String()); err != nil {
		return err
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return local("write output: %w", err)
		}
	}
	return nil
}

// print writes a text for people.
func (a *app) print(text string) error {
	if _, err := io.WriteString(a.out, text); err != nil {
		return local("write output: %w", err)
	}
	return nil
}

// warn writes a line to the error output.
func (a *app) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(a.errs, format+"\n", args...) //nolint:errcheck // nowhere left to tell
}

// show prints v as JSON, or the grid.
func (a *app) show(v any, g *grid) error {
	if !a.json() {
		return g.write(a.out)
	}
	if err := api.WriteJSON(a.out, v); err != nil {
		return local("write output: %w", err)
	}
	return nil
}

// showResult prints a write that has no object to show.
func (a *app) showResult(r *pb.WriteResponse) error {
	return a.showHeader(r.GetHeader())
}

// showHeader prints the incarnation and revision of an answer.
func (a *app) showHeader(h *pb.ResponseHeader) error {
	v := api.ResultJSON(h)
	g := newGrid("INCARNATION", "REVISION")
	g.add(v.Incarnation, v.Revision)
	return a.show(v, g)
}

// join lists texts in a cell.
func join(list []string) string { return strings.Join(list, ",") }

// pairs lists properties in a cell.
func pairs(list api.Properties) string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = p.Key + "=" + p.Value
	}
	return join(out)
}

// orDash shows an optional number.
func orDash[T any](v *T) any {
	if v == nil {
		return "-"
	}
	return *v
}
