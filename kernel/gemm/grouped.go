package gemm

import (
	"fmt"

	"heddle/kernel"
	"heddle/ptx"
)

// Groups is how a launch is cut into products of their own, whose sizes the device reads from memory: the experts of a mixture, in forward and dgrad one matrix B a
// group and rows of A and D dealt to them, in wgrad one matrix D a group. Sizes may be anything, 0 too.
type Groups uint8

const (
	Alone   Groups = iota
	ByRows         // D[rows of g] = A[rows of g] · B[g]ᵀ, B one [N, K] (or [K, N]) a group
	ByDepth        // D[g] = A[rows of g]ᵀ · B[rows of g], both operands transposed, D one [M, N] a group, 0 where the group is empty
)

// groups is the parameters of a grouped kernel.
type groups struct {
	Offsets ptx.ParamPtr // uint32, one more than groups: where each begins and the last ends, growing
	Groups  ptx.ParamU32
	Result  ptx.ParamPtr // D
	Rows    ptx.ParamU32 // of one matrix of those that lie behind each other: N or K of B, M of D
	Cols    ptx.ParamU32 // of D
}

func groupParams(k *ptx.Builder) groups {
	return groups{k.ParamPtr("offsets"), k.ParamU32("groups"), k.ParamPtr("result"), k.ParamU32("rows"), k.ParamU32("cols")}
}

// A reader reads words of memory that nobody writes: in the producer's one thread, or in a consumer for the whole warpgroup.
type reader struct {
	level ptx.Level
	from  ptx.ParamPtr
}

func (r reader) at(i ptx.U32) ptx.U32 {
	x := r.from.At(i.Shl(2).U64()).LoadU32()
	if r.level == ptx.Lane {
		return x
	}
	return x.Same(r.level)
}

// each visits this cluster's tiles of all groups.
func (b *builder) each(level ptx.Level, visit func(work)) {
	if b.c.Groups == ByRows {
		b.byRows(reader{level, b.p.Offsets}, visit)
	} else {
		b.byDepth(reader{level, b.p.Offsets}, visit)
	}
}

// byRows walks the groups, whose tiles are numbered through, along with the numbers that fall to this cluster.
func (b *builder) byRows(read reader, visit func(work)) {
	k, c, p := b.k, b.c, b.p
	start := func(x ptx.U32) *ptx.Var[ptx.U32] { return ptx.NewVarAt(k, read.level, x) }
	t, group, before := start(k.ClusterIndex()), start(k.U32(0)), start(k.U32(0))
	top, bottom := start(read.at(k.U32(0))), start(read.at(k.U32(1)))
	k.While(func() ptx.Pred { return group.Get().Lt(p.Groups.U32) }, func() {
		tilesM := bottom.Get().Sub(top.Get()).Plus(c.BM*c.ClusterM - 1).Div(k.U32(c.BM * c.ClusterM))
		count := tilesM.Mul(p.TilesN.U32)
		rest := t.Get().Sub(before.Get())
		k.IfElse(rest.Lt(count), func() {
			m, n := c.Order.Tile(k, rest, tilesM, p.TilesN.U32)
			w := work{first: k.U32(0), end: p.Steps.U32, limit: bottom.Get()}
			w.row = top.Get().Add(m.Times(c.ClusterM).Add(b.m).Times(c.BM))
			w.col = n.Times(c.ClusterN).Add(b.n).Times(c.BN)
			w.rowB, w.depthB = w.col, group.Get().Mul(p.Rows.U32)
			if !c.TransB {
				w.rowB, w.depthB = w.col.Add(w.depthB), k.U32(0)
			}
			visit(w)
			t.Set(t.Get().Add(k.NumClusters()))
		}, func() {
			before.Set(before.Get().Add(count))
			group.Set(group.Get().Plus(1))
			top.Set(bottom.Get())
			bottom.Set(read.at(group.Get().Plus(1).Min(p.Groups.U32)))
		})
	})
}

// byDepth takes the same tiles of every group in turn. An empty group has one k step, all of it behind its end.
func (b *builder) byDepth(read reader, visit func(work)) {
	k, c, p := b.k, b.c, b.p
	tiles := p.TilesM.Mul(p.TilesN.U32)
	k.For(k.ClusterIndex(), tiles.Mul(p.Groups.U32), k.NumClusters(), func(t ptx.U32) {
		group := t.Div(tiles)
		m, n := c.Order.Tile(k, t.Sub(group.Mul(tiles)), p.TilesM.U32, p.TilesN.U32)
		top := read.at(group)
		depth := read.at(group.Plus(1)).Sub(top)
		w := work{first: k.U32(0), end: depth.Plus(c.BK - 1).Div(k.U32(c.BK)).Max(k.U32(1)), depthA: top, depthB: top}
		w.rowA = m.Times(c.ClusterM).Add(b.m).Times(c.BM)
		w.col = n.Times(c.ClusterN).Add(b.n).Times(c.BN)
		w.rowB = w.col
		w.row, w.limit = w.rowA.Add(group.Mul(p.Rows.U32)), group.Plus(1).Mul(p.Rows.U32)
		w.left = depth.Sub(w.end.Sub(k.U32(1)).Times(c.BK)) // of the last k step; 0 in an empty group
		visit(w)
	})
}

// clear zeroes the lines of a stage of A, of this consumer, that lie behind the group's end: the rows of the next group that TMA has brought. What B has there is then
// multiplied by zero. It is called in the last step of a group.
func (b *builder) clear(w work, stage ptx.U32, blocks ptx.SAddr, barrier ptx.U32) {
	k, c := b.k, b.c
	k.If(w.left.Lt(k.U32(c.BK)), func() {
		thread := k.WarpInGroup().Shl(5).Add(k.Lane())
		line := thread.Shr(3)
		at := blocks.At(stage.Times(c.aBytes())).At(thread.Shl(4))
		zero := k.U32(0)
		for i := range c.rows() / 64 {
			for l := 0; l < c.BK; l += 16 {
				k.When(line.Plus(l).Ge(w.left), func() { at.Plus(i*c.chunk() + l*128).StoreU32x4([4]ptx.U32{zero, zero, zero, zero}) })
			}
		}
		k.FenceProxyAsync()
		k.BarSync(barrier, 128)
	})
}

// ragged stores a tile of a group: by TMA where all its rows are the group's, else past it.
func (e *ending) ragged(w work) {
	b, k := e.b, e.b.k
	inside := w.row.Plus(b.c.rows()).Le(w.limit)
	past := kernel.Past{To: b.p.Result.GAddr, Cols: b.p.Cols.U32, Limit: w.limit}
	batches := e.store.Rounded(b.p.D.TensorMap, e.accs, w.row, w.col)
	k.IfElse(inside, func() { e.store.Tile(k, batches) }, func() { past.Tile(k, e.store, batches) })
}

// putGroups puts the parameters of a grouped launch and gives its clusters: as many as the device runs, because only the device knows how many tiles there are.
func (g *Gemm) putGroups(a *ptx.Args, p Problem, tilesM, tilesN, ctas int) (int, error) {
	c := g.Config
	if p.Groups < 1 || p.Offsets == nil || p.Offsets.Size() < 4*(p.Groups+1) {
		return 0, fmt.Errorf("gemm: %d groups, want one at least and their offsets", p.Groups)
	}
	rows := p.N
	switch {
	case c.Groups == ByDepth:
		rows = p.M
	case c.TransB:
		rows = p.K
	}
	g.Offsets.Put(a, p.Offsets, 0)
	g.params.groups.Groups.Put(a, uint32(p.Groups))
	g.Result.Put(a, p.D, 0)
	g.Rows.Put(a, uint32(rows))
	g.Cols.Put(a, uint32(p.N))
	most := (tilesM + p.Groups) * tilesN // every group may end in a tile of its own
	if c.Groups == ByDepth {
		most = tilesM * tilesN * p.Groups
	}
	return min(ctas/c.Cluster(), most), nil
}
