package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Tiles are rows × 2 vectors. With all rows, the sums, two vectors of B and two
// broadcasts of A fill the registers: 12+2+2 of 16 ymm, 28+2+2 of 32 zmm.
const (
	rowsAVX2   = 6
	rowsAVX512 = 14
)

func blasKernels() *build.Context {
	c := newContext()
	for _, g := range []gen{{c, false, nil}, {c, true, nil}} {
		rows := rowsAVX2
		if g.zmm {
			rows = rowsAVX512
		}
		for r := 1; r <= rows; r++ {
			g.tile(r)
		}
	}
	gen{c, false, nil}.transpose()
	gen{c, false, nil}.widen()
	for _, n := range []int{8, 16, 32} {
		gen{c, false, nil}.scatter(n)
	}
	return c
}

func (g gen) vec() reg.VecVirtual {
	if g.zmm {
		return g.ZMM()
	}
	return g.YMM()
}

func (g gen) bytes() int {
	if g.zmm {
		return 64
	}
	return 32
}

// tile writes the kernel for a number of rows.
func (g gen) tile(rows int) {
	g.Function(fmt.Sprintf("%sx%d", g.name("tile"), rows))
	g.Doc(fmt.Sprintf("%sx%d computes, for tiles of %d × %d elements, strides in bytes,", g.name("tile"), rows, rows, g.bytes()/2),
		"", "\tfor t < tiles { for i < rows { for j < cols {", "\t\ts := 0", "\t\tfor k < depth { s = fma(a[t·astep + i·ars + k·acs], b[k·brow + j], s) }",
		"\t\tc[t·rows+i,j] = s, or c[t·rows+i,j] + s when add", "\t} } }")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(tiles, depth int, a *float32, astep, ars, acs int, b *float32, brow int, c *float32, ldc int, add bool)")
	load := func(name string) reg.Register { return g.Load(g.Param(name), g.GP64()) }
	a, ars, acs, brow := load("a"), load("ars"), load("acs"), load("brow")
	c, ldc := load("c"), load("ldc")
	g.Label("tile")
	sums := make([][2]reg.VecVirtual, rows)
	for i := range sums {
		for v := range sums[i] {
			sums[i][v] = g.vec()
			g.zero(sums[i][v])
		}
	}
	g.products(sums, a, ars, acs, brow)
	g.store(sums, c, ldc)
	g.ADDQ(g.argument("astep"), a)
	g.SUBQ(Imm(1), g.argument("tiles"))
	g.JNZ(LabelRef("tile"))
	g.VZEROUPPER()
	g.RET()
}

// argument is where an argument lies, for those that get no register.
func (g gen) argument(name string) Mem {
	p, err := g.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// ahead is how many bytes of B before their use are fetched, past the panel at
// work: packed weights that come from memory then arrive while few rows of A are
// multiplied (16 rows, 113 MB of weights: 123 → 137 GFLOP/s on two cores of an
// EPYC; one row is bound by memory either way). What lies behind the end of B
// is fetched for nothing; a prefetch does not fault.
const ahead = 4096

// products adds a[i,k]·b[k,j] to the sums, four k at a time.
func (g gen) products(sums [][2]reg.VecVirtual, a, ars, acs, brow reg.Register) {
	depth, b := g.GP64(), g.GP64()
	g.MOVQ(g.argument("depth"), depth)
	g.MOVQ(g.argument("b"), b)
	// Row 3q+e is at bases[q] + e·ars.
	first := g.GP64()
	g.MOVQ(a, first)
	bases := []reg.Register{first}
	for q := 1; q*3 < len(sums); q++ {
		next := g.GP64()
		g.LEAQ(Mem{Base: bases[q-1], Index: ars, Scale: 2}, next)
		g.ADDQ(ars, next)
		bases = append(bases, next)
	}
	at := func(i int) Mem {
		m := Mem{Base: bases[i/3]}
		if e := i % 3; e > 0 {
			m.Index, m.Scale = ars, uint8(e)
		}
		return m
	}
	step := func() {
		b0, b1 := g.vec(), g.vec()
		g.PREFETCHT0(Mem{Base: b, Disp: ahead})
		g.VMOVUPS(Mem{Base: b}, b0)
		g.VMOVUPS(Mem{Base: b, Disp: g.bytes()}, b1)
		g.ADDQ(brow, b)
		for i := range sums {
			x := g.vec()
			g.VBROADCASTSS(at(i), x)
			g.VFMADD231PS(b0, x, sums[i][0])
			g.VFMADD231PS(b1, x, sums[i][1])
		}
		for _, p := range bases {
			g.ADDQ(acs, p)
		}
	}
	const unroll = 4
	g.SUBQ(Imm(unroll), depth)
	g.JLT(LabelRef("rest"))
	g.Label("four")
	for range unroll {
		step()
	}
	g.SUBQ(Imm(unroll), depth)
	g.JGE(LabelRef("four"))
	g.Label("rest")
	g.ADDQ(Imm(unroll), depth)
	g.JZ(LabelRef("store"))
	g.Label("one")
	step()
	g.SUBQ(Imm(1), depth)
	g.JNZ(LabelRef("one"))
}

func (g gen) zero(v reg.VecVirtual) {
	if g.zmm {
		g.VPXORQ(v, v, v)
	} else {
		g.VXORPS(v, v, v)
	}
}

// store writes the sums to C, or adds them, and leaves c at the next tile.
func (g gen) store(sums [][2]reg.VecVirtual, c, ldc reg.Register) {
	g.Label("store")
	g.CMPB(g.argument("add"), Imm(0))
	g.JEQ(LabelRef("set"))
	for _, plus := range []bool{true, false} {
		if !plus {
			g.Label("set")
		}
		for _, s := range sums {
			for v := range s {
				m := Mem{Base: c, Disp: v * g.bytes()}
				if plus {
					g.VADDPS(m, s[v], s[v])
				}
				g.VMOVUPS(s[v], m)
			}
			g.ADDQ(ldc, c)
		}
		if plus {
			g.JMP(LabelRef("next"))
		}
	}
	g.Label("next")
}

// scatter writes the packing of rows: pieces of n elements of a row go to
// panels. A row is read in one go, since rows may lie a page apart.
func (g gen) scatter(n int) {
	name := fmt.Sprintf("scatter%d", n)
	g.Function(name)
	g.Doc(name+" computes, in rising k, strides in bytes,", "",
		"\tfor k < depth { for p < panels { for j < "+fmt.Sprint(n)+" { dst[p·dpanel + k·drow + j] = src[k·srow + p·spanel + j] } } }", "",
		"With drow shorter than a piece, what spills over is overwritten by the next k.")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(dst *float32, dpanel, drow int, src *float32, spanel, srow, panels, depth int)")
	load := func(name string) reg.Register { return g.Load(g.Param(name), g.GP64()) }
	dst, dpanel, drow := load("dst"), load("dpanel"), load("drow")
	src, spanel, srow := load("src"), load("spanel"), load("srow")
	panels, depth := load("panels"), load("depth")
	from, to, left := g.GP64(), g.GP64(), g.GP64()
	g.Label("row")
	g.MOVQ(src, from)
	g.MOVQ(dst, to)
	g.MOVQ(panels, left)
	g.Label("panel")
	for v := range n / 8 {
		x := g.YMM()
		g.VMOVUPS(Mem{Base: from, Disp: v * 32}, x)
		g.VMOVUPS(x, Mem{Base: to, Disp: v * 32})
	}
	g.ADDQ(spanel, from)
	g.ADDQ(dpanel, to)
	g.SUBQ(Imm(1), left)
	g.JNZ(LabelRef("panel"))
	g.ADDQ(srow, src)
	g.ADDQ(drow, dst)
	g.SUBQ(Imm(1), depth)
	g.JNZ(LabelRef("row"))
	g.VZEROUPPER()
	g.RET()
}

// widen writes bf16 as the float32 it stands for.
func (g gen) widen() {
	g.Function("widen16")
	g.Doc("widen16 computes", "", "\tfor i < 16·blocks { dst[i] = float32 of the bits src[i]·2¹⁶ }")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(dst *float32, src *uint16, blocks int)")
	dst, src := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64())
	n := g.Load(g.Param("blocks"), g.GP64())
	g.Label("block")
	g.PREFETCHT0(Mem{Base: src, Disp: ahead})
	for v := range 2 {
		x := g.YMM()
		g.VPMOVZXWD(Mem{Base: src, Disp: 16 * v}, x)
		g.VPSLLD(Imm(16), x, x)
		g.VMOVDQU(x, Mem{Base: dst, Disp: 32 * v})
	}
	g.ADDQ(Imm(32), src)
	g.ADDQ(Imm(64), dst)
	g.SUBQ(Imm(1), n)
	g.JNZ(LabelRef("block"))
	g.VZEROUPPER()
	g.RET()
}

// transpose writes the packing of transposed columns, eight by eight.
func (g gen) transpose() {
	g.Function("transpose8")
	g.Doc("transpose8 computes, in rising k, strides in bytes,", "", "\tfor k < 8·blocks { for j < 8 { dst[k,j] = src[j,k] } }", "",
		"With drow shorter than eight, what spills over is overwritten by the next k.")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(dst *float32, drow int, src *float32, srow, blocks int)")
	dst, drow := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("drow"), g.GP64())
	src, srow := g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("srow"), g.GP64())
	n := g.Load(g.Param("blocks"), g.GP64())
	src3, src6 := g.GP64(), g.GP64()
	g.LEAQ(Mem{Base: src, Index: srow, Scale: 2}, src3)
	g.ADDQ(srow, src3)
	g.LEAQ(Mem{Base: src3, Index: srow, Scale: 2}, src6)
	g.ADDQ(srow, src6)
	rows := []Mem{
		{Base: src}, {Base: src, Index: srow, Scale: 1}, {Base: src, Index: srow, Scale: 2},
		{Base: src3}, {Base: src3, Index: srow, Scale: 1}, {Base: src3, Index: srow, Scale: 2},
		{Base: src6}, {Base: src6, Index: srow, Scale: 1},
	}
	g.Label("block")
	// Halves of rows j and j+4 share a register, so that the rest is shuffles
	// within 128 bits.
	var lo, hi [4]reg.VecVirtual // k 0…3 and 4…7 of rows j, j+4
	for j := range 4 {
		lo[j], hi[j] = g.YMM(), g.YMM()
		for h, y := range []reg.VecVirtual{lo[j], hi[j]} {
			up, down := rows[j], rows[j+4]
			up.Disp, down.Disp = 16*h, 16*h
			g.VMOVUPS(up, y.AsX())
			g.VINSERTF128(Imm(1), down, y, y)
		}
	}
	for _, m := range [][4]reg.VecVirtual{lo, hi} {
		g.transpose4(dst, drow, m)
	}
	for _, p := range []reg.Register{src, src3, src6} {
		g.ADDQ(Imm(32), p)
	}
	g.SUBQ(Imm(1), n)
	g.JNZ(LabelRef("block"))
	g.VZEROUPPER()
	g.RET()
}

// transpose4 transposes 4×4 in both halves of four registers and stores four
// rows of dst.
func (g gen) transpose4(dst, drow reg.Register, m [4]reg.VecVirtual) {
	a, b, c, d := g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.VUNPCKLPS(m[1], m[0], a) // a0 b0 a1 b1
	g.VUNPCKHPS(m[1], m[0], b) // a2 b2 a3 b3
	g.VUNPCKLPS(m[3], m[2], c) // c0 d0 c1 d1
	g.VUNPCKHPS(m[3], m[2], d)
	for _, p := range [][2]reg.VecVirtual{{a, c}, {b, d}} {
		for _, pick := range []uint64{0x44, 0xee} {
			out := g.YMM()
			g.VSHUFPS(Imm(pick), p[1], p[0], out)
			g.VMOVUPS(out, Mem{Base: dst})
			g.ADDQ(drow, dst)
		}
	}
}
