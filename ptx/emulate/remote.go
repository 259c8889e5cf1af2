package emulate

import "encoding/binary"

// Shared memory of other CTAs of the cluster, and copies of plain bytes.

// remote checks one lane's access of 4 bytes to some CTA's shared memory and gives the bytes.
func (w *warp) remote(l int, addr uint32, write bool) []byte {
	t, off, ok := w.resolve(addr)
	if !ok || !w.fits(t, off, 4) {
		return nil
	}
	e := w.now(l)
	if t != w.t {
		if t.gone() {
			w.fault(Exit, -1, w.m.object(off), "touches the shared memory of CTA %d, which has ended", t.index)
			return nil
		}
		t.note(e, w.at, w.m.object(off))
	}
	w.m.check(&access{t: t, off: off, bytes: 4, write: write, by: e, know: w.mine(1 << l), pc: w.at})
	return t.mem[off : off+4]
}

// fits tells whether n aligned bytes lie in t's shared memory.
func (w *warp) fits(t *cta, off, n int) bool {
	if off%n != 0 {
		w.fault(Alignment, -1, w.m.object(off), "access of %d bytes at %s", n, w.m.place(off))
		return false
	}
	if off+n > len(t.mem) {
		w.fault(Bounds, -1, "", "access of %d bytes at %d, outside %d bytes of shared memory", n, off, len(t.mem))
		return false
	}
	return true
}

func loadRemote(w *warp, c *code) {
	for l := range lanes(w.mask) {
		p := w.remote(l, w.r[c.a][l], false)
		if p == nil {
			return
		}
		w.r[c.d][l] = binary.LittleEndian.Uint32(p)
	}
}

func storeRemote(w *warp, c *code) {
	for l := range lanes(w.mask) {
		p := w.remote(l, w.r[c.a][l], true)
		if p == nil {
			return
		}
		binary.LittleEndian.PutUint32(p, w.r[c.b][l])
	}
}

// storeAsync sends n words to a CTA's shared memory; they land when the schedule says, and count on a barrier of that CTA.
func storeAsync(n int) op {
	return func(w *warp, c *code) {
		for l := range lanes(w.mask) {
			t, off, ok := w.resolve(w.r[c.a][l])
			to, bar, ok2 := w.resolve(w.r[c.s[1+n]][l])
			if !ok || !ok2 || !w.fits(t, off, 4*n) {
				return
			}
			if t != to {
				w.fault(Barrier, -1, w.m.object(bar), "st.async to CTA %d, its barrier in CTA %d", t.rank, to.rank)
				return
			}
			o := w.plain(l, words, off, 4*n)
			o.bar, o.mask = bar, 1<<t.rank
			for i := range n {
				o.data = binary.LittleEndian.AppendUint32(o.data, w.r[c.s[1+i]][l])
			}
			if !w.bind(o, t, l) {
				return
			}
			w.t.c.ops = append(w.t.c.ops, o)
		}
	}
}

// plain starts a transfer that has no tensor map.
func (w *warp) plain(l, kind, off, n int) *transfer {
	o := &transfer{kind: uint8(kind), w: w, pc: w.at, off: off, bytes: n, param: -1, know: newKnowledge(w.m.agents()), time: w.time}
	w.publish(1<<l, o.know)
	return o
}

// bulk checks what both directions of a plain bulk copy share.
func (w *warp) bulk16(l int, shared uint32, global uint64, n int) (off int, data []byte, ok bool) {
	if off, ok = w.own(shared); !ok {
		return 0, nil, false
	}
	if n%16 != 0 || off%16 != 0 || global%16 != 0 || n == 0 {
		w.fault(Alignment, -1, w.m.object(off), "bulk copy of %d bytes between %s and global %#x, want multiples of 16", n, w.m.place(off), global)
		return 0, nil, false
	}
	if off+n > len(w.t.mem) {
		w.fault(Bounds, -1, "", "bulk copy of %d bytes at %s, outside shared memory of %d", n, w.m.place(off), len(w.t.mem))
		return 0, nil, false
	}
	data = w.globalBytes(global, n)
	return off, data, data != nil
}

func bulkLoad(w *warp, c *code) {
	for l := range lanes(w.mask) {
		n := int(w.r[c.s[2]][l])
		off, data, ok := w.bulk16(l, w.r[c.a][l], w.d[c.b][l], n)
		bar, ok2 := w.own(w.r[c.s[3]][l])
		if !ok || !ok2 {
			return
		}
		o := w.plain(l, load, off, n)
		o.bar, o.mask, o.data = bar, 1<<w.t.rank, data
		if !w.bind(o, w.t, l) {
			return
		}
		w.t.c.ops = append(w.t.c.ops, o)
		w.m.counts.LoadBytes += int64(n)
	}
}

func bulkStore(w *warp, c *code) {
	for l := range lanes(w.mask) {
		n := int(w.r[c.s[2]][l])
		off, data, ok := w.bulk16(l, w.r[c.b][l], w.d[c.a][l], n)
		if !ok {
			return
		}
		o := w.plain(l, save, off, n)
		o.data = data
		w.queueStore(o, l)
	}
}
