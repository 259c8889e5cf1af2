package vec

import "math"

// RMSNorm normalises each row of n = len(w) elements (Zhang and Sennrich, 2019):
//
//	for each row r {
//		rstd[r] = 1 ÷ √(Σ x[r,i]² ÷ n + eps)
//		y[r,i]  = x[r,i] · rstd[r] · w[i]
//	}
//
// y, x are [rows, n]; rstd [rows] is kept for the gradient.
func RMSNorm[T Float](y, x, w, rstd []T, eps T) {
	n := len(w)
	for r := range rstd {
		xr, yr := x[r*n:r*n+n], y[r*n:r*n+n]
		s := 1 / T(math.Sqrt(float64(Dot(xr, xr)/T(n)+eps)))
		rstd[r] = s
		normRow(yr, xr, w, s)
	}
}

// RMSNormAgain is y of RMSNorm, to the bit, from the rstd that it kept.
func RMSNormAgain[T Float](y, x, w, rstd []T) {
	n := len(w)
	for r, s := range rstd {
		normRow(y[r*n:r*n+n], x[r*n:r*n+n], w, s)
	}
}

// normRow is y[i] = x[i] · rstd · w[i].
func normRow[T Float](y, x, w []T, rstd T) {
	if single[T]() && normScale32(at(y), at(x), at(w), float32(rstd), len(w)) {
		return
	}
	for i, v := range x {
		y[i] = v * rstd * w[i]
	}
}

// RMSNormBackward is the gradient with respect to x:
//
//	for each row r {
//		c = rstd[r]³ ÷ n · Σ dy[r,i]·w[i]·x[r,i]
//		dx[r,i] = dy[r,i]·w[i]·rstd[r] − x[r,i]·c, added to dx when accumulate
//	}
func RMSNormBackward[T Float](dx, dy, x, w, rstd []T, accumulate bool) {
	n := len(w)
	for r, s := range rstd {
		xr, dr, out := x[r*n:r*n+n], dy[r*n:r*n+n], dx[r*n:r*n+n]
		c := s * s * s / T(n) * triple(dr, w, xr)
		if single[T]() && normBackward(at(out), at(dr), at(xr), at(w), float32(s), float32(c), n, accumulate) {
			continue
		}
		for i, v := range xr {
			g := T(dr[i]*w[i]*s) - T(v*c)
			if accumulate {
				g += out[i]
			}
			out[i] = g
		}
	}
}

func normBackward(dx, dy, x, w *float32, rstd, c float32, n int, accumulate bool) bool {
	if accumulate {
		return normBackwardAdd32(dx, dy, x, w, rstd, c, n)
	}
	return normBackward32(dx, dy, x, w, rstd, c, n)
}

func triple[T Float](x, y, z []T) T {
	var total float32
	if single[T]() && triple32(at(x), at(y), at(z), &total, len(x)) {
		return T(total)
	}
	var s [lanes]T
	for i, v := range x {
		s[i%lanes] += T(v * y[i] * z[i])
	}
	return fold(&s)
}

// RMSNormWeights adds the gradient of the weights, in rising rows:
//
//	for each row r { dw[i] += dy[r,i] · x[r,i] · rstd[r] }
//
// dy and x are rows of stride elements of which the first len(dw) are used, so
// threads may split the columns.
func RMSNormWeights[T Float](dw, dy, x, rstd []T, stride int) {
	n := len(dw)
	for r, s := range rstd {
		dr, xr := dy[r*stride:r*stride+n], x[r*stride:r*stride+n]
		if single[T]() && normWeights32(at(dw), at(dr), at(xr), float32(s), n) {
			continue
		}
		for i := range dw {
			dw[i] += T(dr[i] * xr[i] * s)
		}
	}
}

// SumRows adds rows to dst in rising order, the gradient of a bias:
//
//	for each row r { dst[i] += x[r,i] }
//
// x holds rows of stride elements of which the first len(dst) are used.
func SumRows[T Float](dst, x []T, rows, stride int) {
	for r := range rows {
		Add(dst, dst, x[r*stride:])
	}
}

// Center takes each row's mean off; LayerNorm is RMSNorm of it:
//
//	for each row r { y[r,i] = x[r,i] − Σ x[r,i] ÷ n }
func Center[T Float](y, x []T, n int) {
	for ; len(x) >= n && n > 0; x, y = x[n:], y[n:] {
		mean := Sum(x[:n]) / T(n)
		for i, v := range x[:n] {
			y[i] = v - mean
		}
	}
}
