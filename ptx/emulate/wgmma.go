package emulate

import (
	"encoding/binary"
	"math"

	"heddle/num"
	"heddle/ptx"
)

// group is a warpgroup: its wgmma in issue order, and its accumulators. Products are done at the wait that forces them, or at a commit if the seed says so.
type group struct {
	t       *cta
	index   int
	agent   int32
	queue   []product // from base on
	base    int       // issue number of queue[0]
	issued  [4]int    // by warp
	ends    []int     // issue number behind each committed group
	commits [4]int    // by warp
	done    int       // groups
	times   []float64 // when each finished group did, in the latency model
	fences  [4]int    // wgmma.fence, by warp
	accs    map[int32]*accum
}

// accum is one accumulator of the warpgroup: 64 rows of n columns.
type accum struct {
	n       int
	vals    []float32
	last    [4]int // by warp: number of the wgmma group that writes it last
	touched [4]int // by warp: fences before the last touch
}

// product is one wgmma.
type product struct {
	pc         int32
	a, b       uint64
	accumulate bool
	acc        *accum
	seen       int       // warps that have issued it
	time       float64   // when the last warp issued it, in the latency model
	rows       []float32 // A, where it comes from registers
	row0       origin    // where A's first row came from, as the first warp to issue it saw
}

// operands are scratch space for decoded tiles.
type operands struct{ a, b []float32 }

// form is what distinguishes the types of wgmma.
type form struct {
	regs   bool // A comes from registers
	k      int  // elements along K
	unit   int  // elements in 16 bytes
	decode func(dst []float32, src []byte)
}

func newGroup(t *cta, i int) *group {
	return &group{t: t, index: i, agent: t.groupAgent(i), accs: map[int32]*accum{}}
}

func (g *group) acc(c *code) *accum {
	a := g.accs[c.a]
	if a == nil {
		n := 2 * int(c.in.Src[0].Imm())
		a = &accum{n: n, vals: make([]float32, 64*n)}
		g.accs[c.a] = a
	}
	return a
}

func (w *warp) group() *group { return w.t.groups[w.id/4] }

func wgFence(w *warp, c *code) {
	w.group().fences[w.id%4]++
}

func accRead(w *warp, c *code) {
	g, q := w.group(), w.id%4
	a := g.acc(c)
	if a.last[q] > g.done || g.open(q, a) {
		w.fault(Accumulator, -1, "", "reads an accumulator while wgmma may still write it; wgmma.wait_group first")
	}
	a.touched[q] = g.fences[q]
	e := int(w.m.code[w.at].in.Src[1].Imm())
	col := e / 4 * 8
	var t lanes32
	for i := range t {
		row := q*16 + i/4 + e/2%2*8
		t[i] = math.Float32bits(a.vals[row*a.n+col+i%4*2+e%2])
		if w.m.opt.Watch != nil {
			w.watch(i, -1, [5]int{}, []uint32{t[i]})
		}
	}
	w.put(c.d, &t)
}

// open tells whether warp q has issued products on a and not committed them.
func (g *group) open(q int, a *accum) bool {
	end := 0
	if n := g.commits[q]; n > 0 {
		end = g.ends[n-1]
	}
	for i := max(end, g.base); i < g.issued[q]; i++ {
		if g.queue[i-g.base].acc == a {
			return true
		}
	}
	return false
}

func wgmma(f form) op {
	return func(w *warp, c *code) {
		g, q := w.group(), w.id%4
		a := g.acc(c)
		if g.fences[q] <= a.touched[q] {
			w.fault(Accumulator, -1, "", "wgmma without wgmma.fence since its accumulator was last touched")
		}
		p := product{pc: w.at, acc: a, time: w.time}
		if f.regs {
			p.b, p.accumulate = w.d[c.s[5]][0], w.p[c.s[6]]&1 != 0
		} else {
			p.a, p.b, p.accumulate = w.d[c.b][0], w.d[c.c][0], w.p[c.s[3]]&1 != 0
		}
		i := g.issued[q] - g.base
		if i == len(g.queue) {
			g.queue = append(g.queue, p)
		} else if o := g.queue[i]; o.pc != p.pc || o.a != p.a || o.b != p.b || o.accumulate != p.accumulate {
			w.fault(Diverged, o.pc, "", "the warps of a warpgroup issue different wgmma")
		}
		if f.regs {
			g.queue[i].registers(w, c, f)
		}
		g.queue[i].time = max(g.queue[i].time, w.time)
		g.queue[i].seen++
		g.issued[q]++
		a.last[q] = g.commits[q] + 1
		if !w.m.opt.Unsafe {
			g.inspect(w, c, f, &g.queue[i])
		}
	}
}

// registers takes the warp's sixteen rows of A from its registers, as they are at issue.
func (p *product) registers(w *warp, c *code, f form) {
	if p.rows == nil {
		p.rows = make([]float32, 64*f.k)
	}
	var word [4]byte
	for l := range 32 {
		for h := range 2 {
			for g := range 2 {
				binary.LittleEndian.PutUint32(word[:], w.r[c.s[1+2*h+g]][l])
				f.decode(p.rows[(16*(w.id%4)+l/4+8*g)*f.k+2*(l%4)+8*h:][:2], word[:])
			}
		}
	}
}

// inspect checks the operands at issue: each warp its sixteen rows of A, the first all of B. They are read until the group that is open now completes.
func (g *group) inspect(w *warp, c *code, f form, p *product) {
	e := epoch{g.agent, uint32(g.commits[w.id%4] + 1)}
	if f.regs {
		if w.id%4 == 0 {
			w.operandB(matrixTile{p.b, transposed(c, 7), f}, p.acc.n, e)
		}
		return
	}
	transA, transB := transposed(c, 4), transposed(c, 5)
	from, ok := w.operand("A", matrixTile{p.a, transA, f}, w.id%4*16, 16, e)
	if !ok {
		return
	}
	ka := matrixTile{mn: transA}.alongK(from)
	row0 := matrixTile{mn: transA}.back(from, w.id%4*16)
	if p.row0 == (origin{}) {
		p.row0 = row0
	} else if p.row0 != row0 {
		w.fault(Operand, -1, "", "operand A: this warp's rows come from %s on, those of the others from %s: the descriptor does not match how the tile was loaded", w.m.origin(row0), w.m.origin(p.row0))
		return
	}
	if w.id%4 != 0 {
		return
	}
	from, ok = w.operandB(matrixTile{p.b, transB, f}, p.acc.n, e)
	if kb := (matrixTile{mn: transB}).alongK(from); ok && ka != unknownK && kb != unknownK && ka != kb && !w.m.entry.Shifted {
		w.fault(Operand, -1, "", "A holds k from %d, B holds k from %d: the operands do not meet along K", ka, kb)
	}
}

// operandB checks all rows of B, in the parts that the kernel says it is put together from.
func (w *warp) operandB(t matrixTile, rows int, e epoch) (from origin, ok bool) {
	part := rows
	if s := w.m.entry.Spliced; s > 0 {
		part = min(part, s)
	}
	for first := 0; first < rows; first += part {
		o, fine := w.operand("B", t, first, min(part, rows-first), e)
		if !fine {
			return o, false
		}
		if k := t.alongK(o); first == 0 {
			from = o
		} else if k != t.alongK(from) {
			w.fault(Operand, -1, "", "operand B: rows from %d on hold k from %d, those before from %d", first, k, t.alongK(from))
			return from, false
		}
	}
	return from, true
}

func transposed(c *code, i int) bool { return i < len(c.in.Src) && c.in.Src[i].Imm() == 1 }

const unknownK = math.MinInt32

// operand checks rows first … first+rows−1 of a tile: ordered accesses, and, where TMA brought them, consecutive rows of one tensor at one column.
// It gives where the first of them came from.
func (w *warp) operand(name string, t matrixTile, first, rows int, e epoch) (origin, bool) {
	var from origin
	begun := false
	x := access{t: w.t, bytes: 16, async: true, by: e, know: w.know, pc: w.at}
	quick := w.m.opt.Trace == nil && !w.m.opt.Unsafe
	for u := range t.units(first, rows) {
		off := t.offset(u)
		if off < 0 || off+16 > len(w.t.mem) {
			w.fault(Bounds, -1, "", "operand %s: its descriptor leads outside shared memory, to byte %d", name, off)
			return origin{}, false
		}
		c := &w.t.shadow[off>>4]
		if quick && c.split == 0 && c.write == x.before && !c.generic && c.readers == 0 { // what check would do
			c.read[0], c.readPC[0], c.readers = e, x.pc, 1
		} else {
			x.off = off
			w.m.check(&x)
		}
		o := c.origin()
		if !begun {
			from, begun = o, true
			continue
		}
		want := t.expected(from, u, first)
		if o != want && (o.tensor != 0 || from.tensor != 0) && !c.generic { // what threads wrote is theirs to know
			w.fault(Operand, -1, w.m.object(off), "operand %s row %d, 16 bytes %d: holds %s, should be %s: the descriptor does not match how the tile was loaded",
				name, u.row, u.col, w.m.origin(o), w.m.origin(want))
			return origin{}, false
		}
	}
	w.t.note(e, w.at, "")
	return from, true
}

func (m *machine) origin(o origin) string {
	if o.tensor == 0 {
		return "what no TMA load wrote"
	}
	return m.entry.Params[o.tensor-1].Name + coords(o)
}

func wgCommit(w *warp, c *code) {
	g, q := w.group(), w.id%4
	if g.commits[q] == len(g.ends) {
		g.ends = append(g.ends, g.issued[q])
	} else if g.ends[g.commits[q]] != g.issued[q] {
		w.fault(Diverged, -1, "", "the warps of a warpgroup commit different groups of wgmma")
	}
	g.commits[q]++
}

func wgWait(w *warp, c *code) {
	g, q := w.group(), w.id%4
	upto := g.commits[q] - int(w.first(c.a))
	for g.done < upto {
		if !g.finish(w.m) {
			if w.wait == nil {
				w.sleep(wait{what: "wgmma that other warps of the group have not issued"})
			}
			return
		}
	}
	w.wake()
	if upto > 0 {
		w.until(g.times[upto-1], "wait for products")
		w.learnOf(allLanes, epoch{g.agent, uint32(upto)})
	}
}

// finish does the products of the oldest unfinished group, once all four warps have issued them.
func (g *group) finish(m *machine) bool {
	n := g.ends[g.done] - g.base
	if n > 0 && g.queue[n-1].seen < 4 {
		return false
	}
	end := 0.0
	for i := range n {
		p := &g.queue[i]
		end = g.t.product(p.acc.n, forms(m.code[p.pc].in.Op).k, p.time)
		m.multiply(g.t, p)
	}
	g.times = append(g.times, end)
	g.queue = g.queue[n:]
	g.base += n
	g.done++
	return true
}

func (m *machine) multiply(t *cta, p *product) {
	c := &m.code[p.pc]
	f := forms(c.in.Op)
	m.counts.MMAs++
	if m.opt.Dry {
		return
	}
	a, transB := p.rows, transposed(c, 7)
	if !f.regs {
		m.scratch.a = decodeTile(m.scratch.a, t, matrixTile{p.a, transposed(c, 4), f}, 64)
		a, transB = m.scratch.a, transposed(c, 5)
	}
	m.scratch.b = decodeTile(m.scratch.b, t, matrixTile{p.b, transB, f}, p.acc.n)
	if !p.accumulate {
		clear(p.acc.vals)
	}
	product64(p.acc.vals, a, m.scratch.b, p.acc.n, f.k)
}

func forms(o ptx.Op) form {
	switch o {
	case ptx.OpWgmmaRF16, ptx.OpWgmmaRBF16:
		f := forms(ptx.OpWgmmaBF16)
		if o == ptx.OpWgmmaRF16 {
			f = forms(ptx.OpWgmmaF16)
		}
		f.regs = true
		return f
	case ptx.OpWgmmaF16:
		return form{k: 16, unit: 8, decode: func(d []float32, s []byte) {
			for i := range d {
				d[i] = num.FromF16(binary.LittleEndian.Uint16(s[2*i:]))
			}
		}}
	case ptx.OpWgmmaTF32:
		return form{k: 8, unit: 4, decode: func(d []float32, s []byte) {
			for i := range d {
				d[i] = num.TruncTF32(f32(binary.LittleEndian.Uint32(s[4*i:])))
			}
		}}
	case ptx.OpWgmmaE4M3:
		return form{k: 32, unit: 16, decode: func(d []float32, s []byte) {
			for i := range d {
				d[i] = num.FromE4M3(s[i])
			}
		}}
	case ptx.OpWgmmaE5M2:
		return form{k: 32, unit: 16, decode: func(d []float32, s []byte) {
			for i := range d {
				d[i] = num.FromE5M2(s[i])
			}
		}}
	}
	return form{k: 16, unit: 8, decode: decodeBF16}
}

// decodeBF16 widens pairs: the upper element of a word is a float32 already but for its low half.
func decodeBF16(d []float32, s []byte) {
	for ; len(d) >= 2; d, s = d[2:], s[4:] {
		x := binary.LittleEndian.Uint32(s)
		d[0], d[1] = f32(x<<16), f32(x&^0xffff)
	}
}
