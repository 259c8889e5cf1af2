package emulate

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"math/rand"
	"testing"

	"heddle/num"
	"heddle/ptx"
)

// Every opcode has a function.
func TestEveryOpcodeIsEmulated(t *testing.T) {
	for op := ptx.OpMov; op < ptx.NumOps; op++ {
		if table[op] == nil {
			t.Errorf("%v has no function", op)
		}
	}
}

// Words that tend to show mistakes: as integers and as floats (zeros, subnormals, NaNs, infinities, ties of narrower formats).
var edges = []uint32{
	0, 1, 2, 3, 31, 32, 33, 0x7f, 0x80, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
	0x3f800000, 0xbf800000, 0x3f800001, 0x3f808000, 0x3f818000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00001, 0x00800000, 0x4f800000, 0x4f000000, 0xc0490fdb, 0x477fe000, 0x33800000,
}

// each runs f on every pair of edges, a lane a pair, and gives the results.
func each(t *testing.T, f func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32) []uint32 {
	t.Helper()
	n := len(edges) * len(edges)
	k := ptx.New("each", 128, 1)
	in, out := k.ParamPtr("in"), k.ParamPtr("out")
	i := k.CTAIndex().Times(128).Add(k.Tid())
	at := in.At(i.MulWide(k.U32(16)))
	v := at.LoadU32x4()
	out.At(i.MulWide(k.U32(4))).StoreU32(f(k, v[0], v[1], v[2]))
	e, err := k.Build()
	if err != nil {
		t.Fatal(err)
	}
	src, dst := &ptx.Buffer{Name: "in", Data: make([]byte, 16*n)}, &ptx.Buffer{Name: "out", Data: make([]byte, 4*n)}
	for i := range n {
		binary.LittleEndian.PutUint32(src.Data[16*i:], edges[i/len(edges)])
		binary.LittleEndian.PutUint32(src.Data[16*i+4:], edges[i%len(edges)])
		binary.LittleEndian.PutUint32(src.Data[16*i+8:], third(i))
	}
	a := e.NewArgs()
	in.Put(a, src, 0)
	out.Put(a, dst, 0)
	if err := (Emulator{}).Run(&ptx.Module{Entries: []*ptx.Entry{e}}, ptx.Launch{Entry: "each", Grid: ptx.Dim3{X: n / 128}}, a); err != nil {
		t.Fatal(err)
	}
	got := make([]uint32, n)
	for i := range got {
		got[i] = binary.LittleEndian.Uint32(dst.Data[4*i:])
	}
	return got
}

func third(i int) uint32 { return edges[(i*7+i/32)%len(edges)] }

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

type (
	u2 = func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32
	r2 = func(x, y, z uint32) uint32
)

func asFlag(p ptx.Pred, k *ptx.Builder) ptx.U32 { return p.SelectU32(k.U32(1), k.U32(0)) }

// Integer, logic, comparison and bit instructions against Go's own.
func TestIntegerInstructions(t *testing.T) {
	type c = struct {
		name string
		f    u2
		want r2
	}
	mk := func(name string, f u2, want r2) c { return c{name, f, want} }
	for _, c := range []c{
		mk("add", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Add(y) }, func(x, y, z uint32) uint32 { return x + y }),
		mk("sub", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Sub(y) }, func(x, y, z uint32) uint32 { return x - y }),
		mk("mul", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Mul(y) }, func(x, y, z uint32) uint32 { return x * y }),
		mk("mul.hi", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.MulHi(y) }, func(x, y, z uint32) uint32 { return uint32(uint64(x) * uint64(y) >> 32) }),
		mk("mul.wide", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.MulWide(y).ShrBy(k.U32(16)).Low() }, func(x, y, z uint32) uint32 { return uint32(uint64(x) * uint64(y) >> 16) }),
		mk("mad", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Mad(y, z) }, func(x, y, z uint32) uint32 { return x*y + z }),
		mk("div", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Div(y.Or(k.U32(1))) }, func(x, y, z uint32) uint32 { return x / (y | 1) }),
		mk("div by zero", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Div(k.U32(0).And(y)) }, func(x, y, z uint32) uint32 { return 0xffffffff }),
		mk("rem", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Rem(y.Or(k.U32(1))) }, func(x, y, z uint32) uint32 { return x % (y | 1) }),
		mk("min", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Min(y) }, func(x, y, z uint32) uint32 { return min(x, y) }),
		mk("max", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.Max(y) }, func(x, y, z uint32) uint32 { return max(x, y) }),
		mk("popc", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.OnesCount() }, func(x, y, z uint32) uint32 { return uint32(bits.OnesCount32(x)) }),
		mk("clz", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.LeadingZeros() }, func(x, y, z uint32) uint32 { return uint32(bits.LeadingZeros32(x)) }),
		mk("s32 add min max", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 {
			return x.Signed().Add(k.S32(-5)).Min(y.Signed()).Max(z.Signed()).Unsigned()
		}, func(x, y, z uint32) uint32 { return uint32(max(min(int32(x)-5, int32(y)), int32(z))) }),
		mk("s32 lt", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return asFlag(x.Signed().Lt(y.Signed()), k) }, func(x, y, z uint32) uint32 { return b2u(int32(x) < int32(y)) }),
		mk("and or xor not", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.And(y).Or(z).Xor(x).Not() }, func(x, y, z uint32) uint32 { return ^(x&y | z ^ x) }),
		mk("shl", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.ShlBy(y) }, func(x, y, z uint32) uint32 { return x << y }),
		mk("shr", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.ShrBy(y) }, func(x, y, z uint32) uint32 { return x >> y }),
		mk("u64", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 {
			a, b := x.U64().ShlBy(k.U32(32)).Or(y.U64()), z.U64()
			return a.Add(b).Sub(b.ShlBy(k.U32(7))).Mul(b.And(a).Or(k.U64(3))).ShrBy(k.U32(29)).Low()
		}, func(x, y, z uint32) uint32 {
			a, b := uint64(x)<<32|uint64(y), uint64(z)
			return uint32((a + b - b<<7) * (b&a | 3) >> 29)
		}),
		mk("comparisons", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 {
			s := k.U32(0)
			for i, p := range []ptx.Pred{x.Lt(y), x.Le(y), x.Gt(y), x.Ge(y), x.Eq(y), x.Ne(y)} {
				s = s.Or(asFlag(p, k).Shl(i))
			}
			return s
		}, func(x, y, z uint32) uint32 {
			return b2u(x < y) | b2u(x <= y)<<1 | b2u(x > y)<<2 | b2u(x >= y)<<3 | b2u(x == y)<<4 | b2u(x != y)<<5
		}),
		mk("predicates", func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 {
			p, q := x.Lt(y), y.Lt(z)
			return asFlag(p.And(q), k).Add(asFlag(p.Or(q), k).Shl(1)).Add(asFlag(p.Xor(q), k).Shl(2)).Add(asFlag(p.Not(), k).Shl(3)).Add(asFlag(k.Bool(true), k).Shl(4)).Add(asFlag(k.Bool(false), k).Shl(5))
		}, func(x, y, z uint32) uint32 {
			p, q := x < y, y < z
			return b2u(p && q) + b2u(p || q)<<1 + b2u(p != q)<<2 + b2u(!p)<<3 + 16
		}),
	} {
		for i, got := range each(t, c.f) {
			x, y, z := edges[i/len(edges)], edges[i%len(edges)], third(i)
			if want := c.want(x, y, z); got != want {
				t.Errorf("%s of %#x, %#x, %#x is %#x, want %#x", c.name, x, y, z, got, want)
				break
			}
		}
	}
}

// Float instructions against big.Float: one rounding of the exact result.
func TestFloatInstructionsRoundOnce(t *testing.T) {
	exact := func(f func(z, x, y, w *big.Float) *big.Float) r2 {
		return func(x, y, w uint32) uint32 {
			a, b, c := f32(x), f32(y), f32(w)
			if special(a) || special(b) || special(c) {
				return skip
			}
			z := f(new(big.Float).SetPrec(600), big.NewFloat(float64(a)), big.NewFloat(float64(b)), big.NewFloat(float64(c)))
			if z.Sign() == 0 {
				return skip // the sign of an exact zero is Go's to say
			}
			r, _ := z.Float32()
			return math.Float32bits(r)
		}
	}
	fl := func(f func(x, y, z ptx.F32) ptx.F32) u2 {
		return func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 {
			return f(x.FloatBits(), y.FloatBits(), z.FloatBits()).Bits()
		}
	}
	for name, c := range map[string]struct {
		f    u2
		want r2
	}{
		"add": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.Add(y) }), exact(func(z, x, y, w *big.Float) *big.Float { return z.Add(x, y) })},
		"sub": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.Sub(y) }), exact(func(z, x, y, w *big.Float) *big.Float { return z.Sub(x, y) })},
		"mul": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.Mul(y) }), exact(func(z, x, y, w *big.Float) *big.Float { return z.Mul(x, y) })},
		"fma": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.FMA(y, z) }), exact(func(z, x, y, w *big.Float) *big.Float { return z.Add(z.Mul(x, y), w) })},
		"cvt": {func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.F32().Bits() }, func(x, y, z uint32) uint32 {
			r, _ := new(big.Float).SetUint64(uint64(x)).Float32()
			return math.Float32bits(r)
		}},
		"neg abs": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.Abs().Neg() }), func(x, y, z uint32) uint32 {
			if f := f32(x); f != f {
				return 0x7fffffff // seen on an H200; the manual leaves it open
			}
			return x | 1<<31
		}},
		"trunc": {func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.FloatBits().TruncU32() }, func(x, y, z uint32) uint32 {
			f := float64(f32(x))
			if f != f {
				return 0
			}
			return uint32(uint64(math.Trunc(min(max(f, 0), math.MaxUint32))))
		}},
		"min": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.Min(y) }), func(x, y, z uint32) uint32 { return pick(x, y, func(a, b float32) bool { return a < b }, 1<<31) }},
		"max": {fl(func(x, y, z ptx.F32) ptx.F32 { return x.Max(y) }), func(x, y, z uint32) uint32 { return pick(x, y, func(a, b float32) bool { return a > b }, 0) }},
		"compare": {func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 {
			a, b := x.FloatBits(), y.FloatBits()
			return asFlag(a.Lt(b), k).Add(asFlag(a.Gt(b), k).Shl(1)).Add(asFlag(a.Eq(b), k).Shl(2))
		}, func(x, y, z uint32) uint32 {
			return b2u(f32(x) < f32(y)) + b2u(f32(x) > f32(y))<<1 + b2u(f32(x) == f32(y))<<2
		}},
		"pack bf16": {func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.FloatBits().PackBF16(y.FloatBits()).Bits() }, func(x, y, z uint32) uint32 {
			return uint32(num.ToBF16(f32(x)))<<16 | uint32(num.ToBF16(f32(y)))
		}},
		"pack f16": {func(k *ptx.Builder, x, y, z ptx.U32) ptx.U32 { return x.FloatBits().PackF16(y.FloatBits()).Bits() }, func(x, y, z uint32) uint32 {
			return uint32(num.ToF16(f32(x)))<<16 | uint32(num.ToF16(f32(y)))
		}},
	} {
		tried := 0
		for i, got := range each(t, c.f) {
			x, y, z := edges[i/len(edges)], edges[i%len(edges)], third(i)
			want := c.want(x, y, z)
			if want == skip {
				continue
			}
			tried++
			if got != want {
				t.Errorf("%s of %#x, %#x, %#x is %#x, want %#x", name, x, y, z, got, want)
				break
			}
		}
		if tried < 300 {
			t.Errorf("%s: only %d pairs have an exact answer", name, tried)
		}
	}
}

const skip = 0xdeadbeef

func special(x float32) bool { return x != x || math.IsInf(float64(x), 0) }

// pick is IEEE minimumNumber or maximumNumber: better tells which of two different numbers wins, zero is the sign bit of the zero that does.
func pick(x, y uint32, better func(a, b float32) bool, zero uint32) uint32 {
	a, b := f32(x), f32(y)
	switch {
	case a != a && b != b:
		return 0x7fffffff
	case a != a:
		return y
	case b != b:
		return x
	case a == 0 && b == 0:
		if x == zero {
			return x
		}
		return y
	case better(a, b):
		return x
	}
	return y
}

// NaN in, canonical NaN out; infinities and signs of zero as IEEE 754 has them.
func TestFloatSpecialValues(t *testing.T) {
	inf, nan := math.Float32bits(float32(math.Inf(1))), uint32(0x7fffffff)
	for _, c := range []struct{ got, want uint32 }{
		{addFloat(inf, inf|1<<31), nan}, {addFloat(0x7fc00001, 0), nan}, {addFloat(1<<31, 0), 0}, {addFloat(1<<31, 1<<31), 1 << 31},
		{math.Float32bits(fma32(f32(inf), 0, 1)), nan}, {math.Float32bits(fma32(0x1p100, 0x1p100, float32(math.Inf(-1)))), inf | 1<<31}, {math.Float32bits(fma32(0x1p100, 0x1p100, 0)), inf},
	} {
		if c.got != c.want {
			t.Errorf("%#x, want %#x", c.got, c.want)
		}
	}
}

// fma32 rounds once where rounding twice goes wrong: a sum just beside a tie of float32.
func TestFMARoundsOnce(t *testing.T) {
	x, z := float32(1+0x1p-12), float32(0x1p-60) // x² = 1 + 2⁻¹¹ + 2⁻²⁴: a tie, broken upwards by z
	if got, want := fma32(x, x, z), float32(1+0x1p-11+0x1p-23); got != want {
		t.Errorf("%x, want %x", got, want)
	}
	if got, want := fma32(x, x, -z), float32(1+0x1p-11); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

// fmaBF16 against exact arithmetic: of the bf16 values beside the exact result the nearest, the even one of two. Tiny products that vanish beside nothing, or
// beside a large addend, are among the cases: an H200 found the first version to turn them into NaNs.
func TestPackedFMARoundsOnce(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	values := []uint16{0, 0x8000, 1, 0x8001, 2, 0x7f, 0x80, 0x0ce4, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x0100}
	pick := func() uint16 {
		if r.Intn(2) == 0 {
			return values[r.Intn(len(values))]
		}
		x := uint16(r.Uint32())
		if x&0x7f80 == 0x7f80 {
			x &^= 0x4000 // finite
		}
		return x
	}
	tried := 0
	for range 200000 {
		x, y, z := pick(), pick(), pick()
		exact := new(big.Float).SetPrec(800)
		exact.Mul(big.NewFloat(float64(num.FromBF16(x))).SetPrec(800), big.NewFloat(float64(num.FromBF16(y))).SetPrec(800))
		exact.Add(exact, big.NewFloat(float64(num.FromBF16(z))).SetPrec(800))
		if exact.Sign() == 0 || new(big.Float).Abs(exact).Cmp(big.NewFloat(float64(num.FromBF16(0x7f7f)))) > 0 {
			continue // the sign of an exact zero, and overflow, are decided by other rules
		}
		tried++
		got := uint16(fmaBF16(uint32(x), uint32(y), uint32(z)))
		v := num.FromBF16(got)
		if v != v || v != 0 && (v < 0) != (exact.Sign() < 0) {
			t.Fatalf("%#x·%#x + %#x is %#x, want about %v", x, y, z, got, exact)
		}
		off := func(m uint16) *big.Float { // distance of the magnitude's value
			d := new(big.Float).SetPrec(800).Sub(new(big.Float).Abs(exact), big.NewFloat(float64(num.FromBF16(m))))
			return d.Abs(d)
		}
		m := got & 0x7fff
		for _, n := range []uint16{m - 1, m + 1} {
			if n > 0x7f7f {
				continue
			}
			if c := off(n).Cmp(off(m)); c < 0 || c == 0 && m&1 == 1 {
				t.Fatalf("%#x·%#x + %#x is %#x, but %#x is nearer or even", x, y, z, got, n)
			}
		}
	}
	if tried < 100000 {
		t.Errorf("only %d cases", tried)
	}
}
