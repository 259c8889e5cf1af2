package conform

import (
	"fmt"
	"math"
	"math/rand"

	"heddle/ptx"
)

// Families of random programs, as Random takes them.
func Families() []string {
	return []string{"integer", "float", "narrow", "convert", "warp", "shared", "global", "approx", "log", "tanh"}
}

const (
	inputs  = 8 // words a thread reads
	results = 8 // words a thread writes
	memory  = 4 // words a thread has in global memory, behind the results
	threads = 128
	ctas    = 2
)

// Random gives a program of 128 threads that reads eight words, does some thirty random things of one family with them under random branches and loops, and
// writes eight words. The same seed gives the same program.
func Random(family string, seed int64) (Program, error) {
	r := rand.New(rand.NewSource(seed))
	k := ptx.New(fmt.Sprintf("%s_%d", family, seed), threads, 1)
	in, out := k.ParamPtr("in"), k.ParamPtr("out")
	g := &generator{k: k, r: r}
	g.scratch = k.Shared("scratch", 4*threads*4, 128).Addr()
	index := k.CTAIndex().Times(threads).Add(k.Tid())
	from := in.At(index.MulWide(k.U32(4 * inputs)))
	for i := range inputs / 4 {
		v := from.Plus(16 * i).LoadU32x4()
		g.u = append(g.u, v[:]...)
	}
	for _, u := range g.u {
		g.f = append(g.f, u.FloatBits())
	}
	if family == "global" {
		g.ctas = out.Plus(4 * ctas * threads * results).At(k.CTAIndex().MulWide(k.U32(4 * threads * memory)))
		g.own = g.ctas.At(k.Tid().MulWide(k.U32(4 * memory)))
	}
	step, ok := map[string]func(){
		"integer": g.integer, "float": g.float, "narrow": g.narrow, "convert": g.convert, "warp": g.warp, "shared": g.shared, "global": g.global,
		"approx": g.approx, "log": g.log, "tanh": g.tanh,
	}[family]
	if !ok {
		return Program{}, fmt.Errorf("conform: no family %q, want one of %v", family, Families())
	}
	approximate := family == "approx" || family == "log" || family == "tanh"
	floats := family == "float" || approximate
	if approximate { // results that may differ by an ulp steer nothing
		for range 12 {
			step()
		}
	} else {
		g.program(step, floats)
	}
	to := out.At(index.MulWide(k.U32(4 * results)))
	for i := range results {
		if floats {
			to.Plus(4 * i).StoreF32(g.f[len(g.f)-1-i])
		} else {
			to.Plus(4 * i).StoreU32(g.u[len(g.u)-1-i])
		}
	}
	e, err := k.Build()
	if err != nil {
		return Program{}, err
	}
	p := Program{Name: fmt.Sprintf("%s %d", family, seed), Entry: e, Launch: ptx.Launch{Entry: e.Name, Grid: ptx.Dim3{X: ctas}}, Floats: floats}
	switch family { // what the PTX ISA allows
	case "approx":
		p.ULPs = 2 // ex2 and rsqrt; rcp is within 1
	case "log":
		p.Within = func(_ int, want float32) float64 { return max(0x1p-22, 0x1p-22*math.Abs(float64(want))) } // absolute where the result is small, else relative
	case "tanh":
		p.Within = func(_ int, want float32) float64 { return max(0x1p-149, 0x1p-11*math.Abs(float64(want))) }
	}
	size := ctas * threads * results
	if family == "global" {
		size += ctas * threads * memory
	}
	p.Args = func() (*ptx.Args, *ptx.Buffer) {
		a, dst := e.NewArgs(), words("out", make([]uint32, size))
		in.Put(a, words("in", interesting(seed, ctas*threads*inputs)), 0)
		out.Put(a, dst, 0)
		return a, dst
	}
	return p, nil
}

// interesting are words that tend to show differences, among random ones.
func interesting(seed int64, n int) []uint32 {
	r := rand.New(rand.NewSource(seed ^ 0x5eed))
	special := []uint32{
		0, 1, 2, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
		0x00800000, 0x007fffff, 0x807fffff, 0x00000100, 0x4f800000, 0x3f808000, 0x3f818000, 0x477ff000, 0x33800000, 0x38800000,
	}
	x := make([]uint32, n)
	for i := range x {
		switch r.Intn(3) {
		case 0:
			x[i] = special[r.Intn(len(special))]
		case 1:
			x[i] = math.Float32bits(float32(r.NormFloat64() * math.Exp2(float64(r.Intn(40)-20))))
		default:
			x[i] = r.Uint32()
		}
	}
	return x
}

// generator holds the values that a program has so far.
type generator struct {
	k       *ptx.Builder
	r       *rand.Rand
	u       []ptx.U32
	f       []ptx.F32
	p       []ptx.Pred
	scratch ptx.SAddr
	own     ptx.GAddr // the thread's words of global memory
	ctas    ptx.GAddr // the CTA's
}

func (g *generator) anyU() ptx.U32 { return g.u[g.r.Intn(len(g.u))] }
func (g *generator) anyF() ptx.F32 { return g.f[g.r.Intn(len(g.f))] }

func (g *generator) anyP() ptx.Pred {
	if len(g.p) == 0 || g.r.Intn(3) == 0 {
		return g.condition()
	}
	return g.p[g.r.Intn(len(g.p))]
}

// condition is a new predicate.
func (g *generator) condition() ptx.Pred {
	x, y := g.anyU(), g.anyU()
	switch g.r.Intn(6) {
	case 0:
		return x.Lt(y)
	case 1:
		return x.Ge(y)
	case 2:
		return x.And(g.k.U32(1)).Eq(g.k.U32(0))
	case 3:
		return x.Signed().Lt(y.Signed())
	case 4:
		return x.FloatBits().Gt(y.FloatBits())
	}
	return x.Lt(y).Xor(y.Le(g.anyU()))
}

// program does some steps plainly, and some under a branch or in a loop, whose outcome a Var carries out.
func (g *generator) program(step func(), floats bool) {
	k := g.k
	for range 20 + g.r.Intn(20) {
		shape := g.r.Intn(10)
		if shape > 2 {
			step()
			continue
		}
		carried := ptx.NewVarAt(k, ptx.Lane, g.anyU())
		kept := [3]int{len(g.u), len(g.f), len(g.p)}
		set := func() {
			step()
			if floats { // the ISA leaves a NaN's bits open, and ptxas folds neg and abs into what follows: they must steer nothing
				x := g.f[len(g.f)-1]
				carried.Set(x.Eq(x).SelectF32(x, k.F32(-3)).Bits())
			} else {
				carried.Set(g.u[len(g.u)-1])
			}
			g.u, g.f, g.p = g.u[:kept[0]:kept[0]], g.f[:kept[1]:kept[1]], g.p[:kept[2]:kept[2]] // what was made inside ends there
		}
		switch shape {
		case 0:
			k.If(k.NumCTAs().Eq(k.U32(ctas)), set) // the same for all: any instruction may stand here
		case 1:
			k.For(k.U32(0), k.U32(1+g.r.Intn(4)), k.U32(1), func(ptx.U32) { set() })
		case 2:
			x := g.anyU()
			k.IfElse(g.anyP(), func() { carried.Set(x.Plus(1)) }, func() { carried.Set(x.Xor(k.U32(0x55))) })
		}
		g.u, g.f, g.p = g.u[:kept[0]], g.f[:kept[1]], g.p[:kept[2]]
		v := carried.Get()
		g.u, g.f = append(g.u, v), append(g.f, v.FloatBits())
	}
}

func (g *generator) integer() {
	k, x, y, z := g.k, g.anyU(), g.anyU(), g.anyU()
	ops := []func() ptx.U32{
		func() ptx.U32 { return x.Add(y) }, func() ptx.U32 { return x.Sub(y) }, func() ptx.U32 { return x.Mul(y) }, func() ptx.U32 { return x.MulHi(y) },
		func() ptx.U32 { return x.Mad(y, z) }, func() ptx.U32 { return x.Div(y.Or(k.U32(1))) }, func() ptx.U32 { return x.Rem(y.Or(k.U32(1))) },
		func() ptx.U32 { return x.Min(y) }, func() ptx.U32 { return x.Max(y) }, func() ptx.U32 { return x.OnesCount() }, func() ptx.U32 { return x.LeadingZeros() },
		func() ptx.U32 { return x.Signed().Add(y.Signed()).Min(z.Signed()).Unsigned() }, func() ptx.U32 { return x.Signed().Max(y.Signed()).Unsigned() },
		func() ptx.U32 { return x.And(y) }, func() ptx.U32 { return x.Or(y) }, func() ptx.U32 { return x.Xor(y) }, func() ptx.U32 { return x.Not() },
		func() ptx.U32 { return x.ShlBy(y) }, func() ptx.U32 { return x.ShrBy(y) }, func() ptx.U32 { return x.ShlBy(y.And(k.U32(31))) },
		func() ptx.U32 { return x.MulWide(y).Add(z.U64()).ShrBy(k.U32(g.r.Intn(70))).Low() },
		func() ptx.U32 {
			return x.U64().ShlBy(y.And(k.U32(63))).Sub(z.U64()).Mul(y.U64()).ShrBy(k.U32(13)).Low()
		},
		func() ptx.U32 { p := g.condition(); g.p = append(g.p, p); return p.SelectU32(x, y) },
		func() ptx.U32 { return g.anyP().And(g.anyP().Not()).Or(g.anyP()).SelectU32(y, z) },
		func() ptx.U32 { return x.F32().TruncU32() }, func() ptx.U32 { return x.ReverseBits() }, func() ptx.U32 { return x.Permute(y, g.r.Intn(1<<16)) },
		func() ptx.U32 { return x.Field(g.r.Intn(32), g.r.Intn(33)) }, func() ptx.U32 { return x.MadWide(y, z.U64()).ShrBy(k.U32(g.r.Intn(64))).Low() },
		func() ptx.U32 { return x.Signed().Mul(y.Signed()).ShrBy(z.And(k.U32(63))).Unsigned() },
		func() ptx.U32 { return x.U64().Lt(y.MulWide(z)).Or(x.U64().Eq(y.U64())).SelectU32(x, z) },
	}
	g.u = append(g.u, ops[g.r.Intn(len(ops))]())
}

func (g *generator) float() {
	x, y, z := g.anyF(), g.anyF(), g.anyF()
	ops := []func() ptx.F32{
		func() ptx.F32 { return x.Add(y) }, func() ptx.F32 { return x.Sub(y) }, func() ptx.F32 { return x.Mul(y) }, func() ptx.F32 { return x.FMA(y, z) },
		func() ptx.F32 { return x.Div(y) }, func() ptx.F32 { return x.Min(y) }, func() ptx.F32 { return x.Max(y) }, func() ptx.F32 { return x.Abs().Sqrt() },
		func() ptx.F32 { return x.Neg() }, func() ptx.F32 { return x.Lt(y).SelectF32(z, x) }, func() ptx.F32 { return x.Eq(y).Or(x.Gt(z)).SelectF32(y, z) },
		func() ptx.F32 { return g.u[g.r.Intn(inputs)].F32() },
	}
	g.f = append(g.f, ops[g.r.Intn(len(ops))]())
}

// narrow packs and rounds; NaNs become canonical on the way.
func (g *generator) narrow() {
	x, y := g.anyU().FloatBits(), g.anyU().FloatBits()
	ops := []func() ptx.U32{
		func() ptx.U32 { return x.PackBF16(y).Bits() }, func() ptx.U32 { return x.PackF16(y).Bits() }, func() ptx.U32 { return x.TruncU32() },
		func() ptx.U32 { return g.anyU().F32().Bits() }, func() ptx.U32 { return g.anyU().BF16x2().Bits().Plus(1) }, func() ptx.U32 { return g.anyU().Add(g.anyU()) },
		func() ptx.U32 { return x.PackE4M3(y) }, func() ptx.U32 { return x.PackE5M2(y) }, func() ptx.U32 { return x.TruncS32().Unsigned() }, func() ptx.U32 { return x.RoundS32().Unsigned() },
		func() ptx.U32 { return g.anyU().Signed().F32().Bits() },
		func() ptx.U32 { return x.PackBF16(y).Low().PackBF16(x.PackBF16(y).High()).Bits() },
		func() ptx.U32 { // products and sums of packed bf16, whose NaNs are packed anew
			v := x.PackBF16(y).FMA(y.PackBF16(x), g.anyU().FloatBits().PackBF16(x))
			return v.High().PackBF16(v.Low()).Bits()
		},
	}
	g.u = append(g.u, ops[g.r.Intn(len(ops))]())
}

func (g *generator) warp() {
	k, x, y := g.k, g.anyU(), g.anyU()
	ops := []func() ptx.U32{
		func() ptx.U32 { return x.Shuffle(y.And(k.U32(31))) }, func() ptx.U32 { return x.Shuffle(k.U32(g.r.Intn(32))) }, func() ptx.U32 { return x.ShuffleXor(1 << g.r.Intn(5)) },
		func() ptx.U32 { return g.condition().Ballot() }, func() ptx.U32 { return g.condition().Any().SelectU32(x, y) }, func() ptx.U32 { return g.condition().All().SelectU32(x, y) },
		func() ptx.U32 { return x.Add(y) }, func() ptx.U32 { return x.FloatBits().ShuffleXor(7).Bits().Xor(y) },
	}
	g.u = append(g.u, ops[g.r.Intn(len(ops))]())
}

// shared exchanges words between the threads of the CTA, in several widths; every exchange is between two barriers.
func (g *generator) shared() {
	k, x := g.k, g.anyU()
	turn := k.Tid().Plus(g.r.Intn(threads)).And(k.U32(threads - 1))
	mine, other := g.scratch.At(k.Tid().Shl(4)), g.scratch.At(turn.Shl(4))
	switch g.r.Intn(8) {
	case 5:
		row := g.scratch.At(k.WarpIndex().Shl(9)).At(k.Lane().Xor(k.U32(g.r.Intn(32))).Shl(4))
		row.StoreMatrix4T([4]ptx.U32{x, g.anyU(), g.anyU(), g.anyU()})
		k.SyncCTA()
		g.u = append(g.u, other.LoadU32())
	case 6:
		mine.StoreU32x4([4]ptx.U32{x, g.anyU(), g.anyU(), g.anyU()})
		k.SyncCTA()
		v := g.scratch.At(k.WarpIndex().Shl(9)).At(k.Lane().Xor(k.U32(g.r.Intn(32))).Shl(4)).LoadMatrix4T()
		g.u = append(g.u, v[g.r.Intn(4)])
	case 7: // sums do not depend on the order
		g.scratch.At(k.Tid().Shl(2)).StoreU32(k.Tid())
		k.SyncCTA()
		g.scratch.At(x.And(k.U32(threads - 1)).Shl(2)).AtomicAddU32(x)
		k.SyncCTA()
		g.u = append(g.u, g.scratch.At(turn.Shl(2)).LoadU32())
	case 0:
		g.scratch.At(k.Tid().Shl(2)).StoreU32(x)
		k.SyncCTA()
		g.u = append(g.u, g.scratch.At(turn.Shl(2)).LoadU32())
	case 1:
		mine.StoreU32x4([4]ptx.U32{x, g.anyU(), g.anyU(), g.anyU()})
		k.SyncCTA()
		g.u = append(g.u, other.Plus(4*g.r.Intn(4)).LoadU32())
	case 2:
		mine.StoreF32x2([2]ptx.F32{x.FloatBits(), g.anyU().FloatBits()})
		mine.Plus(8).StoreF32(g.anyU().FloatBits())
		mine.Plus(12).StoreU32(g.anyU())
		k.SyncCTA()
		v := other.LoadF32x4()
		g.u = append(g.u, v[g.r.Intn(4)].Bits())
	case 3: // lane l names row l of four 8×8 matrices in its warp's 512 bytes
		row := g.scratch.At(k.WarpIndex().Shl(9)).At(k.Lane().Xor(k.U32(g.r.Intn(32))).Shl(4))
		row.StoreMatrix4([4]ptx.U32{x, g.anyU(), g.anyU(), g.anyU()})
		k.SyncCTA()
		g.u = append(g.u, other.LoadU32())
	default:
		mine.StoreU32x4([4]ptx.U32{x, g.anyU(), g.anyU(), g.anyU()})
		k.SyncCTA()
		v := g.scratch.At(k.WarpIndex().Shl(9)).At(k.Lane().Xor(k.U32(g.r.Intn(32))).Shl(4)).LoadMatrix4()
		g.u = append(g.u, v[g.r.Intn(4)])
	}
	k.SyncCTA()
}
