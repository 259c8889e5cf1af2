package kernel

import (
	"heddle/num"
	"heddle/ptx"
)

// Store writes a warpgroup's results to matrices, a chunk of 64 rows of 128 bytes at a time: the chunk is rounded, laid into a swizzled buffer and stored by TMA, which
// drops what is outside the matrix. The stores go on while the warpgroup works on its next tile.
//
// A chunk may also depend on what a matrix holds at its place (Reads): that is brought into the chunk's buffer first, most of it under the products of the tile.
type Store struct {
	Type    num.DType // BF16, F16 or F32
	Add     bool      // add to what is there instead of overwriting it; F32
	Buffers ptx.SAddr // Count of 8,192 bytes each, aligned 1,024, of this warpgroup alone
	Count   int       // of buffers, 1 or more: a chunk waits until the one so many before it has left its buffer
	Barrier ptx.U32   // a named barrier of this warpgroup alone
	Reads   *Reads    // nil: nothing is read
}

// Batch is chunks that are computed and stored together, each in a buffer of its own. All batches of a tile have as many.
type Batch struct {
	Chunks []Chunk
	// Before is called once, before the pieces; may be nil.
	Before func()
	// Piece gives piece q of each chunk, from what the matrices held there before, nil where nothing is read: 16 columns of 16-bit elements or 8 of float32 from column
	// q times as many on. Element 4j+2h+e of a piece is row 16w + l/4 + 8h, column 8j + 2(l%4) + e, for lane l of warp w.
	Piece func(q int, old [][]ptx.F32) [][]ptx.F32
}

// Chunk is a place in a matrix: Right columns right of Col, Down rows below Row.
type Chunk struct {
	To          ptx.TensorMap // box 64 rows × 128 bytes, 128-byte swizzle
	From        ptx.TensorMap // as To: what is read before
	Row, Col    ptx.U32
	Down, Right int
}

const (
	chunkRow   = 128 // bytes of a buffer row
	chunkBytes = 64 * chunkRow
	pieces     = 4 // of a chunk
)

// StoreBytes is the shared memory of one buffer.
const StoreBytes = chunkBytes

// Columns is how many columns one chunk holds.
func (s Store) Columns() int { return chunkRow / s.Type.Size() }

// perPiece is the elements of a piece that a thread holds.
func (s Store) perPiece() int { return s.Columns() / pieces / 2 }

// Rounded is the batches of accumulators as they are, whose first row and column are given; accs[i] holds rows 64i … 64i+63.
func (s Store) Rounded(to ptx.TensorMap, accs []*ptx.Acc, row, col ptx.U32) []Batch {
	var all []Batch
	for i, acc := range accs {
		for c := range 2 * acc.Len() / s.Columns() {
			all = append(all, Batch{
				Chunks: []Chunk{{to, to, row, col, 64 * i, c * s.Columns()}},
				Piece: func(q int, _ [][]ptx.F32) [][]ptx.F32 {
					x := make([]ptx.F32, s.perPiece())
					for e := range x {
						x[e] = acc.F32((c*pieces+q)*len(x) + e)
					}
					return [][]ptx.F32{x}
				},
			})
		}
	}
	return all
}

// Tile stores a tile. All four warps call it.
func (s Store) Tile(k *ptx.Builder, batches []Batch) {
	lead := s.Lead(k)
	lay := s.layer(k)
	wide := len(batches[0].Chunks)
	slots := s.Count / wide     // batches that have buffers
	done := -len(batches) - 1   // batches that have left, counted from this tile's first; those of the tile before are negative
	for i, b := range batches { // batch i takes slot i % slots
		first := i % slots * wide
		switch before := previous(i, len(batches), slots); {
		case s.Reads != nil:
			s.Reads.wait(k, first, wide)
		case before > done:
			k.When(lead, func() { k.BulkWaitRead(i - 1 - before) })
			k.BarSync(s.Barrier, 128)
			done = before
		}
		if b.Before != nil {
			b.Before()
		}
		lay(b, first*chunkBytes)
		k.FenceProxyAsync()
		k.BarSync(s.Barrier, 128)
		k.When(lead, func() {
			for c, to := range b.Chunks {
				s.send(to, s.Buffers.Plus((first+c)*chunkBytes))
			}
			k.BulkCommit()
		})
		lag := min(1, slots-1) // the batch before this one has left sooner
		if next := i - lag + slots; s.Reads != nil && i >= lag && next < len(batches) {
			k.If(lead, func() {
				k.BulkWaitRead(lag)
				s.fetch(k, batches[next], next%slots*wide)
			})
		}
	}
}

// Lead holds in the thread that starts the transfers.
func (s Store) Lead(k *ptx.Builder) ptx.Pred {
	return k.WarpInGroup().Shl(5).Add(k.Lane()).Eq(k.U32(0))
}

func (s Store) send(c Chunk, from ptx.SAddr) {
	x, y := c.Col.Plus(c.Right), c.Row.Plus(c.Down)
	if s.Add {
		c.To.ReduceAdd2(x, y, from)
	} else {
		c.To.Store2(x, y, from)
	}
}

// previous is the batch that had this one's slot before, negative where that was in the tile before: every tile starts on the first slot.
func previous(batch, batches, slots int) int {
	if batch >= slots {
		return batch - slots
	}
	last := batch + (batches-1-batch)/slots*slots // of a tile, in this slot
	return last - batches
}

// A layer puts a batch into the buffers that start so many bytes on.
type layer func(b Batch, buf int)

func (s Store) layer(k *ptx.Builder) layer {
	if s.Type == num.F32 {
		return s.pairs(k)
	}
	return s.matrices(k)
}

// matrices lays 64 columns of 16-bit elements by four stmatrix.
func (s Store) matrices(k *ptx.Builder) layer {
	lane := k.Lane()
	line := k.WarpInGroup().Shl(4).Add(lane.And(k.U32(15))) // the row of the chunk whose 16-byte pieces this lane addresses
	at := s.Buffers.At(line.Shl(7))
	var piece [pieces]ptx.SAddr
	for q := range piece { // columns 16q and 16q+8; the XOR is the 128-byte swizzle
		piece[q] = at.At(lane.Shr(4).Plus(2 * q).Xor(line.And(k.U32(7))).Shl(4))
	}
	return func(b Batch, buf int) {
		for q := range piece {
			var old [][]ptx.F32
			for c := range b.Chunks {
				if s.Reads != nil {
					old = append(old, s.widen(piece[q].Plus(buf+c*chunkBytes).LoadMatrix4()))
				}
			}
			for c, x := range b.Piece(q, old) {
				piece[q].Plus(buf + c*chunkBytes).StoreMatrix4(s.round(x))
			}
		}
	}
}

// round packs a thread's eight elements of a piece.
func (s Store) round(x []ptx.F32) (r [4]ptx.U32) {
	for i := range r {
		if s.Type == num.F16 {
			r[i] = x[2*i+1].PackF16(x[2*i]).Bits()
		} else {
			r[i] = x[2*i+1].PackBF16(x[2*i]).Bits()
		}
	}
	return r
}

// widen is the inverse of round, for bf16.
func (s Store) widen(r [4]ptx.U32) []ptx.F32 {
	x := make([]ptx.F32, 8)
	for i, pair := range r {
		b := pair.BF16x2()
		x[2*i], x[2*i+1] = b.Low(), b.High()
	}
	return x
}

// pairs lays 32 columns of float32: each thread its pairs of neighbours, rows l/4 and l/4 + 8 of its warp's sixteen.
func (s Store) pairs(k *ptx.Builder) layer {
	lane := k.Lane()
	line := k.WarpInGroup().Shl(4).Add(lane.Shr(2))
	at := s.Buffers.At(line.Shl(7).Add(lane.And(k.U32(1)).Shl(3)))
	var piece [pieces]ptx.SAddr // columns 8j + 2(l%4): unit 2j + l%4/2, swizzled; row + 8 has the same pattern
	for j := range piece {
		piece[j] = at.At(lane.Shr(1).And(k.U32(1)).Plus(2 * j).Xor(line.And(k.U32(7))).Shl(4))
	}
	return func(b Batch, buf int) {
		for j := range piece {
			var old [][]ptx.F32
			for c := range b.Chunks {
				if s.Reads == nil {
					break
				}
				x := make([]ptx.F32, 4)
				for e := range x {
					x[e] = piece[j].Plus(buf + c*chunkBytes + e/2*8*chunkRow + e%2*4).LoadF32()
				}
				old = append(old, x)
			}
			for c, x := range b.Piece(j, old) {
				for half := range 2 {
					piece[j].Plus(buf + c*chunkBytes + half*8*chunkRow).StoreF32x2([2]ptx.F32{x[2*half], x[2*half+1]})
				}
			}
		}
	}
}

// Finish waits until the stores have left shared memory, which may go then. That they reach global memory is what the end of the grid waits for.
func (s Store) Finish(k *ptx.Builder) { k.BulkWaitRead(0) }
