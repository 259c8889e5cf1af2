package emulate

import (
	"math"
	"math/bits"

	"heddle/ptx"
)

// table has one function an opcode; a test demands that none is missing. Mov's depends on the register class and is chosen in lower.
var table = [ptx.NumOps]op{
	ptx.OpMov: mov,

	ptx.OpAddU32: addU32, ptx.OpSubU32: subU32, ptx.OpMulU32: mulU32, ptx.OpMadU32: madU32, ptx.OpAndU32: andU32, ptx.OpXorU32: xorU32,
	ptx.OpMulHiU32: apply2(mulHi), ptx.OpMulWideU32: mulWide, ptx.OpDivU32: apply2(div), ptx.OpRemU32: apply2(rem),
	ptx.OpMinU32: minU32, ptx.OpMaxU32: maxU32,
	ptx.OpOrU32:  orU32,
	ptx.OpNotU32: apply1(func(x uint32) uint32 { return ^x }), ptx.OpShlU32: shlU32, ptx.OpShrU32: shrU32,
	ptx.OpPopU32: apply1(func(x uint32) uint32 { return uint32(bits.OnesCount32(x)) }), ptx.OpClzU32: apply1(func(x uint32) uint32 { return uint32(bits.LeadingZeros32(x)) }),
	ptx.OpAddS32: addU32, ptx.OpMinS32: signed2(func(x, y int32) int32 { return min(x, y) }), ptx.OpMaxS32: signed2(func(x, y int32) int32 { return max(x, y) }),

	ptx.OpAddU64: addU64, ptx.OpSubU64: wide(func(x, y uint64) uint64 { return x - y }),
	ptx.OpMulU64: wide(func(x, y uint64) uint64 { return x * y }), ptx.OpAndU64: wide(func(x, y uint64) uint64 { return x & y }),
	ptx.OpOrU64: wide(func(x, y uint64) uint64 { return x | y }), ptx.OpShlU64: shift64(func(x uint64, n uint32) uint64 { return x << n }),
	ptx.OpShrU64: shift64(func(x uint64, n uint32) uint64 { return x >> n }),

	ptx.OpLtU32: ltU32, ptx.OpLeU32: leU32,
	ptx.OpGtU32: gtU32, ptx.OpGeU32: geU32,
	ptx.OpEqU32: eqU32, ptx.OpNeU32: neU32,
	ptx.OpLtS32: compare(func(x, y uint32) bool { return int32(x) < int32(y) }), ptx.OpLtF32: compareF(func(x, y float32) bool { return x < y }),
	ptx.OpGtF32: compareF(func(x, y float32) bool { return x > y }), ptx.OpEqF32: compareF(func(x, y float32) bool { return x == y }),
	ptx.OpSelU32: selU32, ptx.OpSelF32: selU32, ptx.OpNotPred: notP,
	ptx.OpAndPred: pred2(func(x, y uint32) uint32 { return x & y }), ptx.OpOrPred: pred2(func(x, y uint32) uint32 { return x | y }),
	ptx.OpXorPred: pred2(func(x, y uint32) uint32 { return x ^ y }),

	ptx.OpAddF32: float2(func(x, y float32) float32 { return x + y }), ptx.OpSubF32: float2(func(x, y float32) float32 { return x - y }),
	ptx.OpMulF32: float2(func(x, y float32) float32 { return x * y }), ptx.OpDivF32: float2(func(x, y float32) float32 { return x / y }),
	ptx.OpFmaF32: fmaF32, ptx.OpMinF32: float2(minF), ptx.OpMaxF32: float2(maxF),
	// Of a NaN the manual promises an unspecified NaN; an H200's neg gives the canonical one, and abs is its twin.
	ptx.OpNegF32: float1(func(x float32) float32 { return -x }), ptx.OpAbsF32: float1(func(x float32) float32 { return f32(math.Float32bits(x) &^ (1 << 31)) }),
	ptx.OpSqrtF32: float1(func(x float32) float32 { return float32(math.Sqrt(float64(x))) }),
	ptx.OpRcpF32:  approx(func(x float64) float64 { return 1 / x }), ptx.OpRsqrtF32: approx(func(x float64) float64 { return 1 / math.Sqrt(x) }),
	ptx.OpEx2F32: approx(math.Exp2), ptx.OpLg2F32: approx(math.Log2),

	ptx.OpCvtU64U32: widen, ptx.OpCvtU32U64: low, ptx.OpCvtF32U32: apply1(func(x uint32) uint32 { return math.Float32bits(float32(x)) }),
	ptx.OpCvtU32F32: apply1(truncU32), ptx.OpBitsF32: mov, ptx.OpFloatU32: mov, ptx.OpSignedU32: mov, ptx.OpUnsignedS32: mov,
	ptx.OpPackBF16: apply2(packBF16), ptx.OpPackF16: apply2(packF16), ptx.OpBitsBF16x2: mov, ptx.OpBitsF16x2: mov, ptx.OpBF16x2Of: mov,
	ptx.OpCvtF32TF32: apply1(tf32),

	ptx.OpTidX:   perLane(func(w *warp, l int) uint32 { return uint32(32*w.id + l) }),
	ptx.OpLaneID: perLane(func(w *warp, l int) uint32 { return uint32(l) }),
	ptx.OpCTAIDX: splat(func(w *warp, c *code) uint32 { return uint32(w.t.index) }), ptx.OpNumCTAX: splat(func(w *warp, c *code) uint32 { return uint32(w.m.launch.Grid.X) }),
	ptx.OpClusterRank: splat(func(w *warp, c *code) uint32 { return uint32(w.t.rank) }),
	ptx.OpClusterIDX:  splat(func(w *warp, c *code) uint32 { return uint32(w.t.c.index) }),
	ptx.OpNumClusterX: splat(func(w *warp, c *code) uint32 { return uint32(w.m.launch.Grid.X / w.m.clusterSize) }),
	ptx.OpSharedBase:  splat(func(w *warp, c *code) uint32 { return uint32(w.t.rank)<<24 | sharedBase }),
	ptx.OpGlobalTimer: splat64(func(w *warp, c *code) uint64 { return uint64(w.m.counts.Steps) &^ 31 }),
	ptx.OpClock:       splat(func(w *warp, c *code) uint32 { return uint32(w.m.counts.Steps) }),
	ptx.OpParamU32:    splat(func(w *warp, c *code) uint32 { return uint32(param(w, c).Bits) }), ptx.OpParamF32: splat(func(w *warp, c *code) uint32 { return uint32(param(w, c).Bits) }),
	ptx.OpParamU64: splat64(func(w *warp, c *code) uint64 { return param(w, c).Bits }), ptx.OpParamPtr: splat64(func(w *warp, c *code) uint64 { return w.m.address(param(w, c)) }),
	ptx.OpParamMap: splat64(func(w *warp, c *code) uint64 { return mapTag + c.in.Src[0].Imm() }),

	ptx.OpOffsetS: addU32, ptx.OpOffsetG: addU64, ptx.OpOffsetBar: addU32, ptx.OpOffsetCBar: addU32,
	ptx.OpLoadSU32: loadShared(1), ptx.OpLoadSF32: loadShared(1), ptx.OpLoadSF32x2: loadShared(2), ptx.OpLoadSF32x4: loadShared(4),
	ptx.OpStoreSU32: storeShared(1), ptx.OpStoreSF32: storeShared(1), ptx.OpStoreSF32x4: storeShared(4), ptx.OpStoreSU32x4: storeShared(4), ptx.OpStoreSF32x2: storeShared(2),
	ptx.OpLoadGU32: loadGlobal(1), ptx.OpLoadGF32: loadGlobal(1), ptx.OpLoadGF32x4: loadGlobal(4), ptx.OpLoadGU32x4: loadGlobal(4),
	ptx.OpLoadGU16: loadHalf, ptx.OpStoreGU16: storeHalf, ptx.OpStoreGU32: storeGlobal(1), ptx.OpStoreGF32: storeGlobal(1), ptx.OpStoreGF32x4: storeGlobal(4), ptx.OpStoreGU32x4: storeGlobal(4),
	ptx.OpAtomAddGU32: atomic(func(old, x uint32) uint32 { return old + x }), ptx.OpAtomIncGU32: atomic(atomicInc),
	ptx.OpRedAddGU32: atomic(func(old, x uint32) uint32 { return old + x }), ptx.OpRedAddGF32: atomic(addFloat),

	ptx.OpShflIdxU32:  shuffle(func(l int, x uint32) int { return int(x) }),
	ptx.OpShflBflyU32: shuffle(func(l int, x uint32) int { return l ^ int(x) }), ptx.OpShflBflyF32: shuffle(func(l int, x uint32) int { return l ^ int(x) }),
	ptx.OpBallot: ballot, ptx.OpAnyPred: anyP, ptx.OpAllPred: allP, ptx.OpElect: elect, ptx.OpWarpSync: warpSync,

	ptx.OpMbarInit: mbarInit, ptx.OpMbarArrive: mbarArrive, ptx.OpMbarArriveRemote: mbarArrive, ptx.OpMbarExpect: mbarExpect, ptx.OpMbarExpectTx: mbarExpectTx,
	ptx.OpMbarWait: mbarWait, ptx.OpMbarTry: mbarTry, ptx.OpMapa: mapa, ptx.OpMapaAddr: mapa,
	ptx.OpBarSync: barSync, ptx.OpBarArrive: barArrive, ptx.OpClusterArrive: clusterArrive, ptx.OpClusterWait: clusterWait,
	ptx.OpFenceProxyAsync: fenceProxy, ptx.OpFenceMbarInit: fenceInit, ptx.OpFenceCluster: nop, ptx.OpFenceGPU: nop,
	ptx.OpGridWait: gridWait, ptx.OpGridLaunch: nop, ptx.OpNanosleep: nanosleep, ptx.OpSetMaxInc: setmaxnreg, ptx.OpSetMaxDec: setmaxnreg,

	ptx.OpTMALoad2: tmaLoad(2, false), ptx.OpTMALoad2Multi: tmaLoad(2, true), ptx.OpTMALoad2Mask: tmaLoad(2, true), ptx.OpTMALoad3: tmaLoad(3, false),
	ptx.OpTMAStore2: tmaStore(save), ptx.OpTMAReduceAdd2: tmaStore(reduceAdd), ptx.OpBulkCommit: bulkCommit,
	ptx.OpBulkWaitRead: bulkWait(false), ptx.OpBulkWait: bulkWait(true), ptx.OpPrefetchMap: nop,

	ptx.OpStMatrix4: storeMatrix, ptx.OpLdMatrix4: loadMatrix, ptx.OpDescAdd: addU64,
	ptx.OpDescStep: stepU64, ptx.OpDescOf: wide(func(x, y uint64) uint64 { return x | y }),
	ptx.OpAccRead: accRead, ptx.OpWgFence: wgFence, ptx.OpWgCommit: wgCommit, ptx.OpWgWait: wgWait,
	ptx.OpWgmmaBF16: wgmma(forms(ptx.OpWgmmaBF16)), ptx.OpWgmmaF16: wgmma(forms(ptx.OpWgmmaF16)), ptx.OpWgmmaTF32: wgmma(forms(ptx.OpWgmmaTF32)),
	ptx.OpWgmmaE4M3: wgmma(forms(ptx.OpWgmmaE4M3)), ptx.OpWgmmaE5M2: wgmma(forms(ptx.OpWgmmaE5M2)),

	ptx.OpOffsetC: addU32, ptx.OpLoadCU32: loadRemote, ptx.OpLoadCF32: loadRemote, ptx.OpStoreCU32: storeRemote, ptx.OpStoreCF32: storeRemote,
	ptx.OpStAsyncU32: storeAsync(1), ptx.OpStAsyncU32x4: storeAsync(4), ptx.OpMbarExpectRemote: mbarExpect, ptx.OpTMALoad2Hint: tmaLoad(2, false),
	ptx.OpBulkLoad: bulkLoad, ptx.OpBulkStore: bulkStore,
	ptx.OpBrevU32: apply1(bits.Reverse32), ptx.OpPrmtU32: apply3(prmt), ptx.OpBfeU32: apply3(bfe), ptx.OpMadWideU32: madWide, ptx.OpMulS32: mulU32,
	ptx.OpShrS32: apply2(func(x, y uint32) uint32 { return uint32(int32(x) >> min(y, 31)) }),
	ptx.OpLtU64:  compare64(func(x, y uint64) bool { return x < y }), ptx.OpEqU64: compare64(func(x, y uint64) bool { return x == y }),
	ptx.OpTanhF32: float1(func(x float32) float32 { return float32(math.Tanh(float64(x))) }), ptx.OpFmaBF16x2: apply3(fmaBF16),
	ptx.OpCvtF32S32: apply1(func(x uint32) uint32 { return math.Float32bits(float32(int32(x))) }),
	ptx.OpCvtS32F32: toS32(math.Trunc), ptx.OpCvtS32F32n: toS32(math.RoundToEven),
	ptx.OpLowBF16: apply1(func(x uint32) uint32 { return x << 16 }), ptx.OpHighBF16: apply1(func(x uint32) uint32 { return x &^ 0xffff }),
	ptx.OpPackE4M3: apply2(packE4M3), ptx.OpPackE5M2: apply2(packE5M2),
	ptx.OpAtomMaxGU32: atomic(func(old, x uint32) uint32 { return max(old, x) }), ptx.OpAtomExchGU32: atomic(func(_, x uint32) uint32 { return x }),
	ptx.OpAtomCasGU32: atomicCompare, ptx.OpAtomAddSU32: atomicShared, ptx.OpLoadGNCF32x4: loadGlobal(4), ptx.OpLoadGNCU32x4: loadGlobal(4),
	ptx.OpCpAsync16: copyAsync, ptx.OpCpCommit: copyCommit, ptx.OpCpWait: copyWait,
	ptx.OpStMatrix4T: storeMatrixT, ptx.OpLdMatrix4T: loadMatrixT, ptx.OpMmaBF16: mmaBF16,
	ptx.OpWgmmaRBF16: wgmma(forms(ptx.OpWgmmaRBF16)), ptx.OpWgmmaRF16: wgmma(forms(ptx.OpWgmmaRF16)),
}
