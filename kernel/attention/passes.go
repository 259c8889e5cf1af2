package attention

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// place is which part of the work this CTA has: a block of tokens, a head, a sequence. Blocks run fastest, the last one first where latest is set: it has most to do.
func (b *builder) place(heads ptx.U32, latest bool) (first, head, sequence ptx.U32) {
	k := b.k
	rest := k.CTAIndex().Div(b.blocks)
	at := k.CTAIndex().Sub(rest.Mul(b.blocks))
	if latest {
		at = b.blocks.Sub(k.U32(1)).Sub(at)
	}
	sequence = rest.Div(heads)
	return at.Shl(5), rest.Sub(sequence.Mul(heads)), sequence
}

// forward keeps a running maximum and sum of each row (Dao 2023, algorithm 1).
//
// Barriers: named barrier 0 twice a block of keys. Shared memory: tiles Q, K, V, square P.
func (b *builder) forward() {
	k, s, c := b.k, b.s, b.c
	sq, sk, sv, sp := b.tile("Q"), b.tile("K"), b.tile("V"), b.square("P")
	first, head, n := b.place(s.g.Mul(s.r.U32), true)
	group := head.Div(s.r.U32)
	b.fetch(sq, b.queries(s.q.GAddr, n, head), first)
	o := b.zeros()
	var top, sum [2]*ptx.Var[ptx.F32]
	var from [2]ptx.U32
	for i := range top {
		top[i], sum[i] = ptx.NewVarAt(k, ptx.Lane, k.F32(hidden)), ptx.NewVarAt(k, ptx.Lane, k.F32(0))
		from[i] = b.start(n, first.Add(b.pair.Shl(1)).Plus(i))
	}
	k.For(k.U32(0), first.Plus(1), k.U32(block), func(at ptx.U32) {
		b.fetch(sk, b.keys(s.k.GAddr, n, group), at)
		b.fetch(sv, b.keys(s.v.GAddr, n, group), at)
		k.SyncCTA()
		x := b.products(sq, sk)
		for i := range x {
			most := top[i].Get()
			for j := range x[i] {
				seen := b.sees(first.Add(b.pair.Shl(1)).Plus(i), from[i], at.Add(b.col).Plus(8*j))
				x[i][j] = seen.SelectF32(x[i][j].Mul(k.F32(c.scale())), k.F32(hidden))
				most = most.Max(x[i][j])
			}
			for d := 4; d > 0; d /= 2 { // the eight threads of a row are neighbours
				most = most.Max(most.ShuffleXor(d))
			}
			shrink := top[i].Get().Sub(most).Exp2Approx()
			part := k.F32(0)
			for j := range x[i] {
				x[i][j] = x[i][j].Sub(most).Exp2Approx()
				part = part.Add(x[i][j])
			}
			sum[i].Set(sum[i].Get().FMA(shrink, part))
			top[i].Set(most)
			for _, v := range o[i] {
				v.Set(v.Get().Mul(shrink))
			}
		}
		b.lay(sp, x)
		k.WarpSync()
		b.add(o, sp, sv)
		k.SyncCTA()
	})
	var scale [2]ptx.F32
	lse := b.scalars(s.lse.GAddr, n, head)
	for i := range sum {
		all := sum[i].Get()
		for d := 4; d > 0; d /= 2 {
			all = all.Add(all.ShuffleXor(d))
		}
		scale[i] = k.F32(1).Div(all)
		token := first.Add(b.pair.Shl(1)).Plus(i)
		k.If(token.Lt(s.seq.U32).And(b.col.Eq(k.U32(0))), func() {
			lse.base.At(token.MulWide(lse.pitch.Shl(2))).StoreF32(top[i].Get().Add(all.Log2Approx()).Mul(k.F32(1 / log2e)))
		})
	}
	b.store(b.queries(s.o.GAddr, n, head), first, o, scale)
}

// hidden is the score of a token that is not seen. It is finite: where a row has seen nothing yet, its sums are of ones and go to 0 with the first token seen.
const hidden = -1e30

// start is the first token that a query of sequence n sees.
func (b *builder) start(n, query ptx.U32) ptx.U32 {
	if !b.c.Documents {
		return b.k.U32(0)
	}
	query = query.Min(b.s.seq.U32.Sub(b.k.U32(1)))
	at := n.Mul(b.s.seq.U32).Add(query)
	return query.Sub(kernel.At(b.k, num.F32, b.s.pos.GAddr, at).LoadF32().TruncU32())
}

// sees tells whether a query whose first token is from sees a key.
func (b *builder) sees(query, from, key ptx.U32) ptx.Pred {
	if !b.c.Documents {
		return key.Le(query)
	}
	return key.Le(query).And(key.Ge(from))
}

// probability is exp(a·s − lse) where key is seen by query, else 0; lse comes times log₂e.
func (b *builder) probability(s, lse ptx.F32, key, query, from ptx.U32) ptx.F32 {
	k := b.k
	seen := b.sees(query, from, key).And(query.Lt(b.s.seq.U32))
	return seen.SelectF32(s.Mul(k.F32(b.c.scale())).Sub(lse).Exp2Approx(), k.F32(0))
}

// scalar is token's value of a head's float32; of one outside the sequence, any.
func (b *builder) scalar(of heads, token ptx.U32) ptx.F32 {
	return of.base.At(token.Min(b.s.seq.U32.Sub(b.k.U32(1))).MulWide(of.pitch.Shl(2))).LoadF32()
}

// queryGrad walks the keys that its queries see.
//
// Barriers: named barrier 0 twice a block of keys. Shared memory: tiles Q, dO, K, V, square dS.
func (b *builder) queryGrad() {
	k, s := b.k, b.s
	sq, sdo, sk, sv, sp := b.tile("Q"), b.tile("dO"), b.tile("K"), b.tile("V"), b.square("dS")
	first, head, n := b.place(s.g.Mul(s.r.U32), true)
	group := head.Div(s.r.U32)
	b.fetch(sq, b.queries(s.q.GAddr, n, head), first)
	b.fetch(sdo, b.queries(s.do.GAddr, n, head), first)
	dq := b.zeros()
	var lse, delta [2]ptx.F32
	var start [2]ptx.U32
	for i := range lse {
		token := first.Add(b.pair.Shl(1)).Plus(i)
		start[i] = b.start(n, token)
		lse[i] = b.scalar(b.scalars(s.lse.GAddr, n, head), token).Mul(k.F32(log2e))
		delta[i] = b.scalar(b.scalars(s.delta.GAddr, n, head), token)
	}
	k.For(k.U32(0), first.Plus(1), k.U32(block), func(from ptx.U32) {
		b.fetch(sk, b.keys(s.k.GAddr, n, group), from)
		b.fetch(sv, b.keys(s.v.GAddr, n, group), from)
		k.SyncCTA()
		x, dp := b.products(sq, sk), b.products(sdo, sv)
		for i := range x {
			for j := range x[i] {
				p := b.probability(x[i][j], lse[i], from.Add(b.col).Plus(8*j), first.Add(b.pair.Shl(1)).Plus(i), start[i])
				x[i][j] = p.Mul(dp[i][j].Sub(delta[i]))
			}
		}
		b.lay(sp, x)
		k.WarpSync()
		b.add(dq, sp, sk)
		k.SyncCTA()
	})
	b.store(b.queries(s.dq.GAddr, n, head), first, dq, b.slope())
}

// slope is the factor 1/√D of the scores' gradients, a row.
func (b *builder) slope() [2]ptx.F32 {
	a := b.k.F32(float32(1 / math.Sqrt(float64(b.c.D))))
	return [2]ptx.F32{a, a}
}

// keyGrad walks the queries that see its keys, head by head.
//
// Barriers: named barrier 0 twice a block of queries. Shared memory: tiles K, V, Q, dO, squares P, dS, both transposed.
func (b *builder) keyGrad() {
	k, s := b.k, b.s
	sk, sv, sq, sdo, sp, sds := b.tile("K"), b.tile("V"), b.tile("Q"), b.tile("dO"), b.square("P"), b.square("dS")
	first, group, n := b.place(s.g.U32, false)
	b.fetch(sk, b.keys(s.k.GAddr, n, group), first)
	b.fetch(sv, b.keys(s.v.GAddr, n, group), first)
	dk, dv := b.zeros(), b.zeros()
	k.For(k.U32(0), s.r.U32, k.U32(1), func(r ptx.U32) {
		head := group.Mul(s.r.U32).Add(r)
		lses, deltas := b.scalars(s.lse.GAddr, n, head), b.scalars(s.delta.GAddr, n, head)
		k.For(first, s.seq.U32, k.U32(block), func(from ptx.U32) {
			b.fetch(sq, b.queries(s.q.GAddr, n, head), from)
			b.fetch(sdo, b.queries(s.do.GAddr, n, head), from)
			k.SyncCTA()
			p, ds := b.products(sk, sq), b.products(sv, sdo)
			for j := range 4 {
				query := from.Add(b.col).Plus(8 * j)
				start := b.start(n, query)
				lse, delta := b.scalar(lses, query).Mul(k.F32(log2e)), b.scalar(deltas, query)
				for i := range p {
					p[i][j] = b.probability(p[i][j], lse, first.Add(b.pair.Shl(1)).Plus(i), query, start)
					ds[i][j] = p[i][j].Mul(ds[i][j].Sub(delta))
				}
			}
			b.lay(sp, p)
			b.lay(sds, ds)
			k.WarpSync()
			b.add(dv, sp, sdo)
			b.add(dk, sds, sq)
			k.SyncCTA()
		})
	})
	one := [2]ptx.F32{k.F32(1), k.F32(1)}
	b.store(b.keys(s.dv.GAddr, n, group), first, dv, one)
	b.store(b.keys(s.dk.GAddr, n, group), first, dk, b.slope())
}

// Operands are one launch's tensors; a pass uses those of its formula.
type Operands struct {
	Q, K, V, O, LSE, DO, Delta, DQ, DK, DV kernel.Place
	Pos                                    kernel.Place // of Documents: [B, S] float32
	B, S, G, R                             int
}

// Launch describes the launch.
func (s *Simple) Launch(o Operands) (ptx.Launch, *ptx.Args, error) {
	c := s.Config
	if err := refuse(s.Entry.Name, o, c.D); err != nil {
		return ptx.Launch{}, nil, err
	}
	a := s.Entry.NewArgs()
	used := []operand{{s.q, o.Q, c.Wide}, {s.k, o.K, c.Wide}, {s.v, o.V, c.Wide}, {s.lse, o.LSE, false}}
	if c.Documents {
		used = append(used, operand{s.pos, o.Pos, false})
	}
	heads := o.G * o.R
	switch c.Pass {
	case Forward:
		used = append(used, operand{s.o, o.O, c.Wide})
	case QueryGrad:
		used = append(used, operand{s.do, o.DO, c.Wide}, operand{s.delta, o.Delta, false}, operand{s.dq, o.DQ, c.Wide})
	case KeyGrad:
		used = append(used, operand{s.do, o.DO, c.Wide}, operand{s.delta, o.Delta, false}, operand{s.dk, o.DK, c.Wide}, operand{s.dv, o.DV, c.Wide})
		heads = o.G
	}
	for _, u := range used {
		if u.wide && !u.at.Aligned() {
			return ptx.Launch{}, nil, fmt.Errorf("attention: %s: a tensor starts at byte %d, want a multiple of 16", s.Entry.Name, u.at.Offset)
		}
		u.at.Put(a, u.to)
	}
	s.seq.Put(a, uint32(o.S))
	s.g.Put(a, uint32(o.G))
	s.r.Put(a, uint32(o.R))
	return ptx.Launch{Entry: s.Entry.Name, Grid: ptx.Dim3{X: (o.S + block - 1) / block * heads * o.B}}, a, nil
}

// refuse says which sizes do not fit 32-bit arithmetic.
func refuse(name string, o Operands, d int) error {
	if min(o.B, o.S, o.G, o.R) < 1 || o.B*o.S*o.G*o.R >= 1<<31 || o.S*o.G*o.R*d >= 1<<29 {
		return fmt.Errorf("attention: %s of %d sequences of %d tokens, %d × %d heads, want positive sizes, a sequence below 2²⁹ elements", name, o.B, o.S, o.G, o.R)
	}
	return nil
}

type operand struct {
	to   ptx.ParamPtr
	at   kernel.Place
	wide bool // read by vectors
}

// Module is the kernel alone.
func (s *Simple) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{s.Entry}} }
