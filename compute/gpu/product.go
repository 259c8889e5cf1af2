package gpu

import (
	"fmt"

	"heddle/compute"
	"heddle/kernel"
	"heddle/kernel/gemm"
	"heddle/num"
	"heddle/ptx"
	"heddle/tensor"
)

// Gemm multiplies bf16 matrices on the tensor cores where TMA can move their rows, all others on the CUDA cores. Sums are float32.
func (l *Leaf) Gemm(g compute.Gemm, c, a, b tensor.Tensor) {
	switch {
	case g.M == 0 || g.N == 0:
		return
	case a.Type != tensor.BF16 || b.Type != tensor.BF16 || !movable(g, c, a, b):
		l.plain(g, l.at(c), dtype(c.Type), a, b)
	default:
		l.product(g, l.at(c), c.Type, a, b)
	}
}

// movable tells whether TMA can move the rows of all three: starts and steps of 16 bytes.
func movable(g compute.Gemm, c, a, b tensor.Tensor) bool {
	rowA, rowB := g.K, g.N
	if g.TransA {
		rowA = g.M
	}
	if g.TransB {
		rowB = g.K
	}
	return rowA*a.Type.Size()%16 == 0 && rowB*b.Type.Size()%16 == 0 && g.N*c.Type.Size()%16 == 0 && wide(c, a, b)
}

// product is kernel/gemm, whose B is stored [N, K] where it is not transposed.
func (l *Leaf) product(g compute.Gemm, to kernel.Place, t tensor.DType, a, b tensor.Tensor) {
	like := gemm.Config{In: num.BF16, Out: dtype(t), Add: g.Accumulate && t == tensor.F32, TransA: g.TransA, TransB: !g.TransB}
	like.Epi.Residual = g.Accumulate && t == tensor.BF16 // TMA adds in float32 only
	c := get(l.kernels, l.kernels.choice, product{g.M, g.N, g.K, like}, func() (gemm.Config, error) { return gemm.Choose(g.M, g.N, g.K, l.sms, like) })
	k := get(l.kernels, l.kernels.gemm, c, func() (*gemm.Gemm, error) { return gemm.New(c) })
	l.shape = fmt.Sprintf("%dx%dx%d %v", g.M, g.N, g.K, c)
	defer func() { l.shape = "" }()
	l.run("contract", k, func() (ptx.Launch, *ptx.Args, error) {
		p := gemm.Problem{M: g.M, N: g.N, K: g.K, A: l.slice(l.at(a), a.Bytes()), B: l.slice(l.at(b), b.Bytes()), D: l.slice(to, g.M*g.N*t.Size())}
		if c.Epi.Residual {
			p.Epi = gemm.Operands{C: p.D, Beta: 1}
		}
		return k.Launch(p, l.sms)
	})
}

// plain is gemm.Plain.
func (l *Leaf) plain(g compute.Gemm, to kernel.Place, t num.DType, a, b tensor.Tensor) {
	c := gemm.PlainConfig{In: dtype(a.Type), Out: t, TransA: g.TransA, TransB: g.TransB, Add: g.Accumulate}
	k := get(l.kernels, l.kernels.plain, c, func() (*gemm.Plain, error) { return gemm.NewPlain(c) })
	l.run("contract", k, func() (ptx.Launch, *ptx.Args, error) {
		return k.Launch(gemm.PlainOperands{A: l.at(a), B: l.at(b), C: to, M: g.M, N: g.N, K: g.K})
	})
}

// slice is a stretch of the arena as a buffer of its own: what a tensor map is made for.
func (l *Leaf) slice(p kernel.Place, bytes int) *ptx.Buffer {
	b := &ptx.Buffer{Name: "arena", Bytes: bytes}
	if p.Buffer.Data != nil {
		b.Data = p.Buffer.Data[p.Offset : p.Offset+bytes]
	} else {
		b.Device = p.Buffer.Device + uint64(p.Offset)
	}
	return b
}
