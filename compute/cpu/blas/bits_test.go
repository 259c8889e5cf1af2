package blas

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
)

// Row i of a product is bit-equal to the product of row i alone, at any M, on
// any number of threads, with B packed before or not, in a batch or not, and
// wherever the matrices start.
func TestBitsDependOnShapeAlone(t *testing.T) {
	for _, set := range machineSets(t) {
		bitsDependOnShapeAlone[float32](t, set)
		bitsDependOnShapeAlone[float64](t, set)
	}
}

func bitsDependOnShapeAlone[T Float](t *testing.T, set Set) {
	one, three := NewPoolFor(set, 1), NewPoolFor(set, 3)
	defer three.Close()
	r := rand.New(rand.NewPCG(1, 2))
	const m, n, k = 70, 83, 530
	for mode := range 4 {
		g, _ := product[T](r, shape{m, n, k}, mode&1 != 0, mode&2 != 0, false)
		Gemm(one, g)
		want := slices.Clone(g.C)
		check := func(what string, got []T, rows int, from int) {
			for i := range rows {
				if !slices.Equal(got[i*g.LDC:][:n], want[(from+i)*g.LDC:][:n]) {
					t.Fatalf("%v %T mode %d, %s: row %d has other bits", set, T(0), mode, what, from+i)
				}
			}
		}
		clear(g.C)
		Gemm(three, g)
		check("three threads", g.C, m, 0)
		packed := &PackedB[T]{K: k, N: n}
		PackB(one, packed, g.B, g.LDB, g.TransB)
		for _, rows := range []int{1, 2, 3, 5, 7, 16, 17, 31} {
			from := m - rows
			part := *g
			part.M, part.C = rows, make([]T, len(g.C))
			part.A = g.A[from*g.LDA:]
			if g.TransA {
				part.A = g.A[from:]
			}
			Gemm(one, &part)
			check("few rows", part.C, rows, from)
			clear(part.C)
			part.Packed, part.B = packed, nil
			Gemm(three, &part)
			check("packed", part.C, rows, from)
		}
		batch := *g
		batch.Batch, batch.M, batch.C = m/7, 7, make([]T, len(g.C))
		batch.StrideA, batch.StrideC = 7*g.LDA, 7*g.LDC
		if g.TransA {
			batch.StrideA = 7
		}
		Gemm(three, &batch)
		check("batch", batch.C, m, 0)
	}
}

// The first rows and columns of a larger packed matrix give the bits of the
// smaller one.
func TestPartOfPacked(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 1)
		r := rand.New(rand.NewPCG(4, 4))
		g, _ := product[float32](r, shape{20, 90, 70}, false, true, false)
		packed := &PackedB[float32]{K: g.K, N: g.N}
		PackB(p, packed, g.B, g.LDB, g.TransB)
		for _, s := range []shape{{20, 90, 70}, {20, 33, 70}, {7, 90, 9}, {1, 1, 1}} {
			g.M, g.N, g.K, g.Packed = s.m, s.n, s.k, nil
			clear(g.C)
			Gemm(p, g)
			want := slices.Clone(g.C)
			clear(g.C)
			g.Packed = packed
			Gemm(p, g)
			if !slices.Equal(g.C, want) {
				t.Fatalf("%v %v: other bits from a part of a packed matrix", set, s)
			}
		}
	}
}

// AVX2 and AVX-512 give the same bits.
func TestFusedSetsAgree(t *testing.T) {
	if !AVX512.Runs() {
		t.Skip("skipped: this machine or build has no avx512")
	}
	r := rand.New(rand.NewPCG(1, 3))
	g, _ := product[float32](r, shape{45, 71, 600}, false, true, false)
	Gemm(NewPoolFor(AVX2, 1), g)
	want := slices.Clone(g.C)
	Gemm(NewPoolFor(AVX512, 1), g)
	if !slices.Equal(g.C, want) {
		t.Fatal("avx512 and avx2 differ")
	}
}

// A NaN or Inf in row i of A reaches all of row i of C and no other row; one in
// column j of B reaches all of column j and no other; 0·Inf is NaN.
func TestSpecialValuesSpread(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 1)
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			r := rand.New(rand.NewPCG(9, 9))
			const m, n, k, row, col = 13, 37, 19, 7, 33
			g, _ := product[float32](r, shape{m, n, k}, false, true, false)
			g.A[row*g.LDA+5] = bad
			g.B[col*g.LDB+4] = bad
			g.A[2*g.LDA+4] = 0 // 0 · bad
			Gemm(p, g)
			for i := range m {
				for j := range n {
					v := float64(g.C[i*g.LDC+j])
					if finite := !math.IsNaN(v) && !math.IsInf(v, 0); finite != (i != row && j != col) {
						t.Fatalf("%v, %g at A row %d, B column %d: C[%d,%d] = %g", set, bad, row, col, i, j, v)
					}
				}
			}
			if !math.IsNaN(float64(g.C[2*g.LDC+col])) {
				t.Fatalf("%v: 0 · %g gave %g, want NaN", set, bad, g.C[2*g.LDC+col])
			}
		}
	}
}

// K·u·Σ|a·b| holds for denormal products too, whose absolute error is at most
// half the smallest denormal each: with K = 40 that is 20 of them.
func TestDenormalsAreNotFlushed(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 1)
		const m, n, k = 7, 18, 40
		g := &Params[float32]{M: m, N: n, K: k, A: make([]float32, m*k), B: make([]float32, k*n), C: make([]float32, m*n), LDA: k, LDB: n, LDC: n}
		for i := range g.A {
			g.A[i] = 0x1p-130
		}
		for i := range g.B {
			g.B[i] = 1
		}
		Gemm(p, g)
		for i, v := range g.C {
			if v != k*0x1p-130 {
				t.Fatalf("%v: C[%d] = %g, want %g", set, i, v, float32(k*0x1p-130))
			}
		}
	}
}

func TestMisfitsPanicWithError(t *testing.T) {
	p := NewPool(1)
	x := make([]float32, 12)
	bad := map[string]*Params[float32]{
		"short A":      {M: 4, N: 3, K: 4, A: x, B: x, C: x, LDA: 4, LDB: 3, LDC: 3},
		"short C":      {M: 5, N: 3, K: 2, A: x, B: x, C: x, LDA: 2, LDB: 3, LDC: 3},
		"narrow rows":  {M: 3, N: 3, K: 4, A: x, B: x, C: x, LDA: 3, LDB: 3, LDC: 3},
		"negative":     {M: -1, N: 3, K: 4, A: x, B: x, C: x, LDA: 4, LDB: 3, LDC: 3},
		"batch":        {M: 2, N: 2, K: 2, A: x, B: x, C: x, LDA: 2, LDB: 2, LDC: 2, Batch: 4, StrideC: 4},
		"C overlaps":   {M: 2, N: 2, K: 2, A: x, B: x, C: x, LDA: 2, LDB: 2, LDC: 2, Batch: 2, StrideC: 3},
		"other packed": {M: 2, N: 2, K: 2, A: x, C: x, LDA: 2, LDC: 2, Packed: &PackedB[float32]{K: 2, N: 3}},
	}
	for name, g := range bad {
		func() {
			defer func() {
				if _, ok := recover().(*Error); !ok {
					t.Errorf("%s: no *Error", name)
				}
			}()
			Gemm(p, g)
		}()
	}
}

func TestRunCallsEachOnce(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 5} {
		p := NewPool(threads)
		for _, n := range []int{0, 1, 2, 4, 5, 11} {
			calls := make([]int, n)
			p.Run(n, func(worker, i int) {
				if want := i % p.Threads(); worker != want {
					t.Errorf("index %d ran on worker %d, want %d", i, worker, want)
				}
				calls[i]++
			})
			for i, c := range calls {
				if c != 1 {
					t.Fatalf("%d threads: index %d of %d ran %d times", threads, i, n, c)
				}
			}
		}
		p.Close()
	}
}

// With one thread a product allocates nothing once the scratch has grown.
func TestNoAllocation(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 1)
		r := rand.New(rand.NewPCG(4, 4))
		g, _ := product[float32](r, shape{30, 90, 70}, true, true, false)
		if n := testing.AllocsPerRun(10, func() { Gemm(p, g) }); n != 0 {
			t.Errorf("%v: %g allocations a product, want 0", set, n)
		}
	}
}

// A panic on any worker reaches the caller of Run, and the pool works on.
func TestPanicsReachTheCaller(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for bad := range 6 {
		func() {
			defer func() {
				if v := recover(); v != bad {
					t.Errorf("recovered %v, want %d", v, bad)
				}
			}()
			p.Run(6, func(_, i int) {
				if i == bad {
					panic(i)
				}
			})
		}()
	}
	var n atomic.Int32
	p.Run(6, func(int, int) { n.Add(1) })
	if n.Load() != 6 {
		t.Errorf("%d calls after panics, want 6", n.Load())
	}
}
