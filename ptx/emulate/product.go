package emulate

// product64 adds A·Bᵀ to acc: A is 64 × k, B is n × k, both row-major. Blocks of 4 × 2 keep eight sums in registers.
func product64(acc, a, b []float32, n, k int) {
	if k == 16 {
		product16(acc, a, b, n)
		return
	}
	for m := 0; m < 64; m += 4 {
		a0, a1, a2, a3 := a[m*k:][:k], a[(m+1)*k:][:k], a[(m+2)*k:][:k], a[(m+3)*k:][:k]
		for j := 0; j < n; j += 2 {
			b0, b1 := b[j*k:][:k], b[(j+1)*k:][:k]
			c0, c1, c2, c3 := acc[m*n+j:][:2], acc[(m+1)*n+j:][:2], acc[(m+2)*n+j:][:2], acc[(m+3)*n+j:][:2]
			s00, s01, s10, s11, s20, s21, s30, s31 := c0[0], c0[1], c1[0], c1[1], c2[0], c2[1], c3[0], c3[1]
			for i := range k {
				x, y := b0[i], b1[i]
				s00 += a0[i] * x
				s01 += a0[i] * y
				s10 += a1[i] * x
				s11 += a1[i] * y
				s20 += a2[i] * x
				s21 += a2[i] * y
				s30 += a3[i] * x
				s31 += a3[i] * y
			}
			c0[0], c0[1], c1[0], c1[1], c2[0], c2[1], c3[0], c3[1] = s00, s01, s10, s11, s20, s21, s30, s31
		}
	}
}
