package testhistory

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stavedb/stave/internal/testcluster"
)

func describe(in step, out outcome) string {
	if in.read != nil {
		return fmt.Sprintf("read: %d %q", in.read.Version, in.read.Value)
	}
	return fmt.Sprintf("%s %+v: %s %d", in.cmd.Kind(), in.cmd, out.code, out.version)
}

// keepObject writes porcupine's picture of an object and says where.
func (j *judge) keepObject(name string, info porcupine.LinearizationInfo) string {
	file := filepath.Join(j.c.Dir(), "object-"+strings.NewReplacer("/", "_", " ", "_").Replace(name)+".html")
	if err := porcupine.VisualizePath(objectModel, info, file); err != nil {
		return err.Error()
	}
	return file
}

// Keep writes the picture of a run to a directory: faults above, and below them
// what callers got, second by second. It returns the file.
func Keep(dir string, c *testcluster.Cluster, h *History, r *Report) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "timeline.html")
	return file, os.WriteFile(file, []byte(timeline(c, h, r)), 0o644)
}

const (
	pixels   = 12 // per second
	rowTall  = 14
	barsTall = 160
)

// timeline draws a run as HTML with one SVG.
func timeline(c *testcluster.Cluster, h *History, r *Report) string {
	var b strings.Builder
	type second struct{ acked, unknown, failed int }
	var bars []second
	at := func(d time.Duration) int { return int(d / time.Second) }
	for i := range h.Ops {
		op := &h.Ops[i]
		for len(bars) <= at(op.Return) {
			bars = append(bars, second{})
		}
		s := &bars[at(op.Return)]
		switch op.Fate {
		case Acked:
			s.acked++
		case Unknown:
			s.unknown++
		default:
			s.failed++
		}
	}
	most := 1
	for _, s := range bars {
		most = max(most, s.acked, s.unknown+s.failed)
	}
	events := c.Events()
	lanes := map[string]int{}
	for _, e := range events {
		if _, ok := lanes[e.Kind]; !ok {
			lanes[e.Kind] = len(lanes)
		}
	}
	base := (len(lanes)+2)*rowTall + barsTall
	fmt.Fprintf(&b, "<!doctype html><meta charset=utf-8><title>timeline</title><style>body{font:12px sans-serif}</style>\n")
	fmt.Fprintf(&b, "<p>%d calls, most in a second: %d acknowledged. Green: acknowledged; orange: outcome unknown; red: failed.</p>\n", len(h.Ops), most)
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "<p><b>%s</b></p>\n", html.EscapeString(p))
	}
	fmt.Fprintf(&b, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-size='10'>\n", 120+pixels*(len(bars)+2), base+20)
	for kind, lane := range lanes {
		fmt.Fprintf(&b, "<text x='2' y='%d'>%s</text>\n", (lane+1)*rowTall, html.EscapeString(kind))
	}
	for _, e := range events {
		x := 110 + int(e.At*pixels/time.Second)
		fmt.Fprintf(&b, "<rect x='%d' y='%d' width='5' height='9'><title>%s %s</title></rect>\n", x, lanes[e.Kind]*rowTall+6, e.At.Round(time.Millisecond), html.EscapeString(e.Text))
	}
	for i, s := range bars {
		x, y := 110+i*pixels, base
		for _, part := range []struct {
			n     int
			color string
		}{{s.acked, "#4a4"}, {s.unknown, "#fa3"}, {s.failed, "#d33"}} {
			tall := part.n * barsTall / (2 * most)
			y -= tall
			fmt.Fprintf(&b, "<rect x='%d' y='%d' width='%d' height='%d' fill='%s'><title>%d s: %d acknowledged, %d unknown, %d failed</title></rect>\n",
				x, y, pixels-2, tall, part.color, i, s.acked, s.unknown, s.failed)
		}
		if i%10 == 0 {
			fmt.Fprintf(&b, "<text x='%d' y='%d'>%d s</text>\n", x, base+14, i)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// String is the report in a few lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "calls %d: %d acknowledged (%d refusals), %d unknown, %d failed, %d reads\n", r.Calls, r.Acked, r.Refused, r.Unknown, r.Failed, r.Reads)
	fmt.Fprintf(&b, "log %d entries, %d answers given by the naive model, %d duplicates in the log, %d sent again on purpose\n", r.Entries, r.Naive, r.Repeats, r.Resent)
	fmt.Fprintf(&b, "watches %d (%d compacted), %d events seen, %d made\n", r.Watches, r.Compacted, r.WatchSteps, r.Events)
	fmt.Fprintf(&b, "compared: %d state hashes, %d log entries of nodes, %d snapshot files; porcupine: %d objects, %d undecided\n", r.Hashes, r.LogEntries, r.Snapshots, r.Objects, r.Undecided)
	fmt.Fprintf(&b, "faults %v; snapshots installed %d, ENOSPC %d, stalled writes %d; at most %d goroutines and %d files in a process\n",
		r.Counts, r.Meters.Installed, r.Meters.Full, r.Meters.Stalled, r.Meters.Goroutines, r.Meters.Files)
	fmt.Fprintf(&b, "problems: %d", len(r.Problems))
	for _, p := range r.Problems {
		b.WriteString("\n  " + p)
	}
	return b.String()
}
