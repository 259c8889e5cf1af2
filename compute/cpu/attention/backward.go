package attention

import (
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
)

// Backward is the gradient of Forward, from q, k, v, o, lse and do. With
// p[i,j] = exp(s[i,j] − lse[i]), 0 where query i does not see key j:
//
//	delta[i] = Σ_d do[i,d] · o[i,d]
//	ds[i,j]  = p[i,j] · (Σ_d do[i,d]·v[j,d] − delta[i]) · Scale
//	dq[i,d]  = Σ_j ds[i,j] · k[j,d]
//	dk[j,d]  = Σ_a Σ_i ds[i,j] · q[i,d]      over the R heads a that read it
//	dv[j,d]  = Σ_a Σ_i p[i,j] · do[i,d]
//
// scratch is as in Forward.
func Backward[T Float](p *blas.Pool, s Shape, t Tensors[T], d Grads[T], scratch []T) {
	s.fill()
	s.check()
	checkTensors(&s, &t)
	if d.Delta == nil {
		checkOutput(&s, t.O)
	} else {
		checkLen("delta", len(d.Delta), s.B*s.Sq*s.G*s.R)
	}
	checkLen("do", len(d.DO), s.B*s.Sq*s.G*s.R*s.D)
	checkLen("dq", len(d.DQ), need(s.B, s.Sq, s.G*s.R*s.D, s.QBatch, s.QRow))
	checkLen("dk", len(d.DK), need(s.B, s.Sk, s.G*s.D, s.KBatch, s.KRow))
	checkLen("dv", len(d.DV), need(s.B, s.Sk, s.G*s.D, s.KBatch, s.KRow))
	each := cut(p, &scratch, backwardLen[T](p, &s))
	p.Run(s.B*s.G, func(worker, task int) {
		w := backward[T]{s: &s, t: &t, d: &d, pool: p.Worker(worker)}
		w.carve(each(worker))
		w.head(task/s.G, task%s.G)
	})
}

// backward is one worker's state for one sequence and key head.
type backward[T Float] struct {
	s    *Shape
	t    *Tensors[T]
	d    *Grads[T]
	pool *blas.Pool

	probs, dscores []T                // [backwardRows, keyTile] p, then ds
	delta          []T                // [backwardRows]
	keysT, valuesT []T                // [tiles] packed kᵀ and vᵀ, [D, keyTile] each
	keys           []T                // [tiles] packed k, [keyTile, D]
	queries, grads []T                // packed q and do of the query tile, [backwardRows, D]
	keysOf         [backwardRows]span // of each row
	tLen, kLen     int
	tile           blas.Params[T]
	bT, bV, bK     blas.PackedB[T]
	bQ, bDO        blas.PackedB[T]
}

func backwardLen[T Float](p *blas.Pool, s *Shape) int {
	packed := 2*blas.PackedLen[T](p, s.D, keyTile) + blas.PackedLen[T](p, keyTile, s.D)
	return backwardRows*(2*keyTile+1) + tiles(s.Sk)*packed + 2*blas.PackedLen[T](p, backwardRows, s.D)
}

func (w *backward[T]) carve(mem []T) {
	take := func(n int) []T {
		head := mem[:n:n]
		mem = mem[n:]
		return head
	}
	s := w.s
	w.tLen, w.kLen = blas.PackedLen[T](w.pool, s.D, keyTile), blas.PackedLen[T](w.pool, keyTile, s.D)
	w.probs, w.dscores, w.delta = take(backwardRows*keyTile), take(backwardRows*keyTile), take(backwardRows)
	n := tiles(s.Sk)
	w.keysT, w.valuesT, w.keys = take(n*w.tLen), take(n*w.tLen), take(n*w.kLen)
	q := blas.PackedLen[T](w.pool, backwardRows, s.D)
	w.queries, w.grads = take(q), take(q)
}

// head does all queries of the R heads that read key head g of sequence b.
func (w *backward[T]) head(b, g int) {
	s := w.s
	w.pack(b, g)
	for i := 0; i < s.Sq; i += backwardRows {
		n := min(backwardRows, s.Sq-i)
		var last span
		for r := range n {
			last = s.span(b, i+r, last.hi)
			w.keysOf[r] = last
		}
		for a := g * s.R; a < (g+1)*s.R; a++ {
			w.rows(b, a, i, n)
		}
	}
}

// pack packs every tile of the head's keys and values once for all queries, and
// clears dk and dv, which the queries add to.
func (w *backward[T]) pack(b, g int) {
	s := w.s
	for j := 0; j < s.Sk; j += keyTile {
		n, at := min(keyTile, s.Sk-j), b*s.KBatch+j*s.KRow+g*s.D
		w.at(j, n)
		blas.PackB(w.pool, &w.bT, w.t.K[at:], s.KRow, true)
		blas.PackB(w.pool, &w.bV, w.t.V[at:], s.KRow, true)
		blas.PackB(w.pool, &w.bK, w.t.K[at:], s.KRow, false)
		for r := range n {
			clear(w.d.DK[at+r*s.KRow:][:s.D])
			clear(w.d.DV[at+r*s.KRow:][:s.D])
		}
	}
}

// at points bT, bV and bK at the tile of n keys from j.
func (w *backward[T]) at(j, n int) {
	t, d := j/keyTile, w.s.D
	w.bT.Reuse(w.pool, w.keysT[t*w.tLen:(t+1)*w.tLen], d, n)
	w.bV.Reuse(w.pool, w.valuesT[t*w.tLen:(t+1)*w.tLen], d, n)
	w.bK.Reuse(w.pool, w.keys[t*w.kLen:(t+1)*w.kLen], n, d)
}

// rows does n queries from i of head a.
func (w *backward[T]) rows(b, a, i, n int) {
	s := w.s
	heads := s.G * s.R
	row := (b*s.Sq+i)*heads + a // of query i in o, do and lse; heads to the next query
	q, do := w.t.Q[b*s.QBatch+i*s.QRow+a*s.D:], w.d.DO[row*s.D:]
	dq := w.d.DQ[b*s.QBatch+i*s.QRow+a*s.D:]
	for r := range n {
		at := (row + r*heads) * s.D
		if w.d.Delta != nil {
			w.delta[r] = w.d.Delta[row+r*heads]
		} else {
			w.delta[r] = vec.Dot(w.d.DO[at:at+s.D], w.t.O[at:at+s.D])
		}
		clear(dq[r*s.QRow:][:s.D])
	}
	w.bQ.Reuse(w.pool, w.queries, n, s.D)
	w.bDO.Reuse(w.pool, w.grads, n, s.D)
	blas.PackB(w.pool, &w.bQ, q, s.QRow, false)
	blas.PackB(w.pool, &w.bDO, do, heads*s.D, false)
	g := a / s.R
	for j, last := w.keysOf[0].firstTile(), w.keysOf[n-1].hi; j < last; j += keyTile {
		w.at(j, min(keyTile, s.Sk-j))
		cols := min(keyTile, last-j)
		w.gemm(blas.Params[T]{M: n, N: cols, K: s.D, A: q, LDA: s.QRow, Packed: &w.bT, C: w.probs, LDC: keyTile})
		w.gemm(blas.Params[T]{M: n, N: cols, K: s.D, A: do, LDA: heads * s.D, Packed: &w.bV, C: w.dscores, LDC: keyTile})
		for r := range n {
			w.row(r, j, cols, w.t.LSE[row+r*heads])
		}
		at := b*s.KBatch + j*s.KRow + g*s.D
		w.gemm(blas.Params[T]{M: n, N: s.D, K: cols, A: w.dscores, LDA: keyTile, Packed: &w.bK, C: dq, LDC: s.QRow, Accumulate: true})
		w.gemm(blas.Params[T]{M: cols, N: s.D, K: n, A: w.probs, LDA: keyTile, TransA: true, Packed: &w.bDO, C: w.d.DV[at:], LDC: s.KRow, Accumulate: true})
		w.gemm(blas.Params[T]{M: cols, N: s.D, K: n, A: w.dscores, LDA: keyTile, TransA: true, Packed: &w.bQ, C: w.d.DK[at:], LDC: s.KRow, Accumulate: true})
	}
}

func (w *backward[T]) gemm(g blas.Params[T]) {
	w.tile = g
	blas.Gemm(w.pool, &w.tile)
}

// row turns scores into weights p and their gradients into ds.
func (w *backward[T]) row(r, j, cols int, lse T) {
	p, ds := w.probs[r*keyTile:][:cols], w.dscores[r*keyTile:][:cols]
	lo, hi := w.keysOf[r].in(j, cols)
	for _, x := range [...][]T{p, ds} {
		clear(x[:lo])
		clear(x[hi:])
	}
	if p, ds = p[lo:hi], ds[lo:hi]; lo < hi {
		scale := T(w.s.Scale)
		vec.ExpSum(p, p, scale, lse)
		vec.SoftmaxBackward(ds, p, ds, w.delta[r], scale)
	}
}
