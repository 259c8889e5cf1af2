package emulate

import (
	"math"
	"math/bits"
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

//go:generate go run ../internal/lanes

func mov(w *warp, c *code)   { w.put(c.d, &w.r[c.a]) }
func mov64(w *warp, c *code) { w.put64(c.d, &w.d[c.a]) }
func movP(w *warp, c *code)  { w.putP(c.d, w.p[c.a]) }

// choose is x where p is 1, y where it is 0.
func choose(p, x, y uint32) uint32 { return y ^ (x^y)&-p }

// less is 1 where x < y, else 0, without a branch.
func less(x, y uint32) uint32 {
	_, borrow := bits.Sub32(x, y, 0)
	return borrow
}

// same is 1 where x = y, else 0, without a branch.
func same(x, y uint32) uint32 { return uint32((uint64(x^y) - 1) >> 63) }

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

func pred2(f func(x, y uint32) uint32) op {
	return func(w *warp, c *code) { w.putP(c.d, f(w.p[c.a], w.p[c.b])) }
}

func notP(w *warp, c *code) { w.putP(c.d, ^w.p[c.a]) }

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
