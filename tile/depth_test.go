package tile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// measured is the bf16 kernel that ran at cuBLAS speed on an H200: 229,440 bytes of shared memory, 24/240 registers, 168 at launch.
func measured() Choice {
	return Choice{BM: 128, BN: 256, BK: 64, In: 2, Out: 2, ClusterM: 2, ClusterN: 1, Warpgroups: 2, Buffers: 2}
}

func TestDepthOfTheMeasuredKernel(t *testing.T) {
	f := H200().Fit(measured())
	if !f.OK() {
		t.Fatalf("refused: %v", f.Refusals)
	}
	got := []int{f.StageBytes, f.EpilogueBytes, f.BarrierBytes, f.SharedBytes, f.MaxStages, f.Choice.Stages, int(f.Swizzle), f.BoxesA, f.BoxesB,
		f.Rows, f.Cols, f.WgmmaN, f.Accumulators, f.Threads, f.Launch, f.Producer, f.Consumer}
	want := []int{49152, 32768, 64, 229440, 4, 4, 128, 1, 1, 64, 256, 256, 128, 384, 168, 24, 240}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// 128 × 256 × 64 at 4096 FLOP a clock is 1024 clocks; (128 + 256/2) rows of 128 bytes come from L2; two wgmma of 64 + 256 rows read a k block.
	rates := []float64{f.Clocks, f.L2Asked, f.SharedRead, f.SharedWrite, f.Covered}
	if want := []float64{1024, 32, 80, 48, 3072}; !slices.Equal(rates, want) {
		t.Errorf("rates: got %v, want %v", rates, want)
	}
}

func TestTheLastByteOfSharedMemoryCounts(t *testing.T) {
	exact, short := H200(), H200()
	exact.SharedPerCTA, short.SharedPerCTA = 229440, 229439
	x := measured()
	x.Stages = 4
	if f := exact.Fit(x); !f.OK() || f.MaxStages != 4 {
		t.Errorf("229,440 bytes: %v", f.Refusals)
	}
	if f := short.Fit(x); f.OK() || f.MaxStages != 3 {
		t.Errorf("a byte less: %d stages, %v", f.MaxStages, f.Refusals)
	}
}

// The register splits are those that public Hopper kernels run with; every one must be launchable.
func TestRegisterSplits(t *testing.T) {
	for groups, want := range map[int][3]int{1: {248, 240, 240}, 2: {168, 24, 240}, 3: {128, 32, 160}} {
		x := measured()
		x.BM, x.BN, x.Warpgroups = 64*groups, 64, groups
		f := H100().Fit(x)
		if got := [3]int{f.Launch, f.Producer, f.Consumer}; got != want {
			t.Errorf("%d warpgroups: launch, producer, consumer %v, want %v", groups, got, want)
		}
		if f.Producer+groups*f.Consumer > (groups+1)*f.Launch {
			t.Errorf("%d warpgroups: setmaxnreg would wait for registers that nobody gives", groups)
		}
	}
}

// Stages of public kernels with the bare minimum of epilogue (bf16, no buffers counted): (227 KB - epilogue) / stage.
func TestStagesTable(t *testing.T) {
	x := Choice{BK: 64, In: 2, Out: 2, Warpgroups: 2, Buffers: 1}
	got := H100().StagesTable(x, []int{64, 128, 192, 256, 320}, []int{128, 256})
	want := [][]int{{8, 5}, {6, 4}, {5, 3}, {4, -1}, {3, -1}} // 256 and 320 × 256 would take more accumulators than there are registers
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRefusalsNameTheirRuleAndTheNearestFits(t *testing.T) {
	for rule, edit := range map[string]func(*Choice){
		"types":         func(x *Choice) { x.In = 3 },
		"wgmma m64":     func(x *Choice) { x.BM = 96 },
		"wgmma n8":      func(x *Choice) { x.BN = 100 },
		"wgmma k step":  func(x *Choice) { x.BK = 24 },
		"threads":       func(x *Choice) { x.Warpgroups = 8 },
		"ping-pong":     func(x *Choice) { x.PingPong, x.Warpgroups = true, 1 },
		"promote":       func(x *Choice) { x.Promote = true },
		"range":         func(x *Choice) { x.Stages = -1 },
		"cluster":       func(x *Choice) { x.ClusterM = 17 },
		"multicast":     func(x *Choice) { x.BN, x.ClusterM = 200, 2 },
		"split":         func(x *Choice) { x.BM, x.BN = 64, 8 },
		"stages":        func(x *Choice) { x.BK = 256 },
		"shared memory": func(x *Choice) { x.Stages = 5 },
		"registers":     func(x *Choice) { x.BM = 256 },
	} {
		x := measured()
		edit(&x)
		f := H200().Fit(x)
		if !slices.ContainsFunc(f.Refusals, func(r Refusal) bool { return r.Rule == rule && strings.ContainsAny(r.Why, "0123456789") }) {
			t.Errorf("%s: got %v", rule, f.Refusals)
		}
		near, ok := H200().Nearest(x)
		if ok && !H200().Fit(near).OK() {
			t.Errorf("%s: the nearest, %+v, is refused as well", rule, near)
		}
		if !ok && rule != "types" && rule != "promote" && rule != "range" {
			t.Errorf("%s: nothing is near", rule)
		}
	}
	x := measured()
	x.Stages = 5 // one too many: the same tile with one stage less is the nearest there is
	if near, _ := H200().Nearest(x); near.Stages != 4 || near.BM != 128 || near.BN != 256 || near.BK != 64 {
		t.Errorf("5 stages: nearest is %+v", near)
	}
	if near, _ := H200().Nearest(measured()); near.Stages != 4 || near.BM*near.BN*near.BK != 128*256*64 {
		t.Errorf("what fits is its own nearest, got %+v", near)
	}
}

// Whatever a choice is, Fit answers without a panic, and what it accepts is within the chip.
func FuzzFit(f *testing.F) {
	f.Add(128, 256, 64, 2, 2, 2, 1, 2, 2, 0)
	f.Add(256, 128, 128, 1, 4, 1, 2, 3, 1, 3)
	f.Add(-1, 1<<40, 0, 9, 4, 0, -5, 1<<30, 9, 1)
	f.Fuzz(func(t *testing.T, bm, bn, bk, in, out, cm, cn, groups, buffers, stages int) {
		x := Choice{BM: bm, BN: bn, BK: bk, In: in, Out: out, ClusterM: cm, ClusterN: cn, Warpgroups: groups, Buffers: buffers, Stages: stages}
		fit := H200().Fit(x)
		if !fit.OK() {
			return
		}
		regs := (fit.Producer + fit.Choice.Warpgroups*fit.Consumer) * 128
		if fit.SharedBytes > 232448 || regs > 65536 || fit.Choice.Stages < 2 || fit.WgmmaN%8 != 0 || fit.WgmmaN > 256 || fit.Cols%fit.WgmmaN != 0 {
			t.Errorf("%+v: %+v", x, fit)
		}
		if math.IsNaN(fit.L2Asked) || fit.Clocks <= 0 {
			t.Errorf("%+v: rates %+v", x, fit)
		}
	})
}
