package elem

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// aside is a buffer that starts 16 bytes in where it is to be wide, an element in where not.
func aside(name string, t num.DType, n int, wide bool) *kernel.Sample {
	if wide {
		return kernel.NewSample(name, t, n, 16)
	}
	return kernel.NewSample(name, t, n, t.Size())
}

// Case turns the heads of two sequences of seq tokens, at positions 3, 5, 7 …
func (r *Rope) Case(seq, heads int, seed int64) (kernel.Case, error) {
	rnd, c := rand.New(rand.NewSource(seed)), r.Config
	const batch, theta = 2, 1e4
	n := batch * seq * heads * c.D
	x, y := aside("x", c.Type, n, c.Wide), aside("y", c.Type, n, c.Wide)
	xs := x.Fill(func(int) float64 { return rnd.NormFloat64() })
	pos, table := kernel.NewSample("pos", num.F32, seq, 4), kernel.NewSample("table", num.F32, (2*seq+3)*c.D, 16)
	at := pos.Fill(func(i int) float64 { return float64(2*i + 3) })
	angles := RopeTable(2*seq+3, c.D, func(j int) float64 { return math.Pow(theta, -2*float64(j)/float64(c.D)) })
	table.Fill(func(i int) float64 { return float64(angles[i]) })
	l, a, err := r.Launch(RopeOperands{Y: y.Place(), X: x.Place(), Pos: pos.Place(), Table: table.Place(), Tokens: batch * seq, Seq: seq, Heads: heads})
	return kernel.Case{Name: fmt.Sprintf("%dx%d", seq, heads), Launch: l, Args: a, Check: func() error {
		for i := range xs {
			j, half := i%c.D, c.D/2
			angle := at[i/c.D/heads%seq] * math.Pow(theta, -float64(j%half)/float64(half))
			cos, sin := math.Cos(angle), math.Sin(angle)
			if c.Back {
				sin = -sin
			}
			want, other := xs[i]*cos, xs[i-j+(j+half)%c.D]
			if j < half {
				want -= other * sin
			} else {
				want += other * sin
			}
			bound := 8*0x1p-24*(math.Abs(xs[i])+math.Abs(other)) + kernel.Rounding(c.Type)*math.Abs(want)
			if got := y.At(i); !(math.Abs(got-want) <= bound) {
				return fmt.Errorf("elem: %s: y[%d] is %v, want %v ± %v", r.Entry.Name, i, got, want, bound)
			}
		}
		if !y.Intact() {
			return fmt.Errorf("elem: %s writes outside y", r.Entry.Name)
		}
		return nil
	}}, err
}

// Cases are one token of one head, and more than a CTA.
func (r *Rope) Cases(int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, s := range [][2]int{{1, 1}, {5, 3}, {40, 2}} {
		c, err := r.Case(s[0], s[1], int64(i))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase is any: the kernel synchronises nothing.
func (r *Rope) FaultCase() (kernel.Case, int, error) {
	c, err := r.Case(5, 3, 1)
	return c, 1, err
}

// Equivalent knows no mutant.
func (r *Rope) Equivalent(ptx.Mutant) string { return "" }

// BoxSizes are tensors, a box and its corners: dst, src, box, corner in dst, corner in src.
type BoxSizes [5][]int

// Case copies small integers, so that sums are exact.
func (b *Box) Case(s BoxSizes, seed int64) (kernel.Case, error) {
	rnd, c := rand.New(rand.NewSource(seed)), b.Config
	count := func(dims []int) int {
		n := 1
		for _, d := range dims {
			n *= d
		}
		return n
	}
	dst, src := aside("dst", c.Type, count(s[0]), c.Wide), aside("src", c.Type, count(s[1]), c.Wide)
	integers := func(int) float64 { return float64(rnd.Intn(41) - 20) }
	want, from := dst.Fill(integers), src.Fill(integers)
	for i := range count(s[2]) {
		to, at, rest := 0, 0, i
		for d, n := range s[2] {
			k := rest / count(s[2][d+1:]) % n
			to, at = to*s[0][d]+s[3][d]+k, at*s[1][d]+s[4][d]+k
		}
		if c.Add {
			want[to] += from[at]
		} else {
			want[to] = from[at]
		}
	}
	shape, ok := ShapeOf(s[0], s[1], s[2], s[3], s[4])
	if !ok {
		return kernel.Case{}, fmt.Errorf("elem: %v has too many dims", s)
	}
	l, a, err := b.Launch(dst.Place(), src.Place(), shape)
	return kernel.Case{Name: fmt.Sprint(s), Launch: l, Args: a, Check: func() error {
		for i := range want {
			if got := dst.At(i); got != want[i] {
				return fmt.Errorf("elem: %s %v: dst[%d] is %v, want %v", b.Entry.Name, s, i, got, want[i])
			}
		}
		if !dst.Intact() {
			return fmt.Errorf("elem: %s %v writes outside dst", b.Entry.Name, s)
		}
		return nil
	}}, err
}

// Cases are whole tensors, and parts of up to five dims.
func (b *Box) Cases(int) ([]kernel.Case, error) {
	w := b.width()
	var all []kernel.Case
	for i, s := range []BoxSizes{
		{{3 * w}, {2 * w}, {2 * w}, {w}, {0}},
		{{4, 3 * w}, {4, 3 * w}, {4, 3 * w}, {0, 0}, {0, 0}},
		{{5, 4, 2 * w}, {2, 3, 2 * w}, {2, 3, 2 * w}, {1, 1, 0}, {0, 0, 0}},
		{{2, 3, 2, 3, 2 * w}, {2, 3, 1, 2, w}, {2, 2, 1, 2, w}, {0, 1, 1, 0, w}, {0, 1, 0, 0, 0}},
		{{2, 40, 2, 3 * w}, {2, 20, 2, 3 * w}, {2, 20, 2, 3 * w}, {0, 20, 0, 0}, {0, 0, 0, 0}},
	} {
		c, err := b.Case(s, int64(i))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase is any: the kernel synchronises nothing.
func (b *Box) FaultCase() (kernel.Case, int, error) {
	all, err := b.Cases(1)
	return all[0], 1, err
}

// Equivalent knows no mutant.
func (b *Box) Equivalent(ptx.Mutant) string { return "" }
