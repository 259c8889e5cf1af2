package view

import (
	"fmt"
	"strconv"

	"heddle/tile"
	"heddle/tile/draw"
)

// lineBytes is one row of all 32 banks.
const lineBytes = tile.Banks * tile.WordBytes

// Picture draws the schemes, memory before and after, and the crossbar between lanes and banks.
func (r SwizzleResult) Picture() (draw.Picture, error) {
	p := draw.Picture{
		Title: fmt.Sprintf("%v on %d rows of %d bytes, %d apart", r.Swizzle, r.Rows, r.RowBytes, r.Pitch),
		Notes: []string{
			fmt.Sprintf("written by %s, read by %s; the least possible is %d and %d wavefronts", r.Write, r.Read, r.LeastWrite, r.LeastRead),
			fmt.Sprintf("read access %d: %d wavefronts plain, %d swizzled, %d without conflicts", r.number, r.Plain.Wavefronts, r.Swizzled.Wavefronts, r.Plain.Phases),
		},
		Rows: [][]draw.Panel{{r.table()}},
	}
	if len(r.Suggestions) > 0 {
		p.Rows = append(p.Rows, []draw.Panel{r.suggested()})
	}
	p.Rows = append(p.Rows, []draw.Panel{r.memory("memory, plain", tile.Swizzle{}, r.access), r.memory("memory, swizzled", r.Swizzle, r.access.Through(r.Swizzle))}, r.crossbars())
	return p, nil
}

// Crossbar draws that part of Picture alone: which lane meets which bank, and where they collide.
func (r SwizzleResult) Crossbar() (draw.Picture, error) {
	p, err := r.Picture()
	p.Rows = [][]draw.Panel{r.crossbars()}
	return p, err
}

func (r SwizzleResult) crossbars() []draw.Panel {
	return []draw.Panel{crossbar("crossbar, plain", r.access, r.Plain), crossbar("crossbar, swizzled", r.access.Through(r.Swizzle), r.Swizzled)}
}

func (r SwizzleResult) table() draw.Panel {
	g := &draw.Grid{Table: true, RowAxis: "scheme", ColNames: []string{"write wavefronts", "read wavefronts", "extra bytes", "costs", "hardware knows it"}}
	for _, s := range r.Schemes {
		g.RowNames = append(g.RowNames, s.Name)
		count := func(n, least int) draw.Cell {
			if n < 0 {
				return draw.Cell{Text: "–", Shade: draw.None}
			}
			c := draw.Cell{Text: strconv.Itoa(n), Shade: draw.Poor} // more than need be
			if n == least {
				c.Shade = draw.Good
			}
			return c
		}
		g.Cells = append(g.Cells, []draw.Cell{count(s.Write, r.LeastWrite), count(s.Read, r.LeastRead),
			{Text: strconv.Itoa(s.ExtraBytes), Shade: draw.None}, {Text: s.Cost, Shade: draw.None}, {Text: s.Hardware, Shade: draw.None}})
	}
	return draw.Panel{Title: "side by side", Grid: g, Notes: []string{
		"Any bijection that sends the rows of a column to different banks will do; AND and OR are not bijections. XOR needs no carry, is its own inverse,",
		"and is what TMA and wgmma do in hardware; ADD works but must be undone by a subtraction; padding costs memory and breaks power-of-two tiles.",
	}}
}

func (r SwizzleResult) suggested() draw.Panel {
	g := &draw.Grid{Table: true, RowAxis: "swizzle", ColNames: []string{"wavefronts", "least", "hardware mode"}}
	for _, s := range r.Suggestions {
		g.RowNames = append(g.RowNames, s.Swizzle.String())
		mode := "–"
		if s.Mode != 0 {
			mode = s.Mode.String()
		}
		shade := draw.Poor
		if s.Wavefronts == s.Least {
			shade = draw.Good
		}
		g.Cells = append(g.Cells, []draw.Cell{{Text: strconv.Itoa(s.Wavefronts), Shade: shade}, {Text: strconv.Itoa(s.Least), Shade: draw.None}, {Text: mode, Shade: draw.None}})
	}
	return draw.Panel{Title: "suggested for this writer and reader", Grid: g}
}

// memory draws lines of 128 bytes, a cell for each unit that the swizzle keeps whole, named by the row and unit of the buffer that lie there. Framed
// cells are touched by the first phase of the access: frames under one another want the same banks.
func (r SwizzleResult) memory(title string, s tile.Swizzle, a tile.Access) draw.Panel {
	unit := max(1<<r.Swizzle.M, tile.WordBytes)
	perLine := max(lineBytes/unit, 1)
	lines := 8
	touched := map[int]bool{}
	for lane, x := range a.Addr {
		if x >= 0 && a.Phase(lane) == 0 {
			touched[x/unit] = true
			lines = max(lines, x/lineBytes+1)
		}
	}
	lines = min(lines, 32, (r.Rows*r.Pitch+lineBytes-1)/lineBytes)
	g := &draw.Grid{RowAxis: "line", ColAxis: "banks"}
	for u := range perLine {
		from := u * unit / tile.WordBytes
		g.ColNames = append(g.ColNames, span(from, from+unit/tile.WordBytes-1))
	}
	for line := range lines {
		g.RowNames = append(g.RowNames, strconv.Itoa(line))
		var row []draw.Cell
		for u := range perLine {
			x := line*lineBytes + u*unit
			from := s.Apply(x) // self-inverse: what lies at x came from there
			c := draw.Cell{Shade: draw.None, Mark: touched[x/unit]}
			if at := from % r.Pitch; from/r.Pitch < r.Rows && at < r.RowBytes {
				c.Text, c.Shade = fmt.Sprintf("%d.%d", from/r.Pitch, at/unit), at/unit
			}
			row = append(row, c)
		}
		g.Cells = append(g.Cells, row)
	}
	return draw.Panel{Title: title, Grid: g, Notes: []string{
		fmt.Sprintf("A cell is row.unit of the buffer, %d bytes; coloured by unit.", unit), "Framed: touched by the first phase."}}
}

func span(from, to int) string {
	if from == to {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// crossbar draws lanes against banks: a cell is the phase in which that lane uses that bank, framed where another lane of the phase wants another
// word of the bank.
func crossbar(title string, a tile.Access, rep tile.BankReport) draw.Panel {
	g := &draw.Grid{RowAxis: "lane", ColAxis: "bank", Cells: make([][]draw.Cell, tile.Lanes)}
	for lane, x := range a.Addr {
		g.Cells[lane] = make([]draw.Cell, tile.Banks)
		for b := range g.Cells[lane] {
			g.Cells[lane][b].Shade = draw.None
		}
		for w := x / tile.WordBytes; x >= 0 && w <= (x+a.Width-1)/tile.WordBytes; w++ {
			g.Cells[lane][w%tile.Banks] = draw.Cell{Text: strconv.Itoa(a.Phase(lane)), Shade: a.Phase(lane)}
		}
	}
	for _, c := range rep.Conflicts {
		for _, lane := range c.Lanes {
			g.Cells[lane][c.Bank].Mark = true
		}
	}
	return draw.Panel{Title: title + ": " + count(rep.Wavefronts, "wavefront") + " in " + count(rep.Phases, "phase"), Grid: g, Notes: []string{
		"A cell is the phase in which the lane uses the bank; framed: another lane of", "that phase wants another word there, which takes another wavefront."}}
}
