package attention

import (
	"fmt"
	"math"
	"math/rand"
	"strings"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Problem is attention with its answers in float64.
type Problem struct {
	B, S, G, R, D int
	pos           []float64 // of each token in its document; nil: a sequence is one

	q, k, v, do   []float64 // rounded to the kernel's type
	lse, delta    []float64
	o, dq, dk, dv sum
}

// sum is sums, and beside each the sum of its terms' magnitudes.
type sum struct{ x, size []float64 }

// NewProblem draws normal data, rounded to t, and computes the answers.
func NewProblem(b, s, g, r, d int, t num.DType, documents bool, seed int64) *Problem {
	rnd := rand.New(rand.NewSource(seed))
	draw := func(n int) []float64 {
		return kernel.NewSample("", t, n, 0).Fill(func(int) float64 { return rnd.NormFloat64() })
	}
	var pos []float64
	for i := 0; documents && i < b*s; i++ {
		at := 0.0
		if i%s > 0 && rnd.Intn(8) > 0 {
			at = pos[i-1] + 1
		}
		pos = append(pos, at)
	}
	nq, nk := b*s*g*r, b*s*g
	p := &Problem{B: b, S: s, G: g, R: r, D: d, pos: pos, q: draw(nq * d), k: draw(nk * d), v: draw(nk * d), do: draw(nq * d)}
	zero := func(n int) sum { return sum{make([]float64, n), make([]float64, n)} }
	p.o, p.dq, p.dk, p.dv, p.lse, p.delta = zero(nq*d), zero(nq*d), zero(nk*d), zero(nk*d), make([]float64, nq), make([]float64, nq)
	for n := range b {
		for h := range g * r {
			p.head(n, h)
		}
	}
	return p
}

// row is token i of head h of all in sequence n.
func (p *Problem) row(x []float64, n, i, h, all int) []float64 {
	return x[((n*p.S+i)*all+h)*p.D:][:p.D]
}

func (p *Problem) head(n, h int) {
	all, g, scale := p.G*p.R, h/p.R, 1/math.Sqrt(float64(p.D))
	for i := range p.S {
		q, do, o, dq := p.row(p.q, n, i, h, all), p.row(p.do, n, i, h, all), p.sums(p.o, n, i, h, all), p.sums(p.dq, n, i, h, all)
		prob, total := make([]float64, i+1), 0.0
		from := 0
		if p.pos != nil {
			from = i - int(p.pos[n*p.S+i])
		}
		for j := from; j <= i; j++ {
			prob[j] = math.Exp(scale * dot(q, p.row(p.k, n, j, g, p.G)))
			total += prob[j]
		}
		at := (n*p.S+i)*all + h
		p.lse[at] = math.Log(total)
		for j := range prob {
			prob[j] /= total
			o.add(prob[j], p.row(p.v, n, j, g, p.G))
		}
		p.delta[at] = dot(o.x, do)
		for j := range prob {
			k, v := p.row(p.k, n, j, g, p.G), p.row(p.v, n, j, g, p.G)
			ds := prob[j] * (dot(do, v) - p.delta[at]) * scale
			dq.add(ds, k)
			p.sums(p.dk, n, j, g, p.G).add(ds, q)
			p.sums(p.dv, n, j, g, p.G).add(prob[j], do)
		}
	}
}

func dot(x, y []float64) (s float64) {
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

func (p *Problem) sums(s sum, n, i, h, all int) sum {
	return sum{p.row(s.x, n, i, h, all), p.row(s.size, n, i, h, all)}
}

func (s sum) add(a float64, x []float64) {
	for i := range x {
		s.x[i] += a * x[i]
		s.size[i] += math.Abs(a * x[i])
	}
}

// Case is a pass over the problem, whose data must have the kernel's type.
func (s *Simple) Case(p *Problem) (kernel.Case, error) {
	return p.check(s.Entry.Name, s.Config, s.Launch, 0)
}

// Case is a pass over the problem, in bf16. Weights are rounded to bf16 too: half a unit of eight bits of each term.
func (f *Fast) Case(p *Problem) (kernel.Case, error) {
	return p.check(f.Entry.Name, Config{Pass: f.Config.Pass, D: f.Config.D, Type: num.BF16, Wide: true}, f.Launch, 0x1p-8)
}

// check is a launch on the problem's data, and the comparison with its answers; term is the relative error of each term of a sum.
func (p *Problem) check(name string, c Config, launch func(Operands) (ptx.Launch, *ptx.Args, error), term float64) (kernel.Case, error) {
	sample := func(name string, t num.DType, n int) *kernel.Sample {
		if c.Wide {
			return kernel.NewSample(name, t, n, 16)
		}
		return kernel.NewSample(name, t, n, t.Size())
	}
	given := func(name string, t num.DType, x []float64) kernel.Place {
		b := sample(name, t, len(x))
		b.Fill(func(i int) float64 { return x[i] })
		return b.Place()
	}
	type answer struct {
		got        *kernel.Sample
		want, size []float64
	}
	var answers []answer
	asked := func(name string, t num.DType, want, size []float64) kernel.Place {
		b := sample(name, t, len(want))
		answers = append(answers, answer{b, want, size})
		return b.Place()
	}
	o := Operands{Q: given("q", c.Type, p.q), K: given("k", c.Type, p.k), V: given("v", c.Type, p.v), B: p.B, S: p.S, G: p.G, R: p.R}
	if c.Pass == Forward {
		o.O, o.LSE = asked("o", c.Type, p.o.x, p.o.size), asked("lse", num.F32, p.lse, make([]float64, len(p.lse)))
	} else {
		o.LSE, o.DO, o.Delta = given("lse", num.F32, p.lse), given("do", c.Type, p.do), given("delta", num.F32, p.delta)
	}
	if c.Documents {
		o.Pos = given("pos", num.F32, p.pos)
	}
	switch c.Pass {
	case QueryGrad:
		o.DQ = asked("dq", c.Type, p.dq.x, p.dq.size)
	case KeyGrad:
		o.DK, o.DV = asked("dk", c.Type, p.dk.x, p.dk.size), asked("dv", c.Type, p.dv.x, p.dv.size)
	}
	l, a, err := launch(o)
	return kernel.Case{Name: fmt.Sprintf("%dx%dx%dx%dx%d", p.B, p.S, p.G, p.R, p.D), Launch: l, Args: a, Check: func() error {
		for _, x := range answers {
			top := 0.0
			for _, v := range x.want {
				top = max(top, math.Abs(v))
			}
			// Scores are sums of D products of normal numbers, below 8·√D in magnitude before the factor 1/√D: they carry D+3 roundings of 8, which exp makes
			// relative errors. Sums over S tokens of terms below top add S more. 2⁻²⁴·(8·(D+8) + 4·S) of the largest is above both.
			noise := 0x1p-24 * float64(8*(p.D+8)+4*p.S) * max(1, top)
			for i, want := range x.want {
				if got := x.got.At(i); !(math.Abs(got-want) <= noise+term*x.size[i]+kernel.Rounding(x.got.Type)*math.Abs(want)) {
					return fmt.Errorf("attention: %s: %s[%d] is %v, want %v ± %v", name, x.got.Name, i, got, want, noise+term*x.size[i])
				}
			}
			if !x.got.Intact() {
				return fmt.Errorf("attention: %s writes outside %s", name, x.got.Name)
			}
		}
		return nil
	}}, err
}

// Cases are one token, a broken block, and several blocks with shared keys.
func (s *Simple) Cases(int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, z := range [][4]int{{1, 1, 1, 1}, {2, 37, 2, 1}, {1, 70, 1, 3}} {
		c, err := s.Case(NewProblem(z[0], z[1], z[2], z[3], s.Config.D, s.Config.Type, s.Config.Documents, int64(i)))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase has more than one block of keys.
func (s *Simple) FaultCase() (kernel.Case, int, error) {
	c, err := s.Case(NewProblem(1, 70, 1, 1, s.Config.D, s.Config.Type, s.Config.Documents, 1))
	return c, 2, err
}

// Cases are one token, broken blocks, and several blocks with shared keys.
func (f *Fast) Cases(int) ([]kernel.Case, error) {
	var all []kernel.Case
	for i, z := range [][4]int{{1, 1, 1, 1}, {2, 150, 1, 1}, {1, 300, 1, 2}} {
		c, err := f.Case(NewProblem(z[0], z[1], z[2], z[3], f.Config.D, num.BF16, false, int64(i)))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// FaultCase walks more tiles than there are stages.
func (f *Fast) FaultCase() (kernel.Case, int, error) {
	c, err := f.Case(NewProblem(1, 400, 1, 1, f.Config.D, num.BF16, false, 1))
	return c, 4, err
}

// Equivalent excuses what is no fault in this kernel, or what the emulator cannot see.
func (f *Fast) Equivalent(m ptx.Mutant) string {
	switch {
	case m.Op == ptx.OpMbarInit:
		return "the last barrier that is made is an empty one, at which only threads of the CTA arrive: the barrier of the CTA orders that"
	case m.Op == ptx.OpWarpSync:
		return "in the emulator, which runs the lanes of a warp in step"
	case m.Op == ptx.OpWgFence:
		return "for the emulator; Build refuses a kernel whose products read registers written after the last fence"
	case m.Op == ptx.OpWgWait && strings.HasPrefix(m.Edit, "move"):
		return "the wait still stands before the arrival that lets go of the stage"
	}
	return ""
}

// Equivalent excuses the joins of warps: the emulator runs the lanes of a warp in step, so it cannot see them missing. A card may not.
func (s *Simple) Equivalent(m ptx.Mutant) string {
	if m.Op == ptx.OpWarpSync {
		return "in the emulator, which runs the lanes of a warp in step"
	}
	return ""
}
