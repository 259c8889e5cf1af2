package blas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// machineSets are the sets this machine runs; the rest are reported once.
func machineSets(t testing.TB) []Set {
	var sets []Set
	for _, s := range []Set{Portable, AVX2, AVX512} {
		if s.Runs() {
			sets = append(sets, s)
		} else {
			t.Logf("skipped: this machine or build has no %v", s)
		}
	}
	return sets
}

type shape struct{ m, n, k int }

// odd sizes around every tile width (2, 4, 6, 14, 16, 32) and K block (256).
func shapes() []shape {
	s := []shape{
		{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 16, 7}, {5, 15, 9}, {6, 16, 256}, {7, 17, 257}, {14, 32, 31},
		{13, 33, 300}, {15, 31, 64}, {16, 48, 513}, {17, 5, 129}, {1, 128, 128}, {29, 65, 66}, {65, 2049, 3}, {133, 100, 70}, {300, 40, 20},
	}
	for m := 1; m <= 18; m++ {
		s = append(s, shape{m, m*5 + 1, m*3 + 2})
	}
	return s
}

func fill[T Float](r *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(r.Float64()*2 - 1)
	}
	return x
}

// product makes a random product whose matrices start off 16-byte alignment and
// have rows farther apart than they are long; C lies between guards.
func product[T Float](r *rand.Rand, s shape, ta, tb, acc bool) (*Params[T], []T) {
	const pad = 3
	g := &Params[T]{M: s.m, N: s.n, K: s.k, TransA: ta, TransB: tb, Accumulate: acc}
	ra, ca := s.m, s.k
	if ta {
		ra, ca = ca, ra
	}
	rb, cb := s.k, s.n
	if tb {
		rb, cb = cb, rb
	}
	g.LDA, g.LDB, g.LDC = ca+pad, cb+pad, s.n+pad
	g.A, g.B = fill[T](r, ra*g.LDA+1)[1:], fill[T](r, rb*g.LDB+1)[1:]
	whole := fill[T](r, s.m*g.LDC+2*guard)
	g.C = whole[guard : guard+s.m*g.LDC]
	return g, whole
}

const guard = 37

func opA[T Float](g *Params[T], i, k int) float64 {
	if g.TransA {
		return float64(g.A[k*g.LDA+i])
	}
	return float64(g.A[i*g.LDA+k])
}

func opB[T Float](g *Params[T], k, j int) float64 {
	if g.TransB {
		return float64(g.B[j*g.LDB+k])
	}
	return float64(g.B[k*g.LDB+j])
}

// wantAndBound is the float64 sum and the largest error of a chain of K
// roundings to T: each product passes at most K+2 roundings (its own, one an
// addition in its block, one a block sum), so |error| ≤ γ(K+2) Σ|a·b| with
// γ(n) = n·u/(1−n·u) (Higham, Accuracy and Stability, §3.1). The float64
// reference of a float64 product has the same bound again, hence twice.
func wantAndBound[T Float](g *Params[T], old []T, i, j int) (want, bound float64) {
	var sum, abs float64
	if g.Accumulate {
		sum = float64(old[i*g.LDC+j])
		abs = math.Abs(sum)
	}
	for k := range g.K {
		p := opA(g, i, k) * opB(g, k, j)
		sum += p
		abs += math.Abs(p)
	}
	u := 0x1p-24
	if _, double := any(T(0)).(float64); double {
		u = 0x1p-52
	}
	return sum, float64(g.K+2) * u * 1.01 * abs
}

func TestGemmMatchesFloat64(t *testing.T) {
	for _, set := range machineSets(t) {
		t.Run(set.String(), func(t *testing.T) {
			gemmMatches[float32](t, set)
			gemmMatches[float64](t, set)
		})
	}
}

func gemmMatches[T Float](t *testing.T, set Set) {
	p := NewPoolFor(set, 1)
	defer p.Close()
	r := rand.New(rand.NewPCG(3, 1))
	for _, s := range shapes() {
		for mode := range 8 {
			g, whole := product[T](r, s, mode&1 != 0, mode&2 != 0, mode&4 != 0)
			old := append([]T(nil), whole...)
			Gemm(p, g)
			name := fmt.Sprintf("%v %T %v transA %t transB %t accumulate %t", set, T(0), s, g.TransA, g.TransB, g.Accumulate)
			compare(t, name, g, whole, old)
		}
	}
}

// compare checks every element of C against the reference, and that nothing
// else changed.
func compare[T Float](t *testing.T, name string, g *Params[T], whole, old []T) {
	t.Helper()
	for at := range whole {
		i, j := (at-guard)/max(1, g.LDC), (at-guard)%max(1, g.LDC)
		if at < guard || i >= g.M || j >= g.N {
			if whole[at] != old[at] {
				t.Fatalf("%s: wrote outside C at %d", name, at-guard)
			}
			continue
		}
		want, bound := wantAndBound(g, old[guard:], i, j)
		if got := float64(whole[at]); !(math.Abs(got-want) <= bound) {
			t.Fatalf("%s: C[%d,%d] = %g, want %g ± %g", name, i, j, got, want, bound)
		}
	}
}
