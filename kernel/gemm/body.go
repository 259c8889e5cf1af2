package gemm

import (
	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
)

// body is the kernel being written. For each tile of D that falls to its cluster it computes
//
//	for k := 0; k < K; k += 64 { acc += A[rows, k:k+64] · B[cols, k:k+64]ᵀ }
//	D[rows, cols] = round(acc)
//
// Roles: one producer thread (its warpgroup keeps 24 or 40 registers a thread), one or two consumer warpgroups. Two consumers share the rows of a tile, or, in
// ping-pong, take turns with whole tiles: then the second starts one tile on, and each passes over the stages of the other.
//
// Barriers: full[s] 1 arrival + A and B bytes of the stage; empty[s] one arrival of each consumer that reads the stage in each CTA of the cluster, because a
// CTA's B half overwrites the stage in both; named barrier 1, 2: the 128 threads of one consumer; in ping-pong 3, 4: 128 threads of each consumer, see turns.
//
// Shared memory: Stages × A tile, Stages × B tile, two 8 KiB store buffers a consumer, all 128-byte swizzled; barriers. A K-major tile is rows of 64 elements of
// K; an MN-major one is chunks of 64 elements of M or N, each 64 rows of K deep. Either way 64 rows of the tile are 8 KiB.
//
// In a cluster of two each CTA loads half of the B tile and multicasts it to both. One k step of products is in flight while the next is issued;
// the stores of a tile drain under the main loop of the next.
type body struct {
	params
	k          *ptx.Builder
	c          Config
	ring       kernel.Ring
	sA, sB, sD ptx.SAddr
}

const slab = 64 * 64 * elem // bytes of 64 rows of a stage's tile

func newBody(k *ptx.Builder, c Config) *body {
	return &body{
		params: params{A: k.ParamMap("A"), B: k.ParamMap("B"), D: k.ParamMap("D"), TilesM: k.ParamU32("tilesM"), TilesN: k.ParamU32("tilesN"), Steps: k.ParamU32("steps")},
		k:      k, c: c,
		sA:   k.Shared("A", c.Stages*c.aBytes(), 1024).Addr(),
		sB:   k.Shared("B", c.Stages*c.bBytes(), 1024).Addr(),
		sD:   k.Shared("D", c.consumers()*kernel.StoreBytes, 1024).Addr(),
		ring: kernel.NewRing(k, c.Stages),
	}
}

func (b *body) write() {
	k, c := b.k, b.c
	readers := c.consumers() // of a stage, in one CTA
	if c.PingPong {
		readers = 1
	}
	k.If(k.Tid().Eq(k.U32(0)), func() {
		b.ring.Init(readers * c.Cluster)
		k.FenceMbarrierInit()
		b.A.Prefetch()
		b.B.Prefetch()
		b.D.Prefetch()
	})
	k.ClusterSync()
	k.GridWait() // what stands above may run while the grid in front still does
	low, high := c.registers()
	k.Role("producer", 1, low, func() {
		k.If(k.Tid().Eq(k.U32(0)), b.produce)
	})
	k.Role("consumer", c.consumers(), high, b.consume)
	k.ClusterSync() // a CTA's memory lives until its peer has done with it
}

// registers of the producer and of the consumers, a thread: their sum fits what the launch has.
func (c Config) registers() (low, high int) {
	if c.consumers() == 1 {
		return 0, 0 // 255 each
	}
	return 24, 240
}

// tiles visits tiles first, first + step, … of the grid; row and col are the first of this CTA's tile.
func (b *body) tiles(first, step ptx.U32, visit func(row, col ptx.U32)) {
	k, c := b.k, b.c
	rank := k.ClusterRank()
	k.For(first, b.TilesM.Mul(b.TilesN.U32), step, func(t ptx.U32) {
		m, n := c.Order.Tile(k, t, b.TilesM.U32, b.TilesN.U32)
		visit(m.Times(c.Cluster).Add(rank).Times(c.BM), n.Times(c.BN))
	})
}

func (b *body) produce() {
	k, c := b.k, b.c
	at := b.ring.Producer()
	half := k.ClusterRank().Times(c.BN / c.Cluster) // rows of the B tile that this CTA loads for all
	b.tiles(k.ClusterIndex(), k.NumClusters(), func(row, col ptx.U32) {
		first := col.Add(half)
		k.For(k.U32(0), b.Steps.U32, k.U32(1), func(step ptx.U32) {
			at.WaitEmpty()
			s := at.Slot()
			full := b.ring.Full.Index(s)
			full.ArriveExpect(c.aBytes() + c.bBytes())
			x := step.Times(c.BK)
			load(k, c.TransA, c.BM, 1, b.A.TensorMap, b.sA.At(s.Times(c.aBytes())), x, row, full)
			load(k, c.TransB, c.BN/c.Cluster, c.Cluster, b.B.TensorMap, b.sB.At(s.Times(c.bBytes())).At(half.Times(c.BK*elem)), x, first, full)
			at.Advance()
		})
	})
	at.Drain()
}

// load brings rows rows of an operand, from row y and column x of K on, into every CTA of the cluster: K-major in one box, MN-major a box for each 64 rows.
func load(k *ptx.Builder, trans bool, rows, cluster int, m ptx.TensorMap, dst ptx.SAddr, x, y ptx.U32, full ptx.Bar) {
	box := func(dst ptx.SAddr, x, y ptx.U32) {
		if cluster == 1 {
			m.Load2(dst, x, y, full)
		} else {
			m.LoadMulticast2(dst, x, y, full, 1<<cluster-1)
		}
	}
	if !trans {
		box(dst, x, y)
		return
	}
	for i := range rows / 64 {
		box(dst.Plus(i*slab), y.Plus(64*i), x)
	}
}

// side is what one consumer keeps over all its tiles.
type side struct {
	group        ptx.U32 // 0 or 1
	at           kernel.Cursor
	descA, descB ptx.Desc
	accs         []*ptx.Acc // of 64 rows each
	releases     ptx.Pred   // this thread releases a stage in one CTA
	empty        ptx.CBar
	store        kernel.Store
}

func (b *body) consume() {
	k, c := b.k, b.c
	s := b.side()
	first, step := k.ClusterIndex(), k.NumClusters()
	if c.PingPong {
		first, step = first.Add(s.group.Mul(step)), step.Shl(1)
		k.If(s.group.Ne(k.U32(0)), func() {
			s.at.Skip(b.Steps.U32)
			k.BarArrive(k.U32(turns), 256) // the first turn is consumer 0's
		})
	}
	b.tiles(first, step, func(row, col ptx.U32) {
		b.turn(s)
		b.product(s)
		if !c.PingPong {
			row = row.Add(s.group.Times(c.height()))
		} else {
			s.at.Skip(b.Steps.U32)
		}
		s.store.Tile(k, s.accs, row, col)
	})
	s.store.Finish(k)
}

func (b *body) side() *side {
	k, c := b.k, b.c
	s := &side{group: k.WarpgroupIndex().Sub(k.U32(1)), at: b.ring.Consumer()}
	thread := k.WarpInGroup().Shl(5).Add(k.Lane())
	// Threads 0 … Cluster−1 of each consumer release a stage, each in one CTA.
	s.releases = thread.Lt(k.U32(c.Cluster))
	s.empty = b.ring.Empty.Map(thread.Min(k.U32(c.Cluster - 1)))
	mine := b.sA
	if !c.PingPong {
		mine = b.sA.At(s.group.Times(c.height() / 64 * slab))
	}
	s.descA, s.descB = k.Desc(mine, layout(c.TransA)), k.Desc(b.sB, layout(c.TransB))
	for range c.height() / 64 {
		s.accs = append(s.accs, k.NewAcc(c.BN))
	}
	s.store = kernel.Store{To: b.D.TensorMap, Type: c.Out, Add: c.Add, Buffers: b.sD.At(s.group.Times(kernel.StoreBytes)), Barrier: s.group.Plus(1)}
	return s
}

// turns is the first of two named barriers, one a consumer, that pass the turn of the main loop to and fro in ping-pong. A consumer that came before its turn
// would be two fillings of a stage ahead, where the parity it waits for is that of a filling long past.
const turns = 3

// turn waits for this consumer's turn.
func (b *body) turn(s *side) {
	if b.c.PingPong {
		b.k.BarSync(s.group.Plus(turns), 256)
	}
}

// pass gives the turn to the other consumer: every product of this tile has been issued.
func (b *body) pass(s *side) {
	if b.c.PingPong {
		b.k.BarArrive(b.k.U32(turns+1).Sub(s.group), 256)
	}
}

// layout describes an operand's tile to wgmma.
func layout(trans bool) ptx.DescLayout {
	if trans {
		return ptx.MNMajor(ptx.Swizzle128, 64)
	}
	return ptx.KMajor(ptx.Swizzle128)
}

// product is the main loop over one tile.
func (b *body) product(s *side) {
	k := b.k
	last := ptx.NewVar(k, b.step(s, true))
	k.For(k.U32(1), b.Steps.U32, k.U32(1), func(ptx.U32) {
		now := b.step(s, false)
		k.WgmmaWait(1) // the step before this one is done with its stage
		s.release(k, last.Get())
		last.Set(now)
	})
	b.pass(s)
	k.WgmmaWait(0)
	s.release(k, last.Get())
}

func (s *side) release(k *ptx.Builder, slot ptx.U32) {
	k.When(s.releases, func() { s.empty.Index(slot).Arrive() })
}

// step issues the products of one stage and gives its slot; the first of a tile overwrites the accumulators.
func (b *body) step(s *side, first bool) ptx.U32 {
	k, c := b.k, b.c
	s.at.WaitFull()
	slot := s.at.Slot()
	x, y := s.descA.Add(slot.Times(c.aBytes()/16).U64()), s.descB.Add(slot.Times(c.bBytes()/16).U64())
	k.WgmmaFence()
	for j := range c.BK / 16 {
		for i, acc := range s.accs {
			da, db := x.Step(i*slab/16+deeper(c.TransA, j)), y.Step(deeper(c.TransB, j))
			more := k.Bool(!first || j > 0)
			if c.In == num.F16 {
				acc.MMAF16(da, db, more, flag(c.TransA), flag(c.TransB))
			} else {
				acc.MMABF16(da, db, more, flag(c.TransA), flag(c.TransB))
			}
		}
	}
	k.WgmmaCommit()
	s.at.Advance()
	return slot
}

// deeper is how far the tile's k step j lies from its start, in units of 16 bytes: K-major 16 elements of a row, MN-major 16 rows of 128 bytes.
func deeper(trans bool, j int) int {
	if trans {
		return 128 * j
	}
	return 2 * j
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
