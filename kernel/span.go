package kernel

import (
	"heddle/num"
	"heddle/ptx"
)

// Wide is the number of neighbouring elements that a thread of a memory-bound kernel takes at once: 16 bytes of a 16-bit type, twice 16 of float32.
const Wide = 8

// LoadSpan reads n neighbouring elements, 1 or Wide, as float32. Wide ones start at a multiple of 16 bytes.
func LoadSpan(k *ptx.Builder, t num.DType, at ptx.GAddr, n int) []ptx.F32 {
	switch {
	case n == 1 && t == num.F32:
		return []ptx.F32{at.LoadF32()}
	case n == 1:
		return []ptx.F32{at.LoadU16().Shl(16).FloatBits()}
	case t == num.F32:
		a, b := at.LoadF32x4(), at.Plus(16).LoadF32x4()
		return append(a[:], b[:]...)
	}
	x := make([]ptx.F32, 0, n)
	for _, w := range at.LoadU32x4() {
		x = append(x, w.BF16x2().Low(), w.BF16x2().High())
	}
	return x
}

// StoreSpan writes 1 or Wide neighbouring elements, rounded to t.
func StoreSpan(k *ptx.Builder, t num.DType, at ptx.GAddr, x []ptx.F32) {
	switch {
	case len(x) == 1 && t == num.F32:
		at.StoreF32(x[0])
	case len(x) == 1:
		at.StoreU16(k.F32(0).PackBF16(x[0]).Bits())
	case t == num.F32:
		at.StoreF32x4([4]ptx.F32(x[:4]))
		at.Plus(16).StoreF32x4([4]ptx.F32(x[4:]))
	default:
		var w [4]ptx.U32
		for i := range w {
			w[i] = x[2*i+1].PackBF16(x[2*i]).Bits()
		}
		at.StoreU32x4(w)
	}
}

// At is element i of type t from base on.
func At(k *ptx.Builder, t num.DType, base ptx.GAddr, i ptx.U32) ptx.GAddr {
	return base.At(i.MulWide(k.U32(t.Size())))
}

// Exp is eˣ: 2 to the power of x·log₂e. Its relative error is 2⁻²² + |x|·2⁻²⁴.
func Exp(k *ptx.Builder, x ptx.F32) ptx.F32 { return x.Mul(k.F32(1.4426950408889634)).Exp2Approx() }
