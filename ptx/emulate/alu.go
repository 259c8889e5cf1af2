package emulate

import (
	"math"
	"math/bits"

	"heddle/num"
)

// put writes a result in the running lanes.
func (w *warp) put(d int32, t *lanes32) {
	if w.mask == allLanes {
		w.r[d] = *t
		return
	}
	r := &w.r[d]
	for i := range r {
		if w.mask>>i&1 != 0 {
			r[i] = t[i]
		}
	}
}

func (w *warp) put64(d int32, t *lanes64) {
	if w.mask == allLanes {
		w.d[d] = *t
		return
	}
	r := &w.d[d]
	for i := range r {
		if w.mask>>i&1 != 0 {
			r[i] = t[i]
		}
	}
}

func (w *warp) putP(d int32, t uint32) { w.p[d] = w.p[d]&^w.mask | t&w.mask }

type op = func(*warp, *code)

// The frequent ones are written out: a call a lane costs more than the operation.

func mov(w *warp, c *code)   { w.put(c.d, &w.r[c.a]) }
func mov64(w *warp, c *code) { w.put64(c.d, &w.d[c.a]) }
func movP(w *warp, c *code)  { w.putP(c.d, w.p[c.a]) }

func addU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	if w.mask == allLanes {
		r := &w.r[c.d]
		for i := range r {
			r[i] = a[i] + b[i]
		}
		return
	}
	var t lanes32
	for i := range t {
		t[i] = a[i] + b[i]
	}
	w.put(c.d, &t)
}

func subU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	if w.mask == allLanes {
		r := &w.r[c.d]
		for i := range r {
			r[i] = a[i] - b[i]
		}
		return
	}
	var t lanes32
	for i := range t {
		t[i] = a[i] - b[i]
	}
	w.put(c.d, &t)
}

func mulU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	if w.mask == allLanes {
		r := &w.r[c.d]
		for i := range r {
			r[i] = a[i] * b[i]
		}
		return
	}
	var t lanes32
	for i := range t {
		t[i] = a[i] * b[i]
	}
	w.put(c.d, &t)
}

func madU32(w *warp, c *code) {
	a, b, d := &w.r[c.a], &w.r[c.b], &w.r[c.c]
	if w.mask == allLanes {
		r := &w.r[c.d]
		for i := range r {
			r[i] = a[i]*b[i] + d[i]
		}
		return
	}
	var t lanes32
	for i := range t {
		t[i] = a[i]*b[i] + d[i]
	}
	w.put(c.d, &t)
}

func andU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	if w.mask == allLanes {
		r := &w.r[c.d]
		for i := range r {
			r[i] = a[i] & b[i]
		}
		return
	}
	var t lanes32
	for i := range t {
		t[i] = a[i] & b[i]
	}
	w.put(c.d, &t)
}

func xorU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	if w.mask == allLanes {
		r := &w.r[c.d]
		for i := range r {
			r[i] = a[i] ^ b[i]
		}
		return
	}
	var t lanes32
	for i := range t {
		t[i] = a[i] ^ b[i]
	}
	w.put(c.d, &t)
}

func shlU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	var t lanes32
	for i := range t {
		t[i] = a[i] << b[i]
	}
	w.put(c.d, &t)
}

func shrU32(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	var t lanes32
	for i := range t {
		t[i] = a[i] >> b[i]
	}
	w.put(c.d, &t)
}

func fmaF32(w *warp, c *code) {
	a, b, d := &w.r[c.a], &w.r[c.b], &w.r[c.c]
	var t lanes32
	for i := range t {
		t[i] = math.Float32bits(fma32(f32(a[i]), f32(b[i]), f32(d[i])))
	}
	w.put(c.d, &t)
}

// fma32 rounds x·y + z once. The product is exact in float64; the float64 sum is rounded to odd, so that the second rounding cannot go wrong
// (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
func fma32(x, y, z float32) float32 {
	p, q := float64(x)*float64(y), float64(z)
	s := p + q
	b := math.Float64bits(s)
	if e := b >> 52 & 0x7ff; e > 1023-126 && e < 1023+127 && b&(1<<29-1) != 1<<28 { // a normal float32, and s no tie: rounding it again cannot go wrong
		return float32(s)
	}
	if b&1 == 0 && !math.IsInf(s, 0) { // find the error of the sum (Knuth's TwoSum); where there is one, make the last bit odd
		pp := s - q
		e := (p - pp) + (q - (s - pp))
		if e != 0 && e == e {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return canonical(float32(s))
}

func f32(b uint32) float32 { return math.Float32frombits(b) }

// canonical gives the one NaN that Hopper's float32 arithmetic produces.
func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(0x7fffffff)
	}
	return x
}

func apply1(f func(x uint32) uint32) op {
	return func(w *warp, c *code) {
		a := &w.r[c.a]
		var t lanes32
		for i := range t {
			t[i] = f(a[i])
		}
		w.put(c.d, &t)
	}
}

func apply2(f func(x, y uint32) uint32) op {
	return func(w *warp, c *code) {
		a, b := &w.r[c.a], &w.r[c.b]
		var t lanes32
		for i := range t {
			t[i] = f(a[i], b[i])
		}
		w.put(c.d, &t)
	}
}

func float1(f func(x float32) float32) op {
	return apply1(func(x uint32) uint32 { return math.Float32bits(canonical(f(f32(x)))) })
}

func float2(f func(x, y float32) float32) op {
	return apply2(func(x, y uint32) uint32 { return math.Float32bits(canonical(f(f32(x), f32(y)))) })
}

func compare(f func(x, y uint32) bool) op {
	return func(w *warp, c *code) {
		a, b := &w.r[c.a], &w.r[c.b]
		var t uint32
		for i := range a {
			if f(a[i], b[i]) {
				t |= 1 << i
			}
		}
		w.putP(c.d, t)
	}
}

func compareF(f func(x, y float32) bool) op {
	return compare(func(x, y uint32) bool { return f(f32(x), f32(y)) })
}

func pred2(f func(x, y uint32) uint32) op {
	return func(w *warp, c *code) { w.putP(c.d, f(w.p[c.a], w.p[c.b])) }
}

func notP(w *warp, c *code) { w.putP(c.d, ^w.p[c.a]) }

func sel(w *warp, c *code) {
	p, a, b := w.p[c.a], &w.r[c.b], &w.r[c.c]
	var t lanes32
	for i := range t {
		if t[i] = b[i]; p>>i&1 != 0 {
			t[i] = a[i]
		}
	}
	w.put(c.d, &t)
}

func wide(f func(x, y uint64) uint64) op {
	return func(w *warp, c *code) {
		a, b := &w.d[c.a], &w.d[c.b]
		var t lanes64
		for i := range t {
			t[i] = f(a[i], b[i])
		}
		w.put64(c.d, &t)
	}
}

func shift64(f func(x uint64, n uint32) uint64) op {
	return func(w *warp, c *code) {
		a, b := &w.d[c.a], &w.r[c.b]
		var t lanes64
		for i := range t {
			t[i] = f(a[i], b[i])
		}
		w.put64(c.d, &t)
	}
}

func mulWide(w *warp, c *code) {
	a, b := &w.r[c.a], &w.r[c.b]
	var t lanes64
	for i := range t {
		t[i] = uint64(a[i]) * uint64(b[i])
	}
	w.put64(c.d, &t)
}

func widen(w *warp, c *code) {
	a := &w.r[c.a]
	var t lanes64
	for i := range t {
		t[i] = uint64(a[i])
	}
	w.put64(c.d, &t)
}

func low(w *warp, c *code) {
	a := &w.d[c.a]
	var t lanes32
	for i := range t {
		t[i] = uint32(a[i])
	}
	w.put(c.d, &t)
}

func mulHi(x, y uint32) uint32 {
	h, _ := bits.Mul32(x, y)
	return h
}

func div(x, y uint32) uint32 {
	if y == 0 {
		return math.MaxUint32
	}
	return x / y
}

func rem(x, y uint32) uint32 {
	if y == 0 {
		return x
	}
	return x % y
}

func signed2(f func(x, y int32) int32) op {
	return apply2(func(x, y uint32) uint32 { return uint32(f(int32(x), int32(y))) })
}

func packBF16(hi, lo uint32) uint32 {
	return uint32(num.ToBF16(f32(hi)))<<16 | uint32(num.ToBF16(f32(lo)))
}

func packF16(hi, lo uint32) uint32 {
	return uint32(num.ToF16(f32(hi)))<<16 | uint32(num.ToF16(f32(lo)))
}

// flush replaces a subnormal by zero of its sign, as .ftz does on the way in and out.
func flush(x float32) float32 {
	if x > -0x1p-126 && x < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// approx evaluates an approximate function in float64, subnormals as zero. The card may differ by the ulps its manual states.
func approx(f func(x float64) float64) op {
	return float1(func(x float32) float32 { return flush(float32(f(float64(flush(x))))) })
}

func minF(x, y float32) float32 {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return min(x, y)
}

func maxF(x, y float32) float32 {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return max(x, y)
}

func truncU32(x uint32) uint32 {
	switch f := f32(x); {
	case f != f || f <= 0:
		return 0
	case f >= 1<<32:
		return math.MaxUint32
	default:
		return uint32(f)
	}
}

func tf32(x uint32) uint32 { return math.Float32bits(num.ToTF32Away(f32(x))) }

// descStep advances a descriptor by a 32-bit constant.
func descStep(w *warp, c *code) {
	a, b := &w.d[c.a], &w.r[c.b]
	var t lanes64
	for i := range t {
		t[i] = a[i] + uint64(b[i])
	}
	w.put64(c.d, &t)
}

func prmt(x, y, selector uint32) uint32 {
	both, r := uint64(y)<<32|uint64(x), uint32(0)
	for i := range 4 {
		n := selector >> (4 * i) & 15
		b := uint32(both>>(8*(n&7))) & 0xff
		if n&8 != 0 { // the byte's sign, eight times
			b = uint32(int32(b<<24)>>31) & 0xff
		}
		r |= b << (8 * i)
	}
	return r
}

// bfe takes the field of length bits from bit at on; both are used modulo 256, and what lies beyond bit 31 is zero.
func bfe(x, at, length uint32) uint32 {
	at, length = at&255, length&255
	if at >= 32 {
		return 0
	}
	x >>= at
	if length < 32 {
		x &= 1<<length - 1
	}
	return x
}

func apply3(f func(x, y, z uint32) uint32) op {
	return func(w *warp, c *code) {
		a, b, d := &w.r[c.a], &w.r[c.b], &w.r[c.c]
		var t lanes32
		for i := range t {
			t[i] = f(a[i], b[i], d[i])
		}
		w.put(c.d, &t)
	}
}

func madWide(w *warp, c *code) {
	a, b, d := &w.r[c.a], &w.r[c.b], &w.d[c.c]
	var t lanes64
	for i := range t {
		t[i] = uint64(a[i])*uint64(b[i]) + d[i]
	}
	w.put64(c.d, &t)
}

func compare64(f func(x, y uint64) bool) op {
	return func(w *warp, c *code) {
		a, b := &w.d[c.a], &w.d[c.b]
		var t uint32
		for i := range a {
			if f(a[i], b[i]) {
				t |= 1 << i
			}
		}
		w.putP(c.d, t)
	}
}

// toS32 converts with a rounding, saturating; NaN gives 0.
func toS32(round func(float64) float64) op {
	return apply1(func(x uint32) uint32 {
		f := float64(f32(x))
		if f != f {
			return 0
		}
		return uint32(int32(min(max(round(f), math.MinInt32), math.MaxInt32)))
	})
}

func packE4M3(hi, lo uint32) uint32 {
	return uint32(num.SatE4M3(f32(hi)))<<8 | uint32(num.SatE4M3(f32(lo)))
}
func packE5M2(hi, lo uint32) uint32 {
	return uint32(num.SatE5M2(f32(hi)))<<8 | uint32(num.SatE5M2(f32(lo)))
}
