package attention

import (
	"math"

	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
)

// Forward computes, for each sequence b, query i, query head a of key head g = a/R:
//
//	s[j] = Scale · Σ_d q[b,i,a,d] · k[b,j,g,d]     for the keys j ≥ From[b,i] with KPos[j] ≤ QPos[i]
//	lse[b,i,a] = ln Σ_j exp(s[j])
//	o[b,i,a,d] = Σ_j exp(s[j] − lse[b,i,a]) · v[b,j,g,d]
//
// keeping one tile of scores and a packed copy of one head's keys and values to
// a thread: ScratchLen elements, linear in Sk. One query, as in generation, packs
// a tile at a time and reads only the keys it sees. scratch may be nil or of that
// length. Tensors that do not fit the shape panic with an *Error.
func Forward[T Float](p *blas.Pool, s Shape, t Tensors[T], scratch []T) {
	s.fill()
	s.check()
	checkTensors(&s, &t)
	checkOutput(&s, t.O)
	each := cut(p, &scratch, forwardLen[T](p, &s))
	p.Run(s.B*s.G, func(worker, task int) {
		f := forward[T]{s: &s, t: &t, pool: p.Worker(worker)}
		f.carve(each(worker))
		f.head(task/s.G, task%s.G)
	})
}

// ScratchLen is the number of elements Forward and Backward need for a shape.
func ScratchLen[T Float](p *blas.Pool, s Shape) int {
	s.fill()
	return p.Threads() * max(forwardLen[T](p, &s), backwardLen[T](p, &s))
}

// cut gives every worker its own n elements of scratch.
func cut[T Float](p *blas.Pool, scratch *[]T, n int) func(worker int) []T {
	if *scratch == nil {
		*scratch = make([]T, n*p.Threads())
	}
	checkLen("scratch", len(*scratch), n*p.Threads())
	all := *scratch
	return func(worker int) []T { return all[worker*n : (worker+1)*n : (worker+1)*n] }
}

// forward is one worker's state for one sequence and key head.
type forward[T Float] struct {
	s    *Shape
	t    *Tensors[T]
	pool *blas.Pool

	scores     []T               // [forwardRows, keyTile]
	out        []T               // [forwardRows, D], not yet divided by sum
	top, sum   []T               // [forwardRows], running maximum of scaled scores, Σ exp(s − top)
	keys       []T               // [tiles] packed k transposed
	values     []T               // [tiles] packed v
	keysOf     [forwardRows]span // of each row
	kLen, vLen int
	pages      [][]T // keys and values that are packed already (Head); nil: this call packs them
	group      int   // the key head at work, where there are pages
	tile       blas.Params[T]
	keyB, valB blas.PackedB[T]
}

func tiles(sk int) int { return (sk + keyTile - 1) / keyTile }

func forwardLen[T Float](p *blas.Pool, s *Shape) int {
	packed := blas.PackedLen[T](p, s.D, keyTile) + blas.PackedLen[T](p, keyTile, s.D)
	return forwardRows*(keyTile+s.D+2) + kept(s)*packed
}

// kept is how many tiles of keys stay packed: all of them, or, when there is one
// query and every tile is read once, the one at work.
func kept(s *Shape) int {
	if s.Sq == 1 {
		return min(1, tiles(s.Sk))
	}
	return tiles(s.Sk)
}

func (f *forward[T]) carve(mem []T) {
	take := func(n int) []T {
		head := mem[:n:n]
		mem = mem[n:]
		return head
	}
	s := f.s
	f.kLen, f.vLen = blas.PackedLen[T](f.pool, s.D, keyTile), blas.PackedLen[T](f.pool, keyTile, s.D)
	f.scores, f.out = take(forwardRows*keyTile), take(forwardRows*s.D)
	f.top, f.sum = take(forwardRows), take(forwardRows)
	if f.pages != nil {
		return
	}
	f.keys, f.values = take(kept(s)*f.kLen), take(kept(s)*f.vLen)
}

// rows are n queries that share the keys of a head: row r is query i+r of head
// a, or, when there is one query, that query's head a+r.
type rows struct{ b, i, a, n int }

// row is where row r is in a [B, Sq, A] tensor.
func (s *Shape) row(w rows, r int) int {
	heads := s.G * s.R
	if s.Sq == 1 {
		return w.b*heads + w.a + r
	}
	return (w.b*s.Sq+w.i+r)*heads + w.a
}

// head does all queries of the R heads that read key head g of sequence b.
func (f *forward[T]) head(b, g int) {
	s := f.s
	if s.Sq == 1 {
		seen := s.span(b, 0, 0)
		for a := 0; a < s.R; a += forwardRows {
			n := min(forwardRows, s.R-a)
			for r := range n {
				f.keysOf[r] = seen
			}
			f.queries(rows{b, 0, g*s.R + a, n}, g)
		}
		return
	}
	for j := 0; j < s.Sk && f.pages == nil; j += keyTile {
		f.pack(b, g, j)
	}
	for i := 0; i < s.Sq; i += forwardRows {
		n := min(forwardRows, s.Sq-i)
		var last span
		for r := range n {
			last = s.span(b, i+r, last.hi)
			f.keysOf[r] = last
		}
		for a := g * s.R; a < (g+1)*s.R; a++ {
			f.queries(rows{b, i, a, n}, g)
		}
	}
}

// pack packs the keys and values of the tile from key j.
func (f *forward[T]) pack(b, g, j int) {
	s := f.s
	at := b*s.KBatch + j*s.KRow + g*s.D
	k, v := f.packed(j)
	blas.PackB(f.pool, k, f.t.K[at:], s.KRow, true)
	blas.PackB(f.pool, v, f.t.V[at:], s.KRow, false)
}

// packed points keyB and valB at the tile from key j.
func (f *forward[T]) packed(j int) (k, v *blas.PackedB[T]) {
	if f.pages != nil {
		return f.paged(j / keyTile)
	}
	t, d, n := j/keyTile%kept(f.s), f.s.D, min(keyTile, f.s.Sk-j)
	f.keyB.Reuse(f.pool, f.keys[t*f.kLen:(t+1)*f.kLen], d, n)
	f.valB.Reuse(f.pool, f.values[t*f.vLen:(t+1)*f.vLen], n, d)
	return &f.keyB, &f.valB
}

// queries does rows of key head g.
func (f *forward[T]) queries(w rows, g int) {
	s, n := f.s, w.n
	top, sum := f.top[:n], f.sum[:n]
	for r := range n {
		top[r], sum[r] = T(math.Inf(-1)), 0
	}
	clear(f.out[:n*s.D])
	q, step := f.t.Q[w.b*s.QBatch+w.i*s.QRow+w.a*s.D:], s.QRow
	if s.Sq == 1 {
		step = s.D
	}
	for j, last := f.keysOf[0].firstTile(), f.keysOf[n-1].hi; j < last; j += keyTile {
		if s.Sq == 1 && f.pages == nil {
			f.pack(w.b, g, j)
		}
		k, v := f.packed(j)
		cols := min(keyTile, last-j)
		blas.Gemm(f.pool, f.product(n, cols, s.D, q, step, k, f.scores, keyTile))
		for r := range n {
			f.row(r, j, cols)
		}
		pv := f.product(n, s.D, cols, f.scores, keyTile, v, f.out, s.D)
		pv.Accumulate = true
		blas.Gemm(f.pool, pv)
	}
	f.store(w)
}

func (f *forward[T]) product(m, n, k int, a []T, lda int, b *blas.PackedB[T], c []T, ldc int) *blas.Params[T] {
	f.tile = blas.Params[T]{M: m, N: n, K: k, A: a, LDA: lda, Packed: b, C: c, LDC: ldc}
	return &f.tile
}

// row turns the scores of query r against keys j, j+1, … into weights
// exp(s − top) and brings what was added before to the new top.
func (f *forward[T]) row(r, j, cols int) {
	row := f.scores[r*keyTile:][:cols]
	lo, hi := f.keysOf[r].in(j, cols)
	clear(row[:lo])
	clear(row[hi:])
	if row = row[lo:hi]; lo == hi {
		return
	}
	scale := T(f.s.Scale)
	if m := scale * vec.Max(row); m > f.top[r] {
		if f.sum[r] != 0 {
			down := T(math.Exp(float64(f.top[r] - m)))
			f.sum[r] *= down
			vec.Scale(f.out[r*f.s.D:][:f.s.D], down, f.out[r*f.s.D:][:f.s.D])
		}
		f.top[r] = m
	}
	f.sum[r] += vec.ExpSum(row, row, scale, f.top[r])
}

// store divides by the sums and writes o and lse.
func (f *forward[T]) store(w rows) {
	s := f.s
	for r := range w.n {
		at := s.row(w, r)
		o := f.t.O[at*s.D:][:s.D]
		if k := f.keysOf[r]; k.lo >= k.hi {
			clear(o)
			f.t.LSE[at] = T(math.Inf(-1))
			continue
		}
		vec.Scale(o, 1/f.sum[r], f.out[r*s.D:][:s.D])
		if f.pages != nil { // nobody goes backward from here
			continue
		}
		f.t.LSE[at] = f.top[r] + T(math.Log(float64(f.sum[r])))
	}
}
