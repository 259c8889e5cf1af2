package attention

import (
	"fmt"

	"heddle/compute/cpu/blas"
)

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

// Store puts a token's k and v, [G, D] each, at place i of a page.
func Store[T Float](p *blas.Pool, c Cache, page []T, i int, k, v []T) {
	var b blas.PackedB[T]
	kLen, vLen := blas.PackedLen[T](p, c.D, keyTile), blas.PackedLen[T](p, keyTile, c.D)
	for g := range c.G {
		b.Reuse(p, page[:kLen], c.D, keyTile)
		b.SetColumn(p, i, k[g*c.D:][:c.D])
		b.Reuse(p, page[kLen:kLen+vLen], keyTile, c.D)
		b.SetRow(p, i, v[g*c.D:][:c.D])
		page = page[kLen+vLen:]
	}
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

// Cached is Forward over cached keys and values, to the bit, for sequences of
// different lengths, without lse; R is the query heads of each key head. A page
// that is missing or short panics with an *Error.
func Cached[T Float](p *blas.Pool, c Cache, r int, all []Queries[T], scratch []T) {
	n := cachedLen(c.D)
	each := cut(p, &scratch, n)
	pageLen := PageLen[T](p, c)
	for i := range all {
		q := &all[i]
		if len(q.Pages)*keyTile < q.First+q.N {
			panic(&Error{fmt.Sprintf("%d pages hold %d tokens, want %d", len(q.Pages), len(q.Pages)*keyTile, q.First+q.N)})
		}
		for _, page := range q.Pages {
			checkLen("page", len(page), pageLen)
		}
	}
	p.Run(len(all)*c.G, func(worker, task int) {
		q, g := &all[task/c.G], task%c.G
		s := Shape{B: 1, Sq: q.N, Sk: q.First + q.N, G: c.G, R: r, D: c.D, First: q.First, QRow: q.QRow}
		s.fill()
		t := Tensors[T]{Q: q.Q, O: q.O}
		checkLen("q", len(t.Q), need(1, s.Sq, c.G*r*c.D, s.QBatch, s.QRow))
		checkOutput(&s, t.O)
		f := forward[T]{s: &s, t: &t, pool: p.Worker(worker), pages: q.Pages, group: g}
		f.carve(each(worker))
		f.head(0, g)
	})
}

// CachedScratch is the number of elements of Cached's scratch.
func CachedScratch(p *blas.Pool, c Cache) int { return p.Threads() * cachedLen(c.D) }

func cachedLen(d int) int { return forwardRows * (keyTile + d + 2) }

// paged points keyB and valB at a page's head.
func (f *forward[T]) paged(page int) (k, v *blas.PackedB[T]) {
	mem := f.pages[page][f.group*(f.kLen+f.vLen):]
	f.keyB.Reuse(f.pool, mem[:f.kLen], f.s.D, keyTile)
	f.valB.Reuse(f.pool, mem[f.kLen:f.kLen+f.vLen], keyTile, f.s.D)
	return &f.keyB, &f.valB
}
