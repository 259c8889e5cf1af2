package row

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Loss is cross entropy over logits [Rows, Cols] of which the first Valid columns are words lo … lo+Valid−1 of the vocabulary, in the pieces that a vocabulary cut
// over ranks reduces between: all arithmetic is float32, and no second copy of the logits is made.
//
//	Max:  m[i] = max_{j<valid} x[i,j]
//	Sums: s[i,0] = Σ_{j<valid} exp(x[i,j] − m[i]); s[i,1] = x[i,label] − m[i], 0 where the label is none of these words
//	Back: x[i,j] = (exp(x[i,j] − m[i]) ÷ s[i,0] − (j = label))·mask[i] ÷ count in place, 0 in columns from valid on
type Loss struct {
	Config LossConfig
	Entry  *ptx.Entry

	x, m, sums, labels, mask, count ptx.ParamPtr
	rows, cols, valid, lo           ptx.ParamU32
}

// LossConfig chooses the kernel.
type LossConfig struct {
	Piece Piece
	Type  num.DType // of the logits; everything else is float32
	Wide  bool      // rows start at multiples of 16 bytes
}

// Piece is one of the three kernels of a Loss.
type Piece uint8

const (
	Max Piece = iota
	Sums
	Back
)

func (p Piece) String() string { return [...]string{"max", "sums", "back"}[p] }

// NewLoss builds the kernel: a CTA a row.
func NewLoss(c LossConfig) (*Loss, error) {
	name := fmt.Sprintf("loss_%v_%v", c.Piece, c.Type)
	if !c.Wide {
		name += "_narrow"
	}
	k := ptx.New(name, threads, 1)
	l := &Loss{Config: c, x: k.ParamPtr("x"), m: k.ParamPtr("m"), rows: k.ParamU32("rows"), cols: k.ParamU32("cols"), valid: k.ParamU32("valid")}
	if c.Piece != Max {
		l.sums, l.labels, l.lo = k.ParamPtr("sums"), k.ParamPtr("labels"), k.ParamU32("lo")
	}
	if c.Piece == Back {
		l.mask, l.count = k.ParamPtr("mask"), k.ParamPtr("count")
	}
	way := newLong(k, c.Type, c.Wide)
	k.For(k.CTAIndex(), l.rows.U32, k.NumCTAs(), func(row ptx.U32) {
		line := l.x.At(row.MulWide(l.cols.Times(c.Type.Size())))
		[]func(*long, ptx.U32, ptx.GAddr){l.max, l.exponentials, l.gradient}[c.Piece](way, row, line)
	})
	var err error
	l.Entry, err = k.Build()
	return l, err
}

func (l *Loss) max(way *long, row ptx.U32, line ptx.GAddr) {
	k := way.k
	top := ptx.NewVarAt(k, ptx.Lane, k.F32(float32(math.Inf(-1))))
	way.visit(line, l.valid.U32, func(_ ptx.U32, x []ptx.F32) {
		for _, v := range x {
			top.Set(top.Get().Max(v))
		}
	})
	all := way.join(top.Get(), largest)
	k.If(k.Tid().Eq(k.U32(0)), func() { kernel.At(k, num.F32, l.m.GAddr, row).StoreF32(all) })
}

// label is the column of the row's label, beyond every column where it is another rank's.
func (l *Loss) label(k *ptx.Builder, row ptx.U32) ptx.U32 {
	return kernel.At(k, num.I32, l.labels.GAddr, row).LoadU32().Sub(l.lo.U32)
}

func (l *Loss) exponentials(way *long, row ptx.U32, line ptx.GAddr) {
	k := way.k
	top := kernel.At(k, num.F32, l.m.GAddr, row).LoadF32()
	sum := ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	way.visit(line, l.valid.U32, func(_ ptx.U32, x []ptx.F32) {
		for i := range x {
			x[i] = kernel.Exp(k, x[i].Sub(top))
		}
		sum.Set(sum.Get().Add(total(x)))
	})
	all := way.join(sum.Get(), add)
	k.If(k.Tid().Eq(k.U32(0)), func() {
		label, picked := l.label(k, row), ptx.NewVarAt(k, ptx.Lane, k.F32(0))
		k.If(label.Lt(l.valid.U32), func() {
			picked.Set(kernel.LoadSpan(k, way.t, kernel.At(k, way.t, line, label), 1)[0].Sub(top))
		})
		at := l.sums.At(row.MulWide(k.U32(8)))
		at.StoreF32(all)
		at.Plus(4).StoreF32(picked.Get())
	})
}

func (l *Loss) gradient(way *long, row ptx.U32, line ptx.GAddr) {
	k := way.k
	top := kernel.At(k, num.F32, l.m.GAddr, row).LoadF32()
	label := l.label(k, row)
	weight := kernel.At(k, num.F32, l.mask.GAddr, row).LoadF32()
	counts := weight.Eq(k.F32(0)).Not()
	each := counts.SelectF32(weight.Div(l.count.LoadF32()), k.F32(0))
	share := counts.SelectF32(each.Div(l.sums.At(row.MulWide(k.U32(8))).LoadF32()), k.F32(0))
	way.visit(line, l.cols.U32, func(col ptx.U32, x []ptx.F32) {
		for i := range x {
			at := col.Plus(i)
			g := kernel.Exp(k, x[i].Sub(top)).Mul(share)
			g = at.Eq(label).SelectF32(g.Sub(each), g)
			x[i] = counts.And(at.Lt(l.valid.U32)).SelectF32(g, k.F32(0)) // padding may hold anything
		}
		kernel.StoreSpan(k, way.t, kernel.At(k, way.t, line, col), x)
	})
}

// LossOperands are one launch's memory: X [Rows, Cols], M and Mask [Rows], Sums [Rows, 2], Labels [Rows] int32, Count [1].
type LossOperands struct {
	X, M, Sums, Labels, Mask, Count kernel.Place
	Rows, Cols, Valid, Lo           int
}

// Launch describes the launch on a device of so many SMs.
func (l *Loss) Launch(o LossOperands, sms int) (ptx.Launch, *ptx.Args, error) {
	c := l.Config
	if o.Rows < 1 || o.Cols < 1 || o.Valid < 0 || o.Valid > o.Cols || o.Cols >= 1<<28 {
		return ptx.Launch{}, nil, fmt.Errorf("row: %s of %d × %d, %d valid, want rows, 1 to 2²⁸ columns and no more valid ones", l.Entry.Name, o.Rows, o.Cols, o.Valid)
	}
	if c.Wide && (!o.X.Aligned() || o.Cols*c.Type.Size()%16 != 0) {
		return ptx.Launch{}, nil, fmt.Errorf("row: %s: rows of %d columns from byte %d on, want multiples of 16 bytes", l.Entry.Name, o.Cols, o.X.Offset)
	}
	a := l.Entry.NewArgs()
	o.X.Put(a, l.x)
	o.M.Put(a, l.m)
	l.rows.Put(a, uint32(o.Rows))
	l.cols.Put(a, uint32(o.Cols))
	l.valid.Put(a, uint32(o.Valid))
	if c.Piece != Max {
		o.Sums.Put(a, l.sums)
		o.Labels.Put(a, l.labels)
		l.lo.Put(a, uint32(o.Lo))
	}
	if c.Piece == Back {
		o.Mask.Put(a, l.mask)
		o.Count.Put(a, l.count)
	}
	return ptx.Launch{Entry: l.Entry.Name, Grid: ptx.Dim3{X: min(o.Rows, 8*sms)}}, a, nil
}

// Module is the kernel alone.
func (l *Loss) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{l.Entry}} }
