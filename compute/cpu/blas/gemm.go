package blas

import "fmt"

// Float is an element type Gemm multiplies.
type Float interface{ float32 | float64 }

// Params is one product, or Batch products of the same shape. Matrices are
// row-major; LD is the distance between rows in elements. The zero value of
// every optional field is the plain case.
type Params[T Float] struct {
	M, N, K        int
	A              []T // [M, K], or [K, M] when TransA
	B              []T // [K, N], or [N, K] when TransB; unused when Packed is set
	C              []T // [M, N]
	LDA, LDB, LDC  int
	TransA, TransB bool
	Accumulate     bool        // C += A·B instead of C = A·B
	Packed         *PackedB[T] // B packed before by PackB; it may have more columns and, up to 256 in all, more rows

	Batch                     int // 0 means 1
	StrideA, StrideB, StrideC int // elements from one product's matrix to the next's; A and B may have stride 0
}

// Gemm computes, for every product of the batch,
//
//	for i < M { for j < N {
//		for each K block {
//			s := 0
//			for k in block { s += op(A)[i,k] · op(B)[k,j] }
//			C[i,j] = s, or C[i,j] + s when Accumulate or not the first block
//		}
//	} }
//
// C must not overlap A or B. Shapes that do not fit their slices panic with an
// *Error; no element outside the M×N window of C is written.
func Gemm[T Float](p *Pool, g *Params[T]) {
	check(p, g)
	run(p, g)
}

// Error is a misuse of this package by its caller: shapes that do not fit.
type Error struct{ What string }

func (e *Error) Error() string { return "blas: " + e.What }

func check[T Float](p *Pool, g *Params[T]) {
	if g.M < 0 || g.N < 0 || g.K < 0 || g.Batch < 0 {
		panic(&Error{fmt.Sprintf("gemm: M %d, N %d, K %d, batch %d, want none below 0", g.M, g.N, g.K, g.Batch)})
	}
	last := max(1, g.Batch) - 1
	if g.TransA {
		checkMatrix("A", g.K, g.M, g.LDA, len(g.A)-last*g.StrideA)
	} else {
		checkMatrix("A", g.M, g.K, g.LDA, len(g.A)-last*g.StrideA)
	}
	switch {
	case g.Packed != nil:
		g.Packed.check(p.set, g.K, g.N)
	case g.TransB:
		checkMatrix("B", g.N, g.K, g.LDB, len(g.B)-last*g.StrideB)
	default:
		checkMatrix("B", g.K, g.N, g.LDB, len(g.B)-last*g.StrideB)
	}
	checkMatrix("C", g.M, g.N, g.LDC, len(g.C)-last*g.StrideC)
	if g.StrideA < 0 || g.StrideB < 0 || g.StrideC < 0 || last > 0 && g.StrideC < (g.M-1)*g.LDC+g.N {
		panic(&Error{fmt.Sprintf("gemm: strides A %d, B %d, C %d, want none below 0 and C not overlapping", g.StrideA, g.StrideB, g.StrideC)})
	}
}

func checkMatrix(name string, rows, cols, ld, have int) {
	if rows == 0 || cols == 0 {
		return
	}
	if need := (rows-1)*ld + cols; ld < cols || have < need {
		panic(&Error{fmt.Sprintf("gemm: %s [%d, %d] with row distance %d needs %d elements, got %d", name, rows, cols, ld, need, have)})
	}
}
