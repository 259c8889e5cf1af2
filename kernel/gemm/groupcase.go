package gemm

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// grouped is Case for kernels of groups: M, or by depth K, is dealt to some groups at random, of which some are empty.
func (x *Exact) grouped(g *Gemm, ctas int) (kernel.Case, error) {
	c, r := g.Config, rand.New(rand.NewSource(x.seed+2))
	all := x.M
	if c.Groups == ByDepth {
		all = x.K
	}
	const count = 6
	offsets := make([]int, count+1)
	for i := 1; i < count; i++ {
		offsets[i] = r.Intn(all + 1)
	}
	offsets[2], offsets[count] = offsets[1], all
	slices.Sort(offsets)
	p := Problem{M: x.M, N: x.N, K: x.K, Groups: count, Offsets: &ptx.Buffer{Name: "offsets"}}
	for _, o := range offsets {
		p.Offsets.Data = binary.LittleEndian.AppendUint32(p.Offsets.Data, uint32(o))
	}
	b, bs, ds := x.b, 1, 1 // matrices B and D
	if c.Groups == ByDepth {
		ds = count
	} else {
		b, bs = integers(count*x.N*x.K, r), count
	}
	before := integers(ds*x.M*x.N, r)
	p.A, p.B, p.D = buffer("A", c.In, x.M*x.K), buffer("B", c.In, bs*x.N*x.K), buffer("D", c.Out, ds*x.M*x.N)
	a := x.a
	if c.TransA {
		a = transposed(a, x.M, x.K)
	}
	fill(p.A, c.In, a)
	var laid []float32
	for e := range bs {
		m := b[e*x.N*x.K:][:x.N*x.K]
		if c.TransB {
			m = transposed(m, x.N, x.K)
		}
		laid = append(laid, m...)
	}
	fill(p.B, c.In, laid)
	if c.Add {
		fill(p.D, c.Out, before)
	}
	l, args, err := g.Launch(p, ctas)
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%d", x.M, x.N, x.K), Launch: l, Args: args, Check: func() error {
		for i := range ds * x.M * x.N {
			e, row, col := i/x.N/x.M, i/x.N%x.M, i%x.N
			first, end := 0, x.K
			if c.Groups == ByDepth {
				first, end = offsets[e], offsets[e+1]
			} else {
				for e = 0; row >= offsets[e+1]; e++ {
				}
			}
			var sum float32
			for k := first; k < end; k++ {
				y := b[col*x.K+k]
				if c.Groups == ByRows {
					y = b[(e*x.N+col)*x.K+k]
				}
				sum += x.a[row*x.K+k] * y
			}
			if c.Add {
				sum += before[i]
			}
			if got, want := at(p.D, c.Out, i), num.Round(c.Out, sum); got != want {
				return fmt.Errorf("gemm: D[%d,%d] of group %d = %v, want %v; groups begin at %v", row, col, e, got, want, offsets)
			}
		}
		return untouched(p.D, c.Out, ds*x.M*x.N)
	}}, err
}
