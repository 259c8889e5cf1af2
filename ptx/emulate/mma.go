package emulate

import (
	"math"

	"heddle/num"
)

// mmaBF16 is one warp's 16×8 += 16×16 · 16×8, in float32, k ascending.
func mmaBF16(w *warp, c *code) {
	var a [16][16]float32
	var b [8][16]float32
	for l := range 32 {
		row, col := l/4, 2*(l%4)
		for h := range 2 {
			for g := range 2 {
				a[row+8*g][col+8*h], a[row+8*g][col+8*h+1] = halves(w.r[c.s[2*h+g]][l])
			}
			b[row][col+8*h], b[row][col+8*h+1] = halves(w.r[c.s[4+h]][l])
		}
	}
	var d [4]lanes32
	for l := range 32 {
		for i := range 4 {
			x, y := &a[l/4+8*(i/2)], &b[2*(l%4)+i%2]
			sum := f32(w.r[c.s[6+i]][l])
			for k := range x {
				sum += x[k] * y[k]
			}
			d[i][l] = math.Float32bits(canonical(sum))
		}
	}
	for i := range d {
		w.put(c.d+int32(i), &d[i])
	}
}

// halves widens two bf16, element 0 from the low half.
func halves(x uint32) (low, high float32) {
	return num.FromBF16(uint16(x)), num.FromBF16(uint16(x >> 16))
}

// fmaBF16 is one fused multiply-add of each half: the product and sum are exact in float64 up to one rounding to odd, then rounded once.
func fmaBF16(x, y, z uint32) uint32 {
	one := func(s uint) uint32 {
		v := oddF32(float64(num.FromBF16(uint16(x>>s)))*float64(num.FromBF16(uint16(y>>s))), float64(num.FromBF16(uint16(z>>s))))
		return uint32(num.ToBF16(v)) << s
	}
	return one(0) | one(16)
}

// oddF32 adds p and q and rounds to odd at float32's precision, so that a further rounding to fewer bits is as if there had been one.
func oddF32(p, q float64) float32 {
	s := p + q
	f := float32(s)
	exact := float64(f) == s && (s-q) == p && (s-p) == q
	if exact || f != f || math.IsInf(float64(f), 0) {
		return f
	}
	b := math.Float32bits(f)
	if f == 0 { // underflow: the odd neighbour of zero on the sum's side
		return math.Float32frombits(math.Float32bits(float32(math.Copysign(0, s))) | 1)
	}
	if b&1 == 0 { // go to the odd neighbour on the side of the exact sum
		above := float64(f) < s || float64(f) == s && (p-(s-q))+(q-(s-(s-q))) > 0
		if above == (f > 0) {
			b++
		} else {
			b--
		}
	}
	return math.Float32frombits(b)
}
