package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Case is a product of random small integers, whose result is exact: |a|, |b| ≤ 2 and K ≤ 2²⁰ keep every sum below 2²⁴, and the
// reference rounds once to D's type as the kernel does. D is filled with NaN before, with small integers where the product is added; each buffer ends in a guard band.
func (g *Gemm) Case(m, n, k int, seed int64, sms int) (kernel.Case, error) {
	c := g.Config
	r := rand.New(rand.NewSource(seed))
	p := product{Problem: Problem{M: m, N: n, K: k, A: buffer("A", c.In, m*k), B: buffer("B", c.In, n*k), D: buffer("D", c.Out, m*n)}, c: c}
	p.a, p.b = fill(p.A, c.In, m*k, r), fill(p.B, c.In, n*k, r)
	if c.Add {
		p.before = fill(p.D, c.Out, m*n, r)
	}
	l, args, err := g.Launch(p.Problem, sms)
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%d", m, n, k), Launch: l, Args: args, Check: p.check}, err
}

// product is a problem with what its reference needs.
type product struct {
	Problem
	c      Config
	a, b   []float32 // as stored
	before []float32 // D, where the product is added
}

const guard = 256 // bytes behind a buffer that nothing may touch

// buffer makes a buffer of n NaNs and a guard band of the same.
func buffer(name string, t num.DType, n int) *ptx.Buffer {
	b := &ptx.Buffer{Name: name, Data: make([]byte, n*t.Size()+guard)}
	for i := range len(b.Data) / t.Size() {
		put(b, t, i, float32(math.NaN()))
	}
	return b
}

// fill writes n random small integers, and gives them.
func fill(b *ptx.Buffer, t num.DType, n int, r *rand.Rand) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.Intn(5) - 2)
		put(b, t, i, x[i])
	}
	return x
}

func put(b *ptx.Buffer, t num.DType, i int, x float32) {
	switch t {
	case num.BF16:
		binary.LittleEndian.PutUint16(b.Data[2*i:], num.ToBF16(x))
	case num.F16:
		binary.LittleEndian.PutUint16(b.Data[2*i:], num.ToF16(x))
	case num.F32:
		binary.LittleEndian.PutUint32(b.Data[4*i:], math.Float32bits(x))
	}
}

func at(b *ptx.Buffer, t num.DType, i int) float32 {
	switch t {
	case num.BF16:
		return num.FromBF16(binary.LittleEndian.Uint16(b.Data[2*i:]))
	case num.F16:
		return num.FromF16(binary.LittleEndian.Uint16(b.Data[2*i:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b.Data[4*i:]))
}

// rows gives a matrix [n, k] with k contiguous, from how it is stored.
func rows(x []float32, n, k int, trans bool) []float32 {
	if !trans {
		return x
	}
	y := make([]float32, len(x))
	for i := range n {
		for j := range k {
			y[i*k+j] = x[j*n+i]
		}
	}
	return y
}

// check compares D with the plain product.
func (p product) check() error {
	a, b := rows(p.a, p.M, p.K, p.c.TransA), rows(p.b, p.N, p.K, p.c.TransB)
	for i := range p.M {
		for j := range p.N {
			var sum float32
			if p.before != nil {
				sum = p.before[i*p.N+j]
			}
			x, y := a[i*p.K:][:p.K], b[j*p.K:][:p.K]
			for k := range x {
				sum += x[k] * y[k]
			}
			if got, want := at(p.D, p.c.Out, i*p.N+j), num.Round(p.c.Out, sum); got != want {
				return fmt.Errorf("gemm: D[%d,%d] = %v, want %v", i, j, got, want)
			}
		}
	}
	for i := p.M * p.N; i < len(p.D.Data)/p.c.Out.Size(); i++ {
		if x := at(p.D, p.c.Out, i); !math.IsNaN(float64(x)) {
			return fmt.Errorf("gemm: %v written %d elements behind D", x, i-p.M*p.N)
		}
	}
	return nil
}

// Cases are whole and ragged products: fewer and more tiles than CTAs, fewer and more k steps than stages.
func (g *Gemm) Cases(sms int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, s := range g.Config.sizes() {
		c, err := g.Case(s[0], s[1], s[2], int64(i), sms)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// sizes are M, N, K that the configuration can take.
func (c Config) sizes() [][3]int {
	odd, deep := 1, 72
	if c.TransA {
		odd = 8 // M is then the contiguous dim
		if c.TransB {
			deep = 71
		}
	}
	return [][3]int{{256, 256, 256}, {136, 200, deep}, {512, 256, 1024}, {8, 8, 8}, {odd, 16, 24}, {304, 520, 640}}
}

// FaultCase gives one cluster two tiles of stages + 2 k steps each, three in ping-pong, where the consumers take turns.
func (g *Gemm) FaultCase() (kernel.Case, int, error) {
	c, tiles := g.Config, 2
	if c.PingPong {
		tiles = 4
	}
	k, err := g.Case(c.BM*c.Cluster, tiles*c.BN, (c.Stages+2)*c.BK, 7, c.Cluster)
	return k, c.Cluster, err
}
