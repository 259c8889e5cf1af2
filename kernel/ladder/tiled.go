package ladder

import "heddle/ptx"

// The CUDA-core rungs share this: a CTA of 256 threads computes 64 × 64 of D from tiles of 64 rows × 32 columns of A and B in shared memory, 64 bytes a row, which
// lie side by side: A from 0, B from 4,096. Thread t has rows t/16 + 16i and columns 2(t%16) + 32j + {0,1}: neighbours in a warp are neighbours in D.
const (
	side      = 64
	depth     = 32
	tileRow   = depth * 2
	tileBytes = side * tileRow
)

// cores is a CUDA-core kernel under construction.
type cores struct {
	plain
	row, col ptx.U32 // of the tile
	sums     [4][4]sum
	// place is where 16-byte unit u of a tile's row lies in its 64 bytes.
	place func(row, unit ptx.U32) ptx.U32
}

func newCores(name string) *cores {
	c := &cores{plain: newPlain(name, 256), place: func(_, unit ptx.U32) ptx.U32 { return unit }}
	c.row, c.col = c.tileAt(side, side)
	for i := range 16 {
		c.sums[i/4][i%4] = newSum(c.k)
	}
	return c
}

// unit is this thread's 16 bytes of a tile: row t/4, unit t%4.
func (c *cores) unit() (row, unit ptx.U32) { return c.k.Tid().Shr(2), c.k.Tid().And(c.k.U32(3)) }

// source is where this thread's unit of A or B comes from, and whether it is inside the matrix.
func (c *cores) source(m ptx.GAddr, first, rows, k0 ptx.U32) (ptx.GAddr, ptx.Pred) {
	row, unit := c.unit()
	row, col := row.Add(first), unit.Shl(3).Add(k0)
	return at(m, row, col, c.K.U32), row.Lt(rows).And(col.Lt(c.K.U32)) // K is a multiple of 8
}

// target is where it goes in a buffer.
func (c *cores) target(tile ptx.SAddr) ptx.SAddr {
	row, unit := c.unit()
	return tile.At(row.Times(tileRow)).At(c.place(row, unit).Shl(4))
}

// word is a pair of neighbours along K, pair q of a tile's row.
func (c *cores) word(tile ptx.SAddr, row ptx.U32, q int) ptx.BF16x2 {
	unit := c.place(row, c.k.U32(q/4))
	return tile.At(row.Times(tileRow)).At(unit.Shl(4)).Plus(q % 4 * 4).LoadU32().BF16x2()
}

// multiply adds the product of the tiles at A and B.
func (c *cores) multiply(tiles ptx.SAddr) {
	k := c.k
	y, x := k.Tid().Shr(4), k.Tid().And(k.U32(15)).Shl(1)
	for q := range depth / 2 {
		var a, b [4]ptx.BF16x2
		for i := range a {
			a[i] = c.word(tiles, y.Plus(16*i), q)
			b[i] = c.word(tiles.Plus(tileBytes), x.Plus(32*(i/2)+i%2), q)
		}
		for i := range a {
			for j := range b {
				dot(c.sums[i][j], a[i], b[j])
			}
		}
	}
}

// store rounds the sums into D.
func (c *cores) store() {
	k := c.k
	y, x := c.row.Add(k.Tid().Shr(4)), c.col.Add(k.Tid().And(k.U32(15)).Shl(1))
	for i := range c.sums {
		for j := range 2 {
			row, col := y.Plus(16*i), x.Plus(32*j)
			k.When(row.Lt(c.M.U32).And(col.Lt(c.N.U32)), func() {
				at(c.D.GAddr, row, col, c.N.U32).StoreU32(c.sums[i][2*j+1].Get().PackBF16(c.sums[i][2*j].Get()).Bits())
			})
		}
	}
}

// tiled: load both tiles through registers, wait for all threads, multiply, wait, again.
func tiled() (*ptx.Entry, Launcher, error) {
	c := newCores("tiled")
	k, tiles := c.k, c.k.Shared("tiles", 2*tileBytes, 128).Addr()
	c.loop(depth, func(k0 ptx.U32) {
		for i, m := range []struct {
			from        ptx.GAddr
			first, rows ptx.U32
		}{{c.A.GAddr, c.row, c.M.U32}, {c.B.GAddr, c.col, c.N.U32}} {
			from, inside := c.source(m.from, m.first, m.rows, k0)
			var x [4]*ptx.Var[ptx.U32]
			for w := range x {
				x[w] = ptx.NewVarAt(k, ptx.Lane, k.U32(0))
			}
			k.If(inside, func() {
				for w, v := range from.LoadU32x4() {
					x[w].Set(v)
				}
			})
			c.target(tiles.Plus(i * tileBytes)).StoreU32x4([4]ptx.U32{x[0].Get(), x[1].Get(), x[2].Get(), x[3].Get()})
		}
		k.SyncCTA()
		c.multiply(tiles)
		k.SyncCTA()
	})
	c.store()
	return c.build(side, side)
}
