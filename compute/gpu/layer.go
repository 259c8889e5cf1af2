package gpu

import (
	"encoding/binary"
	"math"

	"heddle/compute"
	"heddle/kernel"
	"heddle/kernel/attention"
	"heddle/kernel/elem"
	"heddle/kernel/row"
	"heddle/num"
	"heddle/ptx"
	"heddle/tensor"
)

// each runs an elementwise kernel on whole tensors of one size.
func (l *Leaf) each(op string, s elem.Spec, out, in []tensor.Tensor, ones []tensor.Tensor, scalars ...float32) {
	n := out[0].Elems()
	if n == 0 {
		return
	}
	w := wide(out...) && wide(in...)
	k := get(l.kernels, l.kernels.elem, elemKey{s.Name, w}, func() (*elem.Map, error) { return elem.New(s, w) })
	o := elem.Operands{N: n, Scalars: scalars}
	for _, x := range []struct {
		to   *[]kernel.Place
		from []tensor.Tensor
	}{{&o.Out, out}, {&o.In, in}, {&o.Ones, ones}} {
		for _, t := range x.from {
			*x.to = append(*x.to, l.at(t))
		}
	}
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o) })
}

func list(ts ...tensor.Tensor) []tensor.Tensor { return ts }

// Add is y = a + b.
func (l *Leaf) Add(y, a, b tensor.Tensor) {
	l.each("add", elem.Add(dtype(y.Type)), list(y), list(a, b), nil)
}

// SwiGLU is silu(gate)·up.
func (l *Leaf) SwiGLU(y, gate, up tensor.Tensor) {
	l.each("swiglu", elem.SwiGLU(dtype(y.Type)), list(y), list(gate, up), nil)
}

// SwiGLUBack is its gradient.
func (l *Leaf) SwiGLUBack(dgate, dup, dy, gate, up tensor.Tensor) {
	l.each("swiglu back", elem.SwiGLUBack(dtype(dy.Type)), list(dgate, dup), list(dy, gate, up), nil)
}

// rowsOf are the size and number of a tensor's rows: its last dim, and all others.
func rowsOf(t tensor.Tensor) (rows, cols int) {
	cols = t.Dims[len(t.Dims)-1]
	return t.Elems() / cols, cols
}

// wideRows tells whether rows of cols columns can be read 16 bytes at a time.
func wideRows(cols int, ts ...tensor.Tensor) bool { return cols%kernel.Wide == 0 && wide(ts...) }

// Norm is row.Norm.
func (l *Leaf) Norm(y, rstd, x, w tensor.Tensor, eps float64) {
	l.norm("norm", row.NormConfig{}, row.NormOperands{Eps: float32(eps)}, y, x, rstd, w)
}

// NormAgain is row.Norm with a kept rstd.
func (l *Leaf) NormAgain(y, x, rstd, w tensor.Tensor) {
	l.norm("norm again", row.NormConfig{Again: true}, row.NormOperands{}, y, x, rstd, w)
}

func (l *Leaf) norm(op string, c row.NormConfig, o row.NormOperands, y, x, rstd, w tensor.Tensor) {
	rows, cols := rowsOf(x)
	if rows == 0 {
		return
	}
	c.Cols, c.Type, c.Wide = cols, dtype(x.Type), wideRows(cols, y, x, w)
	k := get(l.kernels, l.kernels.norm, c, func() (*row.Norm, error) { return row.NewNorm(c) })
	o.X, o.Y, o.W, o.RStd, o.Rows = l.at(x), l.at(y), l.at(w), l.at(rstd), rows
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o, l.sms) })
}

// NormBack is row.NormBack, and row.Columns over its partial sums of the weights' gradient.
func (l *Leaf) NormBack(dx, dw, dy, x, rstd, w tensor.Tensor) {
	l.normBack("norm back", row.NormBackConfig{}, row.NormBackOperands{}, dx, dw, dy, x, rstd, w)
}

// NormBackAdd is row.NormBack with Plus.
func (l *Leaf) NormBackAdd(dx, dw, dy, x, rstd, w, around tensor.Tensor) {
	if !wide(around) { // the kernel's accesses are all of one width
		l.NormBack(dx, dw, dy, x, rstd, w)
		l.Add(dx, around, dx)
		return
	}
	l.normBack("norm back add", row.NormBackConfig{Plus: true}, row.NormBackOperands{Plus: l.at(around)}, dx, dw, dy, x, rstd, w)
}

func (l *Leaf) normBack(op string, c row.NormBackConfig, o row.NormBackOperands, dx, dw, dy, x, rstd, w tensor.Tensor) {
	rows, cols := rowsOf(x)
	if rows == 0 {
		return
	}
	c.Cols, c.Type, c.Wide, c.Weights = cols, dtype(x.Type), wideRows(cols, dx, dy, x, w), compute.Wanted(dw)
	k := get(l.kernels, l.kernels.normBack, c, func() (*row.NormBack, error) { return row.NewNormBack(c) })
	o.DX, o.DY, o.X, o.RStd, o.W, o.Rows = l.at(dx), l.at(dy), l.at(x), l.at(rstd), l.at(w), rows
	parts := k.Parts(rows, o.Angles.Heads, l.sms)
	if c.Weights {
		part, free := l.scratch(4 * parts * cols)
		defer free()
		o.Part = part
	}
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o, l.sms) })
	if c.Weights {
		l.columns(op, row.ColumnsConfig{Type: num.F32, Last: true}, l.at(dw), o.Part, [3]int{parts, cols, 1})
	}
}

// columns adds up the columns of rows × cols in parts.
func (l *Leaf) columns(op string, c row.ColumnsConfig, y, x kernel.Place, size [3]int) {
	k := get(l.kernels, l.kernels.columns, c, func() (*row.Columns, error) { return row.NewColumns(c) })
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(y, x, size[0], size[1], size[2]) })
}

// Center is row.Shift by the mean.
func (l *Leaf) Center(y, x tensor.Tensor) {
	rows, cols := rowsOf(x)
	l.shift("center", row.ShiftConfig{Cols: cols, Wide: wideRows(cols, y, x)}, y, x, tensor.Tensor{}, rows)
}

// AddBias is row.Shift by b, whose dims may be the last ones of x.
func (l *Leaf) AddBias(x, b tensor.Tensor) {
	cols := b.Elems()
	l.shift("bias", row.ShiftConfig{Cols: cols, Wide: wideRows(cols, x, b), Bias: true}, x, x, b, x.Elems()/cols)
}

func (l *Leaf) shift(op string, c row.ShiftConfig, y, x, b tensor.Tensor, rows int) {
	if rows == 0 {
		return
	}
	c.Type = dtype(x.Type)
	k := get(l.kernels, l.kernels.shift, c, func() (*row.Shift, error) { return row.NewShift(c) })
	l.run(op, k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(l.at(y), l.at(x), l.at(b), rows, l.sms) })
}

// BiasBack is row.Columns, in parts and over the parts.
func (l *Leaf) BiasBack(db, dy tensor.Tensor) {
	cols := db.Elems()
	rows := dy.Elems() / cols
	if rows == 0 {
		return
	}
	parts := row.ColumnParts(rows, cols, l.sms)
	sums, free := l.scratch(4 * parts * cols)
	defer free()
	l.columns("bias back", row.ColumnsConfig{Type: dtype(dy.Type)}, sums, l.at(dy), [3]int{rows, cols, parts})
	l.columns("bias back", row.ColumnsConfig{Type: num.F32, Last: true}, l.at(db), sums, [3]int{parts, cols, 1})
}

// GELU is elem.GELU.
func (l *Leaf) GELU(y, x tensor.Tensor) {
	l.each("gelu", elem.GELU(dtype(y.Type)), list(y), list(x), nil)
}

// GELUBack is its gradient.
func (l *Leaf) GELUBack(dx, dy, x tensor.Tensor) {
	l.each("gelu back", elem.GELUBack(dtype(dx.Type)), list(dx), list(dy, x), nil)
}

// angleKey names a table of angles.
type angleKey struct {
	rope compute.Rope // Back left out
	d    int
}

// angles is a table in the arena: positions 0 … rows−1.
type angles struct{ at, rows int }

// table is the angles for all positions that were uploaded so far, made at the first use and kept.
func (l *Leaf) table(r compute.Rope, d, seq int) kernel.Place {
	r.Back = false
	key, last := angleKey{r, d}, max(l.last, seq-1)
	t, ok := l.angles[key]
	if ok && t.rows > last {
		return l.place(t.at)
	}
	if ok {
		l.Free(tensor.Mem{At: t.at}, 4*t.rows*d)
	}
	rows := 64
	for rows <= last {
		rows *= 2
	}
	t = angles{l.Alloc(4 * rows * d).At, rows}
	l.angles[key] = t
	if l.m != nil {
		data := make([]byte, 4*rows*d)
		for i, v := range elem.RopeTable(rows, d, func(j int) float64 { return r.Frequency(j, d) }) {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
		}
		must("rope", l.m.Write(t.at, data))
	}
	return l.place(t.at)
}

// Rope is elem.Rope with a table of angles.
func (l *Leaf) Rope(y, x, pos tensor.Tensor, r compute.Rope) {
	_, d := rowsOf(x)
	tokens := x.Dims[0] * x.Dims[1]
	table := l.table(r, d, x.Dims[1])
	seq := x.Dims[1]
	if len(pos.Dims) == 2 {
		seq = tokens // every token has its own position
	}
	if x.Elems() == 0 {
		return
	}
	c := elem.RopeConfig{D: d, Type: dtype(x.Type), Wide: d%(2*kernel.Wide) == 0 && wide(y, x), Back: r.Back}
	k := get(l.kernels, l.kernels.rope, c, func() (*elem.Rope, error) { return elem.NewRope(c) })
	o := elem.RopeOperands{Y: l.at(y), X: l.at(x), Pos: l.at(pos), Table: table, Tokens: tokens, Seq: seq, Heads: x.Elems() / tokens / d}
	l.run("rope", k, func() (ptx.Launch, *ptx.Args, error) { return k.Launch(o) })
}

// heads are the heads of a tensor, where kernels can norm and turn them in one, and their angles.
func (l *Leaf) heads(x, pos tensor.Tensor, r compute.Rope, ts ...tensor.Tensor) (a row.Angles, ok bool) {
	rows, d := rowsOf(x)
	if !row.Turns(d) || !wide(ts...) || rows == 0 {
		return a, false
	}
	tokens := x.Dims[0] * x.Dims[1]
	a = row.Angles{Pos: l.at(pos), Table: l.table(r, d, x.Dims[1]), Seq: x.Dims[1], Heads: rows / tokens}
	if len(pos.Dims) == 2 {
		a.Seq = tokens
	}
	return a, true
}

// NormRope is row.Norm with Turn, or Norm and Rope.
func (l *Leaf) NormRope(y, rstd, x, w, pos tensor.Tensor, eps float64, r compute.Rope) {
	if a, ok := l.heads(x, pos, r, y, x, w); ok {
		l.norm("norm rope", row.NormConfig{Turn: true}, row.NormOperands{Eps: float32(eps), Angles: a}, y, x, rstd, w)
		return
	}
	l.Norm(y, rstd, x, w, eps)
	l.Rope(y, y, pos, r)
}

// NormRopeAgain is row.Norm with Turn and a kept rstd, or NormAgain and Rope.
func (l *Leaf) NormRopeAgain(y, x, rstd, w, pos tensor.Tensor, r compute.Rope) {
	if a, ok := l.heads(x, pos, r, y, x, w); ok {
		l.norm("norm rope again", row.NormConfig{Again: true, Turn: true}, row.NormOperands{Angles: a}, y, x, rstd, w)
		return
	}
	l.NormAgain(y, x, rstd, w)
	l.Rope(y, y, pos, r)
}

// NormRopeBack is row.NormBack with Turn, or Rope the other way and NormBack.
func (l *Leaf) NormRopeBack(dx, dw, dy, x, rstd, w, pos tensor.Tensor, r compute.Rope) {
	if a, ok := l.heads(x, pos, r, dx, dy, x, w); ok {
		l.normBack("norm rope back", row.NormBackConfig{Turn: true}, row.NormBackOperands{Angles: a}, dx, dw, dy, x, rstd, w)
		return
	}
	back := dy
	mem, free := l.scratch(dy.Bytes())
	defer free()
	back.Mem.At = mem.Offset
	r.Back = !r.Back
	l.Rope(back, dy, pos, r)
	l.NormBack(dx, dw, back, x, rstd, w)
}

// attend runs one pass of attention, over whole sequences or, with a position for every token, over the documents in them: on the tensor cores where it can.
func (l *Leaf) attend(op string, p attention.Pass, q, pos tensor.Tensor, w bool, x attention.Operands) {
	d, documents := q.Dims[4], len(pos.Dims) == 2
	if q.Type == tensor.BF16 && (d == 64 || d == 128) && w && !documents {
		c := attention.FastConfig{Pass: p, D: d}
		f := get(l.kernels, l.kernels.fast, c, func() (*attention.Fast, error) { return attention.NewFast(c) })
		l.run(op, f, func() (ptx.Launch, *ptx.Args, error) { return f.Launch(x) })
		return
	}
	c := attention.Config{Pass: p, D: d, Type: dtype(q.Type), Wide: w && d%kernel.Wide == 0, Documents: documents}
	s := get(l.kernels, l.kernels.attention, c, func() (*attention.Simple, error) { return attention.NewSimple(c) })
	l.run(op, s, func() (ptx.Launch, *ptx.Args, error) { return s.Launch(x) })
}

// Attention is attention.Simple. Positions [S] rise (Upload refuses others), so what is not behind in position is not behind in memory.
func (l *Leaf) Attention(o, lse, q, k, v, pos tensor.Tensor) {
	if q.Elems() == 0 {
		return
	}
	x := attention.Operands{Q: l.at(q), K: l.at(k), V: l.at(v), O: l.at(o), LSE: l.at(lse), Pos: l.at(pos), B: q.Dims[0], S: q.Dims[1], G: q.Dims[2], R: q.Dims[3]}
	l.attend("attention", attention.Forward, q, pos, wide(o, q, k, v), x)
}

// Delta is row.Dot.
func (l *Leaf) Delta(delta, o, do tensor.Tensor) {
	rows, cols := rowsOf(o)
	if rows == 0 {
		return
	}
	key := rowKey{cols, dtype(o.Type), wideRows(cols, o, do)}
	k := get(l.kernels, l.kernels.dot, key, func() (*row.Dot, error) { return row.NewDot(key.cols, key.t, key.wide) })
	l.run("delta", k, func() (ptx.Launch, *ptx.Args, error) {
		return k.Launch(l.at(delta), l.at(o), l.at(do), rows, l.sms)
	})
}

// AttentionBack is attention.Simple's two gradients.
func (l *Leaf) AttentionBack(g compute.AttentionGrad, in compute.AttentionSaved) {
	q := in.Q
	if q.Elems() == 0 {
		return
	}
	x := attention.Operands{Q: l.at(q), K: l.at(in.K), V: l.at(in.V), LSE: l.at(in.LSE), DO: l.at(in.DO), Delta: l.at(in.Delta),
		DQ: l.at(g.DQ), DK: l.at(g.DK), DV: l.at(g.DV), Pos: l.at(in.Pos), B: q.Dims[0], S: q.Dims[1], G: q.Dims[2], R: q.Dims[3]}
	w := wide(q, in.K, in.V, in.DO, g.DQ, g.DK, g.DV)
	for _, p := range []attention.Pass{attention.QueryGrad, attention.KeyGrad} {
		l.attend("attention back", p, q, in.Pos, w, x)
	}
}
