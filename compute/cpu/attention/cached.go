package attention

import "heddle/compute/cpu/blas"

// PageTokens is how many tokens' keys and values a page of a cache holds.
const PageTokens = keyTile

// Cache describes pages of keys and values that stay packed between calls, so
// that a token of generation packs one key and not all before it. A page is
// PageTokens tokens of one layer: for each of the G heads kᵀ [D, PageTokens],
// then v [PageTokens, D], both as package blas packs them for the pool.
type Cache struct{ G, D int }

// PageLen is the number of elements of a page.
func PageLen[T Float](p *blas.Pool, c Cache) int {
	return c.G * (blas.PackedLen[T](p, c.D, keyTile) + blas.PackedLen[T](p, keyTile, c.D))
}

// Store puts k and v, [D] each, of key head g of a token at place i of a page.
func Store[T Float](p *blas.Pool, c Cache, page []T, i, g int, k, v []T) {
	kLen, vLen := blas.PackedLen[T](p, c.D, keyTile), blas.PackedLen[T](p, keyTile, c.D)
	page = page[g*(kLen+vLen):]
	var b blas.PackedB[T]
	b.Reuse(p, page[:kLen], c.D, keyTile)
	b.SetColumn(p, i, k[:c.D])
	b.Reuse(p, page[kLen:kLen+vLen], keyTile, c.D)
	b.SetRow(p, i, v[:c.D])
}

// Queries are N tokens in a row of one sequence, the first at position First,
// whose own keys and values are in the pages already.
type Queries[T Float] struct {
	First, N int
	Q        []T   // [N, A, D], QRow elements from one token to the next
	QRow     int   // 0 means A·D
	Pages    [][]T // of this layer, from token 0
	O        []T   // [N, A, D], dense
}

// Head is Forward over cached keys and values, to the bit, for the r query heads
// that read key head g, without lse. It computes on the caller's goroutine;
// scratch has CachedScratch elements. Tensors and pages that are missing or
// short panic with an *Error.
func Head[T Float](p *blas.Pool, c Cache, r int, q *Queries[T], g int, scratch []T) {
	if len(q.Pages)*keyTile < q.First+q.N {
		fail("%d pages hold %d tokens, want %d", len(q.Pages), len(q.Pages)*keyTile, q.First+q.N)
	}
	for n, i := PageLen[T](p, c), 0; i < len(q.Pages); i++ {
		checkLen("page", len(q.Pages[i]), n)
	}
	s := Shape{B: 1, Sq: q.N, Sk: q.First + q.N, G: c.G, R: r, D: c.D, First: q.First, QRow: q.QRow}
	s.fill()
	checkLen("q", len(q.Q), need(1, s.Sq, c.G*r*c.D, s.QBatch, s.QRow))
	checkOutput(&s, q.O)
	checkLen("scratch", len(scratch), CachedScratch(c))
	f := forward[T]{s: &s, t: &Tensors[T]{Q: q.Q, O: q.O}, pool: p, pages: q.Pages, group: g}
	f.carve(scratch)
	f.head(0, g)
}

// CachedScratch is the number of elements of Head's scratch.
func CachedScratch(c Cache) int { return forwardRows * (keyTile + c.D + 2) }

// paged points keyB and valB at a page's head.
func (f *forward[T]) paged(page int) (k, v *blas.PackedB[T]) {
	mem := f.pages[page][f.group*(f.kLen+f.vLen):]
	f.keyB.Reuse(f.pool, mem[:f.kLen], f.s.D, keyTile)
	f.valB.Reuse(f.pool, mem[f.kLen:f.kLen+f.vLen], keyTile, f.s.D)
	return &f.keyB, &f.valB
}
