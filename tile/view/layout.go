package view

import (
	"fmt"
	"strconv"
	"strings"

	"heddle/tile"
	"heddle/tile/draw"
)

// maxListed bounds the offsets that a result lists.
const maxListed = 1 << 16

// LayoutRequest names a layout: layouts to compose, operations on the result, a swizzle; or an atom's thread-value map.
type LayoutRequest struct {
	Layouts []string // a, b, c means a∘b∘c; the first may be "Sw<3,4,3> o 0 o …"
	Do      []string // "coalesce", "complement 64", "divide 4:2", … in order
	Swizzle string   // B,M,S applied to the offsets
	Atom    string   // "wgmma/n16/bf16/C", "mma/k16/bf16/A", "matrix/x4/memory"
	Tile    string   // rows × columns of the tile that a thread-value layout maps into, "16x8"
}

// LayoutResult is what a layout is, and where everything lies.
type LayoutResult struct {
	Text      string        `json:"text"`
	Layout    tile.Layout   `json:"layout"`
	Swizzle   *tile.Swizzle `json:"swizzle,omitempty"`
	Offset    int           `json:"offset"` // of coordinate 0, where a slice fixed the others
	Size      int           `json:"size"`
	Cosize    int           `json:"cosize"`
	Injective bool          `json:"injective"` // no two coordinates share an offset
	Coalesced string        `json:"coalesced"`
	Table     [][]int       `json:"table"` // [mode 0][the other modes]: offsets
	TileRows  int           `json:"tile_rows,omitempty"`
	TileCols  int           `json:"tile_cols,omitempty"`
	title     string
}

// Layout works out a request.
func Layout(r LayoutRequest) (LayoutResult, error) {
	l, title, err := r.layout()
	if err != nil {
		return LayoutResult{}, err
	}
	var outer tile.Composed // swizzle and offset in front of the first layout
	if len(r.Layouts) > 0 {
		if outer, err = tile.ParseComposed(r.Layouts[0]); err != nil {
			return LayoutResult{}, err
		}
	}
	offset := outer.Offset
	for _, do := range r.Do {
		if offset != 0 {
			return LayoutResult{}, fmt.Errorf("tile: %q on a layout that starts at offset %d; hint: slice last", do, offset)
		}
		if l, offset, err = operate(l, do); err != nil {
			return LayoutResult{}, err
		}
		title += ", " + do
	}
	res := LayoutResult{Text: l.String(), Layout: l, Offset: offset, Size: l.Size(), Cosize: l.Cosize(), Coalesced: l.Coalesce().String(), title: title}
	if r.Tile != "" {
		if res.TileRows, res.TileCols, err = pair("tile", r.Tile); err != nil {
			return LayoutResult{}, err
		}
	} else if r.Atom != "" && len(r.Do) == 0 {
		res.TileRows, res.TileCols = atomTile(r.Atom, l)
	}
	offsets, err := l.Table(maxListed)
	if err != nil {
		return LayoutResult{}, err
	}
	if res.Swizzle, err = r.swizzle(outer.Swizzle); err != nil {
		return LayoutResult{}, err
	}
	res.fill(offsets)
	return res, nil
}

// swizzle is the one asked for, in front of the first layout or by itself; nil if none is.
func (r LayoutRequest) swizzle(outer tile.Swizzle) (*tile.Swizzle, error) {
	none := outer == tile.Swizzle{}
	switch {
	case r.Swizzle == "" && none:
		return nil, nil
	case r.Swizzle == "":
		return &outer, nil
	case !none:
		return nil, fmt.Errorf("tile: two swizzles, %v and %s; hint: give one", outer, r.Swizzle)
	}
	s, err := tile.ParseSwizzle(r.Swizzle)
	return &s, err
}

// fill completes the result from the layout's own offsets.
func (r *LayoutResult) fill(offsets []int) {
	place := tile.Composed{Offset: r.Offset, Layout: r.Layout}
	switch {
	case r.Swizzle != nil:
		place.Swizzle = *r.Swizzle
		r.Text = place.String()
	case r.Offset != 0:
		r.Text = fmt.Sprintf("%d + %v", r.Offset, r.Layout)
	}
	rows := 1
	if r.Layout.Rank() > 1 {
		rows = r.Layout.Mode(0).Size()
	}
	r.Table = make([][]int, rows)
	for i, x := range offsets {
		offsets[i] = place.Swizzle.Apply(r.Offset + x)
		r.Table[i%rows] = append(r.Table[i%rows], offsets[i])
	}
	r.Injective = distinct(offsets)
}

func (r LayoutRequest) layout() (l tile.Layout, title string, err error) {
	switch {
	case r.Atom != "" && len(r.Layouts) > 0:
		return l, "", fmt.Errorf("tile: an atom and %d layouts; hint: give one or the other", len(r.Layouts))
	case r.Atom != "":
		l, err = atom(r.Atom)
		return l, r.Atom, err
	case len(r.Layouts) == 0:
		return l, "", fmt.Errorf("tile: no layout; hint: (8,(2,4)):(2,(1,16)), or --atom wgmma/n16/bf16/C")
	}
	for i := len(r.Layouts) - 1; i >= 0; i-- { // a∘(b∘c): the innermost first
		m, err := tile.ParseComposed(r.Layouts[i])
		if err != nil {
			return l, "", err
		}
		if i > 0 && (m.Offset != 0 || m.Swizzle != tile.Swizzle{}) {
			return l, "", fmt.Errorf("tile: %s inside a composition; hint: swizzle and offset belong in front of the first layout", r.Layouts[i])
		}
		if i == len(r.Layouts)-1 {
			l = m.Layout
		} else if l, err = tile.Compose(m.Layout, l); err != nil {
			return l, "", err
		}
	}
	return l, strings.Join(r.Layouts, " ∘ "), nil
}

// operate applies one operation, "name argument". A slice also has an offset.
func operate(l tile.Layout, do string) (_ tile.Layout, offset int, err error) {
	name, arg, _ := strings.Cut(strings.TrimSpace(do), " ")
	switch name {
	case "coalesce":
		l = l.Coalesce()
	case "filter":
		l = l.Filter()
	case "right-inverse":
		l, err = l.RightInverse()
	case "left-inverse":
		l, err = l.LeftInverse()
	case "tiled":
		l, err = l.Tiled()
	case "complement":
		var n int
		if n, err = strconv.Atoi(strings.TrimSpace(arg)); err != nil {
			return l, 0, fmt.Errorf("tile: complement in %q, want a size", arg)
		}
		l, err = l.Complement(n)
	case "slice":
		var coord tile.Tuple
		if coord, err = tile.ParseTuple(arg); err == nil {
			l, offset, err = l.Slice(coord)
		}
	case "divide", "product":
		var b tile.Layout
		if b, err = tile.Parse(arg); err == nil {
			l, err = map[string]func(a, b tile.Layout) (tile.Layout, error){"divide": tile.Layout.Divide, "product": tile.Layout.Product}[name](l, b)
		}
	case "compose-modes", "divide-modes", "product-modes", "zipped-divide", "zipped-product":
		var t tile.Tiler
		if t, err = tiler(arg); err == nil {
			l, err = map[string]func(tile.Layout, tile.Tiler) (tile.Layout, error){
				"compose-modes": tile.Layout.ComposeModes, "divide-modes": tile.Layout.DivideModes, "product-modes": tile.Layout.ProductModes,
				"zipped-divide": tile.Layout.ZippedDivide, "zipped-product": tile.Layout.ZippedProduct}[name](l, t)
		}
	default:
		err = fmt.Errorf("tile: unknown operation %q; hint: coalesce, filter, right-inverse, left-inverse, tiled, complement N, slice COORD, divide LAYOUT, "+
			"product LAYOUT, or compose-modes, divide-modes, product-modes, zipped-divide, zipped-product with sizes (A,_,B)", name)
	}
	return l, offset, err
}

// tiler reads "(4,_,8)".
func tiler(arg string) (tile.Tiler, error) {
	sizes, err := tile.ParseTuple(arg)
	if err != nil {
		return nil, err
	}
	var t tile.Tiler
	for _, m := range sizes.Modes {
		switch {
		case m.Modes != nil:
			return nil, fmt.Errorf("tile: tiler %v is nested; hint: one size a mode, (4,_,8)", sizes)
		case m.Free:
			t = append(t, tile.Layout{})
		default:
			t = append(t, tile.Leaf(m.Value, 1))
		}
	}
	return t, nil
}

func distinct(offsets []int) bool {
	seen := make(map[int]bool, len(offsets))
	for _, x := range offsets {
		if seen[x] {
			return false
		}
		seen[x] = true
	}
	return true
}

// Picture draws offsets by coordinate; with a tile, who holds each of its elements.
func (r LayoutResult) Picture() (draw.Picture, error) {
	p := draw.Picture{Title: r.title, Notes: []string{
		r.Text,
		fmt.Sprintf("size %d, cosize %d, coalesced %s%s", r.Size, r.Cosize, r.Coalesced, map[bool]string{true: ", every offset once", false: ", offsets repeat"}[r.Injective]),
	}}
	if r.TileRows > 0 {
		panel, err := r.holders()
		p.Rows = [][]draw.Panel{{panel}}
		return p, err
	}
	if err := drawable(len(r.Table), len(r.Table[0])); err != nil {
		return p, err
	}
	g := &draw.Grid{RowAxis: "mode 0", ColAxis: "the other modes", Cells: make([][]draw.Cell, len(r.Table))}
	if len(r.Table) == 1 {
		g.RowAxis, g.ColAxis = "", "coordinate"
	}
	run := (r.Cosize-1)/draw.Shades + 1
	for i, row := range r.Table {
		for _, x := range row {
			g.Cells[i] = append(g.Cells[i], draw.Cell{Text: strconv.Itoa(x), Shade: x / run})
		}
	}
	p.Rows = [][]draw.Panel{{{Grid: g, Notes: []string{fmt.Sprintf("A cell is an offset; its colour changes every %d offsets.", run)}}}}
	return p, nil
}

// holders draws the tile, each element with the thread and value that hold it.
func (r LayoutResult) holders() (draw.Panel, error) {
	rows, cols := r.TileRows, r.TileCols
	if err := drawable(rows, cols); err != nil {
		return draw.Panel{}, err
	}
	g := &draw.Grid{RowAxis: "row", ColAxis: "column", Cells: make([][]draw.Cell, rows)}
	for i := range g.Cells {
		g.Cells[i] = make([]draw.Cell, cols)
		for j := range g.Cells[i] {
			g.Cells[i][j].Shade = draw.None
		}
	}
	for thread, values := range r.Table {
		for value, x := range values {
			if x >= rows*cols {
				return draw.Panel{}, fmt.Errorf("tile: thread %d value %d is element %d, outside a tile of %d × %d", thread, value, x, rows, cols)
			}
			c := &g.Cells[x%rows][x/rows]
			switch {
			case c.Text == "":
				*c = draw.Cell{Text: fmt.Sprintf("T%d V%d", thread, value), Shade: thread}
			case !strings.HasSuffix(c.Text, "…"):
				c.Text += "…"
			}
		}
	}
	return draw.Panel{Grid: g, Notes: []string{"T thread, V value (its register or part of one); colours repeat every 8 threads; … held by others too."}}, nil
}
