package row

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Dot is the dot product of the rows of two matrices: y[row] = Σ_j a[row, j]·b[row, j], y float32.
type Dot struct {
	Type  num.DType
	Entry *ptx.Entry
	strip

	a, b, y ptx.ParamPtr
	rows    ptx.ParamU32
}

// NewDot builds the kernel for rows of cols columns.
func NewDot(cols int, t num.DType, wide bool) (*Dot, error) {
	s, err := lay(cols, wide)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("dot_%d_%v", cols, t)
	if !wide {
		name += "_narrow"
	}
	k := ptx.New(name, threads, 1)
	d := &Dot{Type: t, strip: s, a: k.ParamPtr("a"), b: k.ParamPtr("b"), y: k.ParamPtr("y"), rows: k.ParamU32("rows")}
	r := newRows(k, s)
	r.visit(d.rows.U32, func(row ptx.U32, here ptx.Pred) {
		a, b := r.load(t, r.line(t, d.a.GAddr, row)), r.load(t, r.line(t, d.b.GAddr, row))
		for i := range a {
			a[i] = a[i].Mul(b[i])
		}
		sum := r.sum(total(a))
		k.If(here.And(r.member.Eq(k.U32(0))), func() { kernel.At(k, num.F32, d.y.GAddr, row).StoreF32(sum) })
	})
	d.Entry, err = k.Build()
	return d, err
}

// Launch describes the launch for a, b [rows, cols] and y [rows].
func (d *Dot) Launch(y, a, b kernel.Place, rows, sms int) (ptx.Launch, *ptx.Args, error) {
	if err := d.fits(d.Entry.Name, rows, a, b); err != nil {
		return ptx.Launch{}, nil, err
	}
	args := d.Entry.NewArgs()
	a.Put(args, d.a)
	b.Put(args, d.b)
	y.Put(args, d.y)
	d.rows.Put(args, uint32(rows))
	return ptx.Launch{Entry: d.Entry.Name, Grid: d.grid(rows, sms, 8)}, args, nil
}

// Module is the kernel alone.
func (d *Dot) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{d.Entry}} }
