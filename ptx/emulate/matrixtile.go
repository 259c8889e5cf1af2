package emulate

import (
	"fmt"
	"iter"

	"heddle/ptx"
)

// matrixTile is a matrix operand in shared memory as its descriptor sees it. (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout)
type matrixTile struct {
	desc uint64
	mn   bool // M or N is contiguous, not K
	form form
}

// unit is 16 contiguous bytes of a tile. K-major: row along M or N, col the 16-byte piece along K. MN-major: row along K, col the piece along M or N.
type unit struct{ row, col int }

// units are those that hold rows first … first+rows−1 along M or N.
func (t matrixTile) units(first, rows int) iter.Seq[unit] {
	return func(yield func(unit) bool) {
		r0, r1, c0, c1 := first, first+rows, 0, 2
		if t.mn {
			r0, r1, c0, c1 = 0, t.form.k, first/t.form.unit, (first+rows)/t.form.unit
		}
		for r := r0; r < r1; r++ {
			for c := c0; c < c1; c++ {
				if !yield(unit{r, c}) {
					return
				}
			}
		}
	}
}

// offset is where a unit lies, in bytes from the start of dynamic shared memory; the swizzle is of absolute addresses.
func (t matrixTile) offset(u unit) int {
	start, leading, stride := int(t.desc&0x3fff)<<4, int(t.desc>>16&0x3fff)<<4, int(t.desc>>32&0x3fff)<<4
	mode := [...]ptx.Swizzle{ptx.SwizzleNone, ptx.Swizzle128, ptx.Swizzle64, ptx.Swizzle32}[t.desc>>62]
	width := mode.Width()
	addr := start
	switch {
	case mode == ptx.SwizzleNone: // core matrices of 8 rows × 16 bytes
		addr += u.row/8*stride + u.row%8*16 + u.col*leading
		if t.mn {
			addr = start + u.row/8*leading + u.row%8*16 + u.col*stride
		}
	case t.mn:
		per := width / 16 // units in a chunk's row
		addr += u.col/per*leading + u.row/8*stride + u.row%8*width + u.col%per*16
	default:
		addr += u.row/8*stride + u.row%8*width + u.col*16
	}
	return int(mode.Apply(uint32(addr))) - sharedBase
}

// alongK is the coordinate along K of the tile's first unit.
func (t matrixTile) alongK(o origin) int {
	switch {
	case o.tensor == 0:
		return unknownK
	case t.mn:
		return int(o.y)
	}
	return int(o.x)
}

// back is where row 0 came from when row first came from o.
func (t matrixTile) back(o origin, first int) origin {
	switch {
	case o.tensor == 0:
	case t.mn:
		o.x -= int32(first)
	default:
		o.y -= int32(first)
	}
	return o
}

// expected is where unit u should have come from, when the first unit of the rows checked came from o.
func (t matrixTile) expected(o origin, u unit, first int) origin {
	if o.tensor == 0 {
		return origin{}
	}
	if t.mn {
		return origin{o.tensor, o.x + int32((u.col-first/t.form.unit)*t.form.unit), o.y + int32(u.row)}
	}
	return origin{o.tensor, o.x + int32(u.col*t.form.unit), o.y + int32(u.row-first)}
}

func coords(o origin) string { return fmt.Sprintf("[%d,%d]", o.y, o.x) }

// decodeTile gives the tile's elements, rows along M or N, K contiguous.
func decodeTile(dst []float32, t *cta, x matrixTile, rows int) []float32 {
	k, n := x.form.k, x.form.unit
	if cap(dst) < rows*k {
		dst = make([]float32, rows*k)
	}
	dst = dst[:rows*k]
	var piece [16]float32
	for u := range x.units(0, rows) {
		off := x.offset(u)
		if off < 0 || off+16 > len(t.mem) {
			continue // reported when it was issued
		}
		if !x.mn {
			x.form.decode(dst[u.row*k+u.col*n:][:n], t.mem[off:off+16])
			continue
		}
		x.form.decode(piece[:n], t.mem[off:off+16])
		for i := range n {
			dst[(u.col*n+i)*k+u.row] = piece[i]
		}
	}
	return dst
}
