package view

import (
	"fmt"
	"strconv"

	"heddle/tile"
	"heddle/tile/draw"
)

// EpilogueRequest is a choice and the element to follow.
type EpilogueRequest struct {
	DepthRequest
	Element string // "37,70": row and column in the CTA's tile
}

// EpilogueResult follows the element and counts what the stores of one warp and chunk cost.
type EpilogueResult struct {
	Epilogue tile.Epilogue `json:"-"`
	Mode     string        `json:"swizzle"`
	Chunk    [2]int        `json:"chunk"` // rows, columns of a shared-memory buffer and TMA box
	Stores   string        `json:"stores"`
	Step     tile.Step     `json:"element"`
	Swizzled StoreCost     `json:"swizzled"`
	Plain    StoreCost     `json:"plain"`
	Cured    *StoreCost    `json:"staggered,omitempty"` // 32-bit output: odd rows store the block 16 columns away first
}

// StoreCost is the wavefronts that one warp's stores of a chunk take.
type StoreCost struct {
	Instructions int `json:"instructions"`
	Wavefronts   int `json:"wavefronts"`
	Least        int `json:"least"`
}

// Epilogue works out a request.
func Epilogue(r EpilogueRequest) (EpilogueResult, error) {
	depth, err := Depth(r.DepthRequest)
	if err != nil {
		return EpilogueResult{}, err
	}
	at, err := tile.ParseTuple("(" + r.Element + ")")
	if err != nil || len(at.Modes) != 2 || at.Modes[0].Modes != nil || at.Modes[1].Modes != nil || at.Modes[0].Free || at.Modes[1].Free {
		return EpilogueResult{}, fmt.Errorf("tile: element %q; hint: row,column as in 37,70", r.Element)
	}
	e, err := depth.Fit.Epilogue(false)
	if err != nil {
		return EpilogueResult{}, err
	}
	plain := e
	plain.Mode = tile.SwizzleNone
	res := EpilogueResult{Epilogue: e, Mode: e.Mode.String(), Chunk: [2]int{64, e.ChunkCols}, Stores: "stmatrix.x4"}
	if e.Out == 4 {
		res.Stores = "st.shared.v2"
	}
	if res.Step, err = e.Follow(at.Modes[0].Value, at.Modes[1].Value); err != nil {
		return res, err
	}
	if res.Swizzled, err = storeCost(e, res.Step.Warp); err != nil {
		return res, err
	}
	if e.Out == 4 {
		e.Staggered = true
		cured, err := storeCost(e, res.Step.Warp)
		if err != nil {
			return res, err
		}
		res.Cured = &cured
	}
	res.Plain, err = storeCost(plain, res.Step.Warp)
	return res, err
}

func storeCost(e tile.Epilogue, warp int) (StoreCost, error) {
	list := e.Stores(warp)
	n, least, err := tile.Cost(list)
	return StoreCost{len(list), n, least}, err
}

// Picture draws the stations of the followed element.
func (r EpilogueResult) Picture() (draw.Picture, error) {
	s := r.Step
	p := draw.Picture{
		Title: fmt.Sprintf("element (%d,%d): accumulator → %s → shared memory → TMA box", s.Row, s.Col, r.Stores),
		Notes: []string{
			fmt.Sprintf("1 · register: warpgroup %d, wgmma block %d, warp %d, lane %d, accumulator %d", s.Warpgroup, s.Block, s.Warp, s.Lane, s.Value),
			r.stored(),
			fmt.Sprintf("3 · shared memory: chunk %d, byte %d, which swizzle %s moves to byte %d, bank %d", s.Chunk, s.Plain, r.Mode, s.Byte, s.Bank),
			fmt.Sprintf("4 · TMA: box of %d × %d from tile row %d, column %d; element (%d,%d) of the box", r.Chunk[0], s.BoxCols, s.BoxRow, s.BoxCol, s.InBoxRow, s.InBoxCol),
			fmt.Sprintf("stores of one warp and chunk: %d instructions, %d wavefronts swizzled, %d plain, %d at least", r.Swizzled.Instructions, r.Swizzled.Wavefronts, r.Plain.Wavefronts, r.Plain.Least),
		},
	}
	if c := r.Cured; c != nil && c.Wavefronts < r.Swizzled.Wavefronts {
		p.Notes = append(p.Notes, fmt.Sprintf("two rows of a phase still share a 16-byte unit; with odd rows storing the block 16 columns away first it takes %d wavefronts", c.Wavefronts))
	}
	p.Rows = [][]draw.Panel{{r.fragment(), r.unit()}, {r.chunk("3 · chunk, row-major", s.Plain, tile.SwizzleNone), r.chunk("3 · chunk, swizzled "+r.Mode, s.Byte, r.Epilogue.Mode)}}
	return p, nil
}

func (r EpilogueResult) stored() string {
	if s := r.Step; r.Epilogue.Out == 2 {
		return fmt.Sprintf("2 · stmatrix.x4 number %d of the warp: matrix %d of the four, whose row is addressed by lane %d", s.Unit, s.Matrix, s.Addresser)
	}
	return fmt.Sprintf("2 · st.shared.v2 by its own lane, columns of unit %d", r.Step.Unit)
}

// fragment is the warp's 16 rows of the 16 columns around the element: who holds what.
func (r EpilogueResult) fragment() draw.Panel {
	s := r.Step
	top, left := s.Row-s.InBoxRow%16, s.Col-s.Col%16
	g := &draw.Grid{RowAxis: "row", ColAxis: "column"}
	for i := range 16 {
		g.RowNames = append(g.RowNames, strconv.Itoa(top+i))
		var row []draw.Cell
		for j := range 16 {
			c := draw.Cell{Shade: draw.None}
			if at, err := r.Epilogue.Follow(top+i, left+j); err == nil {
				c = draw.Cell{Text: fmt.Sprintf("T%d d%d", at.Lane, at.Value), Shade: at.Lane, Mark: top+i == s.Row && left+j == s.Col}
			}
			row = append(row, c)
		}
		g.Cells = append(g.Cells, row)
	}
	for j := range 16 {
		g.ColNames = append(g.ColNames, strconv.Itoa(left+j))
	}
	return draw.Panel{Title: fmt.Sprintf("1 · accumulators of warp %d", s.Warp), Grid: g, Notes: []string{"T lane, d its accumulator register; coloured by lane"}}
}

// unit is the same 16 × 16 block as the store sees it: the matrix and the lane that addresses each row.
func (r EpilogueResult) unit() draw.Panel {
	s := r.Step
	top, left := s.Row-s.InBoxRow%16, s.Col-s.Col%16
	g := &draw.Grid{RowAxis: "row", ColNames: []string{span(left, left+7), span(left+8, left+15)}}
	for i := range 16 {
		g.RowNames = append(g.RowNames, strconv.Itoa(top+i))
		var row []draw.Cell
		for j := range 2 {
			c := draw.Cell{Shade: draw.None}
			if at, err := r.Epilogue.Follow(top+i, left+8*j); err == nil {
				c = draw.Cell{Text: fmt.Sprintf("lane %d → byte %d", at.Addresser, at.Byte), Shade: max(at.Matrix, 0), Mark: top+i == s.Row && (s.Col-left)/8 == j}
			}
			row = append(row, c)
		}
		g.Cells = append(g.Cells, row)
	}
	return draw.Panel{Title: "2 · " + r.Stores + ": address lanes", Grid: g, Notes: []string{"coloured by matrix; a lane names the byte where 8 columns start"}}
}

// chunk is the first 16 rows around the element in units of 16 bytes, as lines of the chunk's width; the element's unit is framed.
func (r EpilogueResult) chunk(title string, at int, mode tile.SwizzleMode) draw.Panel {
	width := r.Epilogue.ChunkCols * r.Epilogue.Out
	top := r.Step.InBoxRow / 8 * 8
	g := &draw.Grid{RowAxis: "row", ColAxis: "byte of the row"}
	for u := 0; u < width; u += 16 {
		g.ColNames = append(g.ColNames, strconv.Itoa(u))
	}
	for line := top; line < top+8; line++ {
		g.RowNames = append(g.RowNames, strconv.Itoa(line))
		var row []draw.Cell
		for u := 0; u < width; u += 16 {
			x := line*width + u
			from := mode.Bytes().Apply(x)
			first := from % width / r.Epilogue.Out
			row = append(row, draw.Cell{Text: fmt.Sprintf("%d:%s", from/width, span(first, first+16/r.Epilogue.Out-1)), Shade: from % width / 16, Mark: at/16 == x/16})
		}
		g.Cells = append(g.Cells, row)
	}
	return draw.Panel{Title: title, Grid: g, Notes: []string{"row:columns of the chunk that lie there; framed: the element"}}
}
