package gemm

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Plain multiplies matrices of any size on the CUDA cores, in float32 without tf32: C = op(A)·op(B), or C += op(A)·op(B). It is the yardstick for the kernels on
// tensor cores, and does what TMA cannot: rows that are no multiples of 16 bytes.
//
//	for k := range K { acc[m,n] = fma(op(A)[m,k], op(B)[k,n], acc[m,n]) }
//
// Every element sums over k in order, so C[m,:] does not depend on M.
type Plain struct {
	Config PlainConfig
	Entry  *ptx.Entry

	a, b, c ptx.ParamPtr
	m, n, k ptx.ParamU32
}

// PlainConfig chooses the kernel. In is the type of A and B.
type PlainConfig struct {
	In, Out        num.DType
	TransA, TransB bool // A is stored [K, M], B is stored [N, K]
	Add            bool
}

const (
	plainTile    = 64 // rows and columns of a CTA
	plainDepth   = 16
	plainThreads = 256           // each 4 × 4 elements
	plainPitch   = plainTile + 4 // floats from one k to the next in shared memory
)

// NewPlain builds the kernel. Shared memory: a tile of A and of B, k by k. Barriers: named barrier 0 twice a step.
func NewPlain(c PlainConfig) (*Plain, error) {
	name := fmt.Sprintf("plain_%v_%v", c.In, c.Out)
	for _, o := range []struct {
		on   bool
		word string
	}{{c.TransA, "_ta"}, {c.TransB, "_tb"}, {c.Add, "_add"}} {
		if o.on {
			name += o.word
		}
	}
	k := ptx.New(name, plainThreads, 1)
	p := &Plain{Config: c, a: k.ParamPtr("a"), b: k.ParamPtr("b"), c: k.ParamPtr("c"), m: k.ParamU32("m"), n: k.ParamU32("n"), k: k.ParamU32("k")}
	sa, sb := k.Shared("A", 4*plainDepth*plainPitch, 16).Addr(), k.Shared("B", 4*plainDepth*plainPitch, 16).Addr()
	tilesN := p.n.Plus(plainTile - 1).Shr(6)
	row := k.CTAIndex().Div(tilesN)
	col := k.CTAIndex().Sub(row.Mul(tilesN)).Times(plainTile)
	row = row.Times(plainTile)
	var acc [4][4]*ptx.Var[ptx.F32]
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
		}
	}
	ty, tx := k.Tid().Shr(4), k.Tid().And(k.U32(15))
	k.For(k.U32(0), p.k.U32, k.U32(plainDepth), func(depth ptx.U32) {
		p.stage(k, sa, p.a.GAddr, side{row, p.m.U32, depth, !c.TransA})
		p.stage(k, sb, p.b.GAddr, side{col, p.n.U32, depth, c.TransB})
		k.SyncCTA()
		for kk := range plainDepth {
			x, y := sa.At(ty.Shl(4)).Plus(4*kk*plainPitch).LoadF32x4(), sb.At(tx.Shl(4)).Plus(4*kk*plainPitch).LoadF32x4()
			for i := range x {
				for j := range y {
					acc[i][j].Set(x[i].FMA(y[j], acc[i][j].Get()))
				}
			}
		}
		k.SyncCTA()
	})
	for i := range acc {
		m := row.Add(ty.Shl(2)).Plus(i)
		line := p.c.At(m.MulWide(p.n.Times(c.Out.Size())))
		for j := range acc[i] {
			n := col.Add(tx.Shl(2)).Plus(j)
			k.If(m.Lt(p.m.U32).And(n.Lt(p.n.U32)), func() {
				at, v := kernel.At(k, c.Out, line, n), acc[i][j].Get()
				if c.Add {
					v = v.Add(kernel.LoadSpan(k, c.Out, at, 1)[0])
				}
				kernel.StoreSpan(k, c.Out, at, []ptx.F32{v})
			})
		}
	}
	var err error
	p.Entry, err = k.Build()
	return p, err
}

// side is one operand's part of a step: rows of op(A), or columns of op(B), from first on, of count; k from depth on, contiguous or not.
type side struct {
	first, count, depth ptx.U32
	contiguous          bool
}

// stage brings 64 rows × 16 k of an operand to shared memory, [k][row]; what is outside becomes 0. Neighbouring threads read neighbouring elements.
func (p *Plain) stage(k *ptx.Builder, to ptx.SAddr, from ptx.GAddr, s side) {
	tid, size := k.Tid(), p.Config.In.Size()
	for i := range plainTile * plainDepth / plainThreads {
		row, deep := tid.Shr(4).Plus(16*i), tid.And(k.U32(15))
		if !s.contiguous {
			row, deep = tid.And(k.U32(63)), tid.Shr(6).Plus(4*i)
		}
		r, d := s.first.Add(row), s.depth.Add(deep)
		in := r.Lt(s.count).And(d.Lt(p.k.U32))
		r, d = in.SelectU32(r, k.U32(0)), in.SelectU32(d, k.U32(0))
		line, pitch, at := r, p.k.U32, d
		if !s.contiguous {
			line, pitch, at = d, s.count, r
		}
		x := kernel.LoadSpan(k, p.Config.In, kernel.At(k, p.Config.In, from.At(line.MulWide(pitch.Times(size))), at), 1)[0]
		to.At(deep.Times(4 * plainPitch).Add(row.Shl(2))).StoreF32(in.SelectF32(x, k.F32(0)))
	}
}

// PlainOperands are packed matrices: A [M, K] or [K, M], B [K, N] or [N, K], C [M, N].
type PlainOperands struct {
	A, B, C kernel.Place
	M, N, K int
}

// Launch describes the launch.
func (p *Plain) Launch(o PlainOperands) (ptx.Launch, *ptx.Args, error) {
	tiles := ceil(o.M, plainTile) * ceil(o.N, plainTile)
	if o.M < 1 || o.N < 1 || o.K < 1 || max(o.M, o.N, o.K) >= 1<<29 || tiles >= 1<<31 {
		return ptx.Launch{}, nil, fmt.Errorf("gemm: %s of %d×%d×%d, want positive sizes below 2²⁹", p.Entry.Name, o.M, o.N, o.K)
	}
	a := p.Entry.NewArgs()
	o.A.Put(a, p.a)
	o.B.Put(a, p.b)
	o.C.Put(a, p.c)
	p.m.Put(a, uint32(o.M))
	p.n.Put(a, uint32(o.N))
	p.k.Put(a, uint32(o.K))
	return ptx.Launch{Entry: p.Entry.Name, Grid: ptx.Dim3{X: tiles}}, a, nil
}

// Module is the kernel alone.
func (p *Plain) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{p.Entry}} }
