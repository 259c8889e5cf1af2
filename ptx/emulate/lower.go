package emulate

import (
	"heddle/ptx"
	"heddle/ptx/internal/isa"
)

// code is one step of the lowered program: an instruction, or a piece of a construct.
type code struct {
	f    func(*warp, *code)
	in   *ptx.Inst // nil for constructs
	d    int32     // first result
	a, b int32     // first two operands; c the third
	c    int32
	s    []int32 // all operands: registers, constants behind the registers of their class
	g    int32   // guard or condition; −1: none
	jump int32

	plain   bool      // neither guarded nor able to wait nor of interest to the latency model, and lanes need not be together
	aligned bool      // a whole warp must execute it together
	parts   *ptx.Line // end of a branch that may leave its lanes apart: where that stands
}

// lower flattens the tree. Immediates become constant registers, so that the inner loops know one case.
func (m *machine) lower() {
	m.const32, m.const64 = map[uint32]int32{}, map[uint64]int32{}
	m.block(m.entry.Body)
	m.code = append(m.code, code{f: exit, g: -1})
}

func (m *machine) block(b *ptx.Block) {
	for _, n := range b.Nodes {
		switch n := n.(type) {
		case *ptx.Inst:
			m.inst(n)
		case *ptx.If:
			i := m.emit(code{f: ifOp, g: int32(n.Pred.Reg())})
			m.block(n.Then)
			e := m.emit(code{f: elseOp, g: -1})
			m.code[i].jump = int32(e)
			m.block(n.Else)
			end := code{f: endOp, g: -1}
			if n.Parts() {
				end.parts = &n.Line
			}
			m.code[e].jump = int32(m.emit(end))
		case *ptx.Loop:
			m.emit(code{f: loopOp, g: -1})
			top := len(m.code)
			m.block(n.Cond)
			leave := code{f: testOp, g: int32(n.Pred.Reg())}
			if n.Parts() {
				leave.parts = &n.Line
			}
			test := m.emit(leave)
			m.block(n.Body)
			m.emit(code{f: backOp, g: -1, jump: int32(top)})
			m.code[test].jump = int32(len(m.code))
		}
	}
}

func (m *machine) emit(c code) int {
	m.code = append(m.code, c)
	return len(m.code) - 1
}

func (m *machine) inst(in *ptx.Inst) {
	c := code{f: table[in.Op], in: in, g: -1, d: -1, aligned: in.Op.Aligned() > ptx.Lane}
	if len(in.Dst) > 0 {
		c.d = int32(in.Dst[0].Reg())
		if in.Op == ptx.OpMov {
			c.f = [...]func(*warp, *code){ptx.P: movP, ptx.B32: mov, ptx.B64: mov64}[in.Dst[0].Class()]
		}
	}
	if in.Guard.Valid() {
		c.g = int32(in.Guard.Reg())
	}
	c.plain = c.g < 0 && !c.aligned && !in.Op.Blocks() && !in.Op.Has(isa.Sync) && !in.Op.Has(isa.Async) && in.Op != ptx.OpMbarTry && in.Op != ptx.OpNanosleep
	for _, s := range in.Src {
		c.s = append(c.s, m.source(s))
	}
	first := append(append([]int32{}, c.s...), -1, -1, -1)
	c.a, c.b, c.c = first[0], first[1], first[2]
	m.emit(c)
}

func (m *machine) source(o ptx.Operand) int32 {
	if !o.IsImm() || o.Class() == ptx.P {
		return int32(o.Reg())
	}
	if o.Class() == ptx.B64 {
		i, ok := m.const64[o.Imm()]
		if !ok {
			i = int32(len(m.const64))
			m.const64[o.Imm()] = i
		}
		return int32(m.entry.Counts[ptx.B64]) + i
	}
	x := uint32(o.Imm())
	i, ok := m.const32[x]
	if !ok {
		i = int32(len(m.const32))
		m.const32[x] = i
	}
	return int32(m.entry.Counts[ptx.B32]) + i
}
