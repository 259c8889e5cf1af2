package emulate

import "math/bits"

// mbar is an mbarrier. A phase completes when no arrival and no byte is missing; it then publishes what its arrivals knew.
type mbar struct {
	name    string
	off     int
	count   int // arrivals of a phase
	pending int // arrivals still missing
	tx      int // bytes still missing; negative while they come before they are expected
	phase   uint32
	flight  int   // loads bound to this phase that have not landed
	flyPC   int32 // of the latest such load
	agent   int32
	init    epoch // the write that made it
	fenced  bool  // a fence.mbarrier_init has followed
	cur     knowledge
	rel     knowledge
	due     float64  // when the current phase completes, in the latency model, as far as it is known
	done    float64  // when the last one did
	waited  []uint32 // by warp: phases complete when it last waited
}

// split tells the CTA and the offset that a shared::cluster address names.
func (w *warp) resolve(addr uint32) (*cta, int, bool) {
	rank, off := int(addr>>24), int(addr&0xffffff)-sharedBase
	if rank >= len(w.t.c.ctas) || off < 0 {
		w.fault(Bounds, -1, "", "shared address %#x is in no CTA of the cluster; addresses start from the CTA's base", addr)
		return nil, 0, false
	}
	return w.t.c.ctas[rank], off, true
}

// own resolves a shared::cta address.
func (w *warp) own(addr uint32) (int, bool) {
	t, off, ok := w.resolve(addr)
	if ok && t != w.t {
		w.fault(Bounds, -1, "", "shared address %#x belongs to CTA %d of the cluster, this is CTA %d", addr, t.rank, w.t.rank)
		return 0, false
	}
	return off, ok
}

func mbarInit(w *warp, c *code) {
	for l := range lanes(w.mask) {
		off, ok := w.own(w.r[c.a][l])
		if !ok {
			return
		}
		if off%8 != 0 {
			w.fault(Alignment, -1, "", "mbarrier at %s, want 8-byte alignment", w.m.place(off))
			return
		}
		n := int(w.r[c.b][l])
		if n < 1 || n >= 1<<20 {
			w.fault(Barrier, -1, w.m.object(off), "mbarrier.init with %d arrivals, want 1..2²⁰−1", n)
			return
		}
		e := w.now(l)
		w.m.check(&access{t: w.t, off: off, bytes: 8, write: true, by: e, know: w.mine(1 << l), pc: w.at})
		b := w.t.bars[off]
		if b == nil {
			if len(w.t.bars) == maxBars {
				w.fault(Barrier, -1, "", "more than %d mbarriers in a CTA: the emulator keeps no more", maxBars)
				return
			}
			b = &mbar{name: w.m.object(off), off: off, agent: int32(w.t.base + len(w.t.bars)), cur: newKnowledge(w.m.agents()), rel: newKnowledge(w.m.agents()), waited: make([]uint32, w.m.warps)}
			w.t.bars[off] = b
		}
		b.count, b.pending, b.tx, b.init, b.fenced = n, n, 0, e, false
	}
}

// bar finds the mbarrier at an offset of t; who uses it must know that it has been made.
func (w *warp) bar(t *cta, off int, mask uint32) *mbar {
	w.m.trace(w.at, off)
	b := t.bars[off]
	switch {
	case b == nil:
		w.fault(Barrier, -1, w.m.object(off), "%s holds no initialised mbarrier", w.m.place(off))
	case !w.mine(mask).v.knows(b.init):
		w.fault(Race, -1, b.name, "uses %s, and nothing orders its initialisation before that", b.name)
	case t != w.t && !b.fenced:
		w.fault(Proxy, -1, b.name, "uses %s of another CTA, initialised without fence.mbarrier_init", b.name)
	}
	return b
}

func (b *mbar) settle(m *machine, t *cta) {
	if b.pending > 0 || b.tx != 0 {
		return
	}
	if b.flight > 0 {
		m.faultAt(Phase, t, b.flyPC, -1, b.name, "a phase of %s completes while %d loads bound to it are under way; more bytes should have been expected", b.name, b.flight)
	}
	b.done, b.due = b.due, 0
	b.phase++
	b.pending, b.flight = b.count, 0
	b.cur.set(epoch{b.agent, b.phase})
	b.rel.join(b.cur)
}

// arrive counts the lanes in mask at a barrier of t, and expects more bytes of it.
func (w *warp) arrive(t *cta, off int, mask uint32, bytes int) {
	b := w.bar(t, off, mask)
	if b == nil {
		return
	}
	if t.gone() {
		w.fault(Exit, -1, b.name, "arrives at %s of CTA %d, which has ended", b.name, t.index)
	}
	if !w.mine(mask).v.knows(epoch{b.agent, b.phase}) {
		w.fault(Barrier, -1, b.name, "arrives at %s in phase %d without knowing that the phase before has completed: it might count for that one", b.name, b.phase)
	}
	if t != w.t {
		t.note(w.now(bits.TrailingZeros32(mask)), w.at, b.name)
	}
	b.due = max(b.due, w.time)
	w.publish(mask, b.cur)
	b.tx += bytes
	n := bits.OnesCount32(mask)
	if b.pending < n {
		w.fault(Barrier, -1, b.name, "%s gets more arrivals in a phase than its count, %d", b.name, b.count)
		n = b.pending
	}
	b.pending -= n
	b.settle(w.m, t)
}

func mbarArrive(w *warp, c *code) { w.arriveEach(c, 0) }

func mbarExpect(w *warp, c *code) { w.arriveEach(c, int(w.first(c.b))) }

// arriveEach arrives for each lane at the barrier that its register names, own or remote.
func (w *warp) arriveEach(c *code, bytes int) {
	addr := &w.r[c.a]
	one := addr[bits.TrailingZeros32(w.mask)]
	same := true
	for l := range lanes(w.mask) {
		same = same && addr[l] == one
	}
	if same && bytes == 0 {
		if t, off, ok := w.resolve(one); ok {
			w.arrive(t, off, w.mask, 0)
		}
		return
	}
	for l := range lanes(w.mask) {
		if t, off, ok := w.resolve(addr[l]); ok {
			w.arrive(t, off, 1<<l, bytes)
		}
	}
}

func mbarExpectTx(w *warp, c *code) {
	for l := range lanes(w.mask) {
		if off, ok := w.own(w.r[c.a][l]); ok {
			if b := w.bar(w.t, off, 1<<l); b != nil {
				b.tx += int(w.r[c.b][l])
				b.settle(w.m, w.t)
			}
		}
	}
}

// passed tells whether the phase of the given parity has completed, as seen from the current one.
func (b *mbar) passed(parity uint32) bool { return b.phase&1 != parity&1 }

func mbarWait(w *warp, c *code) {
	off, ok := w.own(w.first(c.a))
	if !ok {
		w.dead()
		return
	}
	b, parity := w.bar(w.t, off, w.mask), w.first(c.b)
	if b == nil {
		w.dead()
		return
	}
	for l := range lanes(w.mask) {
		if w.r[c.a][l] != w.first(c.a) || w.r[c.b][l]&1 != parity&1 {
			w.fault(Diverged, -1, b.name, "lanes of one warp wait for different barriers or phases")
			break
		}
	}
	if !b.passed(parity) {
		if w.wait == nil {
			w.m.counts.Waits++
			w.sleep(wait{what: "mbarrier", object: b.name, bar: b, parity: parity})
		}
		return
	}
	w.wake()
	if known := w.mine(w.mask).v[b.agent]; known+1 < b.phase {
		w.fault(Phase, -1, b.name, "waits for phase %d of %s and knows of %d: a phase earlier the same parity would have let it pass", b.phase-1, b.name, known)
	}
	if b.phase > 0 && b.waited[w.id] == b.phase {
		w.fault(Phase, -1, b.name, "waits again for phase %d of %s, which it has seen complete: the wait waits for nothing", b.phase-1, b.name)
	}
	b.waited[w.id] = b.phase
	w.until(b.done, "wait "+b.name)
	w.learn(w.mask, b.rel)
}

// dead makes a warp wait for ever: what it waits for does not exist, and the fault has been reported.
func (w *warp) dead() { w.sleep(wait{what: "a barrier that does not exist"}) }

func mbarTry(w *warp, c *code) {
	var t uint32
	for l := range lanes(w.mask) {
		off, ok := w.own(w.r[c.a][l])
		if !ok {
			return
		}
		b := w.bar(w.t, off, 1<<l)
		if b == nil {
			return
		}
		if b.passed(w.r[c.b][l]) && w.m.rng.Intn(4) != 0 { // may fail for no reason
			t |= 1 << l
			w.learn(1<<l, b.rel)
		}
	}
	w.putP(c.d, t)
}

func mapa(w *warp, c *code) {
	a, rank := &w.r[c.a], &w.r[c.b]
	var t lanes32
	for i := range t {
		t[i] = rank[i]<<24 | a[i]&0xffffff
		if w.mask>>i&1 != 0 && int(rank[i]) >= w.m.clusterSize {
			w.fault(Bounds, -1, "", "mapa to rank %d in a cluster of %d", rank[i], w.m.clusterSize)
			return
		}
	}
	w.put(c.d, &t)
}
