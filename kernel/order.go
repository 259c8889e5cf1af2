package kernel

import "heddle/ptx"

// Order is the sequence in which tiles of the output are visited. Neighbours in time should share rows of A and columns of B in L2.
type Order struct {
	// Group is the height, in cluster tiles, of the strips that the output is cut into; a strip is walked column by column. 0: one strip, plain raster.
	Group int
	// Serpentine walks every second strip backwards.
	Serpentine bool
	// Table takes the places from memory, any path: what At and Tile give is not used.
	Table bool
}

// Entry is a tile's place as a table holds it.
func Entry(row, col int) uint32 { return uint32(row)<<16 | uint32(col) }

// At is the place of tile t, as Tile computes it on the device; m, n are the numbers of tiles along M and N.
func (o Order) At(t, m, n int) (row, col int) {
	if o.Group == 0 {
		return t % m, t / m
	}
	strip := t / (n * o.Group)
	rest := t - strip*n*o.Group
	height := min(m-strip*o.Group, o.Group)
	col = rest / height
	row = strip*o.Group + rest - col*height
	if o.Serpentine && strip%2 == 1 {
		col = n - 1 - col
	}
	return row, col
}

// Tile is the place of tile t of m × n.
func (o Order) Tile(k *ptx.Builder, t, m, n ptx.U32) (row, col ptx.U32) {
	if o.Group == 0 {
		col = t.Div(m)
		return t.Sub(col.Mul(m)), col
	}
	area := n.Times(o.Group)
	strip := t.Div(area)
	rest := t.Sub(strip.Mul(area))
	top := strip.Times(o.Group)
	height := m.Sub(top).Min(k.U32(o.Group))
	col = rest.Div(height)
	row = top.Add(rest.Sub(col.Mul(height)))
	if o.Serpentine {
		back := strip.And(k.U32(1)).Ne(k.U32(0))
		col = back.SelectU32(n.Sub(k.U32(1)).Sub(col), col)
	}
	return row, col
}
