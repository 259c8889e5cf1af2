package vec

// Add sets dst[i] = x[i] + y[i].
func Add[T Float](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	if single[T]() && add32(at(dst), at(x), at(y), len(dst)) {
		return
	}
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// Mul sets dst[i] = x[i] · y[i].
func Mul[T Float](dst, x, y []T) {
	x, y = x[:len(dst)], y[:len(dst)]
	if single[T]() && mul32(at(dst), at(x), at(y), len(dst)) {
		return
	}
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// Scale sets dst[i] = a · x[i].
func Scale[T Float](dst []T, a T, x []T) {
	x = x[:len(dst)]
	if single[T]() && scale32(at(dst), at(x), float32(a), len(dst)) {
		return
	}
	for i := range dst {
		dst[i] = a * x[i]
	}
}

// Axpy sets y[i] = y[i] + a · x[i].
func Axpy[T Float](y []T, a T, x []T) {
	x = x[:len(y)]
	if single[T]() && axpy32(at(y), at(x), float32(a), len(y)) {
		return
	}
	for i := range y {
		y[i] += T(a * x[i])
	}
}

// SwiGLU sets dst[i] = silu(gate[i]) · up[i], with silu(x) = x · sigmoid(x)
// (Shazeer, GLU Variants Improve Transformer, 2020).
func SwiGLU[T Float](dst, gate, up []T) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	if single[T]() && swiglu32(at(dst), at(gate), at(up), len(dst)) {
		return
	}
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
	if single[T]() && swigluBackward32(at(dgate), at(dup), at(dy), at(gate), at(up), len(dgate)) {
		return
	}
	for i := range dgate {
		x, u, d := float64(gate[i]), float64(up[i]), float64(dy[i])
		s := sigmoid(x)
		dup[i] = T(d * x * s)
		dgate[i] = T(d * u * s * (1 + x*(1-s)))
	}
}

// geluScale and geluCube are 2·√(2/π) and the cubic term of GELU's tanh form.
const (
	geluScale = 1.5957691216057308
	geluCube  = 0.044715
)

// GELU sets dst[i] = x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))) for x = src[i]
// (Hendrycks and Gimpel, 2016, the tanh form that GPT-2 uses), written
//
//	dst[i] = x · sigmoid(2·√(2/π)·(x + 0.044715·x³))
//
// which is the same and keeps its digits where tanh nears −1.
func GELU[T Float](dst, src []T) {
	src = src[:len(dst)]
	if single[T]() && gelu32(at(dst), at(src), len(dst)) {
		return
	}
	for i, v := range src {
		x := float64(v)
		dst[i] = T(x * sigmoid(geluScale*(x+geluCube*x*x*x)))
	}
}

// GELUBackward is the gradient of GELU. With s the sigmoid in it:
//
//	dx[i] = dy[i] · (s + x[i]·s·(1−s)·2·√(2/π)·(1 + 3·0.044715·x[i]²))
func GELUBackward[T Float](dx, dy, x []T) {
	dy, x = dy[:len(dx)], x[:len(dx)]
	if single[T]() && geluBackward32(at(dx), at(dy), at(x), len(dx)) {
		return
	}
	for i, w := range x {
		v := float64(w)
		s := sigmoid(geluScale * (v + geluCube*v*v*v))
		dx[i] = T(float64(dy[i]) * (s + v*s*(1-s)*geluScale*(1+3*geluCube*v*v)))
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
		if single[T]() && turn32(at(lo), at(hi), at(cos), at(sin), float32(sign), half) {
			continue
		}
		for i, c := range cos {
			s := sign * sin[i]
			a, b := lo[i], hi[i]
			lo[i] = T(a*c) - T(b*s)
			hi[i] = T(b*c) + T(a*s)
		}
	}
}
