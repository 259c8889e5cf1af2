package row

import (
	"encoding/binary"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"heddle/kernel"
	"heddle/num"
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

// built lists the kernels in the types and shapes that their code paths tell apart: teams of some lanes, of a warp, of several warps; ragged and whole.
func built(t *testing.T) map[string]kernel.Built {
	t.Helper()
	all := map[string]kernel.Built{}
	add := func(name string, b kernel.Built, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(name, err)
		}
		all[name] = b
	}
	for _, typ := range []num.DType{num.F32, num.BF16} {
		for _, cols := range []int{8, 72, 128, 1024, 2056} {
			for _, plus := range []bool{false, true} {
				c := NormConfig{Cols: cols, Type: typ, Wide: true, Again: cols == 72 && !plus, Plus: plus}
				n, err := NewNorm(c)
				add(c.name(), n, err)
				b := NormBackConfig{Cols: cols, Type: typ, Wide: true, Weights: cols != 72, Plus: plus}
				k, err := NewNormBack(b)
				add(b.name(), k, err)
			}
			z, err := NewShift(ShiftConfig{Cols: cols, Type: typ, Wide: true, Bias: cols > 100})
			add(z.Entry.Name, z, err)
			d, err := NewDot(cols, typ, true)
			add(d.Entry.Name, d, err)
		}
		for _, cols := range []int{1, 33, 1100} {
			n, err := NewNorm(NormConfig{Cols: cols, Type: typ})
			add(n.Entry.Name, n, err)
			b, err := NewNormBack(NormBackConfig{Cols: cols, Type: typ, Weights: true})
			add(b.Entry.Name, b, err)
			z, err := NewShift(ShiftConfig{Cols: cols, Type: typ, Bias: cols > 100})
			add(z.Entry.Name, z, err)
			d, err := NewDot(cols, typ, false)
			add(d.Entry.Name, d, err)
		}
		for _, wide := range []bool{true, false} {
			for p := Max; p <= Back; p++ {
				l, err := NewLoss(LossConfig{Piece: p, Type: typ, Wide: wide})
				add(l.Entry.Name, l, err)
			}
			for _, last := range []bool{true, false} {
				for term := Plain; term <= Squares; term++ {
					r, err := NewReduce(ReduceConfig{Term: term, Type: typ, Wide: wide, Last: last})
					add(r.Entry.Name, r, err)
				}
			}
			e, err := NewEmbed(72, typ, wide)
			add(e.Entry.Name, e, err)
			b, err := NewEmbedBack(typ, wide)
			add(b.Entry.Name, b, err)
		}
	}
	for _, typ := range []num.DType{num.F32, num.BF16} {
		for _, cols := range []int{16, 128} {
			for _, again := range []bool{true, false} {
				n, err := NewNorm(NormConfig{Cols: cols, Type: typ, Wide: true, Turn: true, Again: again})
				add(n.Entry.Name, n, err)
			}
			b, err := NewNormBack(NormBackConfig{Cols: cols, Type: typ, Wide: true, Weights: true, Turn: true})
			add(b.Entry.Name, b, err)
		}
	}
	for _, last := range []bool{true, false} {
		r, err := NewReduce(ReduceConfig{Term: Tokens, Type: num.F32, Last: last})
		add(r.Entry.Name, r, err)
	}
	for _, c := range []ColumnsConfig{{num.F32, true}, {num.F32, false}, {num.BF16, false}} {
		k, err := NewColumns(c)
		add(k.Entry.Name, k, err)
	}
	return all
}

// Every kernel gives what float64 gives, within the bound of its roundings, and writes nothing else.
func TestRowsAreRight(t *testing.T) {
	for name, b := range built(t) {
		cases, err := b.Cases(2)
		if err != nil {
			t.Fatal(name, err)
		}
		for i, c := range cases {
			if err := (emulate.Emulator{SMs: 3, Seed: int64(i)}).Run(b.Module(), c.Launch, c.Args); err != nil {
				t.Fatal(name, c.Name, err)
			}
			if err := c.Check(); err != nil {
				t.Errorf("%s %s: %v", name, c.Name, err)
			}
		}
	}
}

// Every barrier is needed: each one's removal is reported.
func TestEveryMutantOfTheRowsIsCaught(t *testing.T) {
	for name, b := range built(t) {
		if strings.Contains(name, "f32") || !slices.ContainsFunc(b.Module().Entries[0].Mutants(), func(m ptx.Mutant) bool { return m.Op == ptx.OpBarSync }) {
			continue // the barriers of one type are those of the other
		}
		c, sms, err := b.FaultCase()
		if err != nil {
			t.Fatal(name, err)
		}
		fresh := func() (ptx.Launch, *ptx.Args, error) { return c.Launch, c.Args, nil }
		verdicts, err := emulate.Trial(b.Module().Entries[0], emulate.Emulator{SMs: sms, MaxSteps: 1e7}, 1, fresh, b.Equivalent)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, v := range verdicts {
			if !v.Passed() {
				t.Errorf("%s: %s %s: caught on %d of %d seeds; reported: %s", name, v.Line, v.Mutant, v.Caught, v.Seeds, v.Text)
			}
		}
	}
}
