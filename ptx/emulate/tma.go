package emulate

import (
	"encoding/binary"

	"heddle/num"
	"heddle/ptx"
)

// transfer is a TMA operation under way. What it may touch is decided by what its thread knew when it issued it.
type transfer struct {
	kind   uint8
	w      *warp
	pc     int32
	param  int
	tensor *ptx.Map
	at     [5]int // coordinates, innermost first
	off    int    // shared memory
	bytes  int
	data   []byte // where there is no tensor: the bytes that are written, or where they go
	bar    int    // offset of the mbarrier of a load
	mask   uint32 // CTAs of a load
	phase  [16]uint32
	know   knowledge
	group  int     // bulk group of a store
	time   float64 // when it was issued, in the latency model
}

const (
	load = iota
	save
	reduceAdd
	words // st.async
)

// bulkState is a warp's bulk groups; one lane owns them.
type bulkState struct {
	owner   int // lane + 1
	groups  int // committed
	open    bool
	pending []*transfer // issued and not done
	done    float64     // when the last one done was, in the latency model
}

func tmaLoad(dims int, multicast bool) op {
	return func(w *warp, c *code) {
		for l := range lanes(w.mask) {
			o := w.issue(c, l, load, dims, 2, w.r[c.s[1]][l])
			if o == nil {
				return
			}
			var ok bool
			if o.bar, ok = w.own(w.r[c.s[2+dims]][l]); !ok {
				return
			}
			o.mask = 1 << w.t.rank
			if multicast {
				o.mask = w.r[c.s[3+dims]][l]
			}
			if o.mask == 0 || o.mask>>len(w.t.c.ctas) != 0 {
				w.fault(Bounds, -1, "", "multicast to CTAs %b in a cluster of %d", o.mask, len(w.t.c.ctas))
				return
			}
			for rank := range lanes(o.mask) {
				if !w.bind(o, w.t.c.ctas[rank], l) {
					return
				}
			}
			w.t.c.ops = append(w.t.c.ops, o)
			w.m.counts.LoadBytes += int64(o.tensor.BoxBytes())
		}
	}
}

// bind ties a load to the current phase of its barrier in one CTA.
func (w *warp) bind(o *transfer, t *cta, l int) bool {
	b := w.bar(t, o.bar, 1<<l)
	if b == nil {
		return false
	}
	if !b.fenced {
		w.fault(Proxy, -1, b.name, "%s was initialised without fence.mbarrier_init, and TMA is to signal it", b.name)
	}
	if t.gone() {
		w.fault(Exit, -1, b.name, "loads into CTA %d, which has ended", t.index)
		return false
	}
	b.flight++
	b.flyPC = w.at
	o.phase[t.rank] = b.phase
	t.note(epoch{b.agent, b.phase + 1}, w.at, b.name)
	return true
}

// issue starts a transfer for one lane: coordinates begin at operand first.
func (w *warp) issue(c *code, l, kind, dims, first int, addr uint32) *transfer {
	p := int(w.d[c.a][l] - mapTag)
	if w.d[c.a][l] < mapTag || p >= w.m.args.Len() || w.m.args.At(p).Map == nil {
		w.fault(Bounds, -1, "", "%#x is not the address of a tensor map", w.d[c.a][l])
		return nil
	}
	o := &transfer{kind: uint8(kind), w: w, pc: w.at, param: p, tensor: w.m.args.At(p).Map, time: w.time}
	if len(o.tensor.Dims) != dims {
		w.fault(Operand, -1, "", "%d coordinates for tensor map %s of %d dims", dims, w.m.entry.Params[p].Name, len(o.tensor.Dims))
		return nil
	}
	for i := range dims {
		o.at[i] = int(int32(w.r[c.s[first+i]][l]))
	}
	if b := o.at[0] * o.tensor.Type.Size(); b%16 != 0 { // an H200 answers with an illegal instruction, whatever the swizzle (measured 2026-12-01)
		w.fault(Alignment, -1, "", "TMA box starts at column %d of tensor map %s, byte %d; want a multiple of 16 bytes", o.at[0], w.m.entry.Params[p].Name, b)
		return nil
	}
	w.overtakes(1<<l, w.m.entry.Params[p].Name)
	o.bytes = o.tensor.BoxBytes()
	var ok bool
	if o.off, ok = w.own(addr); !ok {
		return nil
	}
	if o.off%128 != 0 {
		w.fault(Alignment, -1, w.m.object(o.off), "TMA box at %s, want 128-byte alignment", w.m.place(o.off))
		return nil
	}
	if n := o.tensor.BoxBytes(); o.off+n > len(w.t.mem) {
		w.fault(Bounds, -1, "", "TMA box of %d bytes at %s, outside shared memory of %d", n, w.m.place(o.off), len(w.t.mem))
		return nil
	}
	k := newKnowledge(w.m.agents())
	w.publish(1<<l, k)
	o.know = k
	return o
}

func tmaStore(kind int) op {
	return func(w *warp, c *code) {
		for l := range lanes(w.mask) {
			o := w.issue(c, l, kind, 2, 1, w.r[c.s[3]][l])
			if o == nil {
				return
			}
			w.queueStore(o, l)
		}
	}
}

// queueStore checks the reads of a bulk store and puts it into the lane's open group.
func (w *warp) queueStore(o *transfer, l int) {
	if w.bulk.owner != 0 && w.bulk.owner != l+1 {
		w.fault(Barrier, -1, "", "bulk stores by lanes %d and %d of one warp: the emulator follows one lane's groups", w.bulk.owner-1, l)
	}
	w.bulk.owner = l + 1
	w.bulk.open = true
	w.watch(l, o.off, o.at, nil)
	o.group = w.bulk.groups + 1
	e := epoch{w.bulkAgent(0), uint32(o.group)}
	w.m.check(&access{t: w.t, off: o.off, bytes: o.bytes, async: true, by: e, know: o.know, pc: w.at})
	w.t.note(e, w.at, w.m.object(o.off))
	w.bulk.pending = append(w.bulk.pending, o)
	w.t.c.ops = append(w.t.c.ops, o)
}

// owns tells whether the lane that issued the warp's bulk stores is running.
func (w *warp) owns() bool { return w.bulk.owner != 0 && w.mask>>(w.bulk.owner-1)&1 != 0 }

func bulkCommit(w *warp, c *code) {
	if w.owns() {
		w.bulk.groups++
		w.bulk.open = false
	}
}

// bulkWait waits for the owner's groups; the other lanes have none.
func bulkWait(complete bool) op {
	return func(w *warp, c *code) {
		if !w.owns() {
			return
		}
		upto := w.bulk.groups - int(w.first(c.a))
		for _, o := range w.bulk.pending {
			if o.group <= upto {
				if w.wait == nil {
					w.sleep(wait{what: "bulk stores"})
				}
				return
			}
		}
		w.wake()
		if upto <= 0 {
			return
		}
		if len(w.bulk.pending) == 0 {
			w.until(w.bulk.done, "wait for stores")
		}
		lane := uint32(1) << (w.bulk.owner - 1)
		w.learnOf(lane, epoch{w.bulkAgent(0), uint32(upto)})
		if complete {
			w.learnOf(lane, epoch{w.bulkAgent(1), uint32(upto)})
		}
	}
}

// transfer does the operation now.
func (m *machine) transfer(o *transfer) {
	if o.kind == save || o.kind == reduceAdd {
		m.save(o)
		return
	}
	n := o.bytes
	for rank := range lanes(o.mask) {
		t := o.w.t.c.ctas[rank]
		b := t.bars[o.bar]
		if t.gone() {
			m.faultAt(Exit, t, o.pc, -1, b.name, "lands in CTA %d, which has ended", t.index)
			continue
		}
		if b.phase != o.phase[rank] {
			m.faultAt(Phase, t, o.pc, -1, b.name, "lands in phase %d of %s, was issued for phase %d", b.phase, b.name, o.phase[rank])
		}
		m.check(&access{t: t, off: o.off, bytes: n, write: true, async: o.kind == load, by: epoch{b.agent, b.phase + 1}, know: o.know, pc: o.pc})
		if o.tensor == nil {
			copy(t.mem[o.off:], o.data)
		} else {
			m.place2(o, t)
		}
		m.counts.TileBytes += int64(n)
		m.phases(b.cur.v, o.know.v)
		b.due = max(b.due, t.move(m.label("load", o), n, o.time+loadLatency))
		b.tx -= n
		b.flight = max(0, b.flight-1)
		b.settle(m, t)
	}
}

// phases joins what from knows of barrier phases: the bytes that complete a barrier prove that their thread had come as far. Of memory they prove nothing.
func (m *machine) phases(to, from clocks) {
	for rank := range m.clusterSize {
		base := m.agentBase(rank)
		to[base : base+maxBars].join(from[base : base+maxBars])
	}
}

// rows visits the box row by row: its coordinates, its bytes' offset in the packed box.
func (o *transfer) rows(visit func(at [5]int, packed int)) {
	t := o.tensor
	width := t.Box[0] * t.Type.Size()
	count := t.BoxBytes() / width
	var idx [5]int
	for i := range count {
		at := o.at
		for d := 1; d < len(t.Dims); d++ {
			at[d] += idx[d]
		}
		visit(at, i*width)
		for d := 1; d < len(t.Dims); d++ {
			if idx[d]++; idx[d] < t.Box[d] {
				break
			}
			idx[d] = 0
		}
	}
}

// inside is the part of a box row that lies in the tensor: element range and the bytes in global memory.
func (o *transfer) inside(at [5]int) (lo, hi int, data []byte) {
	t := o.tensor
	pos := t.Offset
	for d := 1; d < len(t.Dims); d++ {
		if at[d] < 0 || at[d] >= t.Dims[d] {
			return 0, 0, nil
		}
		pos += at[d] * t.Strides[d-1]
	}
	lo, hi = max(0, -at[0]), min(t.Box[0], t.Dims[0]-at[0])
	if lo >= hi {
		return 0, 0, nil
	}
	size := t.Type.Size()
	return lo, hi, t.Buffer.Data[pos+(at[0]+lo)*size : pos+(at[0]+hi)*size]
}

// place2 writes the box into one CTA's shared memory and marks where each 16 bytes came from.
func (m *machine) place2(o *transfer, t *cta) {
	size := o.tensor.Type.Size()
	var row [4096]byte
	o.rows(func(at [5]int, packed int) {
		width := o.tensor.Box[0] * size
		buf := row[:width]
		o.fill(buf)
		lo, _, data := o.inside(at)
		copy(buf[lo*size:], data)
		for i := 0; i < width; i += 16 {
			off := o.swizzled(packed + i)
			copy(t.mem[off:off+16], buf[i:])
			if !m.opt.Unsafe {
				t.shadow[off>>4].from(o.param+1, at[0]+i/size, at[1])
			}
		}
	})
}

// swizzled is where byte packed of the box lies, as an offset into shared memory; the pattern is of absolute addresses.
func (o *transfer) swizzled(packed int) int {
	return int(o.tensor.Swizzle.Apply(uint32(o.off+packed+sharedBase))) - sharedBase
}

// fill writes what elements outside the tensor read as.
func (o *transfer) fill(b []byte) {
	clear(b)
	if !o.tensor.NaNFill {
		return
	}
	for i := 0; i+4 <= len(b); i += 4 {
		switch o.tensor.Type {
		case num.F32, num.TF32:
			binary.LittleEndian.PutUint32(b[i:], 0x7fffffff)
		case num.BF16, num.F16:
			binary.LittleEndian.PutUint32(b[i:], 0x7fff7fff)
		}
	}
}

// save does a bulk store and takes it from its warp's list.
func (m *machine) save(o *transfer) {
	if o.tensor == nil {
		copy(o.data, o.w.t.mem[o.off:o.off+o.bytes])
		m.counts.SaveBytes += int64(o.bytes)
	} else {
		m.saveBox(o)
	}
	o.w.bulk.done = max(o.w.bulk.done, o.w.t.move(m.label("store", o), o.bytes, o.time))
	p := o.w.bulk.pending
	for i := range p {
		if p[i] == o {
			o.w.bulk.pending = append(p[:i], p[i+1:]...)
			break
		}
	}
}

// saveBox writes, or adds, a box to global memory; parts outside the tensor are dropped.
func (m *machine) saveBox(o *transfer) {
	size := o.tensor.Type.Size()
	var row [4096]byte
	o.rows(func(at [5]int, packed int) {
		lo, hi, data := o.inside(at)
		if data == nil {
			return
		}
		width := o.tensor.Box[0] * size
		for i := 0; i < width; i += 16 {
			off := o.swizzled(packed + i)
			copy(row[i:], o.w.t.mem[off:off+16])
		}
		if o.kind == save {
			copy(data, row[lo*size:hi*size])
		} else {
			add(o.tensor.Type, data, row[lo*size:hi*size])
		}
		m.counts.SaveBytes += int64(len(data))
	})
}

// label names a transfer in a timeline.
func (m *machine) label(what string, o *transfer) string {
	if o.param < 0 {
		return what
	}
	return what + " " + m.entry.Params[o.param].Name
}

// add adds src to dst element by element, in the tensor's type.
func add(t num.DType, dst, src []byte) {
	for i := 0; i < len(dst); i += t.Size() {
		switch t {
		case num.F32:
			binary.LittleEndian.PutUint32(dst[i:], addFloat(binary.LittleEndian.Uint32(dst[i:]), binary.LittleEndian.Uint32(src[i:])))
		case num.U32, num.I32:
			binary.LittleEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(dst[i:])+binary.LittleEndian.Uint32(src[i:]))
		case num.BF16:
			x, y := binary.LittleEndian.Uint16(dst[i:]), binary.LittleEndian.Uint16(src[i:])
			binary.LittleEndian.PutUint16(dst[i:], num.ToBF16(num.FromBF16(x)+num.FromBF16(y)))
		case num.F16:
			x, y := binary.LittleEndian.Uint16(dst[i:]), binary.LittleEndian.Uint16(src[i:])
			binary.LittleEndian.PutUint16(dst[i:], num.ToF16(num.FromF16(x)+num.FromF16(y)))
		}
	}
}
