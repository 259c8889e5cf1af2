package blas

import (
	"fmt"

	"heddle/num"
)

// PackedB is op(B) [K, N] in the order the kernels read it, so that one weight
// serves many products without being packed again. It belongs to the
// instruction set of the pool that packed it.
//
// Layout: K blocks in order; in each, panels of nr columns; in each, rows of nr
// elements, zeros beyond N.
type PackedB[T Float] struct {
	K, N int
	Data []T      // PackedLen elements; empty where Half has them
	Half []uint16 // the same as bf16, widened whenever a product reads a panel
	set  Set
}

// Halve rounds the elements to bf16 and keeps them as that: half the memory to
// read for each product, whose bits are those of a product with the rounded B.
func (pb *PackedB[T]) Halve() {
	if cap(pb.Half) < len(pb.Data) {
		pb.Half = make([]uint16, len(pb.Data))
	}
	pb.Half = pb.Half[:len(pb.Data)]
	for i, v := range pb.Data {
		pb.Half[i] = num.ToBF16(float32(v))
	}
	pb.Data = nil
}

// PackedLen is the length of PackedB.Data for a K×N matrix: K times N rounded
// up to the panel width of the pool's kernels.
func PackedLen[T Float](p *Pool, k, n int) int {
	nr := localOf[T](p).kern.nr
	return k * ((n + nr - 1) / nr * nr)
}

// PackB packs b, [K, N] or with trans [N, K], row distance ldb, into pb. Data is
// reused when it is long enough.
func PackB[T Float](p *Pool, pb *PackedB[T], b []T, ldb int, trans bool) {
	k, n := pb.K, pb.N
	if trans {
		checkMatrix("B", n, k, ldb, len(b))
	} else {
		checkMatrix("B", k, n, ldb, len(b))
	}
	need := PackedLen[T](p, k, n)
	if cap(pb.Data) < need {
		pb.Data = make([]T, need)
	}
	pb.Data, pb.Half, pb.set = pb.Data[:need], nil, p.set
	kern := &localOf[T](p).kern
	panels := (n + kern.nr - 1) / kern.nr
	kc := blockLen(k)
	for k0 := 0; k0 < k; k0 += kc {
		depth := min(kc, k-k0)
		block := pb.Data[k0*panels*kern.nr:]
		v := viewOf(b, ldb, trans).at(k0, 0)
		kern.pack(block, v, packing{depth, n, kern.nr, depth * kern.nr})
	}
}

// Reuse points pb at memory for a k×n matrix, PackedLen elements or more, that
// PackB filled before or will fill.
func (pb *PackedB[T]) Reuse(p *Pool, data []T, k, n int) {
	pb.K, pb.N, pb.set = k, n, p.set
	pb.Data = data[:PackedLen[T](p, k, n)]
}

// check accepts a product that uses the first n columns and, where one block
// holds them all, the first k rows.
func (pb *PackedB[T]) check(set Set, k, n int) {
	deep := pb.K == k || pb.K > k && pb.K <= kcMax
	if !deep || pb.N < n || pb.set != set || len(pb.Data)+len(pb.Half) < pb.K*pb.N {
		panic(&Error{fmt.Sprintf("gemm: packed B is [%d, %d] for %v, want [%d, %d] for %v", pb.K, pb.N, pb.set, k, n, set)})
	}
}

// index is where element (k, j) lies in Data.
func (pb *PackedB[T]) index(nr, k, j int) int {
	kc, panels := blockLen(pb.K), (pb.N+nr-1)/nr
	k0 := k / kc * kc
	return k0*panels*nr + (j/nr*min(kc, pb.K-k0)+k-k0)*nr + j%nr
}

// SetColumn puts x, K elements, into column j. The other elements stay, so that
// a matrix may be packed column by column.
func (pb *PackedB[T]) SetColumn(p *Pool, j int, x []T) {
	nr := localOf[T](p).kern.nr
	kc := blockLen(pb.K)
	for k0 := 0; k0 < pb.K; k0 += kc {
		to := pb.Data[pb.index(nr, k0, j):]
		for k, v := range x[k0:min(k0+kc, pb.K)] {
			to[k*nr] = v
		}
	}
}

// Column copies column j into x, K elements.
func (pb *PackedB[T]) Column(p *Pool, j int, x []T) {
	nr := localOf[T](p).kern.nr
	kc := blockLen(pb.K)
	for k0 := 0; k0 < pb.K; k0 += kc {
		from, part := pb.index(nr, k0, j), x[k0:min(k0+kc, pb.K)]
		for k := range part {
			if pb.Half != nil {
				part[k] = T(num.FromBF16(pb.Half[from+k*nr]))
			} else {
				part[k] = pb.Data[from+k*nr]
			}
		}
	}
}

// SetRow puts x, N elements, into row k.
func (pb *PackedB[T]) SetRow(p *Pool, k int, x []T) {
	nr := localOf[T](p).kern.nr
	for j := 0; j < pb.N; j += nr {
		copy(pb.Data[pb.index(nr, k, j):], x[j:min(j+nr, pb.N)])
	}
}
