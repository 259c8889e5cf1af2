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

// OperandTile is what a stretch of shared memory holds for wgmma: the layout maps (row along M or N, column along K) to the element's place before the swizzle.
type OperandTile struct {
	Layout  tile.Layout
	Elem    int // bytes of an element
	Swizzle Swizzle
}

// Desc derives the tile's description from its layout, element by element. It refuses a layout that no descriptor can express, and names the first element
// that is out of place.
func (t OperandTile) Desc() (DescLayout, error) {
	o, err := tile.Describe(t.Layout, t.Elem, tile.SwizzleMode(t.Swizzle.Width()))
	if err != nil {
		return DescLayout{}, fmt.Errorf("ptx: %w", err)
	}
	return DescLayout{Swizzle: t.Swizzle, MN: o.MNMajor, Leading: o.Leading, Stride: o.Stride}, nil
}

func (d DescLayout) String() string {
	major := "K-major"
	if d.MN {
		major = "MN-major"
	}
	return fmt.Sprintf("%s, %v, leading %d, stride %d", major, d.Swizzle, d.Leading, d.Stride)
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

// Desc is the descriptor of the tile at a, which must start on a boundary of the swizzle's pattern (8 rows). Build compares it with what a's region is said to
// hold (SharedTile) and with how wgmma reads it; a launch compares it with the tensor maps that fill the region.
func (k *Builder) Desc(a SAddr, d DescLayout) Desc {
	r := U32{a.operand}.Shr(4).And(k.U32(0x3fff)).U64().fields(d.Fields())
	k.descs[r.reg] = described{d, a.operand}
	return r
}

// described is what a descriptor was made from.
type described struct {
	layout DescLayout
	addr   operand
}
