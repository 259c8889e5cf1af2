package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A row function under test: rows of n elements, the first out of them written.
type rowCase struct {
	name string
	rows int
	out  int
	f32  func(x [][]float32)
	f64  func(x [][]float64)
	// bound is the largest error in units of 2⁻²⁴ of the size of the result: the
	// roundings on the longest path to it, twice that where terms cancel, since
	// inputs are of size at most 4.
	bound float64
}

// both makes the two functions of a case from one generic body.
func both(name string, rows, out int, bound float64, f32 func(x [][]float32), f64 func(x [][]float64)) rowCase {
	return rowCase{name, rows, out, f32, f64, bound}
}

// The size of results stays below 64 for inputs in ±4; absolute errors are
// checked against bound·2⁻²⁴·max(1, |want|), where bound counts roundings (an
// elementary function counts 4, its 2 ulp) times the growth of intermediate
// values (4 per product of two inputs that is then subtracted).
func rowCases() []rowCase {
	return []rowCase{
		both("add", 3, 1, 1, func(x [][]float32) { Add(x[0], x[1], x[2]) }, func(x [][]float64) { Add(x[0], x[1], x[2]) }),
		both("mul", 3, 1, 1, func(x [][]float32) { Mul(x[0], x[1], x[2]) }, func(x [][]float64) { Mul(x[0], x[1], x[2]) }),
		both("scale", 2, 1, 1, func(x [][]float32) { Scale(x[0], 1.5, x[1]) }, func(x [][]float64) { Scale(x[0], 1.5, x[1]) }),
		both("axpy", 2, 1, 2*6, func(x [][]float32) { Axpy(x[0], -1.5, x[1]) }, func(x [][]float64) { Axpy(x[0], -1.5, x[1]) }),
		both("swiglu", 3, 1, 8, func(x [][]float32) { SwiGLU(x[0], x[1], x[2]) }, func(x [][]float64) { SwiGLU(x[0], x[1], x[2]) }),
		both("swigluBackward", 5, 2, 16*8, func(x [][]float32) { SwiGLUBackward(x[0], x[1], x[2], x[3], x[4]) }, func(x [][]float64) { SwiGLUBackward(x[0], x[1], x[2], x[3], x[4]) }),
		// The argument of the sigmoid reaches 11 with 4 roundings, so its result is 44 further off.
		both("gelu", 2, 1, 4*52, func(x [][]float32) { GELU(x[0], x[1]) }, func(x [][]float64) { GELU(x[0], x[1]) }),
		both("geluBackward", 3, 1, 16*60, func(x [][]float32) { GELUBackward(x[0], x[1], x[2]) }, func(x [][]float64) { GELUBackward(x[0], x[1], x[2]) }),
		both("expScale", 2, 1, 4+8, func(x [][]float32) { ExpScale(x[0], x[1], 4, 0.5) }, func(x [][]float64) { ExpScale(x[0], x[1], 4, 0.5) }),
		both("softmaxBackward", 3, 1, 4*8, func(x [][]float32) { SoftmaxBackward(x[0], x[1], x[2], 0.25, 0.125) }, func(x [][]float64) { SoftmaxBackward(x[0], x[1], x[2], 0.25, 0.125) }),
		both("weights", 3, 1, 6*16, func(x [][]float32) { RMSNormWeights(x[0], x[1], x[2], []float32{0.75}, 0) }, func(x [][]float64) { RMSNormWeights(x[0], x[1], x[2], []float64{0.75}, 0) }),
	}
}

// rows32 makes rows of n numbers in ±4 with guards around each, at an odd
// offset, and the same in float64.
func rows32(r *rand.Rand, rows, n int) (whole, x [][]float32, y [][]float64) {
	for range rows {
		w := make([]float32, n+2*guard)
		for i := range w {
			w[i] = r.Float32()*8 - 4
		}
		row := w[guard : guard+n : guard+n]
		d := make([]float64, n)
		for i, v := range row {
			d[i] = float64(v)
		}
		whole, x, y = append(whole, w), append(x, row), append(y, d)
	}
	return whole, x, y
}

const guard = 17

var lengths = []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 47, 48, 63, 64, 65, 100, 129, 1000}

func TestRowsMatchFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range rowCases() {
		for _, n := range lengths {
			whole, x, y := rows32(r, c.rows, n)
			before := make([][]float32, c.rows)
			for i := range whole {
				before[i] = slices.Clone(whole[i])
			}
			c.f32(x)
			c.f64(y)
			for i := range whole {
				for j, v := range whole[i] {
					e := j - guard
					if i >= c.out || e < 0 || e >= n {
						if v != before[i][j] {
							t.Fatalf("%s, n %d: row %d written at %d", c.name, n, i, e)
						}
						continue
					}
					want := y[i][e]
					if err := math.Abs(float64(v) - want); !(err <= c.bound*0x1p-24*max(1, math.Abs(want))) {
						t.Fatalf("%s, n %d: row %d element %d = %g, want %g (%.1f units, bound %g)", c.name, n, i, e, v, want, err*0x1p24/max(1, math.Abs(want)), c.bound)
					}
				}
			}
		}
	}
}

// An element's result does not depend on its place or on its neighbours, and NaN
// stays in its place.
func TestElementsAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, c := range rowCases() {
		_, x, _ := rows32(r, c.rows, 75)
		alone := make([][]float32, c.rows)
		for i := range x {
			alone[i] = slices.Clone(x[i])
		}
		bad := make([][]float32, c.rows)
		for i := range x {
			bad[i] = slices.Clone(x[i])
			bad[i][40] = float32(math.NaN())
		}
		c.f32(x)
		c.f32(bad)
		for e := range 75 {
			one := make([][]float32, c.rows)
			for i := range one {
				one[i] = alone[i][e : e+1]
			}
			c.f32(one)
			for i := range c.out {
				if one[i][0] != x[i][e] {
					t.Fatalf("%s: element %d is %g alone and %g among others", c.name, e, one[i][0], x[i][e])
				}
				if isNaN := bad[i][e] != bad[i][e]; isNaN != (e == 40) {
					t.Fatalf("%s: NaN at 40, element %d = %g", c.name, e, bad[i][e])
				}
			}
		}
	}
}

// Sums of small integers are exact, so any lost, doubled or misplaced element
// shows.
func TestSumsOfIntegersAreExact(t *testing.T) {
	for _, n := range lengths {
		x, y := make([]float32, n+2)[1:n+1], make([]float32, n+2)[1:n+1]
		var sum, dot, squares float64
		for i := range x {
			x[i], y[i] = float32(i%7-3), float32(i%5+1)
			sum += float64(x[i])
			dot += float64(x[i] * y[i])
			squares += float64(x[i] * x[i])
		}
		if got := Sum(x); float64(got) != sum {
			t.Errorf("n %d: sum %g, want %g", n, got, sum)
		}
		if got := Dot(x, y); float64(got) != dot {
			t.Errorf("n %d: dot %g, want %g", n, got, dot)
		}
		if got := triple(x, y, x); n > 0 && got != Dot(x, scaled(x, y)) {
			t.Errorf("n %d: triple %g, want %g", n, got, Dot(x, scaled(x, y)))
		}
		if got := SumSquares(x); got != squares {
			t.Errorf("n %d: sum of squares %g, want %g", n, got, squares)
		}
		want := math.Inf(-1)
		for i := range x {
			x[i] = -x[i] - 10 // all below the 0 of an absent element
			want = max(want, float64(x[i]))
		}
		if got := Max(x); float64(got) != want {
			t.Errorf("n %d: max %g, want %g", n, got, want)
		}
	}
}

func scaled(x, y []float32) []float32 {
	z := make([]float32, len(x))
	Mul(z, x, y)
	return z
}

// The order of a sum is 32 partial sums, then pairs.
func TestSumOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, n := range lengths {
		_, x, _ := rows32(r, 1, n)
		var part [32]float32
		for i, v := range x[0] {
			part[i%32] += v
		}
		for half := 16; half > 0; half /= 2 {
			for i := range half {
				part[i] += part[i+half]
			}
		}
		if got := Sum(x[0]); got != part[0] {
			t.Fatalf("n %d: sum %g, want %g", n, got, part[0])
		}
	}
}

func TestMaxIgnoresNaN(t *testing.T) {
	nan := float32(math.NaN())
	for _, n := range lengths[1:] {
		for _, at := range []int{0, n / 2, n - 1} {
			x := make([]float32, n)
			for i := range x {
				x[i] = -5
			}
			x[at] = nan
			want := float32(-5)
			if n == 1 {
				want = float32(math.Inf(-1))
			}
			if got := Max(x); got != want {
				t.Errorf("n %d, NaN at %d: max %g, want %g", n, at, got, want)
			}
		}
	}
}

// The sums of exponentials: each term has 3 ulp (exp's 2, the argument's
// rounding of size below 8, 4 units), the sum at most n/32+5 roundings.
func TestSoftmaxPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range lengths[1:] {
		_, x, y := rows32(r, 1, n)
		tol := 0x1p-24 * (12 + float64(n)/32 + 5)
		close := func(what string, got float32, want, size float64) {
			t.Helper()
			if !(math.Abs(float64(got)-want) <= tol*size) {
				t.Fatalf("n %d: %s = %g, want %g ± %g", n, what, got, want, tol*size)
			}
		}
		m := Max(y[0])
		sum := SumExp(y[0], m)
		close("sum exp", SumExp(x[0], float32(m)), sum, sum)
		close("log-sum-exp", LogSumExp(x[0]), LogSumExp(y[0]), 8)
		d32, d64 := make([]float32, n), make([]float64, n)
		want := ExpSum(d64, y[0], 0.5, 1)
		close("exp sum", ExpSum(d32, x[0], 0.5, 1), want, want)
		for i := range d32 {
			close("exp", d32[i], d64[i], d64[i])
		}
		close("softmax lse", Softmax(d32, x[0]), Softmax(d64, y[0]), 8)
		for i := range d32 {
			close("softmax", d32[i], d64[i], d64[i])
		}
	}
}

func TestLogSumExpOfNothingAndNaN(t *testing.T) {
	if got := LogSumExp([]float32{}); !math.IsInf(float64(got), -1) {
		t.Errorf("no elements: %g, want −Inf", got)
	}
	for _, x := range [][]float32{{float32(math.NaN())}, {1, float32(math.NaN()), 2}} {
		if got := LogSumExp(x); got == got {
			t.Errorf("%v: %g, want NaN", x, got)
		}
	}
}

// A square of a float32 is exact in float64, so every set gives these bits.
func TestSumSquaresOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 3))
	for _, n := range lengths {
		_, x, _ := rows32(r, 1, n)
		var part [32]float64
		for i, v := range x[0] {
			part[i%32] += float64(v) * float64(v)
		}
		if got, want := SumSquares(x[0]), fold(&part); got != want {
			t.Fatalf("n %d: sum of squares %g, want %g", n, got, want)
		}
	}
}
