package gemm

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Case is a product of random small integers, whose sums are exact in float32.
func (p *Plain) Case(m, n, k int, seed int64) (kernel.Case, error) {
	r, c := rand.New(rand.NewSource(seed)), p.Config
	sample := func(name string, t num.DType, n int) *kernel.Sample { return kernel.NewSample(name, t, n, t.Size()) }
	draw := func(int) float64 { return float64(r.Intn(5) - 2) }
	a, b, d := sample("A", c.In, m*k), sample("B", c.In, k*n), sample("C", c.Out, m*n)
	as, bs := a.Fill(draw), b.Fill(draw)
	want := make([]float64, m*n)
	if c.Add {
		want = d.Fill(draw)
	}
	for i := range want {
		for j := range k {
			x, y := as[i/n*k+j%k], bs[j*n+i%n]
			if c.TransA {
				x = as[j*m+i/n]
			}
			if c.TransB {
				y = bs[i%n*k+j]
			}
			want[i] += x * y
		}
	}
	l, args, err := p.Launch(PlainOperands{A: a.Place(), B: b.Place(), C: d.Place(), M: m, N: n, K: k})
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%d", m, n, k), Launch: l, Args: args, Check: func() error {
		for i := range want {
			if got := d.At(i); math.Abs(got-want[i]) > kernel.Rounding(c.Out)*math.Abs(want[i]) {
				return fmt.Errorf("gemm: %s: C[%d,%d] is %v, want %v", p.Entry.Name, i/n, i%n, got, want[i])
			}
		}
		if !d.Intact() {
			return fmt.Errorf("gemm: %s writes outside C", p.Entry.Name)
		}
		return nil
	}}, err
}

// Cases are one element, ragged and whole tiles.
func (p *Plain) Cases(int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, s := range [][3]int{{1, 1, 1}, {5, 67, 19}, {64, 64, 32}, {130, 70, 33}} {
		c, err := p.Case(s[0], s[1], s[2], int64(i))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase has more steps than one.
func (p *Plain) FaultCase() (kernel.Case, int, error) {
	c, err := p.Case(64, 64, 48, 1)
	return c, 1, err
}

// Equivalent knows no mutant that is no fault.
func (p *Plain) Equivalent(ptx.Mutant) string { return "" }
