package main

import (
	"fmt"
	"math"
	"slices"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mask says which elements of a vector count; nil is all of them.
type mask struct {
	ymm reg.VecVirtual // all bits of a lane
	k   reg.OpmaskVirtual
}

func (g gen) lanes() int { return g.bytes() / 4 }

// constant is a vector of equal floats in read-only memory.
func (g gen) constant(x float64) Mem { return g.pattern(math.Float32bits(float32(x))) }

// pattern is a vector of equal words in read-only memory; g.words keeps those
// already laid down, since both instruction sets share them.
func (g gen) pattern(word uint32) Mem {
	if m, ok := g.words[word]; ok {
		return m
	}
	m := g.StaticGlobal(fmt.Sprintf("all%08x", word))
	g.DataAttributes(rodata)
	for i := range 16 {
		g.AddDatum(4*i, U32(word))
	}
	g.words[word] = m
	return m
}

// maskTable is eight ones, then eight zeros: from 4·(8−n) on it begins with n ones.
func (g gen) maskTable() Mem {
	if m, ok := g.words[tableKey]; ok {
		return m
	}
	m := g.StaticGlobal("firstLanes")
	g.DataAttributes(rodata)
	for i := range 16 {
		word := uint32(0)
		if i < 8 {
			word = math.MaxUint32
		}
		g.AddDatum(4*i, U32(word))
	}
	g.words[tableKey] = m
	return m
}

// first is the mask of the first n < lanes elements.
func (g gen) first(n reg.Register) *mask {
	if g.zmm {
		bits, ones, k := g.GP32(), g.GP32(), g.K()
		g.MOVL(I32(-1), ones)
		g.BZHIL(n.(reg.GPVirtual).As32(), ones, bits)
		g.KMOVW(bits, k)
		return &mask{k: k}
	}
	table, back, y := g.GP64(), g.GP64(), g.YMM()
	g.LEAQ(g.maskTable().Offset(32), table)
	g.MOVQ(n, back)
	g.NEGQ(back)
	g.VMOVUPS(Mem{Base: table, Index: back, Scale: 4}, y)
	return &mask{ymm: y}
}

// load reads a vector; elements beyond the mask are not touched and count 0.
func (g gen) load(from Mem, m *mask) reg.VecVirtual {
	x := g.vec()
	switch {
	case m == nil:
		g.VMOVUPS(from, x)
	case g.zmm:
		g.VMOVUPS_Z(from, m.k, x)
	default:
		g.VMASKMOVPS(from, m.ymm, x)
	}
	return x
}

func (g gen) save(x reg.VecVirtual, to Mem, m *mask) {
	switch {
	case m == nil:
		g.VMOVUPS(x, to)
	case g.zmm:
		g.VMOVUPS(x, m.k, to)
	default:
		g.VMASKMOVPS(x, m.ymm, to)
	}
}

// keep is x with the elements beyond the mask replaced by fill.
func (g gen) keep(x reg.VecVirtual, m *mask, fill float64) reg.VecVirtual {
	if m == nil {
		return x
	}
	other := g.load(g.constant(fill), nil)
	return g.choose(m, x, other)
}

// choose is yes where the mask is set, else no.
func (g gen) choose(m *mask, yes, no reg.VecVirtual) reg.VecVirtual {
	out := g.vec()
	if g.zmm {
		g.VBLENDMPS(yes, no, m.k, out)
	} else {
		g.VBLENDVPS(m.ymm, yes, no, out)
	}
	return out
}

// Predicates of VCMPPS that are quiet on NaN.
const (
	lessThan    = 0x11
	equal       = 0x00
	notLessThan = 0x15 // or NaN
)

// compare is x ? y.
func (g gen) compare(predicate uint64, x reg.VecVirtual, y Mem) *mask {
	if g.zmm {
		k := g.K()
		g.VCMPPS(Imm(predicate), y, x, k)
		return &mask{k: k}
	}
	out := g.YMM()
	g.VCMPPS(Imm(predicate), y, x, out)
	return &mask{ymm: out}
}

func (g gen) and(x reg.VecVirtual, y Mem) reg.VecVirtual {
	out := g.vec()
	if g.zmm {
		g.VPANDD(y, x, out)
	} else {
		g.VPAND(y, x, out)
	}
	return out
}

func (g gen) or(x reg.VecVirtual, y Op) reg.VecVirtual {
	out := g.vec()
	if g.zmm {
		g.VPORD(y, x, out)
	} else {
		g.VPOR(y, x, out)
	}
	return out
}

// Arithmetic in the order it is written: sub(x, y) is x − y. y may lie in memory.

func (g gen) add(x reg.VecVirtual, y Op) reg.VecVirtual {
	out := g.vec()
	g.VADDPS(y, x, out)
	return out
}

func (g gen) sub(x reg.VecVirtual, y Op) reg.VecVirtual {
	out := g.vec()
	g.VSUBPS(y, x, out)
	return out
}

func (g gen) mul(x reg.VecVirtual, y Op) reg.VecVirtual {
	out := g.vec()
	g.VMULPS(y, x, out)
	return out
}

func (g gen) div(x reg.VecVirtual, y Op) reg.VecVirtual {
	out := g.vec()
	g.VDIVPS(y, x, out)
	return out
}

// fma is x·y + z.
func (g gen) fma(x reg.VecVirtual, y reg.VecVirtual, z Op) reg.VecVirtual {
	out := g.vec()
	g.VMOVUPS(x, out)
	g.VFMADD213PS(z, y, out)
	return out
}

// fnma is z − x·y.
func (g gen) fnma(x reg.VecVirtual, y Op, z reg.VecVirtual) reg.VecVirtual {
	out := g.vec()
	g.VMOVUPS(z, out)
	g.VFNMADD231PS(y, x, out)
	return out
}

// polynomial is c[0] + c[1]·x + ….
func (g gen) polynomial(x reg.VecVirtual, c ...float64) reg.VecVirtual {
	p := g.load(g.constant(c[len(c)-1]), nil)
	for i := len(c) - 2; i >= 0; i-- {
		g.VFMADD213PS(g.constant(c[i]), x, p)
	}
	return p
}

// broadcast is a vector of a scalar argument.
func (g gen) broadcast(param string) reg.VecVirtual {
	b, err := g.Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	x := g.vec()
	g.VBROADCASTSS(b.Addr, x)
	return x
}

// each walks n elements of the rows at ptrs in blocks of 32, then vector by
// vector. body gets the place of a vector in its block, its offset and its mask.
func (g gen) each(ptrs []reg.Register, pairs bool, body func(v, disp int, m *mask)) {
	n := g.Load(g.Param("n"), g.GP64())
	vectors := 32 / g.lanes()
	advance := func(bytes int) {
		for _, p := range ptrs {
			g.ADDQ(Imm(uint64(bytes)), p)
		}
	}
	g.SUBQ(Imm(32), n)
	g.JLT(LabelRef("rest"))
	g.Label("block")
	for v := 0; v < vectors; v += 2 {
		first, second := func() { body(v, v*g.bytes(), nil) }, func() { body(v+1, (v+1)*g.bytes(), nil) }
		if pairs {
			g.interleave(first, second)
		} else {
			first()
			second()
		}
	}
	advance(128)
	g.SUBQ(Imm(32), n)
	g.JGE(LabelRef("block"))
	g.Label("rest")
	g.ADDQ(Imm(32), n)
	for v := range vectors {
		part := fmt.Sprintf("part%d", v)
		g.CMPQ(n, Imm(uint64(g.lanes())))
		g.JLT(LabelRef(part))
		if v == vectors-1 {
			break // fewer than 32 are left, so the last is never whole
		}
		body(v, 0, nil)
		advance(g.bytes())
		g.SUBQ(Imm(uint64(g.lanes())), n)
	}
	for v := range vectors {
		g.Label(fmt.Sprintf("part%d", v))
		g.TESTQ(n, n)
		g.JZ(LabelRef("done"))
		body(v, 0, g.first(n))
		if v < vectors-1 {
			g.JMP(LabelRef("done"))
		}
	}
	g.Label("done")
}

// interleave writes the instructions of two independent pieces in turns: the
// processor looks ahead by fewer instructions than one exponential has.
func (g gen) interleave(first, second func()) {
	f, err := g.Result()
	if err != nil {
		return // reported once all is written
	}
	fns := f.Functions()
	fn := fns[len(fns)-1]
	start := len(fn.Nodes)
	first()
	mid := len(fn.Nodes)
	second()
	a, b := slices.Clone(fn.Nodes[start:mid]), slices.Clone(fn.Nodes[mid:])
	nodes := fn.Nodes[:start]
	for i := range max(len(a), len(b)) {
		nodes = append(append(nodes, a[min(i, len(a)):min(i+1, len(a))]...), b[min(i, len(b)):min(i+1, len(b))]...)
	}
	fn.Nodes = nodes
}
