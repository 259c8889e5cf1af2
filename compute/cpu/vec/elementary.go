package vec

import "math"

// Exp sets dst[i] = eˣ for x = src[i]. float32 results are within 2 ulp, and
// flush to zero only where the result is below the smallest denormal.
func Exp[T Float](dst, src []T) {
	src = src[:len(dst)]
	if d, s, ok := both32(dst, src); ok && exp32(d, s) {
		return
	}
	for i, x := range src {
		dst[i] = T(math.Exp(float64(x)))
	}
}

// Tanh sets dst[i] = tanh(src[i]), within 2 ulp in float32.
func Tanh[T Float](dst, src []T) {
	src = src[:len(dst)]
	if d, s, ok := both32(dst, src); ok && tanh32(d, s) {
		return
	}
	for i, x := range src {
		dst[i] = T(math.Tanh(float64(x)))
	}
}

// Sigmoid sets dst[i] = 1 ÷ (1 + e⁻ˣ) for x = src[i], within 2 ulp in float32.
func Sigmoid[T Float](dst, src []T) {
	src = src[:len(dst)]
	if d, s, ok := both32(dst, src); ok && sigmoid32(d, s) {
		return
	}
	for i, x := range src {
		dst[i] = T(sigmoid(float64(x)))
	}
}

// Log sets dst[i] = ln(src[i]), within 2 ulp in float32; NaN below 0, −Inf at 0.
func Log[T Float](dst, src []T) {
	src = src[:len(dst)]
	if d, s, ok := both32(dst, src); ok && log32(d, s) {
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

// as32 gives x as []float32 when that is its type.
func as32[T Float](x []T) ([]float32, bool) {
	y, ok := any(x).([]float32)
	return y, ok
}

func both32[T Float](x, y []T) (a, b []float32, ok bool) {
	a, ok = as32(x)
	if ok {
		b, _ = as32(y)
	}
	return a, b, ok
}
