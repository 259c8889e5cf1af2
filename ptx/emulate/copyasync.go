package emulate

import "encoding/binary"

// cp.async copies run behind the thread's back in the generic proxy. A warp's copies are kept together: lane l's bytes of group g are complete for it when it
// has waited for g. They are done at the wait that forces them, so that a buffer read too early holds what was there before.

// copyState is a warp's cp.async groups.
type copyState struct {
	groups  int // committed
	pending []pendingCopy
}

type pendingCopy struct {
	group int
	off   int
	data  [16]byte
}

// copyAgent is the component of a warp's cp.async groups.
func (w *warp) copyAgent() int32 { return w.bulkAgent(2) }

func copyAsync(w *warp, c *code) {
	e := epoch{w.copyAgent(), uint32(w.copies.groups + 1)}
	for l := range lanes(w.mask) {
		src := w.global(w.d[c.b][l], 16)
		off, ok := w.own(w.r[c.a][l])
		if src == nil || !ok {
			return
		}
		if off%16 != 0 || off+16 > len(w.t.mem) {
			w.fault(Alignment, -1, w.m.object(off), "cp.async to %s, want 16 aligned bytes inside shared memory", w.m.place(off))
			return
		}
		w.m.check(&access{t: w.t, off: off, bytes: 16, write: true, by: e, know: w.mine(1 << l), pc: w.at})
		p := pendingCopy{group: w.copies.groups + 1, off: off}
		copy(p.data[:], src)
		w.copies.pending = append(w.copies.pending, p)
	}
	w.t.note(e, w.at, "")
}

func copyCommit(w *warp, c *code) { w.copies.groups++ }

func copyWait(w *warp, c *code) {
	upto := w.copies.groups - int(w.first(c.a))
	left := w.copies.pending[:0]
	for _, p := range w.copies.pending {
		if p.group <= upto {
			copy(w.t.mem[p.off:], p.data[:])
		} else {
			left = append(left, p)
		}
	}
	w.copies.pending = left
	if upto > 0 {
		w.learnOf(w.mask, epoch{w.copyAgent(), uint32(upto)})
	}
}

// transpose8 gives word q of row r of a transposed 8×8 matrix whose lane 4i+j holds columns 2j and 2j+1 of row i.
func transpose8(x *lanes32, r, q int) uint32 {
	at := func(row int) uint32 { return x[4*row+r/2] >> (16 * (r % 2)) & 0xffff }
	return at(2*q) | at(2*q+1)<<16
}

// storeMatrixT is storeMatrix of the transposed matrices.
func storeMatrixT(w *warp, c *code) {
	w.wavefronts(&w.r[c.a], 16)
	for l := range 32 {
		p := w.shared(l, w.r[c.a][l], 16, true)
		if p == nil {
			return
		}
		for q := range 4 {
			binary.LittleEndian.PutUint32(p[4*q:], transpose8(&w.r[c.s[1+l/8]], l%8, q))
		}
	}
}

func loadMatrixT(w *warp, c *code) {
	w.wavefronts(&w.r[c.a], 16)
	var plain [4]lanes32
	for l := range 32 {
		p := w.shared(l, w.r[c.a][l], 16, false)
		if p == nil {
			return
		}
		for q := range 4 {
			plain[l/8][4*(l%8)+q] = binary.LittleEndian.Uint32(p[4*q:])
		}
	}
	for i := range plain {
		for l := range 32 {
			w.r[c.d+int32(i)][l] = transpose8(&plain[i], l/4, l%4)
		}
	}
}
