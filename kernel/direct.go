package kernel

import "heddle/ptx"

// Past is a way around TMA for a tile that ends inside a matrix, whose further rows belong to somebody else.
type Past struct {
	To    ptx.GAddr // the matrix, row-major and packed
	Cols  ptx.U32   // of the matrix; rows are a multiple of 16 bytes
	Limit ptx.U32   // rows from here on stay as they are
}

// Tile stores a tile of one chunk a batch as Store.Tile does, with plain stores of 16 bytes from the buffers to the rows below the limit.
func (p Past) Tile(k *ptx.Builder, s Store, batches []Batch) {
	lay, per := s.layer(k), 16/s.Type.Size()
	k.When(s.Lead(k), func() { k.BulkWaitRead(0) }) // the tile before has left the first buffer
	k.BarSync(s.Barrier, 128)
	thread := k.WarpInGroup().Shl(5).Add(k.Lane())
	line, unit := thread.Shr(3), thread.And(k.U32(7))                         // eight threads a row, sixteen rows at a time
	from := s.Buffers.At(line.Shl(7)).At(unit.Xor(line.And(k.U32(7))).Shl(4)) // the 128-byte swizzle
	for _, b := range batches {
		if b.Before != nil {
			b.Before()
		}
		lay(b, 0)
		k.BarSync(s.Barrier, 128)
		c := b.Chunks[0]
		col := c.Col.Plus(c.Right).Add(unit.Times(per))
		k.For(k.U32(0), k.U32(64), k.U32(16), func(i ptx.U32) {
			row := c.Row.Add(line).Plus(c.Down).Add(i)
			x := from.At(i.Shl(7)).LoadF32x4()
			to := p.To.At(row.MulWide(p.Cols.Times(s.Type.Size()))).At(col.Times(s.Type.Size()).U64())
			k.When(row.Lt(p.Limit).And(col.Lt(p.Cols)), func() { p.unit(to, x, s.Add) })
		})
		k.BarSync(s.Barrier, 128)
	}
}

// unit stores 16 bytes, whatever they are, or adds four float32.
func (p Past) unit(to ptx.GAddr, x [4]ptx.F32, add bool) {
	if !add {
		to.StoreF32x4(x)
		return
	}
	for i, v := range x {
		to.Plus(4 * i).RedAddF32(v)
	}
}
