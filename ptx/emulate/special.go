package emulate

import "heddle/ptx"

// Parameters and special registers.

func splat(f func(w *warp, c *code) uint32) op {
	return func(w *warp, c *code) {
		x := f(w, c)
		var t lanes32
		for i := range t {
			t[i] = x
		}
		w.put(c.d, &t)
	}
}

func splat64(f func(w *warp, c *code) uint64) op {
	return func(w *warp, c *code) {
		x := f(w, c)
		var t lanes64
		for i := range t {
			t[i] = x
		}
		w.put64(c.d, &t)
	}
}

func param(w *warp, c *code) ptx.Arg { return w.m.args.At(int(c.in.Src[0].Imm())) }

func perLane(f func(w *warp, lane int) uint32) op {
	return func(w *warp, c *code) {
		var t lanes32
		for i := range t {
			t[i] = f(w, i)
		}
		w.put(c.d, &t)
	}
}
