package blas

import "heddle/num"

// kernel is the code that one instruction set brings to the loops.
type kernel[T Float] struct {
	mr, nr int // rows and columns of a tile
	mc     int // rows of A that stay in L2 while a block of B passes
	strip  func(s *strip[T])
	pack   func(dst []T, x view[T], p packing)
	widen  func(dst []T, src []uint16)
}

// strip is a column of tiles of C, rows × cols each, with their rows of A and
// the panel of B that they share.
type strip[T Float] struct {
	tiles      int
	a          view[T] // [rows, depth] of the first tile
	astep      int     // elements of a from one tile to the next
	b          []T     // [depth, nr], rows brow apart
	brow       int
	c          []T // [tiles·rows, cols], rows ldc apart
	ldc        int
	rows, cols int // of a tile, at most mr, nr
	depth      int
	add        bool // C += instead of C =
	edge       []T  // mr·nr elements for tiles narrower than nr
}

// Portable tiles are 2 × 4: eight sums and six factors fit sixteen registers.
const (
	portableRows = 2
	portableCols = 4
)

func portable[T Float]() kernel[T] {
	return kernel[T]{mr: portableRows, nr: portableCols, mc: 128, strip: stripPortable[T], pack: packPortable[T], widen: widenPortable[T]}
}

// stripPortable computes
//
//	for t < tiles { for i < rows { for j < cols {
//		s := 0
//		for k < depth { s += a[t·astep + i·ars + k·acs] · b[k·brow + j] }
//		c[t·rows+i,j] = s, or c[t·rows+i,j] + s when add
//	} } }
func stripPortable[T Float](s *strip[T]) {
	for t := range s.tiles {
		var sum [portableRows * portableCols]T
		if a := s.a.data[t*s.astep:]; s.rows == portableRows {
			sumTwoRows(&sum, s, a)
		} else {
			sumOneRow(&sum, s, a)
		}
		for i := range s.rows {
			row := s.c[(t*s.rows+i)*s.ldc:]
			row = row[:s.cols]
			for j := range row {
				if s.add {
					row[j] += sum[i*portableCols+j]
				} else {
					row[j] = sum[i*portableCols+j]
				}
			}
		}
	}
}

// The conversion T(x·y) forbids the compiler to fuse the addition, which it may
// do on arm64 in one loop and not in another.

func sumTwoRows[T Float](sum *[8]T, t *strip[T], a []T) {
	var s00, s01, s02, s03, s10, s11, s12, s13 T
	ap, ak, b := 0, t.a.cs, t.b
	x, y := a, a[t.a.rs:]
	for range t.depth {
		r := b[:4:4]
		u, v := x[ap], y[ap]
		s00 += T(u * r[0])
		s01 += T(u * r[1])
		s02 += T(u * r[2])
		s03 += T(u * r[3])
		s10 += T(v * r[0])
		s11 += T(v * r[1])
		s12 += T(v * r[2])
		s13 += T(v * r[3])
		ap += ak
		b = b[min(t.brow, len(b)):]
	}
	*sum = [8]T{s00, s01, s02, s03, s10, s11, s12, s13}
}

func sumOneRow[T Float](sum *[8]T, t *strip[T], a []T) {
	var s0, s1, s2, s3 T
	ap, ak, b := 0, t.a.cs, t.b
	x := a
	for range t.depth {
		r := b[:4:4]
		u := x[ap]
		s0 += T(u * r[0])
		s1 += T(u * r[1])
		s2 += T(u * r[2])
		s3 += T(u * r[3])
		ap += ak
		b = b[min(t.brow, len(b)):]
	}
	*sum = [8]T{s0, s1, s2, s3}
}

// packing lays a [depth, cols] matrix in panels of width columns, panel elements
// from one to the next.
type packing struct{ depth, cols, width, panel int }

// packPortable computes
//
//	for p, j0 := 0, 0; j0 < cols; p, j0 = p+1, j0+width {
//		for k < depth { for j < width { dst[p·panel + k·width + j] = x[k,j0+j], or 0 when j0+j ≥ cols } }
//	}
func packPortable[T Float](dst []T, x view[T], p packing) {
	for j0 := 0; j0 < p.cols; j0 += p.width {
		n := min(p.width, p.cols-j0)
		for k := range p.depth {
			row := dst[k*p.width : k*p.width+p.width]
			for j := range n {
				row[j] = x.data[k*x.rs+(j0+j)*x.cs]
			}
			clear(row[n:])
		}
		if j0+p.width < p.cols {
			dst = dst[p.panel:]
		}
	}
}

// widenPortable sets dst[i] to the value whose float32 has the bits src[i]·2¹⁶: src is bf16.
func widenPortable[T Float](dst []T, src []uint16) {
	for i, h := range src[:len(dst)] {
		dst[i] = T(num.FromBF16(h))
	}
}
