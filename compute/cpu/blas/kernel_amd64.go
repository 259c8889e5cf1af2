//go:build amd64 && !purego

package blas

// kernelFor is the kernel of a set for an element type.
func kernelFor[T Float](set Set) kernel[T] {
	k := portable[T]()
	if p, ok := any(&k).(*kernel[float32]); ok {
		switch set {
		case AVX2:
			*p = kernel[float32]{mr: 6, nr: 16, mc: 240, tile: tileAVX2, pack: packAVX2}
		case AVX512:
			*p = kernel[float32]{mr: 14, nr: 32, mc: 336, tile: tileAVX512, pack: packAVX2}
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
