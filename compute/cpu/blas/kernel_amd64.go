//go:build amd64 && !purego

package blas

// kernelFor is the kernel of a set for an element type.
func kernelFor[T Float](set Set) kernel[T] {
	k := portable[T]()
	if p, ok := any(&k).(*kernel[float32]); ok {
		switch set {
		case AVX2:
			*p = kernel[float32]{mr: 6, nr: 16, mc: 240, tile: tileAVX2, packB: pack16}
		case AVX512:
			*p = kernel[float32]{mr: 14, nr: 32, mc: 336, tile: tileAVX512, packB: pack32}
		}
	}
	return k
}

// tileAVX2 is tilePortable with the multiply and add fused, for 6 × 16.
func tileAVX2(t *tile[float32]) {
	c, ldc, add := target(t, 16)
	a, ars, acs, b, brow := &t.a.data[0], 4*t.a.rs, 4*t.a.cs, &t.b[0], 4*t.brow
	switch t.rows {
	case 1:
		tileAVX2x1(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 2:
		tileAVX2x2(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 3:
		tileAVX2x3(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 4:
		tileAVX2x4(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 5:
		tileAVX2x5(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 6:
		tileAVX2x6(t.depth, a, ars, acs, b, brow, c, ldc, add)
	}
	if t.cols < 16 {
		fromEdge(t, 16)
	}
}

// tileAVX512 is tilePortable with the multiply and add fused, for 14 × 32.
func tileAVX512(t *tile[float32]) {
	c, ldc, add := target(t, 32)
	a, ars, acs, b, brow := &t.a.data[0], 4*t.a.rs, 4*t.a.cs, &t.b[0], 4*t.brow
	switch t.rows {
	case 1:
		tileAVX512x1(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 2:
		tileAVX512x2(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 3:
		tileAVX512x3(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 4:
		tileAVX512x4(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 5:
		tileAVX512x5(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 6:
		tileAVX512x6(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 7:
		tileAVX512x7(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 8:
		tileAVX512x8(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 9:
		tileAVX512x9(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 10:
		tileAVX512x10(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 11:
		tileAVX512x11(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 12:
		tileAVX512x12(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 13:
		tileAVX512x13(t.depth, a, ars, acs, b, brow, c, ldc, add)
	case 14:
		tileAVX512x14(t.depth, a, ars, acs, b, brow, c, ldc, add)
	}
	if t.cols < 32 {
		fromEdge(t, 32)
	}
}

// target is where a kernel stores its sums: in C, or in the edge buffer when
// the tile is narrower than the kernel.
func target(t *tile[float32], nr int) (c *float32, ldc int, add bool) {
	if t.cols < nr {
		return &t.edge[0], 4 * nr, false
	}
	return &t.c[0], 4 * t.ldc, t.add
}

// fromEdge takes the columns of C out of the edge buffer.
func fromEdge(t *tile[float32], nr int) {
	for i := range t.rows {
		row, sum := t.c[i*t.ldc:], t.edge[i*nr:]
		row = row[:t.cols]
		for j := range row {
			if t.add {
				row[j] += sum[j]
			} else {
				row[j] = sum[j]
			}
		}
	}
}

func pack16(dst []float32, b view[float32], depth, cols int) { packAVX2(dst, b, depth, cols, 16) }
func pack32(dst []float32, b view[float32], depth, cols int) { packAVX2(dst, b, depth, cols, 32) }

// packAVX2 is packPortable for panels of 16 or 32.
func packAVX2(dst []float32, b view[float32], depth, cols, nr int) {
	dst = dst[:depth*nr]
	switch {
	case b.cs == 1 && cols == nr:
		_ = b.data[(depth-1)*b.rs+nr-1]
		if nr == 16 {
			copyRows16(&dst[0], &b.data[0], 4*b.rs, depth)
		} else {
			copyRows32(&dst[0], &b.data[0], 4*b.rs, depth)
		}
	case b.rs == 1 && cols >= 8 && depth >= 8:
		packTransposed(dst, b, depth, cols, nr)
	default:
		packColumns(dst, b, depth, 0, cols, nr)
	}
}

// packTransposed packs whole eights of columns and of k by transposing, the
// rest one by one.
func packTransposed(dst []float32, b view[float32], depth, cols, nr int) {
	deep := depth &^ 7
	_ = b.data[(cols-1)*b.cs+depth-1]
	j := 0
	for ; j+8 <= cols; j += 8 {
		transpose8(&dst[j], 4*nr, &b.data[j*b.cs], 4*b.cs, depth/8)
		for k := deep; k < depth; k++ {
			for e := j; e < j+8; e++ {
				dst[k*nr+e] = b.data[k+e*b.cs]
			}
		}
	}
	if j < nr {
		packColumns(dst, b, depth, j, cols, nr)
	}
}

// packColumns packs columns from j on one by one.
func packColumns(dst []float32, b view[float32], depth, j, cols, nr int) {
	for k := range depth {
		row := dst[k*nr : k*nr+nr]
		for e := j; e < cols; e++ {
			row[e] = b.data[k*b.rs+e*b.cs]
		}
		clear(row[cols:])
	}
}
