package row

import (
	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// long is a CTA's way along a row that is too long to keep: the logits of a vocabulary.
type long struct {
	k     *ptx.Builder
	t     num.DType
	width int
	sums  ptx.SAddr
}

func newLong(k *ptx.Builder, t num.DType, wide bool) *long {
	l := &long{k: k, t: t, width: 1, sums: k.Shared("sums", 4*warps, 16).Addr()}
	if wide {
		l.width = kernel.Wide
	}
	return l
}

// visit runs f on every column below n: first the whole groups of width, then what is left, one by one. x are the columns from col on.
func (l *long) visit(line ptx.GAddr, n ptx.U32, f func(col ptx.U32, x []ptx.F32)) {
	k := l.k
	whole := n
	if l.width > 1 {
		whole = n.And(k.U32(-l.width))
	}
	k.For(k.Tid().Times(l.width), whole, k.U32(threads*l.width), func(col ptx.U32) {
		f(col, kernel.LoadSpan(k, l.t, kernel.At(k, l.t, line, col), l.width))
	})
	if l.width > 1 {
		k.For(whole.Add(k.Tid()), n, k.U32(threads), func(col ptx.U32) {
			f(col, kernel.LoadSpan(k, l.t, kernel.At(k, l.t, line, col), 1))
		})
	}
}

// join combines the threads' values by op, in a fixed order, and gives all of them the result.
func (l *long) join(x ptx.F32, op func(x, y ptx.F32) ptx.F32) ptx.F32 {
	k := l.k
	for d := 16; d > 0; d /= 2 {
		x = op(x, x.ShuffleXor(d))
	}
	k.If(k.Lane().Eq(k.U32(0)), func() { l.sums.At(k.WarpIndex().Shl(2)).StoreF32(x) })
	k.SyncCTA()
	all := l.sums.LoadF32()
	for w := 1; w < warps; w++ {
		all = op(all, l.sums.Plus(4*w).LoadF32())
	}
	k.SyncCTA()
	return all
}

func add(x, y ptx.F32) ptx.F32     { return x.Add(y) }
func largest(x, y ptx.F32) ptx.F32 { return x.Max(y) }
