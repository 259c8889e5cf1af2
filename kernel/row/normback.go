package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// NormBack is the gradient of Norm: with r = rstd of the row,
//
//	dx[j] = r·w[j]·dy[j] − x[j]·r³·mean_i(dy[i]·w[i]·x[i])
//	dw[j] = Σ_rows dy[j]·x[j]·r
//
// dw comes as partial sums, a row of float32 for each CTA, which Columns adds up; without Weights there are none. With Plus another gradient of x is added to dx
// before it is rounded: the one that went around the norm.
type NormBack struct {
	Config NormBackConfig
	Entry  *ptx.Entry
	strip

	dx, dy, x, rstd, w, plus, part ptx.ParamPtr
	rows                           ptx.ParamU32
	turn                           turn
}

// NormBackConfig chooses the kernel.
type NormBackConfig struct {
	Cols    int
	Type    num.DType
	Wide    bool
	Weights bool
	Plus    bool
	Turn    bool // dy is of heads that were turned after the norm: it is turned back first
}

func (c NormBackConfig) name() string {
	s := fmt.Sprintf("norm_back_%d_%v", c.Cols, c.Type)
	for _, o := range []struct {
		on   bool
		word string
	}{{!c.Wide, "_narrow"}, {!c.Weights, "_frozen"}, {c.Plus, "_plus"}, {c.Turn, "_turn"}} {
		if o.on {
			s += o.word
		}
	}
	return s
}

// NewNormBack builds the kernel. Shared memory: a row of float32 for each team, in which the teams' sums of a column meet.
func NewNormBack(c NormBackConfig) (*NormBack, error) {
	s, err := lay(c.Cols, c.Wide)
	if err != nil {
		return nil, err
	}
	k := ptx.New(c.name(), threads, 1)
	n := &NormBack{Config: c, strip: s, dx: k.ParamPtr("dx"), dy: k.ParamPtr("dy"), x: k.ParamPtr("x"), rstd: k.ParamPtr("rstd"), w: k.ParamPtr("w"), rows: k.ParamU32("rows")}
	if c.Plus {
		n.plus = k.ParamPtr("plus")
	}
	if c.Weights {
		n.part = k.ParamPtr("part")
	}
	if c.Turn {
		if n.turn, err = newTurn(k, s, true); err != nil {
			return nil, err
		}
	}
	r := newRows(k, s)
	w := r.load(c.Type, n.w.GAddr)
	var sums []*ptx.Var[ptx.F32]
	if c.Weights {
		for range w {
			sums = append(sums, ptx.NewVarAt(k, ptx.Lane, k.F32(0)))
		}
	}
	if c.Turn {
		n.turn.visit(r, n.rows.U32, func(row ptx.U32, here ptx.Pred, by func([]ptx.F32) []ptx.F32) { n.row(r, row, here, by, w, sums) })
	} else {
		r.visit(n.rows.U32, func(row ptx.U32, here ptx.Pred) { n.row(r, row, here, nil, w, sums) })
	}
	if c.Weights {
		n.meet(r, sums)
	}
	n.Entry, err = k.Build()
	return n, err
}

func (n *NormBack) row(r *rows, row ptx.U32, here ptx.Pred, by func([]ptx.F32) []ptx.F32, w []ptx.F32, sums []*ptx.Var[ptx.F32]) {
	k, t := r.k, n.Config.Type
	x, dy := r.load(t, r.line(t, n.x.GAddr, row)), r.load(t, r.line(t, n.dy.GAddr, row))
	if n.Config.Turn {
		dy = by(dy)
		for i := range dy {
			dy[i] = rounded(k, t, dy[i]) // as a turn of its own would store it
		}
	}
	var around []ptx.F32
	if n.Config.Plus {
		around = r.load(t, r.line(t, n.plus.GAddr, row))
	}
	scale := kernel.At(k, num.F32, n.rstd.GAddr, row).LoadF32()
	products := make([]ptx.F32, len(x))
	for i := range x {
		products[i] = dy[i].Mul(w[i]).Mul(x[i])
	}
	mean := r.sum(total(products)).Mul(k.F32(1 / float32(n.cols)))
	pull := mean.Mul(scale).Mul(scale).Mul(scale)
	counts := here.SelectF32(scale, k.F32(0))
	dx := make([]ptx.F32, len(x))
	for i := range x {
		dx[i] = scale.Mul(w[i]).Mul(dy[i]).Sub(x[i].Mul(pull))
		if around != nil {
			dx[i] = dx[i].Add(around[i])
		}
		if sums != nil {
			sums[i].Set(sums[i].Get().Add(dy[i].Mul(x[i]).Mul(counts)))
		}
	}
	r.store(t, r.line(t, n.dx.GAddr, row), dx, here)
}

// meet adds the teams' sums of each column and stores the CTA's row of partial sums.
func (n *NormBack) meet(r *rows, sums []*ptx.Var[ptx.F32]) {
	k := r.k
	all := k.Shared("columns", 4*n.perCTA()*n.cols, 16).Addr()
	mine := all.At(r.slot.Times(4 * n.cols))
	for c := range n.each {
		col, in := r.column(c)
		k.If(in, func() {
			for i := range n.width {
				mine.At(col.Shl(2)).Plus(4 * i).StoreF32(sums[c*n.width+i].Get())
			}
		})
	}
	k.SyncCTA()
	out := n.part.At(k.CTAIndex().MulWide(k.U32(4 * n.cols)))
	k.For(k.Tid(), k.U32(n.cols), k.U32(threads), func(col ptx.U32) {
		sum := all.At(col.Shl(2)).LoadF32()
		for slot := 1; slot < n.perCTA(); slot++ {
			sum = sum.Add(all.At(col.Shl(2)).Plus(4 * slot * n.cols).LoadF32())
		}
		out.At(col.MulWide(k.U32(4))).StoreF32(sum)
	})
}

// NormBackOperands are one launch's matrices. Part holds Parts(Rows, Angles.Heads, sms) rows of Cols float32.
type NormBackOperands struct {
	DX, DY, X, RStd, W, Plus, Part kernel.Place
	Angles                         Angles // of a NormBack with Turn
	Rows                           int
}

// Parts is how many rows of partial sums a launch writes; heads are those of a token where rows are turned.
func (n *NormBack) Parts(rows, heads, sms int) int {
	if n.Config.Turn {
		rows /= heads
	}
	return n.grid(rows, sms, n.perSM()).X
}

// perSM is how many CTAs there are for each SM: where a thread has few columns, more fit and hide each other's loads.
func (n *NormBack) perSM() int {
	if n.each*n.width <= 8 {
		return 4
	}
	return 1
}

// Launch describes the launch on a device of so many SMs.
func (n *NormBack) Launch(o NormBackOperands, sms int) (ptx.Launch, *ptx.Args, error) {
	wide := []kernel.Place{o.DX, o.DY, o.X, o.W}
	if n.Config.Plus {
		wide = append(wide, o.Plus)
	}
	if err := n.fits(n.Entry.Name, o.Rows, wide...); err != nil {
		return ptx.Launch{}, nil, err
	}
	a := n.Entry.NewArgs()
	o.DX.Put(a, n.dx)
	o.DY.Put(a, n.dy)
	o.X.Put(a, n.x)
	o.RStd.Put(a, n.rstd)
	o.W.Put(a, n.w)
	if n.Config.Plus {
		o.Plus.Put(a, n.plus)
	}
	if n.Config.Weights {
		o.Part.Put(a, n.part)
	}
	if n.Config.Turn {
		n.turn.put(a, o.Angles)
	}
	n.rows.Put(a, uint32(o.Rows))
	return ptx.Launch{Entry: n.Entry.Name, Grid: ptx.Dim3{X: n.Parts(o.Rows, o.Angles.Heads, sms)}}, a, nil
}

// Module is the kernel alone.
func (n *NormBack) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{n.Entry}} }
