package kernel

import "heddle/ptx"

// Finish applies an Epilogue in one warpgroup. Its vectors come by TMA at the start of a tile, under the products, and wait in shared memory.
type Finish struct {
	Epilogue
	Operands FinishParams
	Vectors  ptx.SAddr // of this warpgroup: of Rows, Columns and Bias those that there are, MaxVector bytes each
	Loaded   ptx.Bar   // of Vectors: 1 arrival + their bytes
	Height   int       // rows of this warpgroup's tile
	Width    int       // columns of the product's tile
	k        *ptx.Builder
	parity   *ptx.Var[ptx.U32]
	largest  *ptx.Var[ptx.F32]
	factors  map[int]ptx.F32 // of rows, by 64-row block and half, loaded once a tile
	columns  map[int]ptx.F32 // of a piece's columns, which both rows of a thread share
}

// MaxVector is the bytes that a vector of a tile takes in shared memory.
const MaxVector = 256 * 4

// FinishParams are the kernel's parameters for an Epilogue; those it has no use for are not there.
type FinishParams struct {
	Alpha, Beta         ptx.ParamF32
	Rows, Columns, Bias ptx.ParamMap
	C, Kept             [2]ptx.ParamMap // the second is the up half of a pair
	Up                  ptx.ParamMap    // of D, for DSwiGLU
	AMax                ptx.ParamPtr
	Half                ptx.ParamU32 // F of SwiGLU: columns from gate to up
}

// Params declares what the epilogue needs.
func (e Epilogue) Params(k *ptx.Builder) (p FinishParams) {
	if e.Alpha {
		p.Alpha = k.ParamF32("alpha")
	}
	if e.Residual {
		p.Beta = k.ParamF32("beta")
	}
	for _, m := range []struct {
		on   bool
		name string
		to   *ptx.ParamMap
	}{
		{e.Rows, "rows", &p.Rows}, {e.Columns, "columns", &p.Columns}, {e.Bias, "bias", &p.Bias}, {e.ReadsC(), "C", &p.C[0]}, {e.Act == DSwiGLU, "Cup", &p.C[1]},
		{e.Keep, "kept", &p.Kept[0]}, {e.Keep && e.Act == SwiGLU, "keptUp", &p.Kept[1]}, {e.Act == DSwiGLU, "up", &p.Up},
	} {
		if m.on {
			*m.to = k.ParamMap(m.name)
		}
	}
	if e.AMax {
		p.AMax = k.ParamPtr("amax")
	}
	if e.Act == SwiGLU {
		p.Half = k.ParamU32("half")
	}
	return p
}

// Start makes the variables, where the consumer's role begins.
func (f *Finish) Start(k *ptx.Builder) {
	f.k = k
	if f.Epilogue.Vectors() > 0 {
		f.parity = ptx.NewVar(k, k.U32(0))
	}
	if f.AMax {
		f.largest = ptx.NewVarAt(k, ptx.Lane, k.F32(0))
	}
}

// Begin fetches the vectors of a tile, whose first row is this warpgroup's, before its products. The warpgroup has left the tile before.
func (f *Finish) Begin(lead ptx.Pred, row, col ptx.U32) {
	if f.Epilogue.Vectors() == 0 {
		return
	}
	k := f.k
	k.If(lead, func() {
		bytes := 0
		if f.Rows {
			bytes += f.Height * 4
		}
		if f.Columns {
			bytes += f.Width * 4
		}
		if f.Bias {
			bytes += f.Width * 4
		}
		f.Loaded.ArriveExpect(bytes)
		if f.Rows {
			f.Operands.Rows.Load2(f.vector(0), row, k.U32(0), f.Loaded)
		}
		if f.Columns {
			f.across(f.Operands.Columns, f.vector(1), col)
		}
		if f.Bias {
			f.across(f.Operands.Bias, f.vector(2), col)
		}
	})
}

// across loads a vector of the tile's columns; those of a pair lie in two places.
func (f *Finish) across(from ptx.ParamMap, to ptx.SAddr, col ptx.U32) {
	k := f.k
	from.Load2(to, col, k.U32(0), f.Loaded)
	if f.Act == SwiGLU {
		from.Load2(to.Plus(f.Width/2*4), col.Add(f.Operands.Half.U32), k.U32(0), f.Loaded)
	}
}

// vector is where Rows, Columns or Bias lies.
func (f *Finish) vector(which int) ptx.SAddr {
	at := 0
	for _, b := range []bool{f.Rows, f.Columns}[:which] {
		if b {
			at++
		}
	}
	return f.Vectors.Plus(at * MaxVector)
}

// Wait is before the first batch.
func (f *Finish) Wait() {
	f.factors = map[int]ptx.F32{}
	if f.Epilogue.Vectors() > 0 {
		f.Loaded.Wait(f.parity.Get())
		f.parity.Set(f.parity.Get().Xor(f.k.U32(1)))
	}
}

// Source gives elements of the product: those of accumulator acc from first on, count of them, as a function of what is added to first.
type Source func(acc, first, count int) func(e int) ptx.F32

// Plain is the accumulators themselves.
func Plain(accs []*ptx.Acc) Source {
	return func(acc, first, _ int) func(int) ptx.F32 {
		return func(e int) ptx.F32 { return accs[acc].F32(first + e) }
	}
}

// Batches is a tile of D for a product of so many blocks of 64 rows. For SwiGLU col is the first column of D.
func (f *Finish) Batches(s Store, d ptx.ParamMap, from Source, row, col ptx.U32) []Batch {
	var all []Batch
	width := f.Width
	if f.Act == SwiGLU {
		width /= 2
	}
	for i := range f.Height / 64 {
		for c := range width / s.Columns() {
			right := c * s.Columns()
			at := func(to, from ptx.ParamMap) Chunk { return Chunk{to.TensorMap, from.TensorMap, row, col, 64 * i, right} }
			b := Batch{Chunks: []Chunk{at(d, f.Operands.C[0])}}
			if f.Act == DSwiGLU {
				b.Chunks = append(b.Chunks, at(f.Operands.Up, f.Operands.C[1]))
			}
			for _, kept := range f.Operands.Kept[:f.Wide()-len(b.Chunks)] {
				b.Chunks = append(b.Chunks, at(kept, ptx.ParamMap{}))
			}
			f.fill(&b, s, from, i, right)
			all = append(all, b)
		}
	}
	return all
}

// fill sets what a batch of block i and the columns from right on computes.
func (f *Finish) fill(b *Batch, s Store, from Source, i, right int) {
	var x, up func(e int) ptx.F32
	count := s.Columns() / 2
	b.Before = func() {
		x = from(i, right/2, count)
		if f.Act == SwiGLU {
			up = from(i, (right+f.Width/2)/2, count)
		}
	}
	n := s.perPiece()
	b.Piece = func(q int, old [][]ptx.F32) [][]ptx.F32 {
		out := make([][]ptx.F32, len(b.Chunks))
		f.columns = map[int]ptx.F32{}
		for e := range n {
			v := f.affine(x(q*n+e), i, right+q*2*n, e)
			switch f.Act {
			case SwiGLU:
				u := f.affine(up(q*n+e), i, right+f.Width/2+q*2*n, e)
				f.keep(out, 1, v)
				f.keep(out, 2, u)
				v = f.silu(v).Mul(u)
			case GELU:
				f.keep(out, 1, v)
				v = f.gelu(v)
			case DGELU:
				v = v.Mul(f.geluSlope(old[0][e]))
			case DSwiGLU:
				gate, u := old[0][e], old[1][e]
				act, slope := f.siluBoth(gate)
				out[1] = append(out[1], f.note(v.Mul(act)))
				v = v.Mul(u).Mul(slope)
			}
			if f.Residual {
				v = f.Operands.Beta.FMA(old[0][e], v)
			}
			out[0] = append(out[0], f.note(v))
		}
		return out
	}
}

func (f *Finish) keep(out [][]ptx.F32, chunk int, x ptx.F32) {
	if f.Keep {
		out[chunk] = append(out[chunk], x)
	}
}

// affine is alpha, rows, columns and bias of element e of a piece whose first column, in the tile, is col, in block i of 64 rows.
func (f *Finish) affine(x ptx.F32, i, col, e int) ptx.F32 {
	if f.Alpha {
		x = x.Mul(f.Operands.Alpha.F32)
	}
	if f.Rows {
		x = x.Mul(f.row(i, e/2%2))
	}
	j := col + 8*(e/4) + e%2
	switch {
	case f.Columns && f.Bias:
		return x.FMA(f.column(1, j), f.column(2, j))
	case f.Columns:
		return x.Mul(f.column(1, j))
	case f.Bias:
		return x.Add(f.column(2, j))
	}
	return x
}

// row is the factor of the thread's row half of block i: 16w + l/4 + 8·half.
func (f *Finish) row(i, half int) ptx.F32 {
	key := 2*i + half
	if _, ok := f.factors[key]; !ok {
		k := f.k
		at := k.WarpInGroup().Shl(4).Add(k.Lane().Shr(2)).Shl(2)
		f.factors[key] = f.vector(0).At(at).Plus((64*i + 8*half) * 4).LoadF32()
	}
	return f.factors[key]
}

// column is an element of a vector for the thread's column 2(l%4) + j of the tile.
func (f *Finish) column(which, j int) ptx.F32 {
	key := 1000*which + j
	if _, ok := f.columns[key]; !ok {
		f.columns[key] = f.vector(which).At(f.k.Lane().And(f.k.U32(3)).Shl(3)).Plus(4 * j).LoadF32()
	}
	return f.columns[key]
}

// note remembers the largest magnitude.
func (f *Finish) note(x ptx.F32) ptx.F32 {
	if f.AMax {
		f.largest.Set(f.largest.Get().Max(x.Abs()))
	}
	return x
}

// End is after the last tile: the largest of the warp joins the others'.
func (f *Finish) End() {
	if !f.AMax {
		return
	}
	k, m := f.k, f.largest.Get()
	for mask := 16; mask > 0; mask >>= 1 {
		m = m.Max(m.ShuffleXor(mask))
	}
	k.When(k.Lane().Eq(k.U32(0)), func() { f.Operands.AMax.AtomicMaxU32(m.Bits()) }) // of floats that are not negative the bits are in order
}

// The functions use tanh.approx, one instruction whose relative error is 2⁻¹¹ (PTX ISA, tanh): an eighth of bf16's half unit in the last place.

func (f *Finish) gelu(x ptx.F32) ptx.F32 {
	half := x.Mul(f.k.F32(0.5))
	return half.FMA(f.geluTanh(x), half)
}

func (f *Finish) geluTanh(x ptx.F32) ptx.F32 {
	k := f.k
	return x.Mul(x).FMA(k.F32(geluScale*geluCube), k.F32(geluScale)).Mul(x).TanhApprox()
}

func (f *Finish) geluSlope(x ptx.F32) ptx.F32 {
	k := f.k
	t, half := f.geluTanh(x), k.F32(0.5)
	inner := x.Mul(x).FMA(k.F32(3*geluScale*geluCube), k.F32(geluScale)) // du/dx
	flat := t.Neg().FMA(t, k.F32(1))                                     // 1 − t²
	return t.FMA(half, half).Add(x.Mul(half).Mul(flat).Mul(inner))
}

func (f *Finish) sigmoid(x ptx.F32) ptx.F32 {
	half := f.k.F32(0.5)
	return x.Mul(half).TanhApprox().FMA(half, half)
}

func (f *Finish) silu(x ptx.F32) ptx.F32 { return x.Mul(f.sigmoid(x)) }

// siluBoth is silu and its derivative.
func (f *Finish) siluBoth(x ptx.F32) (act, slope ptx.F32) {
	s, one := f.sigmoid(x), f.k.F32(1)
	return x.Mul(s), s.Mul(x.FMA(one.Sub(s), one))
}
