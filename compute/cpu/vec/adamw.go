package vec

import "math"

// AdamW is one step's constants (Loshchilov and Hutter, Decoupled Weight Decay
// Regularization, 2019, algorithm 2).
type AdamW struct {
	LR, Beta1, Beta2, Eps, Decay float64
	Step                         int     // from 1
	GradScale                    float64 // multiplies each gradient; 0 means 1
}

// Update does one step in place on a parameter's elements:
//
//	for i {
//		g = grad[i] · GradScale
//		m[i] = β₁·m[i] + (1−β₁)·g
//		v[i] = β₂·v[i] + (1−β₂)·g²
//		w[i] = w[i]·(1 − LR·Decay) − LR/(1−β₁ᵗ) · m[i] ÷ (√v[i] ÷ √(1−β₂ᵗ) + Eps)
//	}
//
// The constants are computed in float64 and rounded to T once.
func Update[T Float](a AdamW, w, m, v, grad []T) {
	m, v, grad = m[:len(w)], v[:len(w)], grad[:len(w)]
	c := constants[T](a)
	if single[T]() && c.update32(at(w), at(m), at(v), at(grad), len(w)) {
		return
	}
	for i, g := range grad {
		g *= c.scale
		m[i] = T(c.beta1*m[i]) + T(c.rest1*g)
		v[i] = T(c.beta2*v[i]) + T(c.rest2*T(g*g))
		den := T(T(math.Sqrt(float64(v[i])))*c.root) + c.eps
		w[i] = T(w[i]*c.keep) - T(c.rate*m[i])/den
	}
}

type adamConstants[T Float] struct {
	scale, beta1, rest1, beta2, rest2, root, eps, keep, rate T
}

func constants[T Float](a AdamW) adamConstants[T] {
	scale := a.GradScale
	if scale == 0 {
		scale = 1
	}
	t := float64(a.Step)
	return adamConstants[T]{
		scale: T(scale),
		beta1: T(a.Beta1), rest1: T(1 - a.Beta1),
		beta2: T(a.Beta2), rest2: T(1 - a.Beta2),
		root: T(1 / math.Sqrt(1-math.Pow(a.Beta2, t))), eps: T(a.Eps),
		keep: T(1 - a.LR*a.Decay), rate: T(a.LR / (1 - math.Pow(a.Beta1, t))),
	}
}

func (c *adamConstants[T]) update32(w, m, v, grad *float32, n int) bool {
	return adamW32(w, m, v, grad, float32(c.scale), float32(c.beta1), float32(c.rest1), float32(c.beta2), float32(c.rest2),
		float32(c.root), float32(c.eps), float32(c.keep), float32(c.rate), n)
}
