package vec

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

var elementary = []struct {
	name string
	f32  func(dst, src []float32)
	f64  func(x float64) float64
}{
	{"exp", Exp[float32], math.Exp},
	{"tanh", Tanh[float32], math.Tanh},
	{"sigmoid", Sigmoid[float32], sigmoid},
	{"log", Log[float32], math.Log},
}

// ulps is the distance of got from want in units of the last place of want in
// float32; equal infinities and two NaNs are 0 apart.
func ulps(got float32, want float64) float64 {
	g := float64(got)
	if math.IsNaN(want) || math.IsNaN(g) {
		if math.IsNaN(want) && math.IsNaN(g) {
			return 0
		}
		return math.Inf(1)
	}
	const largest = math.MaxFloat32
	if math.IsInf(g, 0) && math.Abs(want) > largest && math.Signbit(g) == math.Signbit(want) {
		return 0 // rounds to Inf, or is within an ulp of doing so
	}
	if math.IsInf(g, 0) || math.IsInf(want, 0) {
		if g == want {
			return 0
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	unit := math.Ldexp(1, max(e-24, -149))
	return math.Abs(g-want) / unit
}

// Every 997th float32 of either sign, NaN, Inf and denormals among them; set
// HEDDLE_VEC_ALL=1 for every one of them (minutes).
func TestElementaryWithinTwoUlp(t *testing.T) {
	step := uint64(997)
	if os.Getenv("HEDDLE_VEC_ALL") != "" {
		step = 1
	}
	const chunk = 4096
	src, dst := make([]float32, 0, chunk), make([]float32, chunk)
	for _, f := range elementary {
		worst, at := 0.0, float32(0)
		flush := func() {
			f.f32(dst[:len(src)], src)
			for i, x := range src {
				if u := ulps(dst[i], f.f64(float64(x))); u > worst {
					worst, at = u, x
				}
			}
			src = src[:0]
		}
		for b := uint64(0); b < 1<<32; b += step {
			if src = append(src, math.Float32frombits(uint32(b))); len(src) == chunk {
				flush()
			}
		}
		flush()
		t.Logf("%s: worst %.3f ulp, at %g", f.name, worst, at)
		if !(worst <= 2) {
			t.Errorf("%s(%g): %.3f ulp, want at most 2", f.name, at, worst)
		}
	}
}

func TestElementarySpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	zero := float32(math.Copysign(0, -1))
	src := []float32{0, zero, inf, -inf, nan, 0x1p-149, -0x1p-149, 88.8, -103.9, -104.1, 1, -1}
	for _, f := range elementary {
		dst := make([]float32, len(src))
		f.f32(dst, src)
		for i, x := range src {
			want := float32(f.f64(float64(x)))
			same := dst[i] == want && math.Signbit(float64(dst[i])) == math.Signbit(float64(want)) || want != want && dst[i] != dst[i]
			if !same && (math.IsInf(float64(want), 0) || want == 0 || want != want) {
				t.Errorf("%s(%g) = %g, want %g", f.name, x, dst[i], want)
			}
		}
	}
}

// The same tests with instruction sets hidden: what a lesser machine runs.
func TestLesserSets(t *testing.T) {
	if runtime.GOARCH != "amd64" || os.Getenv("HEDDLE_VEC_CHILD") != "" {
		t.Skip("skipped: one set only")
	}
	for _, hide := range []string{"cpu.avx512f=off", "cpu.avx512f=off,cpu.avx2=off"} {
		cmd := exec.Command(os.Args[0], "-test.run=.")
		cmd.Env = append(os.Environ(), "GODEBUG="+hide, "HEDDLE_VEC_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("GODEBUG=%s: %v\n%s", hide, err, out)
		}
	}
}
