package gemm

import (
	"heddle/kernel"
	"heddle/num"
	"heddle/ptx"
	"heddle/tile"
)

// body computes, for each tile of D that falls to its cluster,
//
//	for k := 0; k < K; k += BK { acc += A[rows, k:k+BK] · B[cols, k:k+BK]ᵀ }
//	D[rows, cols] = round(epilogue(acc)), or D + acc
//
// Roles: one producer thread, and consumer warpgroups of 64 or 128 rows each. Cooperative consumers share every tile; ping-pong consumers take tiles in
// turn, so that one stores while the other multiplies.
//
// Barriers: full[s] 1 arrival + A and B bytes of the stage; empty[s] one arrival of each consumer of each CTA that this CTA's loads reach, because they
// overwrite the stage there; named barrier 1, 2, 3: the 128 threads of one consumer;
// named barrier turn, turn+1: both ping-pong consumers, of which the first or second may now multiply.
//
// Shared memory: Stages × A tile, Stages × B tile; 8 KiB store buffers of each consumer; barriers. A K-major tile is cut along K into slabs one swizzle wide; a
// transposed one is cut into chunks of 64 rows of A or B, each BK lines deep.
//
// In a cluster each CTA loads 1/ClusterN of its A tile for its row and 1/ClusterM of its B tile for its column. One k step of products is in flight while the
// next is issued; the stores of a tile drain under the main loop of the next.
func body(k *ptx.Builder, c Config) params {
	p := params{A: k.ParamMap("A"), B: k.ParamMap("B"), D: k.ParamMap("D"), TilesM: k.ParamU32("tilesM"), TilesN: k.ParamU32("tilesN"), Steps: k.ParamU32("steps")}
	p.Finish = c.Epi.Params(k)
	if c.StreamK {
		p.stream = streamParams(k)
	}
	if c.Dynamic {
		p.Counter = k.ParamPtr("counter")
	}
	if c.Order.Table {
		p.Table = k.ParamPtr("table")
	}
	if c.Groups != Alone {
		p.groups = groupParams(k)
		if c.Groups == ByRows && c.TransB {
			k.ShiftB()
		}
	}
	if c.Epi.Act == kernel.SwiGLU {
		k.SpliceB(c.BN / 2)
	}
	b := &builder{
		k: k, c: c, p: p,
		sA: k.SharedTile("A", c.Stages, c.tile(c.BM, c.TransA)).Addr(), sB: k.SharedTile("B", c.Stages, c.tile(c.BN, c.TransB)).Addr(),
		sD: k.Shared("D", c.Consumers*c.storeBytes(), 1024).Addr(), ring: kernel.NewRing(k, c.Stages),
	}
	if c.Blocks {
		p.scales = scales{k.ParamMap("scaleA"), k.ParamPtr("scaleB")}
		b.p, b.sScale = p, k.Shared("scales", c.Stages*c.scaleBytes(), 128).Addr()
	}
	if n := c.Consumers * c.Epi.Vectors(); n > 0 {
		b.vectors, b.vector = k.Shared("vectors", n*kernel.MaxVector, 128).Addr(), k.Bars("vector", c.Consumers)
	}
	if c.Epi.ReadsC() {
		b.loaded = k.Bars("C", c.Consumers*c.Buffers)
	}
	if c.Cluster() > 1 {
		rank := k.ClusterRank()
		b.m, b.n = rank.And(k.U32(c.ClusterM-1)), rank.Shr(log2(c.ClusterM))
	} else {
		b.m, b.n = k.U32(0), k.U32(0)
	}
	if c.Dynamic {
		b.queue = kernel.NewQueue(k, p.Counter.GAddr, p.TilesM.Mul(p.TilesN.U32), c.Cluster())
	}
	k.If(k.Tid().Eq(k.U32(0)), func() {
		if c.Dynamic {
			b.queue.Init(4 * c.Consumers)
		}
		b.ring.Init(c.arrivals() * (c.ClusterM + c.ClusterN - 1))
		b.initEpilogue()
		k.FenceMbarrierInit()
		p.A.Prefetch()
		p.B.Prefetch()
		p.D.Prefetch()
	})
	b.sync()
	few, many := c.registers()
	k.Role("producer", 1, few, func() { k.If(k.Tid().Eq(k.U32(0)), b.producer) })
	k.Role("consumer", c.Consumers, many, b.consumer)
	if c.Cluster() > 1 {
		k.ClusterSync() // a CTA's memory lives until its peers have done with it
	}
	return p
}

// sync waits for all threads of the cluster.
func (b *builder) sync() {
	if b.c.Cluster() == 1 {
		b.k.SyncCTA()
	} else {
		b.k.ClusterSync()
	}
}

const turn = 4 // named barrier

// builder is what the roles share.
type builder struct {
	k          *ptx.Builder
	c          Config
	p          params
	sA, sB, sD ptx.SAddr
	ring       kernel.Ring
	m, n       ptx.U32 // this CTA's place in its cluster
	vectors    ptx.SAddr
	vector     ptx.Bar // vectors have come: one of each consumer
	loaded     ptx.Bar // chunks of C have come: one of each buffer of each consumer
	queue      kernel.Queue
	sScale     ptx.SAddr
}

// work is a tile of D, or some k steps of one: those of the product's from first on, below end. Row and col are the first of this CTA's tile.
type work struct {
	row, col   ptx.U32
	tile       ptx.U32 // its number
	first, end ptx.U32
	// Of groups: where the tile's rows of A and of B, and the group's k steps, begin in the matrices; rows of D from limit on are others'; left is the depth of the last k step.
	rowA, rowB, depthA, depthB, limit, left ptx.U32
}

// from is where TMA finds A's and B's part of a k step: depth and row of each.
func (w work) from(c Config, step ptx.U32) (depthA, rowA, depthB, rowB ptx.U32) {
	depth := step.Times(c.BK)
	switch c.Groups {
	case ByRows:
		return depth, w.row, depth.Add(w.depthB), w.rowB
	case ByDepth:
		return depth.Add(w.depthA), w.rowA, depth.Add(w.depthB), w.rowB
	}
	return depth, w.row, depth, w.col
}

func (w work) steps() ptx.U32 { return w.end.Sub(w.first) }

// visitor is the way through a CTA's work: of its producer's one thread, or of a consumer's warpgroup, as the level says.
type visitor func(level ptx.Level, visit func(work))

// through is the way that the configuration chooses; the producer that draws has a part of its own in dynamic.
func (b *builder) through() visitor {
	switch c := b.c; {
	case c.StreamK:
		return b.segments
	case c.Groups != Alone:
		return b.each
	case c.Dynamic:
		return b.dynamic
	}
	return func(level ptx.Level, visit func(work)) { b.tiles(level, b.k.U32(0), 1, visit) }
}

// tiles visits every step-th tile of this cluster from the first-th on.
func (b *builder) tiles(level ptx.Level, first ptx.U32, step int, visit func(work)) {
	k := b.k
	begin := k.ClusterIndex().Add(first.Mul(k.NumClusters()))
	k.For(begin, b.p.TilesM.Mul(b.p.TilesN.U32), k.NumClusters().Times(step), func(t ptx.U32) {
		visit(b.place(level, t, k.U32(0), b.p.Steps.U32))
	})
}

// place is k steps of tile t.
func (b *builder) place(level ptx.Level, t, first, end ptx.U32) work {
	c, k := b.c, b.k
	var m, n ptx.U32
	if c.Order.Table {
		at := reader{level, b.p.Table}.at(t)
		m, n = at.Shr(16), at.And(k.U32(0xffff))
	} else {
		m, n = c.Order.Tile(k, t, b.p.TilesM.U32, b.p.TilesN.U32)
	}
	return work{row: m.Times(c.ClusterM).Add(b.m).Times(c.BM), col: n.Times(c.ClusterN).Add(b.n).Times(c.columns()), tile: t, first: first, end: end}
}

func (b *builder) producer() {
	k, c := b.k, b.c
	if c.Overlap != Serial {
		k.GridWait()
	}
	if c.Overlap == Invites {
		k.GridLaunchDependents()
	}
	at := b.ring.Producer()
	loadA := b.loader(b.p.A, c.TransA, c.BM, c.ClusterN, b.n, k.U32(everyNth(c.ClusterN, c.ClusterM)).ShlBy(b.m)) // to the CTAs with this one's rows
	loadB := b.loaderB(k.U32(1<<c.ClusterM - 1).ShlBy(b.n.Times(c.ClusterM)))                                     // to those with its columns
	var back *ptx.Var[ptx.U32]
	if c.Zigzag {
		back = ptx.NewVarAt(k, ptx.Lane, k.U32(0))
	}
	b.through()(ptx.Lane, func(w work) {
		k.For(w.first, w.end, k.U32(1), func(step ptx.U32) {
			if c.Zigzag {
				step = back.Get().Ne(k.U32(0)).SelectU32(w.first.Add(w.end).Sub(k.U32(1)).Sub(step), step)
			}
			at.WaitEmpty()
			s := at.Slot()
			full := b.ring.Full.Index(s)
			full.ArriveExpect(c.aBytes() + c.bBytes() + c.scaleBytes())
			depthA, rowA, depthB, rowB := w.from(c, step)
			loadA(b.sA.At(s.Times(c.aBytes())), depthA, rowA, full)
			loadB(b.sB.At(s.Times(c.bBytes())), depthB, rowB, full)
			b.loadScales(s, step, w.row, full)
			at.Advance()
		})
		if c.Zigzag {
			back.Set(back.Get().Xor(k.U32(1)))
		}
	})
	at.Drain()
}

// load brings this CTA's part of a stage's tile into shared memory: depth is the first column along K, row the first row of the tile.
type load func(to ptx.SAddr, depth, row ptx.U32, full ptx.Bar)

// loaderB is loader for B. The rows of a pair of gate and up come from two places, F rows apart: half the tile from each.
func (b *builder) loaderB(mask ptx.U32) load {
	c := b.c
	if c.Epi.Act != kernel.SwiGLU {
		return b.loader(b.p.B, c.TransB, c.BN, c.ClusterM, b.m, mask)
	}
	k, f := b.k, b.p.Finish.Half.U32
	if c.ClusterM > 1 { // each part lies in one half
		up := b.m.Ge(k.U32(c.ClusterM/2)).SelectU32(f.Sub(k.U32(c.BN/2)), k.U32(0))
		plain := b.loader(b.p.B, c.TransB, c.BN, c.ClusterM, b.m, mask)
		return func(to ptx.SAddr, depth, row ptx.U32, full ptx.Bar) { plain(to, depth, row.Add(up), full) }
	}
	half := b.piece(b.p.B, c.TransB, c.BN, c.BN/2, ptx.U32{})
	return func(to ptx.SAddr, depth, row ptx.U32, full ptx.Bar) {
		half(to, depth, row, full)
		half(to.Plus(b.c.down(c.TransB, c.BN/2)), depth, row.Add(f), full)
	}
}

// down is the bytes from the start of a tile to its row r, a multiple of 64 in a transposed one.
func (c Config) down(trans bool, r int) int {
	if trans {
		return r * c.BK * c.elem()
	}
	return r * c.swizzle().Width()
}

// loader gives the function that loads this CTA's part, of so many equal ones, of a tile of so many rows into all CTAs of a mask.
func (b *builder) loader(from ptx.ParamMap, trans bool, rows, parts int, part, mask ptx.U32) load {
	if parts == 1 {
		mask = ptx.U32{}
	}
	mine := b.piece(from, trans, rows, rows/parts, mask)
	first := part.Times(rows / parts)
	offset := part.Times(b.c.down(trans, rows/parts))
	return func(to ptx.SAddr, depth, row ptx.U32, full ptx.Bar) { mine(to.At(offset), depth, row.Add(first), full) }
}

// piece gives the function that loads some of the rows of a tile; a mask that is not zero says into which CTAs.
func (b *builder) piece(from ptx.ParamMap, trans bool, rows, some int, mask ptx.U32) load {
	c := b.c
	policy := uint64(ptx.EvictFirst)
	if from == b.p.A {
		policy = ptx.EvictLast
	}
	box := func(dst ptx.SAddr, x, y ptx.U32, full ptx.Bar) {
		switch {
		case c.KeepA:
			from.Load2Hint(dst, x, y, full, b.k.U64(policy))
		case mask == (ptx.U32{}):
			from.Load2(dst, x, y, full)
		default:
			from.LoadMulticastTo2(dst, x, y, full, mask)
		}
	}
	if trans {
		return func(to ptx.SAddr, depth, row ptx.U32, full ptx.Bar) {
			for i := range some / 64 {
				box(to.Plus(i*c.chunk()), row.Plus(64*i), depth, full)
			}
		}
	}
	return func(to ptx.SAddr, depth, row ptx.U32, full ptx.Bar) {
		for s := range c.BK / c.slab() { // one slab after the other along K
			box(to.Plus(s*rows*c.swizzle().Width()), depth.Plus(s*c.slab()), row, full)
		}
	}
}

// chunk is the bytes of 64 rows of a transposed operand's stage.
func (c Config) chunk() int { return 64 * c.BK * c.elem() }

// kStep is the bytes of a row that one matrix product takes, whatever the type.
const kStep = 32

// layout describes an operand's tile to wgmma.
func (c Config) layout(trans bool) ptx.DescLayout {
	if trans {
		return ptx.MNMajor(ptx.Swizzle128, c.BK)
	}
	return ptx.KMajor(c.swizzle())
}

// tile is what TMA leaves of an operand in a stage; Build holds the descriptors to it.
func (c Config) tile(rows int, trans bool) ptx.OperandTile {
	s := c.swizzle()
	if trans {
		s = ptx.Swizzle128
	}
	return ptx.OperandTile{Layout: tile.Must(tile.OperandLayout(rows, c.BK, c.elem(), tile.SwizzleMode(s.Width()), trans)), Elem: c.elem(), Swizzle: s}
}

// within is where 64-row block i of a tile of so many rows begins its k step j, in units of 16 bytes: K-major 32 bytes along a row, transposed 16 lines of 128 bytes.
func (c Config) within(trans bool, rows, i, j int) int {
	if trans {
		return (i*c.chunk() + j*16*128) / 16
	}
	width := c.swizzle().Width()
	return (j*kStep/width*rows+i*64)*width/16 + j*kStep%width/16
}

func (b *builder) consumer() {
	k, c := b.k, b.c
	group := k.WarpgroupIndex().Sub(k.U32(1))
	release := b.releaser()
	mine := k.U32(0) // first row, in the tile, of this consumer
	if !c.PingPong {
		mine = group.Times(c.rows())
	}
	block := mine.Shr(6).Times(16 * c.within(c.TransA, c.BM, 1, 0))
	descA, descB := k.Desc(b.sA.At(block), c.layout(c.TransA)), k.Desc(b.sB, c.layout(c.TransB))
	accs := make([]*ptx.Acc, c.rows()/64)
	for i := range accs {
		accs[i] = k.NewAcc(c.BN)
	}
	at := b.ring.Consumer()
	// multiply issues one k step; the first of a tile overwrites the accumulators.
	await, peek := b.peeks(at)
	multiply := func(first bool, clear func(stage ptx.U32)) ptx.U32 {
		await()
		s := at.Slot()
		clear(s)
		c.products(k, accs, descA.Add(s.Times(c.aBytes()/16).U64()), descB.Add(s.Times(c.bBytes()/16).U64()), first)
		at.Advance()
		peek()
		return s
	}
	clear := func(w work, stage ptx.U32) { b.clear(w, stage, b.sA.At(block), group.Plus(1)) }
	run, source := b.running(multiply, clear, release), kernel.Source(nil)
	if c.Blocks {
		run, source = b.promoted(at, accs[0], mine, func() ptx.U32 { return multiply(true, func(ptx.U32) {}) }, release)
	}
	ending := b.epilogue(accs, group, source)
	take, yield := b.turns(group)
	b.mine(at, group, func(w work) {
		w.row = w.row.Add(mine)
		finish := ending.begin(w)
		take()
		run(w, yield)
		finish()
	})
	ending.end()
}

// peeks gives how a consumer waits for a stage: at once, or with a look taken a step earlier, behind which it waits only if the stage was not there.
func (b *builder) peeks(at kernel.Cursor) (await, peek func()) {
	k := b.k
	if !b.c.Peek {
		return at.WaitFull, func() {}
	}
	there := ptx.NewVarAt(k, ptx.Warp, k.U32(0))
	await = func() { k.If(there.Get().Eq(k.U32(0)), at.WaitFull) }
	peek = func() { there.Set(at.Peek().SelectU32(k.U32(1), k.U32(0))) }
	return await, peek
}

// mainLoop adds up the k steps of a piece of work, releases their stages and, when the last product is issued, yields to the other consumer.
type mainLoop func(w work, yield func())

// running keeps one k step of products in flight while the next is issued.
func (b *builder) running(multiply func(first bool, clear func(ptx.U32)) ptx.U32, clear func(work, ptx.U32), release func(ptx.U32)) mainLoop {
	k := b.k
	none := func(ptx.U32) {}
	return func(w work, yield func()) {
		end := w.end
		var last *ptx.Var[ptx.U32]
		again := func(clear func(ptx.U32)) {
			s := multiply(false, clear)
			k.WgmmaWait(1) // the step before this one is done with its stage
			release(last.Get())
			last.Set(s)
		}
		if b.c.Groups != ByDepth {
			last = ptx.NewVar(k, multiply(true, none))
		} else { // the last step stands behind the loop, and may be the first
			end = end.Sub(k.U32(1))
			last = ptx.NewVar(k, multiply(true, func(s ptx.U32) { k.If(end.Eq(k.U32(0)), func() { clear(w, s) }) }))
		}
		k.For(w.first.Plus(1), end, k.U32(1), func(ptx.U32) { again(none) })
		if b.c.Groups == ByDepth {
			k.If(end.Gt(k.U32(0)), func() { again(func(s ptx.U32) { clear(w, s) }) })
		}
		yield()
		k.WgmmaWait(0)
		release(last.Get())
	}
}

// mine visits the work of a consumer: all of the CTA's, or every second piece in ping-pong, where the ring's stages of the others are skipped.
func (b *builder) mine(at kernel.Cursor, group ptx.U32, visit func(work)) {
	k, c := b.k, b.c
	switch {
	case c.PingPong && (c.StreamK || c.Dynamic || c.Groups != Alone): // how many steps the other's work has, only the way itself tells
		turn := ptx.NewVar(k, group)
		b.through()(ptx.Warpgroup, func(w work) {
			k.IfElse(turn.Get().Eq(k.U32(0)), func() { visit(w) }, func() { at.Skip(w.steps()) })
			turn.Set(k.U32(1).Sub(turn.Get()))
		})
	case c.PingPong:
		at.Skip(group.Mul(b.p.Steps.U32))
		b.tiles(ptx.Warpgroup, group, 2, func(w work) {
			visit(w)
			at.Skip(b.p.Steps.U32) // the other's tile
		})
	default:
		b.through()(ptx.Warpgroup, visit)
	}
}

// products issues the products of one stage.
func (c Config) products(k *ptx.Builder, accs []*ptx.Acc, a, b ptx.Desc, first bool) {
	k.WgmmaFence()
	for j := range c.BK * c.elem() / kStep {
		for i, acc := range accs {
			x, y, more := a.Step(c.within(c.TransA, c.BM, i, j)), b.Step(c.within(c.TransB, c.BN, 0, j)), k.Bool(!first || j > 0)
			switch c.In {
			case num.F16:
				acc.MMAF16(x, y, more, flag(c.TransA), flag(c.TransB))
			case num.TF32:
				acc.MMATF32(x, y, more)
			case num.E4M3:
				acc.MMAE4M3(x, y, more)
			case num.E5M2:
				acc.MMAE5M2(x, y, more)
			default:
				acc.MMABF16(x, y, more, flag(c.TransA), flag(c.TransB))
			}
		}
	}
	k.WgmmaCommit()
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// turns gives the functions by which ping-pong consumers pass the main loop to and fro. A barrier's parity tells a phase from its neighbours only, so one may not
// look at the ring while the other has not seen all of its tile.
func (b *builder) turns(group ptx.U32) (await, yield func()) {
	k := b.k
	if !b.c.PingPong {
		return func() {}, func() {}
	}
	other := k.U32(1).Sub(group)
	await = func() { k.BarSync(group.Plus(turn), 256) }
	yield = func() { k.BarArrive(other.Plus(turn), 256) }
	k.If(group.Eq(k.U32(1)), yield)
	return await, yield
}

// releaser gives the function that lets go of a stage: as many threads of the warpgroup as there are CTAs whose loads reach this one arrive, one in each.
func (b *builder) releaser() func(stage ptx.U32) {
	k, c := b.k, b.c
	thread := k.WarpInGroup().Shl(5).Add(k.Lane())
	if c.Blocks {
		thread = k.Lane() // of each warp: it has read the stage's factors itself, where a product's reads count for all four
	}
	count := c.ClusterM + c.ClusterN - 1
	releases := thread.Lt(k.U32(count))
	if count == 1 {
		return func(s ptx.U32) { k.When(releases, func() { b.ring.Empty.Index(s).Arrive() }) }
	}
	// Threads below ClusterM take this CTA's column, itself included, the others its row without it.
	i := thread.Min(k.U32(count - 1))
	column := b.n.Times(c.ClusterM).Add(i)
	j := i.Sub(k.U32(c.ClusterM)) // wraps where unused
	other := j.Ge(b.n).SelectU32(j.Plus(1), j)
	row := b.m.Add(other.Times(c.ClusterM))
	empty := b.ring.Empty.Map(i.Lt(k.U32(c.ClusterM)).SelectU32(column, row))
	return func(s ptx.U32) { k.When(releases, func() { empty.Index(s).Arrive() }) }
}

// everyNth has n bits set, one in step.
func everyNth(n, step int) int {
	mask := 0
	for i := range n {
		mask |= 1 << (i * step)
	}
	return mask
}

func log2(n int) int {
	bits := 0
	for ; n > 1; n >>= 1 {
		bits++
	}
	return bits
}

// dynamic visits the tiles that this cluster draws. The producer of the first CTA draws the next one before it loads this one, so that it need not wait for it.
func (b *builder) dynamic(level ptx.Level, visit func(work)) {
	k, q := b.k, b.queue
	tile := ptx.NewVarAt(k, level, k.ClusterIndex())
	read := q.Reader(level)
	first, draws, drawn := b.m.Or(b.n).Eq(k.U32(0)), q.Drawer(), ptx.NewVarAt(k, ptx.Lane, k.U32(0))
	k.While(func() ptx.Pred { return tile.Get().Lt(q.Tiles) }, func() {
		if level == ptx.Lane {
			k.If(first, func() { drawn.Set(q.Draw()) })
		}
		visit(b.place(level, tile.Get(), k.U32(0), b.p.Steps.U32))
		if level != ptx.Lane {
			tile.Set(q.Next(read, level))
			return
		}
		k.IfElse(first, func() {
			q.Announce(draws, drawn.Get())
			tile.Set(drawn.Get())
		}, func() { tile.Set(q.Next(read, level)) })
	})
}
