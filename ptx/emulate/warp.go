package emulate

import (
	"fmt"
	"iter"
	"math/bits"

	"heddle/ptx"
)

const allLanes = ^uint32(0)

type (
	lanes32 [32]uint32
	lanes64 [32]uint64
)

// warp is 32 threads: a program counter, a stack of masks, registers. What blocks it is re-tried when its turn comes.
type warp struct {
	m  *machine
	t  *cta
	id int // in the CTA

	r     []lanes32
	d     []lanes64
	p     []uint32 // a predicate register is a mask
	pc    int32
	at    int32 // of the instruction under way
	mask  uint32
	stack []frame
	done  bool
	wait  *wait // what it waits for; nil: it can run
	dozes bool  // its turn ends: it polls memory
	regs  int
	time  float64 // of the latency model, in clocks

	lane0    int32
	clock    uint32
	known    uint32
	know     knowledge
	part     knowledge
	partMask uint32

	bulk     bulkState
	copies   copyState
	parted   *ptx.Line // of a branch that may have left the lanes apart
	arrived  int       // generation of the cluster barrier that it has arrived at, plus one
	barGen   int       // generation of the named barrier it sleeps on
	sleeping bool
}

type frame struct{ mask, els uint32 }

// wait says what a warp waits for.
type wait struct {
	what   string // "mbarrier", "named barrier", "cluster barrier", "setmaxnreg", "bulk stores", "wgmma"
	object string
	bar    *mbar
	parity uint32
}

// lanes are the set bits of a mask, in order.
func lanes(mask uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(bits.TrailingZeros32(mask)) {
				return
			}
		}
	}
}

func (m *machine) newWarp(t *cta, id, agents int) *warp {
	n := &m.entry.Counts
	w := &warp{
		m: m, t: t, id: id, mask: allLanes, regs: m.entry.Registers, lane0: int32((t.rank*m.warps + id) * perLanes), know: newKnowledge(agents), part: newKnowledge(agents),
		r: make([]lanes32, n[ptx.B32]+len(m.const32)), d: make([]lanes64, n[ptx.B64]+len(m.const64)), p: make([]uint32, n[ptx.P]),
	}
	for x, i := range m.const32 {
		r := &w.r[n[ptx.B32]+int(i)]
		for l := range r {
			r[l] = x
		}
	}
	for x, i := range m.const64 {
		d := &w.d[n[ptx.B64]+int(i)]
		for l := range d {
			d[l] = x
		}
	}
	w.tick(allLanes)
	return w
}

// run executes up to n steps and tells whether it got anywhere; a warp that sleeps between two looks at memory did not.
func (w *warp) run(n int) bool {
	code, left := w.m.code, n
	w.dozes = false
	for left > 0 && !w.done {
		at := w.pc
		c := &code[at]
		if c.plain {
			left -= w.straight(left)
			continue
		}
		left--
		w.at = at
		w.pc++
		switch {
		case c.aligned && w.wait == nil && !w.whole():
			continue
		case c.g >= 0 && c.in != nil:
			open := w.mask
			if w.mask &= w.p[c.g]; w.mask != 0 {
				c.f(w, c)
			}
			w.mask = open
		default:
			c.f(w, c)
		}
		if w.wait != nil {
			w.pc = at
			left++
			break
		}
		w.passed(at, w.at+1)
		if w.dozes {
			w.m.counts.Steps += int64(n - left)
			return false
		}
	}
	w.m.counts.Steps += int64(n - left)
	return left < n
}

// straight executes plain instructions, up to n, and tells how many.
func (w *warp) straight(n int) int {
	code, from := w.m.code, w.pc
	at, stop := from, int(from)+n
	for ; int(at) < stop; at++ {
		c := &code[at]
		if !c.plain {
			break
		}
		w.at = at
		c.f(w, c)
	}
	w.pc = at
	w.passed(from, at)
	return int(at - from)
}

// passed counts the instructions from … to−1 as executed, in the latency model at one a clock.
func (w *warp) passed(from, to int32) {
	w.m.entered[from]++
	w.m.entered[to]--
	w.time += float64(to - from)
}

// nanosleep ends the warp's turn: whatever it looks for, somebody else must do first.
func nanosleep(w *warp, c *code) { w.dozes = true }

// sleep makes the instruction under way be tried again.
func (w *warp) sleep(x wait) { w.wait = &x }

func (w *warp) wake() { w.wait = nil }

// first is a register's value in the lowest running lane.
func (w *warp) first(r int32) uint32 { return w.r[r][bits.TrailingZeros32(w.mask)] }

// whole reports an instruction that all lanes of the warp should have reached together.
func (w *warp) whole() bool {
	name := w.m.code[w.at].in.Op.Mnemonic()
	if w.mask != allLanes {
		w.fault(Diverged, -1, "", "%s reached by lanes %08x only", name, w.mask)
		return false
	}
	if w.parted != nil && w.m.code[w.at].in.Op != ptx.OpWarpSync {
		w.m.report.add(Fault{
			Kind: Diverged, Line: w.m.line(w.at), Other: w.parted.String(), Role: w.m.role(w.id), CTA: w.t.index, Warp: w.id, Lanes: w.mask,
			Text: fmt.Sprintf("%s after the branch at %s, whose lanes may come back at different times; WarpSync first", name, w.parted),
		})
		w.parted = nil
	}
	return true
}

func ifOp(w *warp, c *code) {
	t := w.mask & w.p[c.g]
	w.stack = append(w.stack, frame{w.mask, w.mask &^ t})
	w.mask = t
	if t == 0 {
		w.pc = c.jump
	}
}

func elseOp(w *warp, c *code) {
	w.mask = w.stack[len(w.stack)-1].els
	if w.mask == 0 {
		w.pc = c.jump
	}
}

func endOp(w *warp, c *code) {
	top := w.stack[len(w.stack)-1]
	if c.parts != nil && top.els != 0 && top.els != top.mask {
		w.parted = c.parts
	}
	w.pop()
}

func (w *warp) pop() {
	w.mask = w.stack[len(w.stack)-1].mask
	w.stack = w.stack[:len(w.stack)-1]
}

func loopOp(w *warp, c *code) { w.stack = append(w.stack, frame{w.mask, 0}) }

func testOp(w *warp, c *code) {
	open, top := w.mask, &w.stack[len(w.stack)-1]
	w.mask &= w.p[c.g]
	if w.mask != 0 {
		if w.mask != open {
			top.els = allLanes // some lanes leave before others
		}
		return
	}
	if c.parts != nil && top.els != 0 {
		w.parted = c.parts
	}
	w.pc = c.jump
	w.pop()
}

func backOp(w *warp, c *code) { w.pc = c.jump }

// exit ends the warp. The end of the last one is a write to all of the CTA's shared memory that knows what the CTA's threads know.
func exit(w *warp, c *code) {
	t := w.t
	w.done = true
	t.c.left--
	w.meet(&t.ended)
	t.exited++
	if n := len(w.bulk.pending); n > 0 {
		w.fault(Exit, w.bulk.pending[0].pc, "", "the warp exits with %d bulk stores, issued at %s, still reading shared memory", n, w.m.line(w.bulk.pending[0].pc))
	}
	t.c.bar.settle(t.c)
	if !t.gone() {
		return
	}
	for agent, x := range t.touched {
		if !t.ended.v.knows(epoch{agent, x.count}) {
			w.m.faultAt(Exit, t, x.pc, -1, x.object, "uses the shared memory of CTA %d, but nothing orders that before the CTA's end", t.index)
		}
	}
}
