package gemm

import (
	"fmt"
	"math"

	"heddle/kernel"
	"heddle/ptx"
)

// Stream-K (Osama et al., Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication, 2023). Tiles that are left over when every cluster has had
// equally many would keep a part of the device busy for a whole tile's time. They come first here, as one long row of k steps that is cut into equal shares, one a cluster.
// A share that starts inside a tile leaves its sum in the workspace; the cluster that has the tile's first step, which does it last, adds the others' in their order
// and finishes the tile. So the order of summation depends on the launch alone, and every run gives the same bits.
//
// Workspace: a flag for each consumer of each CTA, 0 between launches, 1 while its partial sum waits; then their partial sums, in fragment order.

// stream is the parameters of a stream-K kernel.
type stream struct {
	Streamed     ptx.ParamU32 // tiles that are cut
	Share, Extra ptx.ParamU32 // k steps of a cluster's share; so many clusters have one more
	Cut          ptx.ParamU32 // k steps of all shares
	Flags, Sums  ptx.ParamPtr
}

func streamParams(k *ptx.Builder) stream {
	return stream{k.ParamU32("streamed"), k.ParamU32("share"), k.ParamU32("extra"), k.ParamU32("cut"), k.ParamPtr("flags"), k.ParamPtr("sums")}
}

// shareOf is the first of a cluster's k steps, counted through the tiles that are cut.
func (b *builder) shareOf(cluster ptx.U32) ptx.U32 {
	p := b.p.stream
	return cluster.Mul(p.Share.U32).Add(cluster.Min(p.Extra.U32)).Min(p.Cut.U32)
}

// segments visits this cluster's work: its share of the tiles that are cut, piece by piece, then whole tiles.
func (b *builder) segments(level ptx.Level, visit func(work)) {
	k, p := b.k, b.p
	u, tiles, steps := k.ClusterIndex(), p.TilesM.Mul(p.TilesN.U32), p.Steps.U32
	at, end, next := ptx.NewVar(k, b.shareOf(u)), ptx.NewVar(k, b.shareOf(u.Plus(1))), ptx.NewVar(k, p.Streamed.Add(u))
	k.While(func() ptx.Pred { return at.Get().Lt(end.Get()).Or(next.Get().Lt(tiles)) }, func() {
		k.If(at.Get().Ge(end.Get()), func() {
			at.Set(next.Get().Mul(steps))
			end.Set(at.Get().Add(steps))
			next.Set(next.Get().Add(k.NumClusters()))
		})
		tile := at.Get().Div(steps)
		first := at.Get().Sub(tile.Mul(steps))
		last := first.Add(end.Get().Sub(at.Get())).Min(steps)
		at.Set(at.Get().Add(last.Sub(first)))
		visit(b.place(level, tile, first, last))
	})
}

// streamed is begin for a segment.
func (e *ending) streamed(w work) (finish func()) {
	k, steps := e.b.k, e.b.p.Steps.U32
	owner := w.first.Eq(k.U32(0))
	return func() {
		k.IfElse(owner, func() {
			peers := ptx.NewVar(k, k.U32(0))
			k.If(w.end.Lt(steps), func() { e.await(w, peers) })
			e.tile(e.summed(peers), w.row, w.col)()
		}, e.leave)
	}
}

// slot is the place in the workspace of this consumer in a cluster. In ping-pong the first consumer always has a share's first piece.
func (e *ending) slot(cluster ptx.U32) ptx.U32 {
	c := e.b.c
	cta := cluster
	if c.Cluster() > 1 {
		cta = cluster.Times(c.Cluster()).Add(e.b.k.ClusterRank())
	}
	if c.PingPong {
		return cta
	}
	return cta.Times(c.Consumers).Add(e.group)
}

// sums is the address of this thread's first four elements in a slot; the next are 2 KiB on.
func (e *ending) sums(slot ptx.U32) ptx.GAddr {
	k := e.b.k
	thread := k.WarpInGroup().Shl(5).Add(k.Lane())
	return e.b.p.Sums.At(slot.MulWide(k.U32(e.b.c.sumBytes()))).At(thread.Shl(4).U64())
}

func (e *ending) flag(slot ptx.U32) ptx.GAddr { return e.b.p.Flags.At(slot.Shl(2).U64()) }

// sumBytes is a consumer's accumulators.
func (c Config) sumBytes() int { return c.rows() * c.BN * 4 }

// leave puts the accumulators into the workspace. (PTX ISA, Memory Consistency Model: the barrier and the fence of one thread make the stores of all visible before its flag.)
func (e *ending) leave() {
	k := e.b.k
	slot := e.slot(k.ClusterIndex())
	to, quad := e.sums(slot), 0
	for _, acc := range e.accs {
		for i := 0; i < acc.Len(); i += 4 {
			to.Plus(quad * 2048).StoreF32x4([4]ptx.F32{acc.F32(i), acc.F32(i + 1), acc.F32(i + 2), acc.F32(i + 3)})
			quad++
		}
	}
	k.BarSync(e.store.Barrier, 128)
	k.If(e.store.Lead(k), func() {
		k.FenceGPU()
		e.flag(slot).RedAddU32(k.U32(1))
	})
}

// await counts the clusters that have the rest of this tile, and waits for their sums. The flags are 0 again then.
func (e *ending) await(w work, peers *ptx.Var[ptx.U32]) {
	b, k := e.b, e.b.k
	u, end := k.ClusterIndex().Plus(1), w.tile.Plus(1).Mul(b.p.Steps.U32)
	k.While(func() ptx.Pred { return b.shareOf(u.Add(peers.Get())).Lt(end) }, func() { peers.Set(peers.Get().Plus(1)) })
	k.If(e.store.Lead(k), func() {
		k.For(k.U32(0), peers.Get(), k.U32(1), func(i ptx.U32) {
			flag := e.flag(e.slot(u.Add(i)))
			k.While(func() ptx.Pred { return flag.AtomicCompareU32(k.U32(1), k.U32(0)).Eq(k.U32(0)) }, func() { k.Nanosleep(32) })
		})
		k.FenceGPU()
	})
	k.BarSync(e.store.Barrier, 128)
}

// summed is the accumulators plus the partial sums of so many clusters behind this one, in their order.
func (e *ending) summed(peers *ptx.Var[ptx.U32]) kernel.Source {
	k := e.b.k
	return func(acc, first, count int) func(int) ptx.F32 {
		x := make([]*ptx.Var[ptx.F32], count)
		for i := range x {
			x[i] = ptx.NewVarAt(k, ptx.Lane, e.accs[acc].F32(first+i))
		}
		k.For(k.U32(0), peers.Get(), k.U32(1), func(i ptx.U32) {
			from := e.sums(e.slot(k.ClusterIndex().Plus(1).Add(i)))
			var old [][4]ptx.F32
			for j := 0; j < count; j += 4 {
				old = append(old, from.Plus((acc*e.accs[0].Len()+first+j)/4*2048).LoadF32x4())
			}
			for j, v := range x {
				v.Set(v.Get().Add(old[j/4][j%4]))
			}
		})
		return func(i int) ptx.F32 { return x[i].Get() }
	}
}

// split is how stream-K deals a problem's tiles to so many clusters.
type split struct {
	clusters int // of the grid
	streamed int // tiles that are cut
	units    int // clusters among which they are cut
}

// leastShare is the k steps below which a share is not worth its partial sum.
const leastShare = 4

func newSplit(tiles, steps, clusters int) split {
	rest := tiles % clusters
	s := split{clusters: min(clusters, tiles*steps), streamed: rest, units: min(clusters, max(1, rest*steps/leastShare))}
	if even := clusters / max(1, rest) * rest; tiles < clusters && 12*even >= 11*clusters {
		s.units = min(s.units, even) // the same number of shares a tile, all of them in step
	}
	if tiles < clusters {
		s.clusters = s.units
	}
	return s
}

// Workspace is, for stream-K and dynamic tiles, the bytes that a launch needs as Problem.Work, on a device that runs so many CTAs: zero before the first launch, after which each leaves it as the next needs it.
func (g *Gemm) Workspace(ctas int) int {
	c := g.Config
	switch {
	case c.Dynamic:
		return 256 // the counter
	case !c.StreamK:
		return 0
	}
	return c.flagBytes(ctas) + ctas*c.Consumers*c.sumBytes()
}

func (c Config) flagBytes(ctas int) int { return (ctas*c.Consumers*4 + 1023) &^ 1023 }

// stream puts the parameters of a stream-K launch and gives its clusters.
func (g *Gemm) putStream(a *ptx.Args, p Problem, tiles, ctas int) (clusters int, err error) {
	c, steps := g.Config, ceil(p.K, g.Config.BK)
	if float64(tiles)*float64(steps) > math.MaxInt32 {
		return 0, fmt.Errorf("gemm: %d tiles of %d k steps do not fit 31 bits", tiles, steps)
	}
	s := newSplit(tiles, steps, ctas/c.Cluster())
	if p.Work == nil || p.Work.Size() < g.Workspace(ctas) {
		return 0, fmt.Errorf("gemm: no workspace of %d bytes for stream-K; hint: Gemm.Workspace", g.Workspace(ctas))
	}
	cut := s.streamed * steps
	g.Streamed.Put(a, uint32(s.streamed))
	g.Share.Put(a, uint32(cut/s.units))
	g.Extra.Put(a, uint32(cut%s.units))
	g.Cut.Put(a, uint32(cut))
	g.Flags.Put(a, p.Work, 0)
	g.Sums.Put(a, p.Work, c.flagBytes(ctas))
	return s.clusters, nil
}
