package ladder

import "heddle/ptx"

// The tensor-core rungs compute 64 × 128 of D with one warpgroup, 64 deep: a tile of A is 8 KiB, of B 16 KiB, rows of 128 bytes under the 128-byte swizzle.
const (
	rows, cols, deep = 64, 128, 64
	bytesA, bytesB   = rows * deep * 2, cols * deep * 2
)

// wgmma: cp.async lays the tiles down where the tensor cores look for them. They read through the async proxy, so what threads have written is fenced.
func wgmma() (*ptx.Entry, Launcher, error) {
	p := newPlain("wgmma", 128)
	k := p.k
	row, col := p.tileAt(rows, cols)
	a, b := k.Shared("A", bytesA, 1024).Addr(), k.Shared("B", bytesB, 1024).Addr()
	acc := k.NewAcc(cols)
	first := ptx.NewVar(k, k.U32(1))
	p.loop(deep, func(k0 ptx.U32) {
		p.copyTile(a, p.A.GAddr, row, p.M.U32, k0, rows)
		p.copyTile(b, p.B.GAddr, col, p.N.U32, k0, cols)
		k.CopyCommit()
		k.CopyWait(0)
		k.FenceProxyAsync()
		k.SyncCTA()
		products(k, acc, k.Desc(a, ptx.KMajor(ptx.Swizzle128)), k.Desc(b, ptx.KMajor(ptx.Swizzle128)), first)
		k.SyncCTA() // nobody overwrites what a slower warp's product still reads
	})
	p.storeAcc(acc, row, col)
	return p.build(rows, cols)
}

// copyTile copies n rows of 128 bytes, sixteen of them at a time: thread t has unit t%8 of row t/8.
func (p plain) copyTile(to ptx.SAddr, from ptx.GAddr, first, limit, k0 ptx.U32, n int) {
	k := p.k
	for i := 0; i < n; i += 16 {
		row, unit := k.Tid().Shr(3).Plus(i), k.Tid().And(k.U32(7))
		target, zero := to.At(row.Shl(7)).At(unit.Xor(row.And(k.U32(7))).Shl(4)), k.U32(0)
		y, x := row.Add(first), k0.Add(unit.Shl(3))
		k.IfElse(y.Lt(limit).And(x.Lt(p.K.U32)), func() { target.CopyAsync16(at(from, y, x, p.K.U32)) }, func() { target.StoreU32x4([4]ptx.U32{zero, zero, zero, zero}) })
	}
}

// products multiplies the tiles, 16 of K at a time, and waits for the result. The first of a tile of D overwrites the accumulators.
func products(k *ptx.Builder, acc *ptx.Acc, a, b ptx.Desc, first *ptx.Var[ptx.U32]) {
	k.WgmmaFence()
	for j := range deep / 16 {
		more := k.Bool(true)
		if j == 0 {
			more = first.Get().Eq(k.U32(0))
		}
		acc.MMABF16(a.Step(2*j), b.Step(2*j), more, 0, 0)
	}
	k.WgmmaCommit()
	k.WgmmaWait(0)
	first.Set(k.U32(0))
}

// storeAcc rounds the accumulators and stores them from registers: neighbouring pairs of a row, four threads 16 bytes.
func (p plain) storeAcc(acc *ptx.Acc, row, col ptx.U32) {
	k := p.k
	y := row.Add(k.WarpInGroup().Shl(4)).Add(k.Lane().Shr(2))
	x := col.Add(k.Lane().And(k.U32(3)).Shl(1))
	for half := range 2 {
		line := y.Plus(8 * half)
		to, inside := at(p.D.GAddr, line, x, p.N.U32), line.Lt(p.M.U32)
		for j := range acc.Len() / 4 {
			e := 4*j + 2*half
			k.When(inside.And(x.Plus(8*j).Lt(p.N.U32)), func() { to.Plus(16 * j).StoreU32(acc.F32(e + 1).PackBF16(acc.F32(e)).Bits()) })
		}
	}
}
