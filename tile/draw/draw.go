// Package draw renders grids and bars twice from the same data: as text for a terminal and as SVG for a page.
//
// A Picture is rows of panels; a Panel is a Grid, a Bar or notes alone. Colours are Paul Tol's "light" scheme, made for cells behind black text and
// told apart by colour-blind readers; a mark is also a frame (SVG) or brackets (text), so that nothing is said by colour alone.
// Start with Picture; text.go and svg.go are the two renderers.
package draw

import "fmt"

// Picture is a titled page.
type Picture struct {
	Title string
	Notes []string
	Rows  [][]Panel
}

// Panel is one titled drawing.
type Panel struct {
	Title string
	Notes []string
	Grid  *Grid
	Bar   *Bar
}

// Grid is a table of cells with named axes.
type Grid struct {
	RowAxis, ColAxis   string
	RowNames, ColNames []string // nil counts from 0
	Cells              [][]Cell
	Table              bool         // columns are as wide as they need to be, rather than all alike
	Path               [][2]float64 // (row, col) stations of a line drawn behind the texts, in cells from the grid's corner; SVG only
}

// Cell is one field. Shade picks a colour, counted modulo Shades, neighbours of which differ in lightness too; None has none.
type Cell struct {
	Text  string
	Shade int
	Mark  bool
}

// None is the shade of a plain cell; Good, Fair and Poor those of cells that judge. What they say is also in the text.
const (
	None = -1
	Good = 2
	Fair = 1
	Poor = 4
)

// Bar is a stack of segments against a limit.
type Bar struct {
	Unit     string
	Limit    float64
	Segments []Segment
}

// Segment is a part of a bar.
type Segment struct {
	Label string
	Value float64
	Shade int
}

// MaxCells bounds each side of a drawn grid: beyond it cells cannot be read.
const MaxCells = 128

// Shades is the number of colours.
const Shades = 8

// shade is colour i: red, green, blue.
func shade(i int) [3]int {
	return [Shades][3]int{
		{0x77, 0xAA, 0xDD}, {0xEE, 0xDD, 0x88}, {0x44, 0xBB, 0x99}, {0xFF, 0xAA, 0xBB},
		{0xEE, 0x88, 0x66}, {0x99, 0xDD, 0xFF}, {0xBB, 0xCC, 0x33}, {0xDD, 0xDD, 0xDD},
	}[(i%Shades+Shades)%Shades]
}

func name(names []string, i int) string {
	if names == nil {
		return fmt.Sprint(i)
	}
	return names[i]
}

// widths measures the columns and evens them out unless the grid is a table.
func (g *Grid) widths(measure func(cell, heading string) float64) []float64 {
	out := make([]float64, g.cols())
	most := 0.0
	for _, row := range g.Cells {
		for j, c := range row {
			out[j] = max(out[j], measure(c.Text, name(g.ColNames, j)))
			most = max(most, out[j])
		}
	}
	for j := range out {
		if !g.Table {
			out[j] = most
		}
	}
	return out
}

// cols is the width of the grid in cells.
func (g *Grid) cols() int {
	n := 0
	for _, row := range g.Cells {
		n = max(n, len(row))
	}
	return n
}
