package gemm

import (
	"heddle/kernel/signature"
	"heddle/ptx"
)

// Matrices are the arguments of a launch: D = A·Bᵀ, or D += A·Bᵀ.
type Matrices struct{ A, B, D signature.Tensor }

// Signature is what the kernel accepts, on a device that runs so many of its CTAs at once: A [m, k] or [k, m], B [n, k] or [k, n], D [m, n], all row-major and packed.
// Rows are multiples of 16 bytes, the unit of TMA; so are addresses.
func (g *Gemm) Signature(ctas int) *signature.Signature[Matrices] {
	c := g.Config
	s := signature.New[Matrices]("gemm " + c.String())
	row := func(name string, divisors ...int) signature.Size {
		divisor := 1
		for _, d := range divisors {
			divisor = max(divisor, d)
		}
		return s.Size(name, divisor)
	}
	in, out := 16/c.elem(), 16/c.Out.Size()
	m, n, k := row("m", when(c.TransA, in)), row("n", when(c.TransB, in), out), row("k", when(!c.TransA || !c.TransB, in))
	operand := func(name string, field func(*Matrices) *signature.Tensor, rows signature.Size, trans bool) signature.Slot {
		dims := []signature.Size{rows, k}
		if trans {
			dims = []signature.Size{k, rows}
		}
		return s.Tensor(name, field, signature.Spec{Type: c.In, Dims: dims, Align: 16})
	}
	a := operand("A", func(o *Matrices) *signature.Tensor { return &o.A }, m, c.TransA)
	b := operand("B", func(o *Matrices) *signature.Tensor { return &o.B }, n, c.TransB)
	d := s.Tensor("D", func(o *Matrices) *signature.Tensor { return &o.D }, signature.Spec{Type: c.Out, Dims: []signature.Size{m, n}, Align: 16})
	s.Plan(func(x *signature.Shape) (ptx.Launch, *ptx.Args, error) {
		return g.Launch(Problem{M: x.Size(m), N: x.Size(n), K: x.Size(k), A: x.Buffer(a), B: x.Buffer(b), D: x.Buffer(d)}, ctas)
	})
	return s
}

// when is the divisor that holds under a condition.
func when(holds bool, divisor int) int {
	if holds {
		return divisor
	}
	return 1
}
