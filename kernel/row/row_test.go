package row

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"heddle/ptx"
	"heddle/ptx/emulate"
)

func build(t *testing.T) *Sum {
	t.Helper()
	s, err := NewSum()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSumIsExactOnSmallIntegers(t *testing.T) {
	s := build(t)
	cases, err := s.Cases(2)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if err := (emulate.Emulator{SMs: 4, Seed: int64(i)}).Run(s.Module(), c.Launch, c.Args); err != nil {
			t.Fatal(c.Name, err)
		}
		if err := c.Check(); err != nil {
			t.Fatal(c.Name, err)
		}
	}
}

// On random data the error is bounded: each element passes through at most ⌈N/1024⌉ + 2 + 5 + 3 additions (its strip, four columns, the warp, the warps), each
// of relative error u = 2⁻²⁴, so |got − exact| ≤ d·u/(1−d·u) · Σ|x| with d that depth (Higham, Accuracy and Stability of Numerical Algorithms, §4.2).
func TestSumStaysInItsErrorBound(t *testing.T) {
	s := build(t)
	r := rand.New(rand.NewSource(1))
	const rows, cols = 6, 5000
	x, y := nans("x", rows*cols), nans("y", rows)
	exact, magnitude := make([]float64, rows), make([]float64, rows)
	for i := range rows * cols {
		v := float32(r.NormFloat64() * math.Exp(4*r.NormFloat64()))
		binary.LittleEndian.PutUint32(x.Data[4*i:], math.Float32bits(v))
		exact[i/cols] += float64(v)
		magnitude[i/cols] += math.Abs(float64(v))
	}
	l, args, err := s.Launch(x, y, rows, cols, cols, 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := (emulate.Emulator{}).Run(s.Module(), l, args); err != nil {
		t.Fatal(err)
	}
	depth := float64((cols+1023)/1024 + 2 + 5 + 3)
	for i := range rows {
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(y.Data[4*i:])))
		u := depth * 0x1p-24
		if bound := u / (1 - u) * magnitude[i]; math.Abs(got-exact[i]) > bound {
			t.Errorf("row %d: %v, want %v ± %v", i, got, exact[i], bound)
		}
	}
}

func TestEveryMutantOfTheSumIsCaught(t *testing.T) {
	s := build(t)
	c, sms, err := s.FaultCase()
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() (ptx.Launch, *ptx.Args, error) { return c.Launch, c.Args, nil }
	verdicts, err := emulate.Trial(s.Entry, emulate.Emulator{SMs: sms, MaxSteps: 1e6}, 8, fresh, s.Equivalent)
	if err != nil {
		t.Fatal(err)
	}
	if len(verdicts) < 6 {
		t.Fatalf("only %d mutants", len(verdicts))
	}
	for _, v := range verdicts {
		if !v.Passed() {
			t.Errorf("%s %s: caught on %d of %d seeds; reported: %s", v.Line, v.Mutant, v.Caught, v.Seeds, v.Text)
		}
	}
}

func TestLaunchRefusesWhatDoesNotFit(t *testing.T) {
	s := build(t)
	x, y := nans("x", 64), nans("y", 4)
	for _, c := range [][3]int{{0, 4, 4}, {4, 20, 16}, {4, 4, 6}, {5, 4, 4}, {4, 4, 20}} {
		if _, _, err := s.Launch(x, y, c[0], c[1], c[2], 1); err == nil {
			t.Errorf("rows %d, cols %d, pitch %d pass", c[0], c[1], c[2])
		}
	}
}
