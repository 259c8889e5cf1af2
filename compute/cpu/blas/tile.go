package blas

// kernel is the code that one instruction set brings to the loops.
type kernel[T Float] struct {
	mr, nr int // rows and columns of a tile
	mc     int // rows of A that stay in L2 while a block of B passes
	tile   func(t *tile[T])
	pack   func(dst []T, x view[T], p packing)
}

// tile is a rows × cols piece of C, its rows of A and its panel of B.
type tile[T Float] struct {
	a          view[T] // [rows, depth]
	b          []T     // [depth, nr], rows brow apart
	brow       int
	c          []T // [rows, cols], rows ldc apart
	ldc        int
	rows, cols int // at most mr, nr
	depth      int
	add        bool // C += instead of C =
	edge       []T  // mr·nr elements for a tile narrower than nr
}

// Portable tiles are 2 × 4: eight sums and six factors fit sixteen registers.
const (
	portableRows = 2
	portableCols = 4
)

func portable[T Float]() kernel[T] {
	return kernel[T]{mr: portableRows, nr: portableCols, mc: 128, tile: tilePortable[T], pack: packPortable[T]}
}

// tilePortable computes
//
//	for i < rows { for j < cols {
//		s := 0
//		for k < depth { s += a[i,k] · b[k,j] }
//		c[i,j] = s, or c[i,j] + s when add
//	} }
func tilePortable[T Float](t *tile[T]) {
	var sum [portableRows * portableCols]T
	if t.rows == portableRows {
		sumTwoRows(&sum, t)
	} else {
		sumOneRow(&sum, t)
	}
	for i := range t.rows {
		row := t.c[i*t.ldc:]
		row = row[:t.cols]
		for j := range row {
			if t.add {
				row[j] += sum[i*portableCols+j]
			} else {
				row[j] = sum[i*portableCols+j]
			}
		}
	}
}

// The conversion T(x·y) forbids the compiler to fuse the addition, which it may
// do on arm64 in one loop and not in another.

func sumTwoRows[T Float](sum *[8]T, t *tile[T]) {
	var s00, s01, s02, s03, s10, s11, s12, s13 T
	ap, ak, b := 0, t.a.cs, t.b
	x, y := t.a.data, t.a.data[t.a.rs:]
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

func sumOneRow[T Float](sum *[8]T, t *tile[T]) {
	var s0, s1, s2, s3 T
	ap, ak, b := 0, t.a.cs, t.b
	x := t.a.data
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
