package ladder

import "heddle/ptx"

// async: cp.async writes the next tiles into one half of the buffer while the other half is multiplied. What is outside the matrices is zeroed first and not copied.
func async() (*ptx.Entry, Launcher, error) { return doubled(newCores("async")) }

// doubled is the loop with two buffers.
func doubled(c *cores) (*ptx.Entry, Launcher, error) {
	k, tiles := c.k, c.k.Shared("tiles", 4*tileBytes, 128).Addr()
	fetch := func(to ptx.SAddr, k0 ptx.U32) {
		for i, m := range []struct {
			from        ptx.GAddr
			first, rows ptx.U32
		}{{c.A.GAddr, c.row, c.M.U32}, {c.B.GAddr, c.col, c.N.U32}} {
			from, inside := c.source(m.from, m.first, m.rows, k0)
			target, zero := c.target(to.Plus(i*tileBytes)), k.U32(0)
			k.IfElse(inside, func() { target.CopyAsync16(from) }, func() { target.StoreU32x4([4]ptx.U32{zero, zero, zero, zero}) })
		}
		k.CopyCommit()
	}
	half := ptx.NewVar(k, k.U32(0)) // 0 or 2·tileBytes
	fetch(tiles, k.U32(0))
	c.loop(depth, func(k0 ptx.U32) {
		other := half.Get().Xor(k.U32(2 * tileBytes))
		fetch(tiles.At(other), k0.Plus(depth)) // past the end: nothing is inside
		k.CopyWait(1)                          // this thread's part of the tiles before
		k.SyncCTA()                            // and everybody's
		c.multiply(tiles.At(half.Get()))
		k.SyncCTA()
		half.Set(other)
	})
	k.CopyWait(0)
	c.store()
	return c.build(side, side)
}
