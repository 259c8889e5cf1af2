package tile

import "fmt"

// Choice is a warp-specialised Hopper GEMM: one producer warpgroup loads BM × BK of A and BN × BK of B a stage by TMA, MMA warpgroups multiply by wgmma
// and write the output through shared memory. The useful zero values: Stages 0 takes as many as fit, ClusterM and ClusterN 0 mean 1.
type Choice struct {
	BM         int  `json:"bm"`
	BN         int  `json:"bn"`
	BK         int  `json:"bk"`
	In         int  `json:"in_bytes"`  // of an operand's element: 2 bf16 and f16, 4 tf32, 1 fp8
	Out        int  `json:"out_bytes"` // of an output's element: 2 or 4
	ClusterM   int  `json:"cluster_m"` // CTAs that share the B tile
	ClusterN   int  `json:"cluster_n"` // CTAs that share the A tile
	Warpgroups int  `json:"warpgroups"`
	PingPong   bool `json:"ping_pong"` // two warpgroups on alternating tiles, each holding a whole one
	Promote    bool `json:"promote"`   // fp8: a second set of accumulators, into which the short ones are added
	Buffers    int  `json:"buffers"`   // epilogue buffers of 64 rows × 128 bytes a warpgroup; 0: registers go straight to global memory
	Stages     int  `json:"stages"`
}

// Fit is what a choice takes of a chip. Refusals is empty if it can be built.
type Fit struct {
	Choice   Choice    `json:"choice"` // with the stages filled in
	Refusals []Refusal `json:"refusals"`

	// Shared memory, in bytes.
	StageBytes    int `json:"stage_bytes"`
	EpilogueBytes int `json:"epilogue_bytes"`
	BarrierBytes  int `json:"barrier_bytes"`
	SharedBytes   int `json:"shared_bytes"`
	SharedLimit   int `json:"shared_limit"`
	MaxStages     int `json:"max_stages"`

	// Operands: swizzle by the width of a row of BK, and the TMA boxes that one CTA asks for a stage.
	Swizzle SwizzleMode `json:"swizzle"`
	BoxesA  int         `json:"boxes_a"`
	BoxesB  int         `json:"boxes_b"`

	// One warpgroup's part of the tile, and the wgmma that computes it: WgmmaN columns at a time.
	Rows         int `json:"rows"`
	Cols         int `json:"cols"`
	WgmmaN       int `json:"wgmma_n"`
	Accumulators int `json:"accumulators"` // 32-bit registers a thread

	// Registers a thread: at launch, then by setmaxnreg for the producer and for the MMA warpgroups.
	Threads  int `json:"threads"`
	Launch   int `json:"regs_launch"`
	Producer int `json:"regs_producer"`
	Consumer int `json:"regs_consumer"`

	// Rates at the full speed of the tensor cores, in bytes a clock and multiprocessor.
	Clocks      float64 `json:"clocks_per_stage"` // to multiply one stage
	L2Asked     float64 `json:"l2_asked"`
	L2Given     float64 `json:"l2_given"`
	SharedRead  float64 `json:"shared_read"` // by wgmma
	SharedWrite float64 `json:"shared_write"`
	SharedGiven float64 `json:"shared_given"`
	Covered     float64 `json:"covered_clocks"` // of latency, by the stages that wait while one is multiplied
}

// Refusal says which limit a choice breaks.
type Refusal struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// OK tells whether the choice can be built.
func (f Fit) OK() bool { return len(f.Refusals) == 0 }

const (
	mmaRows      = 64  // of one wgmma
	wgThreads    = 128 // of a warpgroup
	barrierBytes = 16  // a stage: full and empty
	chunkBytes   = 128 // width of an epilogue buffer
	// spareRegs is what an MMA thread needs beside its accumulators: ptxas took 168 registers for the 128 accumulators of a 128 × 256 kernel, and
	// 208 are known to fit into 240 without spilling. An estimate.
	spareRegs = 32
	minSetmax = 24 // least that setmaxnreg can leave a thread
	// HBMLatency is an unloaded read's, in clocks (arXiv 2402.13499); Fit.Covered is to be compared with it.
	HBMLatency = 479
)

// Fit works out what the choice takes, and every limit that it breaks.
func (c Chip) Fit(x Choice) Fit {
	x.ClusterM, x.ClusterN = max(x.ClusterM, 1), max(x.ClusterN, 1)
	f := Fit{Choice: x, Refusals: []Refusal{}, SharedLimit: c.SharedPerCTA, L2Given: c.L2PerClock, SharedGiven: float64(c.SharedPerClock)}
	if f.shape(); !f.OK() { // nothing can be computed of a nonsensical tile
		return f
	}
	f.operands()
	if f.split(); !f.OK() {
		return f
	}
	f.shared()
	f.registers(c)
	f.rates(c)
	return f
}

func (f *Fit) refuse(rule, format string, args ...any) {
	f.Refusals = append(f.Refusals, Refusal{rule, fmt.Sprintf(format, args...)})
}

// shape refuses tiles that no instruction computes.
func (f *Fit) shape() {
	x := f.Choice
	if x.In != 1 && x.In != 2 && x.In != 4 || x.Out != 2 && x.Out != 4 {
		f.refuse("types", "operands of %d bytes, output of %d; wgmma takes 1, 2 or 4, the epilogue writes 2 or 4", x.In, x.Out)
	}
	if x.BM < mmaRows || x.BM%mmaRows != 0 || x.BM > 1024 {
		f.refuse("wgmma m64", "BM %d is not a multiple of 64 up to 1024", x.BM)
	}
	if x.BN < 8 || x.BN%8 != 0 || x.BN > 1024 {
		f.refuse("wgmma n8", "BN %d is not a multiple of 8 up to 1024", x.BN)
	}
	if x.BK < 1 || x.BK > 4096 || x.BK*x.In%32 != 0 {
		f.refuse("wgmma k step", "a row of BK %d × %d bytes is not whole k steps of 32 bytes", x.BK, x.In)
	}
	if x.Warpgroups < 1 || x.Warpgroups > 7 {
		f.refuse("threads", "%d MMA warpgroups and a producer; a CTA holds 8 warpgroups", x.Warpgroups)
	}
	if x.PingPong && x.Warpgroups != 2 {
		f.refuse("ping-pong", "ping-pong alternates 2 warpgroups, not %d", x.Warpgroups)
	}
	if x.Promote && x.In != 1 {
		f.refuse("promote", "only fp8 accumulates short and is promoted, not %d-byte operands", x.In)
	}
	if x.Buffers < 0 || x.Buffers > 64 || x.Stages < 0 || x.Stages > 64 {
		f.refuse("range", "%d epilogue buffers, %d stages; want 0 to 64", x.Buffers, x.Stages)
	}
	if mul(x.ClusterM, x.ClusterN) > 16 {
		f.refuse("cluster", "%d × %d CTAs; a cluster holds 8, or 16 if the kernel allows non-portable sizes", x.ClusterM, x.ClusterN)
	}
}

// operands picks the swizzle and counts TMA boxes: one a slab of the swizzle's width, at most 256 rows.
func (f *Fit) operands() {
	x := f.Choice
	f.Swizzle, _ = SwizzleModeFor(x.BK * x.In) // whole k steps: 32 bytes at least always divide
	slabs := x.BK * x.In / int(f.Swizzle)
	if x.BM%(8*x.ClusterN) != 0 {
		f.refuse("multicast", "%d CTAs cannot share an A tile of %d rows in whole swizzle atoms of 8", x.ClusterN, x.BM)
	}
	if x.BN%(8*x.ClusterM) != 0 {
		f.refuse("multicast", "%d CTAs cannot share a B tile of %d rows in whole swizzle atoms of 8", x.ClusterM, x.BN)
	}
	f.BoxesA, f.BoxesB = slabs*ceilDiv(x.BM/x.ClusterN, 256), slabs*ceilDiv(x.BN/x.ClusterM, 256)
}

// split gives each warpgroup its part: a share of the rows if they divide by 64, else of the columns; in ping-pong the whole tile.
func (f *Fit) split() {
	x := f.Choice
	f.Rows, f.Cols = x.BM, x.BN
	switch w := x.Warpgroups; {
	case x.PingPong || w == 1:
	case x.BM%(w*mmaRows) == 0:
		f.Rows = x.BM / w
	case x.BN%(w*8) == 0:
		f.Cols = x.BN / w
	default:
		f.refuse("split", "%d warpgroups can share neither %d rows by 64 nor %d columns by 8", w, x.BM, x.BN)
		return
	}
	times := ceilDiv(f.Cols, WgmmaMaxN)
	for f.Cols%(8*times) != 0 {
		times++
	}
	f.WgmmaN = f.Cols / times
}
