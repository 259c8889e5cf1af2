package gemm

import (
	"heddle/kernel"
	"heddle/ptx"
)

// body computes, for each tile of D that falls to its cluster,
//
//	for k := 0; k < K; k += 64 { acc += A[rows, k:k+64] · B[cols, k:k+64]ᵀ }
//	D[rows, cols] = bf16(acc)
//
// Roles: one producer thread (24 registers a thread of its warpgroup), two consumer warpgroups of 64 rows each (240 registers).
//
// Barriers: full[s] 1 arrival + A and B bytes of the stage; empty[s] one arrival of each consumer of each CTA of the cluster, because a CTA's B half
// overwrites the stage in both; named barrier 1, 2: the 128 threads of one consumer.
//
// Shared memory: Stages × A tile (128×64), Stages × B tile (BN×64), two 64×64 store buffers a consumer, all 128-byte swizzled; barriers.
//
// In a cluster of two each CTA loads half of the B tile and multicasts it to both. One k step of products is in flight while the next is issued;
// the stores of a tile drain under the main loop of the next.
func body(k *ptx.Builder, c Config) params {
	p := params{A: k.ParamMap("A"), B: k.ParamMap("B"), D: k.ParamMap("D"), TilesM: k.ParamU32("tilesM"), TilesN: k.ParamU32("tilesN"), Steps: k.ParamU32("steps")}
	sA := k.Shared("A", c.Stages*c.aBytes(), 1024).Addr()
	sB := k.Shared("B", c.Stages*c.bBytes(), 1024).Addr()
	sD := k.Shared("D", consumers*kernel.StoreBytes, 1024).Addr()
	ring := kernel.NewRing(k, c.Stages)
	rank := k.ClusterRank()

	k.If(k.Tid().Eq(k.U32(0)), func() {
		ring.Init(consumers * c.Cluster)
		k.FenceMbarrierInit()
		p.A.Prefetch()
		p.B.Prefetch()
		p.D.Prefetch()
	})
	k.ClusterSync()

	// tiles visits the tiles of this cluster; row and col are the first of this CTA's tile.
	tiles := func(visit func(row, col ptx.U32)) {
		k.For(k.ClusterIndex(), p.TilesM.Mul(p.TilesN.U32), k.NumClusters(), func(t ptx.U32) {
			m, n := c.Order.Tile(k, t, p.TilesM.U32, p.TilesN.U32)
			visit(m.Times(c.Cluster).Add(rank).Times(rows), n.Times(c.BN))
		})
	}
	k.Role("producer", 1, 24, func() {
		k.If(k.Tid().Eq(k.U32(0)), func() { producer(k, c, p, ring, sA, sB, tiles) })
	})
	k.Role("consumer", consumers, 240, func() { consumer(k, c, p, ring, sA, sB, sD, tiles) })
	k.ClusterSync() // a CTA's memory lives until its peer has done with it
	return p
}

type visitor func(visit func(row, col ptx.U32))

func producer(k *ptx.Builder, c Config, p params, ring kernel.Ring, sA, sB ptx.SAddr, tiles visitor) {
	at := ring.Producer()
	rank := k.ClusterRank()
	tiles(func(row, col ptx.U32) {
		half := rank.Times(c.BN / c.Cluster) // rows of the B tile that this CTA loads for all
		first := col.Add(half)
		k.For(k.U32(0), p.Steps.U32, k.U32(1), func(step ptx.U32) {
			at.WaitEmpty()
			s := at.Slot()
			full := ring.Full.Index(s)
			full.ArriveExpect(c.aBytes() + c.bBytes())
			x := step.Times(c.BK)
			p.A.Load2(sA.At(s.Times(c.aBytes())), x, row, full)
			dst := sB.At(s.Times(c.bBytes()).Add(half.Times(c.BK * elem)))
			if c.Cluster == 1 {
				p.B.Load2(dst, x, first, full)
			} else {
				p.B.LoadMulticast2(dst, x, first, full, 1<<c.Cluster-1)
			}
			at.Advance()
		})
	})
	at.Drain()
}

func consumer(k *ptx.Builder, c Config, p params, ring kernel.Ring, sA, sB, sD ptx.SAddr, tiles visitor) {
	group := k.WarpgroupIndex().Sub(k.U32(1))
	thread := k.WarpInGroup().Shl(5).Add(k.Lane())
	// Threads 0 … Cluster−1 of each consumer release a stage, each in one CTA.
	releases := thread.Lt(k.U32(c.Cluster))
	empty := ring.Empty.Map(thread.Min(k.U32(c.Cluster - 1)))
	release := func(s ptx.U32) { k.When(releases, func() { empty.Index(s).Arrive() }) }

	descA := k.Desc(sA.At(group.Times(64*c.BK*elem)), ptx.KMajor(ptx.Swizzle128))
	descB := k.Desc(sB, ptx.KMajor(ptx.Swizzle128))
	store := kernel.Store{To: p.D.TensorMap, Buffers: sD.At(group.Times(kernel.StoreBytes)), Barrier: group.Plus(1)}
	acc := k.NewAcc(c.BN)
	at := ring.Consumer()
	// multiply issues one k step; the first of a tile overwrites the accumulator.
	multiply := func(first bool) ptx.U32 {
		at.WaitFull()
		s := at.Slot()
		a, b := descA.Add(s.Times(c.aBytes()/16).U64()), descB.Add(s.Times(c.bBytes()/16).U64())
		k.WgmmaFence()
		for j := range c.BK / 16 { // 16 columns of bf16 are 32 bytes: two units
			acc.MMABF16(a.Step(2*j), b.Step(2*j), k.Bool(!first || j > 0), 0, 0)
		}
		k.WgmmaCommit()
		at.Advance()
		return s
	}
	tiles(func(row, col ptx.U32) {
		last := ptx.NewVar(k, multiply(true))
		k.For(k.U32(1), p.Steps.U32, k.U32(1), func(ptx.U32) {
			s := multiply(false)
			k.WgmmaWait(1) // the step before this one is done with its stage
			release(last.Get())
			last.Set(s)
		})
		k.WgmmaWait(0)
		release(last.Get())
		store.Tile(k, acc, row.Add(group.Times(64)), col)
	})
	store.Finish(k)
}
