package attention

import (
	"math"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// alongD is a tile as an operand whose K is the head's dim; alongTokens one whose K are its tokens. Both read the same bytes.
func (b *fastBuilder) alongD(at ptx.SAddr) ptx.Desc { return b.k.Desc(at, ptx.KMajor(ptx.Swizzle128)) }

func (b *fastBuilder) alongTokens(at ptx.SAddr, rows int) ptx.Desc {
	return b.k.Desc(at, ptx.MNMajor(ptx.Swizzle128, rows))
}

// scores issues acc = x·yᵀ over the head's dim, x and y tiles of so many rows; x begins at one of its rows of 64.
func (b *fastBuilder) scores(acc *ptx.Acc, x, y ptx.Desc, xRows, yRows int) {
	for s := range b.c.D / 16 {
		step := func(rows int) int { return (s/4*rows*128 + s%4*32) / 16 }
		acc.MMABF16(x.Step(step(xRows)), y.Step(step(yRows)), b.k.Bool(s > 0), 0, 0)
	}
}

// weighted issues acc (+)= p·y over the tokens of the tile y, p in registers.
func (b *fastBuilder) weighted(acc *ptx.Acc, p [][4]ptx.U32, y ptx.Desc, add ptx.Pred) {
	for s, a := range p {
		more := b.k.Bool(true)
		if s == 0 {
			more = add
		}
		acc.MMABF16R(a, y.Step(s*16*128/16), more, 1)
	}
}

// fragments rounds a consumer's 64 × n elements to bf16, as operand A of products over n.
func fragments(x []ptx.F32) (p [][4]ptx.U32) {
	for s := range len(x) / 8 {
		var a [4]ptx.U32
		for h := range 2 {
			for g := range 2 {
				at := 4*(2*s+h) + 2*g
				a[2*h+g] = x[at+1].PackBF16(x[at]).Bits()
			}
		}
		p = append(p, a)
	}
	return p
}

// consumer is one of the two warpgroups.
func (b *fastBuilder) consumer() {
	group := b.k.WarpgroupIndex().Sub(b.k.U32(1))
	b.own.Wait(b.k.U32(0))
	[]func(group ptx.U32){b.fastForward, b.fastQueryGrad, b.fastKeyGrad}[b.c.Pass](group)
}

// row is the thread's first row of the consumer's 64; its other one is 8 further. column is its first column of every eight.
func (b *fastBuilder) row() ptx.U32 { return b.k.WarpInGroup().Shl(4).Add(b.k.Lane().Shr(2)) }

func (b *fastBuilder) column() ptx.U32 { return b.k.Lane().And(b.k.U32(3)).Shl(1) }

// release lets go of a stage: one thread for the consumer, whose products it has waited for; where the threads read the stage themselves, one for each warp.
func (b *fastBuilder) release(r kernel.Ring, slot ptx.U32) {
	k := b.k
	if b.c.Pass == KeyGrad {
		k.WarpSync()
		k.When(k.Lane().Eq(k.U32(0)), func() { r.Empty.Index(slot).Arrive() })
		return
	}
	k.When(k.WarpInGroup().Shl(5).Add(k.Lane()).Eq(k.U32(0)), func() { r.Empty.Index(slot).Arrive() })
}

func (c FastConfig) simple() Config { return Config{D: c.D} }

func (b *fastBuilder) fastForward(group ptx.U32) {
	k, f, c := b.k, b.f, b.c
	const walk = 128
	q := b.alongD(b.mine[0].At(group.Times(half * 128)))
	top := b.first.Add(group.Times(half)) // the consumer's first query
	query := top.Add(b.row())
	scale := k.F32(c.simple().scale())
	scored, part := k.NewAcc(walk), k.NewAcc(c.D)
	o := make([]*ptx.Var[ptx.F32], c.D/2)
	for i := range o {
		o[i] = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	}
	var most, sum [2]*ptx.Var[ptx.F32]
	for g := range most {
		most[g], sum[g] = ptx.NewVarAt(k, ptx.Lane, k.F32(hidden)), ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	}
	keys, values := b.ring[0].Consumer(), b.ring[1].Consumer()
	k.For(k.U32(0), b.end(), k.U32(walk), func(from ptx.U32) {
		keys.WaitFull()
		slot := keys.Slot()
		k.WgmmaFence()
		b.scores(scored, q, b.alongD(b.walked[0]).Add(slot.Times(c.bytes(walk)/16).U64()), rowsOfCTA, walk)
		k.WgmmaCommit()
		k.WgmmaWait(0)
		b.release(b.ring[0], slot)
		keys.Advance()
		x := make([]*ptx.Var[ptx.F32], scored.Len())
		for i := range x {
			x[i] = ptx.NewVarAt(k, ptx.Lane, scored.F32(i))
		}
		k.If(from.Plus(walk-1).Gt(top), func() { // some are not seen by all queries of the consumer
			for i, v := range x {
				key := from.Add(b.column()).Plus(i/4*8 + i%2)
				v.Set(key.Le(query.Plus(i/2%2*8)).SelectF32(v.Get(), k.F32(hidden)))
			}
		})
		var shrink [2]ptx.F32
		p := make([]ptx.F32, len(x))
		for g := range 2 {
			m := k.F32(hidden)
			for i := range x {
				if i/2%2 == g {
					m = m.Max(x[i].Get())
				}
			}
			for d := 2; d > 0; d /= 2 { // the four threads of a row are neighbours
				m = m.Max(m.ShuffleXor(d))
			}
			m = m.Mul(scale).Max(most[g].Get())
			shrink[g] = most[g].Get().Sub(m).Exp2Approx()
			most[g].Set(m)
			all := sum[g].Get().Mul(shrink[g])
			for i := range x {
				if i/2%2 == g {
					p[i] = x[i].Get().FMA(scale, m.Neg()).Exp2Approx()
					all = all.Add(p[i])
				}
			}
			sum[g].Set(all)
		}
		a := fragments(p)
		values.WaitFull()
		slot = values.Slot()
		k.WgmmaFence()
		b.weighted(part, a, b.alongTokens(b.walked[1], walk).Add(slot.Times(c.bytes(walk)/16).U64()), k.Bool(false))
		k.WgmmaCommit()
		k.WgmmaWait(0)
		b.release(b.ring[1], slot)
		values.Advance()
		for i := range o {
			o[i].Set(o[i].Get().FMA(shrink[i/2%2], part.F32(i)))
		}
	})
	out := make([]ptx.F32, len(o))
	heads := f.g.Mul(f.r.U32)
	for g := range 2 {
		all := sum[g].Get()
		for d := 2; d > 0; d /= 2 {
			all = all.Add(all.ShuffleXor(d))
		}
		token := query.Plus(8 * g)
		k.If(token.Lt(f.tokens.U32).And(b.column().Eq(k.U32(0))), func() {
			at := b.base.Add(token).Mul(heads).Add(b.head)
			kernel.At(k, num.F32, f.lse.p.GAddr, at).StoreF32(most[g].Get().Add(all.Log2Approx()).Mul(k.F32(1 / log2e)))
		})
		scale := k.F32(1).Div(all)
		for i := range out {
			if i/2%2 == g {
				out[i] = o[i].Get().Mul(scale)
			}
		}
	}
	b.write(f.o.p, out, query, heads)
}

// write stores the thread's elements of the consumer's 64 rows.
func (b *fastBuilder) write(to ptx.ParamPtr, x []ptx.F32, token, heads ptx.U32) {
	k, c := b.k, b.c
	for g := range 2 {
		row := token.Plus(8 * g)
		k.If(row.Lt(b.f.tokens.U32), func() {
			line := to.At(b.base.Add(row).Mul(heads).Add(b.head).MulWide(k.U32(2 * c.D))).At(b.column().MulWide(k.U32(2)))
			for i := range x {
				if i/2%2 == g && i%2 == 0 {
					line.Plus(i / 4 * 16).StoreU32(x[i+1].PackBF16(x[i]).Bits())
				}
			}
		})
	}
}

// slopeOf is the thread's gradient of a score: p·(dp − delta), and p, 0 where the key is not seen.
func (b *fastBuilder) slopeOf(score, dp, lse, delta ptx.F32, seen ptx.Pred) (p, ds ptx.F32) {
	k := b.k
	p = seen.SelectF32(score.FMA(k.F32(b.c.simple().scale()), lse.Neg()).Exp2Approx(), k.F32(0))
	return p, p.Mul(dp.Sub(delta))
}

func (b *fastBuilder) fastQueryGrad(group ptx.U32) {
	k, f, c := b.k, b.f, b.c
	const walk = 64
	q, do := b.alongD(b.mine[0].At(group.Times(half*128))), b.alongD(b.mine[1].At(group.Times(half*128)))
	top := b.first.Add(group.Times(half))
	query := top.Add(b.row())
	heads := f.g.Mul(f.r.U32)
	var lse, delta [2]ptx.F32
	for g := range 2 {
		at := b.base.Add(query.Plus(8 * g).Min(f.tokens.Sub(k.U32(1)))).Mul(heads).Add(b.head)
		lse[g] = kernel.At(k, num.F32, f.lse.p.GAddr, at).LoadF32().Mul(k.F32(log2e))
		delta[g] = kernel.At(k, num.F32, f.delta.p.GAddr, at).LoadF32()
	}
	scored, dp, dq := k.NewAcc(walk), k.NewAcc(walk), k.NewAcc(c.D)
	at := b.ring[0].Consumer()
	again := ptx.NewVar(k, k.U32(0))
	k.For(k.U32(0), b.end(), k.U32(walk), func(from ptx.U32) {
		at.WaitFull()
		slot := at.Slot()
		stage := slot.Times(c.bytes(walk) / 16).U64()
		k.WgmmaFence()
		b.scores(scored, q, b.alongD(b.walked[0]).Add(stage), rowsOfCTA, walk)
		b.scores(dp, do, b.alongD(b.walked[1]).Add(stage), rowsOfCTA, walk)
		k.WgmmaCommit()
		k.WgmmaWait(0)
		ds := make([]ptx.F32, scored.Len())
		for i := range ds {
			g := i / 2 % 2
			seen := from.Add(b.column()).Plus(i/4*8 + i%2).Le(query.Plus(8 * g))
			_, ds[i] = b.slopeOf(scored.F32(i), dp.F32(i), lse[g], delta[g], seen)
		}
		a := fragments(ds)
		k.WgmmaFence()
		b.weighted(dq, a, b.alongTokens(b.walked[0], walk).Add(stage), again.Get().Ne(k.U32(0)))
		k.WgmmaCommit()
		k.WgmmaWait(0)
		again.Set(k.U32(1))
		b.release(b.ring[0], slot)
		at.Advance()
	})
	b.write(f.dq.p, b.scaled(dq, 1/math.Sqrt(float64(c.D))), query, heads)
}

// scaled are the elements of an accumulator times a factor.
func (b *fastBuilder) scaled(acc *ptx.Acc, by float64) []ptx.F32 {
	x := make([]ptx.F32, acc.Len())
	for i := range x {
		x[i] = acc.F32(i).Mul(b.k.F32(float32(by)))
	}
	return x
}

func (b *fastBuilder) fastKeyGrad(group ptx.U32) {
	k, f, c := b.k, b.f, b.c
	const walk = 64
	keys, values := b.alongD(b.mine[0].At(group.Times(half*128))), b.alongD(b.mine[1].At(group.Times(half*128)))
	key := b.first.Add(group.Times(half)).Add(b.row())
	scored, dp, dk, dv := k.NewAcc(walk), k.NewAcc(walk), k.NewAcc(c.D), k.NewAcc(c.D)
	at := b.ring[0].Consumer()
	again := ptx.NewVar(k, k.U32(0))
	k.For(k.U32(0), f.r.U32, k.U32(1), func(ptx.U32) {
		k.For(b.first, f.tokens.U32, k.U32(walk), func(from ptx.U32) {
			at.WaitFull()
			slot := at.Slot()
			stage := slot.Times(c.bytes(walk) / 16).U64()
			k.WgmmaFence()
			b.scores(scored, keys, b.alongD(b.walked[0]).Add(stage), rowsOfCTA, walk)
			b.scores(dp, values, b.alongD(b.walked[1]).Add(stage), rowsOfCTA, walk)
			k.WgmmaCommit()
			k.WgmmaWait(0)
			p, ds := make([]ptx.F32, scored.Len()), make([]ptx.F32, scored.Len())
			scalars := b.scalars.At(slot.Times(8 * half)).At(b.column().Shl(2))
			for j := range walk / 8 {
				for e := range 2 {
					place := scalars.Plus(32*j + 4*e)
					lse, delta := place.LoadF32(), place.Plus(4*half).LoadF32()
					query := from.Add(b.column()).Plus(8*j + e)
					for g := range 2 {
						i := 4*j + 2*g + e
						seen := key.Plus(8 * g).Le(query).And(query.Lt(f.tokens.U32))
						p[i], ds[i] = b.slopeOf(scored.F32(i), dp.F32(i), lse, delta, seen)
					}
				}
			}
			add := again.Get().Ne(k.U32(0))
			pa, dsa := fragments(p), fragments(ds)
			k.WgmmaFence()
			b.weighted(dv, pa, b.alongTokens(b.walked[1], walk).Add(stage), add)
			b.weighted(dk, dsa, b.alongTokens(b.walked[0], walk).Add(stage), add)
			k.WgmmaCommit()
			k.WgmmaWait(0)
			again.Set(k.U32(1))
			b.release(b.ring[0], slot)
			at.Advance()
		})
	})
	b.write(f.dv.p, b.scaled(dv, 1), key, f.g.U32)
	b.write(f.dk.p, b.scaled(dk, 1/math.Sqrt(float64(c.D))), key, f.g.U32)
}

// Launch describes the launch. All tensors start at multiples of 16 bytes.
func (f *Fast) Launch(o Operands) (ptx.Launch, *ptx.Args, error) {
	c, heads := f.Config, o.G*o.R
	if err := refuse(f.Entry.Name, o, c.D); err != nil {
		return ptx.Launch{}, nil, err
	}
	a := f.Entry.NewArgs()
	own, walk := rowsOfCTA, c.walk()
	boxQ, boxK := own, walk
	rows := heads
	if c.Pass == KeyGrad {
		boxQ, boxK, rows = walk, own, o.G
	}
	put := func(to ptx.ParamMap, at kernel.Place, heads, box int) {
		line := c.D * heads * 2
		to.Put(a, &ptx.Map{Type: num.BF16, Buffer: at.Buffer, Offset: at.Offset, Dims: []int{c.D, o.B * o.S, heads}, Strides: []int{line, c.D * 2},
			Box: []int{slab, box, 1}, Swizzle: ptx.Swizzle128, L2: ptx.L2128B})
	}
	put(f.q.m, o.Q, heads, boxQ)
	put(f.k.m, o.K, o.G, boxK)
	put(f.v.m, o.V, o.G, boxK)
	o.LSE.Put(a, f.lse.p)
	if c.Pass == Forward {
		o.O.Put(a, f.o.p)
	} else {
		put(f.do.m, o.DO, heads, boxQ)
		o.Delta.Put(a, f.delta.p)
	}
	switch c.Pass {
	case QueryGrad:
		o.DQ.Put(a, f.dq.p)
	case KeyGrad:
		o.DK.Put(a, f.dk.p)
		o.DV.Put(a, f.dv.p)
	}
	f.tokens.Put(a, uint32(o.S))
	f.g.Put(a, uint32(o.G))
	f.r.Put(a, uint32(o.R))
	return ptx.Launch{Entry: f.Entry.Name, Grid: ptx.Dim3{X: (o.S + rowsOfCTA - 1) / rowsOfCTA * rows * o.B}}, a, nil
}

// Module is the kernel alone.
func (f *Fast) Module() *ptx.Module { return &ptx.Module{Entries: []*ptx.Entry{f.Entry}} }
