package gemm

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// epilogue draws operands for the configuration's epilogue, puts them into p, and gives the check of all results against kernel.Epilogue.Apply.
//
// Factors are powers of two and summands small integers, so that what has no activation is exact. With one, the pre-activation is scaled to where the function bends.
func (x *Exact) epilogue(c Config, p *Problem) (check func() error) {
	r := rand.New(rand.NewSource(x.seed + 1))
	e, wide := c.Epi, c.Epi.Act.Columns(x.N)
	in := kernel.Operands{Alpha: 2, Beta: -2}
	if e.Act != kernel.Linear {
		in.Alpha = 1.0 / 64
	}
	vector := func(name string, n int, draw func() float64) ([]float64, *ptx.Buffer) {
		v, b := make([]float64, n), buffer(name, num.F32, n)
		for i := range v {
			v[i] = draw()
			put(b, num.F32, i, float32(v[i]))
		}
		return v, b
	}
	factor := func() float64 { return []float64{-1, 0.5, 1, 2}[r.Intn(4)] }
	in.Rows, p.Epi.Rows = vector("rows", x.M, factor)
	in.Columns, p.Epi.Columns = vector("columns", x.N, factor)
	in.Bias, p.Epi.Bias = vector("bias", x.N, func() float64 { return float64(r.Intn(7) - 3) })
	in.C = make([]float64, x.M*wide)
	p.Epi.C = buffer("C", c.Out, len(in.C))
	for i := range in.C {
		in.C[i] = float64(r.Intn(17)-8) / 4
		put(p.Epi.C, c.Out, i, float32(in.C[i]))
	}
	p.Epi.Alpha, p.Epi.Beta = float32(in.Alpha), float32(in.Beta)
	p.Epi.Kept = buffer("kept", c.Out, x.M*x.N)
	p.Epi.AMax = &ptx.Buffer{Name: "amax", Data: make([]byte, 4)}
	return func() error {
		product := make([]float64, x.M*x.N)
		for i, v := range x.reference() {
			product[i] = float64(v)
		}
		want := bend(e, product, x.M, x.N, in)
		if err := want.compare(p.D, c.Out, want.d, want.slack); err != nil {
			return err
		}
		if e.Keep {
			if err := want.compare(p.Epi.Kept, c.Out, want.kept, make([]float64, len(want.kept))); err != nil {
				return err
			}
		}
		if got := float64(at(p.Epi.AMax, num.F32, 0)); e.AMax && math.Abs(got-want.largest) > want.largest/1024 {
			return fmt.Errorf("gemm: largest |d| %v, want %v", got, want.largest)
		}
		return nil
	}
}

// bent is an epilogue's results, and how far an error of tanh may move them.
type bent struct {
	d, kept, slack []float64
	largest        float64
}

// bend applies an epilogue with the exact tanh and with ones that are 2⁻¹¹ too large and too small, as tanh.approx may be (PTX ISA, tanh).
func bend(e kernel.Epilogue, product []float64, m, n int, in kernel.Operands) bent {
	var b bent
	b.d, b.kept, b.largest = e.Apply(product, m, n, in)
	b.slack = make([]float64, len(b.d))
	for _, s := range []float64{1 + 0x1p-11, 1 - 0x1p-11} {
		in.Tanh = func(x float64) float64 { return math.Tanh(x) * s }
		d, _, _ := e.Apply(product, m, n, in)
		for i := range d {
			b.slack[i] = max(b.slack[i], math.Abs(d[i]-b.d[i]))
		}
	}
	return b
}

// compare allows slack, one rounding to type t where there is slack, and ten of float32 for the arithmetic of an activation; without slack the result is exact but
// for the rounding, which is the reference's own.
func (bent) compare(got *ptx.Buffer, t num.DType, want, slack []float64) error {
	for i, w := range want {
		g, allow := float64(at(got, t, i)), 0.0
		if slack[i] > 0 {
			allow = 2*slack[i] + math.Abs(w)*(math.Ldexp(1, -bits(t))+10*0x1p-24) + 0x1p-24
		}
		if slack[i] == 0 {
			w = float64(num.Round(t, float32(w)))
		}
		if !(math.Abs(g-w) <= allow) { // a NaN is far from everything
			return fmt.Errorf("gemm: element %d of %s is %v, want %v ± %.2g", i, got.Name, g, w, allow)
		}
	}
	return untouched(got, t, len(want))
}

// bits of a type's significand.
func bits(t num.DType) int {
	switch t {
	case num.BF16:
		return 8
	case num.F16:
		return 11
	}
	return 24
}

// scaled draws block scales, powers of two, puts them into p and gives the check: sums of small integers times powers of two are exact.
func (x *Exact) scaled(c Config, p *Problem) (check func() error) {
	r := rand.New(rand.NewSource(x.seed + 3))
	steps := ceil(x.K, blockDepth)
	draw := func(name string, n int) ([]float64, *ptx.Buffer) {
		v, b := make([]float64, n), buffer(name, num.F32, n)
		for i := range v {
			v[i] = []float64{0.5, 1, 2}[r.Intn(3)]
			put(b, num.F32, i, float32(v[i]))
		}
		return v, b
	}
	var a, b []float64
	a, p.ScaleA = draw("scaleA", steps*x.M)
	b, p.ScaleB = draw("scaleB", ceil(x.N, blockDepth)*steps)
	product := make([]float64, x.M*x.N)
	for i := range product {
		row, col := i/x.N, i%x.N
		for k := range x.K {
			product[i] += float64(x.a[row*x.K+k]*x.b[col*x.K+k]) * a[k/blockDepth*x.M+row] * b[col/blockDepth*steps+k/blockDepth]
		}
	}
	scaled := &Exact{M: x.M, N: x.N, K: x.K, product: make([]float32, len(product)), seed: x.seed}
	for i, v := range product {
		scaled.product[i] = float32(v)
	}
	if c.Epi != (kernel.Epilogue{}) {
		return scaled.epilogue(c, p)
	}
	return func() error { return scaled.check(c, p.D) }
}
