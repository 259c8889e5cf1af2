package attention

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"heddle/compute/cpu/blas"
)

func machineSets(t testing.TB) []blas.Set {
	var sets []blas.Set
	for _, s := range []blas.Set{blas.Portable, blas.AVX2, blas.AVX512} {
		if s.Runs() {
			sets = append(sets, s)
		} else {
			t.Logf("skipped: this machine or build has no %v", s)
		}
	}
	return sets
}

// cases go around the tiles of 36 and 48 queries and 64 keys.
func cases() []Shape {
	rising := func(n, start, gap int) []int {
		p := make([]int, n)
		for i := range p {
			p[i] = start + i*gap
		}
		return p
	}
	documents := func(starts ...int) []int { // a sequence a 0
		var from []int
		for i, n := 0, starts[len(starts)-1]; i < n; i++ {
			at := 0
			for _, s := range starts[:len(starts)-1] {
				if s <= i {
					at = s
				}
			}
			from = append(from, at)
		}
		return from
	}
	return []Shape{
		{B: 1, Sq: 7, Sk: 7, G: 1, R: 1, D: 4, From: documents(0, 3, 4, 7)},
		{B: 2, Sq: 200, Sk: 200, G: 2, R: 2, D: 20, From: append(documents(0, 5, 64, 100, 128, 129, 200), documents(0, 70, 199, 200)...)},
		{B: 1, Sq: 1, Sk: 150, G: 1, R: 3, D: 8, QPos: []int{149}, From: []int{130}},
		{B: 1, Sq: 3, Sk: 3, G: 1, R: 1, D: 4, From: []int{0, 2, 2}}, // query 1 sees nothing
		{B: 1, Sq: 1, Sk: 1, G: 1, R: 1, D: 1},
		{B: 2, Sq: 5, Sk: 5, G: 1, R: 2, D: 8},
		{B: 1, Sq: 48, Sk: 64, G: 2, R: 1, D: 16},
		{B: 2, Sq: 67, Sk: 67, G: 2, R: 3, D: 20},
		{B: 1, Sq: 130, Sk: 130, G: 1, R: 2, D: 64},
		{B: 1, Sq: 1, Sk: 100, G: 2, R: 2, D: 32, QPos: []int{99}},
		{B: 3, Sq: 1, Sk: 140, G: 1, R: 40, D: 16, QPos: []int{0, 139, 70}, QBatch: 700, KRow: 17, KBatch: 140*17 + 9},
		{B: 1, Sq: 1, Sk: 0, G: 1, R: 2, D: 4},
		{B: 2, Sq: 3, Sk: 0, G: 1, R: 2, D: 4},
		{B: 2, Sq: 3, Sk: 90, G: 1, R: 2, D: 33, QPos: []int{10, 11, 12, 70, 71, 89}},
		{B: 1, Sq: 20, Sk: 30, G: 1, R: 1, D: 8, QPos: rising(20, 0, 1), KPos: rising(30, 5, 2), Scale: 0.3},
		{B: 2, Sq: 9, Sk: 70, G: 2, R: 2, D: 12, QPos: rising(9, 60, 1), QRow: 80, KRow: 30, QBatch: 9*80 + 4, KBatch: 70*30 + 5},
	}
}

type data[T Float] struct {
	t Tensors[T]
	d Grads[T]
}

func newData[T Float](s Shape, seed uint64) *data[T] {
	s.fill()
	r := rand.New(rand.NewPCG(seed, 7))
	normal := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(float32(r.NormFloat64())) // the same numbers for both types
		}
		return x
	}
	w, kw := s.G*s.R*s.D, s.G*s.D
	qn, kn, on := need(s.B, s.Sq, w, s.QBatch, s.QRow), need(s.B, s.Sk, kw, s.KBatch, s.KRow), s.B*s.Sq*w
	x := &data[T]{}
	x.t = Tensors[T]{Q: normal(qn), K: normal(kn), V: normal(kn), O: normal(on), LSE: make([]T, s.B*s.Sq*s.G*s.R)}
	x.d = Grads[T]{DO: normal(on), DQ: normal(qn), DK: normal(kn), DV: normal(kn)}
	return x
}

func (x *data[T]) run(p *blas.Pool, s Shape) {
	Forward(p, s, x.t, nil)
	Backward(p, s, x.t, x.d, make([]T, ScratchLen[T](p, s)))
}

// naive is the formulas of Forward and Backward in float64 with all scores held.
func naive(s Shape, x *data[float64]) {
	s.fill()
	s.check()
	t, d := x.t, x.d
	for b := range s.B {
		for g := range s.G {
			for j := range s.Sk {
				at := b*s.KBatch + j*s.KRow + g*s.D
				clear(d.DK[at:][:s.D])
				clear(d.DV[at:][:s.D])
			}
			for a := g * s.R; a < (g+1)*s.R; a++ {
				for i := range s.Sq {
					naiveQuery(&s, t, d, b, g, a, i)
				}
			}
		}
	}
}

func naiveQuery(s *Shape, t Tensors[float64], d Grads[float64], b, g, a, i int) {
	n := s.visible(b, i, 0)
	row := (b*s.Sq+i)*s.G*s.R + a
	q, dq := t.Q[b*s.QBatch+i*s.QRow+a*s.D:][:s.D], d.DQ[b*s.QBatch+i*s.QRow+a*s.D:][:s.D]
	o, do := t.O[row*s.D:][:s.D], d.DO[row*s.D:][:s.D]
	first := 0
	if s.From != nil {
		first = min(n, s.From[b*s.Sq+i])
	}
	p, sum := make([]float64, n), 0.0
	for j := first; j < n; j++ {
		p[j] = math.Exp(s.Scale * dot(q, t.K[b*s.KBatch+j*s.KRow+g*s.D:]))
		sum += p[j]
	}
	t.LSE[row] = math.Log(sum)
	clear(o)
	clear(dq)
	if first == n {
		return
	}
	for j := range p {
		p[j] /= sum
		for e := range o {
			o[e] += p[j] * t.V[b*s.KBatch+j*s.KRow+g*s.D+e]
		}
	}
	delta := dot(o, do)
	for j := range p {
		at := b*s.KBatch + j*s.KRow + g*s.D
		ds := p[j] * (dot(do, t.V[at:]) - delta) * s.Scale
		for e := range o {
			dq[e] += ds * t.K[at+e]
			d.DK[at+e] += ds * q[e]
			d.DV[at+e] += p[j] * do[e]
		}
	}
}

func dot(x, y []float64) (s float64) {
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// TestMatchesNaiveFloat64 compares by max|Δ| ÷ max(1, max|ref|). Inputs are
// standard normal. A score is a sum of D products scaled by 1/√D, of size
// around 1 and at most about 6 here; its error is at most (D+4)·u·6, which exp
// turns into the same relative error of a weight; a sum over Sk weights (or, in
// dk and dv, over R·Sq queries) adds its own length in roundings. So the error
// relative to the largest value is below u·(6·(D+4) + Sk + R·Sq + 40) with
// 40 for exp, log and the running rescaling.
func TestMatchesNaiveFloat64(t *testing.T) {
	for _, set := range machineSets(t) {
		for i, s := range cases() {
			t.Run(fmt.Sprintf("%v/%d", set, i), func(t *testing.T) {
				matches[float32](t, set, s, 0x1p-24)
				matches[float64](t, set, s, 0x1p-52)
			})
		}
	}
}

func matches[T Float](t *testing.T, set blas.Set, s Shape, u float64) {
	p := blas.NewPoolFor(set, 2)
	defer p.Close()
	got, want := newData[T](s, 1), newData[float64](s, 1)
	got.run(p, s)
	naive(s, want)
	tol := u * float64(6*(s.D+4)+s.Sk+s.R*s.Sq+40)
	near(t, "o", got.t.O, want.t.O, tol)
	near(t, "lse", got.t.LSE, want.t.LSE, tol)
	near(t, "dq", got.d.DQ, want.d.DQ, tol)
	near(t, "dk", got.d.DK, want.d.DK, tol)
	near(t, "dv", got.d.DV, want.d.DV, tol)
}

func near[T Float](t *testing.T, name string, got []T, want []float64, tol float64) {
	t.Helper()
	size := 1.0
	for _, v := range want {
		if !math.IsInf(v, 0) {
			size = max(size, math.Abs(v))
		}
	}
	for i, v := range want {
		if g := float64(got[i]); g != v && !(math.Abs(g-v) <= tol*size) {
			t.Fatalf("%s[%d] = %g, want %g ± %g (%T)", name, i, g, v, tol*size, got[i])
		}
	}
}

// A query is bit-equal alone and among others, and results do not depend on
// threads or batch.
func TestBitsDependOnShapeAlone(t *testing.T) {
	for _, set := range machineSets(t) {
		one, four := blas.NewPoolFor(set, 1), blas.NewPoolFor(set, 4)
		defer four.Close()
		s := Shape{B: 2, Sq: 101, Sk: 101, G: 2, R: 2, D: 24}
		x, y := newData[float32](s, 5), newData[float32](s, 5)
		x.run(one, s)
		y.run(four, s)
		for _, pair := range [][2][]float32{{x.t.O, y.t.O}, {x.t.LSE, y.t.LSE}, {x.d.DQ, y.d.DQ}, {x.d.DK, y.d.DK}, {x.d.DV, y.d.DV}} {
			if !slices.Equal(pair[0], pair[1]) {
				t.Fatalf("%v: four threads give other bits than one", set)
			}
		}
		w, kw := s.G*s.R*s.D, s.G*s.D
		for _, i := range []int{0, 1, 35, 36, 47, 48, 63, 64, 100} {
			for b := range s.B {
				alone := Shape{B: 1, Sq: 1, Sk: i + 1, G: s.G, R: s.R, D: s.D, QPos: []int{i}}
				z := newData[float32](alone, 6)
				copy(z.t.Q, x.t.Q[(b*s.Sq+i)*w:])
				copy(z.t.K, x.t.K[b*s.Sk*kw:])
				copy(z.t.V, x.t.V[b*s.Sk*kw:])
				copy(z.d.DO, x.d.DO[(b*s.Sq+i)*w:])
				z.run(one, alone)
				at := (b*s.Sq + i) * w
				if !slices.Equal(z.t.O, x.t.O[at:at+w]) || !slices.Equal(z.d.DQ, x.d.DQ[at:at+w]) {
					t.Fatalf("%v: query %d of sequence %d alone has other bits", set, i, b)
				}
			}
		}
	}
}

// Elements between the rows of strided tensors are not touched, and memory is
// linear in Sk.
func TestScratchIsLinear(t *testing.T) {
	p := blas.NewPool(1)
	s := Shape{B: 1, Sq: 1 << 12, Sk: 1 << 12, G: 1, R: 1, D: 64}
	short := ScratchLen[float32](p, s)
	s.Sq, s.Sk = 2*s.Sq, 2*s.Sk
	if long := ScratchLen[float32](p, s); long > 2*short {
		t.Fatalf("scratch grows from %d to %d elements when S doubles", short, long)
	}
}

func TestGapsAreUntouched(t *testing.T) {
	s := Shape{B: 2, Sq: 9, Sk: 70, G: 2, R: 2, D: 12, QRow: 80, KRow: 30, QBatch: 9*80 + 4, KBatch: 70*30 + 5}
	p := blas.NewPool(1)
	x, before := newData[float32](s, 2), newData[float32](s, 2)
	x.run(p, s)
	for i, v := range x.d.DQ {
		if inside := i%s.QBatch < 9*80 && i%s.QBatch%80 < 48; !inside && v != before.d.DQ[i] {
			t.Fatalf("dq gap at %d written", i)
		}
	}
	for i, v := range x.d.DK {
		if inside := i%s.KBatch < 70*30 && i%s.KBatch%30 < 24; !inside && (v != before.d.DK[i] || x.d.DV[i] != before.d.DV[i]) {
			t.Fatalf("dk or dv gap at %d written", i)
		}
	}
}
