package blas

import (
	"math/rand/v2"
	"slices"
	"testing"

	"heddle/num"
)

// A matrix packed column by column or row by row multiplies like one packed at once, and a column comes back as it was.
func TestPackedByColumnsAndRows(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 1)
		r := rand.New(rand.NewPCG(8, 8))
		for _, s := range []shape{{3, 33, 20}, {2, 64, 300}, {1, 16, 513}, {2, 40, 515}, {1, 1, 1}} {
			g, _ := product[float32](r, s, false, false, false)
			clear(g.C) // also between the rows
			Gemm(p, g)
			want := slices.Clone(g.C)
			columns, rows := &PackedB[float32]{K: g.K, N: g.N}, &PackedB[float32]{K: g.K, N: g.N}
			for _, pb := range []*PackedB[float32]{columns, rows} {
				pb.Reuse(p, make([]float32, PackedLen[float32](p, g.K, g.N)), g.K, g.N)
			}
			column := make([]float32, g.K)
			for j := range g.N {
				for k := range column {
					column[k] = g.B[k*g.LDB+j]
				}
				columns.SetColumn(p, j, column)
			}
			for k := range g.K {
				rows.SetRow(p, k, g.B[k*g.LDB:][:g.N])
			}
			for _, pb := range []*PackedB[float32]{columns, rows} {
				g.Packed = pb
				clear(g.C)
				Gemm(p, g)
				if !slices.Equal(g.C, want) {
					t.Fatalf("%v %v: other products", set, s)
				}
			}
			rows.Column(p, g.N-1, column)
			for k, v := range column {
				if v != g.B[k*g.LDB+g.N-1] {
					t.Fatalf("%v %v: column element %d is %g, want %g", set, s, k, v, g.B[k*g.LDB+g.N-1])
				}
			}
		}
	}
}

// A product with a B kept as bf16 has the bits of one with the rounded B, at any M, in windows and in part.
func TestHalvedIsRounded(t *testing.T) {
	for _, set := range machineSets(t) {
		halvedIsRounded[float32](t, set)
		halvedIsRounded[float64](t, set)
	}
}

func halvedIsRounded[T Float](t *testing.T, set Set) {
	p := NewPoolFor(set, 2)
	defer p.Close()
	r := rand.New(rand.NewPCG(3, 8))
	for _, s := range []shape{{1, 133, 70}, {7, 200, 600}, {80, 64, 40}, {2, 1, 3}} {
		g, _ := product[T](r, s, false, true, false)
		for i, v := range g.B {
			g.B[i] = v * T(1+float32(i%5)*1e-3) // not all of them bf16 already
		}
		half := &PackedB[T]{K: g.K, N: g.N}
		PackB(p, half, g.B, g.LDB, true)
		half.Halve()
		for i, v := range g.B {
			g.B[i] = T(num.FromBF16(num.ToBF16(float32(v))))
		}
		clear(g.C)
		Gemm(p, g)
		want := slices.Clone(g.C)
		g.Packed = half
		clear(g.C)
		Gemm(p, g)
		if !slices.Equal(g.C, want) {
			t.Errorf("%v %T %v: other products", set, T(0), s)
		}
		clear(g.C)
		for j := 0; j < g.N; j += 64 {
			Window(p, g, j, min(j+64, g.N))
		}
		if !slices.Equal(g.C, want) {
			t.Errorf("%v %T %v: other products in windows", set, T(0), s)
		}
		column := make([]T, g.K)
		half.Column(p, g.N-1, column)
		if !slices.Equal(column, g.B[(g.N-1)*g.LDB:][:g.K]) {
			t.Errorf("%v %T %v: other column", set, T(0), s)
		}
	}
}
