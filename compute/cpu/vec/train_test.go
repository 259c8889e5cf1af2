package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A row of the norm has Dot's n/32+5 roundings and six more, halved by the
// root; the gradient subtracts two terms of size up to 4·4·rstd. Sizes are
// below 64, bounds are relative to the largest element.
func TestRMSNormMatchesFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 5, 16, 32, 65, 128, 300} {
		const rows = 3
		_, x, y := rows32(r, 5, rows*n) // y, x, dy, dx, dx kept
		_, w, w64 := rows32(r, 1, n)
		rstd, rstd64 := make([]float32, rows), make([]float64, rows)
		RMSNorm(x[0], x[1], w[0], rstd, 1e-6)
		RMSNorm(y[0], y[1], w64[0], rstd64, 1e-6)
		again := make([]float32, rows*n)
		RMSNormAgain(again, x[1], w[0], rstd)
		if !slices.Equal(again, x[0]) {
			t.Fatalf("n %d: the norm made again has other bits", n)
		}
		before := slices.Clone(x[4])
		RMSNormBackward(x[3], x[2], x[1], w[0], rstd, false)
		RMSNormBackward(y[3], y[2], y[1], w64[0], rstd64, false)
		RMSNormBackward(x[4], x[2], x[1], w[0], rstd, true)
		tol := 0x1p-24 * (float64(n)/32 + 11) * 4
		compareRows(t, fmt.Sprintf("n %d: y", n), x[0], y[0], tol)
		compareRows(t, fmt.Sprintf("n %d: dx", n), x[3], y[3], tol)
		for i, v := range x[4] {
			if want := before[i] + x[3][i]; v != want {
				t.Fatalf("n %d: accumulated dx[%d] = %g, want %g", n, i, v, want)
			}
		}
		dw, dw64 := make([]float32, n), make([]float64, n)
		RMSNormWeights(dw, x[2], x[1], rstd, n)
		RMSNormWeights(dw64, y[2], y[1], rstd64, n)
		compareRows(t, fmt.Sprintf("n %d: dw", n), dw, dw64, tol)
	}
}

func compareRows(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i])-v) <= tol*size) {
			t.Fatalf("%s[%d] = %g, want %g ± %g", what, i, got[i], v, tol*size)
		}
	}
}

// A weight gradient in column parts has the bits of the whole.
func TestRMSNormWeightsByColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	const rows, n = 9, 70
	_, x, _ := rows32(r, 2, rows*n)
	rstd := make([]float32, rows)
	for i := range rstd {
		rstd[i] = r.Float32()
	}
	whole, parts := make([]float32, n), make([]float32, n)
	RMSNormWeights(whole, x[0], x[1], rstd, n)
	for lo := 0; lo < n; lo += 23 {
		hi := min(n, lo+23)
		RMSNormWeights(parts[lo:hi], x[0][lo:], x[1][lo:], rstd, n)
	}
	if !slices.Equal(whole, parts) {
		t.Fatal("columns computed apart have other bits")
	}
	SumRows(whole, x[0], rows, n)
	for i := range parts {
		for r := range rows {
			parts[i] += x[0][r*n+i]
		}
	}
	if !slices.Equal(whole, parts) {
		t.Fatal("rows are not added in rising order")
	}
}

// Turning back gives the row again: two products of size 4 and a sum each way.
func TestRoPETurnsAndBack(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, half := range []int{1, 4, 16, 20, 32, 64} {
		_, x, y := rows32(r, 1, 3*2*half)
		before := slices.Clone(x[0])
		cos, sin, cos64, sin64 := make([]float32, half), make([]float32, half), make([]float64, half), make([]float64, half)
		for i := range cos {
			angle := r.Float64() * 100
			cos64[i], sin64[i] = math.Cos(angle), math.Sin(angle)
			cos[i], sin[i] = float32(cos64[i]), float32(sin64[i])
		}
		RoPE(x[0], cos, sin)
		RoPE(y[0], cos64, sin64)
		compareRows(t, fmt.Sprintf("half %d: turned", half), x[0], y[0], 0x1p-24*10)
		RoPEBackward(x[0], cos, sin)
		for i, v := range before {
			if !(math.Abs(float64(x[0][i]-v)) <= 0x1p-24*40) {
				t.Fatalf("half %d: element %d came back as %g, was %g", half, i, x[0][i], v)
			}
		}
	}
}

// One step: m has 3 roundings, v 4, the quotient 8 more; w subtracts a step
// of at most rate·(|m|/√v), so errors are far below 16 units of |w| ≤ 4.
func TestAdamWMatchesFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, n := range lengths {
		_, x, y := rows32(r, 4, n)
		for i := range x[2] {
			x[2][i] = x[2][i] * x[2][i]
			y[2][i] = float64(x[2][i])
		}
		h := AdamW{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Step: 3, GradScale: 0.5}
		Update(h, x[0], x[1], x[2], x[3])
		Update(h, y[0], y[1], y[2], y[3])
		for i, what := range []string{"w", "m", "v"} {
			compareRows(t, fmt.Sprintf("n %d: %s", n, what), x[i], y[i], 0x1p-24*16)
		}
	}
}

// The formula itself, by hand: one step from zero moments moves w by LR against
// the sign of the gradient, after decay.
func TestAdamWFirstStep(t *testing.T) {
	w, m, v := []float64{2, -3}, []float64{0, 0}, []float64{0, 0}
	Update(AdamW{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Decay: 0.5, Step: 1}, w, m, v, []float64{4, -7})
	for i, want := range []float64{2*0.95 - 0.1, -3*0.95 + 0.1} {
		if math.Abs(w[i]-want) > 1e-14 {
			t.Errorf("w[%d] = %g, want %g", i, w[i], want)
		}
	}
}

func TestGradientsMatchDifferences(t *testing.T) {
	const h = 1e-6 // central differences: error ≤ h²·f‴ ≈ 1e-11, rounding 1e-10
	r := rand.New(rand.NewPCG(2, 8))
	for range 50 {
		x, u := []float64{r.NormFloat64() * 2}, []float64{r.NormFloat64()}
		slope := func(f func(x float64) float64) float64 { return (f(x[0]+h) - f(x[0]-h)) / (2 * h) }
		gelu := func(v float64) float64 { y := []float64{v}; GELU(y, y); return y[0] }
		swi := func(v float64) float64 { y := []float64{0}; SwiGLU(y, []float64{v}, u); return y[0] }
		dx, dg, du := []float64{0}, []float64{0}, []float64{0}
		GELUBackward(dx, []float64{1}, x)
		SwiGLUBackward(dg, du, []float64{1}, x, u)
		if math.Abs(dx[0]-slope(gelu)) > 1e-8 || math.Abs(dg[0]-slope(swi)) > 1e-8 || math.Abs(du[0]*u[0]-swi(x[0])) > 1e-12 {
			t.Fatalf("at %g: gelu′ %g, want %g; swiglu′ %g, want %g", x[0], dx[0], slope(gelu), dg[0], slope(swi))
		}
	}
}
