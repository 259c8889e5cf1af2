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

// Case is a product of random small integers, whose result is exact: |a|, |b| ≤ 2 and K ≤ 2²² keep every sum below 2²⁴, and the
// reference rounds once to bf16 as the kernel does. D is filled with NaN before, and each buffer ends in a guard band.
func (g *Gemm) Case(m, n, k int, seed int64, sms int) (kernel.Case, error) {
	r := rand.New(rand.NewSource(seed))
	p := Problem{M: m, N: n, K: k, A: buffer("A", m*k), B: buffer("B", n*k), D: buffer("D", m*n)}
	for _, b := range []*ptx.Buffer{p.A, p.B} {
		for i := 0; i < len(b.Data)-guard; i += elem {
			binary.LittleEndian.PutUint16(b.Data[i:], num.ToBF16(float32(r.Intn(5)-2)))
		}
	}
	l, args, err := g.Launch(p, sms)
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%d", m, n, k), Launch: l, Args: args, Check: p.checkExact}, err
}

const guard = 256 // bytes behind a buffer that nothing may touch

// buffer makes a buffer of n bf16 NaNs and a guard band of the same.
func buffer(name string, n int) *ptx.Buffer {
	b := &ptx.Buffer{Name: name, Data: make([]byte, n*elem+guard)}
	for i := 0; i < len(b.Data); i += elem {
		binary.LittleEndian.PutUint16(b.Data[i:], num.NaNBF16)
	}
	return b
}

func at(b *ptx.Buffer, i int) float32 {
	return num.FromBF16(binary.LittleEndian.Uint16(b.Data[i*elem:]))
}

// checkExact compares D with the plain product.
func (p Problem) checkExact() error {
	a, b := widen(p.A, p.M*p.K), widen(p.B, p.N*p.K)
	for i := range p.M {
		for j := range p.N {
			var sum float32
			x, y := a[i*p.K:][:p.K], b[j*p.K:][:p.K]
			for k := range x {
				sum += x[k] * y[k]
			}
			want := num.ToBF16(sum)
			if got := binary.LittleEndian.Uint16(p.D.Data[(i*p.N+j)*elem:]); got != want {
				return fmt.Errorf("gemm: D[%d,%d] = %v, want %v", i, j, num.FromBF16(got), num.FromBF16(want))
			}
		}
	}
	return p.checkGuard()
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

// Cases are whole and ragged products: fewer and more tiles than CTAs, fewer and more k steps than stages.
func (g *Gemm) Cases(sms int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, s := range [][3]int{{256, 256, 256}, {136, 200, 72}, {512, 256, 1024}, {8, 8, 8}, {1, 16, 24}, {300, 520, 640}} {
		c, err := g.Case(s[0], s[1], s[2], int64(i), sms)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase gives one cluster two tiles of stages + 2 k steps each.
func (g *Gemm) FaultCase() (kernel.Case, int, error) {
	c := g.Config
	k, err := g.Case(rows*c.Cluster, 2*c.BN, (c.Stages+2)*c.BK, 7, c.Cluster)
	return k, c.Cluster, err
}
