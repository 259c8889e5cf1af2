package elem

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Box copies a box of up to five dims from one packed tensor into another, or adds it:
//
//	for each index (i₀ … i₃, j) of the box { dst[dst₀ + Σ iₖ·dstStep[k] + j] (+)= src[src₀ + Σ iₖ·srcStep[k] + j] }
//
// The last dim lies packed on both sides.
type Box struct {
	Config BoxConfig
	Entry  *ptx.Entry

	dst, src         ptx.ParamPtr
	dstStep, srcStep [boxDims]ptx.ParamU32 // in accesses
	size             [boxDims]ptx.ParamU32
	row, n           ptx.ParamU32 // accesses of a row, and in all
}

const boxDims = 4 // outer ones

// BoxConfig chooses the kernel.
type BoxConfig struct {
	Type num.DType // I32 travels as F32: bits are not changed
	Wide bool      // rows, their starts and steps are multiples of kernel.Wide elements and of 16 bytes
	Add  bool
}

// NewBox builds the kernel.
func NewBox(c BoxConfig) (*Box, error) {
	name := "box_" + c.Type.String()
	if !c.Wide {
		name += "_narrow"
	}
	if c.Add {
		name += "_add"
	}
	k := ptx.New(name, threads, 1)
	b := &Box{Config: c, dst: k.ParamPtr("dst"), src: k.ParamPtr("src"), row: k.ParamU32("row"), n: k.ParamU32("n")}
	for d := range boxDims {
		b.size[d], b.dstStep[d], b.srcStep[d] = k.ParamU32(fmt.Sprintf("size%d", d)), k.ParamU32(fmt.Sprintf("dst%d", d)), k.ParamU32(fmt.Sprintf("src%d", d))
	}
	width := b.width()
	i := k.CTAIndex().Times(threads).Add(k.Tid())
	k.If(i.Lt(b.n.U32), func() {
		rest := i.Div(b.row.U32)
		to := i.Sub(rest.Mul(b.row.U32))
		from := to
		for d := boxDims - 1; d >= 0; d-- {
			up := rest.Div(b.size[d].U32)
			at := rest.Sub(up.Mul(b.size[d].U32))
			to, from, rest = at.Mad(b.dstStep[d].U32, to), at.Mad(b.srcStep[d].U32, from), up
		}
		bytes := k.U32(width * c.Type.Size())
		dst := b.dst.At(to.MulWide(bytes))
		x := kernel.LoadSpan(k, c.Type, b.src.At(from.MulWide(bytes)), width)
		if c.Add {
			for j, y := range kernel.LoadSpan(k, c.Type, dst, width) {
				x[j] = y.Add(x[j])
			}
		}
		kernel.StoreSpan(k, c.Type, dst, x)
	})
	var err error
	b.Entry, err = k.Build()
	return b, err
}

func (b *Box) width() int {
	if b.Config.Wide {
		return kernel.Wide
	}
	return 1
}

// BoxShape is a box between two packed tensors: sizes of the tensors and of the box, and its corners in them, all of one length up to five. Offsets are added to
// the places of a launch, in elements.
type BoxShape struct {
	Row              int // elements that lie packed on both sides
	Size             [boxDims]int
	DstStep, SrcStep [boxDims]int // elements
	DstAt, SrcAt     int          // elements
}

// ShapeOf joins what lies packed on both sides into rows. Its second result is false where more than five dims are left.
func ShapeOf(dst, src, box, dstLo, srcLo []int) (s BoxShape, ok bool) {
	n := len(box)
	s = BoxShape{Row: 1, Size: [boxDims]int{1, 1, 1, 1}}
	dstStep, srcStep := make([]int, n+1), make([]int, n+1)
	dstStep[n], srcStep[n] = 1, 1
	for d := n - 1; d >= 0; d-- {
		dstStep[d], srcStep[d] = dstStep[d+1]*dst[d], srcStep[d+1]*src[d]
		s.DstAt += dstLo[d] * dstStep[d+1]
		s.SrcAt += srcLo[d] * srcStep[d+1]
	}
	d := n - 1
	for ; d >= 0 && s.Row == dstStep[d+1] && s.Row == srcStep[d+1]; d-- {
		s.Row *= box[d]
	}
	for at := boxDims - 1; d >= 0; d, at = d-1, at-1 {
		if at < 0 {
			return s, false
		}
		s.Size[at], s.DstStep[at], s.SrcStep[at] = box[d], dstStep[d+1], srcStep[d+1]
	}
	return s, true
}

// Wide tells whether a wide kernel can copy the box between elements of a size.
func (s BoxShape) Wide() bool {
	for d := range boxDims {
		if s.Size[d] > 1 && (s.DstStep[d]%kernel.Wide != 0 || s.SrcStep[d]%kernel.Wide != 0) {
			return false
		}
	}
	return s.Row%kernel.Wide == 0 && s.DstAt%kernel.Wide == 0 && s.SrcAt%kernel.Wide == 0
}

// Launch describes the launch.
func (b *Box) Launch(dst, src kernel.Place, s BoxShape) (ptx.Launch, *ptx.Args, error) {
	n, size, width := s.Row, b.Config.Type.Size(), b.width()
	for _, d := range s.Size {
		n *= d
	}
	if b.Config.Wide && (!s.Wide() || !dst.Aligned() || !src.Aligned()) || n < 1 || n/width >= 1<<31 {
		return ptx.Launch{}, nil, fmt.Errorf("elem: %s cannot take %+v from byte %d to %d", b.Entry.Name, s, src.Offset, dst.Offset)
	}
	a := b.Entry.NewArgs()
	b.dst.Put(a, dst.Buffer, dst.Offset+s.DstAt*size)
	b.src.Put(a, src.Buffer, src.Offset+s.SrcAt*size)
	for d := range boxDims {
		b.size[d].Put(a, uint32(s.Size[d]))
		b.dstStep[d].Put(a, uint32(s.DstStep[d]/width))
		b.srcStep[d].Put(a, uint32(s.SrcStep[d]/width))
	}
	b.row.Put(a, uint32(s.Row/width))
	b.n.Put(a, uint32(n/width))
	return ptx.Launch{Entry: b.Entry.Name, Grid: ptx.Dim3{X: (n/width + threads - 1) / threads}}, a, nil
}

// Module is the kernel alone.
func (b *Box) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{b.Entry}} }
