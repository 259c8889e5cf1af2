package draw

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
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

// num prints a coordinate to a tenth, without needless digits.
func num(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

func hex(i int) string {
	rgb := shade(i)
	return fmt.Sprintf("#%02x%02x%02x", rgb[0], rgb[1], rgb[2])
}

func (s *svg) text(x, y float64, text, attributes string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(s.w, "<text x=\"%s\" y=\"%s\"%s>%s</text>\n", num(x), num(y), attributes, html.EscapeString(text))
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
	s.cells(x+head, y, edges, g)
	for i := range g.Cells {
		s.text(x+head-6, y+float64(i)*cellHigh+16, name(g.RowNames, i), `text-anchor="end" fill="#555" font-size="11"`)
	}
	return y + float64(len(g.Cells))*cellHigh
}

// cells draws in layers: colours, lines, path, texts with a white halo, frames.
func (s *svg) cells(x, y float64, edges []float64, g *Grid) {
	each := func(f func(left, top, wide float64, c Cell)) {
		for i, row := range g.Cells {
			for j, c := range row {
				f(x+edges[j], y+float64(i)*cellHigh, edges[j+1]-edges[j], c)
			}
		}
	}
	each(func(left, top, wide float64, c Cell) {
		if c.Shade != None {
			fmt.Fprintf(s.w, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>\n", num(left), num(top), num(wide), num(cellHigh), hex(c.Shade))
		}
	})
	wide, high := edges[len(edges)-1], cellHigh*float64(len(g.Cells))
	fmt.Fprint(s.w, `<path stroke="#888" stroke-width="0.5" d="`)
	for i := range len(g.Cells) + 1 {
		fmt.Fprintf(s.w, "M%s %sh%s", num(x), num(y+cellHigh*float64(i)), num(wide))
	}
	for _, e := range edges {
		fmt.Fprintf(s.w, "M%s %sv%s", num(x+e), num(y), num(high))
	}
	fmt.Fprintln(s.w, `"/>`)
	s.path(x, y, edges, g.Path)
	fmt.Fprintln(s.w, `<g text-anchor="middle" paint-order="stroke" stroke="#fff" stroke-opacity="0.6" stroke-width="2">`)
	each(func(left, top, wide float64, c Cell) {
		weight := ""
		if c.Mark {
			weight = `font-weight="bold"`
		}
		if c.Text != "" {
			s.text(left+wide/2, top+16, c.Text, weight)
		}
	})
	fmt.Fprintln(s.w, `</g><g fill="none" stroke="#000" stroke-width="2.5">`)
	each(func(left, top, wide float64, c Cell) {
		if c.Mark {
			fmt.Fprintf(s.w, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/>\n", num(left), num(top), num(wide), num(cellHigh))
		}
	})
	fmt.Fprintln(s.w, "</g>")
}

// path draws the stations as a line, with a dot at the first.
func (s *svg) path(x, y float64, edges []float64, stations [][2]float64) {
	if len(stations) == 0 {
		return
	}
	at := func(p [2]float64) (string, string) {
		j := min(int(p[1]), len(edges)-2)
		return num(x + edges[j] + (p[1]-float64(j))*(edges[j+1]-edges[j])), num(y + p[0]*cellHigh)
	}
	fmt.Fprint(s.w, `<polyline fill="none" stroke="#000" stroke-opacity="0.6" stroke-width="1.5" stroke-linejoin="round" points="`)
	for _, p := range stations {
		px, py := at(p)
		fmt.Fprintf(s.w, "%s,%s ", px, py)
	}
	fmt.Fprintln(s.w, `"/>`)
	px, py := at(stations[0])
	fmt.Fprintf(s.w, "<circle cx=\"%s\" cy=\"%s\" r=\"5\"/>\n", px, py)
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
		fmt.Fprintf(s.w, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\" stroke=\"#444\"/>\n", num(at), num(y), num(g.Value*scale), num(barHigh), hex(g.Shade))
		at += g.Value * scale
	}
	limit := x + b.Limit*scale
	fmt.Fprintf(s.w, "<path d=\"M%s %sv%s\" stroke=\"#000\" stroke-width=\"2.5\" stroke-dasharray=\"6 3\"/>\n", num(limit), num(y-5), num(barHigh+10))
	y += barHigh + 18
	s.text(x, y, fmt.Sprintf("%s of %s %s", number(total), number(b.Limit), b.Unit), `font-weight="bold"`)
	for _, g := range b.Segments {
		y += lineGap
		fmt.Fprintf(s.w, "<rect x=\"%s\" y=\"%s\" width=\"12\" height=\"12\" fill=\"%s\" stroke=\"#444\"/>\n", num(x), num(y-10), hex(g.Shade))
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
