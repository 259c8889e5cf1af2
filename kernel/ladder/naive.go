package ladder

import "heddle/ptx"

// naive: thread (row, pair) of a 16 × 32 tile computes
//
//	for k := 0; k < K; k++ { d[row, 2·pair+{0,1}] += a[row, k] · b[2·pair+{0,1}, k] }
//
// Threads of a warp share two rows of A, but read sixteen rows of B a K apart: most of every sector that is fetched is thrown away.
func naive() (*ptx.Entry, Launcher, error) {
	p := newPlain("naive", 256)
	k := p.k
	row, col := p.tileAt(16, 32)
	row, col = row.Add(k.Tid().Shr(4)), col.Add(k.Tid().And(k.U32(15)).Shl(1))
	k.If(row.Lt(p.M.U32).And(col.Lt(p.N.U32)), func() { // N is even
		x, y := newSum(k), newSum(k)
		a, b0, b1 := at(p.A.GAddr, row, k.U32(0), p.K.U32), at(p.B.GAddr, col, k.U32(0), p.K.U32), at(p.B.GAddr, col.Plus(1), k.U32(0), p.K.U32)
		p.loop(2, func(i ptx.U32) {
			o := i.Shl(1).U64()
			pair := a.At(o).LoadU32().BF16x2()
			dot(x, pair, b0.At(o).LoadU32().BF16x2())
			dot(y, pair, b1.At(o).LoadU32().BF16x2())
		})
		at(p.D.GAddr, row, col, p.N.U32).StoreU32(y.Get().PackBF16(x.Get()).Bits())
	})
	return p.build(16, 32)
}
