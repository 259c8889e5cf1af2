package ptx

import (
	"fmt"

	"heddle/tile"
)

// DescLayout says how an operand tile of wgmma lies in shared memory. (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout)
type DescLayout struct {
	Swizzle Swizzle
	MN      bool // the tile's M or N dim is contiguous; else K is
	Leading int  // bytes: MN-major: from one swizzle-wide chunk to the next; K-major without swizzle: from one 16-byte column to the next
	Stride  int  // bytes from one group of 8 rows to the next
}

// KMajor is a tile whose rows of K lie packed, one swizzle width each.
func KMajor(s Swizzle) DescLayout { return DescLayout{Swizzle: s, Stride: 8 * s.Width()} }

// MNMajor is a tile cut into chunks of one swizzle width along M or N, each chunk depth rows of K deep.
func MNMajor(s Swizzle, depth int) DescLayout {
	return DescLayout{Swizzle: s, MN: true, Leading: depth * s.Width(), Stride: 8 * s.Width()}
}

// DescOf finds the description of a tile from its layout: l maps (row along M or N, column along K) to the element's place before the swizzle, in elements of
// elemBytes. It refuses a layout that no descriptor can express, and names the first element that is out of place.
func DescOf(l tile.Layout, elemBytes int, s Swizzle) (DescLayout, error) {
	if l.Rank() != 2 || s == SwizzleNone || elemBytes < 1 || s.Width()%elemBytes != 0 {
		return DescLayout{}, fmt.Errorf("ptx: descriptor of %v, elements of %d bytes, %v: want a layout of two modes and a swizzle", l, elemBytes, s)
	}
	rows, cols := l.Mode(0).Size(), l.Mode(1).Size()
	at := func(r, c int) int { return elemBytes * l.At(r, c) }
	d := DescLayout{Swizzle: s}
	switch {
	case cols > 1 && at(0, 1) == elemBytes:
		if rows > 8 {
			d.Stride = at(8, 0)
		}
	case rows > 1 && at(1, 0) == elemBytes:
		d.MN = true
		if cols > 8 {
			d.Stride = at(0, 8)
		}
		if wide := s.Width() / elemBytes; rows > wide {
			d.Leading = at(wide, 0)
		}
	default:
		return d, fmt.Errorf("ptx: descriptor of %v: neither mode has neighbours side by side", l)
	}
	for r := range rows {
		for c := range cols {
			if got, want := at(r, c), d.place(r, c, elemBytes); got != want {
				return d, fmt.Errorf("ptx: descriptor of %v under %v: element (%d,%d) lies at byte %d, want %d", l, s, r, c, got, want)
			}
		}
	}
	return d, nil
}

// place is where the hardware looks for element (row, col), in bytes, before the swizzle.
func (d DescLayout) place(row, col, elemBytes int) int {
	width := d.Swizzle.Width()
	if d.MN {
		per := width / elemBytes
		return row/per*d.Leading + col/8*d.Stride + col%8*width + row%per*elemBytes
	}
	// Beyond one swizzle width the k step is the descriptor's start address, not its layout.
	return row/8*d.Stride + row%8*width + col*elemBytes
}

// Fields are the descriptor's bits without the address.
func (d DescLayout) Fields() uint64 {
	leading := uint64(1) // ignored for swizzled K-major tiles; 1 by convention
	if d.Leading > 0 {
		leading = uint64(d.Leading) >> 4 & 0x3fff
	}
	mode := [...]uint64{0, 3, 2, 1}[d.Swizzle] // none, 32, 64, 128: the reverse of the tensor map's order
	return leading<<16 | uint64(d.Stride)>>4&0x3fff<<32 | mode<<62
}

// SpliceB says that operand B of the kernel's products is put together: every so many rows it may come from somewhere else. Without it the emulator insists that
// all rows of an operand be consecutive rows of one tensor.
func (k *Builder) SpliceB(rows int) { k.spliced = rows }

// ShiftB says that operand B of the kernel's products may lie elsewhere along K than A does: one of several matrices behind each other. Without it the emulator insists
// that the operands meet.
func (k *Builder) ShiftB() { k.shifted = true }

// Desc is the descriptor of the tile at a, which must start on a boundary of the swizzle's pattern (8 rows).
func (k *Builder) Desc(a SAddr, d DescLayout) Desc {
	return U32{a.operand}.Shr(4).And(k.U32(0x3fff)).U64().fields(d.Fields())
}
