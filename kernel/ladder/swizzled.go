package ladder

import "heddle/ptx"

// swizzled: rows of 64 bytes put every second row on the same banks, so the sixteen columns that a warp reads of B meet in two units of 16 bytes. The unit's number is
// XORed with bits of the row: eight neighbouring rows then lie on all 32 banks, as the 64-byte swizzle of TMA has it.
func swizzled() (*ptx.Entry, Launcher, error) {
	c := newCores("swizzled")
	c.place = func(row, unit ptx.U32) ptx.U32 { return unit.Xor(row.Shr(1).And(c.k.U32(3))) }
	return doubled(c)
}
