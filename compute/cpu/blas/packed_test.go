package blas

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A matrix packed column by column or row by row multiplies like one packed at once, and a column comes back as it was.
func TestPackedByColumnsAndRows(t *testing.T) {
	for _, set := range machineSets(t) {
		p := NewPoolFor(set, 1)
		r := rand.New(rand.NewPCG(8, 8))
		for _, s := range []shape{{3, 33, 20}, {2, 64, 300}, {1, 16, 513}, {1, 1, 1}} {
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
