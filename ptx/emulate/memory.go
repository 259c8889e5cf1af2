package emulate

import (
	"encoding/binary"
	"math"
	"math/bits"

	"heddle/ptx"
	"heddle/tile"
)

// memory gives the buffers their addresses: buffer i starts at (i+1)·2⁴⁰, so that no offset leads from one into another.
func (m *machine) memory() { m.buffers = m.args.Buffers() }

const (
	bufferShift = 40
	mapTag      = 1 << 56 // address of tensor map i: mapTag + i
)

func (m *machine) address(a ptx.Arg) uint64 {
	for i, b := range m.buffers {
		if b == a.Buffer {
			return uint64(i+1)<<bufferShift + uint64(a.Offset)
		}
	}
	return 0
}

// global finds n bytes of global memory, aligned by their number.
func (w *warp) global(addr uint64, n int) []byte {
	if addr%uint64(n) != 0 {
		w.fault(Alignment, -1, "", "global access of %d bytes at address %#x", n, addr)
		return nil
	}
	return w.globalBytes(addr, n)
}

func (w *warp) globalBytes(addr uint64, n int) []byte {
	i, off := int(addr>>bufferShift)-1, addr&(1<<bufferShift-1)
	if i < 0 || i >= len(w.m.buffers) {
		w.fault(Bounds, -1, "", "global address %#x is in no buffer", addr)
		return nil
	}
	b := w.m.buffers[i]
	w.overtakes(w.mask, b.Name)
	if off+uint64(n) > uint64(len(b.Data)) {
		w.fault(Bounds, -1, b.Name, "global access of %d bytes at byte %d of %s, which has %d", n, off, b.Name, len(b.Data))
		return nil
	}
	return b.Data[off : off+uint64(n)]
}

// loadGlobal reads n consecutive words into n consecutive results.
func loadGlobal(n int) op {
	return func(w *warp, c *code) {
		for l := range lanes(w.mask) {
			p := w.global(w.d[c.a][l], 4*n)
			if p == nil {
				return
			}
			for i := range n {
				w.r[c.d+int32(i)][l] = binary.LittleEndian.Uint32(p[4*i:])
			}
		}
	}
}

func storeGlobal(n int) op {
	return func(w *warp, c *code) {
		for l := range lanes(w.mask) {
			p := w.global(w.d[c.a][l], 4*n)
			if p == nil {
				return
			}
			for i := range n {
				binary.LittleEndian.PutUint32(p[4*i:], w.r[c.s[1+i]][l])
			}
		}
	}
}

// loadHalf reads two bytes into the low half of the result.
func loadHalf(w *warp, c *code) {
	for l := range lanes(w.mask) {
		p := w.global(w.d[c.a][l], 2)
		if p == nil {
			return
		}
		w.r[c.d][l] = uint32(binary.LittleEndian.Uint16(p))
	}
}

// storeHalf writes the low half.
func storeHalf(w *warp, c *code) {
	for l := range lanes(w.mask) {
		p := w.global(w.d[c.a][l], 2)
		if p == nil {
			return
		}
		binary.LittleEndian.PutUint16(p, uint16(w.r[c.s[1]][l]))
	}
}

// atomic replaces a word by f of it and the operand; the old one is the result, where there is one.
func atomic(f func(old, x uint32) uint32) op {
	return func(w *warp, c *code) {
		for l := range lanes(w.mask) {
			p := w.global(w.d[c.a][l], 4)
			if p == nil {
				return
			}
			old := binary.LittleEndian.Uint32(p)
			binary.LittleEndian.PutUint32(p, f(old, w.r[c.b][l]))
			if c.d >= 0 {
				w.r[c.d][l] = old
			}
		}
	}
}

func addFloat(x, y uint32) uint32 { return math.Float32bits(canonical(f32(x) + f32(y))) }

func atomicInc(old, limit uint32) uint32 {
	if old >= limit {
		return 0
	}
	return old + 1
}

// shared checks one lane's access of n bytes and gives the bytes.
func (w *warp) shared(l int, addr uint32, n int, write bool) []byte {
	off, ok := w.own(addr)
	if !ok {
		return nil
	}
	if off%n != 0 {
		w.fault(Alignment, -1, w.m.object(off), "shared access of %d bytes at %s", n, w.m.place(off))
		return nil
	}
	if off+n > len(w.t.mem) {
		w.fault(Bounds, -1, "", "shared access of %d bytes at %d, outside %d bytes", n, off, len(w.t.mem))
		return nil
	}
	w.m.check(&access{t: w.t, off: off, bytes: n, write: write, by: w.now(l), know: w.mine(1 << l), pc: w.at})
	return w.t.mem[off : off+n]
}

// dense gives the bytes of an access in which the lanes, all running, touch n neighbouring bytes each, in order and from a 16-byte boundary; nil for any other.
// It is the common case, checked a cell at a time with the warp as a whole for its agent.
func (w *warp) dense(addr *lanes32, n int, write bool) []byte {
	first := addr[0]
	if w.mask != allLanes || first%16 != 0 {
		return nil
	}
	differ, want := uint32(0), first
	for l := 0; l < 32; l += 4 {
		a := (*[4]uint32)(addr[l:])
		step := uint32(n)
		differ |= (a[0] ^ want) | (a[1] ^ (want + step)) | (a[2] ^ (want + 2*step)) | (a[3] ^ (want + 3*step))
		want += 4 * step
	}
	if differ != 0 {
		return nil
	}
	off, ok := w.own(first)
	if !ok || off+32*n > len(w.t.mem) {
		return nil // the other path says what is wrong
	}
	w.m.counts.Shared++
	w.m.counts.Wavefront += int64(max(1, n/4))
	w.m.counts.Least += int64(max(1, n/4))
	w.m.check(&access{t: w.t, off: off, bytes: 32 * n, write: write, by: w.now(32), know: w.mine(allLanes), pc: w.at})
	return w.t.mem[off : off+32*n]
}

// gather reads every nth word of p, 32 in all.
func gather(r *lanes32, p []byte, n int) {
	if n == 1 {
		for l := 0; l < 32; l += 4 {
			q, t := (*[16]byte)(p[4*l:]), (*[4]uint32)(r[l:])
			t[0], t[1] = binary.LittleEndian.Uint32(q[0:]), binary.LittleEndian.Uint32(q[4:])
			t[2], t[3] = binary.LittleEndian.Uint32(q[8:]), binary.LittleEndian.Uint32(q[12:])
		}
		return
	}
	for l := range r {
		r[l] = binary.LittleEndian.Uint32(p[4*n*l:])
	}
}

// scatter writes every nth word of p, 32 in all.
func scatter(p []byte, r *lanes32, n int) {
	for l, x := range r {
		binary.LittleEndian.PutUint32(p[4*n*l:], x)
	}
}

func loadShared(n int) op {
	return func(w *warp, c *code) {
		if p := w.dense(&w.r[c.a], 4*n, false); p != nil {
			for i := range n {
				gather(&w.r[c.d+int32(i)], p[4*i:], n)
			}
			return
		}
		w.wavefronts(&w.r[c.a], 4*n)
		for l := range lanes(w.mask) {
			p := w.shared(l, w.r[c.a][l], 4*n, false)
			if p == nil {
				return
			}
			for i := range n {
				w.r[c.d+int32(i)][l] = binary.LittleEndian.Uint32(p[4*i:])
			}
		}
	}
}

func storeShared(n int) op {
	return func(w *warp, c *code) {
		if p := w.dense(&w.r[c.a], 4*n, true); p != nil && w.m.opt.Watch == nil {
			for i := range n {
				scatter(p[4*i:], &w.r[c.s[1+i]], n)
			}
			return
		}
		w.wavefronts(&w.r[c.a], 4*n)
		for l := range lanes(w.mask) {
			p := w.shared(l, w.r[c.a][l], 4*n, true)
			if p == nil {
				return
			}
			for i := range n {
				binary.LittleEndian.PutUint32(p[4*i:], w.r[c.s[1+i]][l])
			}
			w.watchBytes(l, w.r[c.a][l], p)
		}
	}
}

// storeMatrix stores four 8×8 matrices of 16-bit elements: lane 8i+r names row r of matrix i, lane 4r+q holds its columns 2q and 2q+1.
func storeMatrix(w *warp, c *code) {
	w.wavefronts(&w.r[c.a], 16)
	for l := range 32 {
		p := w.shared(l, w.r[c.a][l], 16, true)
		if p == nil {
			return
		}
		x := &w.r[c.s[1+l/8]]
		for q := range 4 {
			binary.LittleEndian.PutUint32(p[4*q:], x[4*(l%8)+q])
		}
		w.watchBytes(l, w.r[c.a][l], p)
	}
}

func loadMatrix(w *warp, c *code) {
	w.wavefronts(&w.r[c.a], 16)
	for l := range 32 {
		p := w.shared(l, w.r[c.a][l], 16, false)
		if p == nil {
			return
		}
		for q := range 4 {
			w.r[c.d+int32(l/8)][4*(l%8)+q] = binary.LittleEndian.Uint32(p[4*q:])
		}
	}
}

// wavefronts counts what an access of n bytes a lane costs in the banks.
func (w *warp) wavefronts(addr *lanes32, n int) {
	a := tile.Access{Width: n}
	for l, x := range addr {
		a.Addr[l] = -1 // off
		if w.mask>>l&1 != 0 && x%uint32(n) == 0 {
			a.Addr[l] = int(x & 0xffffff)
		}
	}
	fronts, phases := a.Wavefronts()
	w.m.counts.Shared++
	w.m.counts.Wavefront += int64(fronts)
	w.m.counts.Least += int64(phases)
}

// Warp-wide exchanges.

func shuffle(from func(lane int, x uint32) int) op {
	return func(w *warp, c *code) {
		a, b := &w.r[c.a], &w.r[c.b]
		var t lanes32
		for i := range t {
			t[i] = a[from(i, b[i])&31]
		}
		w.put(c.d, &t)
	}
}

func ballot(w *warp, c *code) {
	var t lanes32
	for i := range t {
		t[i] = w.p[c.a] & w.mask
	}
	w.put(c.d, &t)
}

func anyP(w *warp, c *code) {
	t := uint32(0)
	if w.p[c.a]&w.mask != 0 {
		t = allLanes
	}
	w.putP(c.d, t)
}

func allP(w *warp, c *code) {
	t := uint32(0)
	if w.p[c.a]&w.mask == w.mask {
		t = allLanes
	}
	w.putP(c.d, t)
}

func elect(w *warp, c *code) {
	w.putP(c.d, 1<<bits.TrailingZeros32(w.mask))
}

// atomicCompare replaces a word that equals the first operand by the second.
func atomicCompare(w *warp, c *code) {
	for l := range lanes(w.mask) {
		p := w.global(w.d[c.a][l], 4)
		if p == nil {
			return
		}
		old := binary.LittleEndian.Uint32(p)
		if old == w.r[c.b][l] {
			binary.LittleEndian.PutUint32(p, w.r[c.c][l])
		}
		w.r[c.d][l] = old
	}
}

// atomicShared adds to a word of shared memory. Atomics of different threads need no order between them, but order with everything else.
func atomicShared(w *warp, c *code) {
	for l := range lanes(w.mask) {
		off, ok := w.own(w.r[c.a][l])
		if !ok {
			return
		}
		if off%4 != 0 || off+4 > len(w.t.mem) {
			w.fault(Alignment, -1, w.m.object(off), "shared atomic at %s, want 4 aligned bytes inside shared memory", w.m.place(off))
			return
		}
		w.m.check(&access{t: w.t, off: off, bytes: 4, write: true, atomic: true, by: w.now(l), know: w.mine(1 << l), pc: w.at})
		p := w.t.mem[off:]
		old := binary.LittleEndian.Uint32(p)
		binary.LittleEndian.PutUint32(p, old+w.r[c.b][l])
		w.r[c.d][l] = old
	}
}
