package emulate

import "fmt"

// namedBarrier is one of a CTA's sixteen.
type namedBarrier struct {
	n, want   int // threads that have come, threads awaited
	gen       int
	pc        int32   // of the first that came
	due, done float64 // in the latency model: of the threads that have come, of the last completion
	cur, rel  knowledge
}

// come counts the warp at a named barrier and tells whether that completed it.
func (w *warp) come(c *code) (*namedBarrier, bool) {
	id, want := w.first(c.a), int(w.first(c.b))
	if id > 15 || want < 32 || want%32 != 0 || want > w.m.entry.Threads {
		w.fault(Barrier, -1, "", "named barrier %d for %d threads, want 0..15 and a multiple of 32 up to %d", id, want, w.m.entry.Threads)
		w.dead()
		return nil, false
	}
	w.m.traceName(w.at, barrierName(id))
	b := &w.t.named[id]
	if b.cur.v == nil {
		b.cur, b.rel = newKnowledge(w.m.agents()), newKnowledge(w.m.agents())
	}
	if b.n == 0 {
		b.want, b.pc = want, w.at
	} else if b.want != want {
		w.fault(Barrier, b.pc, "", "named barrier %d for %d threads here and for %d at %s", id, want, b.want, w.m.line(b.pc))
	}
	w.meet(&b.cur)
	b.due = max(b.due, w.time)
	b.n += 32
	w.barGen = b.gen
	if b.n < b.want {
		return b, false
	}
	b.n = 0
	b.gen++
	b.done, b.due = b.due+barrierCost, 0
	b.rel.join(b.cur)
	return b, true
}

func barSync(w *warp, c *code) {
	if w.sleeping {
		b := &w.t.named[w.first(c.a)]
		if b.gen == w.barGen {
			return
		}
		w.sleeping = false
		w.wake()
		w.until(b.done, barrierName(w.first(c.a)))
		w.know.join(b.rel)
		return
	}
	b, complete := w.come(c)
	switch {
	case b == nil:
	case complete:
		w.until(b.done, barrierName(w.first(c.a)))
		w.know.join(b.rel)
	default:
		w.sleeping = true
		w.sleep(wait{what: "named barrier", object: barrierName(w.first(c.a))})
	}
}

func barArrive(w *warp, c *code) {
	w.come(c)
}

func barrierName(id uint32) string { return fmt.Sprintf("named barrier %d", id) }

// clusterBarrier is the hardware barrier of a cluster. Exited threads count as arrived.
type clusterBarrier struct {
	n, gen    int     // warps that have arrived
	due, done float64 // in the latency model
	cur, rel  knowledge
}

// settle completes the barrier when every warp of the cluster has arrived or exited.
func (b *clusterBarrier) settle(c *cluster) {
	if b.n == 0 || b.n < c.left {
		return
	}
	b.n = 0
	b.gen++
	b.done, b.due = b.due+barrierCost, 0
	b.rel.join(b.cur)
}

func clusterArrive(w *warp, c *code) {
	b := &w.t.c.bar
	if w.arrived != 0 {
		w.fault(Barrier, -1, "", "arrives at the cluster barrier twice without waiting")
	}
	w.arrived = b.gen + 1
	w.meet(&b.cur)
	b.due = max(b.due, w.time)
	b.n++
	b.settle(w.t.c)
}

func clusterWait(w *warp, c *code) {
	b := &w.t.c.bar
	if w.arrived == 0 {
		if w.wait == nil {
			w.fault(Barrier, -1, "", "waits at the cluster barrier without having arrived")
			w.dead()
		}
		return
	}
	if b.gen < w.arrived {
		if w.wait == nil {
			w.sleep(wait{what: "cluster barrier"})
		}
		return
	}
	w.wake()
	w.arrived = 0
	w.until(b.done, "cluster barrier")
	w.know.join(b.rel)
}

func warpSync(w *warp, c *code) {
	w.parted = nil
	w.meet(nil)
}

// fenceProxy makes what the executing lanes know visible to the async proxy; of their sisters only what a warp-wide barrier has made known.
func fenceProxy(w *warp, c *code) {
	k := w.mine(w.mask)
	lo, hi := int(w.lane0), int(w.lane0)+perLanes
	k.a[:lo].join(k.v[:lo])
	k.a[hi:].join(k.v[hi:])
	for i := range perLanes {
		x := k.v[lo+i]
		if uint64(w.mask)>>i&1 == 0 && w.mask != allLanes || i < 32 && w.mask>>i&1 == 0 {
			x = min(x, w.known)
		}
		k.a[lo+i] = max(k.a[lo+i], x)
	}
}

// fenceInit lets other CTAs and the async proxy use the mbarriers that the executing lanes have made.
func fenceInit(w *warp, c *code) {
	for _, b := range w.t.bars {
		l := b.init.agent - w.lane0
		if l >= 0 && l < 32 && w.mask>>l&1 != 0 {
			b.fenced = true
		}
	}
}

func nop(w *warp, c *code) {}

// gridWait joins the grid in front: all of it has ended, its memory is visible.
func gridWait(w *warp, c *code) { w.learnOf(w.mask, w.m.front()) }

// overtakes reports a use of global memory that the grid in front may still write or read.
func (w *warp) overtakes(mask uint32, what string) {
	if w.m.launch.PDL && !w.m.opt.Unsafe && !w.mine(mask).v.knows(w.m.front()) {
		w.fault(Race, -1, what, "touches %s before griddepcontrol.wait: the grid in front may not have ended", what)
	}
}

// setmaxnreg gives registers back to the CTA's pool, or waits until the pool has them.
func setmaxnreg(w *warp, c *code) {
	w.m.traceName(w.at, "registers")
	need := (int(w.first(c.a)) - w.regs) * 32
	if need > w.t.pool {
		if w.wait == nil {
			w.sleep(wait{what: "setmaxnreg", object: "registers"})
		}
		return
	}
	w.wake()
	w.t.pool -= need
	w.regs = int(w.first(c.a))
}
