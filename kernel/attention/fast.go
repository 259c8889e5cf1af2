package attention

import (
	"fmt"

	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// Fast is Simple's formulas on the tensor cores, for bf16 heads of 64 or 128: wgmma over tiles that TMA brings, one producer and two consumer warpgroups. Every sum
// has one owner, so nothing is added atomically and results do not depend on the schedule:
//
//	Forward:   a consumer has 64 queries and walks their keys, 128 at a time, with a running maximum and sum (Dao 2023, algorithm 1)
//	QueryGrad: a consumer has 64 queries and walks their keys, 64 at a time
//	KeyGrad:   a consumer has 64 keys and walks the queries that see them, 64 at a time, head by head of those that share the keys
//
// The two gradients compute the probabilities each for itself: seven products where one kernel with atomic sums would make five.
type Fast struct {
	Config FastConfig
	Entry  *ptx.Entry

	q, k, v, do, o, dq, dk, dv, lse, delta access
	tokens, g, r                           ptx.ParamU32 // of a sequence; heads
}

// access is how a kernel reaches an operand.
type access struct {
	m ptx.ParamMap // read by TMA
	p ptx.ParamPtr // read or written by threads
}

// FastConfig chooses a kernel.
type FastConfig struct {
	Pass Pass
	D    int // 64 or 128
}

const (
	half      = 64  // rows of a consumer
	rowsOfCTA = 128 // of both
	slab      = 64  // elements of a swizzled row
	stages    = 2   // of the walked tiles
)

// walk is how many tokens of the walked side a step takes.
func (c FastConfig) walk() int {
	if c.Pass == Forward {
		return 128
	}
	return 64
}

func (c FastConfig) bytes(rows int) int { return rows * c.D * 2 }

// NewFast builds a kernel.
//
// Barriers: own 1 arrival + the bytes of the consumers' own rows; full[s] of a ring 1 arrival + the bytes of a walked tile, in KeyGrad also the arrivals of the 64
// threads that bring lse and delta; empty[s] one arrival of each consumer, in KeyGrad, where threads read the stage too, of each of their warps.
//
// Shared memory: the consumers' own rows (Q, or Q and dO, or K and V); stages of the two walked tiles; in KeyGrad stages of 64 lse and delta.
func NewFast(c FastConfig) (*Fast, error) {
	if c.D != 64 && c.D != 128 || c.Pass > KeyGrad {
		return nil, fmt.Errorf("attention: heads of %d on tensor cores, want 64 or 128", c.D)
	}
	k := ptx.New(fmt.Sprintf("attention_fast_%v_%d", c.Pass, c.D), 384, 1)
	f := &Fast{Config: c, tokens: k.ParamU32("tokens"), g: k.ParamU32("g"), r: k.ParamU32("r")}
	f.q.m, f.k.m, f.v.m, f.lse.p = k.ParamMap("q"), k.ParamMap("k"), k.ParamMap("v"), k.ParamPtr("lse")
	switch c.Pass {
	case Forward:
		f.o.p = k.ParamPtr("o")
	case QueryGrad:
		f.do.m, f.delta.p, f.dq.p = k.ParamMap("do"), k.ParamPtr("delta"), k.ParamPtr("dq")
	case KeyGrad:
		f.do.m, f.delta.p, f.dk.p, f.dv.p = k.ParamMap("do"), k.ParamPtr("delta"), k.ParamPtr("dk"), k.ParamPtr("dv")
	}
	b := newFastBuilder(k, f)
	k.If(k.Tid().Eq(k.U32(0)), func() {
		b.own.Init(1)
		b.init()
		k.FenceMbarrierInit()
	})
	k.SyncCTA()
	k.Role("producer", 1, 24, b.producer)
	k.Role("consumer", 2, 240, b.consumer)
	var err error
	f.Entry, err = k.Build()
	return f, err
}

// fastBuilder is what the roles share.
type fastBuilder struct {
	k    *ptx.Builder
	f    *Fast
	c    FastConfig
	own  ptx.Bar
	ring [2]kernel.Ring // of the walked tiles; in the gradients they come together, on the first

	mine, walked [2]ptx.SAddr // the consumers' rows; stages
	scalars      ptx.SAddr    // KeyGrad: stages of 64 lse, then 64 delta

	first, head, sequence, base ptx.U32 // the CTA's first row, its head (of keys in KeyGrad), its sequence and that one's first token
}

func newFastBuilder(k *ptx.Builder, f *Fast) *fastBuilder {
	c := f.Config
	b := &fastBuilder{k: k, f: f, c: c, own: k.Bars("own", 1)}
	b.ring[0] = kernel.NewRing(k, stages)
	for i, name := range []string{"own0", "own1"} {
		if i == 0 || c.Pass != Forward {
			b.mine[i] = k.Shared(name, c.bytes(rowsOfCTA), 1024).Addr()
		}
	}
	for i, name := range []string{"walked0", "walked1"} {
		b.walked[i] = k.Shared(name, stages*c.bytes(c.walk()), 1024).Addr()
	}
	if c.Pass == Forward {
		b.ring[1] = kernel.NewRing(k, stages)
	}
	if c.Pass == KeyGrad {
		b.scalars = k.Shared("scalars", stages*2*4*half, 16).Addr()
	}
	heads := f.g.Mul(f.r.U32)
	if c.Pass == KeyGrad {
		heads = f.g.U32
	}
	blocks := f.tokens.Plus(rowsOfCTA - 1).Shr(7)
	rest := k.CTAIndex().Div(blocks)
	at := k.CTAIndex().Sub(rest.Mul(blocks))
	if c.Pass != KeyGrad { // those with most to do first
		at = blocks.Sub(k.U32(1)).Sub(at)
	}
	b.first = at.Times(rowsOfCTA)
	b.sequence = rest.Div(heads)
	b.head = rest.Sub(b.sequence.Mul(heads))
	b.base = b.sequence.Mul(f.tokens.U32)
	return b
}

func (b *fastBuilder) init() {
	k := b.k
	arrivals, leavers := 1, 2
	if b.c.Pass == KeyGrad {
		arrivals, leavers = 1+half, 8
	}
	for i := range stages {
		b.ring[0].Full.Index(k.U32(i)).Init(arrivals)
		b.ring[0].Empty.Index(k.U32(i)).Init(leavers)
		if b.c.Pass == Forward {
			b.ring[1].Full.Index(k.U32(i)).Init(1)
			b.ring[1].Empty.Index(k.U32(i)).Init(2)
		}
	}
}

// load brings rows tokens of a head from token first of the sequence on to a tile: slabs of 64 elements of a head, 128 bytes a row.
func (b *fastBuilder) load(m ptx.ParamMap, to ptx.SAddr, first, head ptx.U32, rows int, bar ptx.Bar) {
	for s := range b.c.D / slab {
		m.Load3(to.Plus(s*rows*128), b.k.U32(s*slab), b.base.Add(first), head, bar)
	}
}

// producer brings the consumers' rows, then walks.
func (b *fastBuilder) producer() {
	k, f, c := b.k, b.f, b.c
	if c.Pass == KeyGrad {
		b.keyProducer()
		return
	}
	k.If(k.Tid().Eq(k.U32(0)), func() {
		group := b.head.Div(f.r.U32)
		if c.Pass == Forward {
			b.own.ArriveExpect(c.bytes(rowsOfCTA))
			b.load(f.q.m, b.mine[0], b.first, b.head, rowsOfCTA, b.own)
		} else {
			b.own.ArriveExpect(2 * c.bytes(rowsOfCTA))
			b.load(f.q.m, b.mine[0], b.first, b.head, rowsOfCTA, b.own)
			b.load(f.do.m, b.mine[1], b.first, b.head, rowsOfCTA, b.own)
		}
		at := b.ring[0].Producer()
		var other kernel.Cursor
		if c.Pass == Forward {
			other = b.ring[1].Producer()
		}
		size := c.bytes(c.walk())
		k.For(k.U32(0), b.end(), k.U32(c.walk()), func(token ptx.U32) {
			at.WaitEmpty()
			full := b.ring[0].Full.Index(at.Slot())
			if c.Pass == Forward {
				full.ArriveExpect(size)
				b.load(f.k.m, b.walked[0].At(at.Slot().Times(size)), token, group, c.walk(), full)
				at.Advance()
				other.WaitEmpty()
				full = b.ring[1].Full.Index(other.Slot())
				full.ArriveExpect(size)
				b.load(f.v.m, b.walked[1].At(other.Slot().Times(size)), token, group, c.walk(), full)
				other.Advance()
				return
			}
			full.ArriveExpect(2 * size)
			b.load(f.k.m, b.walked[0].At(at.Slot().Times(size)), token, group, c.walk(), full)
			b.load(f.v.m, b.walked[1].At(at.Slot().Times(size)), token, group, c.walk(), full)
			at.Advance()
		})
	})
}

// end is one past the last token that a query of the CTA sees.
func (b *fastBuilder) end() ptx.U32 { return b.first.Plus(rowsOfCTA).Min(b.f.tokens.U32) }

// keyProducer: thread 0 brings tiles, threads 0 … 63 bring lse (times log₂e) and delta of the tile's queries.
func (b *fastBuilder) keyProducer() {
	k, f, c := b.k, b.f, b.c
	lead := k.Tid().Eq(k.U32(0))
	k.If(lead, func() {
		b.own.ArriveExpect(2 * c.bytes(rowsOfCTA))
		b.load(f.k.m, b.mine[0], b.first, b.head, rowsOfCTA, b.own)
		b.load(f.v.m, b.mine[1], b.first, b.head, rowsOfCTA, b.own)
	})
	size := c.bytes(c.walk())
	heads := f.g.Mul(f.r.U32)
	k.If(k.WarpIndex().Lt(k.U32(2)), func() {
		at := b.ring[0].Producer()
		k.For(k.U32(0), f.r.U32, k.U32(1), func(r ptx.U32) {
			head := b.head.Mul(f.r.U32).Add(r)
			k.For(b.first, f.tokens.U32, k.U32(half), func(token ptx.U32) {
				at.WaitEmpty()
				full := b.ring[0].Full.Index(at.Slot())
				k.If(lead, func() {
					full.ArriveExpect(2 * size)
					b.load(f.q.m, b.walked[0].At(at.Slot().Times(size)), token, head, c.walk(), full)
					b.load(f.do.m, b.walked[1].At(at.Slot().Times(size)), token, head, c.walk(), full)
				})
				row := b.base.Add(token.Add(k.Tid()).Min(f.tokens.Sub(k.U32(1)))).Mul(heads).Add(head)
				to := b.scalars.At(at.Slot().Times(8 * half)).At(k.Tid().Shl(2))
				to.StoreF32(kernel.At(k, num.F32, f.lse.p.GAddr, row).LoadF32().Mul(k.F32(log2e)))
				to.Plus(4 * half).StoreF32(kernel.At(k, num.F32, f.delta.p.GAddr, row).LoadF32())
				full.Arrive()
				at.Advance()
			})
		})
	})
}
