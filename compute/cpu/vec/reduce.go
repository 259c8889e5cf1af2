package vec

import "math"

// lanes is the number of partial sums of a row.
const lanes = 32

// fold adds partial sums pairwise: 16 apart, then 8, 4, 2, 1.
func fold[T Float](s *[lanes]T) T {
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

// Sum is Σ x[i].
func Sum[T Float](x []T) T {
	var total float32
	if single[T]() && sum32(at(x), &total, len(x)) {
		return T(total)
	}
	var s [lanes]T
	for i, v := range x {
		s[i%lanes] += v
	}
	return fold(&s)
}

// Dot is Σ x[i]·y[i].
func Dot[T Float](x, y []T) T {
	y = y[:len(x)]
	var total float32
	if single[T]() && dot32(at(x), at(y), &total, len(x)) {
		return T(total)
	}
	var s [lanes]T
	for i, v := range x {
		s[i%lanes] += T(v * y[i])
	}
	return fold(&s)
}

// SumSquares is Σ x[i]², added in float64 for either type: a norm over millions
// of gradients keeps its digits.
func SumSquares[T Float](x []T) float64 {
	var s [lanes]float64
	if blocks := len(x) / lanes; single[T]() && squares32(at(x), &s, blocks) {
		x = x[blocks*lanes:]
	}
	for i, v := range x {
		s[i%lanes] += float64(v) * float64(v)
	}
	return fold(&s)
}

// Max is the largest element that is not NaN, −Inf when there is none:
//
//	m := −Inf
//	for i { if x[i] > m { m = x[i] } }
func Max[T Float](x []T) T {
	var top float32
	if single[T]() && max32(at(x), &top, len(x)) {
		return T(top)
	}
	m := T(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// SumExp is Σ exp(x[i] − shift).
func SumExp[T Float](x []T, shift T) T {
	var total float32
	if single[T]() && sumExp32(at(x), &total, float32(shift), len(x)) {
		return T(total)
	}
	var s [lanes]T
	for i, v := range x {
		s[i%lanes] += T(math.Exp(float64(v - shift)))
	}
	return fold(&s)
}

// ExpSum sets dst[i] = exp(x[i]·scale − shift) and gives Σ dst[i].
func ExpSum[T Float](dst, x []T, scale, shift T) T {
	x = x[:len(dst)]
	var total float32
	if single[T]() && expSum32(at(dst), at(x), &total, float32(scale), float32(shift), len(x)) {
		return T(total)
	}
	var s [lanes]T
	for i, v := range x {
		e := T(math.Exp(float64(T(v*scale) - shift)))
		dst[i] = e
		s[i%lanes] += e
	}
	return fold(&s)
}

// SoftmaxBackward sets ds[i] = p[i] · (dp[i] − delta) · scale, the gradient of
// scaled scores from that of their softmax p, with delta = Σ p[i]·dp[i].
func SoftmaxBackward[T Float](ds, p, dp []T, delta, scale T) {
	p, dp = p[:len(ds)], dp[:len(ds)]
	if single[T]() && softmaxBackward32(at(ds), at(p), at(dp), float32(delta), float32(scale), len(ds)) {
		return
	}
	for i, v := range p {
		ds[i] = v * (dp[i] - delta) * scale
	}
}

// ExpScale sets dst[i] = exp(x[i] − shift) · scale. With shift a row's
// log-sum-exp it is the softmax times scale; the gradient of cross entropy is
// that minus scale at the label.
func ExpScale[T Float](dst, x []T, shift, scale T) {
	x = x[:len(dst)]
	if single[T]() && expScale32(at(dst), at(x), float32(shift), float32(scale), len(dst)) {
		return
	}
	for i, v := range x {
		dst[i] = T(math.Exp(float64(v-shift))) * scale
	}
}

// Softmax sets dst = exp(x − m) ÷ Σ exp(x − m) with m = Max(x), and gives the
// row's log-sum-exp.
func Softmax[T Float](dst, x []T) (lse T) {
	m := Max(x)
	sum := SumExp(x, m)
	ExpScale(dst, x, m, 1/sum)
	return m + T(math.Log(float64(sum)))
}

// LogSumExp is ln Σ exp(x[i]) without overflow; −Inf for no elements.
func LogSumExp[T Float](x []T) T {
	m := Max(x)
	if math.IsInf(float64(m), -1) {
		return m + Sum(x) // keeps a NaN
	}
	return m + T(math.Log(float64(SumExp(x, m))))
}
