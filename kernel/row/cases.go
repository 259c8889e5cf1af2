package row

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// depth is more than the roundings that any float32 result of this package goes through one after the other: a thread's own terms pairwise (5 levels), its
// accesses (up to 8 in the cases), lanes (5), warps (8), and the products and the exponential of each term.
const depth = 64

// near compares element i of s with want, computed from terms whose magnitudes add up to size.
func near(what string, s *kernel.Sample, i int, want, size float64) error {
	bound := depth*0x1p-24*size + kernel.Rounding(s.Type)*math.Abs(want)
	if got := s.At(i); !(math.Abs(got-want) <= bound) {
		return fmt.Errorf("row: %s[%d] is %v, want %v ± %v", what, i, got, want, bound)
	}
	return nil
}

// intact refuses what was written outside.
func intact(all ...*kernel.Sample) error {
	for _, s := range all {
		if !s.Intact() {
			return fmt.Errorf("row: %s is written outside its elements", s.Name)
		}
	}
	return nil
}

// offset is where test memory starts in its buffer: aligned for wide kernels, and not for narrow ones.
func offset(t num.DType, wide bool) int {
	if wide {
		return 16
	}
	return t.Size()
}

// draw makes a sample of normal numbers.
func draw(r *rand.Rand, name string, t num.DType, wide bool, n int) (*kernel.Sample, []float64) {
	s := kernel.NewSample(name, t, n, offset(t, wide))
	return s, s.Fill(func(int) float64 { return r.NormFloat64() })
}

// each gives one case a number of rows.
func each(rows []int, f func(rows int, seed int64) (kernel.Case, error)) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, n := range rows {
		c, err := f(n, int64(i))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// even is the proof for the joins that the builder puts behind loops: all lanes of a warp make as many rounds in the fault cases, so they arrive together.
func even(m ptx.Mutant) string {
	if m.Op == ptx.OpWarpSync {
		return "the lanes of a warp make as many rounds of the loop in front of it"
	}
	return ""
}

func some() []int { return []int{1, 7, 70} }

// Case normalises random rows.
func (n *Norm) Case(rows int, seed int64, sms int) (kernel.Case, error) {
	rows = tokensOf(rows, n.Config.Turn)
	r, c := rand.New(rand.NewSource(seed)), n.Config
	x, xs := draw(r, "x", c.Type, c.Wide, rows*c.Cols)
	w, ws := draw(r, "w", c.Type, c.Wide, c.Cols)
	y, rstd := kernel.NewSample("y", c.Type, rows*c.Cols, offset(c.Type, c.Wide)), kernel.NewSample("rstd", num.F32, rows, 4)
	const eps = 1e-3
	o := NormOperands{X: x.Place(), W: w.Place(), Y: y.Place(), RStd: rstd.Place(), Rows: rows, Eps: eps}
	turned := func(_ int, y []float64, _ bool) []float64 { return y }
	if c.Turn {
		o.Angles, turned = angles(c.Cols)
	}
	sum := y
	if c.Plus {
		plus, ps := draw(r, "plus", c.Type, c.Wide, rows*c.Cols)
		sum = kernel.NewSample("sum", c.Type, rows*c.Cols, offset(c.Type, c.Wide))
		o.Plus, o.Sum = plus.Place(), sum.Place()
		for i := range xs {
			xs[i] = kernel.NewSample("", c.Type, 1, 0).Set(0, float64(float32(xs[i])+float32(ps[i])))
		}
	}
	scale := make([]float64, rows)
	for i := range scale {
		for _, v := range xs[i*c.Cols:][:c.Cols] {
			scale[i] += v * v / float64(c.Cols)
		}
		scale[i] = 1 / math.Sqrt(scale[i]+eps)
	}
	if c.Again {
		scale = rstd.Fill(func(i int) float64 { return scale[i] })
	}
	l, a, err := n.Launch(o, sms)
	return kernel.Case{Name: fmt.Sprint(rows), Launch: l, Args: a, Check: func() error {
		ys, round := make([]float64, len(xs)), kernel.NewSample("", c.Type, 1, 0)
		for i := range xs {
			if ys[i] = xs[i] * scale[i/c.Cols] * ws[i%c.Cols]; c.Turn {
				ys[i] = round.Set(0, ys[i])
			}
		}
		for i := range rows {
			copy(ys[i*c.Cols:], turned(i, ys[i*c.Cols:][:c.Cols], false))
		}
		for i := range xs {
			want, size := ys[i], math.Abs(ys[i])
			if c.Turn { // both elements of the pair, and a rounding before the turn that may go the other way
				size += math.Abs(ys[i-i%c.Cols+(i+c.Cols/2)%c.Cols])
				size += 2 * size * kernel.Rounding(c.Type) / (depth * 0x1p-24)
			}
			if err := near("y", y, i, want, size); err != nil {
				return err
			}
			if err := near("rstd", rstd, i/c.Cols, scale[i/c.Cols], scale[i/c.Cols]); err != nil {
				return err
			}
			if c.Plus && sum.At(i) != xs[i] {
				return fmt.Errorf("row: sum[%d] is %v, want %v", i, sum.At(i), xs[i])
			}
		}
		return intact(y, rstd, sum)
	}}, err
}

// tokensOf makes rows that are turned whole tokens of three heads.
func tokensOf(rows int, turn bool) int {
	if turn {
		return 3 * rows
	}
	return rows
}

// angles are those of heads of cols columns, three a token, five tokens a sequence, and the turn of a row by them.
func angles(cols int) (Angles, func(row int, x []float64, back bool) []float64) {
	const seq, heads = 5, 3
	pos, table := kernel.NewSample("pos", num.F32, seq, 4), kernel.NewSample("table", num.F32, 2*seq*cols, 16)
	pos.Fill(func(i int) float64 { return float64(2*i + 1) })
	t := table.Fill(func(i int) float64 {
		angle := float64(i/cols) * math.Pow(100, -float64(i%cols%(cols/2))/float64(cols/2))
		if i%cols < cols/2 {
			return math.Cos(angle)
		}
		return math.Sin(angle)
	})
	return Angles{Pos: pos.Place(), Table: table.Place(), Seq: seq, Heads: heads}, func(row int, x []float64, back bool) []float64 {
		at := t[(row/heads%seq*2+1)*cols:]
		y := make([]float64, cols)
		for j := range y {
			sin := at[cols/2+j%(cols/2)]
			if (j < cols/2) != back {
				sin = -sin
			}
			y[j] = x[j]*at[j%(cols/2)] + sin*x[(j+cols/2)%cols]
		}
		return y
	}
}

// Cases are one row, and more rows than fit a CTA and a round.
func (n *Norm) Cases(sms int) ([]kernel.Case, error) {
	return each(some(), func(rows int, seed int64) (kernel.Case, error) { return n.Case(rows, seed, sms) })
}

// FaultCase gives each CTA several rounds.
func (n *Norm) FaultCase() (kernel.Case, int, error) {
	c, err := n.Case(70, 1, 1)
	return c, 8, err
}

// Equivalent proves mutants to be no faults.
func (n *Norm) Equivalent(m ptx.Mutant) string { return even(m) }

// Case takes random gradients through the norm. Partial sums are added up here.
func (n *NormBack) Case(rows int, seed int64, sms int) (kernel.Case, error) {
	rows = tokensOf(rows, n.Config.Turn)
	r, c := rand.New(rand.NewSource(seed)), n.Config
	x, xs := draw(r, "x", c.Type, c.Wide, rows*c.Cols)
	dy, dys := draw(r, "dy", c.Type, c.Wide, rows*c.Cols)
	w, ws := draw(r, "w", c.Type, c.Wide, c.Cols)
	rstd := kernel.NewSample("rstd", num.F32, rows, 4)
	scale := rstd.Fill(func(int) float64 { return 0.5 + r.Float64() })
	dx := kernel.NewSample("dx", c.Type, rows*c.Cols, offset(c.Type, c.Wide))
	part := kernel.NewSample("part", num.F32, n.Parts(rows, 3, sms)*c.Cols, 4)
	o := NormBackOperands{DX: dx.Place(), DY: dy.Place(), X: x.Place(), RStd: rstd.Place(), W: w.Place(), Part: part.Place(), Rows: rows}
	if c.Turn {
		var turned func(int, []float64, bool) []float64
		o.Angles, turned = angles(c.Cols)
		round := kernel.NewSample("", c.Type, 1, 0)
		for i := range rows {
			for j, v := range turned(i, dys[i*c.Cols:][:c.Cols], true) {
				dys[i*c.Cols+j] = round.Set(0, v)
			}
		}
	}
	around := make([]float64, len(xs))
	if c.Plus {
		var plus *kernel.Sample
		plus, around = draw(r, "plus", c.Type, c.Wide, rows*c.Cols)
		o.Plus = plus.Place()
	}
	l, a, err := n.Launch(o, sms)
	return kernel.Case{Name: fmt.Sprint(rows), Launch: l, Args: a, Check: func() error {
		dw, size := make([]float64, c.Cols), make([]float64, c.Cols)
		for i := range rows {
			mean, all := 0.0, 0.0
			row := func(s []float64) []float64 { return s[i*c.Cols:][:c.Cols] }
			for j := range c.Cols {
				p := row(dys)[j] * ws[j] * row(xs)[j] / float64(c.Cols)
				mean, all = mean+p, all+math.Abs(p)
				dw[j] += row(dys)[j] * row(xs)[j] * scale[i]
				size[j] += math.Abs(row(dys)[j] * row(xs)[j] * scale[i])
			}
			for j := range c.Cols {
				a, b, cube := scale[i]*ws[j]*row(dys)[j], row(xs)[j], scale[i]*scale[i]*scale[i]
				size := math.Abs(a) + math.Abs(b*cube*all) + math.Abs(row(around)[j])
				if c.Turn { // dy is below 8 before the turn; a rounding of it may go the other way
					size += 8 * (scale[i]*math.Abs(ws[j]) + math.Abs(b)*cube) * (1 + kernel.Rounding(c.Type)/(depth*0x1p-24))
				}
				if err := near("dx", dx, i*c.Cols+j, a-b*cube*mean+row(around)[j], size); err != nil {
					return err
				}
			}
		}
		for j := 0; c.Weights && j < c.Cols; j++ {
			got := 0.0
			for i := range part.N / c.Cols {
				got += part.At(i*c.Cols + j)
			}
			bound := depth * 0x1p-24 * size[j]
			for i := 0; c.Turn && i < rows; i++ {
				bound += 8 * math.Abs(xs[i*c.Cols+j]) * scale[i] * (4*0x1p-24 + kernel.Rounding(c.Type))
			}
			if !(math.Abs(got-dw[j]) <= bound) {
				return fmt.Errorf("row: dw[%d] is %v, want %v ± %v", j, got, dw[j], bound)
			}
		}
		return intact(dx, part)
	}}, err
}

// Cases are one row, and more rows than fit a CTA and a round.
func (n *NormBack) Cases(sms int) ([]kernel.Case, error) {
	return each(some(), func(rows int, seed int64) (kernel.Case, error) { return n.Case(rows, seed, sms) })
}

// FaultCase gives each CTA several rounds.
func (n *NormBack) FaultCase() (kernel.Case, int, error) {
	c, err := n.Case(70, 1, 1)
	return c, 8, err
}

// Equivalent proves mutants to be no faults.
func (n *NormBack) Equivalent(m ptx.Mutant) string { return even(m) }

// Case adds the columns of a random matrix to a random vector.
func (c *Columns) Case(rows, cols int, seed int64) (kernel.Case, error) {
	r := rand.New(rand.NewSource(seed))
	x, xs := draw(r, "x", c.Config.Type, false, rows*cols)
	parts := 1
	if !c.Config.Last {
		parts = min(3, rows)
	}
	y, want := draw(r, "y", num.F32, false, parts*cols)
	l, a, err := c.Launch(y.Place(), x.Place(), rows, cols, parts)
	return kernel.Case{Name: fmt.Sprintf("%dx%d", rows, cols), Launch: l, Args: a, Check: func() error {
		for j := range parts * cols {
			sum, size := want[j], math.Abs(want[j])
			if !c.Config.Last {
				sum, size = 0, 0
			}
			each := (rows + parts - 1) / parts
			for i := j / cols * each; i < min(rows, (j/cols+1)*each); i++ {
				sum, size = sum+xs[i*cols+j%cols], size+math.Abs(xs[i*cols+j%cols])
			}
			if err := near("y", y, j, sum, size); err != nil {
				return err
			}
		}
		return intact(y)
	}}, err
}

// Cases are one element, ragged and several CTAs.
func (c *Columns) Cases(int) ([]kernel.Case, error) {
	return each([]int{1, 5, 40}, func(rows int, seed int64) (kernel.Case, error) { return c.Case(rows, 3*rows+1, seed) })
}

// FaultCase has more rows than warps.
func (c *Columns) FaultCase() (kernel.Case, int, error) {
	k, err := c.Case(20, 40, 1)
	return k, 2, err
}

// Equivalent proves mutants to be no faults.
func (c *Columns) Equivalent(m ptx.Mutant) string { return even(m) }

// Case multiplies random rows.
func (d *Dot) Case(rows int, seed int64, sms int) (kernel.Case, error) {
	r, wide := rand.New(rand.NewSource(seed)), d.width > 1
	a, as := draw(r, "a", d.Type, wide, rows*d.cols)
	b, bs := draw(r, "b", d.Type, wide, rows*d.cols)
	y := kernel.NewSample("y", num.F32, rows, 4)
	l, args, err := d.Launch(y.Place(), a.Place(), b.Place(), rows, sms)
	return kernel.Case{Name: fmt.Sprint(rows), Launch: l, Args: args, Check: func() error {
		for i := range rows {
			sum, size := 0.0, 0.0
			for j := range d.cols {
				p := as[i*d.cols+j] * bs[i*d.cols+j]
				sum, size = sum+p, size+math.Abs(p)
			}
			if err := near("y", y, i, sum, size); err != nil {
				return err
			}
		}
		return intact(y)
	}}, err
}

// Cases are one row, and more rows than fit a CTA and a round.
func (d *Dot) Cases(sms int) ([]kernel.Case, error) {
	return each(some(), func(rows int, seed int64) (kernel.Case, error) { return d.Case(rows, seed, sms) })
}

// FaultCase gives each CTA several rounds.
func (d *Dot) FaultCase() (kernel.Case, int, error) {
	c, err := d.Case(70, 1, 1)
	return c, 8, err
}

// Equivalent proves mutants to be no faults.
func (d *Dot) Equivalent(m ptx.Mutant) string { return even(m) }
