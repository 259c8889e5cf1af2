// Package emulate runs kernels of package ptx on the CPU, and finds what is wrong with them.
//
// It executes the verified instruction tree, not text: warps with divergence, clusters, mbarriers with transaction counts, TMA with swizzles and multicast,
// wgmma through its descriptors, the generic and the async proxy. Asynchronous work is queued at issue and done at a moment that the seed chooses.
// Every access to shared memory is checked against vector clocks (clock.go, shadow.go), so that a missing fence, wait or barrier is found whatever the
// schedule did. A launch that comes to a halt is explained (deadlock.go).
//
// It does not model time, caches, register spills, the tensor core's order of summation or races in global memory.
//
// Start with Emulator.Run, then machine.go.
package emulate

import (
	"fmt"
	"math/rand"

	"heddle/ptx"
)

// Emulator is a ptx.Runner.
type Emulator struct {
	SMs      int   // CTAs that are resident together, one an SM; 0: 8
	Seed     int64 // of the schedule
	Async    When  // when asynchronous operations are done
	MaxSteps int64 // warp instructions before the launch is given up as endless; 0: 2³³
	Unsafe   bool  // leave out the happens-before checks, to measure their price
	Dry      bool  // leave out the arithmetic of wgmma: every check stays, the products are zero
	Stop     int   // faults before the launch is given up; 0: 20
	// Trace, where not nil, is filled with the barriers and shared regions that each instruction touched.
	Trace map[*ptx.Inst]map[string]bool
	// Timeline, where not nil, is filled with what happened when, in the time of its latency model.
	Timeline *Timeline
	// Watch, where not nil, is called with every way station of a result: accumulator registers read, words that threads write to shared memory, boxes that TMA stores.
	Watch func(Event)
	// After, where not nil, is called with what was counted.
	After func(*Counts)
}

// Event is one way station of a result, for one thread.
type Event struct {
	In         *ptx.Inst
	Warp, Lane int      // of the CTA, of the warp
	Off        int      // bytes from the start of shared memory; −1: a register
	Words      []uint32 // what was read, or written there from Off on
	At         [5]int   // of a box: its coordinates
}

// When says when an asynchronous operation that may be done any time is done.
type When uint8

const (
	Random When = iota // the seed decides
	Early              // at once
	Late               // when nothing else can run
)

// Run executes the launch. Faults of the kernel come back as a *Report.
func (e Emulator) Run(mod *ptx.Module, l ptx.Launch, args *ptx.Args) error {
	entry := mod.Entry(l.Entry)
	if entry == nil {
		return fmt.Errorf("emulate: module has no entry %q", l.Entry)
	}
	l, err := entry.Check(l, args)
	if err != nil {
		return err
	}
	for _, b := range args.Buffers() {
		if b.Data == nil && b.Size() > 0 {
			return fmt.Errorf("emulate: buffer %s lives on a device; hint: give it Data", b.Name)
		}
	}
	if l.Grid.Y > 1 || l.Grid.Z > 1 || l.Block.X != entry.Threads || l.Cluster.X != entry.Cluster {
		return fmt.Errorf("emulate: grid %v, block %v, cluster %v, want one dimension, x", l.Grid, l.Block, l.Cluster)
	}
	m := newMachine(e, entry, l, args)
	m.run()
	if e.After != nil {
		m.counts.Executed = map[ptx.Op]int64{}
		n := int64(0)
		for pc := range m.code {
			n += m.entered[pc]
			if in := m.code[pc].in; in != nil && n > 0 {
				m.counts.Executed[in.Op] += n
			}
		}
		e.After(&m.counts)
	}
	if len(m.report.Faults) > 0 {
		return &m.report
	}
	return nil
}

func newMachine(e Emulator, entry *ptx.Entry, l ptx.Launch, args *ptx.Args) *machine {
	if e.SMs == 0 {
		e.SMs = 8
	}
	if e.Stop == 0 {
		e.Stop = 20
	}
	if e.MaxSteps == 0 {
		e.MaxSteps = 1 << 33
	}
	m := &machine{opt: e, entry: entry, launch: l, args: args, rng: rand.New(rand.NewSource(e.Seed)), report: Report{Kernel: entry.Name, limit: e.Stop}}
	m.lower()
	m.memory()
	m.entered = make([]int64, len(m.code)+1)
	return m
}
