package draw

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"unicode/utf8"
)

// Sizes in SVG units, which are pixels at scale 1.
const (
	margin   = 24
	lineGap  = 18
	charWide = 7.3 // of 12-unit monospace
	cellHigh = 24.0
	minWide  = 24.0
	barWide  = 720.0
	barHigh  = 34.0
)

// SVG writes the picture as one self-contained SVG document.
func (p Picture) SVG(w io.Writer) error {
	s := &svg{w: bufio.NewWriter(w)}
	wide, high := p.size()
	fmt.Fprintf(s.w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12" role="img" aria-label="%s">`+"\n",
		wide, high, wide, high, html.EscapeString(p.Title))
	fmt.Fprintf(s.w, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", wide, high)
	y := float64(margin)
	s.text(margin, y+6, p.Title, `font-size="17" font-weight="bold"`)
	y += 28
	y = s.lines(margin, y, p.Notes)
	for _, row := range p.Rows {
		x, tall := float64(margin), 0.0
		for _, panel := range row {
			w, h := panel.size()
			s.panel(x, y, panel)
			x, tall = x+w+2*margin, max(tall, h)
		}
		y += tall + margin
	}
	fmt.Fprintln(s.w, "</svg>")
	return s.w.Flush()
}

type svg struct{ w *bufio.Writer }

func (s *svg) text(x, y float64, text, attributes string) {
	fmt.Fprintf(s.w, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, html.EscapeString(text))
}

func (s *svg) lines(x, y float64, notes []string) float64 {
	for _, n := range notes {
		s.text(x, y+4, n, `fill="#333"`)
		y += lineGap
	}
	return y
}

func (s *svg) panel(x, y float64, p Panel) {
	if p.Title != "" {
		s.text(x, y+14, p.Title, `font-size="14" font-weight="bold"`)
		y += 26
	}
	if p.Grid != nil {
		y = s.grid(x, y, p.Grid)
	}
	if p.Bar != nil {
		y = s.bar(x, y, p.Bar)
	}
	s.lines(x, y+12, p.Notes)
}

func (s *svg) grid(x, y float64, g *Grid) float64 {
	head, edges := g.headWidth(), g.edges()
	if g.ColAxis != "" {
		s.text(x+head, y+10, g.ColAxis+" →", `fill="#333"`)
		y += lineGap
	}
	if g.RowAxis != "" {
		s.text(x, y+12, g.RowAxis+" ↓", `fill="#333"`)
	}
	for j := range g.cols() {
		s.text(x+head+(edges[j]+edges[j+1])/2, y+12, name(g.ColNames, j), `text-anchor="middle" fill="#555" font-size="11"`)
	}
	y += lineGap
	for i, row := range g.Cells {
		top := y + float64(i)*cellHigh
		s.text(x+head-6, top+16, name(g.RowNames, i), `text-anchor="end" fill="#555" font-size="11"`)
		for j, c := range row {
			s.cell(x+head+edges[j], top, edges[j+1]-edges[j], c)
		}
	}
	for i, row := range g.Cells { // frames last, so that neighbours do not cover them
		for j, c := range row {
			if c.Mark {
				fmt.Fprintf(s.w, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#000\" stroke-width=\"2.5\"/>\n",
					x+head+edges[j], y+float64(i)*cellHigh, edges[j+1]-edges[j], cellHigh)
			}
		}
	}
	s.path(x+head, y, edges, g.Path)
	return y + float64(len(g.Cells))*cellHigh
}

func (s *svg) cell(x, y, wide float64, c Cell) {
	fill := "#fff"
	if c.Shade != None {
		rgb := shade(c.Shade)
		fill = fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
	}
	fmt.Fprintf(s.w, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#888\" stroke-width=\"0.5\"/>\n", x, y, wide, cellHigh, fill)
	if c.Text != "" {
		weight := ""
		if c.Mark {
			weight = ` font-weight="bold"`
		}
		s.text(x+wide/2, y+16, c.Text, `text-anchor="middle"`+weight)
	}
}

// path draws the stations as a thin line, with a dot at the first.
func (s *svg) path(x, y float64, edges []float64, stations [][2]int) {
	if len(stations) == 0 {
		return
	}
	at := func(p [2]int) (float64, float64) {
		return x + (edges[p[1]]+edges[p[1]+1])/2, y + (float64(p[0])+0.5)*cellHigh
	}
	fmt.Fprint(s.w, `<polyline fill="none" stroke="#000" stroke-opacity="0.55" stroke-width="1.5" stroke-linejoin="round" points="`)
	for _, p := range stations {
		px, py := at(p)
		fmt.Fprintf(s.w, "%.1f,%.1f ", px, py)
	}
	fmt.Fprintln(s.w, `"/>`)
	px, py := at(stations[0])
	fmt.Fprintf(s.w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#000\"/>\n", px, py)
}

// bar draws segments to scale, a line at the limit, and the legend below.
func (s *svg) bar(x, y float64, b *Bar) float64 {
	total := 0.0
	for _, g := range b.Segments {
		total += g.Value
	}
	scale := barWide / max(total, b.Limit, 1)
	at := x
	for _, g := range b.Segments {
		rgb := shade(g.Shade)
		fmt.Fprintf(s.w, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#%02x%02x%02x\" stroke=\"#444\"/>\n", at, y, g.Value*scale, barHigh, rgb[0], rgb[1], rgb[2])
		at += g.Value * scale
	}
	limit := x + b.Limit*scale
	fmt.Fprintf(s.w, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#000\" stroke-width=\"2.5\" stroke-dasharray=\"6 3\"/>\n", limit, limit, y-5, y+barHigh+5)
	y += barHigh + 18
	s.text(x, y, fmt.Sprintf("%s of %s %s", number(total), number(b.Limit), b.Unit), `font-weight="bold"`)
	for _, g := range b.Segments {
		y += lineGap
		rgb := shade(g.Shade)
		fmt.Fprintf(s.w, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"#%02x%02x%02x\" stroke=\"#444\"/>\n", x, y-10, rgb[0], rgb[1], rgb[2])
		s.text(x+20, y, fmt.Sprintf("%s: %s", g.Label, number(g.Value)), "")
	}
	return y + 6
}

func textWidth(s string, perChar float64) float64 {
	return float64(utf8.RuneCountInString(s)) * perChar
}

// edges are the columns' left edges, and the right one of the last.
func (g *Grid) edges() []float64 {
	at := []float64{0}
	for _, w := range g.widths(func(cell, heading string) float64 {
		return max(minWide, textWidth(cell, charWide)+8, textWidth(heading, 6.8)+8)
	}) {
		at = append(at, at[len(at)-1]+w)
	}
	return at
}

func (g *Grid) headWidth() float64 {
	wide := textWidth(g.RowAxis+" ↓", charWide)
	for i := range g.Cells {
		wide = max(wide, textWidth(name(g.RowNames, i), 6.8))
	}
	return wide + 12
}

func (p Panel) size() (wide, high float64) {
	wide = textWidth(p.Title, 8.6)
	if p.Title != "" {
		high += 26
	}
	if p.Grid != nil {
		edges := p.Grid.edges()
		wide = max(wide, p.Grid.headWidth()+edges[len(edges)-1])
		high += lineGap + cellHigh*float64(len(p.Grid.Cells))
		if p.Grid.ColAxis != "" {
			high += lineGap
		}
	}
	if p.Bar != nil {
		wide = max(wide, barWide)
		high += barHigh + 24 + lineGap*float64(len(p.Bar.Segments))
	}
	for _, n := range p.Notes {
		wide = max(wide, textWidth(n, charWide))
	}
	return wide, high + 12 + lineGap*float64(len(p.Notes))
}

func (p Picture) size() (wide, high float64) {
	wide, high = textWidth(p.Title, 10.5), margin+28+lineGap*float64(len(p.Notes))
	for _, n := range p.Notes {
		wide = max(wide, textWidth(n, charWide))
	}
	for _, row := range p.Rows {
		across, tall := 0.0, 0.0
		for i, panel := range row {
			w, h := panel.size()
			if across += w; i > 0 {
				across += 2 * margin
			}
			tall = max(tall, h)
		}
		wide, high = max(wide, across), high+tall+margin
	}
	return wide + 2*margin, high
}
