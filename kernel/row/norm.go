package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Norm is RMSNorm of each row of a matrix (Zhang and Sennrich 2019):
//
//	r = 1/√(mean_j x[j]² + eps); y[j] = x[j]·r·w[j]; rstd = r
//
// A Norm built Again takes r from rstd instead. One built with Plus normalises the sum of x and another matrix, and stores the sum too.
type Norm struct {
	Config NormConfig
	Entry  *ptx.Entry
	strip

	x, plus, sum, w, y, rstd ptx.ParamPtr
	rows                     ptx.ParamU32
	eps                      ptx.ParamF32
	turn                     turn
}

// NormConfig chooses the kernel: Cols columns of a type, rstd float32.
type NormConfig struct {
	Cols  int
	Type  num.DType
	Wide  bool // rows and weights start at multiples of 16 bytes
	Again bool // rstd is given
	Plus  bool // x + plus is normalised and stored in sum
	Turn  bool // rows are heads: y is turned by its token's position, as elem.Rope does; Cols must be what whole accesses of a team take
}

func (c NormConfig) name() string {
	s := fmt.Sprintf("norm_%d_%v", c.Cols, c.Type)
	for _, o := range []struct {
		on   bool
		word string
	}{{!c.Wide, "_narrow"}, {c.Again, "_again"}, {c.Plus, "_plus"}, {c.Turn, "_turn"}} {
		if o.on {
			s += o.word
		}
	}
	return s
}

// NewNorm builds the kernel.
func NewNorm(c NormConfig) (*Norm, error) {
	s, err := lay(c.Cols, c.Wide)
	if err != nil {
		return nil, err
	}
	k := ptx.New(c.name(), threads, 1)
	n := &Norm{Config: c, strip: s, x: k.ParamPtr("x"), w: k.ParamPtr("w"), y: k.ParamPtr("y"), rstd: k.ParamPtr("rstd"), rows: k.ParamU32("rows"), eps: k.ParamF32("eps")}
	if c.Plus {
		n.plus, n.sum = k.ParamPtr("plus"), k.ParamPtr("sum")
	}
	if c.Turn {
		if n.turn, err = newTurn(k, s, false); err != nil {
			return nil, err
		}
	}
	r := newRows(k, s)
	w := r.load(c.Type, n.w.GAddr)
	each := func(f func(row ptx.U32, here ptx.Pred, by func([]ptx.F32) []ptx.F32)) {
		r.visit(n.rows.U32, func(row ptx.U32, here ptx.Pred) { f(row, here, nil) })
	}
	if c.Turn {
		each = func(f func(row ptx.U32, here ptx.Pred, by func([]ptx.F32) []ptx.F32)) { n.turn.visit(r, n.rows.U32, f) }
	}
	each(func(row ptx.U32, here ptx.Pred, by func([]ptx.F32) []ptx.F32) {
		x := n.input(r, row, here)
		scale := n.scale(r, row, here, x)
		y := make([]ptx.F32, len(x))
		for i := range x {
			y[i] = x[i].Mul(scale).Mul(w[i])
		}
		if c.Turn {
			for i := range y {
				y[i] = rounded(k, c.Type, y[i]) // as a norm of its own would store it
			}
			y = by(y)
		}
		r.store(c.Type, r.line(c.Type, n.y.GAddr, row), y, here)
	})
	n.Entry, err = k.Build()
	return n, err
}

// input is the thread's columns of the row, summed and stored where that is wanted.
func (n *Norm) input(r *rows, row ptx.U32, here ptx.Pred) []ptx.F32 {
	t := n.Config.Type
	x := r.load(t, r.line(t, n.x.GAddr, row))
	if !n.Config.Plus {
		return x
	}
	for i, v := range r.load(t, r.line(t, n.plus.GAddr, row)) {
		x[i] = rounded(r.k, t, x[i].Add(v))
	}
	r.store(t, r.line(t, n.sum.GAddr, row), x, here)
	return x
}

// rounded is x as a tensor of type t would hold it.
func rounded(k *ptx.Builder, t num.DType, x ptx.F32) ptx.F32 {
	if t == num.BF16 {
		return k.F32(0).PackBF16(x).Low()
	}
	return x
}

// scale is 1/rms of the row, computed and stored, or loaded.
func (n *Norm) scale(r *rows, row ptx.U32, here ptx.Pred, x []ptx.F32) ptx.F32 {
	k, at := r.k, kernel.At(r.k, num.F32, n.rstd.GAddr, row)
	if n.Config.Again {
		return at.LoadF32()
	}
	squares := make([]ptx.F32, len(x))
	for i := range x {
		squares[i] = x[i].Mul(x[i])
	}
	mean := r.sum(total(squares)).Mul(k.F32(1 / float32(n.cols)))
	scale := k.F32(1).Div(mean.Add(n.eps.F32).Sqrt())
	k.If(here.And(r.member.Eq(k.U32(0))), func() { at.StoreF32(scale) })
	return scale
}

// NormOperands are one launch's matrices [Rows, Cols], weights [Cols] and rstd [Rows].
type NormOperands struct {
	X, W, Y, RStd kernel.Place
	Plus, Sum     kernel.Place // of a Norm with Plus
	Angles        Angles       // of a Norm with Turn
	Rows          int
	Eps           float32
}

// Launch describes the launch on a device of so many SMs.
func (n *Norm) Launch(o NormOperands, sms int) (ptx.Launch, *ptx.Args, error) {
	wide := []kernel.Place{o.X, o.W, o.Y}
	if n.Config.Plus {
		wide = append(wide, o.Plus, o.Sum)
	}
	if err := n.fits(n.Entry.Name, o.Rows, wide...); err != nil {
		return ptx.Launch{}, nil, err
	}
	a := n.Entry.NewArgs()
	o.X.Put(a, n.x)
	o.W.Put(a, n.w)
	o.Y.Put(a, n.y)
	o.RStd.Put(a, n.rstd)
	if n.Config.Plus {
		o.Plus.Put(a, n.plus)
		o.Sum.Put(a, n.sum)
	}
	if n.Config.Turn {
		n.turn.put(a, o.Angles)
	}
	n.rows.Put(a, uint32(o.Rows))
	n.eps.Put(a, o.Eps)
	work := o.Rows
	if n.Config.Turn {
		work /= o.Angles.Heads
	}
	return ptx.Launch{Entry: n.Entry.Name, Grid: n.grid(work, sms, 8)}, a, nil
}

// fits checks the rows and, for wide strips, where the operands start.
func (s strip) fits(name string, rows int, at ...kernel.Place) error {
	if rows < 1 || rows >= 1<<31-threads {
		return fmt.Errorf("row: %s of %d rows, want 1 to 2³¹", name, rows)
	}
	for _, p := range at {
		if s.width > 1 && !p.Aligned() {
			return fmt.Errorf("row: %s: an operand starts at byte %d, want a multiple of 16", name, p.Offset)
		}
	}
	return nil
}

// Module is the kernel alone.
func (n *Norm) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{n.Entry}} }
