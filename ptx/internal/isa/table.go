package isa

// Table lists every instruction, by family.
func Table() []Row {
	var all []Row
	for _, family := range [][]Row{integers(), predicates(), floats(), conversions(), specials(), memory(), warps(), barriers(), bulk(), matrices()} {
		all = append(all, family...)
	}
	return all
}

func integers() []Row {
	const sec = "Integer Arithmetic"
	const log = "Logic and Shift"
	return []Row{
		{"AddU32", "U32.Add(y U32) U32", "add.u32 {d}, {0}, {1}", 0, sec, "is x + y modulo 2³²."},
		{"SubU32", "U32.Sub(y U32) U32", "sub.u32 {d}, {0}, {1}", 0, sec, "is x − y modulo 2³²."},
		{"MulU32", "U32.Mul(y U32) U32", "mul.lo.u32 {d}, {0}, {1}", 0, sec, "is the low half of x·y."},
		{"MulHiU32", "U32.MulHi(y U32) U32", "mul.hi.u32 {d}, {0}, {1}", 0, sec, "is the high half of x·y: with a magic number, a division."},
		{"MulWideU32", "U32.MulWide(y U32) U64", "mul.wide.u32 {d}, {0}, {1}", 0, sec, "is x·y in 64 bits."},
		{"MadU32", "U32.Mad(y U32, z U32) U32", "mad.lo.u32 {d}, {0}, {1}, {2}", 0, sec, "is x·y + z modulo 2³²."},
		{"DivU32", "U32.Div(y U32) U32", "div.u32 {d}, {0}, {1}", 0, sec, "is x ÷ y rounded down; y = 0 gives all ones."},
		{"RemU32", "U32.Rem(y U32) U32", "rem.u32 {d}, {0}, {1}", 0, sec, "is x modulo y; y = 0 gives x."},
		{"MinU32", "U32.Min(y U32) U32", "min.u32 {d}, {0}, {1}", 0, sec, "is the smaller of x and y, unsigned."},
		{"MaxU32", "U32.Max(y U32) U32", "max.u32 {d}, {0}, {1}", 0, sec, "is the larger of x and y, unsigned."},
		{"PopU32", "U32.OnesCount() U32", "popc.b32 {d}, {0}", 0, sec, "is the number of one bits."},
		{"ClzU32", "U32.LeadingZeros() U32", "clz.b32 {d}, {0}", 0, sec, "is the number of zero bits above the highest one."},
		{"BrevU32", "U32.ReverseBits() U32", "brev.b32 {d}, {0}", 0, log, "is x with its bits in the opposite order."},
		{"PrmtU32", "U32.Permute(y U32, selector #n) U32", "prmt.b32 {d}, {0}, {1}, {2}", 0, log, "picks four of the eight bytes of x (0…3) and y (4…7), a selector nibble each, the lowest first."},
		{"BfeU32", "U32.Field(at #n, bits #n) U32", "bfe.u32 {d}, {0}, {1}, {2}", 0, sec, "is the field of so many bits that starts at a bit."},
		{"MadWideU32", "U32.MadWide(y U32, z U64) U64", "mad.wide.u32 {d}, {0}, {1}, {2}", 0, sec, "is x·y + z in 64 bits."},
		{"MulS32", "S32.Mul(y S32) S32", "mul.lo.s32 {d}, {0}, {1}", 0, sec, "is the low half of x·y."},
		{"ShrS32", "S32.ShrBy(y U32) S32", "shr.s32 {d}, {0}, {1}", 0, log, "shifts right by y bits, the sign in; 32 and more give only signs."},
		{"AddS32", "S32.Add(y S32) S32", "add.s32 {d}, {0}, {1}", 0, sec, "is x + y, wrapping."},
		{"MinS32", "S32.Min(y S32) S32", "min.s32 {d}, {0}, {1}", 0, sec, "is the smaller of x and y, signed."},
		{"MaxS32", "S32.Max(y S32) S32", "max.s32 {d}, {0}, {1}", 0, sec, "is the larger of x and y, signed."},
		{"AddU64", "U64.Add(y U64) U64", "add.u64 {d}, {0}, {1}", 0, sec, "is x + y modulo 2⁶⁴."},
		{"SubU64", "U64.Sub(y U64) U64", "sub.u64 {d}, {0}, {1}", 0, sec, "is x − y modulo 2⁶⁴."},
		{"MulU64", "U64.Mul(y U64) U64", "mul.lo.u64 {d}, {0}, {1}", 0, sec, "is the low half of x·y."},
		{"AndU32", "U32.And(y U32) U32", "and.b32 {d}, {0}, {1}", 0, log, "is the bitwise and."},
		{"OrU32", "U32.Or(y U32) U32", "or.b32 {d}, {0}, {1}", 0, log, "is the bitwise or."},
		{"XorU32", "U32.Xor(y U32) U32", "xor.b32 {d}, {0}, {1}", 0, log, "is the bitwise exclusive or."},
		{"NotU32", "U32.Not() U32", "not.b32 {d}, {0}", 0, log, "inverts every bit."},
		{"ShlU32", "U32.ShlBy(y U32) U32", "shl.b32 {d}, {0}, {1}", 0, log, "shifts left by y bits; 32 and more give 0."},
		{"ShrU32", "U32.ShrBy(y U32) U32", "shr.u32 {d}, {0}, {1}", 0, log, "shifts right by y bits, zeros in; 32 and more give 0."},
		{"AndU64", "U64.And(y U64) U64", "and.b64 {d}, {0}, {1}", 0, log, "is the bitwise and."},
		{"OrU64", "U64.Or(y U64) U64", "or.b64 {d}, {0}, {1}", 0, log, "is the bitwise or."},
		{"ShlU64", "U64.ShlBy(y U32) U64", "shl.b64 {d}, {0}, {1}", 0, log, "shifts left by y bits; 64 and more give 0."},
		{"ShrU64", "U64.ShrBy(y U32) U64", "shr.u64 {d}, {0}, {1}", 0, log, "shifts right by y bits, zeros in; 64 and more give 0."},
	}
}

func predicates() []Row {
	const sec = "Comparison and Selection"
	const log = "Logic and Shift"
	return []Row{
		{"LtU32", "U32.Lt(y U32) Pred", "setp.lt.u32 {d}, {0}, {1}", 0, sec, "tells whether x < y, unsigned."},
		{"LeU32", "U32.Le(y U32) Pred", "setp.le.u32 {d}, {0}, {1}", 0, sec, "tells whether x ≤ y, unsigned."},
		{"GtU32", "U32.Gt(y U32) Pred", "setp.gt.u32 {d}, {0}, {1}", 0, sec, "tells whether x > y, unsigned."},
		{"GeU32", "U32.Ge(y U32) Pred", "setp.ge.u32 {d}, {0}, {1}", 0, sec, "tells whether x ≥ y, unsigned."},
		{"EqU32", "U32.Eq(y U32) Pred", "setp.eq.u32 {d}, {0}, {1}", 0, sec, "tells whether x = y."},
		{"NeU32", "U32.Ne(y U32) Pred", "setp.ne.u32 {d}, {0}, {1}", 0, sec, "tells whether x ≠ y."},
		{"LtS32", "S32.Lt(y S32) Pred", "setp.lt.s32 {d}, {0}, {1}", 0, sec, "tells whether x < y, signed."},
		{"LtU64", "U64.Lt(y U64) Pred", "setp.lt.u64 {d}, {0}, {1}", 0, sec, "tells whether x < y, unsigned."},
		{"EqU64", "U64.Eq(y U64) Pred", "setp.eq.u64 {d}, {0}, {1}", 0, sec, "tells whether x = y."},
		{"LtF32", "F32.Lt(y F32) Pred", "setp.lt.f32 {d}, {0}, {1}", 0, sec, "tells whether x < y; false where one is a NaN."},
		{"GtF32", "F32.Gt(y F32) Pred", "setp.gt.f32 {d}, {0}, {1}", 0, sec, "tells whether x > y; false where one is a NaN."},
		{"EqF32", "F32.Eq(y F32) Pred", "setp.eq.f32 {d}, {0}, {1}", 0, sec, "tells whether x = y; false where one is a NaN."},
		{"SelU32", "Pred.SelectU32(x U32, y U32) U32", "selp.b32 {d}, {1}, {2}, {0}", 0, sec, "is x where the predicate holds, else y."},
		{"SelF32", "Pred.SelectF32(x F32, y F32) F32", "selp.f32 {d}, {1}, {2}, {0}", 0, sec, "is x where the predicate holds, else y."},
		{"AndPred", "Pred.And(y Pred) Pred", "and.pred {d}, {0}, {1}", 0, log, "tells whether both hold."},
		{"OrPred", "Pred.Or(y Pred) Pred", "or.pred {d}, {0}, {1}", 0, log, "tells whether either holds."},
		{"XorPred", "Pred.Xor(y Pred) Pred", "xor.pred {d}, {0}, {1}", 0, log, "tells whether exactly one holds."},
		{"NotPred", "Pred.Not() Pred", "not.pred {d}, {0}", 0, log, "tells whether it does not hold."},
	}
}

func floats() []Row {
	const sec = "Floating Point"
	return []Row{
		{"AddF32", "F32.Add(y F32) F32", "add.rn.f32 {d}, {0}, {1}", 0, sec, "is x + y, rounded to nearest."},
		{"SubF32", "F32.Sub(y F32) F32", "sub.rn.f32 {d}, {0}, {1}", 0, sec, "is x − y, rounded to nearest."},
		{"MulF32", "F32.Mul(y F32) F32", "mul.rn.f32 {d}, {0}, {1}", 0, sec, "is x·y, rounded to nearest."},
		{"FmaF32", "F32.FMA(y F32, z F32) F32", "fma.rn.f32 {d}, {0}, {1}, {2}", 0, sec, "is x·y + z with one rounding."},
		{"DivF32", "F32.Div(y F32) F32", "div.rn.f32 {d}, {0}, {1}", 0, sec, "is x ÷ y, rounded to nearest."},
		{"MinF32", "F32.Min(y F32) F32", "min.f32 {d}, {0}, {1}", 0, sec, "is the smaller of x and y; the other where one is a NaN; −0 below +0."},
		{"MaxF32", "F32.Max(y F32) F32", "max.f32 {d}, {0}, {1}", 0, sec, "is the larger of x and y; the other where one is a NaN; +0 above −0."},
		{"NegF32", "F32.Neg() F32", "neg.f32 {d}, {0}", 0, sec, "is −x."},
		{"AbsF32", "F32.Abs() F32", "abs.f32 {d}, {0}", 0, sec, "is |x|."},
		{"SqrtF32", "F32.Sqrt() F32", "sqrt.rn.f32 {d}, {0}", 0, sec, "is √x, rounded to nearest."},
		{"RcpF32", "F32.RcpApprox() F32", "rcp.approx.ftz.f32 {d}, {0}", 0, sec, "is 1/x within 1 ulp, subnormals as zero."},
		{"RsqrtF32", "F32.RsqrtApprox() F32", "rsqrt.approx.ftz.f32 {d}, {0}", 0, sec, "is 1/√x with relative error 2⁻²²·⁹, subnormals as zero."},
		{"Ex2F32", "F32.Exp2Approx() F32", "ex2.approx.ftz.f32 {d}, {0}", 0, sec, "is 2ˣ within 2 ulp, subnormals as zero."},
		{"Lg2F32", "F32.Log2Approx() F32", "lg2.approx.ftz.f32 {d}, {0}", 0, sec, "is log₂x with absolute error 2⁻²² near 1, else relative, subnormals as zero."},
		{"TanhF32", "F32.TanhApprox() F32", "tanh.approx.f32 {d}, {0}", 0, sec, "is tanh x with relative error 2⁻¹¹."},
		{"FmaBF16x2", "BF16x2.FMA(y BF16x2, z BF16x2) BF16x2", "fma.rn.bf16x2 {d}, {0}, {1}, {2}", 0, "Half Precision Floating Point", "is x·y + z in each half with one rounding."},
	}
}

func conversions() []Row {
	const sec = "Data Movement and Conversion"
	return []Row{
		{"CvtU64U32", "U32.U64() U64", "cvt.u64.u32 {d}, {0}", 0, sec, "widens with zeros."},
		{"CvtU32U64", "U64.Low() U32", "cvt.u32.u64 {d}, {0}", 0, sec, "is the low half."},
		{"CvtF32U32", "U32.F32() F32", "cvt.rn.f32.u32 {d}, {0}", 0, sec, "is the nearest float32."},
		{"CvtU32F32", "F32.TruncU32() U32", "cvt.rzi.u32.f32 {d}, {0}", 0, sec, "drops the fraction; saturates; NaN gives 0."},
		{"CvtF32S32", "S32.F32() F32", "cvt.rn.f32.s32 {d}, {0}", 0, sec, "is the nearest float32."},
		{"CvtS32F32", "F32.TruncS32() S32", "cvt.rzi.s32.f32 {d}, {0}", 0, sec, "drops the fraction; saturates; NaN gives 0."},
		{"CvtS32F32n", "F32.RoundS32() S32", "cvt.rni.s32.f32 {d}, {0}", 0, sec, "is the nearest integer, ties to even; saturates; NaN gives 0."},
		{"LowBF16", "BF16x2.Low() F32", "shl.b32 {d}, {0}, 16", 0, sec, "widens element 0, exactly."},
		{"HighBF16", "BF16x2.High() F32", "and.b32 {d}, {0}, 0xffff0000", 0, sec, "widens element 1, exactly."},
		{"PackE4M3", "F32.PackE4M3(low F32) U32", "{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, {0}, {1}; cvt.u32.u16 {d}, t; }", Alone | SM90, sec, "rounds to fp8 e4m3 into byte 1, low into byte 0; what is too large becomes ±448."},
		{"PackE5M2", "F32.PackE5M2(low F32) U32", "{ .reg .b16 t; cvt.rn.satfinite.e5m2x2.f32 t, {0}, {1}; cvt.u32.u16 {d}, t; }", Alone | SM90, sec, "rounds to fp8 e5m2 into byte 1, low into byte 0; what is too large becomes ±57344."},
		{"BitsF32", "F32.Bits() U32", "mov.b32 {d}, {0}", 0, sec, "is the bit pattern."},
		{"FloatU32", "U32.FloatBits() F32", "mov.b32 {d}, {0}", 0, sec, "is the float32 with these bits."},
		{"SignedU32", "U32.Signed() S32", "mov.b32 {d}, {0}", 0, sec, "reads the same bits as a signed number."},
		{"UnsignedS32", "S32.Unsigned() U32", "mov.b32 {d}, {0}", 0, sec, "reads the same bits as an unsigned number."},
		{"PackBF16", "F32.PackBF16(low F32) BF16x2", "cvt.rn.bf16x2.f32 {d}, {0}, {1}", 0, sec, "rounds to bf16 into the high half, low into the low half."},
		{"PackF16", "F32.PackF16(low F32) F16x2", "cvt.rn.f16x2.f32 {d}, {0}, {1}", 0, sec, "rounds to f16 into the high half, low into the low half."},
		{"BitsBF16x2", "BF16x2.Bits() U32", "mov.b32 {d}, {0}", 0, sec, "is the bit pattern, element 0 in the low half."},
		{"BitsF16x2", "F16x2.Bits() U32", "mov.b32 {d}, {0}", 0, sec, "is the bit pattern, element 0 in the low half."},
		{"BF16x2Of", "U32.BF16x2() BF16x2", "mov.b32 {d}, {0}", 0, sec, "reads the bits as two bf16, element 0 in the low half."},
		{"CvtF32TF32", "F32.TF32() F32", "cvt.rna.tf32.f32 {d}, {0}", 0, sec, "rounds to tf32, ties away from zero; the low 13 bits become 0."},
	}
}

func specials() []Row {
	const sec = "Special Registers"
	return []Row{
		{"TidX", "readTid() U32", "mov.u32 {d}, %tid.x", LevelLane, sec, "is the thread's index in its CTA."},
		{"LaneID", "readLane() U32", "mov.u32 {d}, %laneid", LevelLane, sec, "is the thread's index in its warp."},
		{"CTAIDX", "readCTA() U32", "mov.u32 {d}, %ctaid.x", LevelCTA, sec, "is the CTA's index in the grid along x."},
		{"NumCTAX", "readNumCTAs() U32", "mov.u32 {d}, %nctaid.x", LevelGrid, sec, "is the number of CTAs along x."},
		{"ClusterRank", "readClusterRank() U32", "mov.u32 {d}, %cluster_ctarank", LevelCTA | SM90, sec, "is the CTA's rank in its cluster."},
		{"ClusterIDX", "readCluster() U32", "mov.u32 {d}, %clusterid.x", LevelCluster | SM90, sec, "is the cluster's index in the grid along x."},
		{"NumClusterX", "readNumClusters() U32", "mov.u32 {d}, %nclusterid.x", LevelGrid | SM90, sec, "is the number of clusters along x."},
		{"SharedBase", "readShared() SAddr", "mov.u32 {d}, smem", LevelCTA, sec, "is the address of the CTA's dynamic shared memory, rank bits included."},
		{"GlobalTimer", "GlobalTimer() U64", "mov.u64 {d}, %globaltimer", LevelLane, sec, "is the time in ns that all SMs share, in 32 ns steps."},
		{"Clock", "Clock() U32", "mov.u32 {d}, %clock", LevelLane, sec, "is the SM's cycle counter, low half."},
		{"ParamU32", "readParamU32(i #n) U32", "ld.param.u32 {d}, [{p0}]", LevelGrid, "Data Movement and Conversion", "loads parameter i."},
		{"ParamU64", "readParamU64(i #n) U64", "ld.param.u64 {d}, [{p0}]", LevelGrid, "Data Movement and Conversion", "loads parameter i."},
		{"ParamF32", "readParamF32(i #n) F32", "ld.param.f32 {d}, [{p0}]", LevelGrid, "Data Movement and Conversion", "loads parameter i."},
		{"ParamPtr", "readParamPtr(i #n) GAddr", "{ .reg .b64 t; ld.param.u64 t, [{p0}]; cvta.to.global.u64 {d}, t; }", LevelGrid | Alone, "Data Movement and Conversion", "loads parameter i."},
		{"ParamMap", "readParamMap(i #n) TensorMap", "{ mov.b64 {d}, {p0}; cvta.param.u64 {d}, {d}; }", LevelGrid | Alone | SM90, "Data Movement and Conversion", "is the generic address of tensor map i."},
	}
}

func memory() []Row {
	const sec = "Data Movement and Conversion"
	return []Row{
		{"OffsetS", "SAddr.At(bytes U32) SAddr", "add.u32 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the address bytes further."},
		{"OffsetG", "GAddr.At(bytes U64) GAddr", "add.u64 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the address bytes further."},
		{"LoadSU32", "SAddr.LoadU32() U32", "ld.shared.u32 {d}, [{0}]", ReadShared | LevelLane, sec, "reads 4 aligned bytes of shared memory."},
		{"LoadSF32", "SAddr.LoadF32() F32", "ld.shared.f32 {d}, [{0}]", ReadShared | LevelLane, sec, "reads 4 aligned bytes of shared memory."},
		{"LoadSF32x4", "SAddr.LoadF32x4() [4]F32", "ld.shared.v4.f32 {{d0}, {d1}, {d2}, {d3}}, [{0}]", ReadShared | LevelLane, sec, "reads 16 aligned bytes of shared memory."},
		{"LoadSF32x2", "SAddr.LoadF32x2() [2]F32", "ld.shared.v2.f32 {{d0}, {d1}}, [{0}]", ReadShared | LevelLane, sec, "reads 8 aligned bytes of shared memory."},
		{"StoreSU32", "SAddr.StoreU32(x U32)", "st.shared.u32 [{0}], {1}", WriteShared, sec, "writes 4 aligned bytes of shared memory."},
		{"StoreSF32", "SAddr.StoreF32(x F32)", "st.shared.f32 [{0}], {1}", WriteShared, sec, "writes 4 aligned bytes of shared memory."},
		{"StoreSF32x4", "SAddr.StoreF32x4(x [4]F32)", "st.shared.v4.f32 [{0}], {{1}, {2}, {3}, {4}}", WriteShared, sec, "writes 16 aligned bytes of shared memory."},
		{"StoreSF32x2", "SAddr.StoreF32x2(x [2]F32)", "st.shared.v2.f32 [{0}], {{1}, {2}}", WriteShared, sec, "writes 8 aligned bytes of shared memory."},
		{"StoreSU32x4", "SAddr.StoreU32x4(x [4]U32)", "st.shared.v4.u32 [{0}], {{1}, {2}, {3}, {4}}", WriteShared, sec, "writes 16 aligned bytes of shared memory."},
		{"LoadGU32", "GAddr.LoadU32() U32", "ld.global.u32 {d}, [{0}]", ReadGlobal | LevelLane, sec, "reads 4 aligned bytes of global memory."},
		{"LoadGU16", "GAddr.LoadU16() U32", "ld.global.u16 {d}, [{0}]", ReadGlobal | LevelLane, sec, "reads 2 aligned bytes of global memory, zeros above them."},
		{"LoadGF32", "GAddr.LoadF32() F32", "ld.global.f32 {d}, [{0}]", ReadGlobal | LevelLane, sec, "reads 4 aligned bytes of global memory."},
		{"LoadGF32x4", "GAddr.LoadF32x4() [4]F32", "ld.global.v4.f32 {{d0}, {d1}, {d2}, {d3}}, [{0}]", ReadGlobal | LevelLane, sec, "reads 16 aligned bytes of global memory."},
		{"LoadGU32x4", "GAddr.LoadU32x4() [4]U32", "ld.global.v4.u32 {{d0}, {d1}, {d2}, {d3}}, [{0}]", ReadGlobal | LevelLane, sec, "reads 16 aligned bytes of global memory."},
		{"StoreGU16", "GAddr.StoreU16(x U32)", "st.global.u16 [{0}], {1}", WriteGlobal, sec, "writes the low half of x to 2 aligned bytes of global memory."},
		{"StoreGU32", "GAddr.StoreU32(x U32)", "st.global.u32 [{0}], {1}", WriteGlobal, sec, "writes 4 aligned bytes of global memory."},
		{"StoreGF32", "GAddr.StoreF32(x F32)", "st.global.f32 [{0}], {1}", WriteGlobal, sec, "writes 4 aligned bytes of global memory."},
		{"StoreGF32x4", "GAddr.StoreF32x4(x [4]F32)", "st.global.v4.f32 [{0}], {{1}, {2}, {3}, {4}}", WriteGlobal, sec, "writes 16 aligned bytes of global memory."},
		{"StoreGU32x4", "GAddr.StoreU32x4(x [4]U32)", "st.global.v4.u32 [{0}], {{1}, {2}, {3}, {4}}", WriteGlobal, sec, "writes 16 aligned bytes of global memory."},
		{"AtomAddGU32", "GAddr.AtomicAddU32(x U32) U32", "atom.relaxed.gpu.global.add.u32 {d}, [{0}], {1}", ReadGlobal | WriteGlobal | LevelLane, "Parallel Synchronization and Communication", "adds to 4 bytes of global memory and gives what was there."},
		{"AtomIncGU32", "GAddr.AtomicIncU32(limit U32) U32", "atom.relaxed.gpu.global.inc.u32 {d}, [{0}], {1}", ReadGlobal | WriteGlobal | LevelLane, "Parallel Synchronization and Communication", "counts 0, 1 … limit, 0 … and gives what was there."},
		{"RedAddGU32", "GAddr.RedAddU32(x U32)", "red.relaxed.gpu.global.add.u32 [{0}], {1}", ReadGlobal | WriteGlobal, "Parallel Synchronization and Communication", "adds to 4 bytes of global memory."},
		{"RedAddGF32", "GAddr.RedAddF32(x F32)", "red.relaxed.gpu.global.add.f32 [{0}], {1}", ReadGlobal | WriteGlobal, "Parallel Synchronization and Communication", "adds to 4 bytes of global memory, in no fixed order."},
		{"AtomMaxGU32", "GAddr.AtomicMaxU32(x U32) U32", "atom.relaxed.gpu.global.max.u32 {d}, [{0}], {1}", ReadGlobal | WriteGlobal | LevelLane, "Parallel Synchronization and Communication", "replaces 4 bytes of global memory by the larger, unsigned, and gives what was there."},
		{"AtomExchGU32", "GAddr.AtomicExchangeU32(x U32) U32", "atom.relaxed.gpu.global.exch.b32 {d}, [{0}], {1}", ReadGlobal | WriteGlobal | LevelLane, "Parallel Synchronization and Communication", "replaces 4 bytes of global memory and gives what was there."},
		{"AtomCasGU32", "GAddr.AtomicCompareU32(was U32, x U32) U32", "atom.relaxed.gpu.global.cas.b32 {d}, [{0}], {1}, {2}", ReadGlobal | WriteGlobal | LevelLane, "Parallel Synchronization and Communication", "replaces 4 bytes of global memory by x if they are was, and gives what was there."},
		{"AtomAddSU32", "SAddr.AtomicAddU32(x U32) U32", "atom.relaxed.cta.shared::cta.add.u32 {d}, [{0}], {1}", ReadShared | WriteShared | LevelLane, "Parallel Synchronization and Communication", "adds to 4 bytes of shared memory and gives what was there."},
		{"OffsetC", "CAddr.At(bytes U32) CAddr", "add.u32 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the address bytes further, in the same CTA."},
		{"LoadCU32", "CAddr.LoadU32() U32", "ld.shared::cluster.u32 {d}, [{0}]", ReadShared | LevelLane | SM90, sec, "reads 4 aligned bytes of a CTA's shared memory."},
		{"LoadCF32", "CAddr.LoadF32() F32", "ld.shared::cluster.f32 {d}, [{0}]", ReadShared | LevelLane | SM90, sec, "reads 4 aligned bytes of a CTA's shared memory."},
		{"StoreCU32", "CAddr.StoreU32(x U32)", "st.shared::cluster.u32 [{0}], {1}", WriteShared | SM90, sec, "writes 4 aligned bytes of a CTA's shared memory."},
		{"StoreCF32", "CAddr.StoreF32(x F32)", "st.shared::cluster.f32 [{0}], {1}", WriteShared | SM90, sec, "writes 4 aligned bytes of a CTA's shared memory."},
		{"StAsyncU32", "CAddr.StoreAsyncU32(x U32, bar CBar)", "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [{0}], {1}, [{2}]", Async | WriteShared | SM90, sec, "writes 4 bytes of a CTA's shared memory some time; they count on bar, a barrier of the same CTA."},
		{"StAsyncU32x4", "CAddr.StoreAsyncU32x4(x [4]U32, bar CBar)", "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [{0}], {{1}, {2}, {3}, {4}}, [{5}]", Async | WriteShared | SM90, sec, "writes 16 bytes of a CTA's shared memory some time; they count on bar, a barrier of the same CTA."},
		{"LoadGNCF32x4", "GAddr.LoadConstF32x4() [4]F32", "ld.global.nc.L1::no_allocate.v4.f32 {{d0}, {d1}, {d2}, {d3}}, [{0}]", ReadGlobal | LevelLane, sec, "reads 16 aligned bytes of global memory that nobody writes during the launch, past L1."},
		{"LoadGNCU32x4", "GAddr.LoadConstU32x4() [4]U32", "ld.global.nc.L1::no_allocate.v4.u32 {{d0}, {d1}, {d2}, {d3}}, [{0}]", ReadGlobal | LevelLane, sec, "reads 16 aligned bytes of global memory that nobody writes during the launch, past L1."},
	}
}

func warps() []Row {
	const sec = "Data Movement and Conversion"
	const vote = "Parallel Synchronization and Communication"
	return []Row{
		{"ShflIdxU32", "U32.Shuffle(lane U32) U32", "shfl.sync.idx.b32 {d}, {0}, {1}, 0x1f, 0xffffffff", AlignedWarp, sec, "is x of the given lane; the same in the whole warp where lane is."},
		{"ShflBflyU32", "U32.ShuffleXor(mask #n) U32", "shfl.sync.bfly.b32 {d}, {0}, {1}, 0x1f, 0xffffffff", AlignedWarp | LevelLane, sec, "is x of lane XOR mask."},
		{"ShflBflyF32", "F32.ShuffleXor(mask #n) F32", "shfl.sync.bfly.b32 {d}, {0}, {1}, 0x1f, 0xffffffff", AlignedWarp | LevelLane, sec, "is x of lane XOR mask."},
		{"Ballot", "Pred.Ballot() U32", "vote.sync.ballot.b32 {d}, {0}, 0xffffffff", AlignedWarp | LevelWarp, vote, "has bit i set where lane i's predicate holds."},
		{"AnyPred", "Pred.Any() Pred", "vote.sync.any.pred {d}, {0}, 0xffffffff", AlignedWarp | LevelWarp, vote, "tells whether it holds in some lane of the warp."},
		{"AllPred", "Pred.All() Pred", "vote.sync.all.pred {d}, {0}, 0xffffffff", AlignedWarp | LevelWarp, vote, "tells whether it holds in every lane of the warp."},
		{"Elect", "Elect() Pred", "{ .reg .b32 t; elect.sync t|{d}, 0xffffffff; }", AlignedWarp | LevelLane | SM90 | Alone, vote, "holds in exactly one lane of the warp."},
		{"WarpSync", "WarpSync()", "bar.warp.sync 0xffffffff", AlignedWarp | Sync, vote, "waits for all lanes of the warp and orders their memory accesses."},
	}
}

func barriers() []Row {
	const sec = "Parallel Synchronization and Communication"
	return []Row{
		{"MbarInit", "Bar.Init(arrivals #count)", "mbarrier.init.shared::cta.b64 [{0}], {1}", Sync | WriteShared, sec, "makes the barrier: a phase completes after so many arrivals and all expected bytes."},
		{"MbarArrive", "Bar.Arrive()", "mbarrier.arrive.shared::cta.b64 _, [{0}]", Sync, sec, "arrives once for each executing thread; what the thread did before is ordered before the phase completes."},
		{"MbarArriveRemote", "CBar.Arrive()", "mbarrier.arrive.shared::cluster.b64 _, [{0}]", Sync | SM90, sec, "arrives at a barrier of another CTA. This plain form has no MEMBAR in front; .release.cluster has one, at 41 % of a GEMM's speed."},
		{"MbarExpect", "Bar.ArriveExpect(n #bytes)", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{0}], {1}", Sync | SM90, sec, "arrives and expects n more bytes in this phase."},
		{"MbarExpectRemote", "CBar.ArriveExpect(n #bytes)", "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [{0}], {1}", Sync | SM90, sec, "arrives at a barrier of another CTA and expects n more bytes in this phase."},
		{"MbarExpectTx", "Bar.Expect(n #bytes)", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{0}], {1}", Sync | SM90, sec, "expects n more bytes in this phase, without arriving."},
		{"MbarWait", "Bar.Wait(parity U32)", "{ .reg .pred t; W: mbarrier.try_wait.parity.shared::cta.b64 t, [{0}], {1}; @!t bra W; }", Sync | Blocking | Alone | SM90, sec, "waits until the phase of the given parity has completed: 0 for the first, then alternately. On a new barrier parity 1 passes at once."},
		{"MbarTry", "Bar.TryWait(parity U32) Pred", "mbarrier.try_wait.parity.shared::cta.b64 {d}, [{0}], {1}", SM90 | LevelLane, sec, "tells whether the phase of the given parity has completed; may be false for a while after it has."},
		{"Mapa", "Bar.Map(rank U32) CBar", "mapa.shared::cluster.u32 {d}, {0}, {1}", SM90, "Data Movement and Conversion", "is the same barrier in the CTA of the given rank."},
		{"MapaAddr", "SAddr.Map(rank U32) CAddr", "mapa.shared::cluster.u32 {d}, {0}, {1}", SM90, "Data Movement and Conversion", "is the same address in the CTA of the given rank."},
		{"OffsetBar", "Bar.at(bytes U32) Bar", "add.u32 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the barrier bytes further."},
		{"OffsetCBar", "CBar.at(bytes U32) CBar", "add.u32 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the barrier bytes further, in the same CTA."},
		{"BarSync", "BarSync(id U32, n #thread)", "bar.sync {0}, {1}", AlignedWarp | Sync | Blocking, sec, "waits until n threads have come to named barrier id, and orders their memory accesses."},
		{"BarArrive", "BarArrive(id U32, n #thread)", "bar.arrive {0}, {1}", AlignedWarp | Sync, sec, "counts towards named barrier id without waiting."},
		{"ClusterArrive", "ClusterArrive()", "barrier.cluster.arrive.release.aligned", AlignedWarp | Sync | SM90, sec, "arrives at the cluster's barrier and releases what was done before."},
		{"ClusterWait", "ClusterWait()", "barrier.cluster.wait.acquire.aligned", AlignedWarp | Sync | Blocking | SM90, sec, "waits until every thread of the cluster has arrived."},
		{"FenceProxyAsync", "FenceProxyAsync()", "fence.proxy.async.shared::cta", Sync | SM90, sec, "makes what the thread knows of in shared memory visible to the async proxy: TMA and wgmma."},
		{"FenceMbarInit", "FenceMbarrierInit()", "fence.mbarrier_init.release.cluster", Sync | SM90, sec, "makes initialised barriers visible to the cluster and to the async proxy."},
		{"FenceCluster", "FenceCluster()", "fence.acq_rel.cluster", Sync | SM90, sec, "orders memory accesses for the threads of the cluster."},
		{"FenceGPU", "FenceGPU()", "fence.acq_rel.gpu", Sync, sec, "orders memory accesses for all threads of the device."},
		{"GridWait", "GridWait()", "griddepcontrol.wait", Sync | SM90, sec, "waits until the grids in front have ended and their memory is visible."},
		{"GridLaunch", "GridLaunchDependents()", "griddepcontrol.launch_dependents", SM90, sec, "lets the next grid start; orders nothing."},
		{"Nanosleep", "Nanosleep(ns #n)", "nanosleep.u32 {0}", 0, "Miscellaneous", "suspends the thread for about so long."},
		{"SetMaxInc", "raiseRegisters(n #regs)", "setmaxnreg.inc.sync.aligned.u32 {0}", AlignedGroup | Blocking | SM90a, "Miscellaneous", "waits until the CTA's pool can give the warpgroup n registers a thread."},
		{"SetMaxDec", "lowerRegisters(n #regs)", "setmaxnreg.dec.sync.aligned.u32 {0}", AlignedGroup | SM90a, "Miscellaneous", "gives registers beyond n a thread back to the CTA's pool."},
	}
}

func bulk() []Row {
	const sec = "Asynchronous Copy"
	return []Row{
		{"TMALoad2", "TensorMap.Load2(dst SAddr, x U32, y U32, bar Bar)", "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{1}], [{0}, {{2}, {3}}], [{4}]", Async | WriteShared | ReadGlobal | SM90, sec, "copies the box at (x, y), x innermost, into shared memory; its bytes count on bar."},
		{"TMALoad2Multi", "TensorMap.LoadMulticast2(dst SAddr, x U32, y U32, bar Bar, ctas #mask)", "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [{1}], [{0}, {{2}, {3}}], [{4}], {5}", Async | WriteShared | ReadGlobal | SM90, sec, "copies the box at (x, y) to the same place in every CTA of the mask; each must expect the bytes on its own barrier at bar's place."},
		{"TMALoad2Mask", "TensorMap.LoadMulticastTo2(dst SAddr, x U32, y U32, bar Bar, ctas U32)", "{ .reg .b16 t; cvt.u16.u32 t, {5}; cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [{1}], [{0}, {{2}, {3}}], [{4}], t; }", Async | WriteShared | ReadGlobal | Alone | SM90, sec, "is LoadMulticast2 with a mask that is known at run time only."},
		{"TMALoad3", "TensorMap.Load3(dst SAddr, x U32, y U32, z U32, bar Bar)", "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [{1}], [{0}, {{2}, {3}, {4}}], [{5}]", Async | WriteShared | ReadGlobal | SM90, sec, "copies the box at (x, y, z), x innermost, into shared memory; its bytes count on bar."},
		{"TMALoad2Hint", "TensorMap.Load2Hint(dst SAddr, x U32, y U32, bar Bar, policy U64)", "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [{1}], [{0}, {{2}, {3}}], [{4}], {5}", Async | WriteShared | ReadGlobal | SM90, sec, "is Load2 with a cache policy: EvictFirst, EvictLast or one that createpolicy made."},
		{"BulkLoad", "SAddr.LoadBulk(from GAddr, bytes U32, bar Bar)", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}], {2}, [{3}]", Async | WriteShared | ReadGlobal | SM90, sec, "copies a multiple of 16 bytes from global memory; they count on bar."},
		{"BulkStore", "GAddr.StoreBulk(from SAddr, bytes U32)", "cp.async.bulk.global.shared::cta.bulk_group [{0}], [{1}], {2}", Async | ReadShared | WriteGlobal | SM90, sec, "copies a multiple of 16 bytes of shared memory to global memory."},
		{"TMAStore2", "TensorMap.Store2(x U32, y U32, src SAddr)", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{0}, {{1}, {2}}], [{3}]", Async | ReadShared | WriteGlobal | SM90, sec, "copies a box of shared memory to (x, y), x innermost; what is outside the tensor is dropped."},
		{"TMAReduceAdd2", "TensorMap.ReduceAdd2(x U32, y U32, src SAddr)", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [{0}, {{1}, {2}}], [{3}]", Async | ReadShared | WriteGlobal | SM90, sec, "adds a box of shared memory to the tensor at (x, y), element by element."},
		{"BulkCommit", "BulkCommit()", "cp.async.bulk.commit_group", Sync | SM90, sec, "closes this thread's group of bulk stores."},
		{"BulkWaitRead", "BulkWaitRead(pending #depth)", "cp.async.bulk.wait_group.read {0}", Sync | Blocking | SM90, sec, "waits until all but the youngest pending groups of this thread have read their shared memory."},
		{"BulkWait", "BulkWait(pending #depth)", "cp.async.bulk.wait_group {0}", Sync | Blocking | SM90, sec, "waits until all but the youngest pending groups of this thread are complete, global writes included."},
		{"PrefetchMap", "TensorMap.Prefetch()", "prefetch.tensormap [{0}]", SM90, "Data Movement and Conversion", "brings the tensor map close, so that its first use does not wait."},
		{"CpAsync16", "SAddr.CopyAsync16(from GAddr)", "cp.async.cg.shared.global [{0}], [{1}], 16", Async | WriteShared | ReadGlobal, sec, "copies 16 aligned bytes from global memory; done when the thread has waited for its group."},
		{"CpCommit", "CopyCommit()", "cp.async.commit_group", Sync, sec, "closes this thread's group of CopyAsync16."},
		{"CpWait", "CopyWait(pending #depth)", "cp.async.wait_group {0}", Sync | Blocking, sec, "waits until all but the youngest pending groups of this thread's CopyAsync16 are complete."},
	}
}

func matrices() []Row {
	const sec = "Warpgroup Matrix"
	const mov = "Data Movement and Conversion"
	rows := []Row{
		{"StMatrix4", "SAddr.StoreMatrix4(x [4]U32)", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [{0}], {{1}, {2}, {3}, {4}}", AlignedWarp | WriteShared | SM90, mov, "stores four 8×8 matrices of 16-bit elements: lane 8i+r gives the address of row r of matrix i, lane 4r+c holds columns 2c and 2c+1 of row r."},
		{"LdMatrix4", "SAddr.LoadMatrix4() [4]U32", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{d0}, {d1}, {d2}, {d3}}, [{0}]", AlignedWarp | ReadShared | LevelLane, mov, "loads four 8×8 matrices of 16-bit elements, laid out as StoreMatrix4 does."},
		{"StMatrix4T", "SAddr.StoreMatrix4T(x [4]U32)", "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [{0}], {{1}, {2}, {3}, {4}}", AlignedWarp | WriteShared | SM90, mov, "is StoreMatrix4 with each 8×8 matrix transposed on the way."},
		{"LdMatrix4T", "SAddr.LoadMatrix4T() [4]U32", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{d0}, {d1}, {d2}, {d3}}, [{0}]", AlignedWarp | ReadShared | LevelLane, mov, "is LoadMatrix4 with each 8×8 matrix transposed on the way."},
		{"MmaBF16", "MMABF16(a [4]U32, b [2]U32, c [4]F32) [4]F32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{d0}, {d1}, {d2}, {d3}}, {{0}, {1}, {2}, {3}}, {{4}, {5}}, {{6}, {7}, {8}, {9}}", AlignedWarp | LevelLane, "Warp Level Matrix", "is a·b + c over one warp, 16×16 by 16×8: registers a[2h+g] hold rows l/4+8g, columns 2(l%4)+8h and the next; b[h] rows 2(l%4)+8h and the next of column l/4; c[2g+e] row l/4+8g, column 2(l%4)+e."},
		{"DescAdd", "Desc.Add(units U64) Desc", "add.u64 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the descriptor of the tile that starts units × 16 bytes further."},
		{"DescStep", "Desc.Step(units #step) Desc", "add.u64 {d}, {0}, {1}", 0, "Integer Arithmetic", "is the descriptor of the tile that starts units × 16 bytes further."},
		{"DescOf", "U64.fields(bits #desc) Desc", "or.b64 {d}, {0}, {1}", 0, "Logic and Shift", "joins the address field with the layout's fields."},
		{"AccRead", "Acc.F32(i #n) F32", "mov.f32 {d}, {a0}", LevelLane, mov, "reads element i of the thread's fragment; no wgmma on it may be in flight."},
		{"WgFence", "WgmmaFence()", "wgmma.fence.sync.aligned", AlignedGroup | Sync | SM90a, sec, "orders the warpgroup's register accesses before the wgmma that follow."},
		{"WgCommit", "WgmmaCommit()", "wgmma.commit_group.sync.aligned", AlignedGroup | Sync | SM90a, sec, "closes the warpgroup's group of wgmma."},
		{"WgWait", "WgmmaWait(pending #depth)", "wgmma.wait_group.sync.aligned {0}", AlignedGroup | Sync | Blocking | SM90a, sec, "waits until all but the youngest pending groups of the warpgroup are complete."},
	}
	for _, t := range []struct {
		name, typ, shape string
		trans            bool
	}{
		{"BF16", "bf16", "k16", true}, {"F16", "f16", "k16", true}, {"TF32", "tf32", "k8", false}, {"E4M3", "e4m3", "k32", false}, {"E5M2", "e5m2", "k32", false},
	} {
		sig, doc := "Acc.MMA"+t.name+"(a Desc, b Desc, accumulate Pred)", "adds the product of two "+t.typ+" tiles in shared memory, both K-major; without accumulate it overwrites."
		ptx := "wgmma.mma_async.sync.aligned.m64n{n0}" + t.shape + ".f32." + t.typ + "." + t.typ + " {0}, {1}, {2}, {3}, 1, 1"
		if t.trans {
			ptx += ", {4}, {5}"
			sig = "Acc.MMA" + t.name + "(a Desc, b Desc, accumulate Pred, transA #n, transB #n)"
			doc = "adds the product of two " + t.typ + " tiles in shared memory; trans is 0 for a K-major tile, 1 for an MN-major one; without accumulate it overwrites."
		}
		if t.trans {
			rows = append(rows, Row{
				"WgmmaR" + t.name, "Acc.MMA" + t.name + "R(a [4]U32, b Desc, accumulate Pred, transB #n)",
				"wgmma.mma_async.sync.aligned.m64n{n0}" + t.shape + ".f32." + t.typ + "." + t.typ + " {0}, {{1}, {2}, {3}, {4}}, {5}, {6}, 1, 1, {7}",
				AlignedGroup | Async | ReadShared | SM90a, sec,
				"adds the product of a " + t.typ + " tile in registers and one in shared memory; a[2h+g] holds rows l/4+8g of the warp's sixteen, columns 2(l%4)+8h and the next.",
			})
		}
		rows = append(rows, Row{"Wgmma" + t.name, sig, ptx, AlignedGroup | Async | ReadShared | SM90a, sec, doc})
	}
	return rows
}
