package vec

import "math"

// Add sets dst[i] = x[i] + y[i].
func Add[T Float](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// Mul sets dst[i] = x[i] · y[i].
func Mul[T Float](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// Scale sets dst[i] = a · x[i].
func Scale[T Float](dst []T, a T, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = a * x[i]
	}
}

// Axpy sets y[i] = y[i] + a · x[i].
func Axpy[T Float](y []T, a T, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] += T(a * x[i])
	}
}

// SwiGLU sets dst[i] = silu(gate[i]) · up[i], with silu(x) = x · sigmoid(x)
// (Shazeer, GLU Variants Improve Transformer, 2020).
func SwiGLU[T Float](dst, gate, up []T) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i, x := range gate {
		dst[i] = T(float64(x)*sigmoid(float64(x))) * up[i]
	}
}

// SwiGLUBackward is the gradient of SwiGLU. With s = sigmoid(gate[i]):
//
//	dup[i]   = dy[i] · gate[i] · s
//	dgate[i] = dy[i] · up[i] · s · (1 + gate[i]·(1−s))
func SwiGLUBackward[T Float](dgate, dup, dy, gate, up []T) {
	dup, dy, gate, up = dup[:len(dgate)], dy[:len(dgate)], gate[:len(dgate)], up[:len(dgate)]
	for i := range dgate {
		x, u, d := float64(gate[i]), float64(up[i]), float64(dy[i])
		s := sigmoid(x)
		dup[i] = T(d * x * s)
		dgate[i] = T(d * u * s * (1 + x*(1-s)))
	}
}

// geluScale and geluCube are √(2/π) and the cubic term of GELU's tanh form.
const (
	geluScale = 0.7978845608028654
	geluCube  = 0.044715
)

// GELU sets dst[i] = x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))) for x = src[i]
// (Hendrycks and Gimpel, 2016, the tanh form that GPT-2 uses).
func GELU[T Float](dst, src []T) {
	src = src[:len(dst)]
	for i, v := range src {
		x := float64(v)
		dst[i] = T(x / 2 * (1 + math.Tanh(geluScale*(x+geluCube*x*x*x))))
	}
}

// GELUBackward sets dx[i] = dy[i] · GELU′(x[i]).
func GELUBackward[T Float](dx, dy, x []T) {
	dy, x = dy[:len(dx)], x[:len(dx)]
	for i, w := range x {
		v := float64(w)
		t := math.Tanh(geluScale * (v + geluCube*v*v*v))
		slope := (1+t)/2 + v/2*(1-t*t)*geluScale*(1+3*geluCube*v*v)
		dx[i] = T(float64(dy[i]) * slope)
	}
}

// RoPE turns each of the len(x) ÷ D heads of one token, D = 2·len(cos), halves
// apart as HF's Llama and Qwen do (Su et al., RoFormer, 2021):
//
//	a, b := x[i], x[i+D/2]
//	x[i]     = a·cos[i] − b·sin[i]
//	x[i+D/2] = b·cos[i] + a·sin[i]
func RoPE[T Float](x, cos, sin []T) { turn(x, cos, sin, 1) }

// RoPEBackward turns the other way: sin counts negative.
func RoPEBackward[T Float](x, cos, sin []T) { turn(x, cos, sin, -1) }

func turn[T Float](x, cos, sin []T, sign T) {
	half := len(cos)
	sin = sin[:half]
	for ; len(x) >= 2*half && half > 0; x = x[2*half:] {
		lo, hi := x[:half], x[half:2*half]
		for i, c := range cos {
			s := sign * sin[i]
			a, b := lo[i], hi[i]
			lo[i] = T(a*c) - T(b*s)
			hi[i] = T(b*c) + T(a*s)
		}
	}
}
