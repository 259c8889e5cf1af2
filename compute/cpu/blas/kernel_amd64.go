//go:build amd64 && !purego

package blas

// kernelFor is the kernel of a set for an element type.
func kernelFor[T Float](set Set) kernel[T] {
	k := portable[T]()
	if p, ok := any(&k).(*kernel[float32]); ok {
		switch set {
		case AVX2:
			*p = kernel[float32]{mr: 6, nr: 16, mc: 240, strip: stripAVX2, pack: packAVX2, widen: widenAVX2}
		case AVX512:
			*p = kernel[float32]{mr: 14, nr: 32, mc: 336, strip: stripAVX512, pack: packAVX2, widen: widenAVX2}
		}
	}
	return k
}

// stripAVX2 is stripPortable with the multiply and add fused, for 6 × 16.
func stripAVX2(t *strip[float32]) {
	if t.cols < 16 {
		eachEdge(t, 16, tilesAVX2)
		return
	}
	tilesAVX2(t, t.tiles, &t.a.data[0], &t.c[0], 4*t.ldc, t.add)
}

func tilesAVX2(t *strip[float32], tiles int, a, c *float32, ldc int, add bool) {
	astep, ars, acs, b, brow := 4*t.astep, 4*t.a.rs, 4*t.a.cs, &t.b[0], 4*t.brow
	switch t.rows {
	case 1:
		tileAVX2x1(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 2:
		tileAVX2x2(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 3:
		tileAVX2x3(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 4:
		tileAVX2x4(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 5:
		tileAVX2x5(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 6:
		tileAVX2x6(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	}
}

// stripAVX512 is stripPortable with the multiply and add fused, for 14 × 32.
func stripAVX512(t *strip[float32]) {
	if t.cols < 32 {
		eachEdge(t, 32, tilesAVX512)
		return
	}
	tilesAVX512(t, t.tiles, &t.a.data[0], &t.c[0], 4*t.ldc, t.add)
}

func tilesAVX512(t *strip[float32], tiles int, a, c *float32, ldc int, add bool) {
	astep, ars, acs, b, brow := 4*t.astep, 4*t.a.rs, 4*t.a.cs, &t.b[0], 4*t.brow
	switch t.rows {
	case 1:
		tileAVX512x1(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 2:
		tileAVX512x2(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 3:
		tileAVX512x3(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 4:
		tileAVX512x4(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 5:
		tileAVX512x5(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 6:
		tileAVX512x6(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 7:
		tileAVX512x7(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 8:
		tileAVX512x8(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 9:
		tileAVX512x9(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 10:
		tileAVX512x10(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 11:
		tileAVX512x11(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 12:
		tileAVX512x12(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 13:
		tileAVX512x13(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	case 14:
		tileAVX512x14(tiles, t.depth, a, astep, ars, acs, b, brow, c, ldc, add)
	}
}

// eachEdge runs a strip narrower than the kernel tile by tile through the edge
// buffer.
func eachEdge(t *strip[float32], nr int, run func(t *strip[float32], tiles int, a, c *float32, ldc int, add bool)) {
	for i := range t.tiles {
		run(t, 1, &t.a.data[i*t.astep], &t.edge[0], 4*nr, false)
		fromEdge(t, t.c[i*t.rows*t.ldc:], nr)
	}
}

// fromEdge takes the columns of a tile of C out of the edge buffer.
func fromEdge(t *strip[float32], c []float32, nr int) {
	for i := range t.rows {
		row, sum := c[i*t.ldc:], t.edge[i*nr:]
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

// widenAVX2 is widenPortable.
func widenAVX2(dst []float32, src []uint16) {
	n := len(dst) / 16
	if n > 0 {
		_ = src[16*n-1]
		widen16(&dst[0], &src[0], n)
	}
	widenPortable(dst[16*n:], src[16*n:])
}
