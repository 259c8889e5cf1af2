package row

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Case is one piece of the loss of random logits of ±80, with padding of NaN, labels here and elsewhere, and a masked token. What other pieces give is given.
func (l *Loss) Case(rows, cols int, seed int64, sms int) (kernel.Case, error) {
	r, c := rand.New(rand.NewSource(seed)), l.Config
	valid, lo, count := cols-cols/5, 100, 3.0
	x := kernel.NewSample("x", c.Type, rows*cols, offset(c.Type, c.Wide))
	xs := x.Fill(func(i int) float64 {
		if i%cols >= valid {
			return math.NaN()
		}
		return 40 * r.NormFloat64()
	})
	m, sums, mask := kernel.NewSample("m", num.F32, rows, 4), kernel.NewSample("sums", num.F32, 2*rows, 4), kernel.NewSample("mask", num.F32, rows, 4)
	labels, one := kernel.NewSample("labels", num.I32, rows, 4), kernel.NewSample("count", num.F32, 1, 0)
	label := labels.Fill(func(i int) float64 { return float64(lo - 2 + r.Intn(valid+4)) })
	on := mask.Fill(func(i int) float64 { return []float64{1, 0, -0.5}[i%3] })
	one.Set(0, count)
	top, want := make([]float64, rows), make([]float64, 2*rows)
	for i := range rows {
		row := xs[i*cols:][:valid]
		top[i] = math.Inf(-1)
		for _, v := range row {
			top[i] = max(top[i], v)
		}
		for _, v := range row {
			want[2*i] += math.Exp(v - top[i])
		}
		if k := int(label[i]) - lo; k >= 0 && k < valid {
			want[2*i+1] = row[k] - top[i]
		}
	}
	if c.Piece != Max {
		m.Fill(func(i int) float64 { return top[i] })
	}
	if c.Piece == Back {
		sums.Fill(func(i int) float64 { return want[i] })
	}
	launch, a, err := l.Launch(LossOperands{X: x.Place(), M: m.Place(), Sums: sums.Place(), Labels: labels.Place(), Mask: mask.Place(), Count: one.Place(), Rows: rows, Cols: cols, Valid: valid, Lo: lo}, sms)
	return kernel.Case{Name: fmt.Sprintf("%dx%d", rows, cols), Launch: launch, Args: a, Check: func() error {
		for i := range rows {
			if c.Piece == Max && m.At(i) != top[i] {
				return fmt.Errorf("row: m[%d] is %v, want %v", i, m.At(i), top[i])
			}
			for j := 0; c.Piece == Sums && j < 2; j++ {
				// An exponential's argument is up to 400: its error is 400·2⁻²⁴ times the exponential, which is then e⁻⁴⁰⁰; the worst product is below 1.
				if err := near("sums", sums, 2*i+j, want[2*i+j], 1+math.Abs(want[2*i+j])); err != nil {
					return err
				}
			}
			for j := 0; c.Piece == Back && j < cols; j++ {
				g := 0.0
				if on[i] != 0 && j < valid {
					g = math.Exp(xs[i*cols+j]-top[i]) / want[2*i] * on[i] / count
					if float64(lo+j) == label[i] {
						g -= on[i] / count
					}
				}
				if err := near("gradient", x, i*cols+j, g, 1/count); err != nil {
					return err
				}
			}
		}
		return intact(x, m, sums)
	}}, err
}

// Cases are short, ragged and long rows, fewer and more than CTAs.
func (l *Loss) Cases(sms int) ([]kernel.Case, error) {
	return each([]int{1, 3, 40}, func(rows int, seed int64) (kernel.Case, error) {
		cols := []int{8, 2200, 264}[seed]
		if !l.Config.Wide {
			cols++
		}
		return l.Case(rows, cols, seed, sms)
	})
}

// FaultCase gives each CTA several rows.
func (l *Loss) FaultCase() (kernel.Case, int, error) {
	c, err := l.Case(20, 264, 1, 1)
	return c, 8, err
}

// Equivalent proves mutants to be no faults.
func (l *Loss) Equivalent(m ptx.Mutant) string { return even(m) }

// Case adds up n random elements.
func (r *Reduce) Case(n int, seed int64, sms int) (kernel.Case, error) {
	rnd, c := rand.New(rand.NewSource(seed)), r.Config
	parts := 1
	if !c.Last {
		parts = Parts(n, sms)
	}
	x, xs := draw(rnd, "x", c.Type, c.Wide, n)
	mask, on := kernel.NewSample("mask", num.F32, n, 4), []float64(nil)
	if c.Term == Tokens {
		x = kernel.NewSample("x", num.F32, 2*n, 8)
		xs = x.Fill(func(i int) float64 { return []float64{1 + 50*rnd.Float64(), -3 * rnd.Float64()}[i%2] })
		on = mask.Fill(func(i int) float64 { return []float64{1, 0, -0.5}[rnd.Intn(3)] })
	}
	y := kernel.NewSample("y", num.F32, parts, 4)
	before := 0.0
	if c.Last {
		before = y.Set(0, 2.5)
	}
	l, a, err := r.Launch(y.Place(), x.Place(), mask.Place(), n, parts)
	return kernel.Case{Name: fmt.Sprint(n), Launch: l, Args: a, Check: func() error {
		sum, size, got := before, math.Abs(before), 0.0
		for i := range n {
			v := 0.0
			switch {
			case c.Term == Plain:
				v = xs[i]
			case c.Term == Squares:
				v = xs[i] * xs[i]
			case on[i] != 0:
				v = on[i] * (math.Log(xs[2*i]) - xs[2*i+1])
			}
			sum, size = sum+v, size+math.Abs(v)
		}
		for i := range parts {
			got += y.At(i)
		}
		if bound := depth * 0x1p-24 * size; !(math.Abs(got-sum) <= bound) {
			return fmt.Errorf("row: %s gives %v, want %v ± %v", r.Entry.Name, got, sum, bound)
		}
		return intact(y)
	}}, err
}

// Cases are nothing, one, broken groups, several CTAs.
func (r *Reduce) Cases(sms int) ([]kernel.Case, error) {
	return each([]int{1, 13, 2051, 40000}, func(n int, seed int64) (kernel.Case, error) { return r.Case(n, seed, sms) })
}

// FaultCase has two CTAs.
func (r *Reduce) FaultCase() (kernel.Case, int, error) {
	c, err := r.Case(8000, 1, 2)
	return c, 2, err
}

// Equivalent knows one more: the sums of the warps are read once, so nothing overwrites them after the second barrier.
func (r *Reduce) Equivalent(m ptx.Mutant) string {
	if m.Op == ptx.OpBarSync && m.Nth == 1 {
		return "nothing is written to the sums after they were read: the kernel ends"
	}
	return even(m)
}

// ids draws tokens of a few ids, so that ids repeat, some of them outside lo … lo+rows−1.
func ids(r *rand.Rand, tokens, rows, lo int) (*kernel.Sample, []float64) {
	s := kernel.NewSample("ids", num.I32, tokens, 4)
	return s, s.Fill(func(int) float64 { return float64(lo - 1 + r.Intn(rows+2)) })
}

// Case looks random tokens up.
func (e *Embed) Case(tokens int, seed int64, sms int) (kernel.Case, error) {
	const rows, lo = 5, 40
	r, wide := rand.New(rand.NewSource(seed)), e.width > 1
	w, ws := draw(r, "w", e.Type, wide, rows*e.cols)
	id, who := ids(r, tokens, rows, lo)
	y := kernel.NewSample("y", e.Type, tokens*e.cols, offset(e.Type, wide))
	l, a, err := e.Launch(EmbedOperands{Y: y.Place(), W: w.Place(), IDs: id.Place(), Tokens: tokens, Rows: rows, Lo: lo}, sms)
	return kernel.Case{Name: fmt.Sprint(tokens), Launch: l, Args: a, Check: func() error {
		for i := range y.N {
			want, row := 0.0, int(who[i/e.cols])-lo
			if row >= 0 && row < rows {
				want = ws[row*e.cols+i%e.cols]
			}
			if y.At(i) != want {
				return fmt.Errorf("row: y[%d] is %v, want %v", i, y.At(i), want)
			}
		}
		return intact(y)
	}}, err
}

// Cases are one token, and more than fit a CTA and a round.
func (e *Embed) Cases(sms int) ([]kernel.Case, error) {
	return each(some(), func(n int, seed int64) (kernel.Case, error) { return e.Case(n, seed, sms) })
}

// FaultCase is any: the kernel synchronises nothing.
func (e *Embed) FaultCase() (kernel.Case, int, error) {
	c, err := e.Case(7, 1, 1)
	return c, 8, err
}

// Equivalent proves mutants to be no faults.
func (e *Embed) Equivalent(m ptx.Mutant) string { return even(m) }

// Case adds the gradients of random tokens, small integers, so that sums are exact.
func (e *EmbedBack) Case(tokens, cols int, seed int64) (kernel.Case, error) {
	const rows, lo = 5, 40
	r := rand.New(rand.NewSource(seed))
	id, who := ids(r, tokens, rows, lo)
	integers := func(int) float64 { return float64(r.Intn(17) - 8) }
	dw, dy := kernel.NewSample("dw", num.F32, rows*cols, offset(num.F32, e.wide)), kernel.NewSample("dy", e.Type, tokens*cols, offset(e.Type, e.wide))
	want, dys := dw.Fill(integers), dy.Fill(integers)
	for i, v := range dys {
		if row := int(who[i/cols]) - lo; row >= 0 && row < rows {
			want[row*cols+i%cols] += v
		}
	}
	l, a, err := e.Launch(EmbedBackOperands{DW: dw.Place(), DY: dy.Place(), IDs: id.Place(), Tokens: tokens, Rows: rows, Cols: cols, Lo: lo})
	return kernel.Case{Name: fmt.Sprintf("%dx%d", tokens, cols), Launch: l, Args: a, Check: func() error {
		for i := range want {
			if got := dw.At(i); got != want[i] {
				return fmt.Errorf("row: dw[%d] is %v, want %v", i, got, want[i])
			}
		}
		return intact(dw, dy)
	}}, err
}

// Cases are one token, and more than a CTA looks at together, with few and many columns.
func (e *EmbedBack) Cases(int) ([]kernel.Case, error) {
	return each([]int{1, 40, 300}, func(n int, seed int64) (kernel.Case, error) { return e.Case(n, []int{8, 24, 264}[seed], seed) })
}

// FaultCase has more tokens than a CTA looks at together.
func (e *EmbedBack) FaultCase() (kernel.Case, int, error) {
	c, err := e.Case(270, 8, 1)
	return c, 4, err
}

// Equivalent proves mutants to be no faults.
func (e *EmbedBack) Equivalent(m ptx.Mutant) string { return even(m) }
