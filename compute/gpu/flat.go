package gpu

import (
	"fmt"
	"math"

	"heddle/compute"
	"heddle/kernel/elem"
	"heddle/num"
	"heddle/ptx"
	"heddle/tensor"
)

// Zero clears t.
func (l *Leaf) Zero(t tensor.Tensor) {
	if l.m != nil && t.Elems() > 0 {
		must("zero", l.m.Zero(t.Mem.At, t.Bytes()))
	}
}

// Copy copies dense data.
func (l *Leaf) Copy(dst, src tensor.Tensor) {
	if l.m != nil && src.Elems() > 0 {
		must("copy", l.m.Copy(dst.Mem.At, src.Mem.At, src.Bytes()))
	}
}

// Cast is an elementwise kernel, or Copy between equal types.
func (l *Leaf) Cast(dst, src tensor.Tensor) {
	if dst.Type == src.Type {
		l.Copy(dst, src)
		return
	}
	l.each("cast", elem.Cast(dtype(src.Type), dtype(dst.Type)), list(dst), list(src), nil)
}

// CopyBox is elem.Box. Integers travel as the bits of float32.
func (l *Leaf) CopyBox(dst, src tensor.Tensor, b compute.Box) {
	s, ok := elem.ShapeOf(dst.Dims, src.Dims, b.Dims, b.DstLo, b.SrcLo)
	if !ok {
		panic(fault("copy box", fmt.Errorf("copy box: %v between %v and %v has more than five dims that cannot be joined", b.Dims, src.Dims, dst.Dims)))
	}
	for _, d := range b.Dims {
		if d == 0 {
			return
		}
	}
	c := elem.BoxConfig{Type: dtype(dst.Type), Wide: s.Wide() && wide(dst, src), Add: b.Add}
	if c.Type == num.I32 && !b.Add {
		c.Type = num.F32
	}
	k := get(l.kernels, l.kernels.box, c, func() (*elem.Box, error) { return elem.NewBox(c) })
	l.run("copy box", k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(l.at(dst), l.at(src), s) })
}

// ClipScale is min(1, limit/(√sq + 1e-6)).
func (l *Leaf) ClipScale(out, sq tensor.Tensor, limit float64) {
	if limit <= 0 {
		limit = math.Inf(1)
	}
	l.each("clip scale", elem.Clip(), list(out), list(sq), nil, float32(limit))
}

// AdamW is elem.AdamW.
func (l *Leaf) AdamW(w, low, g, m, v, scale tensor.Tensor, a compute.AdamW) {
	spec, out := elem.AdamW(0), list(w, m, v)
	if compute.Wanted(low) {
		spec, out = elem.AdamW(dtype(low.Type)), list(w, m, v, low)
	}
	t := float64(a.Step)
	l.each("adamw", spec, out, list(w, m, v, g), list(scale), float32(a.Beta1), float32(1-a.Beta1), float32(a.Beta2), float32(1-a.Beta2), float32(a.Eps),
		float32(a.LR/(1-math.Pow(a.Beta1, t))), float32(1/(1-math.Pow(a.Beta2, t))), float32(1-a.LR*a.Decay))
}
