package tile

import "fmt"

// Buffer is a row-major tile in shared memory: Rows of RowBytes bytes, which lie Pitch bytes apart.
type Buffer struct {
	Rows, RowBytes, Pitch int
}

// Pattern names the way in which a warp goes over a buffer.
type Pattern string

// Patterns. Lanes run along a row first, or down a column first; or they are the row addresses of ldmatrix and stmatrix .x4, lanes 8i to 8i+7 for
// matrix i, the four matrices of a 16 × 16 block of 2-byte elements in the order (0,0), (8,0), (0,8), (8,8).
const (
	AlongRows   Pattern = "rows"
	DownColumns Pattern = "columns"
	MatrixX4    Pattern = "matrix"
)

// Patterns lists them.
func Patterns() []Pattern { return []Pattern{AlongRows, DownColumns, MatrixX4} }

// maxAccesses bounds what one buffer may be cut into.
const maxAccesses = 1 << 12

// Accesses lists the warp instructions that cover the buffer once by the pattern, width bytes a lane (16 for MatrixX4). The last may have lanes off.
func (b Buffer) Accesses(p Pattern, width int) ([]Access, error) {
	if p == MatrixX4 {
		width = 16
	}
	switch {
	case b.Rows < 1 || b.RowBytes < 1 || b.Pitch < b.RowBytes || width < 1 || b.RowBytes%width != 0 || b.Pitch%width != 0:
		return nil, fmt.Errorf("tile: buffer of %d rows × %d bytes, pitch %d, by %d bytes: want whole pieces in every row", b.Rows, b.RowBytes, b.Pitch, width)
	case mul(b.Rows, b.RowBytes/width) > maxAccesses*Lanes:
		return nil, fmt.Errorf("tile: buffer of %d rows × %d bytes: too many accesses, at most %d", b.Rows, b.RowBytes, maxAccesses)
	}
	pieces := b.RowBytes / width
	at := func(row, piece int) int { return row*b.Pitch + piece*width }
	var order []int
	switch p {
	case AlongRows:
		for i := range b.Rows * pieces {
			order = append(order, at(i/pieces, i%pieces))
		}
	case DownColumns:
		for i := range b.Rows * pieces {
			order = append(order, at(i%b.Rows, i/b.Rows))
		}
	case MatrixX4:
		if b.Rows%16 != 0 || pieces%2 != 0 {
			return nil, fmt.Errorf("tile: buffer of %d rows × %d bytes: matrix.x4 wants blocks of 16 rows × 32 bytes", b.Rows, b.RowBytes)
		}
		for i := range b.Rows * pieces {
			lane, block := i%Lanes, i/Lanes
			row, piece := lane%16, lane/16
			order = append(order, at(block%(b.Rows/16)*16+row, block/(b.Rows/16)*2+piece))
		}
	default:
		return nil, fmt.Errorf("tile: unknown access pattern %q; hint: one of %v", p, Patterns())
	}
	return warps(order, width), nil
}

func warps(addr []int, width int) []Access {
	var out []Access
	for i, x := range addr {
		if i%Lanes == 0 {
			out = append(out, Access{Width: width})
			for lane := range Lanes {
				out[len(out)-1].Addr[lane] = -1
			}
		}
		out[len(out)-1].Addr[i%Lanes] = x
	}
	return out
}

// Rotated is ADD swizzling: row r is turned right by r units, within rows of a power of two. Like XOR it is a bijection of each row, but it
// takes an add and a mask where XOR takes one LOP3, it is not its own inverse, and neither TMA nor wgmma knows it.
func (b Buffer) Rotated(a Access, unit int) Access {
	for lane, x := range a.Addr {
		if x >= 0 {
			row, col := x/b.Pitch, x%b.Pitch
			a.Addr[lane] = row*b.Pitch + (col+row*unit)%b.Pitch
		}
	}
	return a
}

// Padded moves the rows pad bytes further apart. It costs Rows·pad bytes, and TMA and wgmma cannot use it.
func (b Buffer) Padded(a Access, pad int) Access {
	for lane, x := range a.Addr {
		if x >= 0 {
			a.Addr[lane] = x + x/b.Pitch*pad
		}
	}
	return a
}
