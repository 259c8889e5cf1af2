package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Embed looks rows up: y[i] = w[ids[i] − lo] where that is a row of w, else 0.
type Embed struct {
	Type  num.DType
	Entry *ptx.Entry
	strip

	y, w, ids        ptx.ParamPtr
	tokens, rows, lo ptx.ParamU32
}

// NewEmbed builds the kernel for rows of cols columns.
func NewEmbed(cols int, t num.DType, wide bool) (*Embed, error) {
	s, err := lay(cols, wide)
	if err != nil {
		return nil, err
	}
	k := ptx.New(embedName("embed", cols, t, wide), threads, 1)
	e := &Embed{Type: t, strip: s, y: k.ParamPtr("y"), w: k.ParamPtr("w"), ids: k.ParamPtr("ids"), tokens: k.ParamU32("tokens"), rows: k.ParamU32("rows"), lo: k.ParamU32("lo")}
	r := newRows(k, s)
	r.visit(e.tokens.U32, func(token ptx.U32, here ptx.Pred) {
		row := kernel.At(k, num.I32, e.ids.GAddr, token).LoadU32().Sub(e.lo.U32)
		known := row.Lt(e.rows.U32)
		x := r.load(t, r.line(t, e.w.GAddr, known.SelectU32(row, k.U32(0))))
		for i := range x {
			x[i] = known.SelectF32(x[i], k.F32(0))
		}
		r.store(t, r.line(t, e.y.GAddr, token), x, here)
	})
	e.Entry, err = k.Build()
	return e, err
}

func embedName(op string, cols int, t num.DType, wide bool) string {
	name := fmt.Sprintf("%s_%d_%v", op, cols, t)
	if !wide {
		name += "_narrow"
	}
	return name
}

// EmbedOperands are one launch's memory: Y [Tokens, Cols], W [Rows, Cols], IDs [Tokens] int32; the first row is that of id Lo.
type EmbedOperands struct {
	Y, W, IDs        kernel.Place
	Tokens, Rows, Lo int
}

// Launch describes the launch on a device of so many SMs.
func (e *Embed) Launch(o EmbedOperands, sms int) (ptx.Launch, *ptx.Args, error) {
	if err := e.fits(e.Entry.Name, o.Tokens, o.Y, o.W); err != nil {
		return ptx.Launch{}, nil, err
	}
	a := e.Entry.NewArgs()
	o.Y.Put(a, e.y)
	o.W.Put(a, e.w)
	o.IDs.Put(a, e.ids)
	e.tokens.Put(a, uint32(o.Tokens))
	e.rows.Put(a, uint32(o.Rows))
	e.lo.Put(a, uint32(o.Lo))
	return ptx.Launch{Entry: e.Entry.Name, Grid: e.grid(o.Tokens, sms, 8)}, a, nil
}

// Module is the kernel alone.
func (e *Embed) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{e.Entry}} }

// EmbedBack adds the gradient of looked-up rows to the float32 gradient of w, in the order of the tokens:
//
//	for i := range tokens { dw[ids[i] − lo] += dy[i] }
//
// A CTA a token: the one whose token is the first of its id adds up all tokens of that id, the others leave. So no row has two writers.
type EmbedBack struct {
	Type  num.DType
	Entry *ptx.Entry

	dw, dy, ids            ptx.ParamPtr
	tokens, rows, cols, lo ptx.ParamU32
	wide                   bool
}

// NewEmbedBack builds the kernel. Shared memory: a flag, and a word of bits a warp.
func NewEmbedBack(t num.DType, wide bool) (*EmbedBack, error) {
	name := "embed_back_" + t.String()
	if !wide {
		name += "_narrow"
	}
	k := ptx.New(name, threads, 1)
	e := &EmbedBack{Type: t, wide: wide, dw: k.ParamPtr("dw"), dy: k.ParamPtr("dy"), ids: k.ParamPtr("ids"), tokens: k.ParamU32("tokens"), rows: k.ParamU32("rows"), cols: k.ParamU32("cols"), lo: k.ParamU32("lo")}
	bits := k.Shared("bits", 4*warps, 16).Addr()
	token := k.CTAIndex()
	id := kernel.At(k, num.I32, e.ids.GAddr, token).LoadU32().Shuffle(k.U32(0)) // the same in all lanes
	row := id.Sub(e.lo.U32)
	earlier := ptx.NewVarAt(k, ptx.Lane, k.U32(0))
	k.For(k.Tid(), token, k.U32(threads), func(j ptx.U32) {
		same := kernel.At(k, num.I32, e.ids.GAddr, j).LoadU32().Eq(id)
		earlier.Set(same.SelectU32(k.U32(1), earlier.Get()))
	})
	seen := earlier.Get().Ne(k.U32(0)).Ballot()
	first := e.gather(k, bits, seen)
	k.If(first.Eq(k.U32(0)).And(row.Lt(e.rows.U32)), func() { e.collect(k, bits, token, id, row) })
	var err error
	e.Entry, err = k.Build()
	return e, err
}

// gather gives every thread the union of the warps' words.
func (e *EmbedBack) gather(k *ptx.Builder, bits ptx.SAddr, word ptx.U32) ptx.U32 {
	k.If(k.Lane().Eq(k.U32(0)), func() { bits.At(k.WarpIndex().Shl(2)).StoreU32(word) })
	k.SyncCTA()
	all := bits.LoadU32()
	for w := 1; w < warps; w++ {
		all = all.Or(bits.Plus(4 * w).LoadU32())
	}
	k.SyncCTA()
	return all.Shuffle(k.U32(0))
}

// collect adds the gradients of all tokens from token on that have the id to the row.
func (e *EmbedBack) collect(k *ptx.Builder, bits ptx.SAddr, token, id, row ptx.U32) {
	width := 1
	if e.wide {
		width = kernel.Wide
	}
	k.For(k.U32(0), e.cols.U32, k.U32(threads*width), func(base ptx.U32) {
		col := base.Add(k.Tid().Times(width))
		in := col.Lt(e.cols.U32)
		sum := make([]*ptx.Var[ptx.F32], width)
		for i := range sum {
			sum[i] = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
		}
		k.For(token, e.tokens.U32, k.U32(threads), func(from ptx.U32) {
			j := from.Add(k.Tid())
			at := j.Lt(e.tokens.U32).SelectU32(j, token)
			same := j.Lt(e.tokens.U32).And(kernel.At(k, num.I32, e.ids.GAddr, at).LoadU32().Eq(id)).Ballot()
			k.If(k.Lane().Eq(k.U32(0)), func() { bits.At(k.WarpIndex().Shl(2)).StoreU32(same) })
			k.SyncCTA()
			for w := range warps {
				word := ptx.NewVar(k, bits.Plus(4*w).LoadU32().Shuffle(k.U32(0)))
				k.While(func() ptx.Pred { return word.Get().Ne(k.U32(0)) }, func() {
					rest := word.Get()
					t := from.Plus(32 * w).Add(rest.ReverseBits().LeadingZeros()) // of the lowest bit
					word.Set(rest.And(rest.Sub(k.U32(1))))
					k.If(in, func() {
						line := e.dy.At(t.MulWide(e.cols.Times(e.Type.Size())))
						for i, x := range kernel.LoadSpan(k, e.Type, kernel.At(k, e.Type, line, col), width) {
							sum[i].Set(sum[i].Get().Add(x))
						}
					})
				})
			}
			k.SyncCTA()
		})
		k.If(in, func() {
			at := kernel.At(k, num.F32, e.dw.At(row.MulWide(e.cols.Times(4))), col)
			old := kernel.LoadSpan(k, num.F32, at, width)
			for i := range old {
				old[i] = old[i].Add(sum[i].Get())
			}
			kernel.StoreSpan(k, num.F32, at, old)
		})
	})
}

// EmbedBackOperands are one launch's memory: DW [Rows, Cols] float32, DY [Tokens, Cols], IDs [Tokens] int32.
type EmbedBackOperands struct {
	DW, DY, IDs            kernel.Place
	Tokens, Rows, Cols, Lo int
}

// Launch describes the launch.
func (e *EmbedBack) Launch(o EmbedBackOperands) (ptx.Launch, *ptx.Args, error) {
	if o.Tokens < 1 || o.Tokens >= 1<<31 || o.Cols < 1 || e.wide && (o.Cols%kernel.Wide != 0 || !o.DW.Aligned() || !o.DY.Aligned()) {
		return ptx.Launch{}, nil, fmt.Errorf("row: %s of %d tokens × %d does not fit the kernel", e.Entry.Name, o.Tokens, o.Cols)
	}
	a := e.Entry.NewArgs()
	o.DW.Put(a, e.dw)
	o.DY.Put(a, e.dy)
	o.IDs.Put(a, e.ids)
	e.tokens.Put(a, uint32(o.Tokens))
	e.rows.Put(a, uint32(o.Rows))
	e.cols.Put(a, uint32(o.Cols))
	e.lo.Put(a, uint32(o.Lo))
	return ptx.Launch{Entry: e.Entry.Name, Grid: ptx.Dim3{X: o.Tokens}}, a, nil
}

// Module is the kernel alone.
func (e *EmbedBack) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{e.Entry}} }
