package blas

// kcMax is the longest K block: a panel of B, kcMax × nr, stays in L1 while the
// rows of A pass by. It fixes the order of arithmetic, so it is one constant
// for all instruction sets.
const kcMax = 256

// blockLen is the K block length: equal blocks, none longer than kcMax.
func blockLen(k int) int {
	blocks := max(1, (k+kcMax-1)/kcMax)
	return (k + blocks - 1) / blocks
}

// scratch is what a thread packs into.
type scratch[T Float] struct {
	a, b, edge []T
	strip      strip[T] // what a kernel is called with
}

func grow[T Float](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}

// view is op(X): element (i, j) is data[i·rs + j·cs].
type view[T Float] struct {
	data   []T
	rs, cs int
}

func viewOf[T Float](x []T, ld int, trans bool) view[T] {
	if trans {
		return view[T]{x, 1, ld}
	}
	return view[T]{x, ld, 1}
}

func (v view[T]) at(i, j int) view[T] {
	return view[T]{v.data[i*v.rs+j*v.cs:], v.rs, v.cs}
}

// block is a window of C that one worker computes alone.
type block struct{ batch, i0, i1, j0, j1 int }

// loops is one Gemm call under way.
type loops[T Float] struct {
	g    *Params[T]
	kern *kernel[T]
}

// run cuts the work into windows of C and computes them on the pool. Workers
// share nothing: each packs what it reads.
func run[T Float](p *Pool, g *Params[T]) {
	l := loops[T]{g: g, kern: &localOf[T](p).kern}
	batch := max(1, g.Batch)
	if p.Threads() == 1 || batch*g.M*g.N*max(1, g.K) < smallWork {
		s := &localOf[T](p.Worker(0)).scratch
		for b := range batch {
			l.window(s, block{b, 0, g.M, 0, g.N})
		}
		return
	}
	l.spread(p, batch)
}

// spread is run on several threads.
func (l loops[T]) spread(p *Pool, batch int) {
	g := l.g
	gm, gn := l.grid((p.Threads() + batch - 1) / batch)
	p.Run(batch*gm*gn, func(worker, t int) {
		b, r := t/(gm*gn), t%(gm*gn)
		i, j := r/gn, r%gn
		l.window(&localOf[T](p.Worker(worker)).scratch, block{
			b, cut(g.M, gm, i, l.kern.mr), cut(g.M, gm, i+1, l.kern.mr), cut(g.N, gn, j, l.kern.nr), cut(g.N, gn, j+1, l.kern.nr)})
	})
}

// smallWork is the number of multiply-adds below which waking a worker costs
// more than it saves.
const smallWork = 1 << 16

// cut is where part i of n elements in parts starts, on a multiple of unit.
func cut(n, parts, i, unit int) int {
	if i == parts {
		return n
	}
	units := (n + unit - 1) / unit
	return min(n, units*i/parts*unit)
}

// grid splits C in gm × gn windows for threads workers: the split whose
// largest window, in tiles, is smallest; of equals, more columns, since B is
// what a worker packs.
func (l *loops[T]) grid(threads int) (gm, gn int) {
	m := (l.g.M + l.kern.mr - 1) / l.kern.mr
	n := (l.g.N + l.kern.nr - 1) / l.kern.nr
	best := -1
	for c := threads; c >= 1; c-- {
		if threads%c != 0 {
			continue
		}
		r := threads / c
		if size := ((m + r - 1) / r) * ((n + c - 1) / c); best < 0 || size < best {
			best, gm, gn = size, r, c
		}
	}
	return gm, gn
}

// window computes C[i0:i1, j0:j1] of one product.
func (l *loops[T]) window(s *scratch[T], w block) {
	g := l.g
	if w.i0 >= w.i1 || w.j0 >= w.j1 {
		return
	}
	c := g.C[w.batch*g.StrideC:]
	if g.K == 0 {
		if !g.Accumulate {
			for i := w.i0; i < w.i1; i++ {
				clear(c[i*g.LDC+w.j0 : i*g.LDC+w.j1])
			}
		}
		return
	}
	a := viewOf(g.A[w.batch*g.StrideA:], g.LDA, g.TransA)
	nc := columns(w.i1 - w.i0)
	for j := w.j0; j < w.j1; j += nc {
		jn := min(nc, w.j1-j)
		kc := blockLen(g.K)
		for k := 0; k < g.K; k += kc {
			depth := min(kc, g.K-k)
			p := l.panels(s, w, j, jn, k, depth)
			add := g.Accumulate || k > 0
			l.rows(s, a, p, c, span{w.i0, w.i1, j, jn, k, depth, add})
		}
	}
}

// span is the part of a window that one block of B meets.
type span struct {
	i0, i1, j, jn, k, depth int
	add                     bool
}

// columns is how many columns of B are packed at once: few when few rows will
// read them, so that they are still in cache.
func columns(rows int) int {
	if rows <= 64 {
		return 256
	}
	return 2048
}

// noPackRows is the largest M that reads an untransposed B where it lies.
const noPackRows = 6

// panelled is a block of B as tiles read it: column group j of nr columns starts
// at data[j·panel], its rows are row elements apart.
type panelled[T Float] struct {
	data       []T
	panel, row int
	tail       []T // the last, narrower group where data holds no whole one, rows tailRow apart
	tailRow    int
	half       []uint16 // in place of data: bf16 …
	wide       []T      // … and where a group of it is widened
	widen      func(dst []T, src []uint16)
}

func (p *panelled[T]) at(group int, narrow bool) (b []T, row int) {
	if p.half != nil {
		p.widen(p.wide, p.half[group*p.panel:][:len(p.wide)])
		return p.wide, p.row
	}
	if narrow && p.tail != nil {
		return p.tail, p.tailRow
	}
	return p.data[group*p.panel:], p.row
}

// panels gives the block B[k:k+depth, j:j+jn], packing it unless it was packed
// before or few rows will read it.
func (l *loops[T]) panels(s *scratch[T], w block, j, jn, k, depth int) panelled[T] {
	g, nr := l.g, l.kern.nr
	if pb := g.Packed; pb != nil {
		all, deep := (pb.N+nr-1)/nr, min(blockLen(pb.K), pb.K-k)
		from := k*all*nr + j*deep
		if pb.Half != nil {
			return panelled[T]{half: pb.Half[from:], wide: grow(&s.b, depth*nr), widen: l.kern.widen, panel: deep * nr, row: nr}
		}
		return panelled[T]{data: pb.Data[from:], panel: deep * nr, row: nr}
	}
	b := viewOf(g.B[w.batch*g.StrideB:], g.LDB, g.TransB).at(k, j)
	if w.i1-w.i0 <= noPackRows && !g.TransB {
		p := panelled[T]{data: b.data, panel: nr, row: g.LDB}
		if edge := jn % nr; edge > 0 {
			p.tail, p.tailRow = grow(&s.b, depth*nr), nr
			l.kern.pack(p.tail, b.at(0, jn-edge), packing{depth, edge, nr, depth * nr})
		}
		return p
	}
	panel := padded(depth * nr)
	buf := grow(&s.b, panel*((jn+nr-1)/nr))
	l.kern.pack(buf, b, packing{depth, jn, nr, panel})
	return panelled[T]{data: buf, panel: panel, row: nr}
}

// padded keeps panels that are written side by side out of each other's cache
// sets, and gives room for what a narrow panel's last row spills.
func padded(panel int) int { return panel + 16 }

// rows runs the strips of a span: for each group of rows that fits the L2 cache,
// each panel of B meets every tile of A.
func (l *loops[T]) rows(sc *scratch[T], a view[T], p panelled[T], c []T, s span) {
	mr, nr, ldc := l.kern.mr, l.kern.nr, l.g.LDC
	t := &sc.strip
	*t = strip[T]{depth: s.depth, ldc: ldc, add: s.add, edge: grow(&sc.edge, mr*nr)}
	mc := l.kern.mc
	for i0 := s.i0; i0 < s.i1; i0 += mc {
		n := min(mc, s.i1-i0)
		r := rowsOf(l, sc, a.at(i0, s.k), n, s)
		for q := 0; q < s.jn; q += nr {
			t.cols = min(nr, s.jn-q)
			t.b, t.brow = p.at(q/nr, t.cols < nr)
			for i := 0; i < n; i += t.tiles * t.rows {
				t.tiles, t.rows = r.strip(n-i, mr)
				t.a, t.astep = r.at(i, mr, t.rows)
				t.c = c[(i0+i)*ldc+s.j+q:]
				l.kern.strip(t)
			}
		}
	}
	*t = strip[T]{} // keep nobody's memory alive
}

// packedRows is a block of rows of A as tiles read it.
type packedRows[T Float] struct {
	a     view[T]
	panel int // elements from one packed group of mr rows to the next; 0 when not packed
}

// rowsOf gives n rows of A, packed when they lie so that reading them for every
// panel of B costs more than packing.
func rowsOf[T Float](l *loops[T], s *scratch[T], a view[T], n int, sp span) packedRows[T] {
	if n < 4*l.kern.mr || sp.jn < packA(a, sp.depth) {
		return packedRows[T]{a: a}
	}
	mr := l.kern.mr
	panel := padded(sp.depth * mr)
	buf := grow(&s.a, panel*((n+mr-1)/mr))
	l.kern.pack(buf, view[T]{a.data, a.cs, a.rs}, packing{sp.depth, n, mr, panel})
	return packedRows[T]{view[T]{buf, 1, mr}, panel}
}

// packA is the number of columns of B from which A is worth packing. Rows that
// are columns in memory are read a cache line for each k, again and again when
// those lines do not stay in L1.
func packA[T Float](a view[T], depth int) int {
	const l1 = 8192 // elements
	if a.rs == 1 && depth*a.cs > l1 {
		return 32
	}
	return 256
}

// strip is how many tiles of how many rows come next with left rows to go. Rows
// that are not packed are dealt evenly, since a kernel of one or two rows waits
// on its sums.
func (r *packedRows[T]) strip(left, mr int) (tiles, rows int) {
	n := (left + mr - 1) / mr
	if r.panel > 0 {
		if left < mr {
			return 1, left
		}
		return left / mr, mr
	}
	if more := left % n; more > 0 {
		return more, left/n + 1
	}
	return n, left / n
}

// at is the row i of a tile of the given rows, and the distance to the next tile.
func (r *packedRows[T]) at(i, mr, rows int) (a view[T], step int) {
	if r.panel > 0 {
		return view[T]{r.a.data[i/mr*r.panel:], 1, mr}, r.panel
	}
	return r.a.at(i, 0), rows * r.a.rs
}
