package row

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Shift moves every row: y[row, j] = x[row, j] − mean of the row, or, with Bias, x[row, j] + b[j]. y may be x.
type Shift struct {
	Config ShiftConfig
	Entry  *ptx.Entry
	strip

	x, b, y ptx.ParamPtr
	rows    ptx.ParamU32
}

// ShiftConfig chooses the kernel.
type ShiftConfig struct {
	Cols int
	Type num.DType
	Wide bool
	Bias bool
}

// NewShift builds the kernel.
func NewShift(c ShiftConfig) (*Shift, error) {
	s, err := lay(c.Cols, c.Wide)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("center_%d_%v", c.Cols, c.Type)
	if c.Bias {
		name = fmt.Sprintf("bias_%d_%v", c.Cols, c.Type)
	}
	if !c.Wide {
		name += "_narrow"
	}
	k := ptx.New(name, threads, 1)
	h := &Shift{Config: c, strip: s, x: k.ParamPtr("x"), y: k.ParamPtr("y"), rows: k.ParamU32("rows")}
	r := newRows(k, s)
	var b []ptx.F32
	if c.Bias {
		h.b = k.ParamPtr("b")
		b = r.load(c.Type, h.b.GAddr)
	}
	r.visit(h.rows.U32, func(row ptx.U32, here ptx.Pred) {
		x := r.load(c.Type, r.line(c.Type, h.x.GAddr, row))
		var mean ptx.F32
		if !c.Bias {
			mean = r.sum(total(x)).Mul(k.F32(1 / float32(c.Cols)))
		}
		for i := range x {
			if c.Bias {
				x[i] = x[i].Add(b[i])
			} else {
				x[i] = x[i].Sub(mean)
			}
		}
		r.store(c.Type, r.line(c.Type, h.y.GAddr, row), x, here)
	})
	h.Entry, err = k.Build()
	return h, err
}

// Launch describes the launch for x, y [rows, Cols] and b [Cols].
func (h *Shift) Launch(y, x, b kernel.Place, rows, sms int) (ptx.Launch, *ptx.Args, error) {
	at := []kernel.Place{x, y}
	if h.Config.Bias {
		at = append(at, b)
	}
	if err := h.fits(h.Entry.Name, rows, at...); err != nil {
		return ptx.Launch{}, nil, err
	}
	a := h.Entry.NewArgs()
	x.Put(a, h.x)
	y.Put(a, h.y)
	if h.Config.Bias {
		b.Put(a, h.b)
	}
	h.rows.Put(a, uint32(rows))
	return ptx.Launch{Entry: h.Entry.Name, Grid: h.grid(rows, sms, 8)}, a, nil
}

// Module is the kernel alone.
func (h *Shift) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{h.Entry}} }

// Case shifts random rows.
func (h *Shift) Case(rows int, seed int64, sms int) (kernel.Case, error) {
	r, c := rand.New(rand.NewSource(seed)), h.Config
	x, xs := draw(r, "x", c.Type, c.Wide, rows*c.Cols)
	b, bs := draw(r, "b", c.Type, c.Wide, c.Cols)
	y := kernel.NewSample("y", c.Type, rows*c.Cols, offset(c.Type, c.Wide))
	l, a, err := h.Launch(y.Place(), x.Place(), b.Place(), rows, sms)
	return kernel.Case{Name: fmt.Sprint(rows), Launch: l, Args: a, Check: func() error {
		for i := range rows {
			mean, size := 0.0, 0.0
			for _, v := range xs[i*c.Cols:][:c.Cols] {
				mean, size = mean+v/float64(c.Cols), size+math.Abs(v)/float64(c.Cols)
			}
			for j := range c.Cols {
				v, move := xs[i*c.Cols+j], -mean
				if c.Bias {
					move, size = bs[j], math.Abs(bs[j])
				}
				if err := near("y", y, i*c.Cols+j, v+move, math.Abs(v)+size); err != nil {
					return err
				}
			}
		}
		return intact(y)
	}}, err
}

// Cases are one row, and more rows than fit a CTA and a round.
func (h *Shift) Cases(sms int) ([]kernel.Case, error) {
	return each(some(), func(rows int, seed int64) (kernel.Case, error) { return h.Case(rows, seed, sms) })
}

// FaultCase gives each CTA several rounds.
func (h *Shift) FaultCase() (kernel.Case, int, error) {
	c, err := h.Case(70, 1, 1)
	return c, 8, err
}

// Equivalent proves mutants to be no faults.
func (h *Shift) Equivalent(m ptx.Mutant) string { return even(m) }
