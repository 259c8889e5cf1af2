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

// Exact is a product of random small integers, whose result is exact: |a|, |b| ≤ 2 and K ≤ 2²² keep every sum below 2²⁴, and the
// reference rounds once to bf16 as the kernel does. Each buffer ends in a guard band.
type Exact struct {
	Problem
	name string
	want []uint16 // D, once computed
}

// NewExact draws one.
func NewExact(m, n, k int, seed int64) *Exact {
	r := rand.New(rand.NewSource(seed))
	p := Problem{M: m, N: n, K: k, A: buffer("A", m*k), B: buffer("B", n*k), D: buffer("D", m*n)}
	for _, b := range []*ptx.Buffer{p.A, p.B} {
		for i := 0; i < len(b.Data)-guard; i += elem {
			binary.LittleEndian.PutUint16(b.Data[i:], num.ToBF16(float32(r.Intn(5)-2)))
		}
	}
	return &Exact{Problem: p, name: fmt.Sprintf("%dx%dx%d", m, n, k)}
}

// Case fills D with NaN and describes the launch on a device that runs so many CTAs of g at once. One Exact serves one case at a time.
func (x *Exact) Case(g *Gemm, ctas int) (kernel.Case, error) {
	poison(x.D)
	l, args, err := g.Launch(x.Problem, ctas)
	return kernel.Case{Name: x.name, Launch: l, Args: args, Check: x.check}, err
}

const guard = 256 // bytes behind a buffer that nothing may touch

// buffer makes a buffer of n bf16 NaNs and a guard band of the same.
func buffer(name string, n int) *ptx.Buffer {
	b := &ptx.Buffer{Name: name, Data: make([]byte, n*elem+guard)}
	poison(b)
	return b
}

func poison(b *ptx.Buffer) {
	for i := 0; i < len(b.Data); i += elem {
		binary.LittleEndian.PutUint16(b.Data[i:], num.NaNBF16)
	}
}

func at(b *ptx.Buffer, i int) float32 {
	return num.FromBF16(binary.LittleEndian.Uint16(b.Data[i*elem:]))
}

// check compares D with the plain product.
func (x *Exact) check() error {
	if x.want == nil {
		x.want = x.reference()
	}
	for i, want := range x.want {
		if got := binary.LittleEndian.Uint16(x.D.Data[i*elem:]); got != want {
			return fmt.Errorf("gemm: D[%d,%d] = %v, want %v", i/x.N, i%x.N, num.FromBF16(got), num.FromBF16(want))
		}
	}
	return x.checkGuard()
}

func (p Problem) reference() []uint16 {
	a, b := widen(p.A, p.M*p.K), widen(p.B, p.N*p.K)
	d := make([]uint16, p.M*p.N)
	for i := range d {
		x, y := a[i/p.N*p.K:][:p.K], b[i%p.N*p.K:][:p.K]
		var sum float32
		for k := range x {
			sum += x[k] * y[k]
		}
		d[i] = num.ToBF16(sum)
	}
	return d
}

func (p Problem) checkGuard() error {
	for i := p.M * p.N; i < len(p.D.Data)/elem; i++ {
		if x := at(p.D, i); !math.IsNaN(float64(x)) {
			return fmt.Errorf("gemm: %v written %d elements behind D", x, i-p.M*p.N)
		}
	}
	return nil
}

func widen(b *ptx.Buffer, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = at(b, i)
	}
	return x
}
