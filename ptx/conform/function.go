package conform

import "heddle/ptx"

// anInput is a raw input of the thread. Approximations and conversions are applied to these alone: nothing is chained, so that errors do not add up, and a
// difference names its instruction.
func (g *generator) anInput() ptx.F32 { return g.f[g.r.Intn(inputs)] }

// approx are the approximations that the ISA bounds in ulps.
func (g *generator) approx() {
	x := g.anInput()
	ops := []func() ptx.F32{
		func() ptx.F32 { return x.RcpApprox() }, func() ptx.F32 { return x.Abs().RsqrtApprox() }, func() ptx.F32 { return x.Exp2Approx() },
		func() ptx.F32 { return x.Neg() },
	}
	g.f = append(g.f, ops[g.r.Intn(len(ops))]())
}

// log is log₂ of all sorts of numbers; what is near 1 has the small results.
func (g *generator) log() {
	x := g.anInput()
	ops := []func() ptx.F32{
		func() ptx.F32 { return x.Abs().Log2Approx() }, func() ptx.F32 { return x.Log2Approx() },
		func() ptx.F32 {
			return x.Bits().And(g.k.U32(0x7fffff)).Or(g.k.U32(0x3f800000)).FloatBits().Log2Approx()
		}, // 1 … 2
		func() ptx.F32 { return x.Bits().And(g.k.U32(0x7fff)).Or(g.k.U32(0x3f7f8000)).FloatBits().Log2Approx() }, // just below 1
	}
	g.f = append(g.f, ops[g.r.Intn(len(ops))]())
}

func (g *generator) tanh() {
	x := g.anInput()
	ops := []func() ptx.F32{
		func() ptx.F32 { return x.TanhApprox() }, func() ptx.F32 { return x.Neg().TanhApprox() },
		func() ptx.F32 {
			return x.Bits().And(g.k.U32(0xbfffffff)).Or(g.k.U32(0x3c000000)).FloatBits().TanhApprox()
		}, // 2⁻⁷ … 2
	}
	g.f = append(g.f, ops[g.r.Intn(len(ops))]())
}

// convert narrows, rounds and widens raw inputs: NaNs, −0, subnormals, what saturates and what ties.
func (g *generator) convert() {
	x, y, n := g.anInput(), g.anInput(), g.u[g.r.Intn(inputs)]
	ops := []func() ptx.U32{
		func() ptx.U32 { return x.PackBF16(y).Bits() }, func() ptx.U32 { return x.PackF16(y).Bits() }, func() ptx.U32 { return x.PackE4M3(y) }, func() ptx.U32 { return x.PackE5M2(y) },
		func() ptx.U32 { return x.TF32().Bits() }, func() ptx.U32 { return x.TruncU32() }, func() ptx.U32 { return x.TruncS32().Unsigned() }, func() ptx.U32 { return x.RoundS32().Unsigned() },
		func() ptx.U32 { return n.F32().Bits() }, func() ptx.U32 { return n.Signed().F32().Bits() },
		func() ptx.U32 { return n.BF16x2().Low().PackBF16(n.BF16x2().High()).Bits() },
		func() ptx.U32 { // around the largest fp8, where rounding meets saturation
			a, b := x.Bits().And(g.k.U32(0x807fffff)).Or(g.k.U32(0x43000000)).FloatBits(), y.Bits().And(g.k.U32(0x80ffffff)).Or(g.k.U32(0x47000000)).FloatBits()
			return a.PackE4M3(a.Neg()).Shl(16).Or(b.PackE5M2(b.Neg()))
		},
		func() ptx.U32 { // where fp8 is subnormal
			a, b := x.Bits().And(g.k.U32(0x81ffffff)).Or(g.k.U32(0x3a000000)).FloatBits(), y.Bits().And(g.k.U32(0x81ffffff)).Or(g.k.U32(0x36000000)).FloatBits()
			return a.PackE4M3(x).Shl(16).Or(b.PackE5M2(y))
		},
		func() ptx.U32 { // where f16 is subnormal
			a := x.Bits().And(g.k.U32(0x87ffffff)).Or(g.k.U32(0x30000000)).FloatBits()
			return a.PackF16(y).Bits()
		},
	}
	g.u = append(g.u, ops[g.r.Intn(len(ops))]())
}

// global reads and writes the thread's own words of global memory in every width, and does atomics on them and, where the order does not matter, on the CTA's.
func (g *generator) global() {
	k, x, y := g.k, g.anyU(), g.anyU()
	turn := g.ctas.At(k.Tid().Plus(g.r.Intn(threads)).And(k.U32(threads - 1)).MulWide(k.U32(4 * memory)))
	some := g.ctas.At(x.And(k.U32(threads - 1)).MulWide(k.U32(4 * memory)))
	word := g.own.Plus(4 * g.r.Intn(memory))
	switch g.r.Intn(10) {
	case 0:
		g.own.StoreU32x4([4]ptx.U32{x, y, g.anyU(), g.anyU()})
		k.SyncCTA()
		v := turn.LoadU32x4()
		g.u = append(g.u, v[g.r.Intn(4)])
	case 1:
		word.StoreU32(x)
		k.SyncCTA()
		v := turn.LoadF32x4()
		g.u = append(g.u, v[g.r.Intn(4)].Bits())
	case 2:
		g.own.StoreF32x4([4]ptx.F32{x.FloatBits(), y.FloatBits(), x.FloatBits(), g.anyU().FloatBits()})
		k.SyncCTA()
		g.u = append(g.u, turn.Plus(4*g.r.Intn(memory)).LoadU32())
	case 3: // sums do not depend on the order
		some.RedAddU32(y)
		k.SyncCTA()
		g.u = append(g.u, turn.LoadU32())
	case 4: // nor do maxima
		some.AtomicMaxU32(y)
		k.SyncCTA()
		g.u = append(g.u, turn.LoadU32())
	case 5:
		g.u = append(g.u, word.AtomicAddU32(x))
	case 6:
		word.StoreU32(x)
		g.u = append(g.u, word.AtomicIncU32(y), word.LoadU32())
	case 7:
		g.u = append(g.u, word.AtomicExchangeU32(x))
	case 9:
		half := g.own.Plus(2 * g.r.Intn(2*memory))
		half.StoreU16(x)
		k.SyncCTA()
		g.u = append(g.u, half.LoadU16(), turn.Plus(2*g.r.Intn(2*memory)).LoadU16())
	default:
		word.StoreU32(x)
		g.u = append(g.u, word.AtomicCompareU32(g.anyP().SelectU32(x, y), y), word.LoadU32())
	}
	k.SyncCTA()
}
