package ptx

import "math"

// U32 is a constant.
func (k *Builder) U32(c int) U32 { return U32{immediate(k, c)} }

// S32 is a constant.
func (k *Builder) S32(c int) S32 { return S32{immediate(k, c)} }

// U64 is a constant.
func (k *Builder) U64(c uint64) U64 {
	return U64{immediate64(k, c)}
}

// F32 is a constant.
func (k *Builder) F32(c float32) F32 {
	return F32{operand{k: k, reg: -1, class: B32, level: Grid, imm: uint64(math.Float32bits(c)), float: true}}
}

// Bool is a constant predicate.
func (k *Builder) Bool(b bool) Pred {
	return Pred{k.once(boolKey(b), func() operand {
		y := 0
		if !b {
			y = 1
		}
		return k.U32(0).Eq(k.U32(y)).operand
	})}
}

// once makes a value in the prologue at its first use: it can then be used everywhere.
func (k *Builder) once(key Op, make func() operand) operand {
	if o, ok := k.cached[key]; ok {
		return o
	}
	cur, scopes, control, guard := k.cur, k.scopes, k.control, k.guard
	k.cur, k.scopes, k.control, k.guard = k.prologue, k.scopes[:1], nil, operand{}
	o := make()
	k.cur, k.scopes, k.control, k.guard = cur, scopes, control, guard
	k.cached[key] = o
	return o
}

// Keys of derived values that are made once; real opcodes end at NumOps.
const (
	keyTrue = NumOps + iota
	keyFalse
	keyWarp
	keyWarpgroup
	keyParam // + index
)

func boolKey(b bool) Op {
	if b {
		return keyTrue
	}
	return keyFalse
}

// Tid is the thread's index in its CTA.
func (k *Builder) Tid() U32 {
	return U32{k.once(OpTidX, func() operand { return k.readTid().operand })}
}

// Lane is the thread's index in its warp.
func (k *Builder) Lane() U32 {
	return U32{k.once(OpLaneID, func() operand { return k.readLane().operand })}
}

// WarpIndex is the warp's index in its CTA. It goes through a shuffle, so that ptxas too sees that it does not vary inside the warp.
func (k *Builder) WarpIndex() U32 {
	return U32{k.once(keyWarp, func() operand { return k.Tid().Shr(5).Shuffle(k.U32(0)).operand })}
}

// WarpgroupIndex is the index of the warp's group of four in its CTA.
func (k *Builder) WarpgroupIndex() U32 {
	return U32{k.once(keyWarpgroup, func() operand {
		g := k.WarpIndex().Shr(2).operand
		g.level = Warpgroup // four consecutive warps share it
		return g
	})}
}

// WarpInGroup is the warp's index in its warpgroup.
func (k *Builder) WarpInGroup() U32 { return k.WarpIndex().And(k.U32(3)) }

// CTAIndex is the CTA's index along x of the grid.
func (k *Builder) CTAIndex() U32 {
	return U32{k.once(OpCTAIDX, func() operand { return k.readCTA().operand })}
}

// NumCTAs is the number of CTAs along x.
func (k *Builder) NumCTAs() U32 {
	return U32{k.once(OpNumCTAX, func() operand { return k.readNumCTAs().operand })}
}

// ClusterRank is the CTA's rank in its cluster.
func (k *Builder) ClusterRank() U32 {
	return U32{k.once(OpClusterRank, func() operand { return k.readClusterRank().operand })}
}

// ClusterIndex is the cluster's index along x.
func (k *Builder) ClusterIndex() U32 {
	return U32{k.once(OpClusterIDX, func() operand { return k.readCluster().operand })}
}

// NumClusters is the number of clusters along x.
func (k *Builder) NumClusters() U32 {
	return U32{k.once(OpNumClusterX, func() operand { return k.readNumClusters().operand })}
}

// ClusterSync is ClusterArrive, then ClusterWait.
func (k *Builder) ClusterSync() {
	k.ClusterArrive()
	k.ClusterWait()
}

// SyncCTA waits for all threads of the CTA: named barrier 0.
func (k *Builder) SyncCTA() { k.BarSync(k.U32(0), k.threads) }

// Same is x of the warp's first lane, where the author knows that every thread of a group of the given level has the same x: read from memory that nobody writes.
func (v U32) Same(l Level) U32 {
	r := v.Shuffle(U32{immediate(v.k, 0)})
	r.level = max(r.level, l)
	return r
}

// Shl shifts left by a constant.
func (v U32) Shl(n int) U32 { return v.ShlBy(U32{immediate(v.k, n)}) }

// Shr shifts right by a constant, zeros in.
func (v U32) Shr(n int) U32 { return v.ShrBy(U32{immediate(v.k, n)}) }

// Plus adds a constant.
func (v U32) Plus(n int) U32 { return v.Add(U32{immediate(v.k, n)}) }

// Times multiplies by a constant.
func (v U32) Times(n int) U32 { return v.Mul(U32{immediate(v.k, n)}) }

// Plus is the address n bytes further.
func (v SAddr) Plus(n int) SAddr { return v.At(U32{immediate(v.k, n)}) }

// Plus is the address n bytes further.
func (v GAddr) Plus(n int) GAddr {
	return v.At(U64{immediate64(v.k, uint64(int64(n)))})
}

// Index is barrier i of the array that starts here.
func (v Bar) Index(i U32) Bar { return v.at(i.Shl(3)) }

// Index is barrier i of the array that starts here, in the same CTA.
func (v CBar) Index(i U32) CBar { return v.at(i.Shl(3)) }

// Cache policies for Load2Hint, as createpolicy makes them for all of an access (CUTLASS, TMA::CacheHintSm90).
const (
	EvictFirst = 0x12F0000000000000
	EvictLast  = 0x14F0000000000000
)

// Plus is the address n bytes further, in the same CTA.
func (v CAddr) Plus(n int) CAddr { return v.At(U32{immediate(v.k, n)}) }

// InitRepeated is Init of a barrier at which every participant arrives so many times a phase; Init takes it that each does once, and is refused where the
// threads that reach the barrier's arrivals cannot add up to the count.
func (v Bar) InitRepeated(arrivals, times int) {
	v.Init(arrivals)
	if v.k == nil {
		return
	}
	if times < 1 || arrivals%times != 0 {
		v.k.fail("a barrier for %d arrivals, %d of each participant: want a whole number of participants", arrivals, times)
		return
	}
	v.k.cur.Nodes[len(v.k.cur.Nodes)-1].(*Inst).times = times
}
