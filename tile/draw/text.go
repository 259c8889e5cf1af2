package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Text writes the picture for a terminal, one panel under the other; color adds ANSI colours.
func (p Picture) Text(w io.Writer, color bool) error {
	t := &texter{w: bufio.NewWriter(w), color: color}
	t.title(p.Title)
	t.notes(p.Notes)
	for _, row := range p.Rows {
		for _, panel := range row {
			fmt.Fprintln(t.w)
			t.title(panel.Title)
			if panel.Grid != nil {
				t.grid(panel.Grid)
			}
			if panel.Bar != nil {
				t.bar(panel.Bar)
			}
			t.notes(panel.Notes)
		}
	}
	return t.w.Flush()
}

type texter struct {
	w     *bufio.Writer
	color bool
}

func (t *texter) title(s string) {
	switch {
	case s == "":
	case t.color:
		fmt.Fprintf(t.w, "\x1b[1m%s\x1b[0m\n", s)
	default:
		fmt.Fprintln(t.w, s)
	}
}

func (t *texter) notes(lines []string) {
	for _, s := range lines {
		fmt.Fprintln(t.w, s)
	}
}

// grid writes cells. Without colour a mark is a pair of brackets; with colour it is bold and underlined.
func (t *texter) grid(g *Grid) {
	widths := g.widths(func(cell, heading string) float64 {
		return float64(2 + max(1, utf8.RuneCountInString(cell), utf8.RuneCountInString(heading)))
	})
	head := utf8.RuneCountInString(g.RowAxis)
	for i := range g.Cells {
		head = max(head, utf8.RuneCountInString(name(g.RowNames, i)))
	}
	if g.ColAxis != "" {
		fmt.Fprintf(t.w, "%s  → %s\n", pad("", head), g.ColAxis)
	}
	fmt.Fprint(t.w, pad(g.RowAxis, head), " ")
	for j := range g.cols() {
		fmt.Fprint(t.w, pad(name(g.ColNames, j)+" ", int(widths[j])))
	}
	fmt.Fprintln(t.w)
	for i, row := range g.Cells {
		fmt.Fprint(t.w, pad(name(g.RowNames, i), head), " ")
		for j, c := range row {
			t.cell(c, int(widths[j]))
		}
		fmt.Fprintln(t.w)
	}
}

func (t *texter) cell(c Cell, width int) {
	text := c.Text + " "
	if c.Mark && !t.color {
		text = "[" + c.Text + "]"
	}
	text = pad(text, width)
	if !t.color || c.Shade == None && !c.Mark {
		fmt.Fprint(t.w, text)
		return
	}
	style := ""
	if c.Mark {
		style = "1;4;"
	}
	if c.Shade == None {
		fmt.Fprintf(t.w, "\x1b[%sm%s\x1b[0m", strings.TrimSuffix(style, ";"), text)
		return
	}
	rgb := shade(c.Shade)
	fmt.Fprintf(t.w, "\x1b[%s38;2;0;0;0;48;2;%d;%d;%dm%s\x1b[0m", style, rgb[0], rgb[1], rgb[2], text)
}

// pad right-aligns s in width characters.
func pad(s string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
}

// barWidth is the limit's length in characters.
const barWidth = 60

func (t *texter) bar(b *Bar) {
	total := 0.0
	for _, s := range b.Segments {
		total += s.Value
	}
	full := max(total, b.Limit)
	letters := "abcdefghijklmnopqrstuvwxyz"
	fmt.Fprint(t.w, "|")
	used := 0
	sum := 0.0
	for i, s := range b.Segments {
		sum += s.Value
		n := int(sum/max(full, 1)*barWidth+0.5) - used
		used += n
		text := strings.Repeat(letters[i%len(letters):][:1], n)
		if t.color {
			rgb := shade(s.Shade)
			text = fmt.Sprintf("\x1b[38;2;0;0;0;48;2;%d;%d;%dm%s\x1b[0m", rgb[0], rgb[1], rgb[2], text)
		}
		fmt.Fprint(t.w, text)
	}
	fmt.Fprintf(t.w, "%s| %s of %s %s\n", strings.Repeat(" ", max(0, barWidth-used)), number(total), number(b.Limit), b.Unit)
	for i, s := range b.Segments {
		fmt.Fprintf(t.w, "  %s %s: %s\n", letters[i%len(letters):][:1], s.Label, number(s.Value))
	}
}

// number prints with thousands separated, and a tenth if there is one.
func number(x float64) string {
	s := fmt.Sprintf("%.1f", x)
	s = strings.TrimSuffix(s, ".0")
	whole, _, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
