package ladder

import (
	"heddle/kernel/gemm"
	"heddle/num"
	"heddle/ptx"
)

// tma: one thread asks for both tiles and an mbarrier counts their bytes in. Elements outside the matrices arrive as zeros.
func tma() (*ptx.Entry, Launcher, error) {
	p := newPlain("tma", 128)
	k := p.k
	mapA, mapB := k.ParamMap("mapA"), k.ParamMap("mapB")
	row, col := p.tileAt(rows, cols)
	a, b, full := k.Shared("A", bytesA, 1024).Addr(), k.Shared("B", bytesB, 1024).Addr(), k.Bars("full", 1)
	lead := k.Tid().Eq(k.U32(0))
	k.If(lead, func() {
		full.Init(1)
		k.FenceMbarrierInit()
	})
	k.SyncCTA()
	acc := k.NewAcc(cols)
	first, parity := ptx.NewVar(k, k.U32(1)), ptx.NewVar(k, k.U32(0))
	p.loop(deep, func(k0 ptx.U32) {
		k.If(lead, func() {
			full.ArriveExpect(bytesA + bytesB)
			mapA.Load2(a, k0, row, full)
			mapB.Load2(b, k0, col, full)
		})
		full.Wait(parity.Get())
		parity.Set(parity.Get().Xor(k.U32(1)))
		products(k, acc, k.Desc(a, ptx.KMajor(ptx.Swizzle128)), k.Desc(b, ptx.KMajor(ptx.Swizzle128)), first)
		k.SyncCTA()
	})
	p.storeAcc(acc, row, col)
	e, launch, err := p.build(rows, cols)
	return e, func(q gemm.Problem, ctas int) (ptx.Launch, *ptx.Args, error) {
		l, args, err := launch(q, ctas)
		mapA.Put(args, box(q.A, q.M, q.K, rows))
		mapB.Put(args, box(q.B, q.N, q.K, cols))
		return l, args, err
	}, err
}

// box is the map of a row-major matrix moved in boxes of n rows by 128 bytes.
func box(b *ptx.Buffer, m, k, n int) *ptx.Map {
	return &ptx.Map{Type: num.BF16, Buffer: b, Dims: []int{k, m}, Strides: []int{2 * k}, Box: []int{deep, n}, Swizzle: ptx.Swizzle128, L2: ptx.L2128B}
}
