package vec

import "math"

// Exp sets dst[i] = eˣ for x = src[i]. float32 results are within 2 ulp, and
// flush to zero only where the result is below the smallest denormal.
func Exp[T Float](dst, src []T) {
	src = src[:len(dst)]
	if single[T]() && exp32(at(dst), at(src), len(dst)) {
		return
	}
	for i, x := range src {
		dst[i] = T(math.Exp(float64(x)))
	}
}

// Tanh sets dst[i] = tanh(src[i]), within 2 ulp in float32.
func Tanh[T Float](dst, src []T) {
	src = src[:len(dst)]
	if single[T]() && tanh32(at(dst), at(src), len(dst)) {
		return
	}
	for i, x := range src {
		dst[i] = T(math.Tanh(float64(x)))
	}
}

// Sigmoid sets dst[i] = 1 ÷ (1 + e⁻ˣ) for x = src[i], within 2 ulp in float32.
func Sigmoid[T Float](dst, src []T) {
	src = src[:len(dst)]
	if single[T]() && sigmoid32(at(dst), at(src), len(dst)) {
		return
	}
	for i, x := range src {
		dst[i] = T(sigmoid(float64(x)))
	}
}

// Log sets dst[i] = ln(src[i]), within 2 ulp in float32; NaN below 0, −Inf at 0.
func Log[T Float](dst, src []T) {
	src = src[:len(dst)]
	if single[T]() && log32(at(dst), at(src), len(dst)) {
		return
	}
	for i, x := range src {
		dst[i] = T(math.Log(float64(x)))
	}
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x) // no overflow on this side
	return e / (1 + e)
}
