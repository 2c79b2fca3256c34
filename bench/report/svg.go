package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Point is one point of a line. Failed marks where the system refused; it is
// drawn as a cross at the height of the point before it.
type Point struct {
	X, Y   float64
	Failed bool
}

// Line is one system's points, from left to right.
type Line struct {
	Name   string
	Points []Point
}

// Chart is a line chart.
type Chart struct {
	Title, XTitle, YTitle string
	LogX, LogY            bool
	Lines                 []Line
	// XTicks, if there are any, are the only ticks of the x axis.
	XTicks []Tick
}

// Tick is a place on an axis and its label.
type Tick struct {
	At    float64
	Label string
}

const (
	chartWidth, chartHeight                    = 720, 420
	marginLeft, marginRight, marginTop, margin = 84, 150, 44, 56
)

var colours = map[string]string{"stave": "#1f6feb", "stave-boltdb": "#8ab4f8", "etcd": "#d9822b", "zookeeper": "#4c9f50"}

func colour(system string) string {
	name, _, _ := strings.Cut(system, ",")
	if c, ok := colours[name]; ok {
		return c
	}
	return "#666666"
}

// axis maps values to pixels.
type axis struct {
	low, high float64
	log       bool
	from, to  float64
}

func newAxis(values []float64, log bool, from, to float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), log: log, from: from, to: to}
	for _, v := range values {
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	if log {
		a.low, a.high = math.Pow(10, math.Floor(math.Log10(a.low))), math.Pow(10, math.Ceil(math.Log10(a.high)))
	} else {
		a.low, a.high = 0, niceAbove(a.high)
	}
	if a.high <= a.low {
		a.high = a.low*10 + 1
	}
	return a
}

// niceAbove returns a round number at or above v.
func niceAbove(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if f*unit >= v {
			return f * unit
		}
	}
	return 10 * unit
}

func (a axis) at(v float64) float64 {
	share := (v - a.low) / (a.high - a.low)
	if a.log {
		share = math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return a.from + share*(a.to-a.from)
}

func (a axis) ticks() []Tick {
	var out []Tick
	if a.log {
		for v := a.low; v <= a.high*1.001; v *= 10 {
			out = append(out, Tick{v, short(v)})
		}
		return out
	}
	for i := range 6 {
		v := a.low + (a.high-a.low)*float64(i)/5
		out = append(out, Tick{v, short(v)})
	}
	return out
}

// short writes a tick's value.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

// WriteSVG draws the chart. A chart without a single point says so.
func (c Chart) WriteSVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, chartHeight)
	text(&b, chartWidth/2, 24, "middle", c.Title, ` font-size="15" font-weight="bold"`)
	var xs, ys []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			xs = append(xs, p.X)
			if !p.Failed {
				ys = append(ys, p.Y)
			}
		}
	}
	if len(ys) == 0 {
		text(&b, chartWidth/2, chartHeight/2, "middle", "not measured", "")
	} else {
		c.draw(&b, xs, ys)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Chart) draw(b *strings.Builder, xs, ys []float64) {
	left, right, top, bottom := float64(marginLeft), float64(chartWidth-marginRight), float64(marginTop), float64(chartHeight-margin)
	x, y := newAxis(xs, c.LogX, left, right), newAxis(ys, c.LogY, bottom, top)
	xt := c.XTicks
	if len(xt) == 0 {
		xt = x.ticks()
	}
	for _, t := range y.ticks() {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", left, y.at(t.At), right, y.at(t.At))
		text(b, left-8, y.at(t.At)+4, "end", t.Label, "")
	}
	for _, t := range xt {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999999"/>`+"\n", x.at(t.At), bottom, x.at(t.At), bottom+5)
		text(b, x.at(t.At), bottom+20, "middle", t.Label, "")
	}
	fmt.Fprintf(b, `<path d="M%.1f %.1f V%.1f H%.1f" fill="none" stroke="#333333"/>`+"\n", left, top, bottom, right)
	text(b, (left+right)/2, chartHeight-14, "middle", c.XTitle, "")
	text(b, 18, (top+bottom)/2, "middle", c.YTitle, fmt.Sprintf(` transform="rotate(-90 18 %.1f)"`, (top+bottom)/2))
	for i, l := range c.Lines {
		drawLine(b, l, x, y)
		at := top + 10 + float64(i)*20
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"%s/>`+"\n",
			right+12, at, right+32, at, colour(l.Name), dash(l.Name))
		text(b, right+38, at+4, "start", l.Name, "")
	}
}

// dash marks the lines of a second mode of a system.
func dash(name string) string {
	if strings.Contains(name, ",") {
		return ` stroke-dasharray="6 4"`
	}
	return ""
}

func drawLine(b *strings.Builder, l Line, x, y axis) {
	var path strings.Builder
	last := y.from
	for _, p := range l.Points {
		if p.Failed {
			fmt.Fprintf(b, `<path d="M%.1f %.1f l10 10 m0 -10 l-10 10" stroke="%s" stroke-width="3"><title>%s refused</title></path>`+"\n",
				x.at(p.X)-5, last-5, colour(l.Name), html.EscapeString(l.Name))
			continue
		}
		last = y.at(p.Y)
		op := "L"
		if path.Len() == 0 {
			op = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f ", op, x.at(p.X), last)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x.at(p.X), last, colour(l.Name))
	}
	if path.Len() > 0 {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.TrimSpace(path.String()), colour(l.Name), dash(l.Name))
	}
}

func text(b *strings.Builder, x, y float64, anchor, s, extra string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, extra, html.EscapeString(s))
}
