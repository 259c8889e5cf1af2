package kernel

import (
	"heddle/num"
	"heddle/ptx"
)

// Store writes a warpgroup's accumulators, 64 rows each, to a matrix: one swizzled buffer row of 128 bytes of columns at a time they are rounded, laid into a
// buffer and stored by TMA, which drops what is outside the matrix. The stores go on while the warpgroup works on its next tile.
type Store struct {
	To      ptx.TensorMap // box 64 rows × 128 bytes, 128-byte swizzle
	Type    num.DType     // BF16, F16 or F32
	Add     bool          // add to what is there instead of overwriting it; F32
	Buffers ptx.SAddr     // Count of 8,192 bytes each, aligned 1,024, of this warpgroup alone
	Count   int           // of buffers, 1 or more: a chunk waits until the one so many before it has left its buffer
	Barrier ptx.U32       // a named barrier of this warpgroup alone
}

const (
	chunkRow   = 128 // bytes of a buffer row
	chunkBytes = 64 * chunkRow
)

// StoreBytes is the shared memory of one buffer.
const StoreBytes = chunkBytes

// Columns is how many columns one chunk holds.
func (s Store) Columns() int { return chunkRow / s.Type.Size() }

// Tile stores a tile whose first row and column are given; accs[i] holds rows 64i … 64i+63. All four warps call it.
func (s Store) Tile(k *ptx.Builder, accs []*ptx.Acc, row, col ptx.U32) {
	lead := k.WarpInGroup().Shl(5).Add(k.Lane()).Eq(k.U32(0))
	lay := s.pairs(k)
	if s.Type != num.F32 {
		lay = s.matrices(k)
	}
	wide := s.Columns()
	perAcc := 2 * accs[0].Len() / wide
	chunks := perAcc * len(accs)
	done := -chunks - 1 // chunks that have left, counted from this tile's first; those of the tile before are negative
	for chunk := range chunks {
		buf := chunk % s.Count * chunkBytes
		if before := s.before(chunk, chunks); before > done {
			k.When(lead, func() { k.BulkWaitRead(chunk - 1 - before) })
			k.BarSync(s.Barrier, 128)
			done = before
		}
		lay(accs[chunk/perAcc], chunk%perAcc*wide/2, buf)
		k.FenceProxyAsync()
		k.BarSync(s.Barrier, 128)
		k.When(lead, func() {
			x, y, src := col.Plus(chunk%perAcc*wide), row.Plus(chunk/perAcc*64), s.Buffers.Plus(buf)
			if s.Add {
				s.To.ReduceAdd2(x, y, src)
			} else {
				s.To.Store2(x, y, src)
			}
			k.BulkCommit()
		})
	}
}

// before is the chunk that had this chunk's buffer before, negative where that was in the tile before: every tile starts on the first buffer.
func (s Store) before(chunk, chunks int) int {
	if chunk >= s.Count {
		return chunk - s.Count
	}
	last := chunk + (chunks-1-chunk)/s.Count*s.Count // of a tile, in this buffer
	return last - chunks
}

// A layer puts the chunk that starts at element first of acc into the buffer buf bytes on.
type layer func(acc *ptx.Acc, first, buf int)

// matrices lays 64 columns of 16-bit elements by four stmatrix.
func (s Store) matrices(k *ptx.Builder) layer {
	lane := k.Lane()
	line := k.WarpInGroup().Shl(4).Add(lane.And(k.U32(15))) // the row of the chunk whose 16-byte pieces this lane addresses
	at := s.Buffers.At(line.Shl(7))
	var piece [4]ptx.SAddr
	for q := range piece { // columns 16q and 16q+8; the XOR is the 128-byte swizzle
		piece[q] = at.At(lane.Shr(4).Plus(2 * q).Xor(line.And(k.U32(7))).Shl(4))
	}
	return func(acc *ptx.Acc, first, buf int) {
		for q := range piece {
			var r [4]ptx.U32
			for i := range r {
				e := first + q*8 + i*2
				if s.Type == num.F16 {
					r[i] = acc.F32(e + 1).PackF16(acc.F32(e)).Bits()
				} else {
					r[i] = acc.F32(e + 1).PackBF16(acc.F32(e)).Bits()
				}
			}
			piece[q].Plus(buf).StoreMatrix4(r)
		}
	}
}

// pairs lays 32 columns of float32: each thread its pairs of neighbours, rows l/4 and l/4 + 8 of its warp's sixteen.
func (s Store) pairs(k *ptx.Builder) layer {
	lane := k.Lane()
	line := k.WarpInGroup().Shl(4).Add(lane.Shr(2))
	at := s.Buffers.At(line.Shl(7).Add(lane.And(k.U32(1)).Shl(3)))
	var piece [4]ptx.SAddr // columns 8j + 2(l%4): unit 2j + l%4/2, swizzled; row + 8 has the same pattern
	for j := range piece {
		piece[j] = at.At(lane.Shr(1).And(k.U32(1)).Plus(2 * j).Xor(line.And(k.U32(7))).Shl(4))
	}
	return func(acc *ptx.Acc, first, buf int) {
		for j := range piece {
			for half := range 2 {
				e := first + 4*j + 2*half
				piece[j].Plus(buf + half*8*chunkRow).StoreF32x2([2]ptx.F32{acc.F32(e), acc.F32(e + 1)})
			}
		}
	}
}

// Finish waits until the stores have left shared memory, which may go then. That they reach global memory is what the end of the grid waits for.
func (s Store) Finish(k *ptx.Builder) { k.BulkWaitRead(0) }
