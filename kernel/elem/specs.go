package elem

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

func types(t num.DType, n int) []num.DType {
	all := make([]num.DType, n)
	for i := range all {
		all[i] = t
	}
	return all
}

// Add is a + b.
func Add(t num.DType) Spec {
	return Spec{
		Name: "add_" + t.String(), In: types(t, 2), Out: types(t, 1),
		Body: func(_ *ptx.Builder, x []ptx.F32) []ptx.F32 { return []ptx.F32{x[0].Add(x[1])} },
		Ref:  func(x []float64) []float64 { return []float64{x[0] + x[1]} },
	}
}

// Cast converts from one type to another.
func Cast(from, to num.DType) Spec {
	return Spec{
		Name: fmt.Sprintf("cast_%v_%v", from, to), In: types(from, 1), Out: types(to, 1),
		Body: func(_ *ptx.Builder, x []ptx.F32) []ptx.F32 { return x },
		Ref:  func(x []float64) []float64 { return x },
	}
}

// logistic is 1 ÷ (1 + e⁻ˣ).
func logistic(k *ptx.Builder, x ptx.F32) ptx.F32 {
	return k.F32(1).Add(kernel.Exp(k, x.Neg())).RcpApprox()
}

func logistic64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// SwiGLU is gate·logistic(gate)·up.
func SwiGLU(t num.DType) Spec {
	return Spec{
		Name: "swiglu_" + t.String(), In: types(t, 2), Out: types(t, 1),
		Body: func(k *ptx.Builder, x []ptx.F32) []ptx.F32 {
			return []ptx.F32{x[0].Mul(logistic(k, x[0])).Mul(x[1])}
		},
		Ref: func(x []float64) []float64 { return []float64{x[0] * logistic64(x[0]) * x[1]} },
	}
}

// SwiGLUBack gives the gradients of gate and up from dy, gate, up: with s = logistic(gate), dgate = dy·up·s·(1 + gate·(1−s)), dup = dy·gate·s.
func SwiGLUBack(t num.DType) Spec {
	return Spec{
		Name: "swiglu_back_" + t.String(), In: types(t, 3), Out: types(t, 2),
		Body: func(k *ptx.Builder, x []ptx.F32) []ptx.F32 {
			dy, gate, up, one := x[0], x[1], x[2], k.F32(1)
			s := logistic(k, gate)
			steep := s.Mul(gate.FMA(one.Sub(s), one))
			return []ptx.F32{dy.Mul(up).Mul(steep), dy.Mul(gate.Mul(s))}
		},
		Ref: func(x []float64) []float64 {
			s := logistic64(x[1])
			return []float64{x[0] * x[2] * s * (1 + x[1]*(1-s)), x[0] * x[1] * s}
		},
	}
}

// slope is 2·√(2/π), and bend the cubic's share: GELU is x·logistic(slope·(x + bend·x³)), the tanh form of GPT-2.
const slope, bend = 1.5957691216057308, 0.044715

// GELU is that.
func GELU(t num.DType) Spec {
	return Spec{
		Name: "gelu_" + t.String(), In: types(t, 1), Out: types(t, 1),
		Body: func(k *ptx.Builder, x []ptx.F32) []ptx.F32 { return []ptx.F32{x[0].Mul(logistic(k, curve(k, x[0])))} },
		Ref:  func(x []float64) []float64 { return []float64{x[0] * logistic64(slope*(x[0]+bend*x[0]*x[0]*x[0]))} },
	}
}

func curve(k *ptx.Builder, x ptx.F32) ptx.F32 {
	return x.Mul(x).FMA(k.F32(slope*bend), k.F32(slope)).Mul(x)
}

// GELUBack is dy·(s + x·s·(1−s)·slope·(1 + 3·bend·x²)) with s the logistic, from dy and x.
func GELUBack(t num.DType) Spec {
	return Spec{
		Name: "gelu_back_" + t.String(), In: types(t, 2), Out: types(t, 1),
		Body: func(k *ptx.Builder, x []ptx.F32) []ptx.F32 {
			s := logistic(k, curve(k, x[1]))
			steep := x[1].Mul(x[1]).FMA(k.F32(3*slope*bend), k.F32(slope))
			return []ptx.F32{x[0].Mul(x[1].Mul(s).Mul(k.F32(1).Sub(s)).FMA(steep, s))}
		},
		Ref: func(x []float64) []float64 {
			s := logistic64(slope * (x[1] + bend*x[1]*x[1]*x[1]))
			return []float64{x[0] * (s + x[1]*s*(1-s)*slope*(1+3*bend*x[1]*x[1]))}
		},
	}
}

// AdamW updates a weight w and its moments m, v in place from the gradient g·scale (Loshchilov and Hutter 2019, algorithm 2):
//
//	g ← g·scale; m ← β₁m + (1−β₁)g; v ← β₂v + (1−β₂)g²
//	w ← w·keep − rate·m ÷ (√(v·unbias) + eps)
//
// with keep = 1 − lr·decay, rate = lr ÷ (1−β₁ᵗ), unbias = 1 ÷ (1−β₂ᵗ). Where low is a type, the new weight is also written rounded to it.
func AdamW(low num.DType) Spec {
	s := Spec{
		Name: "adamw", In: types(num.F32, 4), Out: types(num.F32, 3), Ones: []string{"scale"},
		Scalars: []string{"beta1", "rest1", "beta2", "rest2", "eps", "rate", "unbias", "keep"},
		Body: func(_ *ptx.Builder, x []ptx.F32) []ptx.F32 {
			g := x[3].Mul(x[4])
			m := x[1].Mul(x[5]).Add(g.Mul(x[6]))
			v := x[2].Mul(x[7]).Add(g.Mul(g).Mul(x[8]))
			step := m.Div(v.Mul(x[11]).Sqrt().Add(x[9]))
			w := x[0].Mul(x[12]).Sub(step.Mul(x[10]))
			return []ptx.F32{w, m, v, w}
		},
		Ref: func(x []float64) []float64 {
			g := x[3] * x[4]
			m, v := x[1]*x[5]+g*x[6], x[2]*x[7]+g*g*x[8]
			w := x[0]*x[12] - x[10]*m/(math.Sqrt(v*x[11])+x[9])
			return []float64{w, m, v, w}
		},
		Sample: func(normal func() float64) []float64 {
			const lr, b1, b2, t = 1e-3, 0.9, 0.95, 3
			return []float64{normal(), 1e-2 * normal(), 1e-4 * math.Abs(normal()), 1e-2 * normal(), 0.5,
				b1, 1 - b1, b2, 1 - b2, 1e-8, lr / (1 - math.Pow(b1, t)), 1 / (1 - math.Pow(b2, t)), 1 - lr*0.1}
		},
	}
	if low != 0 {
		s.Name, s.Out = "adamw_"+low.String(), append(s.Out, low)
	}
	return s
}

// Specs lists what there is, in the types that training uses.
func Specs() []Spec {
	all := []Spec{AdamW(0), AdamW(num.BF16), Cast(num.F32, num.BF16), Cast(num.BF16, num.F32), Clip()}
	for _, t := range []num.DType{num.F32, num.BF16} {
		all = append(all, Add(t), SwiGLU(t), SwiGLUBack(t), GELU(t), GELUBack(t), Join(t, 3, false), Join(t, 2, true))
	}
	return all
}

// Clip is the factor of gradient clipping from the squared norm: min(1, limit ÷ (√x + 1e-6)).
func Clip() Spec {
	return Spec{
		Name: "clip", In: types(num.F32, 1), Out: types(num.F32, 1), Scalars: []string{"limit"},
		Body: func(k *ptx.Builder, x []ptx.F32) []ptx.F32 {
			return []ptx.F32{x[1].Div(x[0].Sqrt().Add(k.F32(1e-6))).Min(k.F32(1))}
		},
		Ref:    func(x []float64) []float64 { return []float64{min(1, x[1]/(math.Sqrt(x[0])+1e-6))} },
		Sample: func(normal func() float64) []float64 { return []float64{math.Exp(normal()), 1} },
	}
}

// Join is what ranks reduce: the sum of n tensors in their order, rounded once, or the largest.
func Join(t num.DType, n int, largest bool) Spec {
	name, op := "sum", func(a, b ptx.F32) ptx.F32 { return a.Add(b) }
	ref := func(a, b float64) float64 { return a + b }
	if largest {
		name, op, ref = "max", func(a, b ptx.F32) ptx.F32 { return a.Max(b) }, math.Max
	}
	return Spec{
		Name: fmt.Sprintf("%s%d_%v", name, n, t), In: types(t, n), Out: types(t, 1),
		Body: func(_ *ptx.Builder, x []ptx.F32) []ptx.F32 {
			y := x[0]
			for _, v := range x[1:] {
				y = op(y, v)
			}
			return []ptx.F32{y}
		},
		Ref: func(x []float64) []float64 {
			y := x[0]
			for _, v := range x[1:] {
				y = ref(y, v)
			}
			return []float64{y}
		},
	}
}
