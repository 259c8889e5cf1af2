package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Held is memory over a program's course: bytes by category after each change.
type Held struct {
	Title      string
	Notes      []string // lines under the title
	Categories []string // names, those that lie lowest first
	Stages     []HeldStage
	Changes    [][]int64 // [changes][categories]
}

// HeldStage is a stretch of changes, up to End (not included).
type HeldStage struct {
	Band  string // stages of one band that follow each other stand under one name
	Label string // of the stage's own tick; empty: none
	End   int
}

// Sizes of the picture in pixels.
const (
	heldWidth, heldHeight = 960.0, 460.0
	heldLeft, heldRight   = 70.0, 130.0
	heldTop, heldBottom   = 70.0, 62.0
)

// heldColor is the k-th area's: colour-blind readers can tell them apart (Okabe and Ito 2008).
func heldColor(k int) string {
	c := [...]string{"#999999", "#0072b2", "#56b4e9", "#f0e442", "#e69f00", "#d55e00", "#009e73", "#cc79a7"}
	return c[k%len(c)]
}

// HeldSVG draws the categories as areas one upon the other, over changes in their order.
func HeldSVG(w io.Writer, h Held) error {
	b := &heldPicture{Writer: bufio.NewWriter(w), Held: h}
	b.scale()
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="DejaVu Sans, Verdana, sans-serif" font-size="12" role="img" aria-label="%s">`+"\n",
		heldWidth, heldHeight, heldWidth, heldHeight, html.EscapeString(h.Title))
	fmt.Fprintf(b, `<rect width="%.0f" height="%.0f" fill="#fff"/>`+"\n", heldWidth, heldHeight)
	b.text(heldLeft, 22, h.Title, `font-size="15" font-weight="bold"`)
	for i, n := range h.Notes {
		b.text(heldLeft, 40+15*float64(i), n, `fill="#444"`)
	}
	b.axis()
	b.areas()
	b.stages()
	b.legend()
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

type heldPicture struct {
	*bufio.Writer
	Held
	top  float64 // the axis's end, bytes
	step float64 // between its lines
	unit float64
	name string // of the unit
	bins [][]float64
}

// scale chooses the unit and the axis, and thins the changes to one in each pixel: the one that holds most.
func (b *heldPicture) scale() {
	pixels := int(heldWidth - heldLeft - heldRight)
	n := min(pixels, len(b.Changes))
	b.bins = make([][]float64, n)
	peak := 1.0
	for i := range b.bins {
		most := -1.0
		for _, c := range b.Changes[i*len(b.Changes)/n : (i+1)*len(b.Changes)/n] {
			sum := 0.0
			v := make([]float64, len(c))
			for k, x := range c {
				v[k] = float64(x)
				sum += v[k]
			}
			if sum > most {
				most, b.bins[i] = sum, v
			}
		}
		peak = max(peak, most)
	}
	b.unit, b.name = 1, "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if peak/b.unit >= 2048 {
			b.unit, b.name = b.unit*1024, u
		}
	}
	raw := peak / b.unit / 5
	size := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if b.step = m * size * b.unit; m*size >= raw {
			break
		}
	}
	b.top = math.Ceil(peak/b.step) * b.step
}

func (b *heldPicture) x(change float64) float64 {
	return heldLeft + change/float64(len(b.Changes))*(heldWidth-heldLeft-heldRight)
}

func (b *heldPicture) y(bytes float64) float64 {
	return heldHeight - heldBottom - bytes/b.top*(heldHeight-heldTop-heldBottom)
}

func (b *heldPicture) text(x, y float64, s, attributes string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attributes, html.EscapeString(s))
}

func (b *heldPicture) line(x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}

func (b *heldPicture) axis() {
	for v := 0.0; v <= b.top*1.001; v += b.step {
		b.line(heldLeft, b.y(v), heldWidth-heldRight, b.y(v), "#ddd")
		b.text(heldLeft-6, b.y(v)+4, fmt.Sprintf("%.4g %s", v/b.unit, b.name), `text-anchor="end" fill="#444"`)
	}
}

// areas draws each category from the sum of those below it to its own.
func (b *heldPicture) areas() {
	below := make([]float64, len(b.bins))
	for k, name := range b.Categories {
		above := make([]float64, len(below))
		some := false
		for i, v := range b.bins {
			above[i] = below[i] + v[k]
			some = some || v[k] > 0
		}
		if some {
			fmt.Fprintf(b, `<path fill="%s" d="M%sL%sZ"><title>%s</title></path>`+"\n", heldColor(k), b.steps(above, false), b.steps(below, true), html.EscapeString(name))
		}
		below = above
	}
}

// steps is a line of steps through the bins' values, from left to right or back.
func (b *heldPicture) steps(v []float64, back bool) string {
	var out strings.Builder
	n := len(v)
	edge := func(i int) float64 { return b.x(float64(i) * float64(len(b.Changes)) / float64(n)) }
	for i := range n {
		at, from, next := i, i, i+1
		if back {
			at, from, next = n-1-i, n-i, n-2-i
		}
		y := b.y(v[at])
		switch {
		case i == 0:
			fmt.Fprintf(&out, "%.1f,%.1f", edge(from), y)
		case b.y(v[at]) != b.y(v[at-step(back)]):
			fmt.Fprintf(&out, "H%.1fV%.1f", edge(from), y)
		}
		if i == n-1 {
			if back {
				next = 0
			}
			fmt.Fprintf(&out, "H%.1f", edge(next))
		}
	}
	return out.String()
}

func step(back bool) int {
	if back {
		return -1
	}
	return 1
}

// stages names them under the axis, and their bands under these.
func (b *heldPicture) stages() {
	floor := heldHeight - heldBottom
	at, band := 0, 0
	for i, s := range b.Stages {
		b.line(b.x(float64(s.End)), floor, b.x(float64(s.End)), floor+4, "#888")
		if s.Label != "" && b.x(float64(s.End))-b.x(float64(at)) > 7*float64(len(s.Label)) {
			b.text((b.x(float64(at))+b.x(float64(s.End)))/2, floor+16, s.Label, `text-anchor="middle" fill="#444" font-size="11"`)
		}
		if i == len(b.Stages)-1 || b.Stages[i+1].Band != s.Band {
			b.line(b.x(float64(s.End)), heldTop, b.x(float64(s.End)), floor+26, "#888")
			if b.x(float64(s.End))-b.x(float64(band)) > 7*float64(len(s.Band)) {
				b.text((b.x(float64(band))+b.x(float64(s.End)))/2, floor+34, s.Band, `text-anchor="middle"`)
			}
			band = s.End
		}
		at = s.End
	}
	b.text(heldLeft, heldHeight-8, "allocations and releases in the order of the program; numbers are layers; the optimiser comes last", `fill="#444" font-size="11"`)
}

// legend names the categories beside the areas, in their order, with the most that each holds.
func (b *heldPicture) legend() {
	y := heldTop + 10
	for k := len(b.Categories) - 1; k >= 0; k-- {
		most := int64(0)
		for _, c := range b.Changes {
			most = max(most, c[k])
		}
		if most == 0 {
			continue
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="12" height="12" fill="%s"/>`+"\n", heldWidth-heldRight+12, y-10, heldColor(k))
		b.text(heldWidth-heldRight+30, y, b.Categories[k], "")
		b.text(heldWidth-heldRight+30, y+14, "≤ "+size(most), `fill="#444" font-size="11"`)
		y += 36
	}
}

// size is bytes with three digits or so.
func size(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v >= 1000 {
			v, unit = v/1024, u
		}
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
