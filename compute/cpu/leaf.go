// Package cpu is the CPU machine: compute.Leaf over slices, float32 and float64 from one source. The inner loops are in blas
// (matrix products), vec (rows) and attention; here they meet tensors.
package cpu

import (
	"math"
	"unsafe"

	"heddle/compute"
	"heddle/compute/cpu/blas"
	"heddle/compute/cpu/vec"
	"heddle/tensor"
)

// Leaf implements compute.Leaf with weights and activations of type T.
type Leaf[T blas.Float] struct {
	// Poison fills memory with NaN when it is given out and when it is freed, and never gives it out twice: what is read before it
	// is written, or after it is freed, shows. For tests.
	Poison bool

	pool *blas.Pool
	free map[int][][]uint64 // memory to use again, by size: a step allocates the same sizes as the one before
	rope ropeTable[T]
	work []T // scratch of attention
	ints []int
}

// New makes the leaf of one rank, which computes on the pool's threads.
func New[T blas.Float](pool *blas.Pool) *Leaf[T] {
	return &Leaf[T]{pool: pool, free: map[int][][]uint64{}}
}

var (
	_ compute.Leaf = (*Leaf[float32])(nil)
	_ compute.Leaf = (*Leaf[float64])(nil)
)

// Alloc gives memory in multiples of 8 bytes; what it holds is undefined.
func (l *Leaf[T]) Alloc(bytes int) tensor.Mem {
	words := max(1, (bytes+7)/8)
	var m []uint64
	if l.Poison {
		m = make([]uint64, words)
		poison(m)
	} else if f := l.free[words]; len(f) > 0 {
		m, l.free[words] = f[len(f)-1], f[:len(f)-1]
	} else {
		m = make([]uint64, words)
	}
	return tensor.Mem{Ptr: unsafe.Pointer(&m[0])}
}

// Free keeps the memory for the next Alloc of its size.
func (l *Leaf[T]) Free(m tensor.Mem, bytes int) {
	words := max(1, (bytes+7)/8)
	mem := unsafe.Slice((*uint64)(m.Ptr), words)
	if l.Poison {
		poison(mem)
		return
	}
	l.free[words] = append(l.free[words], mem)
}

// poison makes every float32 and float64 in m a NaN, and every int32 −1.
func poison(m []uint64) {
	for i := range m {
		m[i] = math.MaxUint64
	}
}

func data[T blas.Float](t tensor.Tensor) []T { return tensor.View[T](t) }

// Gemm is blas.Gemm on dense matrices.
func (l *Leaf[T]) Gemm(g compute.Gemm, c, a, b tensor.Tensor) {
	p := blas.Params[T]{M: g.M, N: g.N, K: g.K, A: data[T](a), B: data[T](b), C: data[T](c), LDA: g.K, LDB: g.N, LDC: g.N,
		TransA: g.TransA, TransB: g.TransB, Accumulate: g.Accumulate}
	if g.TransA {
		p.LDA = g.M
	}
	if g.TransB {
		p.LDB = g.K
	}
	blas.Gemm(l.pool, &p)
}

// spread runs f over 0 … n−1, rows of width elements, in one part a thread.
// What f does to a row must not depend on the other rows: results then do not
// depend on the number of threads.
func (l *Leaf[T]) spread(n, width int, f func(lo, hi int)) {
	const worthWaking = 1 << 15 // elements: some ten µs of work
	parts := l.pool.Threads()
	if parts == 1 || n*width < worthWaking {
		f(0, n)
		return
	}
	l.pool.Run(parts, func(_, i int) { f(n*i/parts, n*(i+1)/parts) })
}

// Add is y = a + b.
func (l *Leaf[T]) Add(y, a, b tensor.Tensor) {
	out, x, z := data[T](y), data[T](a), data[T](b)
	l.spread(len(out), 1, func(lo, hi int) { vec.Add(out[lo:hi], x[lo:hi], z[lo:hi]) })
}

// Norm is vec.RMSNorm a row.
func (l *Leaf[T]) Norm(y, rstd, x, w tensor.Tensor, eps float64) {
	out, in, weight, s := data[T](y), data[T](x), data[T](w), data[T](rstd)
	n := len(weight)
	l.spread(len(s), n, func(lo, hi int) { vec.RMSNorm(out[lo*n:hi*n], in[lo*n:hi*n], weight, s[lo:hi], T(eps)) })
}

// NormAgain is y = x·rstd·w, in the order of Norm so that the bits are the same.
func (l *Leaf[T]) NormAgain(y, x, rstd, w tensor.Tensor) {
	out, in, weight := data[T](y), data[T](x), data[T](w)
	n, s := len(weight), data[T](rstd)
	l.spread(len(s), n, func(lo, hi int) { vec.RMSNormAgain(out[lo*n:hi*n], in[lo*n:hi*n], weight, s[lo:hi]) })
}

// NormBack is the gradient of a row and of the weights.
func (l *Leaf[T]) NormBack(dx, dw, dy, x, rstd, w tensor.Tensor) {
	out, g, in, weight, s := data[T](dx), data[T](dy), data[T](x), data[T](w), data[T](rstd)
	n := len(weight)
	l.spread(len(s), n, func(lo, hi int) {
		vec.RMSNormBackward(out[lo*n:hi*n], g[lo*n:hi*n], in[lo*n:hi*n], weight, s[lo:hi], false)
	})
	if compute.Wanted(dw) && len(s) > 0 {
		sum := data[T](dw)
		l.spread(n, len(s), func(lo, hi int) { vec.RMSNormWeights(sum[lo:hi], g[lo:], in[lo:], s, n) })
	}
}

// Center takes a row's mean off.
func (l *Leaf[T]) Center(y, x tensor.Tensor) {
	out, in, n := data[T](y), data[T](x), x.Dims[len(x.Dims)-1]
	l.spread(len(in)/n, n, func(lo, hi int) { vec.Center(out[lo*n:hi*n], in[lo*n:hi*n], n) })
}

// AddBias adds b to every row.
func (l *Leaf[T]) AddBias(x, b tensor.Tensor) {
	out, add := data[T](x), data[T](b)
	n := len(add)
	l.spread(len(out)/n, n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			vec.Add(out[i*n:i*n+n], out[i*n:i*n+n], add)
		}
	})
}

// BiasBack adds the rows up, in rising order.
func (l *Leaf[T]) BiasBack(db, dy tensor.Tensor) {
	sum, in := data[T](db), data[T](dy)
	n := len(sum)
	rows := len(in) / n
	if rows > 0 {
		l.spread(n, rows, func(lo, hi int) { vec.SumRows(sum[lo:hi], in[lo:], rows, n) })
	}
}

// GELU is vec.GELU.
func (l *Leaf[T]) GELU(y, x tensor.Tensor) {
	out, in := data[T](y), data[T](x)
	l.spread(len(out), 1, func(lo, hi int) { vec.GELU(out[lo:hi], in[lo:hi]) })
}

// GELUBack is its gradient.
func (l *Leaf[T]) GELUBack(dx, dy, x tensor.Tensor) {
	out, g, in := data[T](dx), data[T](dy), data[T](x)
	l.spread(len(out), 1, func(lo, hi int) { vec.GELUBackward(out[lo:hi], g[lo:hi], in[lo:hi]) })
}

// NormBackAdd is NormBack, then Add.
func (l *Leaf[T]) NormBackAdd(dx, dw, dy, x, rstd, w, around tensor.Tensor) {
	l.NormBack(dx, dw, dy, x, rstd, w)
	l.Add(dx, around, dx)
}

// SwiGLU is silu(gate)·up.
func (l *Leaf[T]) SwiGLU(y, gate, up tensor.Tensor) {
	out, g, u := data[T](y), data[T](gate), data[T](up)
	l.spread(len(out), 1, func(lo, hi int) { vec.SwiGLU(out[lo:hi], g[lo:hi], u[lo:hi]) })
}

// SwiGLUBack is its gradient.
func (l *Leaf[T]) SwiGLUBack(dgate, dup, dy, gate, up tensor.Tensor) {
	dg, du, d, g, u := data[T](dgate), data[T](dup), data[T](dy), data[T](gate), data[T](up)
	l.spread(len(dg), 1, func(lo, hi int) { vec.SwiGLUBackward(dg[lo:hi], du[lo:hi], d[lo:hi], g[lo:hi], u[lo:hi]) })
}

// Zero clears t.
func (l *Leaf[T]) Zero(t tensor.Tensor) {
	if t.Type == tensor.I32 {
		clear(tensor.View[int32](t))
		return
	}
	clear(data[T](t))
}

// Copy copies dense data.
func (l *Leaf[T]) Copy(dst, src tensor.Tensor) {
	if dst.Type == tensor.I32 {
		copy(tensor.View[int32](dst), tensor.View[int32](src))
		return
	}
	copy(data[T](dst), data[T](src))
}

// CopyBox walks the box row by row; trailing dims that are whole on both sides count as one row.
func (l *Leaf[T]) CopyBox(dst, src tensor.Tensor, b compute.Box) {
	k := len(b.Dims) - 1
	row, dstStep, srcStep := b.Dims[k], 1, 1
	for k > 0 && b.Dims[k] == dst.Dims[k] && b.Dims[k] == src.Dims[k] {
		dstStep, srcStep = dstStep*dst.Dims[k], srcStep*src.Dims[k]
		k--
		row *= b.Dims[k]
	}
	if dst.Type == tensor.I32 {
		copyRows(tensor.View[int32](dst), tensor.View[int32](src), dst.Dims, src.Dims, b, k, row, dstStep, srcStep)
		return
	}
	copyRows(data[T](dst), data[T](src), dst.Dims, src.Dims, b, k, row, dstStep, srcStep)
}

// copyRows copies rows of row elements for every index of the box's dims before k; step is the size of one index of dim k.
func copyRows[N float32 | float64 | int32](dst, src []N, dd, sd []int, b compute.Box, k, row, dstStep, srcStep int) {
	d0, s0 := b.DstLo[k]*dstStep, b.SrcLo[k]*srcStep
	var walk func(dim, dAt, sAt int)
	walk = func(dim, dAt, sAt int) {
		if dim == k {
			to, from := dst[dAt*dd[k]*dstStep+d0:][:row], src[sAt*sd[k]*srcStep+s0:][:row]
			if !b.Add {
				copy(to, from)
				return
			}
			for i, v := range from {
				to[i] += v
			}
			return
		}
		for i := range b.Dims[dim] {
			walk(dim+1, dAt*dd[dim]+b.DstLo[dim]+i, sAt*sd[dim]+b.SrcLo[dim]+i)
		}
	}
	walk(0, 0, 0)
}

// Upload converts from float64; ids round to the nearest integer.
func (l *Leaf[T]) Upload(dst tensor.Tensor, src []float64) {
	if dst.Type == tensor.I32 {
		for i, v := range src {
			tensor.View[int32](dst)[i] = int32(v)
		}
		return
	}
	out := data[T](dst)
	for i, v := range src {
		out[i] = T(v)
	}
}

// Download converts to float64.
func (l *Leaf[T]) Download(dst []float64, src tensor.Tensor) {
	if src.Type == tensor.I32 {
		for i, v := range tensor.View[int32](src) {
			dst[i] = float64(v)
		}
		return
	}
	for i, v := range data[T](src) {
		dst[i] = float64(v)
	}
}
