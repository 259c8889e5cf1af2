package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	rodata   = attr.RODATA | attr.NOPTR
	tableKey = 0x01010101 // no float constant of ours has these bits
)

// rowKernel is one kernel of package vec. out and in are rows of n floats,
// scalars float32 arguments; sums means it gives 32 partial results, joined.
type rowKernel struct {
	name    string
	out, in []string // a row in both is read and written
	scalars []string
	doc     string // what happens to element i
	sums    bool
	start   float64 // of the partial results
	largest bool    // the partial results are joined by max rather than +
	pairs   bool    // two vectors at a time, for kernels with long chains
	// body computes from vectors of in, in order, and scalars; it returns vectors
	// of out, in order, and for sums the new partial result as the last.
	body func(g gen, x, s []reg.VecVirtual, sum reg.VecVirtual, m *mask) []reg.VecVirtual
}

// params is the Go parameter list.
func (k rowKernel) params() string {
	var p []string
	for _, name := range k.rows() {
		p = append(p, name+" *float32")
	}
	if k.sums {
		p = append(p, "total *float32")
	}
	for _, name := range k.scalars {
		p = append(p, name+" float32")
	}
	return strings.Join(append(p, "n int"), ", ")
}

// rows are the pointers: out, then what is only read.
func (k rowKernel) rows() []string {
	names := append([]string(nil), k.out...)
	for _, in := range k.in {
		if !contains(k.out, in) {
			names = append(names, in)
		}
	}
	return names
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func vecKernels() *build.Context {
	c := newContext()
	words := map[uint32]Mem{}
	for _, k := range rowKernels() {
		for _, zmm := range []bool{false, true} {
			gen{c, zmm, words}.row(k)
		}
	}
	for _, zmm := range []bool{false, true} {
		gen{c, zmm, words}.squares()
	}
	return c
}

// row writes a kernel for one instruction set.
func (g gen) row(k rowKernel) {
	g.Function(g.name(k.name))
	doc := []string{g.name(k.name) + " computes", "", "\tfor i < n { " + k.doc + " }"}
	if k.sums {
		doc = append(doc, "\ttotal = fold(part)")
	}
	g.Doc(doc...)
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(" + k.params() + ")")
	at := map[string]reg.Register{}
	var ptrs []reg.Register
	for _, name := range k.rows() {
		at[name] = g.Load(g.Param(name), g.GP64())
		ptrs = append(ptrs, at[name])
	}
	var scalars, sums []reg.VecVirtual
	for _, name := range k.scalars {
		scalars = append(scalars, g.broadcast(name))
	}
	for range 32 / g.lanes() {
		if k.sums {
			sums = append(sums, g.load(g.constant(k.start), nil))
		}
	}
	g.each(ptrs, k.pairs, func(v, disp int, m *mask) {
		var x []reg.VecVirtual
		for _, name := range k.in {
			x = append(x, g.load(Mem{Base: at[name], Disp: disp}, m))
		}
		var sum reg.VecVirtual
		if k.sums {
			sum = sums[v]
		}
		out := k.body(g, x, scalars, sum, m)
		for i, name := range k.out {
			g.save(out[i], Mem{Base: at[name], Disp: disp}, m)
		}
		if k.sums {
			g.VMOVUPS(out[len(out)-1], sums[v])
		}
	})
	if k.sums {
		total := g.Load(g.Param("total"), g.GP64())
		g.VMOVSS(g.fold(sums, k.join), Mem{Base: total})
	}
	g.VZEROUPPER()
	g.RET()
}

func (k rowKernel) join(g gen, x, y reg.VecVirtual) {
	if k.largest {
		g.VMAXPS(y, x, x)
	} else {
		g.VADDPS(y, x, x)
	}
}

// fold joins 32 partial results pairwise: 16 apart, then 8, 4, 2, 1.
func (g gen) fold(s []reg.VecVirtual, join func(g gen, x, y reg.VecVirtual)) reg.VecVirtual {
	for half := len(s) / 2; half > 0; half /= 2 {
		for i := range half {
			join(g, s[i], s[i+half])
		}
	}
	narrow := gen{Context: g.Context}
	y := narrow.vec()
	if g.zmm {
		g.VEXTRACTF64X4(Imm(1), s[0], y)
		join(g, y, s[0].AsY().(reg.VecVirtual))
	} else {
		y = s[0]
	}
	apart := narrow.vec()
	g.VEXTRACTF128(Imm(1), y, apart.AsX())
	join(g, y, apart)
	for _, pick := range []uint64{0xee, 0x55} { // elements 2 and 3, then 1, to the front
		g.VPERMILPS(Imm(pick), y, apart)
		join(g, y, apart)
	}
	return y.AsX().(reg.VecVirtual)
}

// dispatch is the Go code that picks an instruction set, and the one that has none.
func dispatch(ks []rowKernel) (amd64, other string) {
	var a, o strings.Builder
	choose := func(name, params string) {
		var names []string
		for _, p := range strings.Split(params, ", ") {
			names = append(names, strings.Fields(p)[0])
		}
		args := strings.Join(names, ", ")
		fmt.Fprintf(&a, "\nfunc %s32(%s) bool {\n\tswitch {\n\tcase hasAVX512():\n\t\t%sAVX512(%s)\n\tcase hasAVX2():\n\t\t%sAVX2(%s)\n\tdefault:\n\t\treturn false\n\t}\n\treturn true\n}\n",
			name, params, name, args, name, args)
		fmt.Fprintf(&o, "\nfunc %s32(%s) bool { return false }\n", name, params)
	}
	for _, k := range ks {
		choose(k.name, k.params())
	}
	choose("squares", squaresParams)
	return a.String(), o.String()
}

type vecs = []reg.VecVirtual

// one is a kernel of one result and no sum.
func one(f func(g gen, x, s vecs) reg.VecVirtual) func(gen, vecs, vecs, reg.VecVirtual, *mask) vecs {
	return func(g gen, x, s vecs, _ reg.VecVirtual, _ *mask) vecs { return vecs{f(g, x, s)} }
}

func rowKernels() []rowKernel {
	return append(append(elementKernels(), trainKernels()...), sumKernels()...)
}

func elementKernels() []rowKernel {
	unary := func(name, doc string, f func(gen, reg.VecVirtual) reg.VecVirtual) rowKernel {
		return rowKernel{name: name, pairs: name != "log", out: []string{"dst"}, in: []string{"src"}, doc: doc,
			body: one(func(g gen, x, _ vecs) reg.VecVirtual { return f(g, x[0]) })}
	}
	dst, xy := []string{"dst"}, []string{"x", "y"}
	return []rowKernel{
		unary("exp", "dst[i] = exp(src[i])", gen.exp),
		unary("tanh", "dst[i] = tanh(src[i])", gen.tanh),
		unary("sigmoid", "dst[i] = 1 ÷ (1 + exp(−src[i]))", gen.sigmoid),
		unary("log", "dst[i] = ln(src[i])", gen.log),
		unary("gelu", "dst[i] = src[i] · sigmoid(2·√(2/π)·(src[i] + 0.044715·src[i]³))", func(g gen, x reg.VecVirtual) reg.VecVirtual {
			s, _ := g.gate(x)
			return g.mul(x, s)
		}),
		{name: "geluBackward", out: []string{"dx"}, in: []string{"dy", "x"}, doc: "dx[i] = dy[i] · gelu′(x[i])", body: one(geluBackward)},
		{name: "add", out: dst, in: xy, doc: "dst[i] = x[i] + y[i]", body: one(func(g gen, x, _ vecs) reg.VecVirtual { return g.add(x[0], x[1]) })},
		{name: "mul", out: dst, in: xy, doc: "dst[i] = x[i] · y[i]", body: one(func(g gen, x, _ vecs) reg.VecVirtual { return g.mul(x[0], x[1]) })},
		{name: "scale", out: dst, in: []string{"x"}, scalars: []string{"a"}, doc: "dst[i] = a · x[i]",
			body: one(func(g gen, x, s vecs) reg.VecVirtual { return g.mul(s[0], x[0]) })},
		{name: "axpy", out: []string{"y"}, in: []string{"x", "y"}, scalars: []string{"a"}, doc: "y[i] = fma(a, x[i], y[i])",
			body: one(func(g gen, x, s vecs) reg.VecVirtual { return g.fma(x[0], s[0], x[1]) })},
	}
}

// geluScale and geluCube are 2·√(2/π) and the cubic term.
const (
	geluScale = 1.5957691216057308
	geluCube  = 0.044715
)

// gate is sigmoid(geluScale·(x + geluCube·x³)), and x².
func (g gen) gate(x reg.VecVirtual) (s, x2 reg.VecVirtual) {
	x2 = g.mul(x, x)
	return g.sigmoid(g.mul(x, g.polynomial(x2, geluScale, geluScale*geluCube))), x2
}

// geluBackward is dy · (s + x·s·(1−s)·geluScale·(1 + 3·geluCube·x²)).
func geluBackward(g gen, x, _ vecs) reg.VecVirtual {
	s, x2 := g.gate(x[1])
	rest := g.sub(g.load(g.constant(1), nil), s)
	slope := g.mul(g.polynomial(x2, geluScale, 3*geluCube*geluScale), x[1])
	return g.mul(x[0], g.fma(g.mul(slope, rest), s, s))
}

func trainKernels() []rowKernel {
	return []rowKernel{
		{name: "swiglu", pairs: true, out: []string{"dst"}, in: []string{"gate", "up"}, doc: "dst[i] = gate[i] · sigmoid(gate[i]) · up[i]",
			body: one(func(g gen, x, _ vecs) reg.VecVirtual { return g.mul(g.mul(x[0], g.sigmoid(x[0])), x[1]) })},
		{name: "swigluBackward", out: []string{"dgate", "dup"}, in: []string{"dy", "gate", "up"},
			doc: "s = sigmoid(gate[i]); dup[i] = dy[i]·s·gate[i]; dgate[i] = dy[i]·s·up[i]·fma(gate[i], 1−s, 1)", body: swigluBackward},
		{name: "expScale", pairs: true, out: []string{"dst"}, in: []string{"x"}, scalars: []string{"shift", "factor"}, doc: "dst[i] = exp(x[i] − shift) · factor",
			body: one(func(g gen, x, s vecs) reg.VecVirtual { return g.mul(g.exp(g.sub(x[0], s[0])), s[1]) })},
		{name: "softmaxBackward", out: []string{"ds"}, in: []string{"p", "dp"}, scalars: []string{"delta", "factor"}, doc: "ds[i] = p[i] · (dp[i] − delta) · factor",
			body: one(func(g gen, x, s vecs) reg.VecVirtual { return g.mul(g.mul(x[0], g.sub(x[1], s[0])), s[1]) })},
		{name: "normScale", out: []string{"y"}, in: []string{"x", "w"}, scalars: []string{"rstd"}, doc: "y[i] = x[i] · rstd · w[i]",
			body: one(func(g gen, x, s vecs) reg.VecVirtual { return g.mul(g.mul(x[0], s[0]), x[1]) })},
		{name: "normBackward", out: []string{"dx"}, in: []string{"dy", "x", "w"}, scalars: []string{"rstd", "c"}, doc: "dx[i] = dy[i]·w[i]·rstd − x[i]·c",
			body: one(func(g gen, x, s vecs) reg.VecVirtual {
				return g.fnma(x[1], s[1], g.mul(g.mul(x[0], x[2]), s[0]))
			})},
		{name: "normBackwardAdd", out: []string{"dx"}, in: []string{"dy", "x", "w", "dx"}, scalars: []string{"rstd", "c"}, doc: "dx[i] += dy[i]·w[i]·rstd − x[i]·c",
			body: one(func(g gen, x, s vecs) reg.VecVirtual {
				return g.add(x[3], g.fnma(x[1], s[1], g.mul(g.mul(x[0], x[2]), s[0])))
			})},
		{name: "normWeights", out: []string{"dw"}, in: []string{"dy", "x", "dw"}, scalars: []string{"rstd"}, doc: "dw[i] = fma(dy[i]·x[i], rstd, dw[i])",
			body: one(func(g gen, x, s vecs) reg.VecVirtual { return g.fma(g.mul(x[0], x[1]), s[0], x[2]) })},
		{name: "turn", out: []string{"lo", "hi"}, in: []string{"lo", "hi", "cos", "sin"}, scalars: []string{"sign"},
			doc: "a, b, s = lo[i], hi[i], sign·sin[i]; lo[i] = a·cos[i] − b·s; hi[i] = b·cos[i] + a·s", body: turn},
		{name: "adamW", out: []string{"w", "m", "v"}, in: []string{"w", "m", "v", "grad"},
			scalars: []string{"scale", "beta1", "rest1", "beta2", "rest2", "root", "eps", "keep", "rate"},
			doc:     "g = grad[i]·scale; m[i] = fma(β₁, m[i], rest1·g); v[i] = fma(β₂, v[i], rest2·g²); w[i] = w[i]·keep − rate·m[i] ÷ fma(√v[i], root, eps)", body: adamW},
	}
}

func swigluBackward(g gen, x, _ vecs, _ reg.VecVirtual, _ *mask) vecs {
	s := g.sigmoid(x[1])
	ds := g.mul(x[0], s)
	one := g.load(g.constant(1), nil)
	slope := g.fma(x[1], g.sub(one, s), one)
	return vecs{g.mul(g.mul(ds, x[2]), slope), g.mul(ds, x[1])}
}

func turn(g gen, x, s vecs, _ reg.VecVirtual, _ *mask) vecs {
	sin := g.mul(x[3], s[0])
	lo := g.fnma(x[1], sin, g.mul(x[0], x[2]))
	return vecs{lo, g.fma(x[0], sin, g.mul(x[1], x[2]))}
}

func adamW(g gen, x, s vecs, _ reg.VecVirtual, _ *mask) vecs {
	grad := g.mul(x[3], s[0])
	m := g.fma(x[1], s[1], g.mul(grad, s[2]))
	v := g.fma(x[2], s[3], g.mul(g.mul(grad, grad), s[4]))
	root := g.vec()
	g.VSQRTPS(v, root)
	step := g.div(g.mul(m, s[8]), g.fma(root, s[5], s[6]))
	return vecs{g.sub(g.mul(x[0], s[7]), step), m, v}
}

func sumKernels() []rowKernel {
	x := []string{"x"}
	return []rowKernel{
		{name: "sum", in: x, sums: true, doc: "part[i%32] += x[i]",
			body: func(g gen, x, _ vecs, sum reg.VecVirtual, _ *mask) vecs { return vecs{g.add(sum, x[0])} }},
		{name: "dot", in: []string{"x", "y"}, sums: true, doc: "part[i%32] = fma(x[i], y[i], part[i%32])",
			body: func(g gen, x, _ vecs, sum reg.VecVirtual, _ *mask) vecs { return vecs{g.fma(x[0], x[1], sum)} }},
		{name: "triple", in: []string{"x", "y", "z"}, sums: true, doc: "part[i%32] = fma(x[i]·y[i], z[i], part[i%32])",
			body: func(g gen, x, _ vecs, sum reg.VecVirtual, _ *mask) vecs {
				return vecs{g.fma(g.mul(x[0], x[1]), x[2], sum)}
			}},
		{name: "max", in: x, sums: true, largest: true, start: math.Inf(-1), doc: "if x[i] > part[i%32] { part[i%32] = x[i] }", body: maximum},
		{name: "sumExp", pairs: true, in: x, sums: true, scalars: []string{"shift"}, doc: "part[i%32] += exp(x[i] − shift)",
			body: func(g gen, x, s vecs, sum reg.VecVirtual, m *mask) vecs {
				return vecs{g.add(sum, g.keep(g.exp(g.sub(x[0], s[0])), m, 0))}
			}},
		{name: "expSum", pairs: true, out: []string{"dst"}, in: x, sums: true, scalars: []string{"factor", "shift"}, doc: "dst[i] = exp(x[i]·factor − shift); part[i%32] += dst[i]",
			body: func(g gen, x, s vecs, sum reg.VecVirtual, m *mask) vecs {
				e := g.exp(g.sub(g.mul(x[0], s[0]), s[1]))
				return vecs{e, g.add(sum, g.keep(e, m, 0))}
			}},
	}
}

// maximum keeps the partial result where x is NaN: VMAXPS gives its second
// source then.
func maximum(g gen, x, _ vecs, sum reg.VecVirtual, m *mask) vecs {
	out := g.vec()
	g.VMAXPS(sum, g.keep(x[0], m, math.Inf(-1)), out)
	return vecs{out}
}

const squaresParams = "x *float32, part *[32]float64, blocks int"

// squares writes the sum of squares in float64. A square of a float32 is exact
// in float64, so fused or not gives the same bits.
func (g gen) squares() {
	g.Function(g.name("squares"))
	g.Doc(g.name("squares")+" computes", "", "\tfor i < 32·blocks { part[i%32] += float64(x[i])² }")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(" + squaresParams + ")")
	x, part, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("part"), g.GP64()), g.Load(g.Param("blocks"), g.GP64())
	sums := make([]reg.VecVirtual, 256/g.bytes())
	at := func(v int) Mem { return Mem{Base: part, Disp: v * g.bytes()} }
	for v := range sums {
		sums[v] = g.load(at(v), nil)
	}
	g.TESTQ(n, n)
	g.JZ(LabelRef("done"))
	g.Label("block")
	for v := range sums {
		wide := g.vec()
		g.VCVTPS2PD(Mem{Base: x, Disp: v * g.bytes() / 2}, wide)
		g.VFMADD231PD(wide, wide, sums[v])
	}
	g.ADDQ(Imm(128), x)
	g.SUBQ(Imm(1), n)
	g.JNZ(LabelRef("block"))
	g.Label("done")
	for v := range sums {
		g.save(sums[v], at(v), nil)
	}
	g.VZEROUPPER()
	g.RET()
}
