package kernel

import "heddle/ptx"

// Store writes a warpgroup's accumulator, 64 rows, to a bf16 matrix: 64 columns at a time are rounded, laid into a swizzled buffer by stmatrix and
// stored by TMA, which drops what is outside the matrix. The stores go on while the warpgroup works on its next tile.
type Store struct {
	To      ptx.TensorMap // box 64 × 64 bf16, 128-byte swizzle
	Buffers ptx.SAddr     // two of 8,192 bytes each, aligned 1,024, of this warpgroup alone
	Barrier ptx.U32       // a named barrier of this warpgroup alone
}

const chunkBytes = 64 * 64 * 2

// StoreBytes is the shared memory that Store wants for each warpgroup.
const StoreBytes = 2 * chunkBytes

// Tile stores the tile whose first row and column are given. All four warps call it.
func (s Store) Tile(k *ptx.Builder, acc *ptx.Acc, row, col ptx.U32) {
	warp, lane := k.WarpInGroup(), k.Lane()
	lead := warp.Shl(5).Add(lane).Eq(k.U32(0))
	line := warp.Shl(4).Add(lane.And(k.U32(15))) // the row of the chunk whose 16-byte pieces this lane addresses
	at := s.Buffers.At(line.Shl(7))
	chunks := acc.Len() / 32
	var piece [4]ptx.SAddr
	for q := range piece { // columns 16q and 16q+8; the XOR is the 128-byte swizzle
		piece[q] = at.At(lane.Shr(4).Plus(2 * q).Xor(line.And(k.U32(7))).Shl(4))
	}
	for chunk := range chunks {
		buf := chunk % 2 * chunkBytes
		// Wait for the chunk that had this buffer before. That is two chunks ago; but an odd number of chunks starts the next tile on the buffer it
		// ended on, and the wait there covers the second chunk too.
		pending := 1
		if chunk == 0 && chunks%2 == 1 {
			pending = 0
		}
		if chunk != 1 || chunks%2 == 0 {
			k.When(lead, func() { k.BulkWaitRead(pending) })
			k.BarSync(s.Barrier, 128)
		}
		for q := range piece {
			var r [4]ptx.U32
			for i := range r {
				e := chunk*32 + q*8 + i*2
				r[i] = acc.F32(e + 1).PackBF16(acc.F32(e)).Bits()
			}
			piece[q].Plus(buf).StoreMatrix4(r)
		}
		k.FenceProxyAsync()
		k.BarSync(s.Barrier, 128)
		k.When(lead, func() {
			s.To.Store2(col.Plus(64*chunk), row, s.Buffers.Plus(buf))
			k.BulkCommit()
		})
	}
}

// Finish waits until the warpgroup's stores are in global memory.
func (s Store) Finish(k *ptx.Builder) { k.BulkWait(0) }
