package tile

// shared adds up shared memory: stages, epilogue buffers, barriers. All start on multiples of 1024 bytes, barriers last.
func (f *Fit) shared() {
	x := &f.Choice
	f.StageBytes = (x.BM + x.BN) * x.BK * x.In
	f.EpilogueBytes = x.Buffers * x.Warpgroups * mmaRows * min(f.Cols*x.Out, chunkBytes)
	f.MaxStages = max(0, (f.SharedLimit-f.EpilogueBytes)/(f.StageBytes+barrierBytes))
	if x.Stages == 0 {
		x.Stages = f.MaxStages
	}
	f.BarrierBytes = x.Stages * barrierBytes
	f.SharedBytes = x.Stages*f.StageBytes + f.EpilogueBytes + f.BarrierBytes
	if f.MaxStages < 2 || x.Stages < 2 {
		f.refuse("stages", "%d stages of %d bytes: loads and products overlap from 2 on, of which the limit of %d bytes less %d of epilogue holds %d",
			x.Stages, f.StageBytes, f.SharedLimit, f.EpilogueBytes, f.MaxStages)
	} else if f.SharedBytes > f.SharedLimit {
		f.refuse("shared memory", "%d stages × %d + epilogue %d + barriers %d = %d bytes; a CTA has %d, which holds %d stages",
			x.Stages, f.StageBytes, f.EpilogueBytes, f.BarrierBytes, f.SharedBytes, f.SharedLimit, f.MaxStages)
	}
}

// registers divides the file as setmaxnreg can: only what the launch allocated can be handed on, in eights, the same for a whole warpgroup.
func (f *Fit) registers(c Chip) {
	x := f.Choice
	groups := x.Warpgroups + 1
	f.Threads = groups * wgThreads
	f.Launch = min(c.Registers/f.Threads, c.RegsPerThread) / 8 * 8
	pool := groups * f.Launch
	// 240 is what kernels take at most: 24 + 2 × 240 is all that 384 threads were launched with.
	f.Consumer = min((pool-minSetmax)/x.Warpgroups/8*8, 240)
	f.Producer = min(pool-x.Warpgroups*f.Consumer, 240) / 8 * 8
	f.Accumulators = f.Rows * f.Cols / wgThreads
	need := f.Accumulators
	if x.Promote {
		need *= 2
	}
	if need+spareRegs > f.Consumer {
		f.refuse("registers", "%d accumulators a thread and about %d others; %d warpgroups leave %d registers, more would spill",
			need, spareRegs, x.Warpgroups, f.Consumer)
	}
}

// rates compares what full-speed products ask of L2 and of shared memory with what they give. Asking for too much is slow, not impossible.
func (f *Fit) rates(c Chip) {
	x := f.Choice
	flop := float64(c.FlopPerClock) * 2 / float64(x.In)
	f.Clocks = 2 * float64(x.BM*x.BN) * float64(x.BK) / flop
	row := float64(x.BK * x.In)
	f.L2Asked = (float64(x.BM)/float64(x.ClusterN) + float64(x.BN)/float64(x.ClusterM)) * row / f.Clocks
	// Each wgmma reads 64 rows of A and its own n rows of B, whatever its neighbours have read.
	products := float64(x.BM / mmaRows * (x.BN / f.WgmmaN))
	f.SharedRead = products * float64(mmaRows+f.WgmmaN) * row / f.Clocks
	f.SharedWrite = float64(f.StageBytes) / f.Clocks
	f.Covered = float64(x.Stages-1) * f.Clocks
}
