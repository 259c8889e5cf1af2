package tile

import "fmt"

// Operand is a wgmma operand in shared memory as its matrix descriptor says it: what Describe found a layout to be.
type Operand struct {
	Mode    SwizzleMode `json:"mode"`
	MNMajor bool        `json:"mn_major"` // M or N is contiguous; else K
	Leading int         `json:"leading"`  // bytes; 0 where the hardware ignores it
	Stride  int         `json:"stride"`   // bytes
	Steps   []int       `json:"steps"`    // byte offset of each k step, which is what the descriptor's address moves by
}

// kStepBytes is one wgmma's K, in bytes of a K-major row; k16 in 2-byte elements.
const kStepBytes = 32

// OperandLayout is how TMA leaves a tile of rows (of M or N) × k elements: slabs of the mode's width along the contiguous side, each with all of the
// other side packed below one another. It maps (row, k) to elements, before the swizzle. Without swizzle a slab is 16 bytes wide.
func OperandLayout(rows, k, elemBytes int, mode SwizzleMode, mnMajor bool) (Layout, error) {
	if err := mode.check(); err != nil {
		return Layout{}, err
	}
	contiguous, other := k, rows
	if mnMajor {
		contiguous, other = rows, k
	}
	if elemBytes < 1 || int(mode)%elemBytes != 0 || contiguous < 1 || other < 1 || contiguous%(int(mode)/elemBytes) != 0 {
		return Layout{}, fmt.Errorf("tile: operand of %d × %d elements of %d bytes: the contiguous side is not whole slabs of %d bytes", rows, k, elemBytes, int(mode))
	}
	width := int(mode) / elemBytes
	along := Join(Leaf(width, 1), Leaf(contiguous/width, mul(width, other)))
	down := Leaf(other, width)
	if mnMajor {
		return Join(along, down).checked()
	}
	return Join(down, along).checked()
}

// Describe finds the descriptor fields under which wgmma reads a tile as the layout has it: l maps (row of M or N, k) to elements, before the swizzle.
// It refuses layouts that no descriptor describes, and names the element at which they part. (PTX ISA 9.7.15.5.1, "Matrix Descriptor Format";
// canonical forms as in CUTLASS' mma_traits_sm90_gmma.hpp)
func Describe(l Layout, elemBytes int, mode SwizzleMode) (Operand, error) {
	if _, err := l.checked(); err != nil {
		return Operand{}, err
	}
	if err := mode.check(); err != nil {
		return Operand{}, err
	}
	step := kStepBytes / max(elemBytes, 1)
	if l.Rank() != 2 || elemBytes != 1 && elemBytes != 2 && elemBytes != 4 || l.Size() > 1<<20 {
		return Operand{}, fmt.Errorf("tile: operand %v of %d-byte elements: want (rows, k) of at most 2^20 elements of 1, 2 or 4 bytes", l, elemBytes)
	}
	rows, k := l.Mode(0).Size(), l.Mode(1).Size()
	if rows%8 != 0 || k%step != 0 {
		return Operand{}, fmt.Errorf("tile: operand %v: %d rows and %d of K are not whole groups of 8 and steps of %d", l, rows, k, step)
	}
	o := Operand{Mode: mode, MNMajor: l.At(0, 1)-l.At(0, 0) != 1}
	if o.MNMajor && elemBytes != 2 {
		return Operand{}, fmt.Errorf("tile: operand %v has M or N contiguous, which wgmma reads only of 2-byte elements, not of %d", l, elemBytes)
	}
	for from := 0; from < k; from += step {
		o.Steps = append(o.Steps, l.At(0, from)*elemBytes)
	}
	f := operandForm{mode: mode, elem: elemBytes, rows: rows, step: step}
	f.measure(l, &o)
	return o, f.verify(l, o)
}

// operandForm is the canonical placement that the hardware assumes within one k step.
type operandForm struct {
	mode             SwizzleMode
	elem, rows, step int
}

// measure reads leading and stride off the layout, in bytes. What a tile is too small to need stays at its packed value.
func (f operandForm) measure(l Layout, o *Operand) {
	width := int(f.mode)
	at := func(row, k, packed int) int {
		if row < f.rows && k < l.Mode(1).Size() {
			return (l.At(row, k) - l.At(0, 0)) * f.elem
		}
		return packed
	}
	switch {
	case !o.MNMajor && f.mode != SwizzleNone:
		o.Stride = at(8, 0, 8*width)
	case !o.MNMajor:
		o.Stride, o.Leading = at(8, 0, 8*width), at(0, 16/f.elem, f.rows*width)
	case f.mode != SwizzleNone:
		o.Stride, o.Leading = at(0, 8, 8*width), at(width/f.elem, 0, l.Mode(1).Size()*width)
	default: // without swizzle the two change their roles
		o.Leading, o.Stride = at(0, 8, 8*width), at(8, 0, 8*width)
	}
}

// place is the byte, before the swizzle, at which the hardware looks for an element of a k step.
func (f operandForm) place(o Operand, row, k int) int {
	width := int(f.mode)
	switch {
	case !o.MNMajor && f.mode != SwizzleNone:
		return row%8*width + row/8*o.Stride + k*f.elem
	case !o.MNMajor:
		return row%8*16 + row/8*o.Stride + k*f.elem/16*o.Leading + k*f.elem%16
	case f.mode != SwizzleNone:
		return row*f.elem%width + row*f.elem/width*o.Leading + k%8*width + k/8*o.Stride
	}
	return row%8*f.elem + row/8*o.Stride + k%8*16 + k/8*o.Leading
}

func (f operandForm) verify(l Layout, o Operand) error {
	for _, x := range []int{o.Leading, o.Stride} {
		if x%16 != 0 || x>>4 >= 1<<14 {
			return fmt.Errorf("tile: operand %v: a distance of %d bytes is not a multiple of 16 below 262144", l, x)
		}
	}
	for i, start := range o.Steps {
		if start%16 != 0 {
			return fmt.Errorf("tile: operand %v: k step %d starts at byte %d, want a multiple of 16", l, i, start)
		}
		// In a swizzled K-major row the steps lie side by side; the hardware swizzles whole addresses, so that a step may start inside the atom's first row.
		if f.mode != SwizzleNone && start%f.mode.Atom() >= int(f.mode) && !o.MNMajor {
			return fmt.Errorf("tile: operand %v: k step %d starts at byte %d, not in the first row of a swizzle atom of %d", l, i, start, f.mode.Atom())
		}
		for row := range f.rows {
			for k := range f.step {
				if got, want := l.At(row, i*f.step+k)*f.elem, start+f.place(o, row, k); got != want {
					return fmt.Errorf("tile: operand %v, swizzle %v: element (%d,%d) lies at byte %d, where a descriptor with leading %d and stride %d reads byte %d",
						l, f.mode, row, i*f.step+k, got, o.Leading, o.Stride, want)
				}
			}
		}
	}
	return nil
}

// Fields are the descriptor's bits without the address: leading and stride in units of 16 bytes, and the mode. (PTX ISA, "Matrix Descriptor Format")
func (o Operand) Fields() uint64 {
	leading := uint64(o.Leading) >> 4
	if leading == 0 {
		leading = 1 // ignored; 1 by convention
	}
	return leading<<16 | uint64(o.Stride)>>4<<32 | uint64(o.Mode.Descriptor())<<62
}
